// The micro-kernels and the loops around them; see gemm.hpp.
//
// Five loops as in BLIS: blocks of C over the threads, blocks of depth, blocks of rows, then column
// panels outside and row panels inside, so that a panel of B stays in the first-level cache while
// the panels of A pass by from the second. The tile of accumulators is kRows x kVectors vectors.
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/kernels/gemm_plan.hpp>
#include <fenestra/kernels/simd.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/kernels/gemm.cpp"
#include <hwy/foreach_target.h>

#include <fenestra/kernels/transpose-inl.hpp>
#include <hwy/highway.h>

#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace fenestra::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using namespace fenestra::kernels::detail;

// Registers: 16 vectors hold 6 x 2 accumulators, 2 vectors of B and a broadcast of A; 32 hold 12
// x 2. Up to half as many rows get panels twice as wide: the accumulators must cover the latency of
// two multiply-adds per cycle.
#if HWY_TARGET == HWY_AVX3
constexpr int kMaxRows = 12;
#else
constexpr int kMaxRows = 6;
#endif
constexpr int kWideRows = kMaxRows / 2;
constexpr int kVectors = 2;
constexpr int kWideVectors = 4;

template <class T>
constexpr Index lanes_of() {
  return static_cast<Index>(hn::MaxLanes(hn::ScalableTag<T>()));
}

template <class T>
Index width_for(Index rows) {
  return lanes_of<T>() * (rows <= kWideRows ? kWideVectors : kVectors);
}

/// The way out for tiles with a bias or a ragged right edge: rows of `width` sums. In vectors: a
/// convolution over 16 channels spent three quarters of its time here, number by number.
template <class T>
HWY_NOINLINE void finish_tile(const Tile<T>& t,
                              Index rows,
                              Index width,
                              const T* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  constexpr Index kLanes = lanes_of<T>();
  for (Index i = 0; i < rows; ++i, sums += width) {
    T* HWY_RESTRICT c = t.c + i * t.c_stride;
    const T row_bias = t.row_bias != nullptr ? t.row_bias[i] : T(0);
    const auto row_biases = hn::Set(d, row_bias);
    Index j = 0;
    for (; j + kLanes <= t.columns; j += kLanes) {
      const auto before = t.accumulate ? hn::LoadU(d, c + j) : hn::Zero(d);
      const auto column_biases =
          t.column_bias != nullptr ? hn::LoadU(d, t.column_bias + j) : hn::Zero(d);
      const auto sum = hn::Add(hn::Add(before, hn::Load(d, sums + j)), row_biases);
      hn::StoreU(hn::Add(sum, column_biases), d, c + j);
    }
    for (; j < t.columns; ++j) {
      const T before = t.accumulate ? c[j] : T(0);
      const T column_bias = t.column_bias != nullptr ? t.column_bias[j] : T(0);
      c[j] = before + sums[j] + row_bias + column_bias;
    }
  }
}

