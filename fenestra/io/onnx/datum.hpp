// Datum<T>: what an ONNX value name stands for while a network runs: a value of the engine, or
// integers and truth values that are known.
//
// Floating-point data of every width is a Value<T>, so tapes, transforms and graphs see it.
// Integers and truth values are numbers, so arithmetic on shapes is done at once, in a trace too.
// Those that come from data (a comparison, an argmax) stay what the engine made of them until
// somebody asks for numbers.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/io/onnx/model.hpp>

#include <utility>
#include <variant>

namespace fenestra::onnx {

template <class T>
class FENESTRA_API Datum {
 public:
  /// The type that a model calls T.
  static constexpr ElementType kReal =
      std::is_same_v<T, float> ? ElementType::float32 : ElementType::float64;

  Datum() : Datum(Value<T>()) {}
  Datum(Value<T> value, ElementType type = kReal) : type_(type), held_(std::move(value)) {}
  Datum(Tensor<T> tensor, ElementType type = kReal) : Datum(Value<T>(std::move(tensor)), type) {}
  Datum(Tensor<Index> numbers, ElementType type = ElementType::int64)
      : type_(type), held_(std::move(numbers)) {}
  Datum(Indices indices, ElementType type = ElementType::int64) : type_(type) {
    if (indices.level() == 0) {
      held_ = indices.plain().indices();
    } else {
      held_ = std::move(indices);
    }
  }

  ElementType type() const { return type_; }
  bool is_real() const { return is_floating(type_); }
  Shape shape() const;
  int rank() const { return shape().rank(); }

  /// As data of the engine; integers are rounded to T. Throws where it is integers of a graph.
  Value<T> value() const;
  /// Whether its numbers can be looked at now: not in a trace of what depends on an input.
  bool is_known() const;
  /// Integers; floating-point numbers lose their fractions. Throws `foreign_variable` unless known.
  Tensor<Index> numbers() const;
  /// For operators that take integers of every kind.
  Indices indices() const;

  /// The value, where it is held as one, or null; the others likewise.
  const Value<T>* as_value() const { return std::get_if<Value<T>>(&held_); }
  const Tensor<Index>* as_numbers() const { return std::get_if<Tensor<Index>>(&held_); }
  const Indices* as_indices() const { return std::get_if<Indices>(&held_); }

 private:
  ElementType type_;
  std::variant<Value<T>, Tensor<Index>, Indices> held_;
};

extern template class Datum<float>;
extern template class Datum<double>;

}  // namespace fenestra::onnx
