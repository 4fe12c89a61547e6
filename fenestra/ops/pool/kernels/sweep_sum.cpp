// The algorithm "sweep" for average and Lp pooling and the average's adjoint, channels last: the
// source rows of a row are summed into one, number by number, and each of its windows (or cells) is
// the sum of a few columns of that. Both are sums of runs that start on the same vectors, so
// nothing is listed or taken apart, and a window of k x k cells takes 2 k reads instead of k^2.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/pool/kernels/call.hpp>
#include <fenestra/ops/pool/kernels/sweep.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/pool/kernels/sweep_sum.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool/kernels/sums-inl.hpp>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// `Map` is applied to what is read, `Finish` to the sums of Lp; averages are divided.
template <class T, class R, class Map, class Finish>
class SweptSums {
 public:
  SweptSums(const Call<T, R>& call, Map map, Finish finish)
      : call_(call),
        plan_(call.plan),
        inner_(call.plan.inner),
        blocks_(call.plan),
        map_(map),
        finish_(finish),
        uniform_(uniform_divisor()) {}

  /// Destination rows [begin, end), row i % dest_rows() of plane i / dest_rows().
  void run(Index begin, Index end) {
    ScratchFrame frame;
    links_ = frame.take<RowLink>(most_row_links(plan_));
    spare_ = frame.take<RowLink>(most_row_links(plan_));
    rows_ = frame.take<const T*>(most_row_links(plan_));
    columns_ = frame.take<Column>(blocks_.columns);
    summed_ = frame.take<T>(blocks_.sources * inner_);
    const Index all = plan_.dest(plan_.outer_axes());
    // Down the rows before along them: what rows share stays in the nearest cache.
    for (Index first = 0; first < all; first += blocks_.columns) {
      const Index last = std::min(first + blocks_.columns, all);
      list_columns(first, last);
      for (Index i = begin; i < end; ++i) {
        const Index plane = i / plan_.dest_rows();
        const Index row = i % plan_.dest_rows();
        const Index count = row_links(plan_, row, links_, spare_);
        const T* in = call_.args.in + plane * plan_.source_plane_size();
        T* out = call_.args.out + plane * plan_.dest_plane_size() + row * plan_.dest_row_size() +
                 first * inner_;
        if (count == 0) {
          fill(out, (last - first) * inner_, T(0));
          continue;
        }
        for (Index l = 0; l < count; ++l) {
          rows_[l] = in + links_[l].source * plan_.source_row_size() + sources_.begin * inner_;
        }
        sum_columns(sum_rows(count), last - first, row, out);
      }
    }
  }

 private:
  static constexpr bool kAverage = std::is_same_v<R, AverageReduction>;
  using D = Wide<T>;
  using V = hn::Vec<D>;

  /// The sources of a destination column: `count` of them, `step` numbers apart.
  struct Column {
    Index first = 0;
    Index step = 0;
    Index count = 0;
    Index divisor = 1;  ///< of a window: the part of its column
  };

  Division<T> uniform_divisor() const {
    if constexpr (kAverage) {
      return Division<T>(call_.divisors.uniform != 0 ? call_.divisors.uniform : 1);
    } else {
      return Division<T>(1);
    }
  }
  bool is_uniform() const {
    if constexpr (kAverage) {
      return call_.divisors.uniform != 0;
    } else {
      return true;
    }
  }

  void list_columns(Index begin, Index end) {
    sources_ = SweepBlocks::sources_of(plan_, begin, end);
    for (Index c = begin; c < end; ++c) {
      Column column;
      for_each_link(plan_.last(), plan_.to_cells, c, false, [&](Index source, Index, Index) {
        const Index at = (source - sources_.begin) * inner_;
        if (column.count == 0) {
          column.first = at;
        } else if (column.count == 1) {
          column.step = at - column.first;
        }
        ++column.count;
      });
      if constexpr (kAverage) {
        if (!is_uniform() && !plan_.to_cells) {
          column.divisor = call_.divisors.of_column(plan_, c);
        }
      }
      columns_[c - begin] = column;
    }
  }

