// Elementary functions on vectors of float and double: exponentials, logarithms, sines, the error
// function and what activations are made of. Included inside foreach_target only. Not installed.
//
// Every function takes a whole vector and treats its lanes alike, so a number has the same result
// wherever it stands. Infinities, NaN, zeros of either sign and denormal numbers give what the C
// library gives; bounds in units of the last place are in docs/kernels/elementwise.md, and
// ops/elementwise/accuracy_test.cpp holds them. The polynomials were fitted at Chebyshev points in
// 60 digits. Constants are split so that products with small integers are exact without a fused
// multiply-add, which the baseline does not have.
// An include guard that opens again for every instruction set.
#if defined(FENESTRA_VECTOR_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_VECTOR_MATH_INL
#undef FENESTRA_VECTOR_MATH_INL
#else
#define FENESTRA_VECTOR_MATH_INL
#endif

#include <fenestra/kernels/simd.hpp>
#include <fenestra/kernels/vector_math_constants.hpp>

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace fenestra::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Portable C++ stands in for vectors on the baseline: it fuses nothing, and may have a single lane.
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
#define FENESTRA_HAS_VECTORS 0
#else
#define FENESTRA_HAS_VECTORS 1
#endif

/// c[0] + c[1] x + c[2] x^2 + ...
template <class D, std::size_t n>
HWY_INLINE hn::Vec<D> polynomial(D d, hn::Vec<D> x, const hn::TFromD<D> (&c)[n]) {
  auto y = hn::Set(d, c[n - 1]);
  FENESTRA_UNROLL
  for (std::size_t i = n - 1; i > 0; --i) {
    y = hn::MulAdd(y, x, hn::Set(d, c[i - 1]));
  }
  return y;
}

/// The integer nearest to x, for |x| < 2^22 (2^51): a larger number added leaves no room for
/// fractions.
template <class D>
HWY_INLINE hn::Vec<D> nearest_whole(D d, hn::Vec<D> x) {
  const auto shift = hn::Set(d, MathConstants<hn::TFromD<D>>::kShift);
  return hn::Sub(hn::Add(x, shift), shift);
}

/// 2^k for a whole k that a normal number has: the low bits of k + bias + shift are its exponent.
template <class D>
HWY_INLINE hn::Vec<D> power_of_two(D d, hn::Vec<D> k) {
  using C = MathConstants<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> bits;
  const auto biased = hn::Add(k, hn::Set(d, C::kShift + C::kBias));
  return hn::BitCast(d, hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(bits, biased)));
}

/// 2^k y, rounded once, for y of ordinary size and a whole k at which that is a number, denormal
/// ones included, or infinite. In two steps, neither of whose powers leaves the normal numbers; an
/// instruction of AVX-512 does the same.
template <class D>
HWY_INLINE hn::Vec<D> times_power_of_two(D d, hn::Vec<D> y, hn::Vec<D> k) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_AVX3
  static_cast<void>(d);
  if constexpr (sizeof(y.raw) == 64) {
    if constexpr (sizeof(T) == 4) {
      return hn::Vec<D>{_mm512_scalef_ps(y.raw, k.raw)};
    } else {
      return hn::Vec<D>{_mm512_scalef_pd(y.raw, k.raw)};
    }
  }
#endif
  const auto half = nearest_whole(d, hn::Mul(k, hn::Set(d, T(0.5))));
  return hn::Mul(hn::Mul(y, power_of_two(d, half)), power_of_two(d, hn::Sub(k, half)));
}