template <class T, int kRows, int kVecs, bool kInPlace, bool kOffsets>
void tile_kernel(const Tile<T>& t) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr Index kLanes = lanes_of<T>();
  V acc[kRows][kVecs];
  FENESTRA_UNROLL
  for (int i = 0; i < kRows; ++i) {
    FENESTRA_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      acc[i][v] = hn::Zero(d);
    }
  }
  const T* HWY_RESTRICT b = t.b;
  const Index b_stride = t.b_stride;
  const Index* HWY_RESTRICT offsets = t.b_offsets;
  const T* HWY_RESTRICT a = t.a;
  const Index a_stride = t.a_stride;
  const T* const* table = t.rows;
  for (Index s = 0; s < t.segments; ++s) {
    const T* row[kRows];
    if constexpr (kInPlace) {
      FENESTRA_UNROLL
      for (int i = 0; i < kRows; ++i) {
        row[i] = table[i] + t.row_offset;
      }
      table += kRows;
    }
    const Index length = t.length;
    for (Index k = 0; k < length; ++k) {
      const T* HWY_RESTRICT from = b;
      if constexpr (kOffsets) {
        from = b + *offsets++;
      } else {
        b += b_stride;
      }
      V column[kVecs];
      FENESTRA_UNROLL
      for (int v = 0; v < kVecs; ++v) {
        column[v] = hn::LoadU(d, from + v * kLanes);
      }
      FENESTRA_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const V left = hn::Set(d, kInPlace ? row[i][k] : a[i]);
        FENESTRA_UNROLL
        for (int v = 0; v < kVecs; ++v) {
          acc[i][v] = hn::MulAdd(left, column[v], acc[i][v]);
        }
      }
      if constexpr (!kInPlace) {
        a += a_stride;
      }
    }
  }
  if (t.columns == kVecs * kLanes && t.row_bias == nullptr && t.column_bias == nullptr) {
    FENESTRA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      T* HWY_RESTRICT c = t.c + i * t.c_stride;
      FENESTRA_UNROLL
      for (int v = 0; v < kVecs; ++v) {
        const V before = t.accumulate ? hn::LoadU(d, c + v * kLanes) : hn::Zero(d);
        hn::StoreU(hn::Add(before, acc[i][v]), d, c + v * kLanes);
      }
    }
    return;
  }
  HWY_ALIGN T sums[kRows * kVecs * kLanes];
  FENESTRA_UNROLL
  for (int i = 0; i < kRows; ++i) {
    FENESTRA_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      hn::Store(acc[i][v], d, sums + (i * kVecs + v) * kLanes);
    }
  }
  finish_tile(t, kRows, kVecs * kLanes, sums);
}

template <class T>
using TileKernel = void (*)(const Tile<T>&);

template <class T, bool kInPlace, bool kOffsets, int kVecs, int... kRows>
TileKernel<T> pick(Index rows, std::integer_sequence<int, kRows...>) {
  constexpr TileKernel<T> table[] = {&tile_kernel<T, kRows + 1, kVecs, kInPlace, kOffsets>...};
  return table[rows - 1];
}

/// Rows of B by offset come in whole panels only.
template <class T, bool kInPlace>
TileKernel<T> kernel_for(Index rows, Index vectors, bool offsets) {
  using Few = std::make_integer_sequence<int, kWideRows>;
  using All = std::make_integer_sequence<int, kMaxRows>;
  if (offsets) {
    return vectors == kVectors ? pick<T, kInPlace, true, kVectors>(rows, All())
                               : pick<T, kInPlace, true, kWideVectors>(rows, Few());
  }
  switch (vectors) {
    case 1: return pick<T, kInPlace, false, 1>(rows, All());
    case 2: return pick<T, kInPlace, false, 2>(rows, All());
    default: return pick<T, kInPlace, false, kWideVectors>(rows, Few());
  }
}

/// One block of C, whole depth.
template <class T>
class Block {
 public:
  Block(const Job<T>& job, Index panel0, Index panel1, Index j0, Index j1)
      : job_(job),
        panel0_(panel0),
        panel1_(panel1),
        row0_(job.panels.begin(panel0)),
        rows_(job.panels.begin(panel1) - row0_),
        j0_(j0),
        columns_(j1 - j0),
        width_(width_for<T>(job.size.rows)),
        b_in_place_(job.b.packed == nullptr && job.b.columns == nullptr && job.b.line_stride == 1 &&
                    panel1 - panel0 <= 2),
        b_streamed_(job.b.packed == nullptr && job.b.columns != nullptr &&
                    job.a.access != LeftAccess::packed_block &&
                    rows_ * (job.cuts.size / job.cuts.segment + 1) <= kMostStarts) {
    const Index padded = ceil_of(columns_, width_) * width_;
    c_stride_ = job.c.row_stride;
    if (job.c.sink != nullptr) {
      c_stride_ = padded;
      c_ = frame_.take<T>(rows_ * padded);
    } else {
      const Index period = job.c.period > 0 ? job.c.period : job.size.columns;
      c_ = job.c.data + row0_ * c_stride_ + j0 / period * job.c.period_stride + j0 % period;
    }
    if (job.b.packed != nullptr) {
      return;
    }
    const Index depth = std::max<Index>(job.cuts.size, 1);
    b_ = frame_.take<T>((b_streamed_ ? width_ : padded) * depth);
  }

