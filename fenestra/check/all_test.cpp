// Every operator of the list, every law, on random problems. A failure prints the command that
// shows it again.
#include <fenestra/check/entry.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace fenestra::check {

/// GoogleTest prints parameters by their bytes otherwise.
void PrintTo(const LawEntry& entry, std::ostream* out) { *out << entry.name; }

namespace {

constexpr int kProblems = 200;
constexpr std::uint64_t kSeed = 1;

/// The operators whose problems have windows, batches and layouts: every law about those applies.
const std::set<std::string_view> kWindowOperators = {"conv",
                                                     "conv_transpose",
                                                     "max_pool",
                                                     "max_unpool",
                                                     "avg_pool",
                                                     "smooth_max_pool",
                                                     "lp_pool",
                                                     "adaptive_max_pool",
                                                     "adaptive_avg_pool"};

/// What must have been tested at least once for an operator to count as tested.
std::set<Law> expected_laws(std::string_view name) {
  std::set<Law> laws = {Law::problem_string,
                        Law::adjoint,
                        Law::duals,
                        Law::nested_duals,
                        Law::finite_differences,
                        Law::intervals,
                        Law::graph,
                        Law::rounding};
  if (kWindowOperators.contains(name)) {
    laws.insert({Law::answers, Law::layouts, Law::batch});
    if (name != "max_unpool") {  // it has one way to run
      laws.insert(Law::kernels);
    }
  }
  if (name == "conv" || name == "conv_transpose") {
    laws.insert(Law::groups);
  }
  if (name == "conv_transpose") {
    laws.insert(Law::sizes);
  }
  return laws;
}

class AllLaws : public testing::TestWithParam<LawEntry> {};

TEST_P(AllLaws, HoldOnRandomProblems) {
  const LawEntry& entry = GetParam();
  std::set<Law> applied;
  Random random(kSeed);
  for (int i = 0; i < kProblems; ++i) {
    const std::string problem = entry.random_problem(random);
    const std::uint64_t seed = kSeed + static_cast<std::uint64_t>(i);
    for (const LawOutcome& outcome : entry.check(problem, seed)) {
      EXPECT_NE(outcome.verdict, Verdict::broken)
          << law_name(outcome.law) << ": " << outcome.detail << "\n  fenestra check " << entry.name
          << " \"" << problem << "\" --seed " << seed;
      if (outcome.verdict == Verdict::holds) {
        applied.insert(outcome.law);
      }
    }
  }
  for (const Law law : expected_laws(entry.name)) {
    EXPECT_TRUE(applied.contains(law)) << law_name(law) << " was never applied";
  }
}

TEST_P(AllLaws, HoldOnTheSmallestProblems) {
  // Every extent 1, as far as the operator's own random problems get there: the corner where
  // formulas degenerate.
  const LawEntry& entry = GetParam();
  Random random(kSeed + 1);
  std::vector<std::string> problems;
  for (int i = 0; i < 2000; ++i) {
    problems.push_back(entry.random_problem(random));
  }
  std::sort(problems.begin(), problems.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  problems.resize(std::min<std::size_t>(problems.size(), 20));
  for (const std::string& problem : problems) {
    for (const LawOutcome& outcome : entry.check(problem, kSeed)) {
      EXPECT_NE(outcome.verdict, Verdict::broken)
          << law_name(outcome.law) << ": " << outcome.detail << "\n  fenestra check " << entry.name
          << " \"" << problem << "\"";
    }
  }
}

TEST_P(AllLaws, TheExampleOfTheOperatorIsAProblem) {
  const LawEntry& entry = GetParam();
  EXPECT_FALSE(entry.summary.empty());
  const Description d = entry.describe(entry.example);
  EXPECT_FALSE(d.inputs.empty());
  EXPECT_EQ(entry.describe(d.problem).problem, d.problem)
      << "the canonical string is a fixed point";
}

INSTANTIATE_TEST_SUITE_P(Operators,
                         AllLaws,
                         testing::ValuesIn(registry().begin(), registry().end()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Registry, HasEveryWindowOperatorOnce) {
  std::set<std::string_view> names;
  for (const LawEntry& entry : registry()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(&find_laws(entry.name), &entry);
  }
  for (const std::string_view name : kWindowOperators) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Registry, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  try {
    find_laws("convolve");
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unknown_operator);
    EXPECT_NE(std::string(error.what()).find("\"convolve\""), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("conv_transpose"), std::string::npos);
  }
}

}  // namespace
}  // namespace fenestra::check
