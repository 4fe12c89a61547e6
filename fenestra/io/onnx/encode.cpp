// Messages as bytes.
#include <fenestra/io/onnx/encode.hpp>
#include <fenestra/io/onnx/fields.hpp>
#include <fenestra/io/onnx/wire.hpp>
#include <fenestra/io/source.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace fenestra::onnx {

namespace {

/// Rounded to nearest, ties to even, as the hardware does.
std::uint16_t half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | 0x7e00U);
  }
  if (magnitude >= 65520.0F) {
    return static_cast<std::uint16_t>(sign | 0x7c00U);
  }
  if (magnitude < std::ldexp(1.0F, -14)) {  // subnormal: a multiple of 2^-24
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(magnitude, 24))));
  }
  // The carry out of the fraction goes into the exponent, as it should.
  const std::uint32_t rest = bits & 0x7fffffffU;
  const std::uint32_t rounded = rest + 0xfffU + ((rest >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}

std::uint16_t bfloat_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  }
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

template <class To>
void append_plain(std::string& out, To value) {
  char bytes[sizeof(To)];
  std::memcpy(bytes, &value, sizeof(To));
  out.append(bytes, sizeof(To));
}

[[noreturn]] void refuse(ElementType type) {
  throw Error(ErrorCode::dtype_mismatch,
              "onnx: numbers that " + type_name(type) +
                  " does not hold cannot replace a tensor of it\n  fix: numbers of that type");
}

template <class To, class T>
void append_integer(std::string& out, T value, ElementType type) {
  if constexpr (std::is_same_v<T, Index>) {
    if (std::in_range<To>(value)) {
      append_plain(out, static_cast<To>(value));
      return;
    }
  }
  refuse(type);
}

template <class T>
void append_as(std::string& out, T value, ElementType type) {
  switch (type) {
    case ElementType::float32: return append_plain(out, static_cast<float>(value));
    case ElementType::float64: return append_plain(out, static_cast<double>(value));
    case ElementType::float16: return append_plain(out, half_bits(static_cast<float>(value)));
    case ElementType::bfloat16: return append_plain(out, bfloat_bits(static_cast<float>(value)));
    case ElementType::uint8: return append_integer<std::uint8_t>(out, value, type);
    case ElementType::int8: return append_integer<std::int8_t>(out, value, type);
    case ElementType::uint16: return append_integer<std::uint16_t>(out, value, type);
    case ElementType::int16: return append_integer<std::int16_t>(out, value, type);
    case ElementType::int32: return append_integer<std::int32_t>(out, value, type);
    case ElementType::int64: return append_integer<std::int64_t>(out, value, type);
    case ElementType::uint32: return append_integer<std::uint32_t>(out, value, type);
    case ElementType::uint64: return append_integer<std::uint64_t>(out, value, type);
    case ElementType::boolean: return append_integer<std::uint8_t>(out, value, type);
    default: refuse(type);
  }
}

std::string attribute(std::string_view name, AttributeType type) {
  std::string out;
  append_bytes(out, fields::Attribute::name, name);
  append_number(out, fields::Attribute::type, static_cast<std::uint64_t>(type));
  return out;
}

}  // namespace

std::string raw_bytes(ElementType type, const io::AnyTensor& tensor) {
  return std::visit(
      [&]<class T>(const Tensor<T>& numbers) {
        std::string out;
        for (const T value : numbers.values()) {
          append_as(out, value, type);
        }
        return out;
      },
      tensor);
}

const Shape& shape_of(const io::AnyTensor& tensor) {
  return std::visit([](const auto& numbers) -> const Shape& { return numbers.shape(); }, tensor);
}

ElementType type_of(const io::AnyTensor& tensor) {
  return std::holds_alternative<Tensor<float>>(tensor)    ? ElementType::float32
         : std::holds_alternative<Tensor<double>>(tensor) ? ElementType::float64
                                                          : ElementType::int64;
}

std::string encode_tensor(std::string_view name, ElementType type, const io::AnyTensor& tensor) {
  using F = fields::Tensor;
  std::string out;
  for (const Index extent : shape_of(tensor)) {
    append_number(out, F::dims, static_cast<std::uint64_t>(extent));
  }
  append_number(out, F::type, static_cast<std::uint64_t>(type));
  append_bytes(out, F::name, name);
  append_bytes(out, F::raw, raw_bytes(type, tensor));
  return out;
}

std::string encode_value_info(const ValueInfo& info) {
  std::string type;
  append_number(type, fields::TensorType::element, static_cast<std::uint64_t>(info.type));
  if (info.dims) {
    std::string shape;
    for (const Dimension& dimension : *info.dims) {
      std::string dim;
      if (dimension.extent) {
        append_number(dim, fields::Dim::extent, static_cast<std::uint64_t>(*dimension.extent));
      } else if (!dimension.label.empty()) {
        append_bytes(dim, fields::Dim::label, dimension.label);
      }
      append_bytes(shape, fields::Dims::dim, dim);
    }
    append_bytes(type, fields::TensorType::shape, shape);
  }
  std::string any_type;
  append_bytes(any_type, fields::Type::tensor, type);
  std::string out;
  append_bytes(out, fields::ValueInfo::name, info.name);
  append_bytes(out, fields::ValueInfo::type, any_type);
  return out;
}

std::string encode_opset(std::string_view domain, Index version) {
  std::string out;
  append_bytes(out, fields::Opset::domain, domain);
  append_number(out, fields::Opset::version, static_cast<std::uint64_t>(version));
  return out;
}

std::string encode_entry(std::string_view key, std::string_view value) {
  std::string out;
  append_bytes(out, fields::Entry::key, key);
  append_bytes(out, fields::Entry::value, value);
  return out;
}

NodeBytes::NodeBytes(std::string_view op,
                     std::string_view name,
                     const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs) {
  for (const std::string& input : inputs) {
    append_bytes(bytes_, fields::Node::input, input);
  }
  for (const std::string& output : outputs) {
    append_bytes(bytes_, fields::Node::output, output);
  }
  append_bytes(bytes_, fields::Node::name, name);
  append_bytes(bytes_, fields::Node::op_type, op);
}

NodeBytes& NodeBytes::set(std::string_view name, Index value) {
  std::string out = attribute(name, AttributeType::integer);
  append_number(out, fields::Attribute::i, static_cast<std::uint64_t>(value));
  append_bytes(bytes_, fields::Node::attribute, out);
  return *this;
}

NodeBytes& NodeBytes::set(std::string_view name, float value) {
  std::string out = attribute(name, AttributeType::real);
  append_real(out, fields::Attribute::f, value);
  append_bytes(bytes_, fields::Node::attribute, out);
  return *this;
}

NodeBytes& NodeBytes::set(std::string_view name, std::string_view value) {
  std::string out = attribute(name, AttributeType::string);
  append_bytes(out, fields::Attribute::s, value);
  append_bytes(bytes_, fields::Node::attribute, out);
  return *this;
}

NodeBytes& NodeBytes::set(std::string_view name, const std::vector<Index>& values) {
  std::string out = attribute(name, AttributeType::integers);
  for (const Index value : values) {
    append_number(out, fields::Attribute::ints, static_cast<std::uint64_t>(value));
  }
  append_bytes(bytes_, fields::Node::attribute, out);
  return *this;
}

NodeBytes& NodeBytes::set_tensor(std::string_view name, std::string_view tensor) {
  std::string out = attribute(name, AttributeType::tensor);
  append_bytes(out, fields::Attribute::t, tensor);
  append_bytes(bytes_, fields::Node::attribute, out);
  return *this;
}

}  // namespace fenestra::onnx
