// safetensors: named tensors and a map of texts in one file, as other frameworks exchange weights.
//
// The reader is as strict as the reference implementation, and stricter where the format's text is
// (no key twice, '{' first). It reads the header when it is made and one tensor at a time
// afterwards, straight into the tensor.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/io/tensor_map.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::io {

struct SafetensorsEntry {
  std::string name;
  NumberType type = NumberType::f32;
  Shape shape;
  std::uint64_t offset = 0;  ///< of the first number, in the file
  std::uint64_t bytes = 0;
};

/// A file whose header has been read and found good. Reading is safe from many threads; copies
/// share the file.
class FENESTRA_API SafetensorsReader {
 public:
  /// Throws `bad_file` with the byte offset, what was expected and what was found.
  explicit SafetensorsReader(const std::filesystem::path& path);
  /// The bytes of a file in memory, which must outlive the reader; `name` is for messages.
  SafetensorsReader(std::span<const std::byte> bytes, std::string name);

  /// In the order of their data.
  const std::vector<SafetensorsEntry>& entries() const;
  const Metadata& metadata() const;
  /// Nothing when the file has no such tensor.
  const SafetensorsEntry* find(std::string_view name) const;

  /// T is float, double or Index. Floating-point numbers, of 16 bits too, are rounded to T;
  /// integers must be exact in T. Throws `bad_file`, also for a name that is not there.
  template <class T>
  Tensor<T> read(std::string_view name) const;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

struct SafetensorsContents {
  TensorMap tensors;
  Metadata metadata;
};

/// All of a file: f64 as double, f32, f16 and bf16 as float, integers and booleans as Index.
FENESTRA_API SafetensorsContents load_safetensors(const std::filesystem::path& path);

/// The layout of the reference implementation: the header padded to 8 bytes, data by falling
/// alignment, then by name. Names and metadata must be UTF-8. An existing file is replaced whole.
FENESTRA_API void save_safetensors(const std::filesystem::path& path,
                                   const TensorMap& tensors,
                                   const Metadata& metadata = {});

}  // namespace fenestra::io
