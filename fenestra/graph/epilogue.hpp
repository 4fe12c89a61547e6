// Epilogues: what is done to each element of a result - a sum, an activation - is done by the
// operation that computes it, where that can and nobody else reads what is in between. What was
// written is then still in a cache, and no pass over memory is left. Bits stay.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>

namespace fenestra::graph {

FENESTRA_API Graph fuse_epilogues(const Graph& graph);

}  // namespace fenestra::graph
