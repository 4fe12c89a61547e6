// The vector loops of the dense convolution, for every instruction set; see
// dense_tiles.hpp.
//
// A tile is `cells` x `vectors` accumulators: a weight vector that is loaded feeds all cells, a
// cell that is broadcast feeds all vectors. Channels of a block lie side by side in the weights, so
// loads of them never cross a cache line, and the width of a row is cut at any cell.
#include <fenestra/kernels/simd.hpp>
#include <fenestra/ops/conv/kernels/dense_tiles.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/conv/kernels/dense_tiles.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <fenestra/kernels/transpose-inl.hpp>
#include <fenestra/kernels/vectors-inl.hpp>

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
// A name of their own: other files have loops of the same names for the same instruction set.
namespace fenestra::detail::dense_tiles {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace vectors = fenestra::kernels::HWY_NAMESPACE;
using vectors::kLanes;
using vectors::Wide;

// 32 registers hold 28 accumulators, two vectors of weights and a broadcast; 16 hold 12. Every
// width in use in networks (112, 56, 28, 14) is a multiple of 14. Each number of cells is compiled,
// five times over: scalars, for which nobody chooses this kernel, get as few as show that it works.
#if HWY_TARGET == HWY_AVX3
constexpr int kAccumulators = 28;
#elif HWY_TARGET == HWY_SCALAR
constexpr int kAccumulators = 4;
#else
constexpr int kAccumulators = 12;
#endif

/// Cells any number of elements apart. An address is a base, and once, twice or four times one of
/// three distances; so few registers hold what all cells of a tile need.
template <class T>
struct CellsApart {
  Index one, three, five, seven;  // bytes

  explicit CellsApart(Index step) {
    one = step * static_cast<Index>(sizeof(T));
    three = 3 * one;
    five = 5 * one;
    seven = 7 * one;
  }
  template <int kCells>
  struct Bases {
    const char* at[(kCells + 6) / 7];
  };
  template <int kCells>
  HWY_INLINE Bases<kCells> bases(const T* from) const {
    Bases<kCells> b;
    b.at[0] = reinterpret_cast<const char*>(from);
    FENESTRA_UNROLL
    for (int i = 1; i < (kCells + 6) / 7; ++i) {
      b.at[i] = b.at[i - 1] + seven;
    }
    return b;
  }
  template <int kCells>
  HWY_INLINE T cell(const Bases<kCells>& b, int i) const {
    const Index distance[7] = {0, one, 2 * one, three, 4 * one, five, 2 * three};
    return *reinterpret_cast<const T*>(b.at[i / 7] + distance[i % 7]);
  }
};

/// A tile of cells in registers.
template <class T, int kVectors, int kCells>
struct Tile {
  using V = hn::Vec<Wide<T>>;
  V sum[kCells][kVectors];

  HWY_INLINE void clear() {
    FENESTRA_UNROLL
    for (int i = 0; i < kCells; ++i) {
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = hn::Zero(Wide<T>());
      }
    }
  }
  /// One tap in one plane: cells kStep apart, or `apart` where that is 0.
  template <int kStep>
  HWY_INLINE void add(const T* HWY_RESTRICT from,
                      const CellsApart<T>& apart,
                      const T* HWY_RESTRICT w) {
    const Wide<T> d;
    const auto bases = apart.template bases<kCells>(from);
    V weight[kVectors];
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      weight[v] = hn::LoadU(d, w + v * kLanes<T>);
    }
    FENESTRA_UNROLL
    for (int i = 0; i < kCells; ++i) {
      const V cell = hn::Set(d, kStep != 0 ? from[i * kStep] : apart.cell(bases, i));
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = hn::MulAdd(cell, weight[v], sum[i][v]);
      }
    }
  }
  HWY_INLINE void store(const DenseRow<T>& row, Index first) {
    const Wide<T> d;
    T* HWY_RESTRICT sums = row.sums + first * row.sums_step;
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Index count = row.channels - v * kLanes<T>;
      if (row.bias != nullptr) {
        const V bias = vectors::load_part(d, row.bias + v * kLanes<T>, count, T(0));
        FENESTRA_UNROLL
        for (int i = 0; i < kCells; ++i) {
          sum[i][v] = hn::Add(sum[i][v], bias);
        }
      }
      if (HWY_LIKELY(count >= kLanes<T>)) {
        FENESTRA_UNROLL
        for (int i = 0; i < kCells; ++i) {
          hn::StoreU(sum[i][v], d, sums + i * row.sums_step + v * kLanes<T>);
        }
      } else {
        FENESTRA_UNROLL
        for (int i = 0; i < kCells; ++i) {
          vectors::store_part(d, sum[i][v], sums + i * row.sums_step + v * kLanes<T>, count);
        }
      }
    }
  }
};

