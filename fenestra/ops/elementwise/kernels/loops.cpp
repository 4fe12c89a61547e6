// Elementwise functions on vectors. The last numbers of a run fill a vector of their own, so they
// are treated as all others.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/elementwise/kernels/loops.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/elementwise/kernels/loops.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/kernels/vector_math-inl.hpp>
#include <fenestra/kernels/vectors-inl.hpp>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
// A name of their own: other files have loops of the same names for the same instruction set.
namespace fenestra::detail::elementwise_runs {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace math = kernels::HWY_NAMESPACE;

using kernels::HWY_NAMESPACE::kLanes;
using kernels::HWY_NAMESPACE::load_part;
using kernels::HWY_NAMESPACE::store_part;
using kernels::HWY_NAMESPACE::Wide;

template <class T, class F>
HWY_INLINE void map(const T* x, T* out, Index n, const F& f) {
  const Wide<T> d;
  Index i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    hn::StoreU(f(d, hn::LoadU(d, x + i)), d, out + i);
  }
  if (i < n) {
    store_part(d, f(d, load_part(d, x + i, n - i, T(1))), out + i, n - i);
  }
}

template <class T, class F>
HWY_INLINE void map_two(RunOperand<T> a, RunOperand<T> b, T* out, Index n, const F& f) {
  const Wide<T> d;
  const auto run = [&](const auto& load_a, const auto& load_b) HWY_ATTR {
    Index i = 0;
    for (; i + kLanes<T> <= n; i += kLanes<T>) {
      hn::StoreU(f(d, load_a(i, kLanes<T>), load_b(i, kLanes<T>)), d, out + i);
    }
    if (i < n) {
      store_part(d, f(d, load_a(i, n - i), load_b(i, n - i)), out + i, n - i);
    }
  };
  const auto from = [d](const T* data) HWY_ATTR {
    return [d, data](Index i, Index count) HWY_ATTR { return load_part(d, data + i, count, T(1)); };
  };
  const auto always = [d](const T* data) HWY_ATTR {
    const auto value = hn::Set(d, *data);
    return [value](Index, Index) HWY_ATTR { return value; };
  };
  if (n == 0) {
    return;
  }
  if (a.step == 1 && b.step == 1) {
    run(from(a.data), from(b.data));
  } else if (a.step == 1) {
    run(from(a.data), always(b.data));
  } else if (b.step == 1) {
    run(always(a.data), from(b.data));
  } else {
    run(always(a.data), always(b.data));
  }
}

/// x^p for a whole p from -8 to 8, multiplied out from the left.
template <class D>
HWY_INLINE hn::Vec<D> whole_power(D d, hn::Vec<D> x, int p) {
  const auto one = hn::Set(d, hn::TFromD<D>(1));
  auto y = p == 0 ? one : x;
  for (int i = 1; i < std::abs(p); ++i) {
    y = hn::Mul(y, x);
  }
  return p < 0 ? hn::Div(one, y) : y;
}

template <class T>
void run_power(const UnaryCall& call, const T* x, T* out, Index n) {
  if (spec::detail::is_small_integer(call.a)) {
    const int p = static_cast<int>(call.a);
    return map(x, out, n, [p](auto d, auto v) HWY_ATTR { return whole_power(d, v, p); });
  }
  const T p = static_cast<T>(call.a);
  map(x, out, n, [p, &call](auto d, auto v) HWY_ATTR {
    return math::vector_pow(d, v, hn::Set(d, p), [&call](T w, T) { return spec::unary(call, w); });
  });
}

template <class T>
void run_clip(const UnaryCall& call, const T* x, T* out, Index n) {
  // An infinite bound cuts nothing off; a NaN is below and above nothing.
  const T low = static_cast<T>(call.a);
  const T high = static_cast<T>(call.b);
  map(x, out, n, [low, high](auto d, auto v) HWY_ATTR {
    const auto least = hn::Set(d, low);
    const auto largest = hn::Set(d, high);
    return hn::IfThenElse(hn::Lt(v, least), least, hn::IfThenElse(hn::Lt(largest, v), largest, v));
  });
}

template <class T>
void run_hard_sigmoid(const T* x, T* out, Index n) {
  map(x, out, n, [](auto d, auto v) HWY_ATTR {
    const auto three = hn::Set(d, T(3));
    const auto y = hn::Div(hn::Add(v, three), hn::Set(d, T(6)));
    return hn::IfThenElse(hn::Le(v, hn::Neg(three)),
                          hn::Zero(d),
                          hn::IfThenElse(hn::Ge(v, three), hn::Set(d, T(1)), y));
  });
}

