// Levels: what nested transforms are told apart by.
#pragma once

#include <fenestra/base/export.hpp>

#include <atomic>
#include <cstdint>

namespace fenestra {

using Level = std::uint64_t;

/// A level above all that were given out before; none is given out twice.
FENESTRA_API inline Level new_level() {
  static std::atomic<Level> last{0};
  return ++last;
}

}  // namespace fenestra
