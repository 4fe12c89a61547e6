// Compiled elementwise loops for float and double, spread over threads where the work is worth it.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/elementwise/evaluate.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fenestra {

namespace {

// Elements per range: 64 KiB of f32, a comfortable share of a second-level cache, and enough work
// (10 us) to pay for waking a thread.
constexpr Index kGrain = 16384;

/// f(x) for every element, the function chosen outside the loop.
template <class T, class F>
void map(const T* x, T* out, Index n, const F& f) {
  parallel_for(n, kGrain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      out[i] = f(x[i]);
    }
  });
}

/// The nearest integer, the even one of two: adding 2^23 (2^52) leaves no room for a fraction. The
/// compiler vectorises this on every machine, a call of std::rint only on some.
template <class T>
T nearest(T v) {
  constexpr T kWhole = T(1) / std::numeric_limits<T>::epsilon();
  const T size = std::fabs(v);
  const T whole = std::copysign((size + kWhole) - kWhole, v);
  return size < kWhole ? whole : v;  // larger ones and NaN are what they are
}

/// The largest integer that is not above: one less where the nearest one is. Said with signs, since
/// the compiler vectorises no second choice.
template <class T>
T next_below(T v) {
  const T whole = nearest(v);
  return whole - (T(0.5) - std::copysign(T(0.5), v - whole));
}

template <class T, class F>
void zip(const T* a, const T* b, T* out, const BroadcastLoop<2>& loop, const F& f) {
  const Index n = loop.inner();
  const Index step_a = loop.inner_step(0);
  const Index step_b = loop.inner_step(1);
  const auto run = [&](const T* from_a, const T* from_b, T* to, Index count) {
    // Steps are 0 or 1 for dense operands; fixing them lets the compiler vectorise.
    if (step_a == 1 && step_b == 1) {
      for (Index i = 0; i < count; ++i) {
        to[i] = f(from_a[i], from_b[i]);
      }
    } else if (step_a == 1) {
      for (Index i = 0; i < count; ++i) {
        to[i] = f(from_a[i], *from_b);
      }
    } else if (step_b == 1) {
      for (Index i = 0; i < count; ++i) {
        to[i] = f(*from_a, from_b[i]);
      }
    } else {
      for (Index i = 0; i < count; ++i) {
        to[i] = f(*from_a, *from_b);
      }
    }
  };
  const Index runs = loop.outer();
  if (runs == 1) {
    parallel_for(n, kGrain, [&](Index begin, Index end) {
      run(a + begin * step_a, b + begin * step_b, out + begin, end - begin);
    });
    return;
  }
  parallel_for(runs, std::max<Index>(1, kGrain / n), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      run(a + loop.offset(0, r), b + loop.offset(1, r), out + r * n, n);
    }
  });
}

}  // namespace

template <KernelScalar T>
void unary_kernel(const UnaryCall& call, const T* x, T* out, Index n) {
  const T a = static_cast<T>(call.a);
  switch (call.f) {
    case UnaryFunction::neg: return map(x, out, n, [](T v) { return -v; });
    case UnaryFunction::relu: return map(x, out, n, [](T v) { return v <= T(0) ? T(0) : v; });
    case UnaryFunction::leaky_relu:
      return map(x, out, n, [a](T v) { return v < T(0) ? a * v : v; });
    case UnaryFunction::scale: return map(x, out, n, [a](T v) { return a * v; });
    case UnaryFunction::abs: return map(x, out, n, [](T v) { return std::fabs(v); });
    case UnaryFunction::sqrt: return map(x, out, n, [](T v) { return std::sqrt(v); });
    case UnaryFunction::round: return map(x, out, n, [](T v) { return nearest(v); });
    case UnaryFunction::floor: return map(x, out, n, [](T v) { return next_below(v); });
    case UnaryFunction::ceil: return map(x, out, n, [](T v) { return -next_below(-v); });
    case UnaryFunction::sin: return map(x, out, n, [](T v) { return std::sin(v); });
    case UnaryFunction::cos: return map(x, out, n, [](T v) { return std::cos(v); });
    case UnaryFunction::erf: return map(x, out, n, [](T v) { return std::erf(v); });
    case UnaryFunction::stop_gradient: return map(x, out, n, [](T v) { return v; });
    default: return map(x, out, n, [&call](T v) { return spec::unary(call, v); });
  }
}

template <KernelScalar T>
void gate_kernel(const GateCall& call, const T* u, const T* x, T* out, Index n) {
  const T low = static_cast<T>(call.low);
  const T high = static_cast<T>(call.high);
  const T outside = static_cast<T>(call.outside);
  // NaN fails every comparison and so counts as inside.
  const auto run = [&](const auto& is_outside) {
    parallel_for(n, kGrain, [&](Index begin, Index end) {
      if (outside == T(0)) {
        for (Index i = begin; i < end; ++i) {
          const T inside = u[i];  // read in any case: the compiler vectorises no read that depends
          out[i] = is_outside(x[i]) ? T(0) : inside;
        }
      } else {
        for (Index i = begin; i < end; ++i) {
          const T inside = u[i];
          out[i] = is_outside(x[i]) ? outside * inside : inside;
        }
      }
    });
  };
  if (call.closed) {
    run([low, high](T v) { return (v < low) | (high < v); });
  } else if (high < std::numeric_limits<T>::infinity()) {
    run([low, high](T v) { return (v <= low) | (high <= v); });
  } else {
    run([low](T v) { return v <= low; });
  }
}

template <KernelScalar T>
void binary_kernel(BinaryFunction f, const T* a, const T* b, T* out, const BroadcastLoop<2>& loop) {
  switch (f) {
    case BinaryFunction::add: return zip(a, b, out, loop, [](T p, T q) { return p + q; });
    case BinaryFunction::sub: return zip(a, b, out, loop, [](T p, T q) { return p - q; });
    case BinaryFunction::mul: return zip(a, b, out, loop, [](T p, T q) { return p * q; });
    case BinaryFunction::div: return zip(a, b, out, loop, [](T p, T q) { return p / q; });
    case BinaryFunction::less:
      return zip(a, b, out, loop, [](T p, T q) { return p < q ? T(1) : T(0); });
    case BinaryFunction::less_equal:
      return zip(a, b, out, loop, [](T p, T q) { return p <= q ? T(1) : T(0); });
    case BinaryFunction::equal:
      return zip(a, b, out, loop, [](T p, T q) { return p == q ? T(1) : T(0); });
    default: return zip(a, b, out, loop, [f](T p, T q) { return spec::binary(f, p, q); });
  }
}

template void unary_kernel(const UnaryCall&, const float*, float*, Index);
template void unary_kernel(const UnaryCall&, const double*, double*, Index);
template void gate_kernel(const GateCall&, const float*, const float*, float*, Index);
template void gate_kernel(const GateCall&, const double*, const double*, double*, Index);
template void binary_kernel(
    BinaryFunction, const float*, const float*, float*, const BroadcastLoop<2>&);
template void binary_kernel(
    BinaryFunction, const double*, const double*, double*, const BroadcastLoop<2>&);

}  // namespace fenestra
