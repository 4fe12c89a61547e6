// One operation on constants, run while a graph is compiled. Internal: not installed.
#pragma once

#include <fenestra/graph/graph.hpp>

namespace fenestra::graph {

/// The constant that `node` computes of the constants it reads in `graph`. The node leaves no
/// workspace.
Node run_once(const Graph& graph, const Node& node);

}  // namespace fenestra::graph
