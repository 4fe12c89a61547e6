// The patches of a convolution as a matrix that is never stored: how GEMM's panels are cut from a
// tensor in place. Internal: not installed. Not a convolution; gemm.cpp makes those of it.
//
// A grid of cells slides over a source: on every axis cell q is window q of a series. The samples
// of a batch are one more, outermost axis with a single tap. The forward convolution reads x this
// way, the input gradient reads y_bar this way once per phase of the stride.
#pragma once

#include <fenestra/kernels/gemm.hpp>
#include <fenestra/spec/window_walk.hpp>
#include <fenestra/tensor/shape.hpp>

namespace fenestra::detail {

inline constexpr int kMaxGridRank = kMaxSpatialRank + 1;

struct GridAxis : WindowSeries {
  Index source_stride = 0;  ///< elements from one source coordinate to the next
  Index target_stride = 0;  ///< elements from one cell to the next where results are stored
};

struct PatchGrid {
  GridAxis axes[kMaxGridRank];
  int rank = 0;
  Index channels = 0;
  Index channel_stride = 0;    ///< in the source
  bool channels_last = false;  ///< channels are adjacent and count fastest: k = tap * channels + c

  Index cells() const {
    Index n = 1;
    for (int a = 0; a < rank; ++a) {
      n *= axes[a].count;
    }
    return n;
  }
  Index taps() const {
    Index n = 1;
    for (int a = 0; a < rank; ++a) {
      n *= axes[a].taps;
    }
    return n;
  }
  Index depth() const { return taps() * channels; }
};

/// Patches of `data`, which the operands below read.
template <class T>
struct Patches {
  PatchGrid grid;
  const T* data = nullptr;
  const T* zeros = nullptr;  ///< grid.channels zeros, what an absent cell looks like to CellRows
};

/// Columns are cells, depths are (channel, tap). Channels first only. Where windows overlap, the
/// source rows of a block are first brought into scratch, with their zeros and sorted by phase of
/// the step, so that every panel row is a plain run: what `open` gives has them, and a panel within
/// one row of cells finds them as they are. They are no more elements than the panels of the block.
template <class T>
class CellColumns final : public kernels::ColumnSource<T> {
 public:
  explicit CellColumns(const Patches<T>& patches) : patches_(patches) {}
  const kernels::ColumnSource<T>& open(const kernels::PanelRange& block,
                                       kernels::ScratchFrame& frame) const override;
  void pack(const kernels::PanelRange& range, Index width, T* dst) const override;

 private:
  const Patches<T>& patches_;
};

/// Lines are cells, depths are (tap, channel). Channels last only; for few channels.
template <class T>
class CellPanels final : public kernels::PanelSource<T> {
 public:
  explicit CellPanels(const Patches<T>& patches) : patches_(patches) {}
  void pack(const kernels::PanelRange& range, Index width, T* dst) const override;

 private:
  const Patches<T>& patches_;
};

/// Columns are (channel, tap) or (tap, channel), depths are cells.
template <class T>
class TapColumns final : public kernels::ColumnSource<T> {
 public:
  explicit TapColumns(const Patches<T>& patches) : patches_(patches) {}
  void pack(const kernels::PanelRange& range, Index width, T* dst) const override;

 private:
  const Patches<T>& patches_;
};

/// Rows are cells, segments are taps, depths within a segment are channels. Channels last only.
template <class T>
class CellRows final : public kernels::RowSource<T> {
 public:
  explicit CellRows(const Patches<T>& patches) : patches_(patches) {}
  void starts(Index first, Index count, Index s0, Index s1, const T** table) const override;

 private:
  const Patches<T>& patches_;
};

/// Where tiles of results go: the cells of a grid, at their target strides.
template <class T>
struct GridTarget {
  const PatchGrid* grid = nullptr;
  T* data = nullptr;
  Index channel_stride = 0;
};

/// Tile rows are channels, columns are cells.
template <class T>
class CellSink final : public kernels::TileSink<T> {
 public:
  explicit CellSink(const GridTarget<T>& target) : target_(target) {}
  void store(const kernels::TileRange& range, const T* tile, Index ld) const override;

 private:
  GridTarget<T> target_;
};

/// Tile rows are cells, columns are channels.
template <class T>
class ChannelSink final : public kernels::TileSink<T> {
 public:
  explicit ChannelSink(const GridTarget<T>& target) : target_(target) {}
  void store(const kernels::TileRange& range, const T* tile, Index ld) const override;

 private:
  GridTarget<T> target_;
};

/// The adjoint of reading patches: adds tile row (channel, tap), column (cell - first) to the
/// source cell that the pair looks at. `x` is one sample. Where source cells are adjacent, rows of
/// x are kept in phase order meanwhile: all cells 0, s, 2s, ... of the inner step s, then 1, s + 1,
/// ..., so that a run of cells is a run of x; `restore_rows` ends it.
template <class T>
void add_patches(const PatchGrid& grid, Index first, Index count, const T* tile, Index ld, T* x);
template <class T>
void restore_rows(T* x, Index rows, Index length, Index step);

}  // namespace fenestra::detail
