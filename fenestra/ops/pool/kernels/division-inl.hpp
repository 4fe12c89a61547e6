// Division by a number of cells on vectors, with the bits of a division and at the price of three
// multiplications. Included inside foreach_target only. Not installed.
// An include guard that opens again for every instruction set.
#if defined(FENESTRA_POOL_DIVISION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_POOL_DIVISION_INL
#undef FENESTRA_POOL_DIVISION_INL
#else
#define FENESTRA_POOL_DIVISION_INL
#endif

#include <fenestra/ops/pool/kernels/vectors-inl.hpp>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// v / by for a whole number `by` below kMostDivisor and its rounded reciprocal.
///
/// The first quotient is wrong by less than two units in its last place, so what it leaves over is
/// a multiple of that place times a whole number of a few digits: exact. A quotient by a whole
/// number never lies halfway between two numbers and is 1/(2 by) of a place away from there at
/// least, which the error of the second product cannot bridge: the sum rounds as the quotient does.
/// (Below the normal numbers it can lie halfway; there the last place may differ.) Nothing is left
/// over of zeros, whose sign stays, and of infinities what is left over is no number: both keep
/// the first quotient.
template <class D, class V>
HWY_INLINE V divide([[maybe_unused]] D d, V v, V by, [[maybe_unused]] V reciprocal) {
#if HWY_NATIVE_FMA
  const V quotient = hn::Mul(v, reciprocal);
  const V rest = hn::NegMulAdd(quotient, by, v);
  // Not a comparison for inequality, which holds for NaN on some vectors and not on others.
  const auto corrects = hn::Gt(hn::Abs(rest), hn::Zero(d));
  return hn::IfThenElse(corrects, hn::MulAdd(rest, reciprocal, quotient), quotient);
#else
  return hn::Div(v, by);
#endif
}
inline constexpr Index kMostDivisor = Index{1} << 20;

/// Divides by a number of cells.
template <class T>
class Division {
 public:
  explicit HWY_INLINE Division(Index divisor)
      : plain_(divisor <= 0 || divisor >= kMostDivisor),
        by_(static_cast<T>(divisor)),
        reciprocal_(T(1) / static_cast<T>(divisor)) {}

  template <class V>
  HWY_INLINE V operator()(V v) const {
    const hn::DFromV<V> d;
    const V by = hn::Set(d, by_);
    return HWY_UNLIKELY(plain_) ? hn::Div(v, by) : divide(d, v, by, hn::Set(d, reciprocal_));
  }

 private:
  bool plain_;
  T by_;
  T reciprocal_;
};

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_POOL_DIVISION_INL
