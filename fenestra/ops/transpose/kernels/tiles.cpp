// The blocked transposition for float and double. A copy has no order, so threads cannot be seen.
//
// Axes are merged as far as both orders allow; what is left is either a copy of contiguous runs or
// a batch of matrix transpositions, since one axis is innermost in x and another in y.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/transpose/spec.hpp>

#include <algorithm>

namespace fenestra {

namespace {

// Elements per range: 64 KiB of f32, enough work to pay for waking a thread.
constexpr Index kGrain = 16384;
// A tile is one cache line wide for f32 and two for f64, both in x and in y, and stays in
// first-level cache.
constexpr Index kTile = 16;
// Rows walked together. Where a column of x is more than a page from the next, eight tiles side by
// side use each page while its translation is at hand; where it is not, one tile keeps fewer lines
// of y open. Medians of 8 interleaved runs, f32, one thread of a busy machine (so only the ratios
// say something): 2048x2048 20 ms with one tile, 13 ms with eight; 8x56x56x64 to channels first 1.4
// ms with one, 2.1 ms with eight.
constexpr Index kPage = 4096;
constexpr Index kFarBand = 8 * kTile;
// Rows of a narrow matrix at a time: at most 15 columns of f64 fill half of a 256 KiB second-level
// cache.
constexpr Index kNarrowRows = 1024;

/// The axes of y, merged: extents, and the stride of each in x. Axes of extent 1 are gone.
struct Axes {
  Shape extents, strides;

  Axes(const Shape& shape, const Shape& order) {
    Shape x_strides = shape;
    Index stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      x_strides[axis] = stride;
      stride *= shape[axis];
    }
    for (const Index wide_axis : order) {
      const int axis = static_cast<int>(wide_axis);
      if (shape[axis] == 1) {
        continue;
      }
      const int last = extents.rank() - 1;
      if (last >= 0 && strides[last] == x_strides[axis] * shape[axis]) {
        extents[last] *= shape[axis];
        strides[last] = x_strides[axis];
      } else {
        extents.push_back(shape[axis]);
        strides.push_back(x_strides[axis]);
      }
    }
    if (extents.rank() == 0) {
      extents.push_back(1);
      strides.push_back(1);
    }
  }
};

/// y[r * y_stride + c] = x[c * x_stride + r] for r < rows, c < columns, both at most kTile. The
/// tile is gathered by whole lines of x and written by whole lines of y: strides that are powers of
/// two would otherwise evict what they share.
template <class T>
void transpose_tile(
    const T* x, Index x_stride, T* y, Index y_stride, Index rows, Index columns) noexcept {
  alignas(64) T tile[kTile][kTile];
  if (rows == kTile && columns == kTile) {
    for (Index c = 0; c < kTile; ++c) {
      for (Index r = 0; r < kTile; ++r) {
        tile[r][c] = x[c * x_stride + r];
      }
    }
    for (Index r = 0; r < kTile; ++r) {
      std::copy_n(tile[r], kTile, y + r * y_stride);
    }
    return;
  }
  for (Index c = 0; c < columns; ++c) {
    for (Index r = 0; r < rows; ++r) {
      tile[r][c] = x[c * x_stride + r];
    }
  }
  for (Index r = 0; r < rows; ++r) {
    std::copy_n(tile[r], columns, y + r * y_stride);
  }
}

/// The same without a tile, for matrices so narrow that a few lines of each side are all there is
/// (the channels of an image). `rows` is bounded by the caller, so that what is written stays in
/// cache until its lines are whole.
template <class T>
void transpose_narrow(
    const T* x, Index x_stride, T* y, Index y_stride, Index rows, Index columns) noexcept {
  for (Index c = 0; c < columns; ++c) {
    for (Index r = 0; r < rows; ++r) {
      y[r * y_stride + c] = x[c * x_stride + r];
    }
  }
}

}  // namespace

template <KernelScalar T>
void transpose_kernel(const T* x, T* y, const Shape& shape, const Shape& order) {
  const Index size = shape.elements().value_or(0);
  if (size == 0) {
    return;
  }
  const Axes axes(shape, order);
  const int last = axes.extents.rank() - 1;
  const Index columns = axes.extents[last];
  const Index x_stride = axes.strides[last];
  // The offset in x and in y of position `i` on all axes but the last one and `skipped`.
  Shape y_strides = axes.extents;
  Index stride = 1;
  for (int axis = last; axis >= 0; --axis) {
    y_strides[axis] = stride;
    stride *= axes.extents[axis];
  }
  struct Offsets {
    Index x = 0;
    Index y = 0;
  };
  const auto offsets = [&](Index i, int skipped) {
    Offsets at;
    for (int axis = last - 1; axis >= 0; --axis) {
      if (axis == skipped) {
        continue;
      }
      at.x += i % axes.extents[axis] * axes.strides[axis];
      at.y += i % axes.extents[axis] * y_strides[axis];
      i /= axes.extents[axis];
    }
    return at;
  };
  if (x_stride == 1) {
    const Index runs = size / columns;
    if (runs == 1) {
      parallel_for(
          size, kGrain, [&](Index begin, Index end) { std::copy(x + begin, x + end, y + begin); });
      return;
    }
    parallel_for(runs, std::max<Index>(1, kGrain / columns), [&](Index begin, Index end) {
      for (Index run = begin; run < end; ++run) {
        std::copy_n(x + offsets(run, -1).x, columns, y + run * columns);
      }
    });
    return;
  }
  int row_axis = 0;  // the axis that is innermost in x
  while (axes.strides[row_axis] != 1) {
    ++row_axis;
  }
  const Index rows = axes.extents[row_axis];
  const Index y_stride = y_strides[row_axis];
  const bool narrow = columns < kTile;
  const bool far = x_stride * static_cast<Index>(sizeof(T)) >= kPage;
  const Index band_rows = narrow ? kNarrowRows : far ? kFarBand : kTile;
  const Index bands = ceil_div(rows, band_rows);
  const Index matrices = size / (rows * columns);
  const Index grain = std::max<Index>(1, kGrain / (std::min(rows, band_rows) * columns));
  parallel_for(matrices * bands, grain, [&](Index begin, Index end) {
    for (Index band = begin; band < end; ++band) {
      const Offsets at = offsets(band / bands, row_axis);
      const Index first = band % bands * band_rows;
      const Index height = std::min(band_rows, rows - first);
      const T* from = x + at.x + first;
      T* to = y + at.y + first * y_stride;
      if (narrow) {
        transpose_narrow(from, x_stride, to, y_stride, height, columns);
        continue;
      }
      for (Index column = 0; column < columns; column += kTile) {
        for (Index row = 0; row < height; row += kTile) {
          transpose_tile(from + column * x_stride + row,
                         x_stride,
                         to + row * y_stride + column,
                         y_stride,
                         std::min(kTile, height - row),
                         std::min(kTile, columns - column));
        }
      }
    }
  });
}

template FENESTRA_API void transpose_kernel(const float*, float*, const Shape&, const Shape&);
template FENESTRA_API void transpose_kernel(const double*, double*, const Shape&, const Shape&);

}  // namespace fenestra
