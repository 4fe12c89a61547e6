// Fuzzes the reader of .npy files: a file is refused with an error, or read; and what was read,
// saved and read again has the same shape and bits.
#include <fenestra/base/error.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <fuzz/bytes.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

namespace fenestra::fuzz {
namespace {

namespace fs = std::filesystem;

/// A folder of this process, in memory where there is such a place.
class Folder {
 public:
  Folder()
      : path_((fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
              ("fenestra_fuzz_npy_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path file(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

template <class T>
void load(const Folder& folder) {
  Tensor<T> read;
  try {
    read = io::load_npy<T>(folder.file("given.npy"));
  } catch (const Error&) {
    return;
  }
  io::save_npy(folder.file("saved.npy"), read);
  const Tensor<T> again = io::load_npy<T>(folder.file("saved.npy"));
  const auto bytes = static_cast<std::size_t>(read.size()) * sizeof(T);
  if (again.shape() != read.shape() ||
      (bytes > 0 && std::memcmp(again.data(), read.data(), bytes) != 0)) {
    complain("saved and read again, it is another tensor");
  }
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fuzz = fenestra::fuzz;
  static const fuzz::Folder folder;
  std::FILE* file = std::fopen(folder.file("given.npy").c_str(), "wb");
  if (file == nullptr || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) {
    fuzz::complain("no room for the input");
  }
  fuzz::load<float>(folder);
  fuzz::load<double>(folder);
  fuzz::load<fenestra::Index>(folder);
  return 0;
}
