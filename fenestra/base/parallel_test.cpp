// The pool behind parallel_for: what it covers, who runs it, how it fails, and how it survives
// forks, limits and the end of the process.
#include <fenestra/base/child_test.hpp>
#include <fenestra/base/parallel.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fenestra {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class Parallel : public ::testing::Test {
 protected:
  void SetUp() override { set_threads(4); }
};

/// Numbers up to n, summed in ranges.
bool sums_right(Index n) {
  std::vector<Index> sums(static_cast<std::size_t>((n + 6) / 7));
  parallel_for(n, 7, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      sums[static_cast<std::size_t>(begin / 7)] += i;
    }
  });
  return std::accumulate(sums.begin(), sums.end(), Index{0}) == n * (n - 1) / 2;
}

/// The threads that ran a call of 64 ranges, each long enough that others come.
std::set<std::thread::id> threads_that_ran() {
  std::mutex mutex;
  std::set<std::thread::id> ran;
  parallel_for(64, 1, [&](Index, Index) {
    {
      const std::scoped_lock lock(mutex);
      ran.insert(std::this_thread::get_id());
    }
    std::this_thread::sleep_for(milliseconds(1));
  });
  return ran;
}

/// Destroyed after the pool, whose priority is the default: a call then runs in its caller.
struct CallsAtTheEnd {
  ~CallsAtTheEnd() {
    if (!sums_right(1000)) {
      std::fputs("parallel_for failed at the end of the process\n", stderr);
      _exit(1);
    }
  }
};
[[gnu::init_priority(101)]] const CallsAtTheEnd calls_at_the_end;

TEST_F(Parallel, RangesDependOnTheSizeAlone) {
  for (const auto& [n, grain] : {std::pair<Index, Index>{1000, 7}, {64, 64}, {65, 64}, {5, 0}}) {
    std::set<std::pair<Index, Index>> expected;
    const Index step = std::max<Index>(grain, 1);
    for (Index begin = 0; begin < n; begin += step) {
      expected.emplace(begin, std::min(begin + step, n));
    }
    for (const int count : {1, 2, 3, 7, 16}) {
      set_threads(count);
      std::mutex mutex;
      std::multiset<std::pair<Index, Index>> seen;
      parallel_for(n, grain, [&](Index begin, Index end) {
        const std::scoped_lock lock(mutex);
        seen.emplace(begin, end);
      });
      EXPECT_TRUE(std::equal(seen.begin(), seen.end(), expected.begin(), expected.end()))
          << n << " by " << grain << " with " << count << " threads";
    }
  }
}

TEST_F(Parallel, NothingIsRunForNothing) {
  for (const Index n : {Index{0}, Index{-1}, std::numeric_limits<Index>::min()}) {
    parallel_for(n, 1, [](Index, Index) { ADD_FAILURE(); });
  }
}

TEST_F(Parallel, TheLargestSizesDoNotOverflow) {
  constexpr Index kMost = std::numeric_limits<Index>::max();
  std::atomic<Index> covered{0};
  std::atomic<int> ranges{0};
  parallel_for(kMost, kMost / 3 + 1, [&](Index begin, Index end) {
    covered += end - begin;
    ++ranges;
  });
  EXPECT_EQ(covered, kMost);
  EXPECT_EQ(ranges, 3);
}

TEST_F(Parallel, SeveralThreadsRunOneCall) {
  const auto ran = threads_that_ran();
  EXPECT_GT(ran.size(), 1U);
  EXPECT_LE(ran.size(), 4U);
  EXPECT_TRUE(ran.contains(std::this_thread::get_id()));
}

TEST_F(Parallel, NestedCallsRunInTheCallingThread) {
  parallel_for(16, 1, [](Index, Index) {
    const auto outer = std::this_thread::get_id();
    parallel_for(16, 1, [&](Index, Index) { EXPECT_EQ(std::this_thread::get_id(), outer); });
  });
}

TEST_F(Parallel, CallersAtOnceShareTheThreads) {
  constexpr int kCallers = 4;
  constexpr Index kRanges = 64;
  std::atomic<int> ready{0};
  std::atomic<int> inside{0};  // callers that have begun a range and not ended
  std::atomic<int> helped{0};  // ranges that a helper began while there were callers enough
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      const auto caller = std::this_thread::get_id();
      bool has_begun = false;
      ++ready;
      while (ready < kCallers) {
        std::this_thread::yield();
      }
      parallel_for(kRanges, 1, [&](Index, Index) {
        if (std::this_thread::get_id() != caller) {
          helped += inside == kCallers ? 1 : 0;
        } else if (!has_begun) {
          has_begun = true;
          ++inside;
        }
        std::this_thread::sleep_for(milliseconds(1));
      });
      --inside;
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  // Four callers are as many threads as there may be; with three helpers for each they would have
  // begun most of the ranges. Those who came before the last caller may begin one more each.
  EXPECT_LE(helped, kCallers * kRanges / 8);
}

