// Average and Lp pooling as sums over windows, y = finish(sum of map(x)): their maps and finishes.
// Included inside foreach_target only. Not installed.
// An include guard that opens again for every instruction set.
#if defined(FENESTRA_POOL_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_POOL_SUMS_INL
#undef FENESTRA_POOL_SUMS_INL
#else
#define FENESTRA_POOL_SUMS_INL
#endif

#include <fenestra/ops/pool/kernels/call.hpp>
#include <fenestra/ops/pool/kernels/division-inl.hpp>
#include <fenestra/ops/pool/kernels/vectors-inl.hpp>

#include <hwy/highway.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

struct Plain {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return v;
  }
};

/// Divides a sum by the divisor of its window.
template <class T>
class Divide {
 public:
  explicit Divide(const Call<T, AverageReduction>& call)
      : call_(&call),
        divide_(is_uniform() ? call.divisors.uniform : 1),
        divisor_(static_cast<T>(call.divisors.uniform)) {}

  void take(ScratchFrame& frame, Index columns) {
    table_ = is_uniform() ? nullptr : frame.take<T>(columns * call_->plan.inner + kSlack);
  }
  void start(Columns columns) {
    const Index inner = call_->plan.inner;
    for (Index o = columns.begin; !is_uniform() && o < columns.end; ++o) {
      fill(table_ + (o - columns.begin) * inner,
           inner,
           static_cast<T>(call_->divisors.of_column(call_->plan, o)));
    }
    if (!is_uniform()) {
      fill(table_ + columns.count() * inner, kSlack, T(1));
    }
  }
  void row(Index row) {
    if (!is_uniform()) {
      divisor_ = static_cast<T>(call_->divisors.of_row(call_->plan, row));
    }
  }
  void position(Index row, Index column) {
    if (!is_uniform()) {
      divisor_ = static_cast<T>(call_->divisors.of_row(call_->plan, row) *
                                call_->divisors.of_column(call_->plan, column));
    }
    table_ = nullptr;
  }
  template <class D, class V>
  HWY_INLINE V operator()(D d, V sum, Index i) const {
    const auto divisor = hn::Set(d, divisor_);
    if (is_uniform()) {
      return divide_(sum);
    }
    return table_ == nullptr ? hn::Div(sum, divisor)
                             : hn::Div(sum, hn::Mul(divisor, hn::LoadU(d, table_ + i)));
  }

 private:
  bool is_uniform() const { return call_->divisors.uniform != 0; }

  const Call<T, AverageReduction>* call_;
  Division<T> divide_;  ///< by the divisor of all windows
  T divisor_;
  T* table_ = nullptr;
};

/// What `finish` of a sum needs besides the sum: nothing here.
struct NoTables {
  void take(ScratchFrame&, Index) const {}
  void start(Columns) const {}
  void row(Index) const {}
  void position(Index, Index) const {}
};

struct Magnitude {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return hn::Abs(v);
  }
};
struct Same : NoTables {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v, Index) const {
    return v;
  }
};

struct Square {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return hn::Mul(v, v);
  }
};
struct SquareRoot : NoTables {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v, Index) const {
    return hn::Sqrt(v);
  }
};

template <class T>
struct Power {
  T exponent;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    HWY_ALIGN T lane[hn::MaxLanes(D())];
    hn::Store(hn::Abs(v), d, lane);
    for (Index i = 0; i < lanes(d); ++i) {
      lane[i] = std::pow(lane[i], exponent);
    }
    return hn::Load(d, lane);
  }
};
template <class T>
struct Root : NoTables {
  explicit Root(T p) : power{T(1) / p} {}
  Power<T> power;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v, Index) const {
    return power(d, v);  // a sum of zeros has the root 0
  }
};

/// Calls f(map, finish) with those of a call. Of Lp, p = 1 and p = 2 only: other powers cost so
/// much that one walk serves them all, position by position.
template <class T, class F>
HWY_INLINE void as_sum(const Call<T, AverageReduction>& call, const F& f) {
  f(Plain(), Divide<T>(call));
}
template <class T, class F>
HWY_INLINE void as_sum(const Call<T, LpReduction>& call, const F& f) {
  if (call.problem.geometry.p == 1.0) {
    f(Magnitude(), Same());
  } else {
    f(Square(), SquareRoot());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_POOL_SUMS_INL