  void run() {
    const Index blocks = std::max<Index>(job_.cuts.count(), 1);
    for (Index block = 0; block < blocks; ++block) {
      std::tie(k0_, k1_) = job_.cuts.block(block);
      first_ = block == 0;
      last_ = block + 1 == blocks;
      ScratchFrame frame;
      if (job_.b.packed == nullptr && job_.b.columns != nullptr) {
        source_ = &job_.b.columns->open({j0_, columns_, k0_, k1_}, frame);
      }
      if (!b_streamed_ && job_.b.packed == nullptr) {
        pack_columns(b_in_place_ ? columns_ / width_ * width_ : 0, columns_, b_);
      }
      for (Index chunk0 = panel0_; chunk0 < panel1_;) {
        const Index chunk1 = b_streamed_ ? panel1_ : end_of_chunk(chunk0);
        ScratchFrame rows;
        prepare_rows(chunk0, chunk1, rows);
        for (Index j = 0; j < columns_; j += width_) {
          multiply(chunk0, chunk1, j);
        }
        if (last_ && job_.c.finisher != nullptr && job_.c.sink == nullptr) {
          for (Index i = job_.panels.begin(chunk0); i < job_.panels.begin(chunk1); ++i) {
            job_.c.finisher->finish(c_ + (i - row0_) * c_stride_, columns_);
          }
        }
        chunk0 = chunk1;
      }
    }
    if (job_.c.sink != nullptr) {
      job_.c.sink->store({row0_, row0_ + rows_, j0_, j0_ + columns_}, c_, c_stride_);
    }
  }

 private:
  Index depth() const { return k1_ - k0_; }
  Index height(Index panel) const {
    return job_.panels.begin(panel + 1) - job_.panels.begin(panel);
  }

  Index end_of_chunk(Index chunk0) const {
    Index chunk1 = chunk0 + 1;
    while (chunk1 < panel1_ &&
           job_.panels.begin(chunk1 + 1) - job_.panels.begin(chunk0) <= kRowChunk) {
      ++chunk1;
    }
    return chunk1;
  }

  /// Columns [begin, end) of the block into panels; `begin` lies between panels.
  void pack_columns(Index begin, Index end, T* panels) {
    if (begin == end) {
      return;
    }
    const PanelRange range{j0_ + begin, end - begin, k0_, k1_};
    T* dst = b_streamed_ ? panels : panels + begin * depth();
    if (source_ != nullptr) {
      source_->pack(range, width_, dst);
    } else {
      const StridedOperand<T> matrix{job_.b.data, job_.b.line_stride, job_.b.depth_stride};
      pack_strided(matrix, range, width_, dst);
    }
  }

  /// Brings the rows of some panels for the depths at hand: their starts, or a packed copy.
  void prepare_rows(Index chunk0, Index chunk1, ScratchFrame& frame) {
    const LeftOperand<T>& a = job_.a;
    chunk_row_ = job_.panels.begin(chunk0);
    const Index rows = job_.panels.begin(chunk1) - chunk_row_;
    segment0_ = k0_ / job_.cuts.segment;
    segments_ = job_.cuts.per_segment > 0 ? 1 : std::max<Index>(depth() / job_.cuts.segment, 1);
    if (a.access == LeftAccess::rows) {
      starts_ = frame.take<const T*>(rows * segments_);
    } else if (a.access == LeftAccess::packed_block) {
      a_ = frame.take<T>(rows * depth());
    } else {
      return;
    }
    for (Index p = chunk0; p < chunk1; ++p) {
      const Index i0 = job_.panels.begin(p);
      const Index at = i0 - chunk_row_;
      if (a.access == LeftAccess::packed_block) {
        a.panels->pack({i0, height(p), k0_, k1_}, height(p), a_ + at * depth());
      } else if (a.rows != nullptr) {
        a.rows->starts(i0, height(p), segment0_, segment0_ + segments_, starts_ + at * segments_);
      } else {
        for (Index i = 0; i < height(p); ++i) {
          starts_[at + i] = a.data + (i0 + i) * a.row_stride;
        }
      }
    }
  }