/// f(a, b) lane by lane where `bad` is set, y elsewhere.
template <class D, class F>
HWY_INLINE hn::Vec<D> patched(
    D d, hn::Mask<D> bad, hn::Vec<D> y, hn::Vec<D> a, hn::Vec<D> b, const F& f) {
  if (HWY_LIKELY(hn::AllFalse(d, bad))) {
    return y;
  }
  using T = hn::TFromD<D>;
  HWY_ALIGN T in_a[hn::MaxLanes(D())];
  HWY_ALIGN T in_b[hn::MaxLanes(D())];
  HWY_ALIGN T marks[hn::MaxLanes(D())];
  HWY_ALIGN T out[hn::MaxLanes(D())];
  hn::Store(a, d, in_a);
  hn::Store(b, d, in_b);
  hn::Store(hn::IfThenElseZero(bad, hn::Set(d, T(1))), d, marks);
  hn::Store(y, d, out);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (marks[i] != T(0)) {
      out[i] = f(in_a[i], in_b[i]);
    }
  }
  return hn::Load(d, out);
}

/// x = k ln 2 + r with k whole and |r| <= ln(2)/2, and exp(r) - 1.
template <class D>
struct ExpParts {
  hn::Vec<D> k;
  hn::Vec<D> less_one;
};

/// The k of x: nearest_whole of x/ln(2), with the product inside the sum.
template <class D>
HWY_INLINE hn::Vec<D> exp_whole(D d, hn::Vec<D> x) {
  using C = MathConstants<hn::TFromD<D>>;
  const auto shift = hn::Set(d, C::kShift);
  return hn::Sub(hn::MulAdd(x, hn::Set(d, C::kLog2OfE), shift), shift);
}

/// exp(r) - 1 for |r| <= ln(2)/2.
template <class D>
HWY_INLINE hn::Vec<D> exp_less_one(D d, hn::Vec<D> r) {
  return hn::MulAdd(hn::Mul(r, r), polynomial(d, r, MathConstants<hn::TFromD<D>>::kExp), r);
}

/// x - k ln 2
template <class D>
HWY_INLINE hn::Vec<D> exp_rest(D d, hn::Vec<D> x, hn::Vec<D> k) {
  using C = MathConstants<hn::TFromD<D>>;
  return hn::NegMulAdd(k, hn::Set(d, C::kLn2Low), hn::NegMulAdd(k, hn::Set(d, C::kLn2High), x));
}

template <class D>
HWY_INLINE ExpParts<D> exp_parts(D d, hn::Vec<D> x) {
  const auto k = exp_whole(d, x);
  return {k, exp_less_one(d, exp_rest(d, x, k))};
}

/// Of x + tail.
template <class D>
HWY_INLINE ExpParts<D> exp_parts(D d, hn::Vec<D> x, hn::Vec<D> tail) {
  const auto k = exp_whole(d, x);
  return {k, exp_less_one(d, hn::Add(exp_rest(d, x, k), tail))};
}

/// Of a * b before it is rounded: the exponential would lose as many digits as the product has
/// before its point.
template <class D>
HWY_INLINE ExpParts<D> exp_parts_of_product(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using C = MathConstants<hn::TFromD<D>>;
  const auto product = hn::Mul(a, b);
#if FENESTRA_HAS_VECTORS
  const auto k = exp_whole(d, product);
  // The product with k is exact, and the difference small.
  const auto less_high = hn::MulSub(a, b, hn::Mul(k, hn::Set(d, C::kLn2High)));
  return {k, exp_less_one(d, hn::NegMulAdd(k, hn::Set(d, C::kLn2Low), less_high))};
#else
  const auto high_part = [&](hn::Vec<D> v) {
    const auto c = hn::Mul(v, hn::Set(d, C::kSplitter));
    return hn::Sub(c, hn::Sub(c, v));
  };
  const auto a1 = high_part(a);
  const auto b1 = high_part(b);
  const auto a2 = hn::Sub(a, a1);
  const auto b2 = hn::Sub(b, b1);
  const auto cross = hn::Add(hn::Mul(a1, b2), hn::Mul(a2, b1));
  const auto error = hn::Add(hn::Add(hn::Sub(hn::Mul(a1, b1), product), cross), hn::Mul(a2, b2));
  return exp_parts(d, product, error);
#endif
}

/// 2^k (1 + p)
template <class D>
HWY_INLINE hn::Vec<D> scaled_exp(D d, const ExpParts<D>& e) {
  return times_power_of_two(d, hn::Add(hn::Set(d, hn::TFromD<D>(1)), e.less_one), e.k);
}

