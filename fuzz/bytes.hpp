// What the targets share: an input as numbers, one byte after the other, and how a broken promise
// is told. Not a random generator: equal bytes are equal numbers, so the fuzzer learns what they
// do.
#pragma once

#include <fenestra/base/error.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace fenestra::fuzz {

/// Ends the process as a failure the fuzzer keeps: the input is written down and can be run again.
[[noreturn]] inline void complain(const std::string& text) {
  std::fprintf(stderr, "complaint: %s\n", text.c_str());
  std::abort();
}

/// Reads an input from its first byte on; zeros follow its last one.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) {
      return 0;
    }
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  /// In [low, high], both included; not more than 256 different ones.
  Index between(Index low, Index high) { return low + byte() % (high - low + 1); }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace fenestra::fuzz