  /// All row panels of a chunk against one column panel.
  void multiply(Index chunk0, Index chunk1, Index j) {
    const LeftOperand<T>& a = job_.a;
    const Product<T>& c = job_.c;
    Tile<T> tile;
    tile.columns = std::min(width_, columns_ - j);
    if (job_.b.packed != nullptr) {
      tile.b =
          job_.b.packed + k0_ * ceil_of(job_.size.columns, width_) * width_ + (j0_ + j) * depth();
      tile.b_stride = width_;
    } else if (b_in_place_ && tile.columns == width_) {
      tile.b = job_.b.data + k0_ * job_.b.depth_stride + j0_ + j;
      tile.b_stride = job_.b.depth_stride;
    } else if (b_streamed_) {
      if (tile.columns == width_) {
        tile.b = source_->find({j0_ + j, width_, k0_, k1_}, &tile.b_offsets);
      }
      if (tile.b == nullptr) {
        pack_columns(j, j + tile.columns, b_);
        tile.b = b_;
        tile.b_offsets = nullptr;
      }
      tile.b_stride = width_;
    } else {
      tile.b = b_ + j * depth();
      tile.b_stride = width_;
    }
    const bool offsets = tile.b_offsets != nullptr;
    tile.accumulate = !first_ || (c.accumulate && c.sink == nullptr);
    tile.column_bias = last_ && c.column_bias != nullptr ? c.column_bias + j0_ + j : nullptr;
    tile.c_stride = c_stride_;
    const Index vectors = ceil_of(tile.columns, lanes_of<T>());
    for (Index p = chunk0; p < chunk1; ++p) {
      const Index i0 = job_.panels.begin(p);
      tile.c = c_ + (i0 - row0_) * c_stride_ + j;
      tile.row_bias = last_ && c.row_bias != nullptr ? c.row_bias + i0 : nullptr;
      if (a.access == LeftAccess::rows) {
        tile.rows = starts_ + (i0 - chunk_row_) * segments_;
        tile.segments = segments_;
        tile.length = depth() / segments_;
        tile.row_offset = k0_ - segment0_ * job_.cuts.segment;
        kernel_for<T, true>(height(p), vectors, offsets)(tile);
        continue;
      }
      tile.length = depth();
      tile.a_stride = height(p);
      if (a.access == LeftAccess::lines) {
        tile.a = a.data + i0 + k0_ * a.depth_stride;
        tile.a_stride = a.depth_stride;
      } else if (a.access == LeftAccess::packed) {
        tile.a = job_.shared_a + k0_ * job_.size.rows + i0 * depth();
      } else {
        tile.a = a_ + (i0 - chunk_row_) * depth();
      }
      kernel_for<T, false>(height(p), vectors, offsets)(tile);
    }
  }

  const Job<T>& job_;
  ScratchFrame frame_;
  Index panel0_;
  Index panel1_;
  Index row0_;
  Index rows_;
  Index j0_;
  Index columns_;
  Index width_;
  bool b_in_place_;  // one or two row panels read B so rarely that a copy does not pay
  bool b_streamed_;  // a panel of B is packed, used by all rows and dropped; it never leaves the
                     // first-level cache, while A comes from the second at 4 bytes per cycle
  T* c_ = nullptr;
  Index c_stride_ = 0;
  const ColumnSource<T>* source_ = nullptr;  // of the block of depth at hand
  T* b_ = nullptr;
  T* a_ = nullptr;
  const T** starts_ = nullptr;
  Index chunk_row_ = 0;
  Index k0_ = 0;
  Index k1_ = 0;
  Index segment0_ = 0;
  Index segments_ = 1;
  bool first_ = true;
  bool last_ = true;
};

