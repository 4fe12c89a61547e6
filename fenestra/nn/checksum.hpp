// A checksum of numbers and texts, for files and for ranks that must agree. Not installed.
#pragma once

#include <fenestra/io/safetensors.hpp>

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <variant>

namespace fenestra::nn::detail {

/// Every step is a bijection of the state and of the word, so that a change of one word, and of
/// nothing else, is always seen.
class Checksum {
 public:
  void add(std::uint64_t word) { state_ = std::rotl((state_ ^ word) * 0x9E3779B97F4A7C15ULL, 29); }
  void add(const void* bytes, std::size_t count) {
    const char* at = static_cast<const char*>(bytes);
    for (; count >= 8; count -= 8, at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, 8);
      add(word);
    }
    std::uint64_t rest = 0;
    std::memcpy(&rest, at, count);
    add(rest);
  }
  void add(const std::string& text) {
    add(text.size());
    add(text.data(), text.size());
  }
  std::uint64_t value() const { return state_; }
  std::string text() const {
    char digits[17] = {};
    std::to_chars(digits, digits + 16, state_, 16);
    return digits;
  }

 private:
  std::uint64_t state_ = 0x243F6A8885A308D3ULL;
};

/// Of all that a file has: names, shapes, numbers and texts, but for the one that keeps the sum.
inline std::string checksum_of(const io::TensorMap& tensors,
                               const io::Metadata& metadata,
                               std::string_view kept_as) {
  Checksum sum;
  for (const auto& [name, tensor] : tensors) {
    sum.add(name);
    std::visit(
        [&]<class T>(const Tensor<T>& numbers) {
          sum.add(to_string(numbers.shape()));
          sum.add(numbers.data(), static_cast<std::size_t>(numbers.size()) * sizeof(T));
        },
        tensor);
  }
  for (const auto& [key, value] : metadata) {
    if (key != kept_as) {
      sum.add(key);
      sum.add(value);
    }
  }
  return sum.text();
}

}  // namespace fenestra::nn::detail
