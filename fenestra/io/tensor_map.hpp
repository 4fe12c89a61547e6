// Named tensors as they come from and go into files, and the number types that files store.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace fenestra::io {

/// What a file stores. The order is that of the safetensors reference, which sorts data by it.
enum class NumberType {
  boolean,
  u8,
  i8,
  f8_e5m2,  ///< listed, not converted
  f8_e4m3,  ///< listed, not converted
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  u64,
};

/// Bytes of one number.
constexpr Index width_of(NumberType type) {
  switch (type) {
    case NumberType::boolean:
    case NumberType::u8:
    case NumberType::i8:
    case NumberType::f8_e5m2:
    case NumberType::f8_e4m3: return 1;
    case NumberType::i16:
    case NumberType::u16:
    case NumberType::f16:
    case NumberType::bf16: return 2;
    case NumberType::i32:
    case NumberType::u32:
    case NumberType::f32: return 4;
    case NumberType::f64:
    case NumberType::i64:
    case NumberType::u64: return 8;
  }
  return 0;
}

/// A tensor of a type that files are read to and written from.
using AnyTensor = std::variant<Tensor<float>, Tensor<double>, Tensor<Index>>;

/// By name, in the order of the names' bytes.
using TensorMap = std::map<std::string, AnyTensor, std::less<>>;
using Metadata = std::map<std::string, std::string, std::less<>>;

}  // namespace fenestra::io
