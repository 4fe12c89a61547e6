// Lp pooling on any value type.
//
//   y = (window sum of |x|^p)^(1/p),  dy/dx = sign(x) |x|^(p-1) y^(1-p)
//
// so derivatives are window sums and their adjoint, with elementwise factors. Gates keep the
// derivative 0 at x = 0 and at all-zero windows, where the powers alone would be infinite.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/with_kernel.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/avg_pool/avg_pool.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/lp_pool/geometry.hpp>
#include <fenestra/ops/lp_pool/spec.hpp>

#include <limits>

namespace fenestra {

/// Every candidate of every direction, for float and double.
FENESTRA_API std::vector<KernelChoice> lp_pool_kernels(const LpPoolGeometry& g);

struct LpProblem;
template <class T>
struct LpArguments;
template <class T>
using LpKernel = kernels::Candidate<LpProblem, LpArguments<T>>;

/// Chooses a candidate, and runs one; compiled for float and double. `out` is overwritten whole.
template <KernelScalar T>
FENESTRA_API const LpKernel<T>& choose_lp_pool(const LpPoolGeometry& g);
template <KernelScalar T>
FENESTRA_API void run_lp_pool(const LpKernel<T>& kernel,
                              const LpPoolGeometry& g,
                              const T* x,
                              T* out);

struct LpPoolPrimitive {
  static constexpr std::string_view name = "lp_pool";
  LpPoolGeometry g;

  constexpr Shape result_shape(const Shape&) const { return g.pool.y_shape(); }
  template <class T>
  void run(std::span<const Tensor<T>> in, std::span<const Selection> data, T* out) const {
    if constexpr (KernelScalar<T>) {
      run_with(choose_lp_pool<T>(g), in, data, out, {});
    } else {
      store(spec::lp_pool(in[0], g), out);
    }
  }
  template <KernelScalar T>
  void run_with(const LpKernel<T>& kernel,
                std::span<const Tensor<T>> in,
                std::span<const Selection>,
                T* out,
                const SelectionBuffer&) const {
    run_lp_pool(kernel, g, in[0].data(), out);
  }
  template <KernelScalar T>
  WithKernel<LpPoolPrimitive, LpKernel<T>> prepare() const {
    return {*this, &choose_lp_pool<T>(g)};
  }
  std::optional<Split> split(std::span<const Shape> in) const {
    return split_all(in.size(), g.pool.batched);
  }
  LpPoolPrimitive piece(Index count) const { return pool_piece(*this, count); }
  std::string attributes() const { return to_string(g); }
  template <class V>
  V vjp(int, const Saved<V>& s, const V& y_bar) const {
    return inner(s[0], window_spread(outer(*s.y, y_bar), g.pool));
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& s, std::span<const std::optional<V>> dots) const {
    return outer(*s.y, window_sum(inner(s[0], *dots[0]), g.pool));
  }
  static constexpr bool needs(int, int what) { return what == 0 || what == kOutput; }
  friend bool operator==(const LpPoolPrimitive&, const LpPoolPrimitive&) = default;

 private:
  static constexpr GateCall kPositive{.low = 0, .high = std::numeric_limits<double>::infinity()};

  /// u * sign(x) |x|^(p-1), 0 at x = 0.
  template <class V>
  V inner(const V& x, const V& u) const {
    if (g.p == 1) {
      return mul(u, sign(x));
    }
    if (g.p == 2) {
      return mul(u, x);
    }
    return gate(kPositive, mul(u, mul(sign(x), power(or_one(abs(x)), g.p - 1))), abs(x));
  }
  /// u * y^(1-p), 0 at y = 0.
  template <class V>
  V outer(const V& y, const V& u) const {
    if (g.p == 1) {
      return u;
    }
    return gate(kPositive, mul(u, power(or_one(y), 1 - g.p)), y);
  }
  /// v, and 1 where v = 0: a derivative of the gated product multiplies the power by 0, which must
  /// not be infinite then.
  template <class V>
  static V or_one(const V& v) {
    const V one = scalar_constant<V>(ScalarOf<V>(1));
    return add(v, sub(one, gate(kPositive, broadcast_to(one, v.shape()), v)));
  }
};

/// The p-norm of the real cells of each window; see LpPoolOptions.
template <AnyValue V>
constexpr V lp_pool(const V& x, const LpPoolOptions& options, int named_rank = 0) {
  return apply(LpPoolPrimitive{lp_pool_geometry(x.shape(), options, named_rank)}, x);
}

template <AnyValue V>
constexpr V lp_pool1d(const V& x, const LpPoolOptions& options) {
  return lp_pool(x, options, 1);
}
template <AnyValue V>
constexpr V lp_pool2d(const V& x, const LpPoolOptions& options) {
  return lp_pool(x, options, 2);
}
template <AnyValue V>
constexpr V lp_pool3d(const V& x, const LpPoolOptions& options) {
  return lp_pool(x, options, 3);
}

}  // namespace fenestra
