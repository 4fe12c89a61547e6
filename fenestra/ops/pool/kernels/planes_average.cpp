// The algorithm "planes" for average pooling and its adjoint: stored planes are summed along the
// rows as if they were one, then across rows, then divided.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/pool/kernels/call.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/pool/kernels/planes_average.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool/kernels/division-inl.hpp>
#include <fenestra/ops/pool/kernels/planes-inl.hpp>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// The sum of runs at several distances. kCount 0: as many as there are.
template <class T, int kCount>
class RunSum {
 public:
  HWY_INLINE RunSum(const T* from, const Index* offsets, Index count)
      : from_(from), offsets_(offsets), count_(count) {}
  HWY_INLINE hn::Vec<Wide<T>> operator()(Index i) const {
    const Wide<T> d;
    if constexpr (kCount > 0) {
      auto sum = hn::LoadU(d, from_ + offsets_[0] + i);
      FENESTRA_UNROLL
      for (int r = 1; r < kCount; ++r) {
        sum = hn::Add(sum, hn::LoadU(d, from_ + offsets_[r] + i));
      }
      return sum;
    } else {
      auto sum = hn::Zero(d);
      for (Index r = 0; r < count_; ++r) {
        sum = hn::Add(sum, hn::LoadU(d, from_ + offsets_[r] + i));
      }
      return sum;
    }
  }

 private:
  const T* from_;
  const Index* offsets_;
  Index count_;
};

template <class T>
class AvgPlanes {
 public:
  explicit AvgPlanes(const Call<T, AverageReduction>& call)
      : call_(call),
        l_(call.layout),
        t_(call.layout),
        to_cells_(call.plan.to_cells),
        uniform_(call.divisors.uniform != 0) {
    // A share of a cell that one window sees is the same divided before it is spread.
    for (int axis = 0; to_cells_ && axis < l_.rank; ++axis) {
      divides_last_ = divides_last_ || (uniform_ && l_.axes[axis].a.shared() > 0);
    }
  }

  void take(ScratchFrame& frame) {
    t_.take(frame);
    stored_ = frame.take<T>(l_.phases() * l_.phase_size);
    sums_ = frame.take<T>(runs() * l_.phase_size);
    divisors_ = frame.take<T>(uniform_ ? 0 : l_.phase_size);
    row_offsets_ = frame.take<Index>(call_.plan.windows.taps() / l_.last().a.kernel);
    column_offsets_ = frame.take<Index>(l_.last().a.kernel);
    edge_ = frame.take<T>(Copy::edge_size(l_));
  }
  void start() {
    t_.start();
    for (Index r = 0; r < t_.rows.begin[l_.row_classes()]; ++r) {
      row_offsets_[r] = t_.rows.taps[r].phase * l_.phase_size + t_.rows.taps[r].distance;
    }
    for (Index c = 0; c < t_.columns.begin[l_.last().dest_classes()]; ++c) {
      column_offsets_[c] = t_.columns.taps[c].phase * l_.phase_size + t_.columns.taps[c].distance;
    }
    // What lies between the runs is read, but never used.
    fill(sums_, runs() * l_.phase_size, T(0));
  }
  void start_block(Index block) {
    t_.start_block(call_.plan, block);
    fill(stored_, l_.phases() * l_.phase_size, T(0));
    if (!uniform_) {
      to_cells_ ? list_source_divisors() : list_divisors();
    }
  }
  void run(Index plane, Index planes) const {
    const Index size = call_.plan.source_plane_size();
    const Copy copy(l_, t_, call_.args.in + call_.plan.planes * size, T(0), edge_);
    copy(call_.args.in + plane * size, size, planes, stored_);
    T* out = call_.args.out + plane * call_.plan.dest_plane_size() + t_.dest_begin;
    if (to_cells_) {
      if (!divides_last_) {
        divide_stored(planes);
      }
      sum_columns(planes);
      store_sums(planes, out);
    } else {
      sum_columns(planes);
      switch (t_.rows.begin[1]) {
        case 2: average<2>(planes, out); break;
        case 3: average<3>(planes, out); break;
        default: average<0>(planes, out);
      }
    }
  }

 private:
  using Copy = PlaneCopy<T, T, PlainLoad<T>, false>;

  /// Summed runs: one per class of the columns, or one per phase of the rows. One of the two is 1.
  Index runs() const { return l_.outer_phases * l_.last().dest_classes(); }

