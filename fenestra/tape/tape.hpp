// The eager reverse-mode engine: a tape records, for each value, its parents and the rule that
// pulls a cotangent back.
//
// It knows no operator. `Var<V>` is itself a value type, so a tape over variables of another tape
// gives second derivatives, a tape over jets gives forward over reverse, and so on; distinct levels
// are distinct types. A rule owns what it saved; the sweep releases it as it passes unless told to
// keep it. An operator that throws leaves its tape as it was, and so does a sweep that keeps; one
// that releases has released what it passed. One tape belongs to one thread at a time.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/tensor/selection.hpp>
#include <fenestra/tensor/shape.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra {

template <class V>
class Var;
template <class V>
class BasicTape;

/// Pulls the cotangent of a node back to its parents: fills `bars[i]` for every i with `needed[i]`.
template <class V>
using PullbackRule = std::function<void(
    const V& y_bar, const std::vector<bool>& needed, std::vector<std::optional<V>>& bars)>;

// What a tape asks of a value, for the base value type. Other value types bring their own.

template <class T>
Tensor<T> zeros_like(const Tensor<T>& value) {
  return Tensor<T>(value.shape());
}

template <class T>
Tensor<T> ones_like(const Tensor<T>& value) {
  return Tensor<T>(value.shape(), T(1));
}

/// sum += term
template <class T>
void accumulate(Tensor<T>& sum, const Tensor<T>& term) {
  T* out = sum.mutable_data();
  const T* in = term.data();
  const Index n = sum.size();
  for (Index i = 0; i < n; ++i) {
    out[i] = out[i] + in[i];
  }
}

namespace detail {

/// Set while a `NoGrad` scope is open in this thread.
inline thread_local int no_grad_depth = 0;

template <class V>
struct TapeNode {
  std::string name;
  Shape shape;
  std::vector<Index> parents;
  PullbackRule<V> rule;  ///< empty for a parameter, and after it was released
  bool is_parameter = false;
};

template <class V>
struct TapeState {
  std::vector<TapeNode<V>> nodes;
  std::uint64_t generation =
      0;  ///< counts `reset`, so that variables from before it are recognised
};

}  // namespace detail

/// While it lives, operators in this thread compute values and record nothing.
class NoGrad {
 public:
  NoGrad() { ++detail::no_grad_depth; }
  ~NoGrad() { --detail::no_grad_depth; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
};

/// A value and, where it depends on a parameter, its node on a tape. Cheap to copy; keeps its tape
/// alive.
template <class V>
class Var {
 public:
  using Value = V;

  /// A constant: belongs to no tape and receives no gradient.
  Var(V value) : value_(std::move(value)) {}
  /// A constant from a value some levels further in.
  template <class U>
    requires(!std::same_as<U, V> && !std::same_as<U, Var> && std::convertible_to<const U&, V>)
  Var(const U& value) : value_(value) {}

  const V& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  bool requires_grad() const { return state_ != nullptr; }

 private:
  friend class BasicTape<V>;
  template <class W>
  friend Var<W> record(std::string_view, W, std::span<const Var<W>>, PullbackRule<W>);
  template <class W>
  friend class Gradients;