template <class T, int kVectors, int kCells, int kStep>
void add_taps(const DenseRow<T>& row, Index first) {
  Tile<T, kVectors, kCells> tile;
  tile.clear();
  const CellsApart<T> apart(row.step);
  const T* HWY_RESTRICT plane = row.source + first * row.step;
  const Index taps = row.taps;
  const Index* HWY_RESTRICT offset = row.offset;
  for (Index p = 0; p < row.planes; ++p, plane += row.plane_pitch) {
    const Index weight_plane = row.weight_plane != nullptr ? row.weight_plane[p] : p;
    const T* HWY_RESTRICT w = row.weights + weight_plane * taps * kVectors * kLanes<T>;
    for (Index t = 0; t < taps; ++t, w += kVectors * kLanes<T>) {
      tile.template add<kStep>(plane + offset[t], apart, w);
    }
  }
  tile.store(row, first);
}

/// Planes in order, one tap. Planes are far apart, so nothing else brings the lines of the next
/// tile.
template <class T, int kVectors, int kCells, int kStep>
void add_planes(const DenseRow<T>& row, Index first) {
  Tile<T, kVectors, kCells> tile;
  tile.clear();
  const CellsApart<T> apart(kStep);
  const T* HWY_RESTRICT from = row.source + first * kStep + row.offset[0];
  const T* HWY_RESTRICT w = row.weights;
  const Index pitch = row.plane_pitch;
  for (Index p = 0; p < row.planes; ++p, from += pitch, w += kVectors * kLanes<T>) {
    hwy::Prefetch(from + (2 * kCells - 1) * kStep);
    tile.template add<kStep>(from, apart, w);
  }
  tile.store(row, first);
}

/// Channels of cells that follow one another, one tap. Cells are read along each other, which no
/// prefetcher takes for a stream: what the next tile sees is asked for as it lies.
template <class T, int kVectors, int kCells>
void add_channels(const DenseRow<T>& row, Index first) {
  Tile<T, kVectors, kCells> tile;
  tile.clear();
  const CellsApart<T> apart(row.step);
  const T* HWY_RESTRICT from = row.source + first * row.step + row.offset[0];
  const T* HWY_RESTRICT next = from + kCells * row.step;
  const T* HWY_RESTRICT w = row.weights;
  for (Index t = 0; t < row.taps; ++t, ++from, next += kCells, w += kVectors * kLanes<T>) {
    hwy::Prefetch(next);
    tile.template add<0>(from, apart, w);
  }
  tile.store(row, first);
}

template <class T>
using TileFunction = void (*)(const DenseRow<T>&, Index);

template <class T, int kVectors, int... kCells>
TileFunction<T> pick(const DenseRow<T>& row, Index cells, std::integer_sequence<int, kCells...>) {
  constexpr TileFunction<T> taps[] = {&add_taps<T, kVectors, kCells + 1, 1>...};
  constexpr TileFunction<T> apart[] = {&add_taps<T, kVectors, kCells + 1, 0>...};
  constexpr TileFunction<T> planes[] = {&add_planes<T, kVectors, kCells + 1, 1>...};
  constexpr TileFunction<T> strided[] = {&add_planes<T, kVectors, kCells + 1, 2>...};
  constexpr TileFunction<T> channels[] = {&add_channels<T, kVectors, kCells + 1>...};
  if (row.side_by_side && row.taps > 0) {
    return channels[cells - 1];
  }
  if (row.taps != 1 || row.weight_plane != nullptr || row.step > 2) {
    return row.step == 1 ? taps[cells - 1] : apart[cells - 1];
  }
  return row.step == 1 ? planes[cells - 1] : strided[cells - 1];
}

