// Recomputation: less memory for more work.
//
// A value that waits long for a late reader (an activation, for the backward pass) is computed
// again just before it, from what is alive then, so that its memory serves others in between. No
// operation is changed, so neither is a bit of the results.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/graph.hpp>

#include <cstddef>
#include <optional>

namespace fenestra::graph {

struct RecomputeOptions {
  std::size_t memory_limit = 0;  ///< bytes of the arena
  std::optional<BatchTilingOptions> batch_tiling =
      {};           ///< how the graph will be grouped afterwards
  int workers = 1;  ///< as for Plan
};

/// The graph with copies of operations, such that its plan fits the limit, in the order in which it
/// has it; itself where it fits already. Throws `memory_limit` where no copy helps any more. Runs
/// after everything that merges or orders operations, and before `tile_batch`.
FENESTRA_API Graph recompute(const Graph& graph, const RecomputeOptions& options);

}  // namespace fenestra::graph
