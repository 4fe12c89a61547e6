// The algorithm "rows" for smooth max pooling: forward, its derivatives by beta, and the two linear
// maps by its weights, which are computed again from x instead of being stored.
//
// A row of windows is a vector loop over runs of the rows it looks at, taken apart into phases (see
// links.hpp); cells that do not count are -inf (for beta > 0), whose exponential is 0. Windows
// whose extreme is not finite, or that hold a NaN, are left to plain code that follows the
// specification.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/pool/kernels/call.hpp>
#include <fenestra/ops/pool/smooth_window.hpp>

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/pool/kernels/rows_smooth.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool/kernels/rows-inl.hpp>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#ifndef FENESTRA_POOL_ROWS_SMOOTH
#define FENESTRA_POOL_ROWS_SMOOTH
namespace fenestra::pooling {

/// One window as the specification has it: number `number` of the cells of window `o` (flat) in the
/// plane whose x starts at `x`. Offsets are flat cells.
template <class T>
spec::SmoothWindow<T> plain_window(const Call<T, SmoothMaxReduction>& call,
                                   const T* x,
                                   Index number,
                                   Index o) {
  spec::SmoothWindow<T> window(call.args.beta, call.normalised);
  const Visit visit = call.pad_zero ? Visit::declared : Visit::real;
  for_each_tap(call.windows.windows, o, visit, [&](const Tap& tap) {
    const bool real = tap.cell >= 0;
    window.add(tap.cell, real ? x[tap.cell * call.windows.inner + number] : T(0));
  });
  window.finish();
  return window;
}

/// Coefficients 1/(j! (j + 2)) and 1/(j! (j + 3)).
template <class T, int kTerms>
struct MomentSeries {
  T first[kTerms] = {};
  T second[kTerms] = {};
  constexpr MomentSeries() {
    double factorial = 1;
    for (int j = 0; j < kTerms; ++j) {
      factorial *= j > 0 ? j : 1;
      first[j] = static_cast<T>(1 / (factorial * (j + 2)));
      second[j] = static_cast<T>(1 / (factorial * (j + 3)));
    }
  }
};

/// Numbers of one row taken apart, and of a row of windows kept for the cells of as many steps.
inline Index split_size(const Plan& plan, Index columns) {
  const WindowAxis& a = plan.last();
  return a.stride * ((columns + a.last_step()) * plan.inner + kSlack);
}
inline Index window_run(const Plan& plan, Index columns) {
  return (columns + plan.last().last_step()) * plan.inner + kSlack;
}

}  // namespace fenestra::pooling
#endif  // FENESTRA_POOL_ROWS_SMOOTH

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

// Lanes that plain code redoes may hold NaN here. Without instructions for it, Highway converts
// them to integers by the language, which leaves that undefined; instructions give some number.
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  const auto is_number = hn::Eq(x, x);
  return hn::IfThenElse(is_number, hn::Exp(d, hn::IfThenElseZero(is_number, x)), x);
}
template <class D, class V>
HWY_INLINE V expm1_of(D d, V x) {
  const auto is_number = hn::Eq(x, x);
  return hn::IfThenElse(is_number, hn::Expm1(d, hn::IfThenElseZero(is_number, x)), x);
}
#else
template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  return hn::Exp(d, x);
}
template <class D, class V>
HWY_INLINE V expm1_of(D d, V x) {
  return hn::Expm1(d, x);
}
#endif

/// The extreme of the windows of one vector, and which lanes plain code must redo.
template <class T>
struct Extreme {
  hn::Vec<Wide<T>> value;
  hn::Mask<Wide<T>> plain;
};

template <class T>
HWY_INLINE Extreme<T> find_extreme(const T* const* runs, Index count, T beta, Index i) {
  const Wide<T> d;
  const auto sign = hn::Set(d, beta < T(0) ? T(-1) : T(1));
  auto top = hn::Mul(sign, hn::LoadU(d, runs[0] + i));
  auto sum = top;
  for (Index s = 1; s < count; ++s) {
    const auto x = hn::Mul(sign, hn::LoadU(d, runs[s] + i));
    sum = hn::Add(sum, x);
    top = hn::IfThenElse(hn::Gt(x, top), x, top);
  }
  // Zero times a NaN or an infinity is NaN.
  const auto zero = hn::Mul(top, hn::Zero(d));
  return {hn::Mul(sign, top), hn::Or(hn::IsNaN(sum), hn::IsNaN(zero))};
}

