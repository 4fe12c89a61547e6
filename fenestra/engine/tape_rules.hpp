// How a tape records and sweeps, and what the transforms do that does not depend on their trees.
// Compiled in the library for float and double; for other scalars <fenestra/rules.hpp> brings it.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/engine/transforms.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra {

template <class T>
Value<T> Gradients<T>::operator[](const Value<T>& value) const {
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

template <class T>
void Tape<T>::add_to(std::optional<Value<T>>& sum, Value<T> term) {
  if (sum) {
    accumulate(*sum, term);
  } else {
    sum = std::move(term);
  }
}

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
  const std::vector<bool> wanted = wanted_nodes(options.wrt);
  const std::vector<bool> needed = needed_nodes(wanted, last);
  Sweeping now;
  for (Index i = last; i >= 0; --i) {
    sweep(i, needed, wanted, bars, options.retain, now);
  }
  Gradients<T> result;
  result.state_ = state_;
  result.bars_.reserve(static_cast<std::size_t>(std::count(wanted.begin(), wanted.end(), true)));
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
std::vector<bool> Tape<T>::needed_nodes(const std::vector<bool>& wanted, Index last) const {
  std::vector<bool> needed = wanted;
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

// --- Transforms ------------------------------

template <class T>
std::vector<Value<T>> pull_back(Tape<T>& tape,
                                const std::vector<Value<T>>& leaves,
                                const std::vector<Value<T>>& outputs,
                                const std::vector<Value<T>>& bars,
                                bool retain) {
  if (outputs.size() != bars.size()) {
    throw Error(ErrorCode::shape_mismatch,
                "pullback: " + std::to_string(bars.size()) + " cotangents for " +
                    std::to_string(outputs.size()) +
                    " results\n  fix: one for each value of the result");
  }
  std::vector<Seed<T>> seeds;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (tape.owns(outputs[i])) {
      seeds.push_back({outputs[i], bars[i]});
    }
  }
  std::vector<Value<T>> grads;
  grads.reserve(leaves.size());
  if (seeds.empty()) {
    for (const Value<T>& leaf : leaves) {
      grads.push_back(zeros_like(tape.around(leaf)));
    }
    return grads;
  }
  const auto found = tape.backward(std::span<const Seed<T>>(seeds), {.retain = retain});
  for (const Value<T>& leaf : leaves) {
    grads.push_back(found[leaf]);
  }
  return grads;
}

namespace detail {

template <class T>
std::vector<Tensor<T>> plain_answers(std::string_view transform,
                                     const std::vector<Value<T>>& values) {
  std::vector<Tensor<T>> result;
  result.reserve(values.size());
  for (const Value<T>& value : values) {
    if (value.level() != 0) {
      throw Error(
          ErrorCode::foreign_variable,
          std::string(transform) + ": a result " + to_string(value.shape()) +
              " depends on a value of a transform around it, and the arguments are tensors\n  "
              "fix: give the arguments as Value, so that the result is one");
    }
    result.push_back(value.plain());
  }
  return result;
}

template <class T>
std::vector<Value<T>> make_jets(Level level,
                                const std::vector<Value<T>>& points,
                                const std::vector<Value<T>>& directions) {
  if (points.size() != directions.size()) {
    throw Error(ErrorCode::shape_mismatch,
                "jvp: " + std::to_string(points.size()) + " primals, " +
                    std::to_string(directions.size()) +
                    " tangents\n  fix: one tangent for each primal");
  }
  std::vector<Value<T>> jets;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].shape() != directions[i].shape()) {
      throw Error(ErrorCode::shape_mismatch,
                  "jvp: primal " + to_string(points[i].shape()) + ", tangent " +
                      to_string(directions[i].shape()) + "\n  fix: equal shapes");
    }
    jets.emplace_back(level, typename Value<T>::Jet(points[i], directions[i]));
  }
  return jets;
}

template <class T>
std::pair<std::vector<Value<T>>, std::vector<Value<T>>> open_jets(
    Level level, const std::vector<Value<T>>& results) {
  std::vector<Value<T>> y;
  std::vector<Value<T>> y_dot;
  for (const Value<T>& value : results) {
    const auto jet = value.template on<typename Value<T>::Jet>(level);
    y.push_back(jet.primal());
    y_dot.push_back(jet.tangent_or_zeros());
  }
  return {std::move(y), std::move(y_dot)};
}

}  // namespace detail

template <class T>
Value<T> checkpoint(const std::function<Value<T>(std::span<const Value<T>>)>& f,
                    const std::vector<Value<T>>& args) {
  using V = Value<T>;
  Level level = 0;
  for (const V& arg : args) {
    if (arg.requires_grad()) {
      level = std::max(level, arg.level());
    }
  }
  std::vector<V> inputs;
  for (const V& arg : args) {
    inputs.push_back(detail::below(level, arg));
  }
  V y = f(std::span<const V>(inputs));
  auto rule = [f, inputs](const V& y_bar,
                          const std::vector<bool>& needed,
                          std::vector<std::optional<V>>& bars) {
    Tape<T> tape;
    std::vector<V> again;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      again.push_back(needed[i] ? tape.parameter(inputs[i]) : inputs[i]);
    }
    const V result = f(std::span<const V>(again));
    if (!tape.owns(result)) {
      return;
    }
    const auto grads = tape.backward(Seed<T>{result, y_bar});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (needed[i]) {
        bars[i] = grads[again[i]];
      }
    }
  };
  return detail::record<V>(level, "checkpoint", std::move(y), args, std::move(rule));
}

#define FENESTRA_TAPE_FOR(extern_, T)                                                         \
  extern_ template class Gradients<T>;                                                        \
  extern_ template class Tape<T>;                                                             \
  extern_ template FENESTRA_API std::vector<Value<T>> pull_back(Tape<T>&,                     \
                                                                const std::vector<Value<T>>&, \
                                                                const std::vector<Value<T>>&, \
                                                                const std::vector<Value<T>>&, \
                                                                bool);                        \
  extern_ template FENESTRA_API std::vector<Tensor<T>> detail::plain_answers(                 \
      std::string_view, const std::vector<Value<T>>&);                                        \
  extern_ template FENESTRA_API std::vector<Value<T>> detail::make_jets(                      \
      Level, const std::vector<Value<T>>&, const std::vector<Value<T>>&);                     \
  extern_ template FENESTRA_API std::pair<std::vector<Value<T>>, std::vector<Value<T>>>       \
  detail::open_jets(Level, const std::vector<Value<T>>&);                                     \
  extern_ template FENESTRA_API Value<T> checkpoint(                                          \
      const std::function<Value<T>(std::span<const Value<T>>)>&, const std::vector<Value<T>>&);

FENESTRA_TAPE_FOR(extern, float)
FENESTRA_TAPE_FOR(extern, double)

}  // namespace fenestra
