// What names stand for while a network runs.
#include <fenestra/base/error.hpp>
#include <fenestra/io/onnx/datum.hpp>
#include <fenestra/ops/gather/gather.hpp>

#include <cmath>
#include <limits>
#include <string>

namespace fenestra::onnx {

namespace {

/// Towards zero; what has no integer becomes the nearest one, and NaN zero.
template <class T>
Index to_integer(T x) {
  constexpr T kLimit = static_cast<T>(0x1p63);
  if (std::isnan(x)) {
    return 0;
  }
  if (x >= kLimit) {
    return std::numeric_limits<Index>::max();
  }
  return x < -kLimit ? std::numeric_limits<Index>::min() : static_cast<Index>(x);
}

[[noreturn]] void throw_unknown(const Shape& shape, const std::string& fix) {
  throw Error(
      ErrorCode::foreign_variable,
      "integers " + to_string(shape) + " depend on data that has no numbers here\n  fix: " + fix);
}

}  // namespace

template <class T>
Shape Datum<T>::shape() const {
  if (const Value<T>* value = as_value()) {
    return value->shape();
  }
  if (const Tensor<Index>* numbers = as_numbers()) {
    return numbers->shape();
  }
  return item_shape(*as_indices());
}

template <class T>
Value<T> Datum<T>::value() const {
  if (const Value<T>* value = as_value()) {
    return *value;
  }
  if (const Tensor<Index>* numbers = as_numbers()) {
    return Value<T>(numbers->map([](Index n) { return static_cast<T>(n); }));
  }
  throw_unknown(shape(),
                "run the network outside compile and vmap, or use indices only as indices");
}

template <class T>
bool Datum<T>::is_known() const {
  if (const Value<T>* value = as_value()) {
    const Value<T> plain = detached(*value);
    return plain.level() == 0;
  }
  return as_numbers() != nullptr;
}

template <class T>
Tensor<Index> Datum<T>::numbers() const {
  if (const Tensor<Index>* numbers = as_numbers()) {
    return *numbers;
  }
  if (!is_known()) {
    throw_unknown(shape(),
                  "run the network outside compile and vmap: its shapes depend on data there");
  }
  return detached(*as_value()).plain().map([](T x) { return to_integer(x); });
}

template <class T>
Indices Datum<T>::indices() const {
  const Indices* held = as_indices();
  return held != nullptr ? *held : Indices(numbers());
}

template class Datum<float>;
template class Datum<double>;

}  // namespace fenestra::onnx
