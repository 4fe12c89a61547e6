// Variable<V>: a value and its node on a tape, the form of Value<T> that receives gradients. The
// inside of tape.hpp; V is Value<T>.
//
// A node knows its parents and the rule that pulls a cotangent back to them. A rule owns what it
// saved. An operator that throws leaves its tape as it was. One tape belongs to one thread at a
// time.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/base/level.hpp>
#include <fenestra/tensor/shape.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra {

namespace detail {

/// Set while a `NoGrad` scope is open in this thread.
FENESTRA_API inline thread_local int no_grad_depth = 0;

/// Pulls the cotangent of a node back to its parents: fills `bars[i]` for every i with `needed[i]`.
template <class V>
using PullbackRule = std::function<void(
    const V& y_bar, const std::vector<bool>& needed, std::vector<std::optional<V>>& bars)>;

template <class V>
struct TapeNode {
  std::string name;
  std::vector<Index> parents;
  PullbackRule<V> rule;  ///< empty for a parameter, and after it was released
  bool is_parameter = false;
};

template <class V>
struct TapeState {
  std::vector<TapeNode<V>> nodes;
  /// Counts `reset`, so that variables from before it are recognised.
  std::uint64_t generation = 0;
};

/// Cheap to copy; keeps its tape alive.
template <class V>
class Variable {
 public:
  /// A constant: belongs to no tape and receives no gradient.
  Variable(V value) : value_(std::move(value)) {}
  /// The node that is recorded next.
  Variable(V&& value, const std::shared_ptr<TapeState<V>>& state)
      : value_(std::move(value)),
        state_(state),
        node_(static_cast<Index>(state_->nodes.size())),
        generation_(state_->generation) {}

  const V& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  bool requires_grad() const { return state_ != nullptr; }

  const std::shared_ptr<TapeState<V>>& state() const { return state_; }
  /// -1 for a constant.
  Index node() const { return node_; }
  /// Made before its tape was reset.
  bool is_stale() const { return generation_ != state_->generation; }

 private:
  V value_;
  std::shared_ptr<TapeState<V>> state_;
  Index node_ = -1;
  std::uint64_t generation_ = 0;
};

/// A node and the value that stands for it; where memory ends, the tape is as it was.
template <class V>
V append(Level level, V&& value, const std::shared_ptr<TapeState<V>>& state, TapeNode<V>&& node) {
  V result(level, Variable<V>(std::move(value), state));
  state->nodes.push_back(std::move(node));
  return result;
}

/// The variable of `level` that a value is, or null.
template <class V>
const Variable<V>* variable_on(Level level, const V& value) {
  return value.level() == level ? value.template as<Variable<V>>() : nullptr;
}
/// What a value is below `level`, on which variables are.
template <class V>
const V& below(Level level, const V& value) {
  const Variable<V>* variable = variable_on(level, value);
  return variable != nullptr ? variable->value() : value;
}

/// Puts a computed value on the tape of its parents, which are of one level and so of one tape. A
/// constant where none of them needs a gradient.
template <class V>
V record(Level level,
         std::string_view name,
         V&& value,
         std::span<const V> parents,
         PullbackRule<V>&& rule) {
  const Variable<V>* last = nullptr;
  for (const V& parent : parents) {
    const Variable<V>* variable = variable_on(level, parent);
    if (variable == nullptr) {
      continue;
    }
    if (variable->is_stale()) {
      throw Error(ErrorCode::foreign_variable,
                  std::string(name) + ": an input " + to_string(parent.shape()) +
                      " was made before its tape was reset\n  fix: make it again");
    }
    last = variable;
  }
  if (last == nullptr || no_grad_depth > 0) {
    return std::move(value);
  }
  TapeNode<V> node{std::string(name), {}, std::move(rule), false};
  node.parents.reserve(parents.size());
  for (const V& parent : parents) {
    const Variable<V>* variable = variable_on(level, parent);
    node.parents.push_back(variable != nullptr ? variable->node() : -1);
  }
  return append(level, std::move(value), last->state(), std::move(node));
}

}  // namespace detail

/// While it lives, operators in this thread compute values and record nothing.
class NoGrad {
 public:
  NoGrad() { ++detail::no_grad_depth; }
  ~NoGrad() { --detail::no_grad_depth; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
};

}  // namespace fenestra