TEST_F(Parallel, ACallerDoesNotWaitForHelpersThatAreBusy) {
  set_threads(2);
  std::atomic<bool> may_end{false};
  std::atomic<int> held{0};
  std::thread holder([&] {
    parallel_for(2, 1, [&](Index, Index) {
      ++held;
      while (!may_end) {
        std::this_thread::sleep_for(microseconds(100));
      }
    });
  });
  // The one helper comes as soon as it can, and stays.
  for (int i = 0; i < 1000 && held < 2; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_GE(held, 1);
  EXPECT_TRUE(sums_right(100'000));
  may_end = true;
  holder.join();
}

TEST_F(Parallel, TheFirstExceptionReachesTheCaller) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ran{0};
    try {
      parallel_for(100'000, 1, [&](Index begin, Index) {
        ++ran;
        if (begin == 100) {
          throw std::runtime_error("range 100");
        }
        if (begin > 100) {  // who runs range 100 may be off its processor for a while
          std::this_thread::sleep_for(microseconds(100));
        }
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "range 100");
    }
    EXPECT_GE(ran, 101);
    EXPECT_LT(ran, 100'000) << "ranges that had not begun were not left out";
    EXPECT_TRUE(sums_right(10'000));
  }
}

TEST_F(Parallel, AnExceptionOfAHelperReachesTheCaller) {
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> has_thrown{false};
  EXPECT_THROW(parallel_for(100'000,
                            1,
                            [&](Index, Index) {
                              if (std::this_thread::get_id() != caller) {
                                has_thrown = true;
                                throw std::bad_alloc();
                              }
                              if (!has_thrown) {
                                std::this_thread::sleep_for(milliseconds(1));
                              }
                            }),
               std::bad_alloc);
  EXPECT_TRUE(sums_right(10'000));
}

TEST_F(Parallel, AnExceptionLeavesANestedCallAndASerialOne) {
  const auto fails = [](Index begin, Index) {
    if (begin == 3) {
      throw std::runtime_error("range 3");
    }
  };
  EXPECT_THROW(parallel_for(8, 1, [&](Index, Index) { parallel_for(8, 1, fails); }),
               std::runtime_error);
  set_threads(1);
  EXPECT_THROW(parallel_for(8, 1, fails), std::runtime_error);
  EXPECT_THROW(parallel_for(1, 1, [](Index, Index) { throw std::runtime_error("one"); }),
               std::runtime_error);
  set_threads(4);
  EXPECT_GT(threads_that_ran().size(), 1U) << "the caller still counts as inside";
}

TEST_F(Parallel, IdleThreadsSleep) {
  set_threads(2);  // more than there are processors would not even look for the next call
  ASSERT_TRUE(sums_right(100'000));
  const auto processor_time = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double before = processor_time();
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LT(processor_time() - before, 0.03);
}

// --- forks ---------------------------------------------------------------------------------------

TEST_F(Parallel, AChildHasThreads) {
  if (!kChildrenMayHaveThreads) {
    GTEST_SKIP() << "the thread sanitizer cannot follow";
  }
  ASSERT_GT(threads_that_ran().size(), 1U);
  const auto has_threads = [] { return sums_right(100'000) && threads_that_ran().size() > 1; };
  EXPECT_EQ(outcome_in_child(has_threads), Outcome::held);
  EXPECT_EQ(outcome_in_child(
                [&] { return has_threads() && outcome_in_child(has_threads) == Outcome::held; }),
            Outcome::held);
  EXPECT_TRUE(has_threads()) << "in the parent";
}

TEST_F(Parallel, AChildEndsAsAnyProcessDoes) {
  if (!kChildrenMayHaveThreads) {
    GTEST_SKIP() << "the thread sanitizer cannot follow";
  }
  ASSERT_TRUE(sums_right(100'000));
  EXPECT_EQ(outcome_in_child([]() -> bool { std::exit(sums_right(100'000) ? 0 : 1); }),
            Outcome::held);
}

TEST_F(Parallel, AChildMayBeForkedWhileOthersCall) {
  if (!kChildrenMayHaveThreads) {
    GTEST_SKIP() << "the thread sanitizer cannot follow";
  }
  std::atomic<bool> may_end{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!may_end) {
        EXPECT_TRUE(sums_right(1000));
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(outcome_in_child([] { return sums_right(10'000); }), Outcome::held) << "fork " << i;
  }
  may_end = true;
  for (std::thread& other : others) {
    other.join();
  }
}

// --- limits --------------------------------------------------------------------------------------

TEST_F(Parallel, WorkGoesOnWhereThereAreNoThreads) {
  if (!kChildrenMayHaveThreads) {
    GTEST_SKIP() << "the thread sanitizer cannot follow";
  }
  // A child of its own for the limit, which cannot be lifted again; root has none.
  EXPECT_EQ(outcome_in_child([] {
              if (geteuid() == 0 && setuid(65534) != 0) {
                return true;  // not allowed to be anybody else: nothing can be shown
              }
              const rlimit none{1, 1};
              if (setrlimit(RLIMIT_NPROC, &none) != 0) {
                return false;
              }
              const auto ran = threads_that_ran();
              return ran.size() == 1 && sums_right(100'000);
            }),
            Outcome::held);
}

TEST_F(Parallel, TheNumberOfThreadsHasBounds) {
  for (const int n : {-1, 0, kMaxThreads + 1, 100'000, std::numeric_limits<int>::max()}) {
    try {
      set_threads(n);
      ADD_FAILURE() << n << " threads were accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_option);
      EXPECT_NE(std::string(error.what()).find(std::to_string(n)), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("1 to 1024"), std::string::npos);
    }
    EXPECT_EQ(threads(), 4);
  }
  set_threads(kMaxThreads);
  EXPECT_TRUE(sums_right(1'000'000));
}

// The environment is read once, so that each of these needs a process that has not read it.
class ThreadsOfTheEnvironment : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

[[noreturn]] void end_with(bool holds) { std::_Exit(holds ? 0 : 1); }

TEST_F(ThreadsOfTheEnvironment, BadNumbersAreErrorsThatNameTheVariable) {
  for (const char* value :
       {"abc", "0", "-1", "99999999999", " 2", "2 ", "2x", "+2", "1.5", "0x2", "1025"}) {
    setenv("FENESTRA_THREADS", value, 1);
    const auto is_refused = [&](const auto& call) {
      try {
        call();
      } catch (const Error& error) {
        const std::string text = error.what();
        return error.code() == ErrorCode::bad_environment &&
               text.find("FENESTRA_THREADS") != std::string::npos &&
               text.find(std::string("\"") + value + "\"") != std::string::npos &&
               text.find("1 to 1024") != std::string::npos;
      }
      return false;
    };
    EXPECT_EXIT(end_with(is_refused([] { threads(); }) && is_refused([] { threads(); }) &&
                         is_refused([] { sums_right(1000); })),
                ::testing::ExitedWithCode(0),
                "")
        << value;
    EXPECT_EXIT((set_threads(3), end_with(threads() == 3 && sums_right(1000))),
                ::testing::ExitedWithCode(0),
                "")
        << value;
  }
  unsetenv("FENESTRA_THREADS");
}

TEST_F(ThreadsOfTheEnvironment, GoodNumbersAreTaken) {
  setenv("FENESTRA_THREADS", "3", 1);
  EXPECT_EXIT(end_with(threads() == 3), ::testing::ExitedWithCode(0), "");
  setenv("FENESTRA_THREADS", "1024", 1);
  EXPECT_EXIT(end_with(threads() == 1024), ::testing::ExitedWithCode(0), "");
  unsetenv("FENESTRA_THREADS");
}

#ifdef __linux__
TEST_F(ThreadsOfTheEnvironment, TheDefaultKeepsToTheAffinityMask) {
  const auto on_one_processor = [] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(sched_getcpu(), &mask);
    return sched_setaffinity(0, sizeof mask, &mask) == 0 && threads() == 1;
  };
  unsetenv("FENESTRA_THREADS");
  EXPECT_EXIT(end_with(on_one_processor()), ::testing::ExitedWithCode(0), "");
  setenv("FENESTRA_THREADS", "", 1);
  EXPECT_EXIT(end_with(on_one_processor()), ::testing::ExitedWithCode(0), "");
  unsetenv("FENESTRA_THREADS");
}
#endif

}  // namespace
}  // namespace fenestra
