// Bytes that are read in pieces, from a file or from memory, and the complaint about them.
//
// Not installed. Readers take what they need from a source, so that a large file is never in memory
// beside the tensors made of it; parsers of memory and of files are the same code.
#pragma once

#include <fenestra/base/file.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::io {

/// Throws `bad_file`: "<file>: at byte <offset>: expected ..., found ...", and how to mend it.
[[noreturn]] void refuse(std::string_view file,
                         std::uint64_t offset,
                         std::string_view expected,
                         std::string_view found,
                         std::string_view fix = {});

/// Text from a file, for a message: in quotes, at most 64 bytes of it, what is not printable
/// ASCII escaped.
std::string shown(std::string_view text);

/// Fills the span with the next bytes, or throws.
using ReadBytes = std::function<void(std::span<std::byte>)>;

/// Safe to read from many threads. Copies read the same bytes.
class ByteSource {
 public:
  /// Only a regular file. Throws `bad_file`.
  static ByteSource file(const std::filesystem::path& path);
  /// The memory must outlive the source and its copies.
  static ByteSource memory(std::span<const std::byte> bytes, std::string name);

  /// For messages.
  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }

  /// `out.size()` bytes from `offset` on. Throws `bad_file` when they are not there.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t count) const;
  /// Reads on from `offset` with every call; the source must outlive it.
  ReadBytes from(std::uint64_t offset) const;

 private:
  std::string name_;
  std::uint64_t size_ = 0;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const InputFile> file_;  ///< none: the bytes are in memory
};

}  // namespace fenestra::io