template <class D>
HWY_INLINE hn::Vec<D> vector_exp(D d, hn::Vec<D> x) {
  using C = MathConstants<hn::TFromD<D>>;
  // Beyond these bounds results are 0 and infinity. Which bound a NaN becomes does not matter.
  const auto bounded = hn::Max(hn::Min(x, hn::Set(d, C::kExpHigh)), hn::Set(d, C::kExpLow));
  const auto y = scaled_exp(d, exp_parts(d, bounded));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// exp(x) - 1 for x <= 0.
template <class D>
HWY_INLINE hn::Vec<D> vector_expm1_below(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const auto bounded = hn::Max(hn::Min(x, hn::Zero(d)), hn::Set(d, C::kExpm1Low));
  const ExpParts<D> e = exp_parts(d, bounded);
  const auto scale = power_of_two(d, e.k);
  const auto y = hn::MulAdd(scale, e.less_one, hn::Sub(scale, hn::Set(d, T(1))));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));  // the sum loses the sign of a zero
}

/// x = 2^k m with m from sqrt(1/2) to sqrt(2), for positive normal x.
template <class D>
struct LogParts {
  hn::Vec<D> k;
  hn::Vec<D> m;
};

template <class D>
HWY_INLINE LogParts<D> log_parts(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const hn::RebindToUnsigned<D> du;
  using U = hn::TFromD<decltype(du)>;
  const auto root = hn::BitCast(du, hn::Set(d, C::kSqrtHalf));
  const auto bias = hn::Set(du, static_cast<U>(C::kBias) << C::kMantissaBits);
  const auto bits = hn::Add(hn::Sub(hn::BitCast(du, x), root), bias);
  const auto mantissa = hn::Set(du, (U{1} << C::kMantissaBits) - 1);
  // The exponent becomes a number as the low bits of one.
  const auto whole = hn::Set(d, C::kWhole);
  const auto exponent = hn::Or(hn::ShiftRight<C::kMantissaBits>(bits), hn::BitCast(du, whole));
  return {hn::Sub(hn::BitCast(d, exponent), hn::Set(d, C::kWhole + C::kBias)),
          hn::BitCast(d, hn::Add(hn::And(bits, mantissa), root))};
}

template <class D>
HWY_INLINE hn::Vec<D> vector_log(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const auto one = hn::Set(d, T(1));
  const auto small = hn::Lt(x, hn::Set(d, std::numeric_limits<T>::min()));
  const auto lifted = hn::IfThenElse(small, hn::Mul(x, hn::Set(d, C::kLift)), x);
  LogParts<D> parts = log_parts(d, lifted);
  parts.k = hn::Sub(parts.k, hn::IfThenElseZero(small, hn::Set(d, C::kLiftExponent)));
  // log(1 + f) = f - (f^2/2 - s (f^2/2 + R)) with s = f/(2 + f): what is large is exact.
  const auto f = hn::Sub(parts.m, one);
  const auto s = hn::Div(f, hn::Add(hn::Set(d, T(2)), f));
  const auto z = hn::Mul(s, s);
  const auto rest = hn::Mul(z, polynomial(d, z, C::kLog));
  const auto half_square = hn::Mul(hn::Mul(hn::Set(d, T(0.5)), f), f);
  const auto low =
      hn::MulAdd(s, hn::Add(half_square, rest), hn::Mul(parts.k, hn::Set(d, C::kLn2Low)));
  const auto y =
      hn::Sub(hn::Mul(parts.k, hn::Set(d, C::kLn2High)), hn::Sub(hn::Sub(half_square, low), f));
  const auto infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  const auto finite = hn::IfThenElse(hn::Lt(x, infinity), y, x);
  const auto zero = hn::Zero(d);
  return hn::IfThenElse(hn::Lt(x, zero),
                        hn::Set(d, std::numeric_limits<T>::quiet_NaN()),
                        hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), finite));
}

