// What a trainer says of one step, as rows of a report.
#pragma once

#include <fenestra/cli/report.hpp>
#include <fenestra/nn/step_profile.hpp>
#include <fenestra/nn/summary.hpp>

#include <vector>

namespace fenestra::cli {

/// How the step that was measured is run.
struct StepKind {
  bool is_compiled = true;
  bool has_leaves = false;
  bool has_tiles = false;
  Index batches_ahead = 0;  ///< that the loader makes while a step runs
};

/// The layers of the summary in their order, with their times; then what is no layer: the loss.
StepReport step_report(const nn::StepProfile& profile,
                       const nn::Summary& summary,
                       const StepKind& kind);

std::vector<MemoryRow> memory_rows(const nn::StepMemory& memory, const StepKind& kind);

}  // namespace fenestra::cli
