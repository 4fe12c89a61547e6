// Quotas of cgroups, read from trees of files like those that the system shows.
#include <fenestra/base/processors.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#ifdef __linux__
#include <sched.h>
#endif

namespace fenestra::detail {
namespace {

constexpr const char* kVersion2 = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
constexpr const char* kVersion1 =
    "24 23 0:20 / /sys rw - sysfs sysfs rw\n"
    "33 32 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
    "34 32 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n";

class Quota : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "quota_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  void mount(const std::string& mounts, const std::string& cgroups) const {
    write("/proc/self/mountinfo", mounts);
    write("/proc/self/cgroup", cgroups);
  }
  int limit() const { return processors_by_quota(root_); }

 private:
  std::string root_;
};

TEST_F(Quota, IsNoneWhereThereAreNoCgroups) {
  EXPECT_EQ(limit(), 0);
  mount("", "");
  EXPECT_EQ(limit(), 0);
  mount(kVersion2, "0::/a\n");
  EXPECT_EQ(limit(), 0);
}

TEST_F(Quota, IsRoundedUp) {
  mount(kVersion2, "0::/a\n");
  for (const auto& [text, expected] : {std::pair{"150000 100000\n", 2},
                                       {"200000 100000\n", 2},
                                       {"200001 100000\n", 3},
                                       {"1000 100000\n", 1},
                                       {"max 100000\n", 0},
                                       {"0 100000\n", 0},
                                       {"100000 0\n", 0},
                                       {"nonsense\n", 0},
                                       {"", 0},
                                       {"9223372036854775807 1\n", 1 << 20}}) {
    write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(limit(), expected) << text;
  }
}

TEST_F(Quota, IsTheTightestOfThoseAbove) {
  mount(kVersion2, "0::/a/b/c\n");
  write("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(limit(), 3);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "500000 100000\n");
  EXPECT_EQ(limit(), 3);
  write("/sys/fs/cgroup/a/b/cpu.max", "50000 50000\n");
  EXPECT_EQ(limit(), 1);
}

TEST_F(Quota, OfAContainerIsSeenAtItsTop) {
  // With a namespace of its own it sees itself at the top, without one a path that it cannot see.
  mount(kVersion2, "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(limit(), 3);
  mount("30 23 0:26 /docker/1f /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/1f/inner\n");
  EXPECT_EQ(limit(), 3);
  write("/sys/fs/cgroup/inner/cpu.max", "100000 100000\n");
  EXPECT_EQ(limit(), 1);
  mount("30 23 0:26 /docker/1f /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/1f2\n");
  EXPECT_EQ(limit(), 3);
}

TEST_F(Quota, OfVersion1TakesTwoFiles) {
  mount(kVersion1, "9:memory:/m\n4:cpu,cpuacct:/jobs/7\n0::/elsewhere\n");
  write("/sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 0);
  write("/sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_quota_us", "120000\n");
  EXPECT_EQ(limit(), 2);
  write("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(limit(), 2) << "a quota without a period";
  write("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 1);
}

TEST_F(Quota, OfBothVersionsIsTheTighter) {
  mount(std::string(kVersion1) + kVersion2, "4:cpu,cpuacct:/a\n0::/b\n");
  write("/sys/fs/cgroup/b/cpu.max", "400000 100000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "600000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 4);
}

TEST(Processors, AreAtLeastOneAndNoMoreThanTheMaskHas) {
  EXPECT_GE(available_processors(), 1);
  EXPECT_LE(available_processors(), processors_by_affinity());
}

}  // namespace
}  // namespace fenestra::detail
