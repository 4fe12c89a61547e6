// Inflating by zlib.
#include <fenestra/io/inflate.hpp>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace fenestra::io {

namespace {

constexpr std::uint64_t kBuffer = 1U << 16U;

}  // namespace

struct InflateReader::Stream {
  z_stream z = {};
};

InflateReader::InflateReader(const ByteSource& source,
                             std::uint64_t offset,
                             std::uint64_t size,
                             Wrapper wrapper,
                             std::string name)
    : source_(source),
      next_(offset),
      end_(offset + size),
      wrapper_(wrapper),
      name_(std::move(name)),
      buffer_(std::min(size, kBuffer)),
      stream_(std::make_unique<Stream>()) {
  if (inflateInit2(&stream_->z, wrapper == Wrapper::gzip ? 16 + MAX_WBITS : -MAX_WBITS) != Z_OK) {
    throw std::bad_alloc();
  }
}

InflateReader::~InflateReader() { inflateEnd(&stream_->z); }

void InflateReader::refill() {
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(end_ - next_, buffer_.size()));
  source_.read(next_, std::span(buffer_).first(count));
  next_ += count;
  stream_->z.next_in = reinterpret_cast<Bytef*>(buffer_.data());
  stream_->z.avail_in = static_cast<uInt>(count);
}

std::size_t InflateReader::read_some(std::span<std::byte> out) {
  z_stream& z = stream_->z;
  std::size_t done = 0;
  while (done < out.size() && !has_ended_) {
    if (z.avail_in == 0 && next_ < end_) {
      refill();
    }
    const auto room = static_cast<uInt>(std::min<std::size_t>(out.size() - done, 1U << 30U));
    z.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    z.avail_out = room;
    const uInt before = z.avail_in;
    const int status = inflate(&z, Z_NO_FLUSH);
    done += room - z.avail_out;
    if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    }
    const bool is_stuck = z.avail_in == before && z.avail_out == room;
    if ((status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) ||
        (status != Z_STREAM_END && is_stuck)) {
      refuse(name_,
             next_ - z.avail_in,
             "deflated data",
             is_stuck && status != Z_DATA_ERROR ? "their end in the middle"
             : z.msg != nullptr                 ? z.msg
                                                : "something else");
    }
    if (status == Z_STREAM_END) {
      has_ended_ = wrapper_ == Wrapper::none || (z.avail_in == 0 && next_ == end_);
      if (!has_ended_) {
        inflateReset(&z);
      }
    }
  }
  return done;
}

void InflateReader::read(std::span<std::byte> out) {
  const std::size_t count = read_some(out);
  if (count < out.size()) {
    refuse(name_,
           next_ - stream_->z.avail_in,
           std::to_string(out.size() - count) + " more bytes, inflated",
           "the end of the deflated data");
  }
}

void InflateReader::finish() {
  std::array<std::byte, 1> more{};
  if (read_some(more) != 0) {
    refuse(name_,
           next_ - stream_->z.avail_in,
           "the end of the deflated data",
           "more, which the header does not speak of");
  }
  if (stream_->z.avail_in != 0 || next_ != end_) {
    refuse(name_, next_ - stream_->z.avail_in, "nothing after the deflated data", "more bytes");
  }
}

}  // namespace fenestra::io
