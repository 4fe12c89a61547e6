// Fuzzes the reader of .npz archives: an archive is refused with an error, or every array that it
// names is read or refused; none is larger than the limit.
#include <fenestra/base/error.hpp>
#include <fenestra/io/npz.hpp>

#include <fuzz/bytes.hpp>

#include <span>
#include <string>

namespace fenestra::fuzz {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;

template <class T>
void read(const io::NpzReader& reader, const std::string& name) {
  try {
    const io::NpzArray array = reader.array(name);
    if (reader.read<T>(name).shape() != array.shape) {
      complain(name + " has another shape than its header");
    }
  } catch (const Error&) {
    return;
  }
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fuzz = fenestra::fuzz;
  try {
    const fenestra::io::NpzReader reader(
        std::as_bytes(std::span(data, size)), "input", {.max_inflated_bytes = fuzz::kMostBytes});
    for (const std::string& name : reader.names()) {
      fuzz::read<float>(reader, name);
      fuzz::read<double>(reader, name);
      fuzz::read<fenestra::Index>(reader, name);
    }
  } catch (const fenestra::Error&) {
    return 0;
  }
  return 0;
}