  V value_;
  std::shared_ptr<detail::TapeState<V>> state_;
  Index node_ = -1;
  std::uint64_t generation_ = 0;
};

template <class V>
Var<V> zeros_like(const Var<V>& value) {
  return Var<V>(zeros_like(value.value()));
}

template <class V>
Var<V> ones_like(const Var<V>& value) {
  return Var<V>(ones_like(value.value()));
}

template <class V>
void accumulate(Var<V>& sum, const Var<V>& term) {
  sum = add(sum, term);  // the operator of that name, found when this is instantiated
}

/// Puts a computed value on the tape of its parents. A constant where none of them needs a
/// gradient.
template <class V>
Var<V> record(std::string_view name,
              V value,
              std::span<const Var<V>> parents,
              PullbackRule<V> rule) {
  Var<V> result(std::move(value));
  if (detail::no_grad_depth > 0) {
    return result;
  }
  for (const Var<V>& parent : parents) {
    if (!parent.requires_grad()) {
      continue;
    }
    if (result.state_ && result.state_ != parent.state_) {
      throw Error(
          ErrorCode::foreign_variable,
          std::string(name) +
              ": its inputs are variables of two different tapes\n  fix: create all parameters "
              "on one tape, or pass " +
              spelled(".value()", ".detach()") + " of the other's");
    }
    if (parent.generation_ != parent.state_->generation) {
      throw Error(ErrorCode::foreign_variable,
                  std::string(name) + ": an input " + to_string(parent.shape()) +
                      " was made before its tape was reset\n  fix: make it again");
    }
    result.state_ = parent.state_;
  }
  if (!result.state_) {
    return result;
  }
  detail::TapeNode<V> node{std::string(name), result.shape(), {}, std::move(rule), false};
  node.parents.reserve(parents.size());
  for (const Var<V>& parent : parents) {
    node.parents.push_back(parent.node_);
  }
  result.node_ = static_cast<Index>(result.state_->nodes.size());
  result.generation_ = result.state_->generation;
  result.state_->nodes.push_back(std::move(node));
  return result;
}

/// What a backward sweep found, by variable.
template <class V>
class Gradients {
 public:
  /// The gradient of a parameter (or of a variable asked for with `wrt`); zeros where the seeds do
  /// not depend on it.
  V operator[](const Var<V>& variable) const {
    if (variable.state_ != state_) {
      throw Error(ErrorCode::foreign_variable,
                  "gradients: the variable " + to_string(variable.shape()) +
                      " is not on the tape of this sweep\n  fix: ask for its parameters");
    }
    const auto found = std::lower_bound(
        bars_.begin(), bars_.end(), variable.node_, [](const auto& entry, Index node) {
          return entry.first < node;
        });
    if (found != bars_.end() && found->first == variable.node_) {
      return found->second ? *found->second : zeros_like(variable.value());
    }
    throw Error(ErrorCode::foreign_variable,
                "gradients: no gradient was kept for this variable " + to_string(variable.shape()) +
                    "\n  fix: make it a parameter, or name it in .wrt");
  }

 private:
  friend class BasicTape<V>;
  std::shared_ptr<detail::TapeState<V>> state_;
  std::vector<std::pair<Index, std::optional<V>>> bars_;  ///< ascending by node
};

template <class V>
struct BackwardOptions {
  bool retain = false;           ///< keep what the rules saved, so that the sweep can be repeated
  std::vector<Var<V>> wrt = {};  ///< the variables to differentiate by; all parameters where empty
};

template <class V>
struct Seed {
  Var<V> variable;
  V y_bar;
};

template <class V>
class BasicTape {
 public:
  using Variable = Var<V>;

  BasicTape() : state_(std::make_shared<detail::TapeState<V>>()) {}

  /// A leaf that receives a gradient.
  Var<V> parameter(V value, std::string_view name = "parameter") {
    Var<V> result(std::move(value));
    result.state_ = state_;
    result.generation_ = state_->generation;
    result.node_ = static_cast<Index>(state_->nodes.size());
    state_->nodes.push_back({std::string(name), result.shape(), {}, {}, true});
    return result;
  }
  /// A leaf that does not.
  Var<V> constant(V value) const { return Var<V>(std::move(value)); }

  /// Nodes recorded so far, parameters included.
  Index size() const { return static_cast<Index>(state_->nodes.size()); }
  /// The name a node was recorded under.
  const std::string& name(const Var<V>& variable) const { return node_of(variable, "name").name; }

  /// Forgets all nodes; variables made before are stale.
  void reset() {
    state_->nodes.clear();
    ++state_->generation;
  }

