// Numbers as files store them, read into tensors. Not installed.
//
// One rule for all formats: a floating-point number is rounded to the tensor's type and must stay
// finite; an integer must be held exactly. What breaks the rule is refused with its place.
#pragma once

#include <fenestra/io/source.hpp>
#include <fenestra/io/tensor_map.hpp>

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace fenestra::io {

/// How a run of numbers is stored, and where, for messages.
struct StoredNumbers {
  NumberType type = NumberType::f32;
  std::endian order = std::endian::little;
  std::string_view file;
  std::uint64_t offset = 0;  ///< of the first number
};

/// Reads as many numbers as `out` has, in pieces, and converts them. T is float, double, Index or
/// std::uint8_t.
template <class T>
void read_numbers(const StoredNumbers& stored, const ReadBytes& read, std::span<T> out);

/// The same into a new tensor. Its size in the file has been compared with the file's by then.
template <class T>
Tensor<T> read_tensor(const StoredNumbers& stored, const ReadBytes& read, const Shape& shape) {
  auto tensor = Tensor<T>::uninitialised(shape);
  read_numbers<T>(stored, read, tensor.mutable_values());
  return tensor;
}

/// Calls `read` with a value of the tensor type that a stored type is read to when nobody asks for
/// another: double for f64, float for narrower ones, Index for integers.
template <class Read>
AnyTensor read_nearest(NumberType type, Read&& read) {
  switch (type) {
    case NumberType::f64: return read(double{});
    case NumberType::f8_e5m2:
    case NumberType::f8_e4m3:
    case NumberType::f16:
    case NumberType::bf16:
    case NumberType::f32: return read(float{});
    default: return read(Index{});
  }
}

}  // namespace fenestra::io
