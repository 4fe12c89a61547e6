// The vector loops of depthwise convolutions on planes, for every instruction set; see
// planes_tiles.hpp.
#include <fenestra/kernels/simd.hpp>
#include <fenestra/ops/conv/kernels/planes_tiles.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/conv/kernels/planes_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <fenestra/kernels/vectors-inl.hpp>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace fenestra::detail::planes_tiles {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace vectors = fenestra::kernels::HWY_NAMESPACE;
using vectors::kLanes;
using vectors::Wide;

// Target rows of a tile. Four rows of three taps load a vector for two multiply-adds; eight would
// save a fifth of the loads and leave most planes of a network with a last tile half used.
constexpr int kRows = 4;

// --- sheets ---

/// The cells of a row, `step` columns apart: dst of phase p at dst + p * phase_pitch.
template <class T>
void deal_row(const T* HWY_RESTRICT source, const SheetFill<T>& f, T* HWY_RESTRICT row) {
  const Wide<T> d;
  const Index first = f.sheet_column;
  if (f.step == 1) {
    for (Index i = 0; i < f.columns; i += kLanes<T>) {
      const Index count = f.columns - i;
      vectors::store_part(
          d, vectors::load_part(d, source + i, count, T(0)), row + first + i, count);
    }
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (f.step == 2) {
    constexpr Dealing kPairs{2};
    T* HWY_RESTRICT even = row + kPairs.offset(first, f.phase_pitch);
    T* HWY_RESTRICT odd = row + kPairs.offset(first + 1, f.phase_pitch);
    for (Index i = 0; 2 * i < f.columns; i += kLanes<T>) {
      const Index count = f.columns - 2 * i;
      const auto low = vectors::load_part(d, source + 2 * i, count, T(0));
      const auto high =
          count > kLanes<T>
              ? vectors::load_part(d, source + 2 * i + kLanes<T>, count - kLanes<T>, T(0))
              : hn::Zero(d);
      vectors::store_part(d, hn::ConcatEven(d, high, low), even + i, (count + 1) / 2);
      vectors::store_part(d, hn::ConcatOdd(d, high, low), odd + i, count / 2);
    }
    return;
  }
#endif
  for (Index i = 0; i < f.columns; ++i) {
    row[f.dealing().offset(first + i, f.phase_pitch)] = source[i];
  }
}

/// Zeros where the cells of a row would be.
template <class T>
void clear_row(const SheetFill<T>& f, T* HWY_RESTRICT row) {
  const Wide<T> d;
  for (Index i = 0; i < f.pitch(); i += kLanes<T>) {
    hn::StoreU(hn::Zero(d), d, row + i);
  }
}

template <class T>
void fill_sheet(const SheetFill<T>& f) {
  T* row = f.sheet;
  for (Index r = 0; r < f.rows; ++r, row += f.pitch()) {
    const Index source_row = f.first_row + r;
    if (source_row >= 0 && source_row < f.source_rows) {
      deal_row(f.plane + source_row * f.source_width + f.source_column, f, row);
    } else {
      clear_row(f, row);
    }
  }
}

// --- places ---

/// Calls f(q, count) for vectors that cover [0, width): where a row has a whole vector the last one
/// goes back and covers some cells again, else `count` cells of one are meant.
template <class T, class F>
HWY_INLINE void for_each_vector(Index width, F&& f) {
  if (width < kLanes<T>) {
    f(Index{0}, width);
    return;
  }
  for (Index q = 0; q < width; q += kLanes<T>) {
    f(std::min(q, width - kLanes<T>), kLanes<T>);
  }
}

/// kTaps row taps on neighbouring sheet rows, kStep sheet rows from a target row to the next: a
/// vector that is loaded serves every row of the tile that sees it.
template <class T, int kTaps, int kStep>
void run_rectangle(const PlaneRun<T>& p) {
  const Wide<T> d;
  using V = hn::Vec<Wide<T>>;
  for (Index next = 0; next < p.rows; next += kRows) {
    const Index row = std::min<Index>(next, p.rows - kRows);
    const T* HWY_RESTRICT sheet = p.sheet + row * kStep * p.pitch;
    T* HWY_RESTRICT out = p.out + row * p.out_pitch;
    for_each_vector<T>(p.width, [&](Index q, Index count) HWY_ATTR {
      V acc[kRows];
      FENESTRA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        acc[r] = hn::Set(d, p.bias);
      }
      const PlaneTap* tap = p.taps.tap;
      for (Index c = 0; c < p.taps.columns; ++c, tap += kTaps) {
        const T* HWY_RESTRICT from = sheet + tap->source + q;
        const T* HWY_RESTRICT w = p.weights + tap->weight;
        V weight[kTaps];
        FENESTRA_UNROLL
        for (int t = 0; t < kTaps; ++t) {
          weight[t] = hn::Set(d, w[t * p.taps.weight_step]);
        }
        FENESTRA_UNROLL
        for (int i = 0; i < (kRows - 1) * kStep + kTaps; ++i) {
          V x = hn::LoadU(d, from + i * p.pitch);
          vectors::in_register(x);
          FENESTRA_UNROLL
          for (int r = 0; r < kRows; ++r) {
            if (i >= r * kStep && i - r * kStep < kTaps) {
              acc[r] = hn::MulAdd(weight[i - r * kStep], x, acc[r]);
            }
          }
        }
      }
      FENESTRA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        vectors::store_part(d, acc[r], out + r * p.out_pitch + q, count);
      }
    });
  }
}

