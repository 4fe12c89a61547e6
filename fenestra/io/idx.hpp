// IDX files, in which MNIST and its successors come: one array of numbers, plain or compressed by
// gzip.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace fenestra::io {

struct IdxOptions {
  /// Compressed arrays that would be larger are refused; plain ones are as large as the file.
  std::uint64_t max_inflated_bytes = std::uint64_t{4} << 30U;
};

/// T is float, double, Index or std::uint8_t. Floating-point numbers are rounded to T; integers
/// must be exact in T. Compression is told from the first bytes, not from the name. Throws
/// `bad_file` with the byte offset, what was expected and what was found.
template <class T>
FENESTRA_API Tensor<T> load_idx(const std::filesystem::path& path, const IdxOptions& options = {});
/// The bytes of a file in memory; `name` is for messages.
template <class T>
FENESTRA_API Tensor<T> decode_idx(std::span<const std::byte> bytes,
                                  const std::string& name,
                                  const IdxOptions& options = {});

}  // namespace fenestra::io
