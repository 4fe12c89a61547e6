// Rows on vectors: taken apart into phases, put together again, and read tap by tap. Included
// inside foreach_target only; see links.hpp for phases and steps. Not installed.
// An include guard that opens again for every instruction set.
#if defined(FENESTRA_POOL_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_POOL_ROWS_INL
#undef FENESTRA_POOL_ROWS_INL
#else
#define FENESTRA_POOL_ROWS_INL
#endif

#include <fenestra/ops/pool/kernels/tiles.hpp>
#include <fenestra/ops/pool/kernels/vectors-inl.hpp>

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <numeric>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// What stands for a cell outside the input.
template <class T>
struct Outside {
  T declared;  ///< in the declared padding
  T beyond;    ///< in the overhang of `ceil`
};

/// Distance between the phases of a row whose windows are `columns`: steps and slack.
HWY_INLINE Index phase_pitch(const WindowAxis& a, Index columns, Index inner) {
  return (columns + a.last_step()) * inner + kSlack;
}

/// Takes apart the rows that a block of windows looks at: phase r of step j goes to
/// to[r * pitch + (j - columns.begin) * inner]. What lies outside the input is the same for all
/// rows and written apart.
template <class T>
class RowSplitter {
 public:
  struct Range {
    Index to = 0;
    Index from = 0;
    Index count = 0;
  };
  /// `ranges` has room for `stride` of them.
  void start(const WindowAxis& a, Index inner, Columns columns, Range* ranges) {
    a_ = a;
    inner_ = inner;
    columns_ = columns;
    ranges_ = ranges;
    pitch_ = phase_pitch(a, columns.count(), inner);
    used_ = a.tap_phases();
    for (Index p = 0; p < used_; ++p) {
      const Index phase = a.tap_phase(p);
      const Index begin = step_of(phase, 0);
      const Index end = std::max(step_of(phase, a.in), begin);
      const Index cell = a.cell_at(columns.begin + begin, phase);
      ranges_[p] = {phase * pitch_ + begin * inner, end > begin ? cell * inner : 0, end - begin};
    }
    // Two phases of which one starts right before the other are read as pairs; at most one number
    // of either is left at each end.
    paired_ =
        a.stride == 2 && used_ == 2 && inner == 1 && ranges_[0].count > 0 && ranges_[1].count > 0;
    if (paired_) {
      const Index skip = ranges_[0].from > ranges_[1].from ? 1 : 0;  // phase 1 starts first
      pair_ = {ranges_[0].to, ranges_[0].from, std::min(ranges_[0].count, ranges_[1].count - skip)};
      odd_to_ = ranges_[1].to + skip;
    }
  }

  /// Writes the cells outside the input, and with `everywhere` the others too, as declared padding.
  void fill_outside(Outside<T> outside, T* to, bool everywhere = false) const {
    const Index steps = columns_.count() + a_.last_step();
    for (Index p = 0; p < used_; ++p) {
      const Index phase = a_.tap_phase(p);
      T* out = to + phase * pitch_;
      const Index begin = step_of(phase, 0);
      const Index end = std::max(step_of(phase, a_.in), begin);
      const Index declared_end = std::max(step_of(phase, a_.in + a_.pad_high), end);
      fill(out, (everywhere ? declared_end : begin) * inner_, outside.declared);
      fill(out + end * inner_, (declared_end - end) * inner_, outside.declared);
      fill(out + declared_end * inner_, (steps - declared_end) * inner_ + kSlack, outside.beyond);
    }
  }

  HWY_INLINE void split(const T* row, T* to) const {
    if (paired_) {
      for (Index p = 0; p < 2; ++p) {
        const Range& r = ranges_[p];
        to[r.to] = row[r.from];
        to[r.to + r.count - 1] = row[r.from + 2 * (r.count - 1)];
      }
      const Wide<T> d;
      const T* from = row + pair_.from;
      T* even_to = to + pair_.to;
      T* odd_to = to + odd_to_;
      Index j = 0;
      for (; j + lanes(d) <= pair_.count; j += lanes(d)) {
        hn::Vec<Wide<T>> even, odd;
        hn::LoadInterleaved2(d, from + 2 * j, even, odd);
        hn::StoreU(even, d, even_to + j);
        hn::StoreU(odd, d, odd_to + j);
      }
      for (; j < pair_.count; ++j) {
        even_to[j] = from[2 * j];
        odd_to[j] = from[2 * j + 1];
      }
      return;
    }
    for (Index p = 0; p < used_; ++p) {
      const Range& r = ranges_[p];
      const T* from = row + r.from;
      T* out = to + r.to;
      if (a_.stride == 1) {
        copy(from, r.count * inner_, out);
      } else if (inner_ == 1) {
        for (Index j = 0; j < r.count; ++j) {
          out[j] = from[j * a_.stride];
        }
      } else {
        for (Index j = 0; j < r.count; ++j) {
          copy(from + j * a_.stride * inner_, inner_, out + j * inner_);
        }
      }
    }
  }

