// Reading zip archives: the directory at the end first, then each member's own header against it.
#include <fenestra/io/json.hpp>
#include <fenestra/io/zip.hpp>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <set>

namespace fenestra::io {

namespace {

constexpr std::uint32_t kMost16 = 0xffff;
constexpr std::uint32_t kMost32 = 0xffffffff;

/// A record of an archive: little-endian numbers from the front on, each with its place.
class Record {
 public:
  Record(const ByteSource& source, std::uint64_t at, std::uint64_t size)
      : at_(at), bytes_(source.read(at, size)) {}

  std::uint64_t at() const { return at_ + next_; }
  std::uint64_t left() const { return bytes_.size() - next_; }
  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value |= std::to_integer<std::uint64_t>(bytes_[next_ + i]) << (8 * i);
    }
    next_ += width;
    return value;
  }
  std::uint32_t two() { return static_cast<std::uint32_t>(number(2)); }
  std::uint32_t four() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t eight() { return number(8); }
  std::string text(std::size_t size) {
    const auto* const begin = reinterpret_cast<const char*>(bytes_.data() + next_);
    next_ += size;
    return {begin, size};
  }
  void skip(std::size_t size) { next_ += size; }

 private:
  std::uint64_t at_;
  std::vector<std::byte> bytes_;
  std::size_t next_ = 0;
};

constexpr std::string_view kFix = "an archive that numpy.savez wrote, whole";

[[noreturn]] void fail(const ByteSource& source,
                       std::uint64_t at,
                       std::string_view expected,
                       std::string_view found) {
  refuse(source.name(), at, expected, found, kFix);
}

void expect(const ByteSource& source,
            std::uint64_t at,
            std::string_view what,
            std::uint64_t expected,
            std::uint64_t found) {
  if (expected != found) {
    fail(source, at, std::string(what) + " " + std::to_string(expected), std::to_string(found));
  }
}

/// Where the directory is and how much is in it.
struct Directory {
  std::uint64_t at = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
};

constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kLocatorSize = 20;
constexpr std::uint64_t kEnd64Size = 56;
constexpr std::uint64_t kEntrySize = 46;
constexpr std::uint64_t kHeaderSize = 30;

/// The last record of the archive: found from the end, because a comment may follow it.
std::uint64_t find_end(const ByteSource& source) {
  if (source.size() < kEndSize) {
    fail(source,
         source.size(),
         "a zip archive of at least 22 bytes",
         std::to_string(source.size()) + " bytes");
  }
  const std::uint64_t reach = std::min<std::uint64_t>(source.size(), kEndSize + kMost16);
  const std::uint64_t start = source.size() - reach;
  const std::vector<std::byte> tail = source.read(start, reach);
  const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint64_t>(tail[i]); };
  for (std::size_t i = tail.size() - kEndSize + 1; i-- > 0;) {
    if (text.substr(i, 4) == "PK\5\6" &&
        byte(i + 20) + (byte(i + 21) << 8U) == tail.size() - i - kEndSize) {
      return start + i;
    }
  }
  fail(source,
       source.size(),
       "the end of a zip archive, PK\\x05\\x06, before it",
       "none: the file is cut or no archive");
}

Directory find_directory(const ByteSource& source) {
  const std::uint64_t end_at = find_end(source);
  Record end(source, end_at, kEndSize);
  end.skip(4);
  const std::uint32_t disk = end.two();
  const std::uint32_t directory_disk = end.two();
  const std::uint32_t count_here = end.two();
  Directory directory;
  directory.count = end.two();
  directory.size = end.four();
  directory.at = end.four();
  std::uint64_t limit = end_at;
  const bool is_saturated =
      directory.count == kMost16 || directory.size == kMost32 || directory.at == kMost32;
  const bool has_locator =
      end_at >= kLocatorSize && Record(source, end_at - kLocatorSize, 4).four() == 0x07064b50;
  if (is_saturated && !has_locator) {
    fail(source, end_at, "a zip64 locator before it, for its sizes", "none");
  }
  if (!has_locator) {
    expect(source, end_at + 4, "disk", 0, disk);
    expect(source, end_at + 6, "the directory on disk", 0, directory_disk);
    expect(source, end_at + 8, "all members on this disk,", directory.count, count_here);
  } else {
    const std::uint64_t locator_at = end_at - kLocatorSize;
    Record locator(source, locator_at, kLocatorSize);
    locator.skip(4);
    expect(source, locator.at(), "the zip64 end on disk", 0, locator.four());
    limit = locator.eight();
    expect(source, locator.at(), "a number of disks of", 1, locator.four());
    if (limit > locator_at || locator_at - limit != kEnd64Size) {
      fail(source,
           locator_at + 8,
           "the zip64 end of 56 bytes just before its locator",
           "byte " + std::to_string(limit));
    }
    Record end64(source, limit, kEnd64Size);
    expect(source, limit, "the signature", 0x06064b50, end64.four());
    expect(source, limit + 4, "a record of size", kEnd64Size - 12, end64.eight());
    end64.skip(4);  // versions
    expect(source, end64.at(), "disk", 0, end64.four());
    expect(source, end64.at(), "the directory on disk", 0, end64.four());
    const std::uint64_t here = end64.eight();
    directory.count = end64.eight();
    expect(source, limit + 24, "all members on this disk,", directory.count, here);
    directory.size = end64.eight();
    directory.at = end64.eight();
  }
  if (directory.at > limit || directory.size != limit - directory.at) {
    fail(source,
         limit,
         "a directory of " + std::to_string(directory.size) + " bytes from byte " +
             std::to_string(directory.at) + " up to here",
         "another place");
  }
  if (directory.count > directory.size / kEntrySize) {
    fail(source,
         directory.at,
         std::to_string(directory.count) + " members",
         "a directory of " + std::to_string(directory.size) + " bytes");
  }
  return directory;
}