/// Weights e = exp(beta*(x - extreme)) of run s as f(x - extreme, e, s), and their sum.
template <class T, class F>
HWY_INLINE hn::Vec<Wide<T>> add_weights(
    const T* const* runs, Index count, T beta, hn::Vec<Wide<T>> extreme, Index i, const F& f) {
  const Wide<T> d;
  const auto scale = hn::Set(d, beta);
  auto sum = hn::Zero(d);
  for (Index s = 0; s < count; ++s) {
    const auto distance = hn::Sub(hn::LoadU(d, runs[s] + i), extreme);
    const auto e = exp_of(d, hn::Mul(scale, distance));
    sum = hn::Add(sum, e);
    f(distance, e, s);
  }
  return sum;
}

/// The integrals of s exp(s*w) and s^2 exp(s*w) over s from 0 to 1: see
/// spec/exponential_moment.hpp.
template <class D, class V>
HWY_INLINE void exponential_moments(D d, V w, V& first, V& second) {
  using T = hn::TFromD<D>;
  // Terms of the series that are above a quarter of an ulp for |w| < 1.
  constexpr int kTerms = std::is_same_v<T, float> ? 12 : 20;
  static constexpr MomentSeries<T, kTerms> series;
  first = hn::Set(d, series.first[kTerms - 1]);
  second = hn::Set(d, series.second[kTerms - 1]);
  for (int j = kTerms - 2; j >= 0; --j) {
    first = hn::Add(hn::Mul(first, w), hn::Set(d, series.first[j]));
    second = hn::Add(hn::Mul(second, w), hn::Set(d, series.second[j]));
  }
  const auto large = hn::Ge(hn::Abs(w), hn::Set(d, T(1)));
  if (HWY_LIKELY(hn::AllFalse(d, large))) {
    return;
  }
  const auto e = exp_of(d, w);
  const auto by_parts = hn::Div(hn::Sub(e, hn::Div(expm1_of(d, w), w)), w);
  first = hn::IfThenElse(large, by_parts, first);
  second = hn::IfThenElse(large, hn::Div(hn::Sub(e, hn::Add(by_parts, by_parts)), w), second);
}

/// The splitter of x's rows, and what a cell that does not count is.
template <class T>
class SplitRows {
 public:
  void take(ScratchFrame& frame, const Call<T, SmoothMaxReduction>& call) {
    ranges_ = frame.take<typename RowSplitter<T>::Range>(call.windows.last().stride);
    offsets_ = frame.take<Index>(call.windows.last().kernel);
  }
  void start(const Call<T, SmoothMaxReduction>& call, Columns columns) {
    const WindowAxis& a = call.windows.last();
    const T silent = call.args.beta > T(0) ? -std::numeric_limits<T>::infinity()
                                           : std::numeric_limits<T>::infinity();
    outside_ = {call.pad_zero ? T(0) : silent, silent};
    splitter_.start(a, call.windows.inner, columns, ranges_);
    const Index pitch = phase_pitch(a, columns.count(), call.windows.inner);
    for (Index t = 0; t < a.kernel; ++t) {
      offsets_[t] = a.tap_phase(t) * pitch + a.tap_step(t) * call.windows.inner;
    }
  }
  void split(const T* row, T* to) const {
    splitter_.fill_outside(outside_, to);
    splitter_.split(row, to);
  }
  /// A direction or cotangent: nothing outside.
  void split_plain(const T* row, T* to) const {
    splitter_.fill_outside({T(0), T(0)}, to);
    splitter_.split(row, to);
  }
  void pad(T* to) const { splitter_.fill_outside(outside_, to, true); }
  void pad_plain(T* to) const { splitter_.fill_outside({T(0), T(0)}, to, true); }
  const Index* offsets() const { return offsets_; }

