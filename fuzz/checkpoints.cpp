// Fuzzes `Trainer::resume`: a file is refused with an error and nothing has changed, or it is
// taken, and what the trainer then saves is taken again as the same.
#include <fenestra/base/error.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/nn/trainer.hpp>

#include <fuzz/bytes.hpp>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <variant>

namespace fenestra::fuzz {
namespace {

namespace fs = std::filesystem;

/// A file in a folder of its own, which goes when the process ends.
class TemporaryFile {
 public:
  TemporaryFile() : folder_((fs::temp_directory_path() / "fenestra_fuzz_XXXXXX").string()) {
    if (::mkdtemp(folder_.data()) == nullptr) {
      complain("there is no folder for temporary files");
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  fs::path path() const { return fs::path(folder_) / "run.safetensors"; }

 private:
  std::string folder_;
};

bool same_bits(const Tensor<float>& a, const Tensor<float>& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) == 0;
}

void resume(const fs::path& file) {
  nn::Trainer trainer(nn::Sequential{nn::Linear(2, 3)}, {.optimiser = "adamw", .compiled = false});
  const auto weight = [&] {
    return std::get<Tensor<float>>(
        nn::model_tensors(std::as_const(trainer).model()).at("0.weight"));
  };
  const Tensor<float> before = weight();
  try {
    trainer.resume(file);
  } catch (const Error&) {
    if (!same_bits(before, weight()) || trainer.steps() != 0 || trainer.cursor() != nn::Cursor{}) {
      complain("a checkpoint that was refused has changed the trainer");
    }
    return;
  }
  trainer.save(file);
  const Tensor<float> taken = weight();
  trainer.resume(file);
  if (!same_bits(taken, weight())) {
    complain("a checkpoint that was taken is saved as another one");
  }
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fuzz = fenestra::fuzz;
  static const fuzz::TemporaryFile kFile;
  const std::filesystem::path file = kFile.path();
  std::error_code ignored;
  std::filesystem::remove(std::filesystem::path(file) += ".previous", ignored);
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  fuzz::resume(file);
  return 0;
}