/// Any taps, kHeight rows of kVectors vectors.
template <class T, int kHeight, int kVectors>
HWY_INLINE void run_tile(const PlaneRun<T>& p, Index row, Index q) {
  const Wide<T> d;
  using V = hn::Vec<Wide<T>>;
  const Index row_pitch = p.step * p.pitch;
  const T* HWY_RESTRICT sheet = p.sheet + row * row_pitch + q;
  V acc[kHeight][kVectors];
  FENESTRA_UNROLL
  for (int r = 0; r < kHeight; ++r) {
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = hn::Set(d, p.bias);
    }
  }
  for (const PlaneTap* tap = p.taps.tap; tap < p.taps.tap + p.taps.count; ++tap) {
    const V weight = hn::Set(d, p.weights[tap->weight]);
    FENESTRA_UNROLL
    for (int r = 0; r < kHeight; ++r) {
      const T* HWY_RESTRICT from = sheet + r * row_pitch + tap->source;
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        acc[r][v] = hn::MulAdd(weight, hn::LoadU(d, from + v * kLanes<T>), acc[r][v]);
      }
    }
  }
  FENESTRA_UNROLL
  for (int r = 0; r < kHeight; ++r) {
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      vectors::store_part(d,
                          acc[r][v],
                          p.out + (row + r) * p.out_pitch + q + v * kLanes<T>,
                          p.width - q - v * kLanes<T>);
    }
  }
}

template <class T>
void run_any(const PlaneRun<T>& p) {
  constexpr int kVectors = 4;
  if (p.rows >= kRows) {
    for (Index next = 0; next < p.rows; next += kRows) {
      for_each_vector<T>(p.width, [&](Index q, Index) HWY_ATTR {
        run_tile<T, kRows, 1>(p, std::min<Index>(next, p.rows - kRows), q);
      });
    }
    return;
  }
  for (Index row = 0; row < p.rows; ++row) {
    Index q = 0;
    for (; q + kVectors * kLanes<T> <= p.width; q += kVectors * kLanes<T>) {
      run_tile<T, 1, kVectors>(p, row, q);
    }
    for (; q < p.width; q += kLanes<T>) {
      run_tile<T, 1, 1>(p, row, q);
    }
  }
}

template <class T>
void run_places(const PlaneRun<T>& p) {
  if (p.rows < kRows || p.step > 2) {
    run_any(p);
    return;
  }
  const bool close = p.step == 1;
  switch (p.taps.rows) {
    case 2: close ? run_rectangle<T, 2, 1>(p) : run_any(p); return;
    case 3: close ? run_rectangle<T, 3, 1>(p) : run_rectangle<T, 3, 2>(p); return;
    case 4: close ? run_rectangle<T, 4, 1>(p) : run_any(p); return;
    case 5: close ? run_rectangle<T, 5, 1>(p) : run_rectangle<T, 5, 2>(p); return;
    case 7: close ? run_rectangle<T, 7, 1>(p) : run_rectangle<T, 7, 2>(p); return;
    default: run_any(p);
  }
}

template <class T>
void join(const T* HWY_RESTRICT from, Index pitch, Index phases, Index count, T* HWY_RESTRICT to) {
#if HWY_TARGET != HWY_SCALAR
  if (phases == 2) {
    const Wide<T> d;
    Index i = 0;
    for (; 2 * (i + kLanes<T>) <= count; i += kLanes<T>) {
      hn::StoreInterleaved2(hn::LoadU(d, from + i), hn::LoadU(d, from + pitch + i), d, to + 2 * i);
    }
    if (2 * i < count) {
      // Sheets and rows of places have a vector behind them: whole loads are safe, stores are not.
      HWY_ALIGN T pairs[2 * kLanes<T>];
      hn::StoreInterleaved2(hn::LoadU(d, from + i), hn::LoadU(d, from + pitch + i), d, pairs);
      const Index rest = count - 2 * i;
      vectors::store_part(d, hn::Load(d, pairs), to + 2 * i, rest);
      if (rest > kLanes<T>) {
        vectors::store_part(
            d, hn::Load(d, pairs + kLanes<T>), to + 2 * i + kLanes<T>, rest - kLanes<T>);
      }
    }
    return;
  }
#endif
  for (Index i = 0; i < count; ++i) {
    to[i] = from[i % phases * pitch + i / phases];
  }
}

