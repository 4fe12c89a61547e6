// Zip archives as containers of arrays: stored or deflated members, zip64, checksums. Not
// installed.
//
// Not a general archiver: no encryption, no several disks, nothing before the first member.
#pragma once

#include <fenestra/base/file.hpp>
#include <fenestra/io/inflate.hpp>
#include <fenestra/io/source.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::io {

struct ZipMember {
  std::string name;
  bool is_deflated = false;
  std::uint32_t checksum = 0;
  std::uint64_t size = 0;  ///< of its bytes, inflated
  std::uint64_t stored_size = 0;
  std::uint64_t header_at = 0;  ///< of its own header
  std::uint64_t data_at = 0;
};

/// The members in the order of the directory, after everything that can be told without reading
/// them was checked: their headers agree with the directory, no name is there twice, none overlaps
/// another. Throws `bad_file`.
std::vector<ZipMember> read_zip_directory(const ByteSource& source);

/// The bytes of a member, from the first to the last.
class ZipMemberReader {
 public:
  /// Both must outlive the reader.
  ZipMemberReader(const ByteSource& source, const ZipMember& member);

  /// For messages: the file and the member.
  const std::string& name() const { return name_; }
  void read(std::span<std::byte> out);
  /// Throws unless everything has been read and the checksum is right.
  void finish();

 private:
  const ByteSource& source_;
  const ZipMember& member_;
  std::string name_;
  std::uint64_t done_ = 0;
  std::uint32_t checksum_ = 0;
  std::optional<InflateReader> inflater_;
};

struct ZipWriterOptions {
  bool deflate = false;
  bool always_zip64 = false;  ///< else where a size or an offset needs it
};

/// Writes an archive to a file; its members all have the same date, so that equal contents make
/// equal files.
class ZipWriter {
 public:
  ZipWriter(OutputFile& file, const ZipWriterOptions& options) : file_(file), options_(options) {}

  /// A member made of the parts one after the other.
  void add(const std::string& name, std::initializer_list<std::string_view> parts);
  /// The directory. The file is not committed.
  void finish();

 private:
  void write(std::string_view bytes);

  OutputFile& file_;
  ZipWriterOptions options_;
  std::string directory_;
  std::uint64_t count_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace fenestra::io
