// The peak of resident memory above where it stood, as the kernel counts it.
#pragma once

#include <cstddef>

namespace fenestra::bench {

class PeakMemory {
 public:
  /// Gives free memory back first, so that what is used next is seen.
  PeakMemory();
  /// The most that was resident since, above what was then.
  std::size_t bytes() const;

 private:
  std::size_t before_ = 0;
};

}  // namespace fenestra::bench