/// 1/(1 + exp(-x)), from the exponential that does not overflow.
template <class D>
HWY_INLINE hn::Vec<D> vector_sigmoid(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto one = hn::Set(d, T(1));
  const auto e = vector_exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

/// -t/(2 + t) with t = exp(-2|x|) - 1, which keeps small x.
template <class D>
HWY_INLINE hn::Vec<D> vector_tanh(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto size = hn::Abs(x);
  const auto t = vector_expm1_below(d, hn::Neg(hn::Add(size, size)));
  return hn::CopySign(hn::Div(t, hn::Add(hn::Set(d, T(2)), t)), x);
}

/// log(1 + exp(x)): log(1 + e) of e = exp(-|x|) is 2 artanh(e/(2 + e)), which keeps small e.
template <class D>
HWY_INLINE hn::Vec<D> vector_softplus(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto e = vector_exp(d, hn::Neg(hn::Abs(x)));
  const auto s = hn::Div(e, hn::Add(hn::Set(d, T(2)), e));
  const auto z = hn::Mul(s, s);
  const auto series = polynomial(d, z, MathConstants<T>::kLog1p);
  const auto y = hn::MulAdd(hn::Mul(s, z), series, hn::Add(s, s));
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Add(x, y), y);
}

/// exp(-factor v^2) F(q) t for u, v >= 0, with t = 2/(u + c) and q = u t - 1: F(q) t is the
/// probability that a standard normal variable is above u, divided by exp(-u^2/2). `factor` is 1 or
/// 1/2, so that its products are exact.
template <class D>
HWY_INLINE hn::Vec<D> gaussian_tail(D d, hn::Vec<D> v, hn::TFromD<D> factor, hn::Vec<D> u) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const auto e = exp_parts_of_product(d, v, hn::Mul(v, hn::Set(d, -factor)));
  const auto t = hn::Div(hn::Set(d, T(2)), hn::Add(u, hn::Set(d, C::kTailCentre)));
  const auto q = hn::MulSub(u, t, hn::Set(d, T(1)));
  const auto g = hn::Mul(polynomial(d, q, C::kTail), t);
  return times_power_of_two(d, hn::MulAdd(g, e.less_one, g), e.k);
}

/// The probability that a standard normal variable is below x.
template <class D>
HWY_INLINE hn::Vec<D> vector_normal_cdf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const auto end = hn::Set(d, C::kNormalEnd);
  const auto size = hn::Abs(x);
  const auto u = hn::IfThenElse(hn::Gt(size, end), end, size);  // a NaN goes through
  const auto tail = gaussian_tail(d, u, T(0.5), u);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, T(1)), tail));
}

template <class D>
HWY_INLINE hn::Vec<D> vector_erf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const auto size = hn::Abs(x);
  const auto one = hn::Set(d, T(1));
  const auto near = hn::MulAdd(x, polynomial(d, hn::Mul(x, x), C::kErf), x);
  const auto is_far = hn::Gt(size, one);
  if (hn::AllFalse(d, is_far)) {
    return near;
  }
  const auto bounded = hn::Min(size, hn::Set(d, C::kErfEnd));
  const auto u = hn::Mul(bounded, hn::Set(d, static_cast<T>(1.4142135623730951)));
  const auto tail = gaussian_tail(d, bounded, T(1), u);
  const auto far = hn::CopySign(hn::NegMulAdd(hn::Set(d, T(2)), tail, one), x);
  return hn::IfThenElse(is_far, far, near);
}

// --- What needs fused products or halves of vectors: on the baseline the C library does it. ----

#if FENESTRA_HAS_VECTORS

/// x = k pi/2 + r, for |x| <= kSineEnd.
template <class D>
struct QuarterTurns {
  hn::Vec<D> k;
  hn::Vec<D> r;
};

template <class D>
  requires(sizeof(hn::TFromD<D>) == 8)