 private:
  RowSplitter<T> splitter_;
  Outside<T> outside_{};
  typename RowSplitter<T>::Range* ranges_ = nullptr;
  Index* offsets_ = nullptr;
};

/// The lanes of `mask` among the first `count`, one by one.
template <class D, class F>
HWY_INLINE void for_lanes(D d, hn::Mask<D> mask, Index count, const F& f) {
  if (HWY_LIKELY(hn::AllFalse(d, mask))) {
    return;
  }
  HWY_ALIGN hn::TFromD<D> lane[hn::MaxLanes(D())];
  hn::Store(hn::IfThenElseZero(mask, hn::Set(d, hn::TFromD<D>(1))), d, lane);
  for (Index i = 0; i < std::min(count, lanes(d)); ++i) {
    if (lane[i] != hn::TFromD<D>(0)) {
      f(i);
    }
  }
}

/// Forward, its derivatives by beta, and the mix of a direction by the weights.
template <class T, PoolDirection kDirection>
class SmoothForward {
  static constexpr bool kMix = kDirection == PoolDirection::mix;

 public:
  explicit SmoothForward(const Call<T, SmoothMaxReduction>& call)
      : call_(call),
        plan_(call.plan),
        split_(split_size(call.plan, call.tiling.columns_per_block)) {}

  Index slot_size() const { return split_ * (kMix ? 2 : 1); }
  void take(ScratchFrame& frame) {
    const Index most = most_row_links(plan_) * plan_.last().kernel;
    rows_.take(frame, call_);
    runs_ = frame.take<const T*>(most);
    counts_ = frame.take<T>(call_.tiling.columns_per_block * plan_.inner + kSlack);
  }
  void start(Columns columns) {
    columns_ = columns;
    rows_.start(call_, columns);
    const WindowAxis& a = plan_.last();
    fill(counts_, columns.count() * plan_.inner + kSlack, T(1));
    for (Index o = columns.begin; o < columns.end; ++o) {
      const Visit visit = call_.pad_zero ? Visit::declared : Visit::real;
      const Index count = a.taps(a.window(o), visit).count();
      fill(counts_ + (o - columns.begin) * plan_.inner,
           plan_.inner,
           static_cast<T>(std::max<Index>(count, 1)));
    }
  }
  void prepare(T* slot, Index plane, Index source_row) const {
    const Index at = plane * plan_.source_plane_size() + source_row * plan_.source_row_size();
    rows_.split(call_.args.in + at, slot);
    if constexpr (kMix) {
      rows_.split_plain(call_.args.v + at, slot + split_);
    }
  }
  void pad(T* slot) const {
    rows_.pad(slot);
    if constexpr (kMix) {
      rows_.pad_plain(slot + split_);
    }
  }
  void emit(const SlotLink* links, Index count, const T* slots, Index plane, Index dest_row) const {
    T* out = call_.args.out + plane * plan_.dest_plane_size() + dest_row * plan_.dest_row_size() +
             columns_.begin * plan_.inner;
    const Index n = columns_.count() * plan_.inner;
    if (count == 0) {
      fill(out, n, T(0));
      return;
    }
    Index runs = 0;
    for (Index l = 0; l < count; ++l) {
      for (Index t = 0; t < plan_.last().kernel; ++t) {
        runs_[runs++] = slots + links[l].slot * slot_size() + rows_.offsets()[t];
      }
    }
    const Wide<T> d;
    for_padded(d, n, [&](Index i, Index part) HWY_ATTR {
      const Extreme<T> extreme = find_extreme(runs_, runs, call_.args.beta, i);
      const auto result =
          kMix ? mixed(runs, extreme.value, i) : of_x(runs, count, extreme.value, i);
      store_part(d, result, out + i, part);
      for_lanes(d, extreme.plain, part, [&](Index lane) {
        out[i + lane] = plain(plane, dest_row, i + lane);
      });
    });
  }

