// Fuzzes the reader of safetensors: a file is refused with an error, or every tensor that it names
// is read, or refused for its numbers alone.
#include <fenestra/base/error.hpp>
#include <fenestra/io/safetensors.hpp>

#include <fuzz/bytes.hpp>

#include <span>

namespace fenestra::fuzz {
namespace {

template <class T>
void read(const io::SafetensorsReader& reader, const io::SafetensorsEntry& entry) {
  try {
    if (reader.read<T>(entry.name).shape() != entry.shape) {
      complain(entry.name + " has another shape than its entry");
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_file) {
      throw;
    }
  }
}

void read_all(std::span<const std::byte> bytes) {
  const io::SafetensorsReader reader(bytes, "input");
  for (const io::SafetensorsEntry& entry : reader.entries()) {
    if (reader.find(entry.name) == nullptr) {
      complain(entry.name + " is listed and not found");
    }
    read<float>(reader, entry);
    read<double>(reader, entry);
    read<Index>(reader, entry);
  }
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    fenestra::fuzz::read_all(std::as_bytes(std::span(data, size)));
  } catch (const fenestra::Error&) {
    return 0;
  }
  return 0;
}