HWY_INLINE QuarterTurns<D> quarter_turns(D d, hn::Vec<D> x) {
  const auto k = nearest_whole(d, hn::Mul(x, hn::Set(d, kTwoOverPi)));
  // Three parts of 33 bits: their products with k < 2^20 are exact. A difference that rounds is
  // so large that later parts do not matter to its first digits.
  auto r = hn::NegMulAdd(k, hn::Set(d, kHalfPi[0]), x);
  r = hn::NegMulAdd(k, hn::Set(d, kHalfPi[1]), r);
  r = hn::NegMulAdd(k, hn::Set(d, kHalfPi[2]), r);
  return {k, hn::NegMulAdd(k, hn::Set(d, kHalfPi[3]), r)};
}

/// In double, half a vector at a time: the difference then has all its digits in float.
template <class D>
  requires(sizeof(hn::TFromD<D>) == 4)
HWY_INLINE QuarterTurns<D> quarter_turns(D d, hn::Vec<D> x) {
  const hn::Half<D> half;
  const hn::Rebind<double, decltype(half)> wide;
  const auto low = quarter_turns(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x)));
  const auto high = quarter_turns(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x)));
  return {hn::Combine(d, hn::DemoteTo(half, high.k), hn::DemoteTo(half, low.k)),
          hn::Combine(d, hn::DemoteTo(half, high.r), hn::DemoteTo(half, low.r))};
}

/// sin(x + turns * pi/2), by the C library beyond kSineEnd.
template <int turns, class D>
HWY_INLINE hn::Vec<D> vector_sine(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const hn::RebindToUnsigned<D> du;
  using U = hn::TFromD<decltype(du)>;
  const auto beyond = hn::Not(hn::Le(hn::Abs(x), hn::Set(d, static_cast<T>(kSineEnd))));
  const QuarterTurns<D> q = quarter_turns(d, hn::IfThenZeroElse(beyond, x));
  const auto one = hn::Set(d, T(1));
  const auto z = hn::Mul(q.r, q.r);
  const auto sine = hn::MulAdd(hn::Mul(q.r, z), polynomial(d, z, C::kSin), q.r);
  const auto half_square = hn::Mul(hn::Set(d, T(0.5)), z);
  const auto top = hn::Sub(one, half_square);
  const auto lost = hn::Sub(hn::Sub(one, top), half_square);
  const auto cosine = hn::Add(top, hn::MulAdd(hn::Mul(z, z), polynomial(d, z, C::kCos), lost));
  const auto count = hn::BitCast(du, hn::Add(q.k, hn::Set(d, C::kShift + T(turns))));
  const auto odd = hn::MaskFromVec(
      hn::BitCast(d, hn::VecFromMask(du, hn::Ne(hn::And(count, hn::Set(du, U{1})), hn::Zero(du)))));
  const auto sign =
      hn::And(hn::BitCast(d, hn::ShiftLeft<sizeof(T) * 8 - 2>(count)), hn::SignBit(d));
  auto y = hn::Xor(hn::IfThenElse(odd, cosine, sine), sign);
  if constexpr (turns == 0) {
    y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // the sum loses the sign of a zero
  }
  return patched(d, beyond, y, x, x, [](T v, T) { return turns == 0 ? std::sin(v) : std::cos(v); });
}

/// a^b for positive normal a and |b| < 2^60: log(a) and its product with b as sums of two numbers,
/// since an absolute error of the exponent is a relative one of the result.
template <class D>
  requires(sizeof(hn::TFromD<D>) == 8)
