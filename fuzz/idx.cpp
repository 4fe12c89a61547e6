// Fuzzes the reader of IDX files, plain and compressed: refused with an error, or read, with the
// same shape in every type that holds its numbers.
#include <fenestra/base/error.hpp>
#include <fenestra/io/idx.hpp>

#include <fuzz/bytes.hpp>

#include <cstdint>
#include <optional>
#include <span>

namespace fenestra::fuzz {
namespace {

constexpr io::IdxOptions kOptions{.max_inflated_bytes = 1 << 20};

template <class T>
std::optional<Shape> decode(std::span<const std::byte> bytes) {
  try {
    return io::decode_idx<T>(bytes, "input", kOptions).shape();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fuzz = fenestra::fuzz;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto as_double = fuzz::decode<double>(bytes);
  for (const auto& shape : {fuzz::decode<float>(bytes),
                            fuzz::decode<fenestra::Index>(bytes),
                            fuzz::decode<std::uint8_t>(bytes)}) {
    if (shape && shape != as_double) {
      fuzz::complain("double refuses what a smaller type takes, or has another shape");
    }
  }
  return 0;
}
