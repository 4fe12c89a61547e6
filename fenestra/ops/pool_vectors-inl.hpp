// The vector pieces that the kernels of all pools share, compiled once per instruction set: rows
// taken apart into phases and put together again, and sums of runs. Included inside
// foreach_target only; see pool_links.hpp for phases, steps and tiles.

// An include guard that opens again for every instruction set.
#if defined(FENESTRA_POOL_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_POOL_VECTORS_INL
#undef FENESTRA_POOL_VECTORS_INL
#else
#define FENESTRA_POOL_VECTORS_INL
#endif

#include <fenestra/ops/pool_links.hpp>

#include <hwy/highway.h>

#include <cstring>
#include <numeric>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Wide = hn::ScalableTag<T>;
/// One lane: for positions that are not beside each other in memory.
template <class T>
using Single = hn::CappedTag<T, 1>;

template <class D>
HWY_INLINE constexpr Index lanes(D) {
  return static_cast<Index>(hn::MaxLanes(D()));
}

/// The first `count` lanes, at most all of them.
template <class D, class V, class T>
HWY_INLINE void store_part(D d, V v, T* to, Index count) {
  if (HWY_LIKELY(count >= lanes(d))) {
    hn::StoreU(v, d, to);
    return;
  }
  HWY_ALIGN T buffer[hn::MaxLanes(D())];
  hn::Store(v, d, buffer);
  std::memcpy(to, buffer, static_cast<std::size_t>(count) * sizeof(T));
}

/// f(i, count) for runs of at most one vector that cover [0, n); the last one may be partial, so
/// its sources must be readable beyond n.
template <class D, class F>
HWY_INLINE void for_padded(D d, Index n, const F& f) {
  Index i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    f(i, lanes(d));
  }
  if (i < n) {
    f(i, n - i);
  }
}

/// The same for sources that end at n: the last vector overlaps the one before it. n is at least
/// one vector.
template <class D, class F>
HWY_INLINE void for_exact(D d, Index n, const F& f) {
  Index i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    f(i, lanes(d));
  }
  if (i < n) {
    f(n - lanes(d), lanes(d));
  }
}

template <class T>
HWY_INLINE void fill(T* to, Index count, T value) {
  const Wide<T> d;
  Index i = 0;
  for (; i + lanes(d) <= count; i += lanes(d)) {
    hn::StoreU(hn::Set(d, value), d, to + i);
  }
  for (; i < count; ++i) {
    to[i] = value;
  }
}

/// What stands for a cell outside the input.
template <class T>
struct Outside {
  T declared;  ///< in the declared padding
  T beyond;    ///< in the overhang of `ceil`
};