HWY_INLINE hn::Vec<D> positive_power(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using C = MathConstants<double>;
  const auto one = hn::Set(d, 1.0);
  const LogParts<D> parts = log_parts(d, a);
  // s + s_low = f/(2 + f)
  const auto f = hn::Sub(parts.m, one);
  const auto sum = hn::Add(parts.m, one);
  const auto sum_low = hn::Sub(parts.m, hn::Sub(sum, one));
  const auto s = hn::Div(f, sum);
  const auto s_low = hn::Div(hn::NegMulAdd(s, sum_low, hn::NegMulAdd(s, sum, f)), sum);
  // z + z_low = s^2
  const auto z = hn::Mul(s, s);
  const auto z_low = hn::MulAdd(hn::Add(s, s), s_low, hn::MulSub(s, s, z));
  // c + c_low = 2/3 z + z^2 Q(z)
  const auto third = hn::Set(d, kTwoThirds[0]);
  const auto first = hn::Mul(third, z);
  const auto first_low = hn::MulAdd(
      third, z_low, hn::MulAdd(hn::Set(d, kTwoThirds[1]), z, hn::MulSub(third, z, first)));
  const auto rest = hn::Mul(hn::Mul(z, z), polynomial(d, z, kPowerLog));
  const auto c = hn::Add(first, rest);
  const auto c_low = hn::Add(hn::Add(hn::Sub(first, c), rest), first_low);
  // log(m) = 2s + s c
  const auto t = hn::Mul(s, c);
  const auto t_low = hn::MulAdd(s_low, c, hn::MulAdd(s, c_low, hn::MulSub(s, c, t)));
  const auto twice = hn::Add(s, s);
  const auto m = hn::Add(twice, t);
  const auto m_low = hn::Add(hn::Add(hn::Sub(twice, m), t), hn::Add(t_low, hn::Add(s_low, s_low)));
  // + k ln 2
  const auto whole = hn::Mul(parts.k, hn::Set(d, C::kLn2High));
  const auto log = hn::Add(whole, m);
  const auto log_low =
      hn::Add(hn::Add(hn::Sub(whole, log), m), hn::MulAdd(parts.k, hn::Set(d, C::kLn2Low), m_low));
  const auto p = hn::Mul(b, log);
  const auto p_low = hn::MulAdd(b, log_low, hn::MulSub(b, log, p));
  const auto bounded = hn::Max(hn::Min(p, hn::Set(d, C::kExpHigh)), hn::Set(d, C::kExpLow));
  return scaled_exp(d, exp_parts(d, bounded, hn::IfThenElseZero(hn::Eq(bounded, p), p_low)));
}

template <class D, class F>
  requires(sizeof(hn::TFromD<D>) == 8)
HWY_INLINE hn::Vec<D> vector_pow(D d, hn::Vec<D> a, hn::Vec<D> b, const F& plain) {
  const auto fits = hn::And(hn::And(hn::Ge(a, hn::Set(d, std::numeric_limits<double>::min())),
                                    hn::Le(a, hn::Set(d, std::numeric_limits<double>::max()))),
                            hn::Lt(hn::Abs(b), hn::Set(d, 0x1p60)));
  const auto one = hn::Set(d, 1.0);
  const auto y = positive_power(d, hn::IfThenElse(fits, a, one), hn::IfThenElse(fits, b, one));
  return patched(d, hn::Not(fits), y, a, b, plain);
}