 private:
  static HWY_INLINE void copy(const T* from, Index count, T* to) {
    const Wide<T> d;
    Index i = 0;
    for (; i + lanes(d) <= count; i += lanes(d)) {
      hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    }
    for (; i < count; ++i) {
      to[i] = from[i];
    }
  }

  /// The step of `phase` at or after `cell`, counted from the block's first.
  Index step_of(Index phase, Index cell) const {
    return std::clamp<Index>(
        a_.step_from(cell, phase) - columns_.begin, 0, columns_.count() + a_.last_step());
  }

  WindowAxis a_;
  Index inner_ = 1;
  Columns columns_;
  Index pitch_ = 0;
  Index used_ = 0;
  Range* ranges_ = nullptr;
  bool paired_ = false;
  Range pair_;
  Index odd_to_ = 0;
};

/// What of a block is inside, counted from its first; none of it is somewhere in the block too.
HWY_INLINE Columns part_of(Columns columns, const IndexRange& inside) {
  const Index low = std::clamp(inside.begin, columns.begin, columns.end);
  return {low - columns.begin, std::clamp(inside.end, low, columns.end) - columns.begin};
}

/// The inverse for cells: phase r of step j at from[r * pitch + (j - columns.begin) * inner] to its
/// place in the row.
template <class T>
HWY_INLINE void merge_row(
    const T* from, Index pitch, const WindowAxis& a, Index inner, Columns columns, T* row) {
  const auto merge = [&](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) {
      for (Index phase = 0; phase < a.stride; ++phase) {
        const Index cell = a.cell_at(columns.begin + j, phase);
        if (a.is_real(cell)) {
          if (inner == 1) {
            row[cell] = from[phase * pitch + j];
          } else {
            std::memcpy(row + cell * inner,
                        from + phase * pitch + j * inner,
                        static_cast<std::size_t>(inner) * sizeof(T));
          }
        }
      }
    }
  };
  Index j = 0;
  if (a.stride == 2 && inner == 1) {
    const Columns pairs = part_of(columns, a.whole_steps());
    merge(0, pairs.begin);
    j = pairs.begin;
    const Wide<T> d;
    T* to = row + a.cell_at(columns.begin + j, 0);
    for (; j + lanes(d) <= pairs.end; j += lanes(d), to += 2 * lanes(d)) {
      hn::StoreInterleaved2(hn::LoadU(d, from + j), hn::LoadU(d, from + pitch + j), d, to);
    }
  }
  merge(j, columns.count());
}

/// Windows [begin, end) of a block, counted from its first, that see real cells only.
HWY_INLINE Columns inside_windows(const WindowAxis& a, Columns columns) {
  return part_of(columns, a.inner_windows());
}

/// Steps [begin, end) of a block of cells, counted from its first, all of whose phases are cells
/// that as many windows see as there are taps.
HWY_INLINE Columns inside_cells(const WindowAxis& a, Columns columns) {
  return part_of(columns, a.inner_steps());
}

/// Every second number of two vectors, in an order that costs nothing beyond the choice; `reorder`
/// makes it the order of memory, and back.
template <class D, class V>
HWY_INLINE V even_numbers([[maybe_unused]] D d, V low, V high) {
#if HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return V{_mm256_shuffle_ps(low.raw, high.raw, 0x88)};
  } else {
    return V{_mm256_shuffle_pd(low.raw, high.raw, 0x0)};
  }
#elif HWY_TARGET == HWY_SCALAR
  return static_cast<void>(high), low;
#else
  return hn::ConcatEven(d, high, low);
#endif
}
template <class D, class V>
HWY_INLINE V odd_numbers([[maybe_unused]] D d, V low, V high) {
#if HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return V{_mm256_shuffle_ps(low.raw, high.raw, 0xDD)};
  } else {
    return V{_mm256_shuffle_pd(low.raw, high.raw, 0xF)};
  }
#elif HWY_TARGET == HWY_SCALAR
  return static_cast<void>(low), high;
#else
  return hn::ConcatOdd(d, high, low);
