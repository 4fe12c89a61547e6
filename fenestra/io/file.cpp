// Writing files.
#include <fenestra/base/error.hpp>
#include <fenestra/io/file.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace fenestra::io {

void replace_file(const std::filesystem::path& path,
                  std::initializer_list<std::string_view> parts) {
  std::filesystem::path temporary = path;
  temporary += ".partial";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(temporary.c_str(), "wb"),
                                                             &std::fclose);
  bool is_written = file != nullptr;
  for (const std::string_view part : parts) {
    is_written = is_written && std::fwrite(part.data(), 1, part.size(), file.get()) == part.size();
  }
  if (!is_written || std::fflush(file.get()) != 0 || ::fsync(::fileno(file.get())) != 0 ||
      std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    if (file) {
      std::remove(temporary.c_str());
    }
    throw Error(ErrorCode::bad_file,
                path.string() + ": cannot be written: " + std::strerror(reason) +
                    "\n  fix: a folder that exists, with room and permission");
  }
}

}  // namespace fenestra::io
