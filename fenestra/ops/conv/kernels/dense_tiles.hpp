// The vector loops of the dense convolution: tiles of cells times vectors of target channels.
// Internal: not installed. They know strips, taps and blocks of channels; dense.cpp says
// which ones.
//
// A block is two vectors of neighbouring target channels, or one where no more are left. Sums lie
// as [cell][channel]: with channels last that is where they stay, with channels first they are
// transposed into plain rows at the end.
#pragma once

#include <fenestra/base/error.hpp>

namespace fenestra::detail {

/// Cells of a row that see the same taps: sums[cell] = sum over planes and taps of source *
/// weights.
template <class T>
struct DenseRow {
  const T* source = nullptr;  ///< of the first cell, in the first plane
  Index step = 1;             ///< from cell to cell
  Index cells = 0;
  Index planes = 0;
  Index plane_pitch = 0;
  const Index* weight_plane = nullptr;  ///< planes: their numbers in the weights; null: in order
  const T* weights = nullptr;           ///< [weight plane][tap][channel of the block]
  Index taps = 0;
  const Index* offset = nullptr;  ///< taps: where a tap finds what a cell sees
  bool side_by_side = false;      ///< one plane of `step` taps: all that the cells see, in order
  Index vectors = 0;              ///< of the block: 1 or 2
  Index channels = 0;             ///< of the block that are stored
  const T* bias = nullptr;        ///< channels, or null
  T* sums = nullptr;
  Index sums_step = 0;  ///< from cell to cell
};

/// Sums of a run of neighbouring cells on their way into plain rows, a channel each.
template <class T>
struct DenseRun {
  const T* sums = nullptr;  ///< [cell][width]
  Index width = 0;          ///< channels of the block
  Index cells = 0;
  Index channels = 0;       ///< that exist
  const T* bias = nullptr;  ///< channels, or null
  T* out = nullptr;
  Index channel_stride = 0;
};

/// Weights of a block: column c of `rows` rows goes to `dst + place(c)`, a vector for every `lanes`
/// rows; rows that are missing are zeros. place(c) = place[c], or c * width without a table. Rows
/// or columns are neighbours.
template <class T>
struct DenseWeights {
  const T* rows_data = nullptr;
  Index row_stride = 0;
  Index column_stride = 1;
  Index rows = 0;   ///< that exist
  Index width = 0;  ///< rows of the block: whole vectors
  Index columns = 0;
  const Index* place = nullptr;
  T* dst = nullptr;
};

/// The loops for one instruction set.
template <class T>
struct DenseLoops {
  Index lanes = 0;
  Index cells[2] = {};  ///< most cells of a tile, with blocks of one vector and of two
  void (*add_row)(const DenseRow<T>&) = nullptr;
  void (*store_run)(const DenseRun<T>&) = nullptr;
  void (*pack_block)(const DenseWeights<T>&) = nullptr;
};

/// Those of the best instruction set of this machine.
template <class T>
const DenseLoops<T>& dense_loops();

}  // namespace fenestra::detail
