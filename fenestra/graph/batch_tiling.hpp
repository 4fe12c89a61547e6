// Batch tiling: chains of operations run a few samples at a time, so that what one hands to the
// next is still in a cache, and what nobody else reads takes no memory for the whole batch.
//
// A convolution with its bias, activation, sum and pool becomes one group, as do chains of
// elementwise operations and an optimiser's update of a weight. No operation is changed: where
// kernels give the same bits for one sample as for many, so does a group.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>
#include <fenestra/graph/options.hpp>

namespace fenestra::graph {

/// One sample at a time, wherever there are two: slow, and what tests of groups want.
inline constexpr BatchTilingOptions kSmallestPieces{
    .cache_bytes = 1, .least_bytes = 0, .pieces_may_be_slow = true};

/// Moves operations that treat samples one by one behind operations that do not read them, so that
/// they stand before their readers: the input gradient of a layer after its weight gradient.
FENESTRA_API Graph read_soon(const Graph& graph);

/// Adds the groups. The last pass: it relies on the order of the nodes.
FENESTRA_API Graph tile_batch(const Graph& graph, const BatchTilingOptions& options);

}  // namespace fenestra::graph
