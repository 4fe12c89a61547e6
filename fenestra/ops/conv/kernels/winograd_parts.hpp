// What both kinds of transformed convolution are made of: images, tiles of a batch, parts of them
// that are transformed at once, and operands of products. Internal: not installed.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/ops/conv/kernels/direct_axes.hpp>
#include <fenestra/ops/conv/kernels/winograd_tiles.hpp>

#include <algorithm>

namespace fenestra::detail::winograd {

using kernels::LeftAccess;
using kernels::PanelRange;
using kernels::ScratchFrame;

// Cells of an image that are transposed from channels first at once.
inline constexpr Index kTurnBytes = 128 << 10;

/// The size of parts when `total` is cut into as few parts as `most` allows, nearly equal ones.
constexpr Index part_of(Index total, Index most) {
  most = std::clamp<Index>(most, 1, std::max<Index>(total, 1));
  return ceil_of(std::max<Index>(total, 1), ceil_of(std::max<Index>(total, 1), most));
}

/// A stride of at least `count` elements that is an odd number of cache lines: what lies a stride
/// apart falls into different sets.
template <class T>
constexpr Index odd_lines(Index count) {
  constexpr Index kLine = 64 / static_cast<Index>(sizeof(T));
  return (ceil_of(count, kLine) | 1) * kLine;
}

/// An activation of the problem.
template <class T>
struct Image {
  T* data = nullptr;
  Index channels = 0;
  Index rows = 0;
  Index width = 0;
  bool channels_last = false;
  Index cells() const { return rows * width; }
};

/// The tiles of the whole batch, row of tiles after row of tiles.
struct TileGrid {
  Index rows = 0;  // of tiles, per sample
  Index columns = 0;
  Index batch = 0;
  Index all_rows() const { return batch * rows; }
};

/// Calls f(sample, begin, end, tile) for the samples of rows [r0, r1) of the grid: rows of tiles
/// [begin, end) of a sample, at most `most`, and the number of their first tile counted from r0.
template <class F>
void for_each_sample(const TileGrid& grid, Index r0, Index r1, Index most, const F& f) {
  for (Index r = r0; r < r1;) {
    const Index sample = r / grid.rows;
    const Index begin = r - sample * grid.rows;
    const Index end = std::min({grid.rows, begin + (r1 - r), begin + most});
    f(sample, begin, end, (r - r0) * grid.columns);
    r += end - begin;
  }
}

/// An image whose patches are transformed: x or y_bar.
template <class T>
struct Reader {
  void (*read)(const TileRows&, const ImageRows<const T>&, const ProductRows<T>&) = nullptr;
  Image<const T> image;
  Index side = kPatchSide;  // of a patch
  Index first_row = 0;      // of the patch of tile (0, 0)
  Index first_column = 0;
  Index pitch = 0;    // channels, padded
  Index product = 0;  // from product to product
  T* dst = nullptr;   // [product][tile][channel]

  void shape(Index channel_pitch, Index tiles) {
    pitch = channel_pitch;
    product = odd_lines<T>(tiles * pitch);
  }
};

/// Rows [r0, r1) of the grid into the reader's memory.
template <class T>
void read_part(const WinogradLoops<T>& loops,
               const Reader<T>& reader,
               const TileGrid& grid,
               Index r0,
               Index r1) {
  const Image<const T>& image = reader.image;
  const Index block = loops.block;
  const Index blocks = ceil_of(image.channels, block);
  const Index row_bytes = image.width * block * static_cast<Index>(sizeof(T));
  const Index most = std::max<Index>(kTurnBytes / (row_bytes * kTileSide), 1);
  const Index runs_per_part = ceil_of(r1 - r0, most);
  const auto body = [&](Index job_begin, Index job_end) {
    ScratchFrame frame;
    T* transposed = nullptr;
    if (!image.channels_last) {
      transposed = frame.take<T>((most * kTileSide + 2) * image.width * block);
    }
    for (Index job = job_begin; job < job_end; ++job) {
      const Index c0 = job % blocks * block;
      const Index channels = std::min(block, image.channels - c0);
      const Index run0 = r0 + job / blocks * most;
      const auto run = [&](Index sample, Index begin, Index end, Index tile) {
        const Index top = begin * kTileSide + reader.first_row;
        const Index row0 = std::clamp<Index>(top, 0, image.rows);
        const Index row1 =
            std::clamp<Index>(top + (end - begin - 1) * kTileSide + reader.side, row0, image.rows);
        ImageRows<const T> rows{.row0 = row0,
                                .row1 = row1,
                                .width = image.width,
                                .row_stride = image.width * block,
                                .cell_stride = block,
                                .channels = block};
        const T* first = image.data + sample * image.channels * image.cells();
        if (image.channels_last) {
          rows.row_stride = image.width * image.channels;
          rows.cell_stride = image.channels;
          rows.channels = channels;
          rows.cells = first + row0 * rows.row_stride + c0;
        } else {
          const Index cells = (row1 - row0) * image.width;
          if (channels < block) {
            std::fill_n(transposed, cells * block, T(0));
          }
          kernels::transpose(first + c0 * image.cells() + row0 * image.width,
                             image.cells(),
                             channels,
                             cells,
                             transposed,
                             block);
          rows.cells = transposed;
        }
        const Index row = (run0 - r0) * grid.columns + tile;
        reader.read({begin, end, grid.columns, reader.first_row, reader.first_column},
                    rows,
                    {reader.dst + row * reader.pitch + c0, reader.product, reader.pitch});
      };
      for_each_sample(grid, run0, std::min(run0 + most, r1), most, run);
    }
  };
  fenestra::parallel_for(runs_per_part * blocks, 1, body);
}

/// A right operand that is read where it lies: rows of `width` columns at equal distances.
template <class T>
struct PanelMatrix {
  const T* data = nullptr;
  Index panel_stride = 0;  // from a panel of `width` columns to the next
  Index depth_stride = 0;
  Index width = 0;
  const Index* offsets = nullptr;  // k * depth_stride
};

template <class T>
class PanelColumns final : public kernels::ColumnSource<T> {
 public:
  explicit PanelColumns(const PanelMatrix<T>& matrix) : m_(matrix) {}

  const T* find(const PanelRange& panel, const Index** offsets) const override {
    if (panel.count != m_.width) {
      return nullptr;
    }
    *offsets = m_.offsets;
    return m_.data + panel.first / m_.width * m_.panel_stride + panel.k0 * m_.depth_stride;
  }
  void pack(const PanelRange& range, Index width, T* dst) const override {
    for (Index i = 0; i < range.count; ++i) {
      const Index column = range.first + i;
      const T* from = m_.data + column / m_.width * m_.panel_stride + column % m_.width;
      T* to = dst + i / width * width * (range.k1 - range.k0) + i % width;
      for (Index k = range.k0; k < range.k1; ++k) {
        to[(k - range.k0) * width] = from[k * m_.depth_stride];
      }
    }
  }

 private:
  PanelMatrix<T> m_;
};

/// Weight gradient.
template <class T>
void run_weight_grad(const ConvProblem& problem, const ConvArguments<T>& arguments);

}  // namespace fenestra::detail::winograd
