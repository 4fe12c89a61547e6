// Handles whose shapes are part of their types: Var<T, Shape{...}> on values, DataVar<Shape{...}>
// on integers, and what asks `compile` for them.
//
// They are the handles of value.hpp and convert to them; a handle whose shape is only known at run
// time becomes typed by an explicit conversion, which checks it. Which type an operator returns is
// the matter of ops/typed.hpp.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/graph/value.hpp>
#include <fenestra/tensor/shape.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace fenestra {

namespace graph {

namespace detail {

inline void require_typed_shape(std::string_view kind, const Shape& got, const Shape& needed) {
  const Fault fault = check_shape(Argument::none, got, needed);
  if (!fault) {
    return;
  }
  throw Error(std::string(kind),
              fault,
              std::string(kind) + ": the value has shape " + to_string(got) + ", the type says " +
                  to_string(needed) + "\n  fix: a value of shape " + to_string(needed) +
                  ", or another type");
}

}  // namespace detail

/// A Value<T> of shape S.
template <class T, Shape S>
class Var : public Value<T> {
 public:
  static constexpr Shape static_shape = S;

  /// Throws `shape_mismatch` where the value has another shape.
  explicit Var(Value<T> value) : Value<T>(std::move(value)) {
    detail::require_typed_shape("graph::Var", Value<T>::shape(), S);
  }
  static constexpr Shape shape() { return S; }
};

/// Integers of shape S that receive no gradient: labels, indices.
template <Shape S>
class DataVar : public Data {
 public:
  static constexpr Shape static_shape = S;

  /// Throws `shape_mismatch` where the data has another shape.
  explicit DataVar(Data data) : Data(std::move(data)) {
    detail::require_typed_shape("graph::DataVar", Data::shape(), S);
  }
  static constexpr Shape shape() { return S; }
};

}  // namespace graph

/// Arguments of `compile` and `trace` whose shapes the callable sees in its types.
template <Shape S>
struct TypedInput {};
template <Shape S>
struct TypedParameter {};
template <Shape S>
struct TypedData {};
template <Shape S>
struct TypedMask {};

template <Shape S>
inline constexpr TypedInput<S> typed_input;
template <Shape S>
inline constexpr TypedParameter<S> typed_parameter;
template <Shape S>
inline constexpr TypedData<S> typed_data;
template <Shape S>
inline constexpr TypedMask<S> typed_mask;

}  // namespace fenestra