template <class T>
void run_elu(const UnaryCall& call, const T* x, T* out, Index n) {
  const T alpha = static_cast<T>(call.a);
  map(x, out, n, [alpha](auto d, auto v) HWY_ATTR {
    const auto below = hn::Mul(hn::Set(d, alpha), math::vector_expm1_below(d, v));
    return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, below);
  });
}

template <class T>
void run_unary(const UnaryCall& call, const T* x, T* out, Index n) {
  const T a = static_cast<T>(call.a);
  const auto each = [&](const auto& f) HWY_ATTR { map(x, out, n, f); };
  switch (call.f) {
    case UnaryFunction::neg: return each([](auto, auto v) HWY_ATTR { return hn::Neg(v); });
    case UnaryFunction::abs: return each([](auto, auto v) HWY_ATTR { return hn::Abs(v); });
    case UnaryFunction::sqrt: return each([](auto, auto v) HWY_ATTR { return hn::Sqrt(v); });
    // The baseline loses the sign of a zero.
    case UnaryFunction::floor:
      return each([](auto, auto v) HWY_ATTR { return hn::CopySign(hn::Floor(v), v); });
    case UnaryFunction::ceil:
      return each([](auto, auto v) HWY_ATTR { return hn::CopySign(hn::Ceil(v), v); });
    case UnaryFunction::round:
      return each([](auto, auto v) HWY_ATTR { return hn::CopySign(hn::Round(v), v); });
    case UnaryFunction::stop_gradient: return each([](auto, auto v) HWY_ATTR { return v; });
    case UnaryFunction::relu:
      return each([](auto d, auto v)
                      HWY_ATTR { return hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), v); });
    case UnaryFunction::leaky_relu:
      return each([a](auto d, auto v) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Mul(hn::Set(d, a), v), v);
      });
    case UnaryFunction::scale:
      return each([a](auto d, auto v) HWY_ATTR { return hn::Mul(hn::Set(d, a), v); });
    case UnaryFunction::sign:
      return each([](auto d, auto v) HWY_ATTR {
        const auto zero = hn::Zero(d);
        const auto one = hn::Set(d, T(1));
        const auto not_above = hn::IfThenElse(hn::Lt(v, zero), hn::Neg(one), hn::Add(v, zero));
        return hn::IfThenElse(hn::Gt(v, zero), one, not_above);
      });
    case UnaryFunction::clip: return run_clip(call, x, out, n);
    case UnaryFunction::hard_sigmoid: return run_hard_sigmoid(x, out, n);
    case UnaryFunction::elu: return run_elu(call, x, out, n);
    case UnaryFunction::power: return run_power(call, x, out, n);
    case UnaryFunction::sin:
      return each([](auto d, auto v) HWY_ATTR { return math::vector_sin(d, v); });
    case UnaryFunction::cos:
      return each([](auto d, auto v) HWY_ATTR { return math::vector_cos(d, v); });
    case UnaryFunction::exp:
      return each([](auto d, auto v) HWY_ATTR { return math::vector_exp(d, v); });
    case UnaryFunction::log:
      return each([](auto d, auto v) HWY_ATTR { return math::vector_log(d, v); });
    case UnaryFunction::sigmoid:
      return each([](auto d, auto v) HWY_ATTR { return math::vector_sigmoid(d, v); });
    case UnaryFunction::silu:
      return each([](auto d, auto v) HWY_ATTR { return hn::Mul(v, math::vector_sigmoid(d, v)); });
    case UnaryFunction::tanh:
      return each([](auto d, auto v) HWY_ATTR { return math::vector_tanh(d, v); });
    case UnaryFunction::normal_cdf:
      return each([](auto d, auto v) HWY_ATTR { return math::vector_normal_cdf(d, v); });
    case UnaryFunction::gelu:
      return each([](auto d, auto v)
                      HWY_ATTR { return hn::Mul(v, math::vector_normal_cdf(d, v)); });
    case UnaryFunction::softplus:
      return each([](auto d, auto v) HWY_ATTR { return math::vector_softplus(d, v); });
    case UnaryFunction::erf:
      return each([](auto d, auto v) HWY_ATTR { return math::vector_erf(d, v); });
  }
}