 private:
  using V = hn::Vec<Wide<T>>;

  HWY_INLINE V mixed(Index runs, V extreme, Index i) const {
    const Wide<T> d;
    auto mixed = hn::Zero(d);
    const auto sum =
        add_weights(runs_, runs, call_.args.beta, extreme, i, [&](V, V e, Index s) HWY_ATTR {
          // A weight of zero silences its cell even where v is infinite.
          const auto v = hn::LoadU(d, runs_[s] + split_ + i);
          mixed = hn::Add(mixed, hn::IfThenElseZero(hn::Ne(e, hn::Zero(d)), hn::Mul(e, v)));
        });
    return hn::Div(mixed, sum);
  }
  /// Value, slope or curve of the windows of one vector by the formulas of the specification.
  HWY_INLINE V of_x(Index runs, Index rows, V extreme, Index i) const {
    const Wide<T> d;
    const auto zero = hn::Zero(d);
    const auto beta = hn::Set(d, call_.args.beta);
    auto mean = zero;
    auto sum =
        add_weights(runs_, runs, call_.args.beta, extreme, i, [&](V distance, V e, Index) HWY_ATTR {
          if constexpr (kDirection != PoolDirection::forward) {
            mean = hn::Add(mean, hn::IfThenElseZero(hn::Ne(e, zero), hn::Mul(e, distance)));
          }
        });
    auto above = hn::Log(d, sum);
    const auto cells = hn::Mul(hn::Set(d, static_cast<T>(rows)), hn::LoadU(d, counts_ + i));
    if (call_.normalised) {
      above = hn::Sub(above, hn::Log(d, cells));
    }
    above = hn::Div(above, beta);
    V result = zero;
    if constexpr (kDirection == PoolDirection::forward) {
      result = hn::Add(extreme, above);
    } else {
      mean = hn::Div(mean, sum);
      const auto slope = hn::Div(hn::Sub(mean, above), beta);
      result = slope;
      if constexpr (kDirection == PoolDirection::curve) {
        auto variance = zero;
        add_weights(runs_, runs, call_.args.beta, extreme, i, [&](V distance, V e, Index) HWY_ATTR {
          const auto off = hn::Sub(distance, mean);
          variance =
              hn::Add(variance, hn::IfThenElseZero(hn::Ne(e, zero), hn::Mul(e, hn::Mul(off, off))));
        });
        result = hn::Div(hn::Sub(hn::Div(variance, sum), hn::Add(slope, slope)), beta);
      }
    }
    const auto smooth = hn::Gt(hn::Add(sum, sum), cells);
    if (!call_.normalised || hn::AllFalse(d, smooth)) {
      return result;
    }
    return hn::IfThenElse(smooth, of_smooth_x(runs, cells, extreme, i), result);
  }
  /// The same where the weights are nearly equal. A cell that is infinitely far counts like any
  /// other, padding does not; both are infinite here, but the number of cells is known.
  HWY_INLINE V of_smooth_x(Index runs, V cells, V extreme, Index i) const {
    const Wide<T> d;
    const auto zero = hn::Zero(d);
    const auto one = hn::Set(d, T(1));
    const auto beta = hn::Set(d, call_.args.beta);
    auto less_one = zero;
    auto near = zero;
    for (Index s = 0; s < runs; ++s) {
      const auto z = hn::Mul(beta, hn::Sub(hn::LoadU(d, runs_[s] + i), extreme));
      const auto counts = is_near(z);
      less_one = hn::Add(less_one, hn::IfThenElseZero(counts, expm1_of(d, z)));
      near = hn::Add(near, hn::IfThenElseZero(counts, one));
    }
    const auto far = hn::Sub(cells, near);
    const auto above = hn::Div(hn::Log1p(d, hn::Div(hn::Sub(less_one, far), cells)), beta);
    if constexpr (kDirection == PoolDirection::forward) {
      return hn::Add(extreme, above);
    }
    auto slope = zero;
    auto curve = zero;
    for (Index s = 0; s < runs; ++s) {
      const auto distance = hn::Sub(hn::LoadU(d, runs_[s] + i), extreme);
      const auto counts = is_near(hn::Mul(beta, distance));
      const auto g = hn::Sub(distance, above);
      const auto square = hn::Mul(g, g);
      V first, second;
      exponential_moments(d, hn::Mul(beta, g), first, second);
      slope = hn::Add(slope, hn::IfThenElseZero(counts, hn::Mul(square, first)));
      curve = hn::Add(curve, hn::IfThenElseZero(counts, hn::Mul(hn::Mul(square, g), second)));
    }
    // Of a far cell only the limit is left.
    const auto far_slope = hn::Div(hn::Div(far, beta), beta);
    slope = hn::Div(hn::Add(slope, far_slope), cells);
    if constexpr (kDirection == PoolDirection::slope) {
      return slope;
    }
    curve = hn::Sub(curve, hn::Div(hn::Add(far_slope, far_slope), beta));
    return hn::Sub(hn::Div(curve, cells), hn::Mul(beta, hn::Mul(slope, slope)));
  }
  static HWY_INLINE auto is_near(V z) {
    const Wide<T> d;
    return hn::Gt(z, hn::Set(d, -std::numeric_limits<T>::infinity()));
  }
  T plain(Index plane, Index dest_row, Index i) const {
    const Index column = columns_.begin + i / plan_.inner;
    const Index number = i % plan_.inner;
    const auto window = plain_window(call_,
                                     call_.args.in + plane * plan_.source_plane_size(),
                                     number,
                                     dest_row * plan_.last().out + column);
    if constexpr (kDirection == PoolDirection::forward) {
      return window.value();
    }
    if constexpr (kDirection == PoolDirection::slope) {
      return window.slope();
    }
    if constexpr (kDirection == PoolDirection::curve) {
      return window.curve();
    }
    T sum(0);
    for (const auto& cell : window.cells()) {
      if (cell.offset >= 0 && cell.weight != T(0)) {
        const Index at = plane * plan_.source_plane_size() + cell.offset * plan_.inner + number;
        sum += cell.weight * call_.args.v[at];
      }
    }
    return sum;
  }

