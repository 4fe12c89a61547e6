// Layouts across a graph: where an operation is fastest on channels in blocks, and what it computes
// goes on to another such operation, the values between them stay in blocks, and the reorders that
// both would do disappear. Elementwise operations in between work on blocks as they are.
//
// Only for graphs that are not differentiated any more.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>

namespace fenestra::graph {

FENESTRA_API Graph choose_layouts(const Graph& graph);

}  // namespace fenestra::graph
