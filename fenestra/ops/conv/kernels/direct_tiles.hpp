// The vector loops of the direct convolution: bands of rows, vectors along the width. Internal: not
// installed. They know rows, taps and channels; direct.cpp says which ones.
//
// A strip is a copy of a few source rows with their padding, so that the inner loops have no
// borders. A source that is walked with a stride is dealt into that many phases of columns, and
// every tap becomes a run of neighbours.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/window_walk.hpp>

namespace fenestra::detail {

/// Output channels that share the loads of a tile.
inline constexpr Index kTileChannels = 4;

/// Copies rows [first_row, first_row + rows) of `planes` planes; rows and columns outside the
/// source are zeros. Row r of plane p goes to dst + (p * rows + r) * pitch. A column is one
/// element, or with channels last and stride 1 those of some channels, which lie side by side in
/// the strip.
template <class T>
struct StripJob {
  const T* const* plane = nullptr;  ///< planes pointers to (source_rows x source_width)
  Index planes = 0;
  Index source_rows = 0;
  Index source_width = 0;
  Index first_row = 0;  ///< may be negative
  Index rows = 0;
  Index first_column = 0;  ///< what column 0 of the strip shows, may be negative
  Index stride = 1;
  Index phase_pitch = 0;  ///< elements of a phase
  Index channels = 1;     ///< of a column
  Index column_step = 1;  ///< from column to column of the source
  T* dst = nullptr;
  Index pitch() const { return stride * phase_pitch; }
  Dealing dealing() const { return {stride}; }
};

/// One row of taps over one source row.
struct RowTap {
  Index row = 0;
  Index tap = 0;
};

/// One tap of a tile: where it reads the strip, and the number of its weight in the channel tile.
/// Taps of all planes and rows make one list, so that the loop over them is one loop: the ends of
/// short loops inside one another cost more than their bodies.
struct TapPlace {
  Index source = 0;
  Index weight = 0;
};

/// The cells of a target row that see the same column taps: all of them in a forward convolution,
/// one in `stride` in an input gradient.
template <class T>
struct ColumnPhase {
  Index width = 0;
  Index taps = 0;
  const Index* offset = nullptr;  ///< taps: where a tap finds the strip column of cell 0
  /// [channel tile][plane][row tap][tap][channel in the tile]
  const T* weights = nullptr;
};

/// target = bias + sum over planes, rows of taps and taps of strip * weight, for a band of rows.
template <class T>
struct BandJob {
  const T* strip =
      nullptr;  ///< such that row `RowTap::row` of plane p is p * plane_pitch + row * pitch
  Index plane_pitch = 0;
  Index pitch = 0;
  Index planes = 0;
  const Index* weight_plane = nullptr;  ///< planes: the plane's number in the weights
  Index weight_planes = 0;
  Index row_taps = 0;
  const Index* row_begin = nullptr;  ///< rows + 1: where a target row's entries begin
  const RowTap* row_entries = nullptr;
  Index source_shift = 1;  ///< source rows between two target rows that see the same row taps
  const ColumnPhase<T>* phase = nullptr;
  Index phases = 1;
  Index channels = 0;
  const T* bias = nullptr;  ///< channels, or null
  T* out = nullptr;         ///< the band's first row
  Index rows = 0;
  Index width = 0;
  Index channel_stride = 0;
  Index row_stride = 0;
  TapPlace* places = nullptr;  ///< room for the taps of all planes, row taps and phases
  T* row_buffer = nullptr;     ///< phases x tile_channels x (width of phase 0), with several phases
};

/// sums[tap tile][channel][tap in the tile] += dot products along the rows of a band.
template <class T>
struct DotJob {
  const T* strip = nullptr;  ///< as in BandJob
  Index plane_pitch = 0;
  Index pitch = 0;
  Index planes = 0;
  const Index* weight_plane = nullptr;
  Index taps = 0;                 ///< of a plane
  const Index* offset = nullptr;  ///< taps: row and column of a tap in the strip of target row 0
  Index row_step = 0;             ///< strip elements from one target row to the next
  const T* y = nullptr;           ///< channels x rows x y_pitch, zeros behind the width
  Index y_pitch = 0;
  Index channels = 0;
  Index rows = 0;
  Index width = 0;
  T* sums = nullptr;  ///< [weight plane][channel * taps + tap][lanes]
};

/// The loops for one instruction set.
template <class T>
struct DirectLoops {
  Index lanes = 0;
  Index tile_channels = 0;  ///< that share the loads of a tile of run_band
  void (*fill_strip)(const StripJob<T>&) = nullptr;
  void (*run_band)(const BandJob<T>&) = nullptr;
  void (*add_dots)(const DotJob<T>&) = nullptr;
  /// out[i] = sum of the lanes of sums[i], count of them.
  void (*sum_lanes)(const T* sums, Index count, T* out) = nullptr;
};

/// Those of the best instruction set of this machine.
template <class T>
const DirectLoops<T>& direct_loops();

}  // namespace fenestra::detail
