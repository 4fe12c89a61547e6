// The eager reverse-mode engine: a tape records what is computed from its parameters, and a sweep
// pulls cotangents back to them.
//
//   Tape<float> tape;
//   const Value<float> w = tape.parameter(weights);
//   const auto grads = tape.backward(mean(model(x, w)));
//   const Tensor<float> w_bar = grads[w];
//
// It knows no operator. Each tape is a level: a tape made inside another's computation gives second
// derivatives. The sweep releases what rules saved as it passes unless told to keep it; one that
// keeps and throws leaves the tape as it was. One tape belongs to one thread at a time.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/tensor/shape.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra {

template <class T>
class Tape;

/// What a backward sweep found, by variable.
template <class T>
class Gradients {
 public:
  /// The gradient of a parameter (or of a variable asked for with `wrt`); zeros where the seeds do
  /// not depend on it.
  Value<T> operator[](const Value<T>& value) const {
    const auto* variable = value.template as<typename Value<T>::Variable>();
    if (variable == nullptr || variable->state() != state_) {
      throw Error(ErrorCode::foreign_variable,
                  "gradients: the variable " + to_string(value.shape()) +
                      " is not on the tape of this sweep\n  fix: ask for its parameters");
    }
    const auto found = std::lower_bound(
        bars_.begin(), bars_.end(), variable->node(), [](const auto& entry, Index node) {
          return entry.first < node;
        });
    if (found != bars_.end() && found->first == variable->node()) {
      return found->second ? *found->second : zeros_like(variable->value());
    }
    throw Error(ErrorCode::foreign_variable,
                "gradients: no gradient was kept for this variable " + to_string(value.shape()) +
                    "\n  fix: make it a parameter, or name it in .wrt");
  }

 private:
  friend class Tape<T>;
  std::shared_ptr<detail::TapeState<Value<T>>> state_;
  std::vector<std::pair<Index, std::optional<Value<T>>>> bars_;  ///< ascending by node
};

template <class T>
struct BackwardOptions {
  bool retain = false;             ///< keep what the rules saved, so that the sweep can be repeated
  std::vector<Value<T>> wrt = {};  ///< the variables to differentiate by; all parameters if empty
};

template <class T>
struct Seed {
  Value<T> variable;
  Value<T> y_bar;
};

template <class T>
class Tape {
 public:
  Tape() : level_(new_level()), state_(std::make_shared<detail::TapeState<Value<T>>>()) {}

  /// A leaf that receives a gradient. Its value may belong to transforms around the tape.
  Value<T> parameter(Value<T> value, std::string_view name = "parameter");
  /// A leaf that does not.
  Value<T> constant(Value<T> value) const { return value; }

  Level level() const { return level_; }
  /// Nodes recorded so far, parameters included.
  Index size() const { return static_cast<Index>(state_->nodes.size()); }
  /// The name a node was recorded under.
  const std::string& name(const Value<T>& value) const { return node_of(value, "name").name; }
  /// Whether the value is a variable of this tape.
  bool owns(const Value<T>& value) const {
    const Variable* variable = value.template as<Variable>();
    return variable != nullptr && variable->state() == state_;
  }
  /// What a variable of this tape is on the levels around it; other values are themselves.
  Value<T> around(const Value<T>& value) const {
    return owns(value) ? value.template as<Variable>()->value() : value;
  }

  /// Forgets all nodes; variables made before are stale.
  void reset() {
    state_->nodes.clear();
    ++state_->generation;
  }

  /// From one variable, seeded with ones (the gradient of the sum of its elements).
  Gradients<T> backward(const Value<T>& root, const BackwardOptions<T>& options = {});
  Gradients<T> backward(const Seed<T>& seed, const BackwardOptions<T>& options = {}) {
    return backward(std::span<const Seed<T>>(&seed, 1), options);
  }
  /// From several variables at once: the gradient of sum <y_bar, y>.
  Gradients<T> backward(std::span<const Seed<T>> seeds, const BackwardOptions<T>& options = {});

 private:
  using Variable = typename Value<T>::Variable;
  using Node = detail::TapeNode<Value<T>>;

  const Variable& variable_of(const Value<T>& value, std::string_view where) const;
  const Node& node_of(const Value<T>& value, std::string_view where) const {
    return state_->nodes[static_cast<std::size_t>(variable_of(value, where).node())];
  }
  static void add_to(std::optional<Value<T>>& sum, Value<T> term) {
    if (sum) {
      accumulate(*sum, term);
    } else {
      sum = std::move(term);
    }
  }
  /// Memory that all nodes of a sweep use in turn.
  struct Sweeping {
    std::vector<bool> parents_needed;
    std::vector<std::optional<Value<T>>> parent_bars;
  };
  std::vector<bool> wanted_nodes(const std::vector<Value<T>>& wrt) const;
  std::vector<bool> needed_nodes(const std::vector<Value<T>>& wrt, Index last) const;
  void sweep(Index i,
             const std::vector<bool>& needed,
             const std::vector<bool>& wanted,
             std::vector<std::optional<Value<T>>>& bars,
             bool retain,
             Sweeping& now);

