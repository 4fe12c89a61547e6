// Folding: what scales and shifts the channels of a result becomes part of what computes it. A
// normalisation by stored statistics costs nothing behind a convolution, whose weights and bias
// take it in; where they are constants, they are computed once, when the program is compiled.
//
// The sums are the same, rounded at other places: results agree within the rounding bound, not in
// their bits.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>

namespace fenestra::graph {

FENESTRA_API Graph fold_scales(const Graph& graph);

}  // namespace fenestra::graph
