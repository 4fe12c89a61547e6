// How a primitive runs on values: on the highest level among its inputs, as a variable, a jet, a
// batch or a node of a graph there, or on tensors where there is none.
//
// The one place where eager evaluation, the tape, forward mode, batches and graphs meet. Includes
// no operator; a unit that compiles rules includes those that they are made of,
// <fenestra/rules.hpp> all.
#pragma once

#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/batch.hpp>
#include <fenestra/engine/host_lock.hpp>
#include <fenestra/engine/operation.hpp>
#include <fenestra/engine/primitive_of.hpp>
#include <fenestra/engine/value.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace fenestra {

namespace detail {

/// On the values inner(0), inner(1), ..., which need not stand in one array.
template <class T, class Inner>
Applied<Value<T>> apply_to_each(const Primitive<T>& primitive,
                                std::size_t count,
                                const Inner& inner,
                                std::span<const Indices> data,
                                bool keep) {
  using V = Value<T>;
  bool is_plain = std::all_of(
      data.begin(), data.end(), [](const Indices& indices) { return indices.level() == 0; });
  for (std::size_t i = 0; i < count; ++i) {
    is_plain = is_plain && inner(i).level() == 0;
  }
  if (!is_plain) {
    std::vector<V> values;
    values.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      values.push_back(inner(i));
    }
    return apply_primitive(primitive, std::span<const V>(values), data, keep);
  }
  std::vector<Tensor<T>> tensors;
  tensors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back(inner(i).plain());
  }
  std::vector<Selection> selections;
  selections.reserve(data.size());
  for (const Indices& indices : data) {
    selections.push_back(indices.plain());
  }
  auto result = apply_primitive(
      primitive, std::span<const Tensor<T>>(tensors), std::span<const Selection>(selections), keep);
  return {V(std::move(result.y)), std::move(result.workspace)};
}

// --- On a level ------------------------------

template <class V, class T = ScalarOf<V>>
Applied<V> apply_on_tape(const Primitive<T>& primitive,
                         std::span<const V> in,
                         std::span<const Indices> data,
                         bool keep,
                         Level level) {
  const auto inner = [&](std::size_t i) -> const V& { return below(level, in[i]); };
  const bool recording = no_grad_depth == 0;
  Applied<V> result = apply_to_each(primitive, in.size(), inner, data, keep || recording);
  if (!recording) {
    return result;
  }
  Saved<V> saved;
  saved.workspace = result.workspace;
  saved.data.assign(data.begin(), data.end());
  saved.in.resize(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (variable_on(level, in[i]) == nullptr) {
      continue;
    }
    for (std::size_t j = 0; j < in.size(); ++j) {
      if (!saved.in[j] && primitive.needs(static_cast<int>(i), static_cast<int>(j))) {
        saved.in[j] = inner(j);
      }
    }
    if (!saved.y && primitive.needs(static_cast<int>(i), kOutput)) {
      saved.y = result.y;
    }
  }
  auto rule = [kept = primitive.shared(), saved = std::move(saved)](
                  const V& y_bar,
                  const std::vector<bool>& needed,
                  std::vector<std::optional<V>>& bars) { kept->vjp(saved, y_bar, needed, bars); };
  return {record<V>(level, primitive.name(), std::move(result.y), in, std::move(rule)),
          std::move(result.workspace)};
}

template <class V, class T = ScalarOf<V>>
Applied<V> apply_on_jets(const Primitive<T>& primitive,
                         std::span<const V> in,
                         std::span<const Indices> data,
                         bool keep,
                         Level level) {
  std::vector<V> primals;
  std::vector<std::optional<V>> dots;
  primals.reserve(in.size());
  dots.reserve(in.size());
  bool moving = false;
  for (const V& value : in) {
    const Jet<V> jet = value.template on<Jet<V>>(level);
    primals.push_back(jet.primal());
    dots.push_back(jet.tangent());
    moving = moving || jet.tangent().has_value();
  }
  Applied<V> result = apply_primitive(primitive, std::span<const V>(primals), data, keep || moving);
  if (!moving) {
    return result;
  }
  Saved<V> saved;
  saved.y = result.y;
  saved.workspace = result.workspace;
  saved.data.assign(data.begin(), data.end());
  for (V& primal : primals) {
    saved.in.emplace_back(std::move(primal));
  }
  std::optional<V> tangent = primitive.jvp(saved, dots);
  return {V(level, Jet<V>(std::move(result.y), std::move(tangent))), std::move(result.workspace)};
}