  Level level_;
  std::shared_ptr<detail::TapeState<Value<T>>> state_;
};

template <class T>
Value<T> Tape<T>::parameter(Value<T> value, std::string_view name) {
  if (value.level() > level_) {
    throw Error(ErrorCode::foreign_variable,
                "tape: the parameter " + to_string(value.shape()) +
                    " belongs to a transform that began after the tape\n  fix: make the tape "
                    "inside it");
  }
  if (owns(value)) {
    value = around(value);
  }
  Node node{std::string(name), {}, {}, true};
  return detail::append(level_, std::move(value), state_, std::move(node));
}

template <class T>
Gradients<T> Tape<T>::backward(const Value<T>& root, const BackwardOptions<T>& options) {
  return backward(Seed<T>{root, ones_like(around(root))}, options);
}

template <class T>
Gradients<T> Tape<T>::backward(std::span<const Seed<T>> seeds, const BackwardOptions<T>& options) {
  std::vector<std::optional<Value<T>>> bars(state_->nodes.size());
  Index last = -1;
  for (const Seed<T>& seed : seeds) {
    if (!seed.variable.requires_grad()) {
      throw Error(
          ErrorCode::foreign_variable,
          "backward: the variable " + to_string(seed.variable.shape()) +
              " depends on no parameter\n  fix: compute it from tape.parameter(...), outside " +
              spelled("NoGrad", "no_grad"));
    }
    const Index node = variable_of(seed.variable, "backward").node();
    if (seed.y_bar.shape() != seed.variable.shape()) {
      throw Error(ErrorCode::shape_mismatch,
                  "backward: seed " + to_string(seed.y_bar.shape()) + " for a variable " +
                      to_string(seed.variable.shape()) + "\n  fix: equal shapes");
    }
    add_to(bars[static_cast<std::size_t>(node)], seed.y_bar);
    last = std::max(last, node);
  }
  const std::vector<bool> needed = needed_nodes(options.wrt, last);
  const std::vector<bool> wanted = wanted_nodes(options.wrt);
  Sweeping now;
  for (Index i = last; i >= 0; --i) {
    sweep(i, needed, wanted, bars, options.retain, now);
  }
  Gradients<T> result;
  result.state_ = state_;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) {
      result.bars_.emplace_back(static_cast<Index>(i), std::move(bars[i]));
    }
  }
  return result;
}

template <class T>
const typename Value<T>::Variable& Tape<T>::variable_of(const Value<T>& value,
                                                        std::string_view where) const {
  if (!owns(value) || value.template as<Variable>()->is_stale()) {
    throw Error(ErrorCode::foreign_variable,
                std::string(where) + ": the variable " + to_string(value.shape()) +
                    (owns(value) ? " was made before the tape was reset" : " is not on this tape") +
                    "\n  fix: use variables made on this tape");
  }
  return *value.template as<Variable>();
}

template <class T>
std::vector<bool> Tape<T>::wanted_nodes(const std::vector<Value<T>>& wrt) const {
  std::vector<bool> wanted(state_->nodes.size());
  for (const Value<T>& value : wrt) {
    wanted[static_cast<std::size_t>(variable_of(value, "backward, wrt").node())] = true;
  }
  for (std::size_t i = 0; wrt.empty() && i < wanted.size(); ++i) {
    wanted[i] = state_->nodes[i].is_parameter;
  }
  return wanted;
}

/// Nodes on a path from a wanted one; the others are not worth a rule.
template <class T>
std::vector<bool> Tape<T>::needed_nodes(const std::vector<Value<T>>& wrt, Index last) const {
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

template <class T>
void Tape<T>::sweep(Index i,
                    const std::vector<bool>& needed,
                    const std::vector<bool>& wanted,
                    std::vector<std::optional<Value<T>>>& bars,
                    bool retain,
                    Sweeping& now) {
  const auto at = static_cast<std::size_t>(i);
  Node& node = state_->nodes[at];
  if (!bars[at] || node.is_parameter) {
    return;
  }
  std::vector<bool>& parents_needed = now.parents_needed;
  parents_needed.resize(node.parents.size());
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
    std::vector<std::optional<Value<T>>>& parent_bars = now.parent_bars;
    parent_bars.clear();
    parent_bars.resize(node.parents.size());
    // The rule may record on other tapes but not on this one; a copy guards against a release
    // while it runs.
    detail::PullbackRule<Value<T>> rule = retain ? node.rule : std::move(node.rule);
    if (!retain) {
      node.rule = nullptr;
    }
    const Value<T> y_bar = wanted[at] ? *bars[at] : std::move(*bars[at]);
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

extern template class FENESTRA_API Tape<float>;
extern template class FENESTRA_API Tape<double>;

}  // namespace fenestra
