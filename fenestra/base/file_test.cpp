// Files are whole or not there, and nothing but a regular file is read or replaced.
#include <fenestra/base/error.hpp>
#include <fenestra/base/file.hpp>

#include <gtest/gtest.h>

#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace fenestra {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  File() {
    std::string name = (fs::temp_directory_path() / "fenestra_file_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    old_mask_ = ::umask(022);
  }
  ~File() override {
    ::umask(old_mask_);
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_, ignored);
  }

  static std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  static mode_t mode_of(const fs::path& path) {
    struct stat found = {};
    EXPECT_EQ(::lstat(path.c_str(), &found), 0);
    return found.st_mode;
  }
  std::set<std::string> names() const {
    std::set<std::string> list;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      list.insert(entry.path().filename().string());
    }
    return list;
  }
  /// The text of the bad_file that `f` throws.
  template <class F>
  static std::string complaint(const F& f) {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      return error.what();
    }
    return "";
  }
  static std::string complaint_of_replacing(const fs::path& path) {
    return complaint([&] { replace_file(path, {"new"}); });
  }
  static std::string complaint_of_reading(const fs::path& path) {
    return complaint([&] { InputFile file(path); });
  }

  fs::path folder_;
  mode_t old_mask_ = 0;
};

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(File, PartsAreWrittenOneAfterTheOtherAndNothingElseStays) {
  replace_file(folder_ / "a", {"one ", "", "two"});
  EXPECT_EQ(contents(folder_ / "a"), "one two");
  replace_file(folder_ / "a", {"three"});
  EXPECT_EQ(contents(folder_ / "a"), "three");
  replace_file(folder_ / "a", {});
  EXPECT_EQ(contents(folder_ / "a"), "");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(File, ANewFileTakesTheMaskAndAReplacedOneKeepsItsMode) {
  ::umask(027);
  replace_file(folder_ / "new", {"x"});
  EXPECT_EQ(mode_of(folder_ / "new") & 07777, 0640U);
  for (const mode_t mode : {0600U, 0444U, 0755U, 0664U, 0606U}) {
    const fs::path path = write("old", "x");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    replace_file(path, {"y"});
    EXPECT_EQ(mode_of(path) & 07777, mode);
    EXPECT_EQ(contents(path), "y");
    fs::remove(path);
  }
  // The bits that run a program as somebody else do not pass to other contents.
  const fs::path program = write("program", "x");
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  replace_file(program, {"y"});
  EXPECT_EQ(mode_of(program) & 07777, 0755U);
}

TEST_F(File, APrivateFileIsNeverOpenToOthersWhileItIsReplaced) {
  const fs::path path = write("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  OutputFile file(path);
  file.write("y");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_EQ(mode_of(entry.path()) & 0777, 0600U);
  }
  file.commit();
}

TEST_F(File, UntilTheCommitTheOldFileIsThereAndTheNewOneHasAnotherName) {
  const fs::path path = write("a", "old");
  {
    OutputFile file(path);
    file.write("new");
    EXPECT_EQ(contents(path), "old");
    EXPECT_EQ(names().size(), 2U);
  }
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(File, TheOtherNameIsAnotherOneEachTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 8; ++i) {
    OutputFile file(folder_ / "a");
    seen.merge(names());
  }
  EXPECT_EQ(seen.size(), 8U);
}

TEST_F(File, AnExceptionBetweenOpenAndCommitLeavesTheOldFile) {
  const fs::path path = write("a", "old");
  EXPECT_THROW(
      {
        OutputFile file(path);
        file.write("half");
        throw std::runtime_error("midway");
      },
      std::runtime_error);
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(File, AWriteThatFailsLeavesTheOldFileAndNoOther) {
  const fs::path path = write("a", "old");
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  // Files may grow to 4 KiB: the disk is full as far as this process is concerned.
  rlimit small = limit;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string text = complaint([&] { replace_file(path, {std::string(10000, 'x')}); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(holds(text, "cannot be written")) << text;
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(File, WhatAKilledWriterLeftIsRemovedByTheNextOneOfTheSameFile) {
  const auto killed_writer_of = [&](const std::string& name) {
    const pid_t child = ::fork();
    if (child == 0) {
      OutputFile file(folder_ / name);
      file.write("half");
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
  };
  killed_writer_of("a");
  EXPECT_EQ(names().size(), 1U);
  killed_writer_of("b");
  EXPECT_EQ(names().size(), 2U);
  killed_writer_of("a");  // removes what the first left, and leaves its own
  EXPECT_EQ(names().size(), 2U);
  replace_file(folder_ / "a", {"new"});
  EXPECT_EQ(names().size(), 2U);  // a, and what is left of b
  replace_file(folder_ / "b", {"new"});
  EXPECT_EQ(names(), (std::set<std::string>{"a", "b"}));
}

TEST_F(File, AWriterThatIsAtWorkKeepsItsFile) {
  OutputFile first(folder_ / "a");
  first.write("first");
  replace_file(folder_ / "a", {"second"});
  EXPECT_EQ(contents(folder_ / "a"), "second");
  EXPECT_EQ(names().size(), 2U);
  first.commit();
  EXPECT_EQ(contents(folder_ / "a"), "first");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(File, APlantedNameOrLinkIsNeitherFollowedNorOverwritten) {
  const fs::path victim = write("victim", "mine");
  fs::create_symlink(victim, folder_ / "a.partial");
  replace_file(folder_ / "a", {"new"});
  EXPECT_EQ(contents(victim), "mine");
  EXPECT_TRUE(fs::is_symlink(folder_ / "a.partial"));
}

TEST_F(File, LinksAreRefusedAndStayAsTheyAre) {
  const fs::path target = write("target", "old");
  fs::create_symlink(target, folder_ / "link");
  const std::string text = complaint_of_replacing(folder_ / "link");
  EXPECT_TRUE(holds(text, "a symbolic link")) << text;
  EXPECT_TRUE(holds(text, target.string())) << text;
  EXPECT_EQ(contents(target), "old");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));

  fs::create_symlink(folder_ / "nowhere", folder_ / "dangling");
  EXPECT_TRUE(holds(complaint_of_replacing(folder_ / "dangling"), "a symbolic link"));
  EXPECT_FALSE(fs::exists(folder_ / "nowhere"));
  EXPECT_EQ(names().size(), 3U);
}

TEST_F(File, ALinkThatComesBeforeTheCommitIsRefusedToo) {
  const fs::path target = write("target", "old");
  OutputFile file(folder_ / "a");
  file.write("new");
  fs::create_symlink(target, folder_ / "a");
  EXPECT_TRUE(holds(complaint([&] { file.commit(); }), "a symbolic link"));
  EXPECT_EQ(contents(target), "old");
}

TEST_F(File, AFolderOnTheWayMayBeALink) {
  fs::create_directory(folder_ / "real");
  fs::create_directory_symlink(folder_ / "real", folder_ / "alias");
  replace_file(folder_ / "alias" / "a", {"new"});
  EXPECT_EQ(contents(folder_ / "real" / "a"), "new");
}

TEST_F(File, PipesSocketsDevicesAndFoldersAreRefusedBothWays) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0644), 0);
  fs::create_directory(folder_ / "folder");
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = (folder_ / "socket").string();
  ASSERT_LT(name.size(), sizeof address.sun_path);
  std::copy(name.begin(), name.end(), address.sun_path);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);

  std::vector<std::pair<fs::path, std::string>> refused = {{folder_ / "pipe", "a named pipe"},
                                                           {folder_ / "socket", "a socket"},
                                                           {folder_ / "folder", "a folder"}};
  // A device of our own, which only root can make: a broken writer that root runs would replace the
  // machine's.
  const fs::path device = folder_ / "device";
  if (::mknod(device.c_str(), S_IFCHR | 0600, ::makedev(1, 3)) == 0) {
    refused.emplace_back(device, "a device");
  } else if (::geteuid() != 0) {
    refused.emplace_back("/dev/null", "a device");
  }
  const std::set<std::string> before = names();
  for (const auto& [path, kind] : refused) {
    const mode_t mode = mode_of(path);
    EXPECT_TRUE(holds(complaint_of_reading(path), kind)) << path;
    EXPECT_TRUE(holds(complaint_of_replacing(path), kind)) << path;
    EXPECT_EQ(mode_of(path), mode) << path;
  }
  EXPECT_EQ(names(), before);
  ::close(socket);
  for (const char* endless : {"/dev/zero", "/dev/urandom"}) {
    EXPECT_TRUE(holds(complaint_of_reading(endless), "a device")) << endless;
  }
}

TEST_F(File, PathsThatNameNoFileAreRefused) {
  for (const char* path : {"", ".", "..", "/", "folder/"}) {
    EXPECT_TRUE(holds(complaint_of_replacing(path), "folder")) << path;
  }
  EXPECT_TRUE(holds(complaint_of_replacing(folder_ / "missing" / "a"), "cannot be written"));
  EXPECT_TRUE(holds(complaint_of_replacing(write("file", "") / "a"), "cannot be written"));
  EXPECT_TRUE(holds(complaint_of_reading(folder_ / "missing"), "cannot be read"));
  const fs::path cut(std::string((folder_ / "a").string()) + '\0' + "b");
  EXPECT_TRUE(holds(complaint_of_replacing(cut), "zero byte"));
  EXPECT_TRUE(holds(complaint_of_reading(cut), "zero byte"));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

TEST_F(File, ANameOfTheGreatestLengthIsWritten) {
  const fs::path path = folder_ / std::string(255, 'n');
  replace_file(path, {"x"});
  EXPECT_EQ(contents(path), "x");
  EXPECT_FALSE(complaint_of_replacing(folder_ / std::string(256, 'n')).empty());
}

TEST_F(File, AFolderThatMayNotBeWrittenKeepsItsFile) {
  const fs::path path = write("a", "old");
  ASSERT_EQ(::chmod(folder_.c_str(), 0555), 0);
  // Root may write everywhere, so for this one call the system takes us for somebody else.
  ::setfsuid(65534);
  const std::string text = complaint_of_replacing(path);
  ::setfsuid(::geteuid());
  EXPECT_TRUE(holds(text, "cannot be written")) << text;
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(File, AFileThatMayNotBeReadSaysSo) {
  const fs::path path = write("a", "secret");
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  ::setfsuid(65534);
  const std::string text = complaint_of_reading(path);
  ::setfsuid(::geteuid());
  EXPECT_TRUE(holds(text, "cannot be read")) << text;
}

TEST_F(File, ManyWritersLeaveOneWholeFile) {
  const fs::path path = folder_ / "a";
  std::vector<std::thread> writers;
  for (char c = 'a'; c < 'i'; ++c) {
    writers.emplace_back([&path, c] {
      for (int i = 0; i < 20; ++i) {
        replace_file(path, {std::string(5000, c), std::string(5000, c)});
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  const std::string text = contents(path);
  EXPECT_EQ(text, std::string(10000, text.empty() ? '?' : text[0]));
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(File, ReadingGivesBytesAndSaysWhereTheyEnd) {
  const InputFile file(write("a", "0123456789"));
  EXPECT_EQ(file.size(), 10U);
  std::array<char, 4> bytes{};
  file.read(3, bytes);
  EXPECT_EQ(std::string_view(bytes.data(), 4), "3456");
  const std::string text = complaint([&] { file.read(8, bytes); });
  EXPECT_TRUE(holds(text, "at byte 10: expected 2 more bytes")) << text;
}

}  // namespace
}  // namespace fenestra
