// Deflated bytes of a source, inflated as they are asked for, never more than that. Not installed.
#pragma once

#include <fenestra/io/source.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fenestra::io {

/// No byte of deflated data becomes more than that.
inline constexpr std::uint64_t kMostInflated = 1032;

class InflateReader {
 public:
  enum class Wrapper {
    none,  ///< as in zip
    gzip,  ///< one or several after each other, with their checksums
  };
  /// The source must outlive the reader; `name` is for messages.
  InflateReader(const ByteSource& source,
                std::uint64_t offset,
                std::uint64_t size,
                Wrapper wrapper,
                std::string name);
  ~InflateReader();
  InflateReader(const InflateReader&) = delete;
  InflateReader& operator=(const InflateReader&) = delete;

  void read(std::span<std::byte> out);
  /// Throws unless everything has been read and the checksum, where there is one, is right.
  void finish();

 private:
  struct Stream;
  /// How many bytes came; fewer than asked for only at the end of the data.
  std::size_t read_some(std::span<std::byte> out);
  void refill();

  const ByteSource& source_;
  std::uint64_t next_;  ///< the first byte that is not in the buffer
  std::uint64_t end_;
  Wrapper wrapper_;
  std::string name_;
  std::vector<std::byte> buffer_;
  std::unique_ptr<Stream> stream_;
  bool has_ended_ = false;
};

}  // namespace fenestra::io
