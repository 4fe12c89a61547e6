// A tensor while its message is read: fields come in any order and in pieces. Not installed.
#pragma once

#include <fenestra/base/file.hpp>
#include <fenestra/io/onnx/model.hpp>
#include <fenestra/io/onnx/wire.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::onnx {

/// Opens files beside the model, each once.
class ExternalFiles {
 public:
  /// Without a folder none can be opened: the model is in memory.
  explicit ExternalFiles(std::optional<std::filesystem::path> folder)
      : folder_(std::move(folder)) {}
  /// Checks what the tensor says about its file and lets the tensor read from it.
  void attach(TensorData& tensor, std::uint64_t bytes);

 private:
  std::optional<std::filesystem::path> folder_;
  std::map<std::string, std::shared_ptr<const InputFile>, std::less<>> open_;
};

class TensorParts {
 public:
  /// Another piece of the message.
  void read(WireReader message);
  /// The tensor, its sizes compared with the file's. Throws `bad_file`.
  TensorData finish(std::shared_ptr<const WireFile> file, ExternalFiles& externals);

 private:
  void keep(TensorData::Storage storage, Bytes piece);
  std::uint64_t stored_elements() const;
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const;

  TensorData tensor_;
  std::vector<std::int64_t> dims_;
  std::uint64_t type_ = 0;
  std::vector<std::pair<std::string, std::string>> external_;
  bool is_external_ = false;
  bool has_two_storages_ = false;
  const std::byte* place_ = nullptr;
  const WireFile* wire_ = nullptr;
};

}  // namespace fenestra::onnx
