// Files of this library, in and out: regular files only, and written whole or not at all.
//
// Whatever is read here has a size that is known before the first byte, so that sizes a file claims
// can be held against it before anything is allocated. Whatever is written here appears under its
// name in one step; until then, and after any failure, the old file is there untouched. Formats are
// none of its business (io/npy.hpp). Linux and other POSIX systems.
#pragma once

#include <fenestra/base/export.hpp>

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace fenestra {

namespace detail {

/// An open file of the system, closed with it.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int number) : number_(number) {}
  FileHandle(FileHandle&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  FENESTRA_API ~FileHandle();

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace detail

/// A regular file, open for reading. Devices, pipes, sockets and folders are refused before they
/// are opened, so nothing waits for a writer and nothing is endless. Every failure throws
/// `bad_file`.
class InputFile {
 public:
  FENESTRA_API explicit InputFile(std::filesystem::path path);
  /// A file that somebody else names and that must be in the folder or below it: no absolute path,
  /// no "..", no link on the way, no second name by which it is a file of somebody else.
  FENESTRA_API static InputFile beneath(const std::filesystem::path& folder,
                                        const std::filesystem::path& relative);

  const std::filesystem::path& path() const { return path_; }
  /// Bytes, as they were when the file was opened.
  std::uint64_t size() const { return size_; }
  /// Fills `bytes` with what stands at `offset`; all of it must lie inside the file.
  FENESTRA_API void read(std::uint64_t offset, std::span<char> bytes) const;

 private:
  InputFile() = default;

  std::filesystem::path path_;
  detail::FileHandle file_;
  std::uint64_t size_ = 0;
};

/// A new file that takes its name with `commit`. Until then its bytes are in a file of an
/// unpredictable name in the same folder, which is removed where `commit` is not reached or fails.
///
/// An existing regular file is replaced and its permissions are kept; a link, device, pipe, socket
/// or folder under that name is refused. Every failure throws `bad_file`. For one thread.
class OutputFile {
 public:
  FENESTRA_API explicit OutputFile(std::filesystem::path path);
  FENESTRA_API ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Appends.
  FENESTRA_API void write(std::string_view bytes);
  /// At any place, in any order; what is never written before the last byte is zero.
  FENESTRA_API void write_at(std::uint64_t offset, std::string_view bytes);
  /// Syncs the file, renames it and syncs the folder. Nothing can be written afterwards.
  FENESTRA_API void commit();

 private:
  [[noreturn]] void fail(int reason) const;
  void require_replaceable();
  void open_temporary();
  void keep_permissions() const;

  std::filesystem::path path_;
  std::string name_;       ///< in its folder
  std::string temporary_;  ///< in the same folder; empty where there is none to remove
  detail::FileHandle folder_;
  detail::FileHandle file_;
  bool replaces_ = false;
  mode_t mode_ = 0;  ///< of the file that is replaced
  gid_t group_ = 0;
};

/// The parts one after the other as the contents of `path`: an `OutputFile`, written and committed.
FENESTRA_API void replace_file(const std::filesystem::path& path,
                               std::initializer_list<std::string_view> parts);

}  // namespace fenestra