/// Sizes and offsets that did not fit 32 bits stand in an extra field, in the order of `fields`.
void read_zip64(const ByteSource& source,
                Record& extra,
                std::initializer_list<std::uint64_t*> fields) {
  std::size_t wanted = 0;
  for (const std::uint64_t* field : fields) {
    wanted += *field == kMost32 ? 1 : 0;
  }
  const std::uint64_t start = extra.at();
  while (extra.left() != 0) {
    if (extra.left() < 4) {
      // Some writers pad with less than a field; it cannot be what we look for.
      break;
    }
    const std::uint32_t id = extra.two();
    const std::uint64_t size = extra.two();
    if (size > extra.left()) {
      fail(source,
           extra.at() - 2,
           "an extra field of at most " + std::to_string(extra.left()) + " bytes",
           std::to_string(size));
    }
    if (id == 1 && wanted != 0) {
      if (size < 8 * wanted) {
        fail(source,
             extra.at() - 2,
             std::to_string(8 * wanted) + " bytes of zip64 sizes",
             std::to_string(size));
      }
      for (std::uint64_t* field : fields) {
        if (*field == kMost32) {
          *field = extra.eight();
        }
      }
      return;
    }
    extra.skip(size);
  }
  if (wanted != 0) {
    fail(source, start, "zip64 sizes in an extra field", "none");
  }
}

constexpr std::uint32_t kEncrypted = 1U << 0U | 1U << 6U | 1U << 13U;
constexpr std::uint32_t kSizesFollow = 1U << 3U;
constexpr std::uint32_t kUtf8 = 1U << 11U;