  /// Each run along the row, all rows at once.
  void sum_columns(Index planes) const {
    for (Index run = 0; run < runs(); ++run) {
      const Index column_class = to_cells_ ? run : 0;
      const Index begin = t_.columns.begin[column_class];
      const Index count = t_.columns.begin[column_class + 1] - begin;
      const T* from = stored_ + (to_cells_ ? 0 : run * l_.last().phases * l_.phase_size);
      T* to = sums_ + run * l_.phase_size;
      const Index* offsets = column_offsets_ + begin;
      switch (count) {
        case 1: sum_run(planes, to, RunSum<T, 1>(from, offsets, 1)); break;
        case 2: sum_run(planes, to, RunSum<T, 2>(from, offsets, 2)); break;
        case 3: sum_run(planes, to, RunSum<T, 3>(from, offsets, 3)); break;
        default: sum_run(planes, to, RunSum<T, 0>(from, offsets, count));
      }
    }
  }
  template <class Sum>
  HWY_INLINE void sum_run(Index planes, T* to, const Sum& sum) const {
    const Wide<T> d;
    const Index n = planes * l_.block_size - l_.last().reach;
    for (Index i = 0; i < n; i += lanes(d)) {
      hn::StoreU(sum(i), d, to + i);
    }
  }
  template <int kRows>
  HWY_INLINE void average(Index planes, T* y) const {
    const Wide<T> d;
    const RunSum<T, kRows> sum(sums_, row_offsets_, t_.rows.begin[1]);
    if (uniform_) {
      const Division<T> divide(call_.divisors.uniform);
      for_windows<T>(l_, t_, planes, [&](Index at, Index i, Index left) FENESTRA_INLINE_LAMBDA {
        store_part(d, divide(sum(at)), y + i, left);
      });
    } else {
      const T* divisors = divisors_;
      for_windows<T>(l_, t_, planes, [&](Index at, Index i, Index left) FENESTRA_INLINE_LAMBDA {
        store_part(d, hn::Div(sum(at), hn::LoadU(d, divisors + at)), y + i, left);
      });
    }
  }
  void store_sums(Index planes, T* x_bar) const {
    const Division<T> divide(divides_last_ ? call_.divisors.uniform : 1);
    for_cell_rows(l_,
                  t_,
                  planes,
                  [&](Index row_class, Index at, Index to, Index left) FENESTRA_INLINE_LAMBDA {
                    const Index begin = t_.rows.begin[row_class];
                    const Index count = t_.rows.begin[row_class + 1] - begin;
                    switch (count) {
                      case 1: store_row<1>(begin, count, divide, at, x_bar + to, left); break;
                      case 2: store_row<2>(begin, count, divide, at, x_bar + to, left); break;
                      case 3: store_row<3>(begin, count, divide, at, x_bar + to, left); break;
                      default: store_row<0>(begin, count, divide, at, x_bar + to, left);
                    }
                  });
  }
  template <int kRows>
  HWY_INLINE void store_row(
      Index begin, Index count, const Division<T>& divide, Index at, T* to, Index left) const {
    const Index n = l_.last().dest();
    const Index classes = l_.last().dest_classes();
    const auto share = [&](Index column_class) FENESTRA_INLINE_LAMBDA {
      return Share<kRows>{
          RunSum<T, kRows>(sums_ + column_class * l_.phase_size + at, row_offsets_ + begin, count),
          divide};
    };
    if (classes == 1) {
      store_ones(n, to, left, share(0));
    } else if (classes == 2) {
      store_pairs(n, to, left, share(0), share(1));
    } else {
      for (Index c = 0; c < classes; ++c) {
        store_class(n, c, classes, to, share(c));
      }
    }
  }
  template <int kRows>
  struct Share {
    RunSum<T, kRows> sum;
    Division<T> divide;
    HWY_INLINE hn::Vec<Wide<T>> operator()(Index i) const { return divide(sum(i)); }
  };

  void divide_stored(Index planes) const {
    const Wide<T> d;
    const Index n = planes * l_.block_size;
    const Division<T> divide(uniform_ ? call_.divisors.uniform : 1);
    for (Index i = 0; i < n; i += lanes(d)) {
      const auto y_bar = hn::LoadU(d, stored_ + i);
      hn::StoreU(
          uniform_ ? divide(y_bar) : hn::Div(y_bar, hn::LoadU(d, divisors_ + i)), d, stored_ + i);
    }
  }
  /// The divisor of each window where it is computed.
  void list_divisors() {
    fill(divisors_, l_.phase_size, T(1));
    const Index n = l_.last().dest();
    for (Index row = 0; row < t_.dest_row_count; ++row) {
      list_row(t_.dest_begin / n + row, t_.dest_rows[row].at, 0);
    }
    repeat_divisors();
  }
  /// The divisor of each window where it is stored.
  void list_source_divisors() {
    fill(divisors_, l_.phase_size, T(1));
    if (t_.run_count == 0) {
      return;  // every window of a row lies beside the cells
    }
    const PlaneTables::SourceRun& run = t_.source_runs[0];
    for (Index row = 0; row < t_.source_row_count; ++row) {
      const PlaneTables::SourceRow& source = t_.source_rows[row];
      list_row(source.from / l_.last().source(), source.to + run.to, run.from);
    }
    repeat_divisors();
  }
  void list_row(Index row, Index at, Index first) {
    const Index outer = std::max<Index>(call_.divisors.of_row(call_.plan, row), 1);
    const Index end = to_cells_ ? first + t_.source_runs[0].count : l_.last().dest();
    for (Index o = first; o < end; ++o) {
      divisors_[at + o - first] = static_cast<T>(outer * call_.divisors.of_column(call_.plan, o));
    }
  }
  void repeat_divisors() {
    for (Index plane = 1; plane < l_.planes_per_group; ++plane) {
      std::copy(divisors_, divisors_ + l_.block_size, divisors_ + plane * l_.block_size);
    }
  }

  const Call<T, AverageReduction>& call_;
  const PlaneLayout& l_;
  PlaneTables t_;
  const bool to_cells_;
  const bool uniform_;
  bool divides_last_ = false;  ///< adjoint: sums, not shares, are divided
  T* stored_ = nullptr;
  T* sums_ = nullptr;
  T* divisors_ = nullptr;
  Index* row_offsets_ = nullptr;
  Index* column_offsets_ = nullptr;
  T* edge_ = nullptr;
};

template <class T>
void planes(const Call<T, AverageReduction>& call, Index begin, Index end) {
  AvgPlanes<T> op(call);
  run_plane_groups(call.plan, call.layout, op, begin, end);
}

void planes_any(const CallOf<AverageReduction>& call, Index begin, Index end) {
  std::visit([&](const auto* c) HWY_ATTR { planes(*c, begin, end); }, call);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::pooling {

HWY_EXPORT(planes_any);

void run_planes_on(const CallOf<AverageReduction>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(planes_any)(call, begin, end);
}

}  // namespace fenestra::pooling
#endif  // HWY_ONCE
