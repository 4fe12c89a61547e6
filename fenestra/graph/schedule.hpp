// The order in which nodes run, as far as it costs memory. What is computed stays as it is; for the
// order that groups want, see batch_tiling.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>

namespace fenestra::graph {

/// The graph with what only replaces parameters moved to where it can first run: a gradient is used
/// up when the last reader of its parameter has run, instead of waiting with all others for the
/// end.
FENESTRA_API Graph update_early(const Graph& graph);

}  // namespace fenestra::graph
