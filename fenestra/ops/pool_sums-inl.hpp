// Sums over windows on vectors, shared by average and Lp pooling: y = finish(sum of map(x)).
// Included inside foreach_target only; see pool_links.hpp and pool_vectors-inl.hpp. Not installed.
// An include guard that opens again for every instruction set.
#if defined(FENESTRA_POOL_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_POOL_SUMS_INL
#undef FENESTRA_POOL_SUMS_INL
#else
#define FENESTRA_POOL_SUMS_INL
#endif

#include <fenestra/ops/pool_vectors-inl.hpp>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// One row over its own taps. kTaps 0: as many as there are.
template <class T, int kTaps, class Map>
struct SumReducer {
  Index taps;
  T* sums;
  const Map& map;

  template <int kStride, class Load>
  HWY_INLINE void vector(const Load& load, Index step, Index to, Index) const {
    const Wide<T> d;
    auto sum = hn::Zero(d);
    for_taps<kStride, kTaps>(
        d, load, taps, step, [&](hn::Vec<Wide<T>> v, Index t) FENESTRA_INLINE_LAMBDA {
          sum = t == 0 ? map(d, v) : hn::Add(sum, map(d, v));
        });
    hn::StoreU(sum, d, sums + to);
  }
  HWY_INLINE void split(const T* phases, const Index* offsets, Index to, Index i) const {
    const Wide<T> d;
    auto sum = map(d, hn::LoadU(d, phases + offsets[0] + i));
    for (Index t = 1; t < taps; ++t) {
      sum = hn::Add(sum, map(d, hn::LoadU(d, phases + offsets[t] + i)));
    }
    hn::StoreU(sum, d, sums + to);
  }
};

/// The tiles of a sum over windows. `finish` has carve(Carver&, columns), start(Columns),
/// row(dest_row) and operator()(d, sum, i), i the number in the row of the block.
template <class T, class Map, class Finish>
class SumForward {
 public:
  SumForward(const Plan& plan, const Tiling& tiling, const T* x, T* y, Map map, Finish finish)
      : plan_(plan),
        a_(plan.last()),
        inner_(plan.inner),
        columns_per_block_(tiling.columns_per_block),
        x_(x),
        y_(y),
        map_(map),
        finish_(finish) {}

  static Index slot_numbers(const Plan& plan, Index columns) {
    return columns * plan.inner + kSlack;
  }
  Index slot_size() const { return slot_numbers(plan_, columns_per_block_); }
  void carve(Carver& carver) {
    reader_.carve(carver, a_, inner_, columns_per_block_);
    finish_.carve(carver, columns_per_block_);
    rows_ = carver.take<const T*>(most_row_links(plan_));
  }
  void start(Columns columns) {
    columns_ = columns;
    reader_.start(a_,
                  inner_,
                  columns,
                  Outside<T>{T(0), T(0)},
                  true,
                  x_,
                  x_ + plan_.planes * plan_.source_plane_size());
    finish_.start(columns);
  }
  void prepare(T* slot, Index plane, Index source_row) {
    const T* row = x_ + plane * plan_.source_plane_size() + source_row * plan_.source_row_size();
    if (!reader_.is_direct()) {
      SumReducer<T, 0, Map> reducer{a_.kernel, slot, map_};
      reader_.reduce_split(row, reducer);
      return;
    }
    switch (a_.dilation == 1 ? a_.kernel : 0) {
      case 2: reduce<2>(row, slot); break;
      case 3: reduce<3>(row, slot); break;
      default: reduce<0>(row, slot);
    }
  }
  void pad(T*) const {}
  void emit(const SlotLink* links, Index count, const T* slots, Index plane, Index dest_row) {
    T* y = y_ + plane * plan_.dest_plane_size() + dest_row * plan_.dest_row_size() +
           columns_.begin * inner_;
    const Index n = columns_.count() * inner_;
    if (count == 0) {
      fill(y, n, T(0));
      return;
    }
    for (Index l = 0; l < count; ++l) {
      rows_[l] = slots + links[l].slot * slot_size();
    }
    finish_.row(dest_row);
    switch (count) {
      case 1: combine<1>(1, n, y); break;
      case 2: combine<2>(2, n, y); break;
      case 3: combine<3>(3, n, y); break;
      default: combine<0>(count, n, y);
    }
  }

