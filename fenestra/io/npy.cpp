// .npy: a header (npy_header.hpp), then the numbers.
#include <fenestra/base/file.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/io/npy_header.hpp>
#include <fenestra/tensor/transform.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra::io {

static_assert(std::endian::native == std::endian::little,
              "the reader copies little-endian numbers as they are");

namespace {

/// NumPy's bool: a byte that is 0 or 1.
struct Truth {
  unsigned char byte;
};

/// The number in another type, or nothing where it does not fit: integers are exact or refused,
/// other numbers may be rounded but do not become infinite.
template <class T, class From>
std::optional<T> fitted(From value) {
  if constexpr (std::is_same_v<From, T>) {
    return value;
  } else if constexpr (std::is_same_v<From, Truth>) {
    return value.byte <= 1 ? std::optional<T>(static_cast<T>(value.byte)) : std::nullopt;
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<T>) {
    return std::in_range<T>(value) ? std::optional<T>(static_cast<T>(value)) : std::nullopt;
  } else if constexpr (std::is_integral_v<From>) {
    // The largest integer rounds up to a power of two, which From does not hold.
    const T converted = static_cast<T>(value);
    const T bound = std::ldexp(T(1), std::numeric_limits<From>::digits);
    return converted < bound && static_cast<From>(converted) == value ? std::optional<T>(converted)
                                                                      : std::nullopt;
  } else if constexpr (std::is_integral_v<T>) {
    const From bound = std::ldexp(From(1), std::numeric_limits<T>::digits);
    return value >= -bound && value < bound && value == std::trunc(value)
               ? std::optional<T>(static_cast<T>(value))
               : std::nullopt;
  } else {
    const T converted = static_cast<T>(value);
    return std::isfinite(converted) || !std::isfinite(value) ? std::optional<T>(converted)
                                                             : std::nullopt;
  }
}

template <class T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, float>) {
    return "<f4";
  } else if constexpr (std::is_same_v<T, double>) {
    return "<f8";
  } else {
    return "<i8";
  }
}

template <class From>
std::string number_text(From value) {
  if constexpr (std::is_same_v<From, Truth>) {
    return std::to_string(value.byte);
  } else if constexpr (std::is_floating_point_v<From>) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", static_cast<double>(value));
    return text;
  } else {
    return std::to_string(value);
  }
}

template <class From, class T>
void read_numbers(const InputFile& file, std::uint64_t begin, std::span<T> out) {
  if constexpr (std::is_same_v<From, T>) {
    file.read(begin, {reinterpret_cast<char*>(out.data()), out.size_bytes()});
  } else {
    constexpr std::size_t kAtOnce = 8192;
    std::vector<From> numbers(std::min(out.size(), kAtOnce));
    while (!out.empty()) {
      const std::size_t count = std::min(out.size(), kAtOnce);
      file.read(begin, {reinterpret_cast<char*>(numbers.data()), count * sizeof(From)});
      for (std::size_t i = 0; i < count; ++i) {
        const std::optional<T> value = fitted<T>(numbers[i]);
        if (!value) {
          fail_npy(file,
                   begin + i * sizeof(From),
                   std::is_same_v<From, Truth>
                       ? "a truth value, 0 or 1"
                       : "a number that '" + std::string(type_name<T>()) + "' holds" +
                             (std::is_integral_v<From> || std::is_integral_v<T> ? " exactly" : ""),
                   number_text(numbers[i]),
                   "load it as another type, or convert it before saving");
        }
        out[i] = *value;
      }
      begin += count * sizeof(From);
      out = out.subspan(count);
    }
  }
}

template <class T>
void read_any(const InputFile& file, const NpyHeader& h, std::span<T> out) {
  const auto as = [&]<class From>(std::type_identity<From>) {
    read_numbers<From>(file, h.begin, out);
  };
  if (h.kind == 'f') {
    return h.width == 4 ? as(std::type_identity<float>{}) : as(std::type_identity<double>{});
  }
  if (h.kind == 'b') {
    return as(std::type_identity<Truth>{});
  }
  const auto integers = [&]<class Signed, class Unsigned>(std::type_identity<Signed> with_sign,
                                                          std::type_identity<Unsigned> without) {
    h.kind == 'i' ? as(with_sign) : as(without);
  };
  switch (h.width) {
    case 1: return integers(std::type_identity<std::int8_t>{}, std::type_identity<std::uint8_t>{});
    case 2:
      return integers(std::type_identity<std::int16_t>{}, std::type_identity<std::uint16_t>{});
    case 4:
      return integers(std::type_identity<std::int32_t>{}, std::type_identity<std::uint32_t>{});
    default:
      return integers(std::type_identity<std::int64_t>{}, std::type_identity<std::uint64_t>{});
  }
}

}  // namespace

template <class T>
Tensor<T> load_npy(const std::filesystem::path& path) {
  const InputFile file(path);
  const NpyHeader header = read_npy_header(file);
  const int rank = header.shape.rank();
  Shape stored = header.shape;
  if (header.fortran) {
    std::reverse(stored.extents, stored.extents + rank);
  }
  Tensor<T> tensor = Tensor<T>::uninitialised(stored);
  read_any(file, header, tensor.mutable_values());
  if (!header.fortran) {
    return tensor;
  }
  std::vector<int> reversed;
  for (int axis = rank - 1; axis >= 0; --axis) {
    reversed.push_back(axis);
  }
  return permuted(tensor, reversed);
}

template <class T>
void save_npy(const std::filesystem::path& path, const Tensor<T>& tensor) {
  std::string shape = "(";
  for (const Index extent : tensor.shape()) {
    shape += std::to_string(extent) + ", ";
  }
  std::string text = "{'descr': '" + std::string(type_name<T>()) +
                     "', 'fortran_order': False, 'shape': " + shape + "), }";
  // The numbers start at a multiple of 64 bytes, as the format asks.
  text.append((64 - (kNpyMagic.size() + 4 + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string header(kNpyMagic);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  header += text;

  const auto bytes = static_cast<std::size_t>(tensor.size()) * sizeof(T);
  replace_file(path, {header, {reinterpret_cast<const char*>(tensor.data()), bytes}});
}

template Tensor<float> load_npy(const std::filesystem::path&);
template Tensor<double> load_npy(const std::filesystem::path&);
template Tensor<Index> load_npy(const std::filesystem::path&);
template void save_npy(const std::filesystem::path&, const Tensor<float>&);
template void save_npy(const std::filesystem::path&, const Tensor<double>&);
template void save_npy(const std::filesystem::path&, const Tensor<Index>&);

}  // namespace fenestra::io
