// What a run of the bench found, as plain data: it can be written as JSON, read back, judged and
// shown without measuring again.
#pragma once

#include <fenestra/bench/case.hpp>

#include <cstdint>
#include <string>
#include <vector>
#include <nlohmann/json_fwd.hpp>

namespace fenestra::bench {

/// What the machine can do at most with so many threads.
struct Limits {
  int threads = 1;
  double f32_flops = 0;
  double f64_flops = 0;
  double cached_copy = 0;  ///< bytes a second that a copy reads and writes, within the second cache
  double memory_copy = 0;  ///< the same from memory
};

/// How a kernel that was chosen compares with the best candidate for one direction of a problem.
struct Choice {
  std::string isa;
  std::string problem;  ///< with the operator
  std::string source;   ///< network and layer; empty for a random problem
  std::string direction;
  std::string chosen;
  std::string best;
  double chosen_seconds = 0;
  double best_seconds = 0;

  /// At least 1.
  double ratio() const { return chosen_seconds / best_seconds; }
};

/// The law on bits (check/kernel_entry.hpp) on a few problems.
struct BitsLaw {
  std::uint64_t problems = 0;
  std::string failure;  ///< the command that shows it; empty where the law holds
};

struct Record {
  std::string isa;
  std::string onednn;  ///< versions, empty where a peer is missing
  std::string torch;
  bool has_xnnpack = false;  ///< it has no versions
  bool is_quick = false;
  double seconds = 0;        ///< that the run took
  std::size_t left_out = 0;  ///< measurements for which there was no time
  std::vector<Limits> limits = {};
  std::vector<Result> results = {};
  std::vector<Choice> choices = {};
  BitsLaw bits = {};
};

/// With what the bars say, which is not read back.
nlohmann::json to_json(const Record& record);
/// Throws `bad_file` with what is wrong.
Record record_from_json(const nlohmann::json& json);

}  // namespace fenestra::bench
