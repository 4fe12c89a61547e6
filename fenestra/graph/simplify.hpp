// Passes that make a graph smaller without changing a bit of what it computes.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>

#include <cstddef>

namespace fenestra::graph {

/// Without the operations and constants that no output needs. What a run is given stays, used or
/// not: it is the signature.
FENESTRA_API Graph eliminate_dead(const Graph& graph);

/// An alias that gives its source back the shape it had becomes the source.
FENESTRA_API Graph eliminate_aliases(const Graph& graph);

/// Equal operations on equal inputs become one, and so do equal constants.
FENESTRA_API Graph eliminate_common(const Graph& graph);

/// Operations on constants alone become constants, unless the result is larger than `most_bytes`
/// and than what it is computed from: a folded broadcast would only take memory.
FENESTRA_API Graph fold_constants(const Graph& graph, std::size_t most_bytes = 4096);

/// Fold, merge, drop; verified after each.
FENESTRA_API Graph simplify(const Graph& graph);

}  // namespace fenestra::graph
