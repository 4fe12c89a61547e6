// Derivatives as passes: Graph -> Graph, by the rules of the primitives that its operations are,
// called on the nodes as values. Applying a pass to its result gives higher orders, in any mixture.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>

#include <span>
#include <vector>

namespace fenestra::graph {

/// Where the cotangents of a reverse pass start.
enum class Seed {
  input,  ///< a new input "<output>_bar" for each output that is differentiated
  one,    ///< 1, for an output of a single element
};

/// The nodes that receive gradients unless others are named: all inputs and parameters.
FENESTRA_API std::vector<NodeId> differentiable(const Graph& graph);

/// The graph with further outputs "<name>_bar": the gradients of sum <y_bar, y> over `outputs` by
/// the nodes `wrt`, in that order, zeros where nothing depends on them. Nodes keep their numbers.
FENESTRA_API Graph reverse(const Graph& graph,
                           std::span<const std::size_t> outputs,
                           std::span<const NodeId> wrt,
                           Seed seed);

/// The graph with a further input "<name>_dot" for each node of `wrt`, in that order, and a further
/// output "<name>_dot" for each of its outputs, in their order: the tangents. Nodes keep their
/// numbers.
FENESTRA_API Graph forward(const Graph& graph, std::span<const NodeId> wrt);

}  // namespace fenestra::graph