  /// From one variable, seeded with ones (the gradient of the sum of its elements).
  Gradients<V> backward(const Var<V>& root, const BackwardOptions<V>& options = {}) {
    return backward(Seed<V>{root, ones_like(root.value())}, options);
  }
  Gradients<V> backward(const Seed<V>& seed, const BackwardOptions<V>& options = {}) {
    return backward(std::span<const Seed<V>>(&seed, 1), options);
  }
  /// From several variables at once: the gradient of sum <y_bar, y>.
  Gradients<V> backward(std::span<const Seed<V>> seeds, const BackwardOptions<V>& options = {}) {
    std::vector<std::optional<V>> bars(state_->nodes.size());
    Index last = -1;
    for (const Seed<V>& seed : seeds) {
      if (!seed.variable.requires_grad()) {
        throw Error(
            ErrorCode::foreign_variable,
            "backward: the variable " + to_string(seed.variable.shape()) +
                " depends on no parameter\n  fix: compute it from tape.parameter(...), outside " +
                spelled("NoGrad", "no_grad"));
      }
      node_of(seed.variable, "backward");
      if (seed.y_bar.shape() != seed.variable.shape()) {
        throw Error(ErrorCode::shape_mismatch,
                    "backward: seed " + to_string(seed.y_bar.shape()) + " for a variable " +
                        to_string(seed.variable.shape()) + "\n  fix: equal shapes");
      }
      add_to(bars[static_cast<std::size_t>(seed.variable.node_)], seed.y_bar);
      last = std::max(last, seed.variable.node_);
    }
    const std::vector<bool> needed = needed_nodes(options.wrt, last);
    const std::vector<bool> wanted = wanted_nodes(options.wrt);
    for (Index i = last; i >= 0; --i) {
      sweep(i, needed, wanted, bars, options.retain);
    }
    Gradients<V> result;
    result.state_ = state_;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) {
        result.bars_.emplace_back(static_cast<Index>(i), std::move(bars[i]));
      }
    }
    return result;
  }

 private:
  const detail::TapeNode<V>& node_of(const Var<V>& variable, std::string_view where) const {
    if (variable.state_ != state_ || variable.generation_ != state_->generation) {
      throw Error(ErrorCode::foreign_variable,
                  std::string(where) + ": the variable " + to_string(variable.shape()) +
                      (variable.state_ == state_ ? " was made before the tape was reset"
                                                 : " is not on this tape") +
                      "\n  fix: use variables made on this tape");
    }
    return state_->nodes[static_cast<std::size_t>(variable.node_)];
  }

  static void add_to(std::optional<V>& sum, const V& term) {
    if (sum) {
      accumulate(*sum, term);
    } else {
      sum = term;
    }
  }

  std::vector<bool> wanted_nodes(const std::vector<Var<V>>& wrt) const {
    std::vector<bool> wanted(state_->nodes.size());
    for (const Var<V>& variable : wrt) {
      node_of(variable, "backward, wrt");
      wanted[static_cast<std::size_t>(variable.node_)] = true;
    }
    for (std::size_t i = 0; wrt.empty() && i < wanted.size(); ++i) {
      wanted[i] = state_->nodes[i].is_parameter;
    }
    return wanted;
  }

  /// Nodes on a path from a wanted one; the others are not worth a rule.
  std::vector<bool> needed_nodes(const std::vector<Var<V>>& wrt, Index last) const {
    std::vector<bool> needed = wanted_nodes(wrt);
    for (std::size_t i = 0; i <= static_cast<std::size_t>(last); ++i) {
      for (const Index parent : state_->nodes[i].parents) {
        if (parent >= 0 && needed[static_cast<std::size_t>(parent)]) {
          needed[i] = true;
        }
      }
    }
    return needed;
  }

  void sweep(Index i,
             const std::vector<bool>& needed,
             const std::vector<bool>& wanted,
             std::vector<std::optional<V>>& bars,
             bool retain) {
    const auto at = static_cast<std::size_t>(i);
    detail::TapeNode<V>& node = state_->nodes[at];
    if (!bars[at] || node.is_parameter) {
      return;
    }
    std::vector<bool> parents_needed(node.parents.size());
    bool any = false;
    for (std::size_t p = 0; p < node.parents.size(); ++p) {
      parents_needed[p] = node.parents[p] >= 0 && needed[static_cast<std::size_t>(node.parents[p])];
      any = any || parents_needed[p];
    }
    if (any) {
      if (!node.rule) {
        throw Error(ErrorCode::released_graph,
                    "backward: what node \"" + node.name +
                        "\" saved was released by an earlier sweep\n  fix: pass " +
                        spelled_option("retain", true) + " to the earlier one");
      }
      std::vector<std::optional<V>> parent_bars(node.parents.size());
      // The rule may record on other tapes but not on this one; a copy guards against a release
      // while it runs.
      PullbackRule<V> rule = retain ? node.rule : std::move(node.rule);
      if (!retain) {
        node.rule = nullptr;
      }
      const V y_bar = wanted[at] ? *bars[at] : std::move(*bars[at]);
      if (!wanted[at]) {
        bars[at].reset();
      }
      rule(y_bar, parents_needed, parent_bars);
      for (std::size_t p = 0; p < node.parents.size(); ++p) {
        if (parents_needed[p] && parent_bars[p]) {
          add_to(bars[static_cast<std::size_t>(node.parents[p])], std::move(*parent_bars[p]));
        }
      }
    } else if (!wanted[at]) {
      bars[at].reset();
    }
  }

  std::shared_ptr<detail::TapeState<V>> state_;
};

/// The tape most people want: over tensors of T.
template <class T>
using Tape = BasicTape<Tensor<T>>;

}  // namespace fenestra