// --- weight gradient ---

/// Which lanes of a vector of columns hold cells of y. The others are zeros in both factors: what
/// lies there may be infinite.
template <class T, bool kPart>
class Cells {
 public:
  HWY_INLINE Cells(const PlaneDots<T>& p, Index q)
      : count_(p.width - q),
        mask_(hn::FirstN(Wide<T>(), static_cast<std::size_t>(std::min(count_, kLanes<T>)))),
        y_end_(p.y_end) {}

  /// Sheets have a vector behind them.
  HWY_INLINE hn::Vec<Wide<T>> of_sheet(const T* HWY_RESTRICT from) const {
    const auto whole = hn::LoadU(Wide<T>(), from);
    return kPart ? hn::IfThenElseZero(mask_, whole) : whole;
  }
  /// Behind a row of y is the next one, behind the last of all rows perhaps no memory. Loads of a
  /// part go through memory on AVX2: with them alone 3x3 of 32 channels @28 takes 78 us there, the
  /// direct kernel 27.
  HWY_INLINE hn::Vec<Wide<T>> of_y(const T* HWY_RESTRICT from) const {
    if (kPart && HWY_UNLIKELY(y_end_ - from < kLanes<T>)) {
      return vectors::load_part(Wide<T>(), from, count_, T(0));
    }
    return of_sheet(from);
  }

 private:
  Index count_;
  hn::Mask<Wide<T>> mask_;
  const T* y_end_;
};

/// One vector of columns of y, kHeight rows from `row` on: every vector of the sheet that is loaded
/// meets all rows of y that see it.
template <class T, int kTaps, int kStep, int kColumns, int kHeight, bool kPart>
HWY_INLINE void add_rows(const PlaneDots<T>& p,
                         const T* const (&from)[kColumns],
                         const Cells<T, kPart>& cells,
                         Index row,
                         Index q,
                         hn::Vec<Wide<T>> (&acc)[kColumns][kTaps]) {
  using V = hn::Vec<Wide<T>>;
  V y[kHeight];
  FENESTRA_UNROLL
  for (int r = 0; r < kHeight; ++r) {
    y[r] = cells.of_y(p.y + (row + r) * p.width + q);
  }
  FENESTRA_UNROLL
  for (int i = 0; i < (kHeight - 1) * kStep + kTaps; ++i) {
    FENESTRA_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      V x = cells.of_sheet(from[c] + (row * kStep + i) * p.pitch + q);
      vectors::in_register(x);
      FENESTRA_UNROLL
      for (int r = 0; r < kHeight; ++r) {
        if (i >= r * kStep && i - r * kStep < kTaps) {
          acc[c][i - r * kStep] = hn::MulAdd(y[r], x, acc[c][i - r * kStep]);
        }
      }
    }
  }
}

template <class T, int kTaps, int kStep, int kColumns, bool kPart>
HWY_INLINE void add_column(const PlaneDots<T>& p, Index column, Index q) {
  const Wide<T> d;
  const PlaneTap* tap = p.taps.tap + column * kTaps;
  T* HWY_RESTRICT sums = p.sums + column * kTaps * kLanes<T>;
  hn::Vec<Wide<T>> acc[kColumns][kTaps];
  const T* from[kColumns];
  FENESTRA_UNROLL
  for (int c = 0; c < kColumns; ++c) {
    from[c] = p.sheet + tap[c * kTaps].source;
    FENESTRA_UNROLL
    for (int t = 0; t < kTaps; ++t) {
      acc[c][t] = hn::LoadU(d, sums + (c * kTaps + t) * kLanes<T>);
    }
  }
  const Cells<T, kPart> cells(p, q);
  Index row = 0;
  for (; row + kRows <= p.rows; row += kRows) {
    add_rows<T, kTaps, kStep, kColumns, kRows, kPart>(p, from, cells, row, q, acc);
  }
  for (; row < p.rows; ++row) {
    add_rows<T, kTaps, kStep, kColumns, 1, kPart>(p, from, cells, row, q, acc);
  }
  FENESTRA_UNROLL
  for (int c = 0; c < kColumns; ++c) {
    FENESTRA_UNROLL
    for (int t = 0; t < kTaps; ++t) {
      hn::StoreU(acc[c][t], d, sums + (c * kTaps + t) * kLanes<T>);
    }
  }
}

