// What the tests of file formats share: a folder of their own, whole files in memory, and the laws
// that hold for damaged files of any format. Not installed.
#pragma once

#include <fenestra/base/error.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>

namespace fenestra::io {

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fenestra_io_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Files() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::filesystem::path folder_;
};

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// The text of the error that `act` throws; empty when it throws none.
template <class Act>
std::string complaint(Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file) << error.what();
    return error.what();
  }
  return "";
}

/// That `act` complains about byte `offset`, and that the text has `part` in it.
template <class Act>
void expect_refused(Act&& act, std::size_t offset, std::string_view part) {
  const std::string text = complaint(act);
  EXPECT_NE(text.find("at byte " + std::to_string(offset) + ": expected "), std::string::npos)
      << text;
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
}

/// Every proper beginning of a file is refused.
template <class Parse>
void expect_no_beginning_is_accepted(std::string_view file, Parse&& parse) {
  for (std::size_t length = 0; length < file.size(); ++length) {
    // A copy of its own, so that a sanitizer sees the byte behind it.
    const std::string beginning(file.substr(0, length));
    EXPECT_NE(complaint([&] { parse(bytes_of(beginning)); }), "") << length << " bytes";
  }
}

/// Calls `check` with every copy of the file in which one bit is another, and which `parse`
/// accepts, and its result.
template <class Parse, class Check>
void for_each_accepted_flip(const std::string& file, Parse&& parse, Check&& check) {
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    std::string text = complaint([&] {
      auto result = parse(bytes_of(flipped));
      SCOPED_TRACE("bit " + std::to_string(bit % 8) + " of byte " + std::to_string(bit / 8));
      check(result, bit / 8);
    });
  }
}

}  // namespace fenestra::io
