// Every operator of the list, with every candidate, on one thread and on several.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/list.hpp>
#include <tests/faults/operators.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace fenestra::faults {
namespace {

template <class... Ops>
std::vector<OperatorCalls> all(TypeList<Ops...>) {
  return {make_calls<Ops>()...};
}

/// Large enough to be spread over threads, and to need scratch there.
struct LargeProblem {
  std::string_view name;
  std::string_view problem;
};
constexpr LargeProblem kLarge[] = {
    {"conv", "x=8x16x24x24 w=32x16x3x3 b=32 padding=1"},
    {"conv", "x=8x16x24x24 w=16x1x5x5 groups=16 stride=2 padding=2"},
    {"conv_transpose", "x=8x16x12x12 w=16x8x3x3 stride=2 padding=1"},
    {"max_pool", "x=8x32x32x32 kernel=3 stride=2 padding=1"},
    {"avg_pool", "x=8x32x32x32 kernel=3 stride=2 padding=1"},
    {"lp_pool", "x=8x16x32x32 kernel=3 stride=2 p=3"},
    {"smooth_max_pool", "x=8x16x32x32 kernel=2 beta=2"},
    {"adaptive_avg_pool", "x=8x32x31x31 output_size=7"},
    {"adaptive_max_pool", "x=8x32x31x31 output_size=7"},
};

class Operators : public testing::TestWithParam<OperatorCalls> {};

TEST_P(Operators, SurviveEveryFailureOnOneThread) {
  set_threads(1);
  for (const auto& [what, call] : GetParam().calls(GetParam().example)) {
    expect_survival(what, call);
  }
}

TEST_P(Operators, SurviveEveryFailureOnThreeThreads) {
  set_threads(3);
  for (const auto& [what, call] : GetParam().calls(GetParam().example)) {
    expect_survival(what, call);
  }
  for (const auto& [name, problem] : kLarge) {
    if (name == GetParam().name) {
      for (const auto& [what, call] : GetParam().calls(problem)) {
        expect_survival(what, call);
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