 private:
  template <int kTaps>
  HWY_INLINE void reduce(const T* row, T* slot) const {
    SumReducer<T, kTaps, Map> reducer{a_.kernel, slot, map_};
    reader_.reduce(row, reducer);
  }
  template <int kRows>
  HWY_INLINE void combine(Index rows, Index n, T* y) const {
    const Wide<T> d;
    const T* const* from = rows_;
    const Finish finish = finish_;  // a copy, which no store can change
    const bool reordered = reader_.is_reordered();
    const Index vectors = reader_.vectors();
    const Index last = reader_.position(vectors - 1);
    for (Index k = 0; k < vectors; ++k) {
      const Index from_i = k * lanes(d);
      const Index i = std::min(from_i, last);
      auto sum = hn::LoadU(d, from[0] + from_i);
      for (Index l = 1; l < (kRows > 0 ? kRows : rows); ++l) {
        sum = hn::Add(sum, hn::LoadU(d, from[l] + from_i));
      }
      sum = reordered ? reorder(d, sum) : sum;
      store_part(d, finish(d, sum, i), y + i, n);
    }
  }

  const Plan& plan_;
  const WindowAxis a_;
  const Index inner_;
  const Index columns_per_block_;
  const T* x_;
  T* y_;
  const Map map_;
  Finish finish_;
  Columns columns_;
  RowReader<T> reader_;
  const T** rows_ = nullptr;
};

/// Positions one by one; `finish` has position(row, column) and operator()(d, sum, 0).
template <class D, class T, class Map, class Finish>
struct SumPositions {
  const Plan& plan;
  const T* x;
  T* y;
  Map map;
  Finish& finish;

  template <int kVectors>
  HWY_INLINE void run(const Entry* entries, Index count, Index source, Index dest) const {
    const D d;
    hn::Vec<D> sum[kVectors];
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Zero(d);
    }
    for (Index e = 0; e < count; ++e) {
      const T* from = x + source + entries[e].offset;
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        sum[v] = hn::Add(sum[v], map(d, hn::LoadU(d, from + v * lanes(d))));
      }
    }
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto result = count == 0 ? hn::Zero(d) : finish(d, sum[v], 0);
      hn::StoreU(result, d, y + dest + v * lanes(d));
    }
  }
  void operator()(const Entry* entries, Index count, Index plane, Index end_plane, Index at) const {
    const Index position = at / plan.inner;
    const Index columns = plan.dest(plan.outer_axes());
    finish.position(position / columns, position % columns);
    for_position(D(), plan, plane, end_plane, at, *this, entries, count);
  }
};

/// Planes [begin, end) that are one window each.
template <class T, class Map, class Finish>
HWY_INLINE void sum_whole(
    Index n, const T* x, T* y, const Map& map, const Finish& finish, Index begin, Index end) {
  const Wide<T> d;
  const Single<T> one;
  for (Index plane = begin; plane < end; ++plane) {
    const T* from = x + plane * n;
    Index i = 0;
    auto tail = hn::Zero(one);
    // Two sums hide the latency of the addition on the short rows that global pools have.
    auto a = hn::Zero(d);
    auto b = hn::Zero(d);
    for (; i + 2 * lanes(d) <= n; i += 2 * lanes(d)) {
      a = hn::Add(a, map(d, hn::LoadU(d, from + i)));
      b = hn::Add(b, map(d, hn::LoadU(d, from + i + lanes(d))));
    }
    for (; i + lanes(d) <= n; i += lanes(d)) {
      a = hn::Add(a, map(d, hn::LoadU(d, from + i)));
    }
    for (; i < n; ++i) {
      tail = hn::Add(tail, map(one, hn::LoadU(one, from + i)));
    }
    const auto all = hn::Set(one, hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b))));
    hn::StoreU(finish(one, hn::Add(all, tail), 0), one, y + plane);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_POOL_SUMS_INL