  /// The rows of all columns that the block needs, as one.
  const T* sum_rows(Index count) {
    const Index n = sources_.count() * inner_;
    if constexpr (kAverage) {
      if (plan_.to_cells && !is_uniform()) {
        sum_shares(count);
        return summed_;
      }
      if (count == 1) {
        return rows_[0];
      }
    }
    switch (count) {
      case 1: sum_runs<1>(1, n); break;
      case 2: sum_runs<2>(2, n); break;
      case 3: sum_runs<3>(3, n); break;
      default: sum_runs<0>(count, n);
    }
    return summed_;
  }
  template <int kRows>
  HWY_INLINE void sum_runs(Index count, Index n) const {
    const D d;
    const Map map = map_;
    const T* first = rows_[0];
    T* to = summed_;
    if constexpr (kRows > 0) {
      const T* rows[kRows];
      std::copy(rows_, rows_ + kRows, rows);
      for_exact(d, n, [&](Index i, Index) FENESTRA_INLINE_LAMBDA {
        V sum = map(d, hn::LoadU(d, first + i));
        FENESTRA_UNROLL
        for (int l = 1; l < kRows; ++l) {
          sum = hn::Add(sum, map(d, hn::LoadU(d, rows[l] + i)));
        }
        hn::StoreU(sum, d, to + i);
      });
    } else {
      const T* const* rows = rows_;
      for_exact(d, n, [&](Index i, Index) FENESTRA_INLINE_LAMBDA {
        V sum = map(d, hn::LoadU(d, first + i));
        for (Index l = 1; l < count; ++l) {
          sum = hn::Add(sum, map(d, hn::LoadU(d, rows[l] + i)));
        }
        hn::StoreU(sum, d, to + i);
      });
    }
  }
  /// The same of windows that have divisors of their own.
  void sum_shares(Index count) const {
    const D d;
    for (Index o = sources_.begin; o < sources_.end; ++o) {
      const Index at = (o - sources_.begin) * inner_;
      const Index of_column = call_.divisors.of_column(plan_, o);
      for (Index l = 0; l < count; ++l) {
        const Index of_row = call_.divisors.of_row(plan_, links_[l].source);
        const Division<T> divide(std::max<Index>(of_row * of_column, 1));
        const T* from = rows_[l] + at;
        T* to = summed_ + at;
        // Not for_exact: a number that is added to must be met once.
        Index i = 0;
        for (; i + lanes(d) <= inner_; i += lanes(d)) {
          const V share = divide(hn::LoadU(d, from + i));
          hn::StoreU(l == 0 ? share : hn::Add(hn::LoadU(d, to + i), share), d, to + i);
        }
        const hn::CappedTag<T, 1> one;
        for (; i < inner_; ++i) {
          const auto share = divide(hn::LoadU(one, from + i));
          hn::StoreU(l == 0 ? share : hn::Add(hn::LoadU(one, to + i), share), one, to + i);
        }
      }
    }
  }

  void sum_columns(const T* summed, Index count, Index row, T* out) const {
    Index of_row = 1;
    if constexpr (kAverage) {
      of_row = is_uniform() || plan_.to_cells ? 1 : call_.divisors.of_row(plan_, row);
    }
    const bool divides = !is_uniform() && !plan_.to_cells;
    for (Index c = 0; c < count; ++c, out += inner_) {
      const Column column = columns_[c];
      const T* from = summed + column.first;
      const Division<T> divide =
          divides ? Division<T>(std::max<Index>(of_row * column.divisor, 1)) : uniform_;
      switch (column.count) {
        case 0: fill(out, inner_, T(0)); break;
        case 1: sum_column<1>(from, column, divide, out); break;
        case 2: sum_column<2>(from, column, divide, out); break;
        case 3: sum_column<3>(from, column, divide, out); break;
        default: sum_column<0>(from, column, divide, out);
      }
    }
  }
  template <int kCount>
  HWY_INLINE void sum_column(const T* from,
                             const Column& column,
                             const Division<T>& divide,
                             T* out) const {
    const D d;
    const Index step = column.step;
    const Finish finish = finish_;
    const Index count = column.count;
    for_exact(d, inner_, [&](Index i, Index) FENESTRA_INLINE_LAMBDA {
      V sum = hn::LoadU(d, from + i);
      if constexpr (kCount > 0) {
        FENESTRA_UNROLL
        for (int k = 1; k < kCount; ++k) {
          sum = hn::Add(sum, hn::LoadU(d, from + i + k * step));
        }
      } else {
        for (Index k = 1; k < count; ++k) {
          sum = hn::Add(sum, hn::LoadU(d, from + i + k * step));
        }
      }
      if constexpr (kAverage) {
        hn::StoreU(divide(sum), d, out + i);
      } else {
        hn::StoreU(finish(d, sum, 0), d, out + i);
      }
    });
  }

  const Call<T, R>& call_;
  const Plan& plan_;
  const Index inner_;
  const SweepBlocks blocks_;
  const Map map_;
  const Finish finish_;
  const Division<T> uniform_;
  Columns sources_;  ///< of the block
  RowLink* links_ = nullptr;
  RowLink* spare_ = nullptr;
  const T** rows_ = nullptr;
  Column* columns_ = nullptr;
  T* summed_ = nullptr;
};

template <class T, class R>
void sweep(const Call<T, R>& call, Index begin, Index end) {
  const auto run = [&](const auto& map, const auto& finish) {
    using Map = std::remove_cvref_t<decltype(map)>;
    using Finish = std::remove_cvref_t<decltype(finish)>;
    SweptSums<T, R, Map, Finish>(call, map, finish).run(begin, end);
  };
  if constexpr (std::is_same_v<R, AverageReduction>) {
    run(Plain(), Same());
  } else {
    as_sum(call, run);
  }
}

void sweep_any(const CallOf<AverageReduction, LpReduction>& call, Index begin, Index end) {
  std::visit([&](const auto* c) HWY_ATTR { sweep(*c, begin, end); }, call);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::pooling {

HWY_EXPORT(sweep_any);

void run_sweep_on(const CallOf<AverageReduction, LpReduction>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(sweep_any)(call, begin, end);
}

}  // namespace fenestra::pooling
#endif  // HWY_ONCE
