// Every operator of the list, with every candidate, on one thread and on several.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/list.hpp>
#include <tests/faults/failing_memory.hpp>
#include <tests/faults/operators.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace fenestra::faults {
namespace {

template <class... Ops>
std::vector<OperatorCalls> all(TypeList<Ops...>) {
  return {make_calls<Ops>()...};
}

struct Problem {
  std::string_view name;
  std::string_view problem;
};
/// In the place of examples with more numbers than a call that is made a thousand times should
/// have.
constexpr Problem kSmall[] = {
    {"conv", "x=2x3x9x9 w=4x3x3x3 stride=2 padding=1"},
    {"max_pool", "x=1x8x12x12 kernel=3 stride=2 padding=1"},
    {"avg_pool", "x=1x8x12x12 kernel=3 stride=2 padding=1"},
    {"adaptive_max_pool", "x=1x8x7x7 output_size=3"},
    {"adaptive_avg_pool", "x=1x8x7x7 output_size=3"},
    {"reduce", "f=mean x=2x4x6x6 axes=2,3 keep=true"},
    {"normalise", "f=batch x=2x4x6x6"},
};
/// Large enough to be spread over threads, and to need scratch there.
constexpr Problem kLarge[] = {
    {"conv", "x=4x16x12x12 w=32x16x3x3 padding=1"},
    {"conv", "x=4x16x12x12 w=16x1x5x5 groups=16 stride=2 padding=2"},
    {"conv", "x=4x12x12x16 w=3x3x16x16 padding=1 layout=channels_last"},
    {"conv_transpose", "x=4x16x6x6 w=16x8x3x3 stride=2 padding=1"},
    {"max_pool", "x=4x16x32x32 kernel=3 stride=2 padding=1"},
    {"avg_pool", "x=4x16x32x32 kernel=3 stride=2 padding=1"},
    {"lp_pool", "x=4x16x32x32 kernel=3 stride=2 p=3"},
    {"smooth_max_pool", "x=4x16x16x16 kernel=2 beta=2"},
    {"adaptive_avg_pool", "x=4x16x31x31 output_size=7"},
    {"adaptive_max_pool", "x=4x16x31x31 output_size=7"},
    {"elementwise", "f=mul a=64x1024 b=1024"},
    {"reduce", "f=sum x=64x1024 axes=0 keep=false"},
    {"matmul", "x=128x96 w=80x96 bias=true"},
    {"normalise", "f=batch x=8x16x16x16"},
};

std::string_view small_problem(const OperatorCalls& op) {
  const auto* found = std::find_if(
      std::begin(kSmall), std::end(kSmall), [&](const Problem& p) { return p.name == op.name; });
  return found != std::end(kSmall) ? found->problem : op.example;
}

/// Whether a forked child, in which an allocation fails, ends well: with the promised exception or
/// the expected bits, and then with these.
bool child_survives(const Call& call, const Tensors& expected, std::int64_t which) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    bool well = true;
    try {
      const FailingMemory memory(which, Failing::once);
      well = same_bits(call(), expected);
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    }
    ::_exit(well && same_bits(call(), expected) ? 0 : 1);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

class Operators : public testing::TestWithParam<OperatorCalls> {};

TEST_P(Operators, SurviveEveryFailureOnOneThread) {
  set_threads(1);
  for (const auto& [what, call] : GetParam().calls(small_problem(GetParam()))) {
    expect_survival(what, call);
  }
}

TEST_P(Operators, SurviveEveryFailureOnThreeThreads) {
  set_threads(3);
  for (const auto& [what, call] : GetParam().calls(small_problem(GetParam()))) {
    expect_survival(what, call);
  }
  for (const auto& [name, problem] : kLarge) {
    if (name != GetParam().name) {
      continue;
    }
    for (const auto& [what, call] : GetParam().calls(problem)) {
      if (!what.ends_with("_spec")) {  // slow, and in one thread
        expect_survival(what, call);
      }
    }
  }
  set_threads(1);
}

// A child that was forked has no workers yet: they are started, and find their scratch, in front of
// the failure or behind it.
TEST_P(Operators, SurviveFailuresWhereThreadsAreNew) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not follow a fork";
#endif
  constexpr std::int64_t kFailures = 24;
  set_threads(3);
  for (const auto& [name, problem] : kLarge) {
    if (name != GetParam().name) {
      continue;
    }
    for (const auto& [what, call] : GetParam().calls(problem)) {
      if (what.ends_with("_spec") || what.starts_with("program")) {
        continue;
      }
      Tensors expected;
      std::thread([&] { expected = call(); }).join();
      for (std::int64_t which = 1; which <= kFailures; ++which) {
        EXPECT_TRUE(child_survives(call, expected, which))
            << what << ", allocation " << which << " in a forked child";
      }
    }
  }
  set_threads(1);
}

INSTANTIATE_TEST_SUITE_P(All,
                         Operators,
                         testing::ValuesIn(all(fenestra::Operators{})),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace fenestra::faults