template <class V, class T = ScalarOf<V>>
Applied<V> apply_on_batches(const Primitive<T>& primitive,
                            std::span<const V> in,
                            std::span<const Indices> data,
                            bool keep,
                            Level level) {
  std::vector<Batch<V>> batches;
  batches.reserve(in.size());
  for (const V& value : in) {
    batches.push_back(value.template on<Batch<V>>(level));
  }
  std::vector<BatchIndices<Indices>> items;
  items.reserve(data.size());
  for (const Indices& indices : data) {
    items.push_back(indices.items(level));
  }
  const std::optional<Index> count =
      item_count<V>(primitive.name(), std::span<const Batch<V>>(batches), items);
  if (!count) {
    std::vector<V> values;
    for (const Batch<V>& batch : batches) {
      values.push_back(batch.value());
    }
    return apply_primitive(primitive, std::span<const V>(values), data, keep);
  }
  Applied<V> result = primitive.batched({batches, items, *count, keep, level});
  return {V(level, Batch<V>::stacked(std::move(result.y))),
          Indices(level, BatchIndices<Indices>(std::move(result.workspace), *count))};
}

[[noreturn]] inline void throw_outer(std::string_view op) {
  throw Error(ErrorCode::foreign_variable,
              std::string(op) +
                  ": a compiled function uses a value of a transform around it\n  fix: give the "
                  "value to the function as an argument, or " +
                  spelled(".tensor() of it", ".detach() it"));
}

/// On a level on which a graph is traced; what is not on it must be plain, and is a constant.
template <class V, class T = ScalarOf<V>>
Applied<V> apply_on_graph(const Primitive<T>& primitive,
                          std::span<const V> in,
                          std::span<const Indices> data,
                          bool keep,
                          Level level) {
  std::vector<graph::Value<T>> values;
  for (const V& value : in) {
    if (const auto* traced = value.template as<graph::Value<T>>();
        traced != nullptr && value.level() == level) {
      values.push_back(*traced);
    } else if (value.level() == 0) {
      values.push_back(value.plain());
    } else {
      throw_outer(primitive.name());
    }
  }
  std::vector<graph::Data> indices;
  for (const Indices& part : data) {
    if (part.traced() != nullptr && part.level() == level) {
      indices.push_back(*part.traced());
    } else if (part.level() == 0) {
      indices.emplace_back(part.plain());
    } else {
      throw_outer(primitive.name());
    }
  }
  auto result = apply_primitive(primitive,
                                std::span<const graph::Value<T>>(values),
                                std::span<const graph::Data>(indices),
                                keep);
  return {V(level, std::move(result.y)), Indices(level, std::move(result.workspace))};
}

inline bool is_traced(std::span<const Indices> data, Level level) {
  return std::any_of(data.begin(), data.end(), [&](const Indices& part) {
    return part.level() == level && part.traced() != nullptr;
  });
}

}  // namespace detail

template <class T>
Applied<Tensor<T>> apply_primitive(const Primitive<T>& primitive,
                                   std::span<const Tensor<T>> in,
                                   std::span<const Selection> data,
                                   bool keep) {
  if (primitive.aliases_input()) {
    return {in[0].reshaped(primitive.result_shape(in[0].shape())), {}};
  }
  const detail::Unlocked unlocked;
  Tensor<T> y = Tensor<T>::uninitialised(primitive.result_shape(in[0].shape()));
  Selection workspace;
  SelectionBuffer buffer;
  if (keep) {
    const SelectionType type = primitive.workspace();
    if (type.form == SelectionForm::taps) {
      auto taps = Tensor<std::uint8_t>::uninitialised(type.shape);
      buffer.taps = taps.mutable_data();
      workspace = Selection(std::move(taps));
    } else if (type.form == SelectionForm::indices) {
      auto indices = Tensor<Index>::uninitialised(type.shape);
      buffer.indices = indices.mutable_data();
      workspace = Selection(std::move(indices));
    }
  }
  primitive.run(in, data, y.mutable_data(), buffer);
  return {std::move(y), std::move(workspace)};
}

template <class T>
Applied<Value<T>> apply_primitive(const Primitive<T>& primitive,
                                  std::span<const Value<T>> in,
                                  std::span<const Indices> data,
                                  bool keep) {
  using V = Value<T>;
  Level level = 0;
  const V* top = nullptr;  // gives the level its kind; null where only integer data is on it
  for (const V& value : in) {
    if (value.level() > level) {
      level = value.level();
      top = &value;
    }
  }
  for (const Indices& indices : data) {
    if (indices.level() > level) {
      level = indices.level();
      top = nullptr;
    }
  }
  if (level == 0) {
    return detail::apply_to_each(
        primitive, in.size(), [&](std::size_t i) -> const V& { return in[i]; }, data, keep);
  }
  if constexpr (KernelScalar<T>) {
    if (top == nullptr ? detail::is_traced(data, level)
                       : top->template as<typename V::Traced>() != nullptr) {
      return detail::apply_on_graph<V>(primitive, in, data, keep, level);
    }
  }
  if (top != nullptr && top->template as<typename V::Variable>() != nullptr) {
    return detail::apply_on_tape<V>(primitive, in, data, keep, level);
  }
  if (top != nullptr && top->template as<typename V::Jet>() != nullptr) {
    return detail::apply_on_jets<V>(primitive, in, data, keep, level);
  }
  return detail::apply_on_batches<V>(primitive, in, data, keep, level);
}