template <class T>
void run_block(const Job<T>& job, Index panel0, Index panel1, Index j0, Index j1) {
  Block<T>(job, panel0, panel1, j0, j1).run();
}

template <class T>
void pack_matrix(const StridedOperand<T>& m, const PanelRange& range, Index width, T* dst) {
  constexpr Index kLanes = lanes_of<T>();
  const hn::ScalableTag<T> d;
  const Index depth = range.k1 - range.k0;
  for (Index line = 0; line < range.count; line += width, dst += width * depth) {
    const Index count = std::min(width, range.count - line);
    const T* src = m.data + (range.first + line) * m.line_stride + range.k0 * m.depth_stride;
    if (m.line_stride == 1 && count == width && width % kLanes == 0) {
      T* HWY_RESTRICT out = dst;
      for (Index k = 0; k < depth; ++k, src += m.depth_stride, out += width) {
        for (Index v = 0; v < width; v += kLanes) {
          hn::StoreU(hn::LoadU(d, src + v), d, out + v);
        }
      }
      continue;
    }
    if (m.depth_stride == 1) {
      transpose_block(src, m.line_stride, count, depth, dst, width);
    } else {
      for (Index k = 0; k < depth; ++k) {
        for (Index i = 0; i < count; ++i) {
          dst[k * width + i] = src[k * m.depth_stride + i * m.line_stride];
        }
      }
    }
    for (Index k = 0; k < depth && count < width; ++k) {
      std::fill(dst + k * width + count, dst + (k + 1) * width, T(0));
    }
  }
}

