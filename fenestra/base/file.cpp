// Reading and writing regular files: see file.hpp.
//
// Everything beside the target is done relative to its open folder, so a folder that is renamed or
// replaced meanwhile cannot lead a step elsewhere.
#include <fenestra/base/error.hpp>
#include <fenestra/base/file.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>

namespace fenestra {

namespace {

/// One call of the system moves less than 2 GiB.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

std::string reason_text(int reason) { return std::system_category().message(reason); }

std::string_view kind_name(mode_t mode) {
  if (S_ISDIR(mode)) {
    return "a folder";
  }
  if (S_ISLNK(mode)) {
    return "a symbolic link";
  }
  if (S_ISFIFO(mode)) {
    return "a named pipe";
  }
  if (S_ISSOCK(mode)) {
    return "a socket";
  }
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no regular file";
}

[[noreturn]] void fail_reading(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::bad_file,
              path.string() + ": cannot be read: " + why +
                  "\n  fix: the path of a regular file that may be read");
}

void require_regular(const std::filesystem::path& path, mode_t mode) {
  if (!S_ISREG(mode)) {
    fail_reading(path, "it is " + std::string(kind_name(mode)) + ", needed a regular file");
  }
}

/// A path with a zero byte would be cut there by the system.
void require_whole(const std::filesystem::path& path) {
  const std::size_t zero = path.native().find('\0');
  if (zero != std::string::npos) {
    throw Error(ErrorCode::bad_file,
                std::string(path.native().c_str()) + ": the path has a zero byte at position " +
                    std::to_string(zero) + "\n  fix: a path without it");
  }
}

std::string hexadecimal(std::uint64_t number) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[(number >> shift) & 15];
  }
  return text;
}

/// How the temporary files of a target begin: by its hash (FNV-1a), as long whatever it is called,
/// since a name near the limit of the file system has no room for an ending.
std::string temporary_beginning(const std::string& target) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : target) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return ".fenestra-" + hexadecimal(hash) + "-";
}

/// Empty where the system has no random bytes.
std::string fresh_name(const std::string& target) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    return {};
  }
  return temporary_beginning(target) + hexadecimal(number);
}

/// Removes what killed processes left of this target. A writer holds a lock on its temporary file
/// as long as it lives, so one that can be locked has no writer any more; `open_temporary` knows
/// that it may be locked here before its writer has done so. Where that cannot be found out, for
/// want of rights or of locks, everything stays.
void remove_left_overs(int folder, const std::string& target) {
  const int readable = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const list = readable < 0 ? nullptr : ::fdopendir(readable);
  if (list == nullptr) {
    const detail::FileHandle closed(readable);
    return;
  }
  const std::string beginning = temporary_beginning(target);
  while (const dirent* entry = ::readdir(list)) {
    if (!std::string_view(entry->d_name).starts_with(beginning)) {
      continue;
    }
    const detail::FileHandle file(
        ::openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat found = {};
    if (file.is_open() && ::fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode) &&
        ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      ::unlinkat(folder, entry->d_name, 0);
    }
  }
  ::closedir(list);
}

/// Whether the file, just made, is ours: locked, and not removed before it was. Where there are no
/// locks, nobody removes it either.
bool is_taken(int file) {
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    return errno != EWOULDBLOCK;
  }
  struct stat own = {};
  return ::fstat(file, &own) == 0 && own.st_nlink > 0;
}

}  // namespace

detail::FileHandle::~FileHandle() {
  if (number_ >= 0) {
    ::close(number_);
  }
}

// --- Reading ------------------------------

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  require_whole(path_);
  struct stat found = {};
  // Asked before it is opened: opening a device can already do something.
  if (::stat(path_.c_str(), &found) != 0) {
    fail_reading(path_, reason_text(errno));
  }
  require_regular(path_, found.st_mode);
  // Asked again after: it may have become a pipe, which without O_NONBLOCK would wait for a writer.
  file_ = detail::FileHandle(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file_.is_open() || ::fstat(file_.get(), &found) != 0) {
    fail_reading(path_, reason_text(errno));
  }
  require_regular(path_, found.st_mode);
  size_ = static_cast<std::uint64_t>(found.st_size);
}

InputFile InputFile::beneath(const std::filesystem::path& folder,
                             const std::filesystem::path& relative) {
  require_whole(relative);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::bad_file,
                relative.string() + ": cannot be read: " + why + "\n  fix: a regular file in " +
                    (folder.empty() ? "the current folder" : folder.string()) + " or below it");
  };
  if (relative.is_absolute() || relative.empty()) {
    refuse("it is no path relative to a folder");
  }
  // Step by step, so that no part of the path can be a link.
  detail::FileHandle at(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.is_open()) {
    refuse(reason_text(errno));
  }
  InputFile file;
  file.path_ = folder / relative;
  for (auto part = relative.begin(); part != relative.end(); ++part) {
    const bool is_last = std::next(part) == relative.end();
    if (*part == "..") {
      refuse("it leads out of the folder");
    }
    if (*part == "." && !is_last) {
      continue;
    }
    const int kind = is_last ? O_NONBLOCK | O_NOCTTY : O_DIRECTORY;
    detail::FileHandle next(
        ::openat(at.get(), part->c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | kind));
    if (!next.is_open()) {
      refuse(errno == ELOOP ? "it is a symbolic link, or below one" : reason_text(errno));
    }
    at = std::move(next);
  }
  struct stat found = {};
  if (::fstat(at.get(), &found) != 0) {
    refuse(reason_text(errno));
  }
  if (!S_ISREG(found.st_mode)) {
    refuse("it is " + std::string(kind_name(found.st_mode)) + ", needed a regular file");
  }
  if (found.st_nlink > 1) {
    refuse("it has " + std::to_string(found.st_nlink) +
           " names, and may be a file from outside the folder; a copy of it has one");
  }
  file.file_ = std::move(at);
  file.size_ = static_cast<std::uint64_t>(found.st_size);
  return file;
}

