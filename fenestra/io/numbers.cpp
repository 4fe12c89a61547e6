// Conversion of stored numbers.
#include <fenestra/io/numbers.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace fenestra::io {

static_assert(std::endian::native == std::endian::little,
              "numbers whose type is the tensor's are read as they are");

namespace {

/// Stored types without a C++ type of their own.
struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};
struct Boolean {
  std::uint8_t bits;
};

float widened(Half half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (half.bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = half.bits & 0x3ffU;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  return sign != 0 ? -magnitude : magnitude;
}

float widened(Bfloat bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat.bits) << 16);
}

template <class From>
From swapped(From value) {
  std::array<std::byte, sizeof(From)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(From));
  std::reverse(bytes.begin(), bytes.end());
  std::memcpy(&value, bytes.data(), sizeof(From));
  return value;
}

/// Whether a T holds `value`; then it is in `out`.
template <class T, class From>
bool hold(From value, T& out) {
  if constexpr (std::same_as<From, Half> || std::same_as<From, Bfloat>) {
    return hold(widened(value), out);
  } else if constexpr (std::same_as<From, Boolean>) {
    out = static_cast<T>(value.bits);
    return value.bits <= 1;
  } else if constexpr (std::floating_point<T>) {
    out = static_cast<T>(value);
    if constexpr (std::floating_point<From>) {
      return std::isinf(out) == std::isinf(value);
    } else {
      // One past the largest integer is a power of two, which every floating-point type here has.
      const T past = std::ldexp(T(1), std::numeric_limits<From>::digits);
      return out < past && static_cast<From>(out) == value;
    }
  } else if constexpr (std::floating_point<From>) {
    const From past = std::ldexp(From(1), std::numeric_limits<T>::digits);
    const From least = std::is_signed_v<T> ? -past : From(0);
    if (!(value >= least && value < past)) {
      return false;
    }
    out = static_cast<T>(value);
    return static_cast<From>(out) == value;
  } else {
    out = static_cast<T>(value);
    return std::in_range<T>(value);
  }
}

template <class From>
std::string text_of(From value) {
  if constexpr (std::floating_point<From>) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", static_cast<double>(value));
    return text;
  } else if constexpr (std::integral<From>) {
    return std::to_string(value);
  } else if constexpr (std::same_as<From, Boolean>) {
    return std::to_string(value.bits);
  } else {
    return text_of(widened(value));
  }
}

template <class From, class T>
constexpr std::string_view what_fits() {
  if constexpr (std::same_as<From, Boolean>) {
    return "a truth value, 0 or 1";
  } else if constexpr (std::same_as<T, Index>) {
    return "a number that an integer of 64 bits holds";
  } else if constexpr (std::integral<T>) {
    return "a whole number from 0 to 255";
  } else if constexpr (std::integral<From>) {
    return std::same_as<T, float> ? "a number that a float holds exactly"
                                  : "a number that a double holds exactly";
  } else {
    return std::same_as<T, float> ? "a number that a float holds" : "a number that a double holds";
  }
}

template <class From, class T>
void convert(const StoredNumbers& stored, const ReadBytes& read, std::span<T> out) {
  const bool is_swapped = sizeof(From) > 1 && stored.order != std::endian::native;
  if constexpr (std::same_as<From, T>) {
    read(std::as_writable_bytes(out));
    if (is_swapped) {
      std::transform(out.begin(), out.end(), out.begin(), swapped<T>);
    }
    return;
  }
  std::array<From, 8192> piece;
  std::uint64_t offset = stored.offset;
  while (!out.empty()) {
    const std::span<From> values(piece.data(), std::min(piece.size(), out.size()));
    read(std::as_writable_bytes(values));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const From value = is_swapped ? swapped(values[i]) : values[i];
      if (!hold(value, out[i])) {
        refuse(stored.file,
               offset + i * sizeof(From),
               what_fits<From, T>(),
               text_of(value),
               "read it as another type, or convert it before saving");
      }
    }
    offset += values.size_bytes();
    out = out.subspan(values.size());
  }
}

}  // namespace

template <class T>
void read_numbers(const StoredNumbers& stored, const ReadBytes& read, std::span<T> out) {
  switch (stored.type) {
    case NumberType::boolean: return convert<Boolean>(stored, read, out);
    case NumberType::u8: return convert<std::uint8_t>(stored, read, out);
    case NumberType::i8: return convert<std::int8_t>(stored, read, out);
    case NumberType::i16: return convert<std::int16_t>(stored, read, out);
    case NumberType::u16: return convert<std::uint16_t>(stored, read, out);
    case NumberType::f16: return convert<Half>(stored, read, out);
    case NumberType::bf16: return convert<Bfloat>(stored, read, out);
    case NumberType::i32: return convert<std::int32_t>(stored, read, out);
    case NumberType::u32: return convert<std::uint32_t>(stored, read, out);
    case NumberType::f32: return convert<float>(stored, read, out);
    case NumberType::f64: return convert<double>(stored, read, out);
    case NumberType::i64: return convert<std::int64_t>(stored, read, out);
    case NumberType::u64: return convert<std::uint64_t>(stored, read, out);
    case NumberType::f8_e5m2:
    case NumberType::f8_e4m3: break;
  }
  refuse(stored.file,
         stored.offset,
         "numbers of 16 bits and more, or integers",
         "floating-point numbers of 8 bits",
         "convert them to F16 or BF16");
}

template void read_numbers(const StoredNumbers&, const ReadBytes&, std::span<float>);
template void read_numbers(const StoredNumbers&, const ReadBytes&, std::span<double>);
template void read_numbers(const StoredNumbers&, const ReadBytes&, std::span<Index>);
template void read_numbers(const StoredNumbers&, const ReadBytes&, std::span<std::uint8_t>);

}  // namespace fenestra::io