template <class T>
void run_gate(const GateCall& call, const T* u, const T* x, T* out, Index n) {
  const T low = static_cast<T>(call.low);
  const T high = static_cast<T>(call.high);
  const T outside = static_cast<T>(call.outside);
  const bool is_bounded = high < std::numeric_limits<T>::infinity();
  const auto each = [&](const auto& is_outside) HWY_ATTR {
    const auto gated = [&](auto d, auto inside, auto v) HWY_ATTR {
      const auto mask = is_outside(d, v);
      // 0 is 0, even for an infinite u.
      return outside == T(0) ? hn::IfThenZeroElse(mask, inside)
                             : hn::IfThenElse(mask, hn::Mul(hn::Set(d, outside), inside), inside);
    };
    map_two<T>({u, 1}, {x, 1}, out, n, gated);
  };
  // NaN fails every comparison and so counts as inside.
  if (call.closed) {
    each([low, high](auto d, auto v)
             HWY_ATTR { return hn::Or(hn::Lt(v, hn::Set(d, low)), hn::Lt(hn::Set(d, high), v)); });
  } else if (is_bounded) {
    each([low, high](auto d, auto v)
             HWY_ATTR { return hn::Or(hn::Le(v, hn::Set(d, low)), hn::Le(hn::Set(d, high), v)); });
  } else {
    each([low](auto d, auto v) HWY_ATTR { return hn::Le(v, hn::Set(d, low)); });
  }
}

/// Comparisons give 1 or 0.
template <class D, class M>
HWY_INLINE hn::Vec<D> truth(D d, M mask) {
  return hn::IfThenElseZero(mask, hn::Set(d, hn::TFromD<D>(1)));
}

/// The first argument wins ties, NaN wins over numbers.
template <class D, class V>
HWY_INLINE V larger(D, V p, V q) {
  return hn::IfThenElse(hn::Or(hn::Lt(p, q), hn::And(hn::Eq(p, p), hn::IsNaN(q))), q, p);
}

template <class T>
void run_binary(BinaryFunction f, RunOperand<T> a, RunOperand<T> b, T* out, Index n) {
  const auto each = [&](const auto& g) HWY_ATTR { map_two(a, b, out, n, g); };
  const auto plain = [f](T p, T q) { return spec::binary(f, p, q); };
  switch (f) {
    case BinaryFunction::add:
      return each([](auto, auto p, auto q) HWY_ATTR { return hn::Add(p, q); });
    case BinaryFunction::sub:
      return each([](auto, auto p, auto q) HWY_ATTR { return hn::Sub(p, q); });
    case BinaryFunction::mul:
      return each([](auto, auto p, auto q) HWY_ATTR { return hn::Mul(p, q); });
    case BinaryFunction::div:
      return each([](auto, auto p, auto q) HWY_ATTR { return hn::Div(p, q); });
    case BinaryFunction::less:
      return each([](auto d, auto p, auto q) HWY_ATTR { return truth(d, hn::Lt(p, q)); });
    case BinaryFunction::less_equal:
      return each([](auto d, auto p, auto q) HWY_ATTR { return truth(d, hn::Le(p, q)); });
    case BinaryFunction::equal:
      return each([](auto d, auto p, auto q) HWY_ATTR { return truth(d, hn::Eq(p, q)); });
    case BinaryFunction::max:
      return each([](auto d, auto p, auto q) HWY_ATTR { return larger(d, p, q); });
    case BinaryFunction::min:
      return each([](auto d, auto p, auto q)
                      HWY_ATTR { return hn::Neg(larger(d, hn::Neg(p), hn::Neg(q))); });
    case BinaryFunction::pow:
      return each([&](auto d, auto p, auto q)
                      HWY_ATTR { return math::vector_pow(d, p, q, plain); });
    case BinaryFunction::mod:
      return each([&](auto d, auto p, auto q)
                      HWY_ATTR { return math::vector_floor_division<true>(d, p, q, plain); });
    case BinaryFunction::floor_divide:
      return each([&](auto d, auto p, auto q)
                      HWY_ATTR { return math::vector_floor_division<false>(d, p, q, plain); });
  }
}

template <class T>
constexpr ElementwiseLoops<T> kLoops{&run_unary<T>, &run_gate<T>, &run_binary<T>};

const ElementwiseLoops<float>* loops_f32() { return &kLoops<float>; }
const ElementwiseLoops<double>* loops_f64() { return &kLoops<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::detail::elementwise_runs
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {

namespace elementwise_runs {

HWY_EXPORT(loops_f32);
HWY_EXPORT(loops_f64);

const ElementwiseLoops<float>& chosen_f32() { return *HWY_DYNAMIC_DISPATCH(loops_f32)(); }
const ElementwiseLoops<double>& chosen_f64() { return *HWY_DYNAMIC_DISPATCH(loops_f64)(); }

}  // namespace elementwise_runs

template <>
const ElementwiseLoops<float>& elementwise_loops() {
  return elementwise_runs::chosen_f32();
}

template <>
const ElementwiseLoops<double>& elementwise_loops() {
  return elementwise_runs::chosen_f64();
}

}  // namespace fenestra::detail
#endif  // HWY_ONCE
