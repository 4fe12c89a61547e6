// Reading files.
#include <fenestra/base/error.hpp>
#include <fenestra/io/source.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fenestra::io {

void refuse(std::string_view file,
            std::uint64_t offset,
            std::string_view expected,
            std::string_view found,
            std::string_view fix) {
  std::string text(file);
  text += ": at byte " + std::to_string(offset) + ": expected ";
  text += expected;
  text += ", found ";
  text += found;
  if (!fix.empty()) {
    text += "\n  fix: ";
    text += fix;
  }
  throw Error(ErrorCode::bad_file, text);
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 64;
  std::string result = "\"";
  for (const char c : text.substr(0, kMost)) {
    if (c >= ' ' && c <= '~') {
      result += c;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
      result += escaped;
    }
  }
  return result + (text.size() > kMost ? "...\"" : "\"");
}

ByteSource ByteSource::file(const std::filesystem::path& path) {
  ByteSource source;
  source.file_ = std::make_shared<const InputFile>(path);
  source.name_ = path.string();
  source.size_ = source.file_->size();
  return source;
}

ByteSource ByteSource::memory(std::span<const std::byte> bytes, std::string name) {
  ByteSource source;
  source.name_ = std::move(name);
  source.size_ = bytes.size();
  source.bytes_ = bytes;
  return source;
}

void ByteSource::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    refuse(name_,
           size_,
           std::to_string(out.size()) + " bytes from byte " + std::to_string(offset) + " on",
           "the end of the file");
  }
  if (file_) {
    file_->read(offset, {reinterpret_cast<char*>(out.data()), out.size()});
  } else {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
}

std::vector<std::byte> ByteSource::read(std::uint64_t offset, std::uint64_t count) const {
  if (offset > size_ || count > size_ - offset) {
    refuse(name_,
           size_,
           std::to_string(count) + " bytes from byte " + std::to_string(offset) + " on",
           "the end of the file");
  }
  std::vector<std::byte> bytes(count);
  read(offset, bytes);
  return bytes;
}

ReadBytes ByteSource::from(std::uint64_t offset) const {
  return [this, offset](std::span<std::byte> out) mutable {
    read(offset, out);
    offset += out.size();
  };
}

}  // namespace fenestra::io