void InputFile::read(std::uint64_t offset, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(
        file_.get(), bytes.data(), std::min(bytes.size(), kMostAtOnce), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      fail_reading(path_,
                   "at byte " + std::to_string(offset) + ": " +
                       (count < 0 ? reason_text(errno)
                                  : "expected " + std::to_string(bytes.size()) +
                                        " more bytes, found the end of the file"));
    }
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

// --- Writing ------------------------------

OutputFile::OutputFile(std::filesystem::path path)
    : path_(std::move(path)), name_(path_.filename().native()) {
  require_whole(path_);
  if (name_.empty() || name_ == "." || name_ == "..") {
    throw Error(
        ErrorCode::bad_file,
        path_.string() + ": cannot be written: it names a folder\n  fix: the path of a file");
  }
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  folder_ = detail::FileHandle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.is_open() && errno == EACCES) {
    // A folder in which one may create but not look: enough, though it cannot be synced.
    folder_ = detail::FileHandle(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  if (!folder_.is_open()) {
    fail(errno);
  }
  require_replaceable();
  remove_left_overs(folder_.get(), name_);
  open_temporary();
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) {
    ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  }
}

void OutputFile::fail(int reason) const {
  throw Error(ErrorCode::bad_file,
              path_.string() + ": cannot be written: " + reason_text(reason) +
                  "\n  fix: a folder that exists, with room and permission");
}

void OutputFile::require_replaceable() {
  struct stat found = {};
  if (::fstatat(folder_.get(), name_.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) {
      fail(errno);
    }
    replaces_ = false;
    return;
  }
  if (!S_ISREG(found.st_mode)) {
    std::string fix = "another path";
    if (S_ISLNK(found.st_mode)) {
      std::error_code ignored;
      const std::filesystem::path target = std::filesystem::read_symlink(path_, ignored);
      fix = "the path of the file itself" + (target.empty() ? "" : ", " + target.string());
    }
    throw Error(ErrorCode::bad_file,
                path_.string() + ": cannot be written: it is " +
                    std::string(kind_name(found.st_mode)) +
                    ", and only regular files are replaced\n  fix: " + fix);
  }
  replaces_ = true;
  // Without the bits that run a program as somebody else: a plain write would clear them too.
  mode_ = found.st_mode & 0777;
  group_ = found.st_gid;
}

void OutputFile::open_temporary() {
  // Nobody reads a file that replaces a private one before it has that one's permissions.
  const mode_t mode = replaces_ ? 0600 : 0666;
  constexpr int kAttempts = 16;
  for (int attempt = 1; !file_.is_open(); ++attempt) {
    temporary_ = fresh_name(name_);
    if (temporary_.empty()) {
      fail(errno);
    }
    file_ = detail::FileHandle(::openat(folder_.get(),
                                        temporary_.c_str(),
                                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                        mode));
    if (!file_.is_open()) {
      const int reason = errno;
      temporary_.clear();  // not ours
      if (reason != EEXIST || attempt == kAttempts) {
        fail(reason);
      }
    } else if (!is_taken(file_.get())) {
      file_ = {};
      temporary_.clear();  // removed, or about to be
      if (attempt == kAttempts) {
        fail(EBUSY);
      }
    }
  }
}

void OutputFile::keep_permissions() const {
  mode_t mode = mode_;
  struct stat own = {};
  if (::fstat(file_.get(), &own) != 0) {
    fail(errno);
  }
  if (own.st_gid != group_ && ::fchown(file_.get(), static_cast<uid_t>(-1), group_) != 0) {
    // What the old group might do, another group may do only where everybody may.
    mode &= ~static_cast<mode_t>(0070) | ((mode & 0007) << 3);
  }
  if (::fchmod(file_.get(), mode) != 0) {
    fail(errno);
  }
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      fail(errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void OutputFile::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(
        file_.get(), bytes.data(), std::min(bytes.size(), kMostAtOnce), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      fail(errno);
    }
    offset += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void OutputFile::commit() {
  // Asked again: a link or a device may have come since.
  require_replaceable();
  if (replaces_) {
    keep_permissions();
  }
  if (::fsync(file_.get()) != 0) {
    fail(errno);
  }
  // Keeps the lock until the file has its name.
  const detail::FileHandle lock(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!lock.is_open()) {
    fail(errno);
  }
  // Some file systems report a full disk only here.
  if (::close(file_.release()) != 0) {
    fail(errno);
  }
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0) {
    fail(errno);
  }
  temporary_.clear();
  // The new name itself. Not every file system has folders that can be synced, nor is every one
  // open for it; a disk that fails is another matter.
  if (::fsync(folder_.get()) != 0 && errno == EIO) {
    throw Error(ErrorCode::bad_file,
                path_.string() + ": is written, but its folder could not be synced: " +
                    reason_text(EIO) + "\n  fix: another disk");
  }
}

void replace_file(const std::filesystem::path& path,
                  std::initializer_list<std::string_view> parts) {
  OutputFile file(path);
  for (const std::string_view part : parts) {
    file.write(part);
  }
  file.commit();
}

}  // namespace fenestra