template <class T, int kVectors>
void add_tiles(const DenseRow<T>& row) {
  constexpr int kMost = kAccumulators / kVectors;
  // Tiles of nearly equal width: 15 cells are 8 + 7, never 14 + 1.
  const Index tiles = (row.cells + kMost - 1) / kMost;
  for (Index i = 0; i < tiles; ++i) {
    const Index begin = i * row.cells / tiles;
    const Index end = (i + 1) * row.cells / tiles;
    pick<T, kVectors>(row, end - begin, std::make_integer_sequence<int, kMost>())(row, begin);
  }
}

template <class T>
void add_row(const DenseRow<T>& row) {
  row.vectors == 2 ? add_tiles<T, 2>(row) : add_tiles<T, 1>(row);
}

// --- transposes ---

/// Channels of the block that do not exist are read, and not stored; so are cells behind the last.
template <class T>
void store_run(const DenseRun<T>& run) {
  const Wide<T> d;
  for (Index cell = 0; cell < run.cells; cell += kLanes<T>) {
    const T* from = run.sums + cell * run.width;
    const auto put = [&](Index c, hn::Vec<Wide<T>> sums) HWY_ATTR {
      if (c >= run.channels) {
        return;
      }
      const T bias = run.bias != nullptr ? run.bias[c] + T(0) : T(0);
      vectors::store_part(d,
                          hn::Add(sums, hn::Set(d, bias)),
                          run.out + c * run.channel_stride + cell,
                          run.cells - cell);
    };
#if HWY_TARGET == HWY_SCALAR
    for (Index c = 0; c < run.channels; ++c) {
      put(c, hn::LoadU(d, from + c));
    }
#else
    for (Index c = 0; c < run.channels; c += vectors::kSide<T>) {
      vectors::transpose_columns(
          d, from + c, run.width, [&](Index i, hn::Vec<Wide<T>> sums) HWY_ATTR {
            put(c + i, sums);
          });
    }
#endif
  }
}

template <class T>
void pack_block(const DenseWeights<T>& w) {
  const Wide<T> d;
  const auto place = [&](Index c) { return w.place != nullptr ? w.place[c] : c * w.width; };
  for (Index row = 0; row < w.width; row += kLanes<T>) {
    const T* from = w.rows_data + row * w.row_stride;
    const Index count = std::clamp<Index>(w.rows - row, 0, kLanes<T>);
    T* dst = w.dst + row;
    Index c = 0;
    if (w.row_stride == 1) {
      for (; c < w.columns; ++c) {
        const auto column = vectors::load_part(d, from + c * w.column_stride, count, T(0));
        hn::StoreU(column, d, dst + place(c));
      }
      continue;
    }
#if HWY_TARGET != HWY_SCALAR
    if (count == kLanes<T> && w.columns >= vectors::kSide<T>) {
      for (; c < w.columns; c += vectors::kSide<T>) {
        // The last columns again rather than one by one.
        const Index first = std::min(c, w.columns - vectors::kSide<T>);
        vectors::transpose_columns(
            d, from + first, w.row_stride, [&](Index i, hn::Vec<Wide<T>> v) HWY_ATTR {
              hn::StoreU(v, d, dst + place(first + i));
            });
      }
      continue;
    }
#endif
    for (; c < w.columns; ++c) {
      T* to = dst + place(c);
      for (Index l = 0; l < kLanes<T>; ++l) {
        to[l] = l < count ? from[l * w.row_stride + c] : T(0);
      }
    }
  }
}

template <class T>
constexpr DenseLoops<T> kLoops{
    kLanes<T>, {kAccumulators, kAccumulators / 2}, &add_row<T>, &store_run<T>, &pack_block<T>};

const DenseLoops<float>* loops_f32() { return &kLoops<float>; }
const DenseLoops<double>* loops_f64() { return &kLoops<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::detail::dense_tiles
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {

namespace dense_tiles {

HWY_EXPORT(loops_f32);
HWY_EXPORT(loops_f64);

const DenseLoops<float>& chosen_f32() { return *HWY_DYNAMIC_DISPATCH(loops_f32)(); }
const DenseLoops<double>& chosen_f64() { return *HWY_DYNAMIC_DISPATCH(loops_f64)(); }

}  // namespace dense_tiles

template <>
const DenseLoops<float>& dense_loops() {
  return dense_tiles::chosen_f32();
}

template <>
const DenseLoops<double>& dense_loops() {
  return dense_tiles::chosen_f64();
}

}  // namespace fenestra::detail
#endif  // HWY_ONCE