/// f of two vectors of double, on each half of two vectors of float.
template <class D, class F>
HWY_INLINE hn::Vec<D> in_double(D d, hn::Vec<D> a, hn::Vec<D> b, const F& f) {
  const hn::Half<D> half;
  const hn::Rebind<double, decltype(half)> wide;
  const auto low = f(wide,
                     hn::PromoteTo(wide, hn::LowerHalf(half, a)),
                     hn::PromoteTo(wide, hn::LowerHalf(half, b)));
  const auto high = f(wide,
                      hn::PromoteTo(wide, hn::UpperHalf(half, a)),
                      hn::PromoteTo(wide, hn::UpperHalf(half, b)));
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

template <class D, class F>
  requires(sizeof(hn::TFromD<D>) == 4)
HWY_INLINE hn::Vec<D> vector_pow(D d, hn::Vec<D> a, hn::Vec<D> b, const F& plain) {
  const auto largest = hn::Set(d, std::numeric_limits<float>::max());
  const auto fits =
      hn::And(hn::And(hn::Gt(a, hn::Zero(d)), hn::Le(a, largest)), hn::Le(hn::Abs(b), largest));
  const auto y = in_double(d, hn::IfThenElse(fits, a, largest), b, [](auto w, auto p, auto q) {
    return vector_exp(w, hn::Mul(q, vector_log(w, p)));
  });
  return patched(d, hn::Not(fits), y, a, b, plain);
}

/// floor(a/b) and what it leaves of a, exact but for one rounding of the rest; NaN where a/b is not
/// finite or b is infinite.
template <class D>
struct Division {
  hn::Vec<D> quotient;
  hn::Vec<D> whole;
  hn::Vec<D> rest;
};

/// For |a/b| < 2^52 if a and b are any numbers, and exact for |a/b| < 2^28 if both were floats.
template <class D>
  requires(sizeof(hn::TFromD<D>) == 8)
HWY_INLINE Division<D> floor_division(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const auto quotient = hn::Div(a, b);
  // The quotient may have been rounded up to an integer: then the rest has the wrong sign.
  const auto whole = hn::Floor(quotient);
  const auto rest = hn::NegMulAdd(whole, b, a);
  const auto zero = hn::Zero(d);
  const auto wrong = hn::And(hn::Ne(rest, zero), hn::Xor(hn::Lt(rest, zero), hn::Lt(b, zero)));
  return {quotient,
          hn::Sub(whole, hn::IfThenElseZero(wrong, hn::Set(d, 1.0))),
          hn::CopySign(hn::Add(rest, hn::IfThenElseZero(wrong, b)), b)};
}

/// The quotient, with the sign that a/b has where it is 0.
template <class D>
HWY_INLINE hn::Vec<D> signed_whole(D d, const Division<D>& q) {
  return hn::IfThenElse(hn::Eq(q.whole, hn::Zero(d)), hn::CopySign(q.whole, q.quotient), q.whole);
}

/// Quotients up to which floor_division is exact and its results are numbers of T.
template <class T>
inline constexpr T kLargestQuotient = std::is_same_v<T, float> ? T(0x1p24) : T(0x1p52);

template <bool wants_rest, class D, class F>
HWY_INLINE hn::Vec<D> vector_floor_division(D d, hn::Vec<D> a, hn::Vec<D> b, const F& plain) {
  using T = hn::TFromD<D>;
  const auto infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  const auto fits = hn::And(hn::Lt(hn::Abs(hn::Div(a, b)), hn::Set(d, kLargestQuotient<T>)),
                            hn::Lt(hn::Abs(b), infinity));
  const auto run = [](auto w, auto p, auto q) {
    const auto division = floor_division(w, p, q);
    return wants_rest ? division.rest : signed_whole(w, division);
  };
  hn::Vec<D> y;
  if constexpr (std::is_same_v<T, float>) {
    y = in_double(d, a, b, run);
  } else {
    y = run(d, a, b);
  }
  return patched(d, hn::Not(fits), y, a, b, plain);
}

#else  // FENESTRA_HAS_VECTORS

template <int turns, class D>
HWY_INLINE hn::Vec<D> vector_sine(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  return patched(d, hn::Eq(hn::Zero(d), hn::Zero(d)), x, x, x, [](T v, T) {
    return turns == 0 ? std::sin(v) : std::cos(v);
  });
}

template <class D, class F>
HWY_INLINE hn::Vec<D> vector_pow(D d, hn::Vec<D> a, hn::Vec<D> b, const F& plain) {
  return patched(d, hn::Eq(hn::Zero(d), hn::Zero(d)), a, a, b, plain);
}

template <bool wants_rest, class D, class F>
HWY_INLINE hn::Vec<D> vector_floor_division(D d, hn::Vec<D> a, hn::Vec<D> b, const F& plain) {
  return patched(d, hn::Eq(hn::Zero(d), hn::Zero(d)), a, a, b, plain);
}

#endif  // FENESTRA_HAS_VECTORS

template <class D>
HWY_INLINE hn::Vec<D> vector_sin(D d, hn::Vec<D> x) {
  return vector_sine<0>(d, x);
}
template <class D>
HWY_INLINE hn::Vec<D> vector_cos(D d, hn::Vec<D> x) {
  return vector_sine<1>(d, x);
}

#undef FENESTRA_HAS_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::kernels
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_VECTOR_MATH_INL
