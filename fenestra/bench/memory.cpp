// Reads /proc/self; torch_peer.py does the same for torch.
#include <fenestra/bench/memory.hpp>

#include <malloc.h>

#include <fstream>
#include <limits>
#include <string>

namespace fenestra::bench {

namespace {

std::size_t status(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word == field + ":") {
      std::size_t kilobytes = 0;
      file >> kilobytes;
      return kilobytes * 1024;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace

PeakMemory::PeakMemory() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
  before_ = status("VmRSS");
}

std::size_t PeakMemory::bytes() const {
  const std::size_t peak = status("VmHWM");
  return peak > before_ ? peak - before_ : 0;
}

}  // namespace fenestra::bench
