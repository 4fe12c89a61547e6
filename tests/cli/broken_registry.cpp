// A registry for the tests of the tool: one operator whose laws hold, and one that breaks a law for
// every seventh seed, so that what the tool says of a broken law can be seen. Not an operator: the
// harness itself is tested in fenestra/check/.
#include <fenestra/check/entry.hpp>

#include <array>

namespace fenestra::check {

namespace {

Description describe_cells(std::string_view problem) {
  const TensorInfo x{"x", Shape{1, 1, 4}, Role::activation};
  return {.problem = std::string(problem),
          .inputs = {x},
          .data = {},
          .output = x,
          .layout = {},
          .batched = {},
          .windows = {},
          .costs = {},
          .notes = {},
          .kernels = {}};
}

std::string random_cells(Random& random) { return "x=" + std::to_string(random.between(1, 9)); }

std::vector<LawOutcome> check_sound(std::string_view, std::uint64_t) {
  return {{Law::problem_string, Verdict::holds, ""}, {Law::groups, Verdict::not_applicable, ""}};
}

std::vector<LawOutcome> check_faulty(std::string_view problem, std::uint64_t seed) {
  std::vector<LawOutcome> outcomes = check_sound(problem, seed);
  if (seed % 7 == 0) {
    outcomes.push_back({Law::adjoint, Verdict::broken, "1/2, needed 1/3"});
    outcomes.push_back({Law::duals, Verdict::broken, "another complaint"});
  } else {
    outcomes.push_back({Law::adjoint, Verdict::holds, ""});
  }
  return outcomes;
}

}  // namespace

std::span<const OperatorEntry> registry() {
  static constexpr std::array<OperatorEntry, 2> kEntries{
      {{"sound", "keeps every law", "x=1", &describe_cells, &random_cells, &check_sound},
       {"faulty", "breaks a law at times", "x=1", &describe_cells, &random_cells, &check_faulty}}};
  return kEntries;
}

}  // namespace fenestra::check