#endif
}
template <class D, class V>
HWY_INLINE V reorder([[maybe_unused]] D d, V v) {
#if HWY_TARGET == HWY_AVX2
  const hn::Repartition<std::int64_t, D> d64;
  return hn::BitCast(
      d, hn::VFromD<decltype(d64)>{_mm256_permute4x64_epi64(hn::BitCast(d64, v).raw, 0xD8)});
#else
  return v;
#endif
}

/// Numbers of a row, all of them real.
template <class T>
struct RealNumbers {
  static constexpr bool kCut = false;
  const T* at;
  HWY_INLINE hn::Vec<Wide<T>> operator()(Index offset) const {
    return hn::LoadU(Wide<T>(), at + offset);
  }
};
/// Numbers at the end of a row; those beyond it are `outside`.
template <class T>
struct CutNumbers {
  static constexpr bool kCut = true;
  const T* at;
  const T* real;  ///< all bits set where the number is real
  T outside;
  HWY_INLINE hn::Vec<Wide<T>> operator()(Index offset) const {
    const Wide<T> d;
    return hn::IfThenElse(hn::MaskFromVec(hn::LoadU(d, real + offset)),
                          hn::LoadU(d, at + offset),
                          hn::Set(d, outside));
  }
};

/// Reads each tap of consecutive windows, the first of which starts at offset 0, as f(vector, tap);
/// with stride 2 the lanes are in the order of `even_numbers`. kTaps 0: as many as `taps` says,
/// `step` apart; else the reads are unrolled, and with stride 2 next to each other.
template <int kStride, int kTaps, class D, class Load, class F>
HWY_INLINE void for_taps(D d, const Load& load, Index taps, Index step, const F& f) {
  if constexpr (kStride == 1 && kTaps > 0) {
    FENESTRA_UNROLL
    for (Index t = 0; t < kTaps; ++t) {
      f(load(t * step), t);
    }
  } else if constexpr (kTaps > 0) {
    FENESTRA_UNROLL
    for (Index t = 0; t < kTaps; t += 2) {
      const auto low = load(t);
      const auto high = load(t + lanes(d));
      f(even_numbers(d, low, high), t);
      if (t + 1 < kTaps) {
        f(odd_numbers(d, low, high), t + 1);
      }
    }
  } else {
    for (Index t = 0; t < taps; ++t) {
      f(kStride == 1 ? load(t * step) : even_numbers(d, load(t * step), load(t * step + lanes(d))),
        t);
    }
  }
}

/// Reduces rows over their own taps, a vector of windows at a time: vector k is windows position(k)
/// and on, the last one overlapping the one before it, and is stored at k vectors in the slot.
/// Where the stride is 1 or 2 the row itself is read; other strides, and rows too short for a
/// vector, go through a copy taken apart into phases. `reducer` has
///   void vector<kStride>(load, step, to, i)   windows i and on from `load`
///   void split(phases, offsets, to, i)        the same from phases
template <class T>
class RowReader {
 public:
  void take(ScratchFrame& frame, const WindowAxis& a, Index inner, Index columns) {
    phases_ = frame.take<T>(a.stride * phase_pitch(a, columns, inner));
    ranges_ = frame.take<typename RowSplitter<T>::Range>(a.stride);
    offsets_ = frame.take<Index>(a.kernel);
    const Index room = reads_directly(a, inner) ? room_below(a, inner) + room_above(a, inner) : 0;
    real_ = frame.take<T>(room);
    edge_ = frame.take<T>(room);
  }
  /// Rows lie in [begin, end). With `cuts` false a window that looks outside is not read directly.
  void start(const WindowAxis& a,
             Index inner,
             Columns columns,
             Outside<T> outside,
             bool cuts,
             const T* begin,
             const T* end) {
    a_ = a;
    n_ = columns.count() * inner;
    vectors_ = ceil_div(n_, kLanes);
    outside_ = outside.beyond;
    begin_ = begin;
    end_ = end;
    const Columns inside = inside_windows(a, columns);
    direct_ =
        reads_directly(a, inner) && n_ >= kLanes && (cuts || inside.count() == columns.count());
    splitter_.start(a, inner, columns, ranges_);
    splitter_.fill_outside(outside, phases_);
    const Index pitch = phase_pitch(a, columns.count(), inner);
    for (Index t = 0; t < a.kernel; ++t) {
      offsets_[t] = a.tap_phase(t) * pitch + a.tap_step(t) * inner;
    }
    if (!direct_) {
      return;
    }
    below_ = room_below(a, inner);
    above_ = room_above(a, inner);
    row_size_ = a.in * inner;
    at_ = a.cell_at(columns.begin, 0) * inner;
    step_ = a.dilation * inner;
    std::memset(real_, 0, static_cast<std::size_t>(below_ + above_) * sizeof(T));
    std::memset(real_ + below_, 0xFF, static_cast<std::size_t>(row_size_) * sizeof(T));
    whole_begin_ = std::min(ceil_div(inside.begin * inner, kLanes), vectors_);
    whole_end_ = whole_begin_;
    while (whole_end_ < vectors_ && position(whole_end_) + kLanes <= inside.end * inner) {
      ++whole_end_;
    }
    // The last vector starts before its place.
    if (whole_end_ == vectors_ && position(vectors_ - 1) < inside.begin * inner) {
      whole_begin_ = whole_end_ = std::min(whole_begin_, vectors_ - 1);
    }
  }
  bool is_direct() const { return direct_; }
  /// True where slots hold vectors in the order of `even_numbers`.
  bool is_reordered() const { return direct_ && a_.stride == 2; }
  Index vectors() const { return vectors_; }
  HWY_INLINE Index position(Index vector) const {
    return std::max<Index>(std::min(vector * kLanes, n_ - kLanes), 0);
  }

