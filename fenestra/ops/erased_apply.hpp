// How a primitive runs on erased values: on the highest level among its inputs, as a variable, a
// jet, a batch or a node of a graph there, or on tensors where there is none.
#pragma once

#include <fenestra/ops/erased.hpp>
#include <fenestra/ops/graph_values.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/ops/vmap.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace fenestra {

namespace detail {

template <class W, class E>
std::vector<W> lifted(std::span<const E> in, Level level) {
  std::vector<W> values;
  values.reserve(in.size());
  for (const E& value : in) {
    values.push_back(value.template on<W>(level));
  }
  return values;
}

template <class E>
std::vector<Tensor<ScalarOf<E>>> tensors_of(std::span<const E> in) {
  std::vector<Tensor<ScalarOf<E>>> tensors;
  tensors.reserve(in.size());
  for (const E& value : in) {
    tensors.push_back(value.tensor());
  }
  return tensors;
}

/// The value that gives a level its kind; null where only integer data is on it.
template <class E>
const E* value_on(std::span<const E> in, Level level) {
  for (const E& value : in) {
    if (value.level() == level) {
      return &value;
    }
  }
  return nullptr;
}

}  // namespace detail

/// Item `i` of the data, see detail::item_of.
inline ErasedIndices item_of(const BatchIndices<ErasedIndices>& data, Index i) {
  if (data.count == 0) {
    return data.indices;
  }
  if (data.indices.level() != 0) {
    throw Error(ErrorCode::unknown_operator,
                "vmap: integer data with two hidden axes, or of a program, has no rule\n  fix: one "
                "vmap, with the axes folded into one, outside compile");
  }
  return detail::item_of(BatchIndices<Selection>(data.indices.plain(), data.count), i);
}

namespace detail {

template <class E>
struct ScopeOf;
template <class T, class Scope>
struct ScopeOf<Erased<T, Scope>> {
  using type = Scope;
};

}  // namespace detail

inline bool leaves_nothing(const ErasedIndices& workspace) {
  if (workspace.traced() != nullptr) {
    return false;  // an empty one is plain
  }
  const BatchIndices<ErasedIndices> items = workspace.items(workspace.level());
  return items.count == 0 ? workspace.plain().is_none() : leaves_nothing(items.indices);
}

namespace detail {

[[noreturn]] inline void throw_outer(std::string_view op) {
  throw Error(ErrorCode::foreign_variable,
              std::string(op) +
                  ": a compiled function uses a value of a transform around it\n  fix: give the "
                  "value to the function as an argument, or .detach() it");
}

inline bool is_traced(std::span<const ErasedIndices> data, Level level) {
  return std::any_of(data.begin(), data.end(), [&](const ErasedIndices& part) {
    return part.level() == level && part.traced() != nullptr;
  });
}

/// On a level on which a graph is traced; what is not on it must be plain, and is a constant.
template <class P, class E>
Applied<E> trace_erased(const P& primitive,
                        std::span<const E> in,
                        std::span<const ErasedIndices> data,
                        bool keep,
                        Level level) {
  using T = ScalarOf<E>;
  std::vector<graph::Value<T>> values;
  for (const E& value : in) {
    if (const auto* traced = value.template as<graph::Value<T>>();
        traced != nullptr && value.level() == level) {
      values.push_back(*traced);
    } else if (value.level() == 0) {
      values.push_back(value.tensor());
    } else {
      throw_outer(name_of(primitive));
    }
  }
  std::vector<graph::Data> indices;
  for (const ErasedIndices& part : data) {
    if (part.traced() != nullptr && part.level() == level) {
      indices.push_back(*part.traced());
    } else if (part.level() == 0) {
      indices.emplace_back(part.plain());
    } else {
      throw_outer(name_of(primitive));
    }
  }
  // Derivatives are taken on the levels above, before there are nodes.
  auto result = append_operation<graph::Rules::none>(primitive,
                                                     std::span<const graph::Value<T>>(values),
                                                     std::span<const graph::Data>(indices),
                                                     keep);
  return {E(level, std::move(result.y)), ErasedIndices(level, std::move(result.workspace))};
}

}  // namespace detail

template <class P, class E>
Applied<E> apply_erased(const P& primitive,
                        std::span<const E> in,
                        std::span<const ErasedIndices> data,
                        bool keep) {
  Level level = 0;
  for (const E& value : in) {
    level = std::max(level, value.level());
  }
  for (const ErasedIndices& indices : data) {
    level = std::max(level, indices.level());
  }
  if (level == 0) {
    std::vector<Selection> plain;
    plain.reserve(data.size());
    for (const ErasedIndices& indices : data) {
      plain.push_back(indices.plain());
    }
    const auto tensors = detail::tensors_of(in);
    const auto run = [&] {
      [[maybe_unused]] const typename detail::ScopeOf<E>::type scope;
      return apply_all(primitive,
                       std::span<const Tensor<ScalarOf<E>>>(tensors),
                       std::span<const Selection>(plain),
                       keep);
    };
    auto result = run();
    return {E(std::move(result.y)), std::move(result.workspace)};
  }
  const E* value = detail::value_on(in, level);
  if (value == nullptr ? detail::is_traced(data, level)
                       : value->template as<graph::Value<ScalarOf<E>>>() != nullptr) {
    return detail::trace_erased(primitive, in, data, keep, level);
  }
  if (value != nullptr && value->template as<Var<E>>() != nullptr) {
    const auto variables = detail::lifted<Var<E>>(in, level);
    auto result = apply_all(primitive, std::span<const Var<E>>(variables), data, keep);
    return {E(level, std::move(result.y)), std::move(result.workspace)};
  }
  if (value != nullptr && value->template as<Jet<E>>() != nullptr) {
    const auto jets = detail::lifted<Jet<E>>(in, level);
    auto result = apply_all(primitive, std::span<const Jet<E>>(jets), data, keep);
    return {E(level, std::move(result.y)), std::move(result.workspace)};
  }
  const auto batches = detail::lifted<Batch<E>>(in, level);
  std::vector<BatchIndices<ErasedIndices>> items;
  items.reserve(data.size());
  for (const ErasedIndices& indices : data) {
    items.push_back(indices.items(level));
  }
  auto result = apply_all(primitive,
                          std::span<const Batch<E>>(batches),
                          std::span<const BatchIndices<ErasedIndices>>(items),
                          keep);
  return {E(level, std::move(result.y)), ErasedIndices(level, std::move(result.workspace))};
}

/// Makes the primitives run on values of type E.
template <class E, class... Ps>
void compile_erased(TypeList<Ps...>) {
  ((erased_entry<Ps, E> = &apply_erased<Ps, E>), ...);
}

}  // namespace fenestra