/// A name as its flags say: we know ASCII and UTF-8.
void check_name(const ByteSource& source,
                std::uint64_t at,
                const std::string& name,
                std::uint32_t flags) {
  const bool is_ascii = std::none_of(
      name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (!is_ascii && ((flags & kUtf8) == 0 || first_not_utf8(name) != std::string::npos)) {
    fail(source, at, "a name in ASCII or UTF-8", shown(name));
  }
  if (name.find('\0') != std::string::npos) {
    fail(source, at, "a name without a zero byte", shown(name));
  }
}

void check_method(const ByteSource& source,
                  std::uint64_t flags_at,
                  std::uint32_t flags,
                  std::uint32_t method) {
  if ((flags & kEncrypted) != 0) {
    fail(source, flags_at, "members that are not encrypted", "one that is");
  }
  if (method != 0 && method != 8) {
    fail(source,
         flags_at + 2,
         "a member that is stored (0) or deflated (8)",
         "method " + std::to_string(method));
  }
}

/// What the directory says about its next member.
ZipMember read_entry(const ByteSource& source, Record& record) {
  const std::uint64_t at = record.at();
  if (record.left() < kEntrySize) {
    fail(source, at, "an entry of at least 46 bytes", std::to_string(record.left()));
  }
  expect(source, at, "the signature of an entry,", 0x02014b50, record.four());
  record.skip(4);  // versions
  ZipMember member;
  const std::uint32_t flags = record.two();
  const std::uint32_t method = record.two();
  check_method(source, at + 8, flags, method);
  member.is_deflated = method == 8;
  record.skip(4);  // date
  member.checksum = record.four();
  member.stored_size = record.four();
  member.size = record.four();
  const std::size_t name_size = record.two();
  const std::size_t extra_size = record.two();
  const std::size_t comment_size = record.two();
  expect(source, at + 34, "disk", 0, record.two());
  record.skip(6);  // attributes
  member.header_at = record.four();
  if (record.left() < name_size + extra_size + comment_size) {
    fail(
        source,
        at + 28,
        "a name, extra fields and a comment of at most " + std::to_string(record.left()) + " bytes",
        std::to_string(name_size + extra_size + comment_size));
  }
  member.name = record.text(name_size);
  check_name(source, at + kEntrySize, member.name, flags);
  Record extra(source, record.at(), extra_size);
  read_zip64(source, extra, {&member.size, &member.stored_size, &member.header_at});
  record.skip(extra_size + comment_size);
  if (!member.is_deflated && member.size != member.stored_size) {
    fail(source,
         at + 24,
         "a stored member of " + std::to_string(member.stored_size) + " bytes",
         std::to_string(member.size));
  }
  if (member.size / kMostInflated > member.stored_size) {
    fail(source,
         at + 24,
         "at most 1032 bytes for each of " + std::to_string(member.stored_size) + " deflated ones",
         std::to_string(member.size));
  }
  return member;
}

/// The member's own header agrees with the directory; sets where its data begin.
void read_header(const ByteSource& source, ZipMember& member, std::uint64_t limit) {
  const std::uint64_t at = member.header_at;
  if (at > limit || limit - at < kHeaderSize) {
    fail(source,
         at,
         "the header of " + shown(member.name) + " before the directory",
         "byte " + std::to_string(limit) + ", where that begins");
  }
  Record header(source, at, kHeaderSize);
  expect(source, at, "the signature of a member,", 0x04034b50, header.four());
  header.skip(2);  // version
  const std::uint32_t flags = header.two();
  const std::uint32_t method = header.two();
  check_method(source, at + 6, flags, method);
  expect(source, at + 8, "method", member.is_deflated ? 8 : 0, method);
  header.skip(4);  // date
  const std::uint32_t checksum = header.four();
  std::uint64_t stored_size = header.four();
  std::uint64_t size = header.four();
  const std::size_t name_size = header.two();
  const std::size_t extra_size = header.two();
  if (limit - at - kHeaderSize < name_size + extra_size) {
    fail(source, at + 26, "a name and extra fields before the directory", "longer ones");
  }
  Record rest(source, at + kHeaderSize, name_size + extra_size);
  if (const std::string name = rest.text(name_size); name != member.name) {
    fail(source, at + kHeaderSize, "the name " + shown(member.name), shown(name));
  }
  read_zip64(source, rest, {&size, &stored_size});
  if ((flags & kSizesFollow) == 0) {
    expect(source, at + 14, "the directory's checksum,", member.checksum, checksum);
    expect(source, at + 18, "the directory's stored size,", member.stored_size, stored_size);
    expect(source, at + 22, "the directory's size,", member.size, size);
  }
  member.data_at = at + kHeaderSize + name_size + extra_size;
  if (member.stored_size > limit - member.data_at) {
    fail(source,
         limit,
         std::to_string(member.stored_size) + " bytes of " + shown(member.name) + " from byte " +
             std::to_string(member.data_at) + " on",
         "the directory");
  }
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const ByteSource& source) {
  const Directory directory = find_directory(source);
  Record record(source, directory.at, directory.size);
  std::vector<ZipMember> members;
  members.reserve(directory.count);
  std::set<std::string_view> names;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const std::uint64_t at = record.at();
    members.push_back(read_entry(source, record));
    read_header(source, members.back(), directory.at);
    if (!names.insert(members.back().name).second) {
      fail(source,
           at + kEntrySize,
           "every name once",
           shown(members.back().name) + " for the second time");
    }
  }
  if (record.left() != 0) {
    fail(source,
         record.at(),
         "the end of the directory after " + std::to_string(directory.count) + " members",
         std::to_string(record.left()) + " more bytes");
  }
  std::vector<const ZipMember*> sorted;
  for (const ZipMember& member : members) {
    sorted.push_back(&member);
  }
  std::sort(sorted.begin(), sorted.end(), [](const ZipMember* a, const ZipMember* b) {
    return a->header_at < b->header_at;
  });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const std::uint64_t end = sorted[i - 1]->data_at + sorted[i - 1]->stored_size;
    if (end > sorted[i]->header_at) {
      fail(source,
           sorted[i]->header_at,
           shown(sorted[i]->name) + " after " + shown(sorted[i - 1]->name) +
               ", which ends at byte " + std::to_string(end),
           "an overlap");
    }
  }
  return members;
}

ZipMemberReader::ZipMemberReader(const ByteSource& source, const ZipMember& member)
    : source_(source), member_(member), name_(source.name() + ": " + shown(member.name)) {
  if (member.is_deflated) {
    inflater_.emplace(
        source, member.data_at, member.stored_size, InflateReader::Wrapper::none, name_);
  }
}

void ZipMemberReader::read(std::span<std::byte> out) {
  if (out.size() > member_.size - done_) {
    refuse(name_, done_, std::to_string(out.size()) + " bytes", "the end of the member", kFix);
  }
  if (inflater_) {
    inflater_->read(out);
  } else {
    source_.read(member_.data_at + done_, out);
  }
  done_ += out.size();
  checksum_ = static_cast<std::uint32_t>(
      crc32_z(checksum_, reinterpret_cast<const Bytef*>(out.data()), out.size()));
}

void ZipMemberReader::finish() {
  if (done_ != member_.size) {
    refuse(name_, done_, "the end of the member", "more bytes", kFix);
  }
  if (inflater_) {
    inflater_->finish();
  }
  if (checksum_ != member_.checksum) {
    refuse(name_,
           0,
           "bytes with the checksum " + std::to_string(member_.checksum),
           std::to_string(checksum_),
           kFix);
  }
}

}  // namespace fenestra::io
