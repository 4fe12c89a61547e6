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
// keeps and throws leaves the tape as it was. One tape belongs to one thread at a time. How it does
// all this is in tape_rules.hpp, compiled in the library for float and double.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/tensor/shape.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra {

template <class T>
class FENESTRA_API Tape;

/// What a backward sweep found, by variable.
template <class T>
class FENESTRA_API Gradients {
 public:
  /// The gradient of a parameter (or of a variable asked for with `wrt`); zeros where the seeds do
  /// not depend on it.
  Value<T> operator[](const Value<T>& value) const;

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
class FENESTRA_API Tape {
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
  static void add_to(std::optional<Value<T>>& sum, Value<T> term);
  /// Memory that all nodes of a sweep use in turn.
  struct Sweeping {
    std::vector<bool> parents_needed;
    std::vector<std::optional<Value<T>>> parent_bars;
  };
  std::vector<bool> wanted_nodes(const std::vector<Value<T>>& wrt) const;
  std::vector<bool> needed_nodes(const std::vector<bool>& wanted, Index last) const;
  void sweep(Index i,
             const std::vector<bool>& needed,
             const std::vector<bool>& wanted,
             std::vector<std::optional<Value<T>>>& bars,
             bool retain,
             Sweeping& now);

  Level level_;
  std::shared_ptr<detail::TapeState<Value<T>>> state_;
};

/// The gradients of the leaves, from seeds for all outputs of a function of them.
template <class T>
FENESTRA_API std::vector<Value<T>> pull_back(Tape<T>& tape,
                                             const std::vector<Value<T>>& leaves,
                                             const std::vector<Value<T>>& outputs,
                                             const std::vector<Value<T>>& bars,
                                             bool retain);

}  // namespace fenestra
