// The winners of max pooling in compact form: the tap that won, one byte per window.
#pragma once

#include <fenestra/engine/value.hpp>
#include <fenestra/ops/placement.hpp>
#include <fenestra/ops/pool/geometry.hpp>
#include <fenestra/tensor/selection.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <cstdint>

namespace fenestra {

/// A winner as the row-major number of its tap in the window; one byte, so that writing it costs a
/// quarter of the value.
using WinnerTap = std::uint8_t;
/// No cell won: the window has none, or a padded zero did.
inline constexpr WinnerTap kNoWinner = 255;

/// True where every tap number of the windows fits a `WinnerTap`.
constexpr bool has_compact_winners(const PoolGeometry& g) {
  Index taps = 1;
  for (int axis = 0; axis < g.rank(); ++axis) {
    taps *= g.windows[axis].most_taps(Visit::all);
    if (taps >= kNoWinner) {
      return false;
    }
  }
  return true;
}

/// Compact winners as flat cells of one sample and channel, the form people see.
inline void expand_winners(const WinnerTap* taps, const PoolGeometry& g, Index* out) {
  const ActivationMap map = g.y_map();
  std::fill_n(out, map.batch * map.channels * map.cells, spec::kNowhere);
  if (map.batch == 0 || map.channels == 0) {
    return;
  }
  for (Index o = 0; o < map.cells; ++o) {
    for_each_tap(g.windows, o, Visit::real, [&](const Tap& tap) {
      for (Index n = 0; n < map.batch; ++n) {
        for (Index c = 0; c < map.channels; ++c) {
          const Index i = map.at(n, c, o);
          if (taps[i] == tap.tap) {
            out[i] = tap.cell;
          }
        }
      }
    });
  }
}

inline Tensor<Index> winner_indices(const Selection& winners, const PoolGeometry& g) {
  if (!winners.is_compact()) {
    return winners.indices();
  }
  auto indices = Tensor<Index>::uninitialised(g.y_shape());
  expand_winners(winners.taps().data(), g, indices.mutable_data());
  return indices;
}

/// Of values, and of a graph; those of a batch are not indices into one sample.
FENESTRA_API Indices winner_indices(const Indices& winners, const PoolGeometry& g);
namespace graph {
FENESTRA_API Data winner_indices(const Data& winners, const PoolGeometry& g);
}  // namespace graph

}  // namespace fenestra
