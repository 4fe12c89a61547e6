// Registries for the tests of the tool: one operator whose laws hold, and one that breaks a law for
// every seventh seed, so that what the tool says of a broken law can be seen; and one whose kernel
// ends the process. Not an operator: the
// harness itself is tested in fenestra/check/.
#include <fenestra/check/entry.hpp>
#include <fenestra/check/kernel_entry.hpp>
#include <fenestra/ops/entry.hpp>

#include <array>
#include <csignal>

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

std::vector<ProblemField> no_options() { return {}; }
std::optional<double> no_time(std::string_view, const KernelChoice&, double) { return {}; }
std::string random_cells(Random& random) { return "x=" + std::to_string(random.between(1, 9)); }

constexpr OperatorEntry entry(std::string_view name, std::string_view summary) {
  return {.name = name,
          .summary = summary,
          .example = "x=1",
          .options = &no_options,
          .own_fields = {},
          .describe = &describe_cells,
          .random_problem = &random_cells,
          .time = &no_time};
}

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

std::string random_cells_of(Random& random, Index) { return random_cells(random); }

KernelReport integers_of_sound(std::string_view, std::uint64_t, Coverage) {
  return {.failure = {}, .taken = {"sound_f32_rows"}};
}

KernelReport integers_of_faulty(std::string_view problem, std::uint64_t seed, Coverage) {
  if (problem == "x=crash") {
    std::raise(SIGFPE);
  }
  KernelReport report{.failure = {}, .taken = {"faulty_f32_rows"}};
  if (seed % 7 == 0) {
    report.failure =
        KernelFailure{"faulty_f32_rows", "avx2", 3, "vjp of x", "element 4: 1, needed 2"};
  }
  return report;
}

KernelReport bits_of_faulty(std::string_view problem, std::uint64_t seed) {
  return integers_of_faulty(problem, seed, Coverage::full);
}

KernelReport bits_of_sound(std::string_view, std::uint64_t) {
  return {.failure = {}, .taken = {"sound_f32_rows"}};
}

Index no_work(std::string_view) { return 0; }

std::uint64_t hash_of_seed(std::string_view, std::uint64_t seed) { return seed; }

std::vector<std::string> no_candidates() { return {}; }

std::string no_layout(std::string_view) { return {}; }

}  // namespace

std::span<const KernelEntry> kernel_registry() {
  static constexpr std::array<KernelEntry, 2> kEntries{{{.name = "sound",
                                                         .share = 1,
                                                         .random_problem = &random_cells_of,
                                                         .work = &no_work,
                                                         .integers = &integers_of_sound,
                                                         .bits = &bits_of_sound,
                                                         .hash = &hash_of_seed,
                                                         .candidates = &no_candidates,
                                                         .other_layout = &no_layout},
                                                        {.name = "faulty",
                                                         .share = 1,
                                                         .random_problem = &random_cells_of,
                                                         .work = &no_work,
                                                         .integers = &integers_of_faulty,
                                                         .bits = &bits_of_faulty,
                                                         .hash = &hash_of_seed,
                                                         .candidates = &no_candidates,
                                                         .other_layout = &no_layout}}};
  return kEntries;
}

std::span<const LawEntry> registry() {
  static constexpr std::array<LawEntry, 2> kEntries{
      {{entry("sound", "keeps every law"), &check_sound},
       {entry("faulty", "breaks a law at times"), &check_faulty}}};
  return kEntries;
}

}  // namespace fenestra::check

namespace fenestra {

std::span<const OperatorEntry> operators() {
  static const std::vector<OperatorEntry> entries(check::registry().begin(),
                                                  check::registry().end());
  return entries;
}

}  // namespace fenestra