  const Call<T, SmoothMaxReduction>& call_;
  const Plan& plan_;
  const Index split_;
  Columns columns_;
  SplitRows<T> rows_;
  const T** runs_ = nullptr;
  T* counts_ = nullptr;
};

/// Each cell adds p*u of the windows that see it. A prepared row holds, per window, the extreme and
/// u over the sum of the weights; NaN as the extreme marks a window for plain code, a quotient of 0
/// one that is not there.
template <class T>
class SmoothSpread {
 public:
  explicit SmoothSpread(const Call<T, SmoothMaxReduction>& call)
      : call_(call),
        plan_(call.plan),
        a_(call.plan.last()),
        inner_(call.plan.inner),
        run_(window_run(call.plan, call.tiling.columns_per_block)),
        most_windows_(call.tiling.columns_per_block + call.plan.last().last_step()),
        split_(split_size(call.windows, most_windows_)) {}

  Index slot_size() const { return 2 * run_; }
  void take(ScratchFrame& frame) {
    const Index most = most_row_links(call_.windows);
    rows_.take(frame, call_);
    links_ = frame.take<RowLink>(most);
    spare_ = frame.take<RowLink>(most);
    buffers_ = frame.take<T>(most * split_);
    runs_ = frame.take<const T*>(most * a_.kernel);
    cells_ = frame.take<T>(call_.tiling.columns_per_block * inner_ + kSlack);
    phases_ = frame.take<T>(a_.stride * phase_size(call_.tiling.columns_per_block));
    sources_ = frame.take<const T*>(most_row_links(plan_) * a_.kernel);
    offsets_ = frame.take<Index>(a_.kernel);
    phase_begin_ = frame.take<Index>(a_.stride + 1);
  }
  void start(Columns columns) {
    columns_ = columns;
    Index next = 0;
    for (Index phase = 0; phase < a_.stride; ++phase) {
      phase_begin_[phase] = next;
      for_each_phase_tap(a_, phase, [&](Index, Index steps) { offsets_[next++] = steps * inner_; });
    }
    phase_begin_[a_.stride] = next;
    const StepWindows seen(a_, columns);
    windows_ = seen.windows;
    lead_ = std::min(seen.missing * inner_, run_);
    if (windows_.count() > 0) {
      rows_.start(call_, windows_);
    }
  }
  void pad(T*) const {}
  void prepare(T* slot, Index plane, Index window_row) {
    const Wide<T> d;
    T* extremes = slot;
    T* quotients = slot + run_;
    fill(slot, 2 * run_, T(0));
    const Index n = windows_.count() * inner_;
    if (n == 0) {
      return;
    }
    const T* x = call_.args.in + plane * plan_.dest_plane_size();
    const Index count = row_links(call_.windows, window_row, links_, spare_);
    Index runs = 0;
    for (Index l = 0; l < count; ++l) {
      T* buffer = buffers_ + l * split_;
      if (links_[l].source < 0) {
        rows_.pad(buffer);
      } else {
        rows_.split(x + links_[l].source * plan_.dest_row_size(), buffer);
      }
      for (Index t = 0; t < a_.kernel; ++t) {
        runs_[runs++] = buffer + rows_.offsets()[t];
      }
    }
    if (runs == 0) {
      return;
    }
    const T* u = call_.args.v + plane * plan_.source_plane_size() +
                 window_row * plan_.source_row_size() + windows_.begin * inner_;
    const T beta = call_.args.beta;
    for_padded(d, n, [&](Index i, Index part) HWY_ATTR {
      const Extreme<T> extreme = find_extreme(runs_, runs, beta, i);
      const auto sum =
          add_weights(runs_, runs, beta, extreme.value, i, [](auto, auto, Index) HWY_ATTR {});
      const auto marked = hn::IfThenElse(
          extreme.plain, hn::Set(d, std::numeric_limits<T>::quiet_NaN()), extreme.value);
      HWY_ALIGN T seeds[hn::MaxLanes(Wide<T>())] = {};
      std::memcpy(seeds, u + i, static_cast<std::size_t>(part) * sizeof(T));
      store_part(d, marked, extremes + lead_ + i, part);
      store_part(d, hn::Div(hn::Load(d, seeds), sum), quotients + lead_ + i, part);
    });
  }
  void emit(const SlotLink* links, Index count, const T* slots, Index plane, Index dest_row) const {
    const Index at = plane * plan_.dest_plane_size() + dest_row * plan_.dest_row_size();
    const T* x = call_.args.in + at;
    T* row = call_.args.out + at;
    const Index n = columns_.count() * inner_;
    const Index pitch = phase_size(columns_.count());
    const Wide<T> d;
    const auto beta = hn::Set(d, call_.args.beta);
    for (Index phase = 0; phase < a_.stride; ++phase) {
      Index sources = 0;
      for (Index l = 0; l < count; ++l) {
        for (Index t = phase_begin_[phase]; t < phase_begin_[phase + 1]; ++t) {
          sources_[sources++] = slots + links[l].slot * slot_size() + offsets_[t];
        }
      }
      load_cells(x, phase);
      T* out = phases_ + phase * pitch;
      for_padded(d, n, [&](Index i, Index) HWY_ATTR {
        const auto cells = hn::LoadU(d, cells_ + i);
        auto sum = hn::Zero(d);
        auto marks = hn::Zero(d);
        for (Index s = 0; s < sources; ++s) {
          const auto extreme = hn::LoadU(d, sources_[s] + i);
          const auto quotient = hn::LoadU(d, sources_[s] + run_ + i);
          marks = hn::Add(marks, hn::Mul(extreme, hn::Zero(d)));
          const auto e = exp_of(d, hn::Mul(beta, hn::Sub(cells, extreme)));
          sum =
              hn::Add(sum, hn::IfThenElseZero(hn::Ne(quotient, hn::Zero(d)), hn::Mul(e, quotient)));
        }
        hn::StoreU(sum, d, out + i);
        for_lanes(d, hn::IsNaN(marks), n - i, [&](Index lane) {
          const Index cell = a_.cell_at(columns_.begin + (i + lane) / inner_, phase);
          if (a_.is_real(cell)) {
            out[i + lane] = plain(links, count, plane, dest_row, cell, (i + lane) % inner_);
          }
        });
      });
    }
    merge_row(phases_, pitch, a_, inner_, columns_, row);
  }