/// A node of the graph that the inputs share, or computed at once where all of them are constants.
template <KernelScalar T>
Applied<graph::Value<T>> apply_primitive(const Primitive<T>& primitive,
                                         std::span<const graph::Value<T>> in,
                                         std::span<const graph::Data> data,
                                         bool keep) {
  const std::shared_ptr<graph::Graph> graph = graph::common_graph(primitive.name(), in, data);
  if (graph == nullptr) {
    const std::vector<Tensor<T>> values = graph::constants_of(in);
    const std::vector<Selection> selections = graph::constants_of(data);
    Applied<Tensor<T>> result = apply_primitive(primitive,
                                                std::span<const Tensor<T>>(values),
                                                std::span<const Selection>(selections),
                                                keep);
    return {std::move(result.y), std::move(result.workspace)};
  }
  const graph::NodeId node = graph::append(
      *graph, graph::shared_operation(new graph::OperationOn<T>(primitive.shared())), in, data);
  graph::Data workspace;
  if (primitive.workspace().form != SelectionForm::none) {
    workspace = graph::Data(graph, node);
  }
  return {graph::Value<T>(graph, node), std::move(workspace)};
}

template <class T>
Applied<Value<T>> apply_item_by_item(const Primitive<T>& primitive,
                                     const BatchCall<Value<T>>& call) {
  using V = Value<T>;
  std::vector<V> results;
  for (Index i = 0; i < call.count; ++i) {
    std::vector<V> in;
    for (const detail::Batch<V>& input : call.in) {
      in.push_back(input.is_stacked() ? reshape(slice(input.value(), 0, i, 1), input.shape())
                                      : input.value());
    }
    std::vector<Indices> data;
    for (const auto& indices : call.data) {
      data.push_back(detail::item_of(indices, i));
    }
    auto [y, workspace] = apply_primitive(
        primitive, std::span<const V>(in), std::span<const Indices>(data), call.keep);
    if (!detail::leaves_nothing(workspace)) {
      throw Error(
          ErrorCode::unsupported,
          "vmap: " + std::string(primitive.name()) +
              " leaves winners and has no rule for batches\n  fix: call it on one item at a time");
    }
    results.push_back(reshape(y, with_front(1, y.shape())));
  }
  return {concat(results, 0), {}};
}

template <class P, class T>
  requires(!KernelScalar<T>)
Applied<Tensor<T>> apply_all(const P& primitive,
                             std::span<const Tensor<T>> in,
                             std::span<const Selection> data,
                             bool keep) {
  return apply_primitive<T>(PrimitiveOf<P, T>(primitive), in, data, keep);
}
template <class P, class T>
  requires(!KernelScalar<T>)
Applied<Value<T>> apply_all(const P& primitive,
                            std::span<const Value<T>> in,
                            std::span<const Indices> data,
                            bool keep) {
  return apply_primitive<T>(PrimitiveOf<P, T>(primitive), in, data, keep);
}

template <class T>
Value<T> filled_like(const Value<T>& value, T fill) {
  if constexpr (KernelScalar<T>) {
    const Value<T>& inner = innermost(value);
    if (const auto* traced = inner.template as<graph::Value<T>>()) {
      const graph::NodeId scalar = traced->graph()->add_constant(Tensor<T>(Shape{}, fill));
      return broadcast_to(Value<T>(inner.level(), graph::Value<T>(traced->graph(), scalar)),
                          value.shape());
    }
  }
  return Tensor<T>(value.shape(), fill);
}

template <class T>
void accumulate(Value<T>& sum, const Value<T>& term) {
  if (sum.level() == 0 && term.level() == 0) {
    accumulate(sum.plain(), term.plain());
  } else {
    sum = add(sum, term);
  }
}

#define FENESTRA_ENGINE_FOR(extern_, T)                                                           \
  extern_ template FENESTRA_API Applied<Tensor<T>> apply_primitive(                               \
      const Primitive<T>&, std::span<const Tensor<T>>, std::span<const Selection>, bool);         \
  extern_ template FENESTRA_API Applied<Value<T>> apply_primitive(                                \
      const Primitive<T>&, std::span<const Value<T>>, std::span<const Indices>, bool);            \
  extern_ template FENESTRA_API Applied<graph::Value<T>> apply_primitive(                         \
      const Primitive<T>&, std::span<const graph::Value<T>>, std::span<const graph::Data>, bool); \
  extern_ template FENESTRA_API Applied<Value<T>> apply_item_by_item(const Primitive<T>&,         \
                                                                     const BatchCall<Value<T>>&); \
  extern_ template FENESTRA_API Value<T> filled_like(const Value<T>&, T);                         \
  extern_ template FENESTRA_API void accumulate(Value<T>&, const Value<T>&);

FENESTRA_ENGINE_FOR(extern, float)
FENESTRA_ENGINE_FOR(extern, double)

}  // namespace fenestra
