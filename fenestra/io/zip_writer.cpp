// Writing zip archives.
#include <fenestra/io/zip.hpp>

#include <zlib.h>

#include <array>
#include <memory>
#include <new>

namespace fenestra::io {

namespace {

constexpr std::uint64_t kMost16 = 0xffff;
constexpr std::uint64_t kMost32 = 0xffffffff;

void append(std::string& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) {
    out += static_cast<char>((value >> (8 * i)) & 0xffU);
  }
}

/// Deflates the parts as one.
std::string deflated(std::initializer_list<std::string_view> parts) {
  z_stream z = {};
  constexpr int kMemory = 8;  // zlib's default
  if (deflateInit2(
          &z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&z, &deflateEnd);
  std::string out;
  std::array<char, 1U << 15U> piece;
  const auto run = [&](int flush) {
    do {
      z.next_out = reinterpret_cast<Bytef*>(piece.data());
      z.avail_out = static_cast<uInt>(piece.size());
      deflate(&z, flush);
      out.append(piece.data(), piece.size() - z.avail_out);
    } while (z.avail_out == 0);
  };
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const std::string_view now = part.substr(0, std::size_t{1} << 30U);
      // zlib reads from it and is not const.
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(now.data()));
      z.avail_in = static_cast<uInt>(now.size());
      run(Z_NO_FLUSH);
      part.remove_prefix(now.size());
    }
  }
  run(Z_FINISH);
  return out;
}

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  written_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::initializer_list<std::string_view> parts) {
  std::uint64_t size = 0;
  uLong checksum = 0;
  for (const std::string_view part : parts) {
    size += part.size();
    checksum = crc32_z(checksum, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  const std::string shrunk = options_.deflate ? deflated(parts) : "";
  const std::uint64_t stored = options_.deflate ? shrunk.size() : size;
  const std::uint64_t start = written_;
  const bool has_zip64 =
      options_.always_zip64 || size >= kMost32 || stored >= kMost32 || start >= kMost32;

  // What a member's own header and the directory have in common.
  std::string common;
  append(common, has_zip64 ? 45 : 20, 2);  // the version of the format that a reader needs
  append(common, 1U << 11U, 2);            // the name is UTF-8
  append(common, options_.deflate ? 8 : 0, 2);
  append(common, 0, 2);              // midnight
  append(common, 1U << 5U | 1U, 2);  // of the first of January 1980
  append(common, checksum, 4);
  append(common, has_zip64 ? kMost32 : stored, 4);
  append(common, has_zip64 ? kMost32 : size, 4);
  append(common, name.size(), 2);

  std::string header = "PK\3\4" + common;
  append(header, has_zip64 ? 20 : 0, 2);
  header += name;
  if (has_zip64) {
    append(header, 1, 2);
    append(header, 16, 2);
    append(header, size, 8);
    append(header, stored, 8);
  }
  write(header);
  if (options_.deflate) {
    write(shrunk);
  } else {
    for (const std::string_view part : parts) {
      write(part);
    }
  }

  directory_ += "PK\1\2";
  append(directory_, 3U << 8U | (has_zip64 ? 45U : 20U), 2);  // made on Unix
  directory_ += common;
  append(directory_, has_zip64 ? 28 : 0, 2);
  append(directory_, 0, 2);  // no comment
  append(directory_, 0, 2);  // the first disk
  append(directory_, 0, 2);
  append(directory_, std::uint64_t{0100644} << 16U, 4);  // an ordinary file, readable by all
  append(directory_, has_zip64 ? kMost32 : start, 4);
  directory_ += name;
  if (has_zip64) {
    append(directory_, 1, 2);
    append(directory_, 24, 2);
    append(directory_, size, 8);
    append(directory_, stored, 8);
    append(directory_, start, 8);
  }
  ++count_;
}

void ZipWriter::finish() {
  const std::uint64_t start = written_;
  write(directory_);
  const bool has_zip64 = options_.always_zip64 || count_ >= kMost16 || start >= kMost32 ||
                         directory_.size() >= kMost32;
  std::string end;
  if (has_zip64) {
    const std::uint64_t here = written_;
    end += "PK\6\6";
    append(end, 44, 8);  // what follows
    append(end, 3U << 8U | 45U, 2);
    append(end, 45, 2);
    append(end, 0, 4);
    append(end, 0, 4);
    append(end, count_, 8);
    append(end, count_, 8);
    append(end, directory_.size(), 8);
    append(end, start, 8);
    end += "PK\6\7";
    append(end, 0, 4);
    append(end, here, 8);
    append(end, 1, 4);
  }
  end += "PK\5\6";
  append(end, 0, 4);
  append(end, has_zip64 ? kMost16 : count_, 2);
  append(end, has_zip64 ? kMost16 : count_, 2);
  append(end, has_zip64 ? kMost32 : directory_.size(), 4);
  append(end, has_zip64 ? kMost32 : start, 4);
  append(end, 0, 2);
  write(end);
}

}  // namespace fenestra::io