 private:
  Index phase_size(Index columns) const { return columns * inner_ + kSlack; }
  /// The cells of one phase, 0 where the phase leaves the row.
  void load_cells(const T* x, Index phase) const {
    fill(cells_, columns_.count() * inner_ + kSlack, T(0));
    for (Index j = 0; j < columns_.count(); ++j) {
      const Index cell = a_.cell_at(columns_.begin + j, phase);
      if (a_.is_real(cell)) {
        for (Index c = 0; c < inner_; ++c) {
          cells_[j * inner_ + c] = x[cell * inner_ + c];
        }
      }
    }
  }
  T plain(const SlotLink* links, Index count, Index plane, Index dest_row, Index cell, Index number)
      const {
    const T* x = call_.args.in + plane * plan_.dest_plane_size();
    const T* u = call_.args.v + plane * plan_.source_plane_size();
    const Index flat = dest_row * a_.in + cell;
    T sum(0);
    for (Index l = 0; l < count; ++l) {
      for_each_link(a_, true, cell, false, [&](Index o, Index, Index) {
        const Index window = links[l].source_row * a_.out + o;
        const auto weights = plain_window(call_, x, number, window);
        for (const auto& seen : weights.cells()) {
          if (seen.offset == flat) {
            sum += seen.weight * u[window * inner_ + number];
          }
        }
      });
    }
    return sum;
  }