void run_block_f32(const Job<float>& job, Index p0, Index p1, Index j0, Index j1) {
  run_block(job, p0, p1, j0, j1);
}
void run_block_f64(const Job<double>& job, Index p0, Index p1, Index j0, Index j1) {
  run_block(job, p0, p1, j0, j1);
}
void pack_matrix_f32(const StridedOperand<float>& m,
                     const PanelRange& range,
                     Index width,
                     float* dst) {
  pack_matrix(m, range, width, dst);
}
void pack_matrix_f64(const StridedOperand<double>& m,
                     const PanelRange& range,
                     Index width,
                     double* dst) {
  pack_matrix(m, range, width, dst);
}
void transpose_f32(
    const float* src, Index src_stride, Index rows, Index columns, float* dst, Index dst_stride) {
  transpose_block(src, src_stride, rows, columns, dst, dst_stride);
}
void transpose_f64(
    const double* src, Index src_stride, Index rows, Index columns, double* dst, Index dst_stride) {
  transpose_block(src, src_stride, rows, columns, dst, dst_stride);
}
Index max_rows() { return kMaxRows; }
Index width_f32(Index rows) { return width_for<float>(rows); }
Index width_f64(Index rows) { return width_for<double>(rows); }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::kernels {

using namespace fenestra::kernels::detail;

HWY_EXPORT(run_block_f32);
HWY_EXPORT(run_block_f64);
HWY_EXPORT(pack_matrix_f32);
HWY_EXPORT(pack_matrix_f64);
HWY_EXPORT(transpose_f32);
HWY_EXPORT(transpose_f64);
HWY_EXPORT(max_rows);
HWY_EXPORT(width_f32);
HWY_EXPORT(width_f64);

namespace {

template <class T>
auto block_function() {
  if constexpr (sizeof(T) == sizeof(float)) {
    return HWY_DYNAMIC_DISPATCH(run_block_f32);
  } else {
    return HWY_DYNAMIC_DISPATCH(run_block_f64);
  }
}

template <class T>
void run_job(Job<T>& job) {
  const GemmSize& size = job.size;
  const LeftOperand<T>& a = job.a;
  job.panels = row_panels(size.rows);
  const bool serial = size.rows * size.columns * size.depth < kSerialWork;
  ScratchFrame frame;
  if (a.access == LeftAccess::packed && a.packed != nullptr) {
    job.shared_a = a.packed;
  } else if (a.access == LeftAccess::packed) {
    T* shared = frame.take<T>(size.rows * size.depth);
    job.shared_a = shared;
    const auto pack = [&](Index begin, Index end) {
      pack_rows(*a.panels, job.panels, job.cuts, begin, end, shared);
    };
    if (serial) {
      pack(0, job.panels.count);
    } else {
      parallel_for(job.panels.count, 4, pack);
    }
  }
  const BlockGrid grid = divide(job);
  const auto run = block_function<T>();
  const auto body = [&](Index begin, Index end) {
    for (Index task = begin; task < end; ++task) {
      // Neighbouring tasks share their columns, and with them what B was packed from.
      const Index row_block = task % grid.row_blocks;
      const Index column = task / grid.row_blocks;
      const Index j0 =
          column / grid.per_period * grid.period + column % grid.per_period * grid.columns;
      const Index end_of_period = (column / grid.per_period + 1) * grid.period;
      run(job,
          row_block * job.panels.count / grid.row_blocks,
          (row_block + 1) * job.panels.count / grid.row_blocks,
          j0,
          std::min(j0 + grid.columns, end_of_period));
    }
  };
  if (serial) {
    body(0, grid.total());
  } else {
    parallel_for(grid.total(), 1, body);
  }
}

}  // namespace

RowPanels detail::row_panels(Index rows) noexcept {
  return {rows, ceil_of(rows, HWY_DYNAMIC_DISPATCH(max_rows)())};
}

template <class T>
Index panel_width(Index rows) noexcept {
  if constexpr (sizeof(T) == sizeof(float)) {
    return HWY_DYNAMIC_DISPATCH(width_f32)(rows);
  } else {
    return HWY_DYNAMIC_DISPATCH(width_f64)(rows);
  }
}

template <class T>
void gemm(const GemmSize& size,
          const LeftOperand<T>& a,
          const RightOperand<T>& b,
          const Product<T>& c) {
  if (size.rows == 0 || size.columns == 0) {
    return;
  }
  Job<T> job{size, a, b, c, depth_cuts(size, a), {}, nullptr};
  if (size.depth == 0) {
    // There is nothing to read, but zeros and biases to write.
    static constexpr T kNothing[1] = {};
    job.a = {.access = LeftAccess::lines, .data = kNothing};
    job.b = {.data = kNothing};
  }
  run_job(job);
}

template <class T>
void pack_strided(const StridedOperand<T>& matrix, const PanelRange& range, Index width, T* dst) {
  if constexpr (sizeof(T) == sizeof(float)) {
    HWY_DYNAMIC_DISPATCH(pack_matrix_f32)(matrix, range, width, dst);
  } else {
    HWY_DYNAMIC_DISPATCH(pack_matrix_f64)(matrix, range, width, dst);
  }
}

template <class T>
void transpose(
    const T* src, Index src_stride, Index rows, Index columns, T* dst, Index dst_stride) noexcept {
  if constexpr (sizeof(T) == sizeof(float)) {
    HWY_DYNAMIC_DISPATCH(transpose_f32)(src, src_stride, rows, columns, dst, dst_stride);
  } else {
    HWY_DYNAMIC_DISPATCH(transpose_f64)(src, src_stride, rows, columns, dst, dst_stride);
  }
}

#define FENESTRA_INSTANTIATE_GEMM(T)                                                      \
  template Index panel_width<T>(Index) noexcept;                                          \
  template void gemm(                                                                     \
      const GemmSize&, const LeftOperand<T>&, const RightOperand<T>&, const Product<T>&); \
  template void pack_strided(const StridedOperand<T>&, const PanelRange&, Index, T*);     \
  template void transpose(const T*, Index, Index, Index, T*, Index) noexcept

FENESTRA_INSTANTIATE_GEMM(float);
FENESTRA_INSTANTIATE_GEMM(double);
#undef FENESTRA_INSTANTIATE_GEMM

}  // namespace fenestra::kernels
#endif  // HWY_ONCE
