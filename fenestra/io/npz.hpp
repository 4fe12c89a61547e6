// NumPy's .npz files: named arrays in a zip archive, as numpy.savez and savez_compressed write
// them.
//
// Reads stored and deflated arrays, of any size, with their checksums; what is encrypted, overlaps,
// is there twice or is no array is refused. Reads the directory when it is made and one array at a
// time afterwards, straight into the tensor.
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

struct NpzReadOptions {
  /// Deflated arrays that would be larger are refused; stored ones are as large as the file at
  /// most.
  std::uint64_t max_inflated_bytes = std::uint64_t{4} << 30U;
};

/// What the header of an array says.
struct NpzArray {
  NumberType type = NumberType::f32;
  Shape shape;
};

/// A file whose directory has been read and found good. Reading is safe from many threads; copies
/// share the file.
class FENESTRA_API NpzReader {
 public:
  /// Throws `bad_file` with the byte offset, what was expected and what was found.
  explicit NpzReader(const std::filesystem::path& path, const NpzReadOptions& options = {});
  /// The bytes of a file in memory, which must outlive the reader; `name` is for messages.
  NpzReader(std::span<const std::byte> bytes, std::string name, const NpzReadOptions& options = {});

  /// Without ".npy", in the order of the archive.
  const std::vector<std::string>& names() const;
  NpzArray array(std::string_view name) const;

  /// T is float, double or Index. Floating-point numbers are rounded to T; integers must be exact
  /// in T. Throws `bad_file`, also for a name that is not there.
  template <class T>
  Tensor<T> read(std::string_view name) const;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

/// All of a file: f64 as double, f32 and f16 as float, integers and booleans as Index.
FENESTRA_API TensorMap load_npz(const std::filesystem::path& path,
                                const NpzReadOptions& options = {});

struct NpzOptions {
  bool deflate = false;  ///< smaller and slower
};

/// Names must be UTF-8. An existing file is replaced whole.
FENESTRA_API void save_npz(const std::filesystem::path& path,
                           const TensorMap& tensors,
                           const NpzOptions& options = {});

}  // namespace fenestra::io