  const Call<T, SmoothMaxReduction>& call_;
  const Plan& plan_;
  const WindowAxis a_;
  const Index inner_;
  const Index run_;
  const Index most_windows_;
  const Index split_;
  Columns columns_;
  Columns windows_;
  Index lead_ = 0;
  SplitRows<T> rows_;
  RowLink* links_ = nullptr;
  RowLink* spare_ = nullptr;
  T* buffers_ = nullptr;
  const T** runs_ = nullptr;
  T* cells_ = nullptr;
  T* phases_ = nullptr;
  const T** sources_ = nullptr;
  Index* offsets_ = nullptr;  // of the taps, phase by phase
  Index* phase_begin_ = nullptr;
};

template <class T>
void rows(const Call<T, SmoothMaxReduction>& call, Index begin, Index end) {
  const auto run = [&](auto op) { run_tiles<T>(call.plan, call.tiling, op, begin, end); };
  switch (call.problem.direction) {
    case PoolDirection::forward: return run(SmoothForward<T, PoolDirection::forward>(call));
    case PoolDirection::mix: return run(SmoothForward<T, PoolDirection::mix>(call));
    case PoolDirection::spread: return run(SmoothSpread<T>(call));
    case PoolDirection::slope: return run(SmoothForward<T, PoolDirection::slope>(call));
    case PoolDirection::curve: return run(SmoothForward<T, PoolDirection::curve>(call));
  }
}

void rows_any(const CallOf<SmoothMaxReduction>& call, Index begin, Index end) {
  std::visit([&](const auto* c) HWY_ATTR { rows(*c, begin, end); }, call);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::pooling {

HWY_EXPORT(rows_any);

void run_rows_on(const CallOf<SmoothMaxReduction>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(rows_any)(call, begin, end);
}
Index slot_numbers(const CallOf<SmoothMaxReduction>& call, Index columns) {
  return std::visit(
      [&](const auto* c) {
        const bool mixes = c->problem.direction == PoolDirection::mix;
        return c->plan.to_cells ? 2 * window_run(c->plan, columns)
                                : split_size(c->plan, columns) * (mixes ? 2 : 1);
      },
      call);
}

}  // namespace fenestra::pooling
#endif  // HWY_ONCE