template <class T, int kTaps, int kStep, int kColumns>
void add_columns(const PlaneDots<T>& p, Index column) {
  Index q = 0;
  for (; q + kLanes<T> <= p.width; q += kLanes<T>) {
    add_column<T, kTaps, kStep, kColumns, false>(p, column, q);
  }
  if (q < p.width) {
    add_column<T, kTaps, kStep, kColumns, true>(p, column, q);
  }
}

/// Columns together until there are enough sums to hide the latency of a multiply-add: eight.
template <class T, int kTaps, int kStep>
void add_rectangle(const PlaneDots<T>& p) {
  constexpr int kColumns = kTaps == 3 ? 3 : kTaps == 5 ? 2 : 1;
  Index column = 0;
  for (; column + kColumns <= p.taps.columns; column += kColumns) {
    add_columns<T, kTaps, kStep, kColumns>(p, column);
  }
  if constexpr (kColumns > 1) {
    for (; column < p.taps.columns; ++column) {
      add_columns<T, kTaps, kStep, 1>(p, column);
    }
  }
}

template <class T, int kTaps, bool kPart>
HWY_INLINE void add_taps(const PlaneDots<T>& p, Index first, Index q) {
  const Wide<T> d;
  using V = hn::Vec<Wide<T>>;
  V acc[kTaps];
  const T* from[kTaps];
  FENESTRA_UNROLL
  for (int t = 0; t < kTaps; ++t) {
    acc[t] = hn::LoadU(d, p.sums + (first + t) * kLanes<T>);
    from[t] = p.sheet + p.taps.tap[first + t].source + q;
  }
  const Cells<T, kPart> cells(p, q);
  for (Index r = 0; r < p.rows; ++r) {
    const V y = cells.of_y(p.y + r * p.width + q);
    FENESTRA_UNROLL
    for (int t = 0; t < kTaps; ++t) {
      const V x = cells.of_sheet(from[t] + r * p.step * p.pitch);
      acc[t] = hn::MulAdd(y, x, acc[t]);
    }
  }
  FENESTRA_UNROLL
  for (int t = 0; t < kTaps; ++t) {
    hn::StoreU(acc[t], d, p.sums + (first + t) * kLanes<T>);
  }
}

template <class T, int kTaps>
void add_some(const PlaneDots<T>& p, Index first) {
  Index q = 0;
  for (; q + kLanes<T> <= p.width; q += kLanes<T>) {
    add_taps<T, kTaps, false>(p, first, q);
  }
  if (q < p.width) {
    add_taps<T, kTaps, true>(p, first, q);
  }
}

template <class T>
void add_any(const PlaneDots<T>& p) {
  constexpr int kTogether = 6;
  Index first = 0;
  for (; first + kTogether <= p.taps.count; first += kTogether) {
    add_some<T, kTogether>(p, first);
  }
  for (; first < p.taps.count; ++first) {
    add_some<T, 1>(p, first);
  }
}

template <class T>
void add_dots(const PlaneDots<T>& p) {
  const bool close = p.step == 1;
  if (p.step > 2) {
    add_any(p);
    return;
  }
  switch (p.taps.rows) {
    case 3: close ? add_rectangle<T, 3, 1>(p) : add_rectangle<T, 3, 2>(p); return;
    case 5: close ? add_rectangle<T, 5, 1>(p) : add_rectangle<T, 5, 2>(p); return;
    case 7: close ? add_rectangle<T, 7, 1>(p) : add_rectangle<T, 7, 2>(p); return;
    default: add_any(p);
  }
}

template <class T>
T sum_of_lanes(const T* lanes) {
  const Wide<T> d;
  return hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, lanes)));
}

template <class T>
constexpr PlaneLoops<T> kLoops{
    kLanes<T>, &fill_sheet<T>, &run_places<T>, &add_dots<T>, &join<T>, &sum_of_lanes<T>};

const PlaneLoops<float>* loops_f32() { return &kLoops<float>; }
const PlaneLoops<double>* loops_f64() { return &kLoops<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::detail::planes_tiles
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {
namespace planes_tiles {

HWY_EXPORT(loops_f32);
HWY_EXPORT(loops_f64);

const PlaneLoops<float>& chosen_f32() { return *HWY_DYNAMIC_DISPATCH(loops_f32)(); }
const PlaneLoops<double>& chosen_f64() { return *HWY_DYNAMIC_DISPATCH(loops_f64)(); }

}  // namespace planes_tiles

template <>
const PlaneLoops<float>& plane_loops() {
  return planes_tiles::chosen_f32();
}

template <>
const PlaneLoops<double>& plane_loops() {
  return planes_tiles::chosen_f64();
}

}  // namespace fenestra::detail
#endif  // HWY_ONCE