/// Distance between the phases of a row whose windows are `columns`: steps and slack.
HWY_INLINE Index phase_pitch(const WindowAxis& a, Index columns, Index inner) {
  return (columns + last_step(a)) * inner + kSlack;
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
    used_ = std::min(a.kernel, a.stride / std::gcd(a.stride, a.dilation));
    for (Index p = 0; p < used_; ++p) {
      const Index phase = tap_phase(a, p);
      const Index begin = step_of(phase, 0);
      const Index end = std::max(step_of(phase, a.in), begin);
      const Index cell = (columns.begin + begin) * a.stride + phase - a.pad_low;
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
    const Index steps = columns_.count() + last_step(a_);
    for (Index p = 0; p < used_; ++p) {
      const Index phase = tap_phase(a_, p);
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
    const Index distance = cell + a_.pad_low - phase;
    const Index step = distance <= 0 ? 0 : ceil_div(distance, a_.stride);
    return std::clamp<Index>(step - columns_.begin, 0, columns_.count() + last_step(a_));
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

/// The inverse for cells: phase r of step j at from[r * pitch + (j - columns.begin) * inner] to its
/// place in the row.
template <class T>
HWY_INLINE void merge_row(
    const T* from, Index pitch, const WindowAxis& a, Index inner, Columns columns, T* row) {
  const Index first = columns.begin * a.stride - a.pad_low;  // the cell of phase 0
  Index j = 0;
  if (a.stride == 2 && inner == 1) {
    if (first < 0) {
      if (first + 1 >= 0 && first + 1 < a.in) {
        row[first + 1] = from[pitch];
      }
      j = 1;
    }
    const Wide<T> d;
    const Index pairs = std::min(columns.count(), (a.in - first) / 2);
    T* to = row + first + 2 * j;
    for (; j + lanes(d) <= pairs; j += lanes(d), to += 2 * lanes(d)) {
      hn::StoreInterleaved2(hn::LoadU(d, from + j), hn::LoadU(d, from + pitch + j), d, to);
    }
  }
  for (; j < columns.count(); ++j) {
    for (Index phase = 0; phase < a.stride; ++phase) {
      const Index cell = first + j * a.stride + phase;
      if (cell >= 0 && cell < a.in) {
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
}

/// Runs visitor.run<kVectors>(entries, count, source, dest) over the numbers of one position of
/// planes [plane, end_plane): four vectors at a time, so that the list of taps is read less often;
/// the last vector overlaps the one before it.
template <class D, class Visitor>
HWY_INLINE void for_position(D d,
                             const Plan& plan,
                             Index plane,
                             Index end_plane,
                             Index at,
                             const Visitor& visitor,
                             const Entry* entries,
                             Index count) {
  for (; plane < end_plane; ++plane) {
    const Index source = plane * plan.source_plane_size();
    const Index dest = plane * plan.dest_plane_size() + at;
    Index i = 0;
    for (; i + 4 * lanes(d) <= plan.inner; i += 4 * lanes(d)) {
      visitor.template run<4>(entries, count, source + i, dest + i);
    }
    for (; i + lanes(d) <= plan.inner; i += lanes(d)) {
      visitor.template run<1>(entries, count, source + i, dest + i);
    }
    if (i < plan.inner) {
      i = plan.inner - lanes(d);
      visitor.template run<1>(entries, count, source + i, dest + i);
    }
  }
}

/// Covers [0, n) with vectors most of which start where those that wrote the rows did, at `inside`
/// and every vector from there. Those at either end overlap their neighbours instead of being cut
/// short: numbers met twice are the same, and a partial store costs more than a vector.
template <class D, class F>
HWY_INLINE void for_split(D d, Index inside, Index n, const F& f) {
  if (n < lanes(d)) {
    f(Index{0}, n);
    return;
  }
  for (Index i = 0; i < inside; i += lanes(d)) {
    f(std::min(i, n - lanes(d)), lanes(d));
  }
  Index i = inside;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    f(i, lanes(d));
  }
  if (i < n) {
    f(n - lanes(d), lanes(d));
  }
}

/// Windows [begin, end) of a block, counted from its first, that see real cells only.
HWY_INLINE Columns inside_windows(const WindowAxis& a, Columns columns) {
  const Index first = ceil_div(a.pad_low, a.stride);
  const Index room = a.in - a.span() + a.pad_low;
  const Index end = room < 0 ? 0 : std::min(room / a.stride + 1, a.out);
  const Index low = std::clamp(first, columns.begin, columns.end);
  return {low - columns.begin, std::clamp(end, low, columns.end) - columns.begin};
}

/// Steps [begin, end) of a block of cells, counted from its first, all of whose phases are cells
/// that as many windows see as there are taps.
HWY_INLINE Columns inside_cells(const WindowAxis& a, Columns columns) {
  const Index first = std::max(last_step(a), ceil_div(a.pad_low, a.stride));
  const Index end = std::min(a.out, (a.in + a.pad_low) / a.stride);
  const Index low = std::clamp(first, columns.begin, columns.end);
  return {low - columns.begin, std::clamp(end, low, columns.end) - columns.begin};
}

/// Reads each tap of consecutive windows, the first of which starts at `at`, as f(vector, tap).
/// Stride 2 reads pairs and never beyond the last tap; it needs at least two taps. kTaps 0: as many
/// as `taps` says; else the reads are unrolled, and the number of the tap is a constant in f.
template <int kStride, int kTaps, class D, class T, class F>
HWY_INLINE void for_taps(D d, const T* at, Index taps, Index step, const F& f) {
  if constexpr (kStride == 1 && kTaps > 0) {
    FENESTRA_UNROLL
    for (Index t = 0; t < kTaps; ++t) {
      f(hn::LoadU(d, at + t * step), t);
    }
  } else if constexpr (kStride == 1) {
    for (Index t = 0; t < taps; ++t) {
      f(hn::LoadU(d, at + t * step), t);
    }
  } else {
    hn::Vec<D> even, odd;
    hn::LoadInterleaved2(d, at, even, odd);
    f(even, Index{0});
    Index t = 1;
    if (step == 1) {
      f(odd, Index{1});
      if constexpr (kTaps == 2) {
        return;
      }
      if constexpr (kTaps == 3) {
        hn::LoadInterleaved2(d, at + 1, even, odd);
        f(odd, Index{2});
        return;
      }
      for (t = 2; t + 1 < taps; t += 2) {
        hn::LoadInterleaved2(d, at + t, even, odd);
        f(even, t);
        f(odd, t + 1);
      }
    }
    for (; t < taps; ++t) {
      hn::LoadInterleaved2(d, at + t * step - 1, even, odd);
      f(odd, t);
    }
  }
}

/// Reduces rows over their own taps. Windows inside the input are read from the row itself where
/// the stride is 1 or 2; the few at its ends one by one; other strides, and rows too short for a
/// vector, go through a copy taken apart into phases. `reducer` has
///   void vector<kStride>(at, step, i)   the vector of windows that starts at number i
///   void single(at, step, end)          one number of a window that is cut short
///   void split(phases, offsets, n)      all n numbers from phases
struct EndWindow {
  Index from = 0;        ///< of its first tap in the row, which may lie outside
  Index to = 0;          ///< its place in the reduced row
  Index real_begin = 0;  ///< taps that see real cells, dilated taps included
  Index real_end = 0;
  Index declared_end = 0;  ///< taps before this see the input or its declared padding
};

template <class T>
class RowReader {
 public:
  void carve(Carver& carver, const WindowAxis& a, Index inner, Index columns) {
    phases_ = carver.take<T>(a.stride * phase_pitch(a, columns, inner));
    ranges_ = carver.take<typename RowSplitter<T>::Range>(a.stride);
    offsets_ = carver.take<Index>(a.kernel);
    ends_ = carver.take<EndWindow>(columns * inner);
  }
  void start(const WindowAxis& a, Index inner, Columns columns, Outside<T> outside) {
    a_ = a;
    inner_ = inner;
    columns_ = columns;
    inside_ = inside_windows(a, columns);
    direct_ = (a.stride == 1 || (a.stride == 2 && inner == 1 && a.kernel > 1)) &&
              inside_.count() * inner >= lanes(Wide<T>());
    if (direct_) {
      end_count_ = 0;
      list_ends(0, inside_.begin);
      list_ends(inside_.end, columns.count());
      return;
    }
    splitter_.start(a, inner, columns, ranges_);
    splitter_.fill_outside(outside, phases_);
    const Index pitch = phase_pitch(a, columns.count(), inner);
    for (Index t = 0; t < a.kernel; ++t) {
      offsets_[t] = tap_phase(a, t) * pitch + tap_step(a, t) * inner;
    }
  }
  bool is_direct() const { return direct_; }
  /// Where vectors of the reduced row should start.
  Index split() const { return direct_ ? inside_.begin * inner_ : 0; }

  template <class Reducer>
  HWY_INLINE void reduce(const T* row, Reducer& reducer) const {
    if (!direct_) {
      splitter_.split(row, phases_);
      reducer.split(phases_, offsets_, columns_.count() * inner_);
      return;
    }
    const Index begin = inside_.begin * inner_;
    const Index end = inside_.end * inner_;
    const T* at = row + (columns_.begin * a_.stride - a_.pad_low) * inner_;
    const Index step = a_.dilation * inner_;
    constexpr Index kLanes = lanes(Wide<T>());
    Index i = begin;
    if (a_.stride == 1) {
      for (; i + kLanes <= end; i += kLanes) {
        reducer.template vector<1>(at + i, step, i);
      }
      if (i < end) {
        reducer.template vector<1>(at + end - kLanes, step, end - kLanes);
      }
    } else {
      for (; i + kLanes <= end; i += kLanes) {
        reducer.template vector<2>(at + 2 * i, step, i);
      }
      if (i < end) {
        reducer.template vector<2>(at + 2 * (end - kLanes), step, end - kLanes);
      }
    }
    for (Index e = 0; e < end_count_; ++e) {
      reducer.single(row + ends_[e].from, step, ends_[e]);
    }
  }

 private:
  void list_ends(Index begin, Index end) {
    for (Index o = begin; o < end; ++o) {
      const Window window = a_.window(columns_.begin + o);
      const auto taps_before = [&](Index cell) {
        const Index distance = cell - window.first;
        return std::clamp<Index>(
            distance <= 0 ? 0 : ceil_div(distance, window.step), 0, window.taps);
      };
      const Index real_begin = taps_before(0);
      for (Index c = 0; c < inner_; ++c) {
        ends_[end_count_++] = {window.first * inner_ + c,
                               o * inner_ + c,
                               real_begin,
                               std::max(taps_before(a_.in), real_begin),
                               taps_before(a_.in + a_.pad_high)};
      }
    }
  }

  WindowAxis a_;
  Index inner_ = 1;
  Columns columns_;
  Columns inside_;
  bool direct_ = false;
  RowSplitter<T> splitter_;
  T* phases_ = nullptr;
  typename RowSplitter<T>::Range* ranges_ = nullptr;
  Index* offsets_ = nullptr;
  EndWindow* ends_ = nullptr;
  Index end_count_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_POOL_VECTORS_INL