  /// Only where `is_direct`.
  template <class Reducer>
  HWY_INLINE void reduce(const T* row, Reducer& reducer) const {
    if (HWY_UNLIKELY(row - begin_ < below_ || end_ - row < above_)) {
      row = edge_of(row);
    }
    a_.stride == 1 ? walk<1>(row, reducer) : walk<2>(row, reducer);
  }
  template <class Reducer>
  HWY_INLINE void reduce_split(const T* row, Reducer& reducer) const {
    splitter_.split(row, phases_);
    for (Index k = 0; k < vectors_; ++k) {
      reducer.split(phases_, offsets_, k * kLanes, position(k));
    }
  }

 private:
  static constexpr Index kLanes = lanes(Wide<T>());

  static bool reads_directly(const WindowAxis& a, Index inner) {
    return a.stride == 1 || (a.stride == 2 && inner == 1 && a.kernel > 1);
  }
  /// Numbers that vectors read before the start of a row, and from there on.
  static Index room_below(const WindowAxis& a, Index inner) { return -a.window(0).first * inner; }
  static Index room_above(const WindowAxis& a, Index inner) {
    return std::max(a.in, a.window(a.out).first + a.span()) * inner;
  }
  template <int kStride, class Reducer>
  HWY_INLINE void walk(const T* row, Reducer& reducer) const {
    const T* at = row + at_;
    const T* real = real_ + below_ + at_;
    const Index step = step_;
    const Index vectors = vectors_;
    const Index whole_end = whole_end_;
    const T outside = outside_;
    const Index last = position(vectors - 1);
    Index k = 0;
    for (Index cut_end = whole_begin_;; cut_end = vectors) {
      for (; k < cut_end; ++k) {
        const Index i = std::min(k * kLanes, last);
        reducer.template vector<kStride>(
            CutNumbers<T>{at + kStride * i, real + kStride * i, outside}, step, k * kLanes, i);
      }
      if (k == vectors) {
        return;
      }
      for (; k < whole_end; ++k) {
        const Index i = std::min(k * kLanes, last);
        reducer.template vector<kStride>(RealNumbers<T>{at + kStride * i}, step, k * kLanes, i);
      }
    }
  }
  /// The row in a place with room around it.
  HWY_NOINLINE const T* edge_of(const T* row) const {
    fill(edge_, below_ + above_, T(0));
    std::copy(row, row + row_size_, edge_ + below_);
    return edge_ + below_;
  }

  WindowAxis a_;
  Index n_ = 0;
  Index vectors_ = 0;
  bool direct_ = false;
  T outside_ = T(0);
  const T* begin_ = nullptr;
  const T* end_ = nullptr;
  Index below_ = 0;
  Index above_ = 0;
  Index row_size_ = 0;
  Index at_ = 0;           ///< where the block's first window starts in its row
  Index step_ = 0;         ///< from tap to tap
  Index whole_begin_ = 0;  ///< vectors of windows that see real cells only
  Index whole_end_ = 0;
  T* real_ = nullptr;  ///< `below_` before the start of the row
  T* edge_ = nullptr;
  RowSplitter<T> splitter_;
  T* phases_ = nullptr;
  typename RowSplitter<T>::Range* ranges_ = nullptr;
  Index* offsets_ = nullptr;
};

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_POOL_ROWS_INL
