// Batch, group and layer normalisation on any value type.
//
//   y = (x - mean)/sqrt(var + eps) * gamma + beta
//
// mean and (biased) variance are taken over the elements of a group, or are given. With the values
// h of the normalised x, r = 1/sqrt(var + eps), n elements in a group and v = gamma * y_bar,
//   x_bar = r * (v - sum(v)/n - h * sum(v * h)/n), gamma_bar = sum(y_bar * h), beta_bar =
//   sum(y_bar)
// Float and double do this in fused passes; all other derivatives are those of the composition.
#pragma once

#include <fenestra/engine/composed.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>
#include <fenestra/ops/normalise/call.hpp>
#include <fenestra/ops/normalise/geometry.hpp>
#include <fenestra/ops/reduce/select.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/spec/problem.hpp>
#include <fenestra/tensor/split.hpp>

#include <string>
#include <utility>
#include <vector>

namespace fenestra {

struct NormVariancePrimitive;
struct NormSumsPrimitive;
struct NormInputGradPrimitive;
struct NormalisePrimitive;

// Compiled for float and double in kernels/runs.cpp; the inputs are those of the primitive.
template <KernelScalar T>
void norm_kernel(const NormVariancePrimitive& norm, std::span<const Tensor<T>> in, T* out);
template <KernelScalar T>
void norm_kernel(const NormSumsPrimitive& norm, std::span<const Tensor<T>> in, T* out);
template <KernelScalar T>
void norm_kernel(const NormInputGradPrimitive& norm, std::span<const Tensor<T>> in, T* out);
template <KernelScalar T>
void norm_kernel(const NormalisePrimitive& norm, std::span<const Tensor<T>> in, T* out);

namespace detail {

/// 1/sqrt(var + eps)
template <AnyValue V>
constexpr V inverse_deviation(const V& var, double eps) {
  return power(add(var, scalar_constant<V>(from_double<ScalarOf<V>>(eps))), -0.5);
}

inline std::string norm_attributes(const NormGeometry& g) {
  return "stat " + to_string(g.stat) + " eps=" + problem_text(g.eps);
}

/// Flat indices of row `row` of a (2, n) tensor.
inline Selection row_cells(Index row, Index n) {
  Tensor<Index> cells = Tensor<Index>::uninitialised(Shape{n});
  Index* out = cells.mutable_data();
  for (Index i = 0; i < n; ++i) {
    out[i] = row * n + i;
  }
  return cells;
}

template <AnyValue V>
constexpr V row_of(const V& pair, Index row, const Shape& shape) {
  return take(pair, IndicesOf<V>(row_cells(row, shape.elements().value_or(0))), shape);
}

template <AnyValue V>
constexpr V pair_of(const V& first, const V& second, Index n) {
  const Shape shape{2, n};
  return add(place(first, IndicesOf<V>(row_cells(0, n)), shape),
             place(second, IndicesOf<V>(row_cells(1, n)), shape));
}

template <class P, AnyValue V>
constexpr V apply_list(const P& primitive, const std::vector<V>& in) {
  return apply_all(primitive, std::span<const V>(in), std::span<const IndicesOf<V>>(), false).y;
}

template <class P>
struct NormPrimitive : ComposedPrimitive<P> {
  template <KernelScalar T>
  void run_kernel(std::span<const Tensor<T>> in, std::span<const Selection>, T* out) const {
    norm_kernel(static_cast<const P&>(*this), in, out);
  }
  friend constexpr bool operator==(const NormPrimitive&, const NormPrimitive&) = default;
};

}  // namespace detail

/// The variance of each group about its mean: inputs x and mean (x as the view, mean as `stat`).
/// The mean counts as part of x, so its cotangent is none; it would be zero, the deviations sum to
/// zero.
struct NormVariancePrimitive : detail::NormPrimitive<NormVariancePrimitive> {
  static constexpr std::string_view name = "norm_variance";
  NormGeometry g;

  std::string attributes() const { return detail::norm_attributes(g); }
  /// Where every row of axis 0 has statistics of its own.
  std::optional<TileOf<NormVariancePrimitive>> tile(std::span<const Shape> in,
                                                    const Box& box) const {
    if (g.is_shared() || box.shape() != with_samples(g.stat, box.count[0])) {
      return std::nullopt;
    }
    TileAxes axes;
    Box part(g.view);
    for (int axis = 0; axis < g.view.rank(); ++axis) {
      axes.mixed |= g.stat[axis] != g.view[axis] ? 1U << axis : 0U;
    }
    part.set(0, box[0]);
    return TileOf<NormVariancePrimitive>{
        box, {part, broadcast_box(in[1], g.stat, box)}, {{}, g.piece(box.count[0])}, axes};
  }

  template <class V>
  V compose(const std::vector<V>& in, const std::vector<IndicesOf<V>>&) const {
    const V deviation = sub(in[0], in[1]);
    return divide_by_count(sum_to(mul(deviation, deviation), g.stat), g.count);
  }
  constexpr Shape result_shape(const Shape&) const { return g.stat; }
  template <class V>
  std::optional<V> vjp(int i, const Saved<V>& saved, const V& y_bar) const {
    if (i == 1) {
      return std::nullopt;
    }
    return mul(sub(saved[0], saved[1]), divide_by_count(scale(y_bar, 2), g.count));
  }
  static constexpr bool needs(int i, int what) { return i == 0 && what != kOutput; }
  friend bool operator==(const NormVariancePrimitive&, const NormVariancePrimitive&) = default;
};

/// (2, cells): the sums of u and of u * h. Inputs u, x, mean, var.
struct NormSumsPrimitive : detail::NormPrimitive<NormSumsPrimitive> {
  static constexpr std::string_view name = "norm_sums";
  NormGeometry g;
  bool over_affine = false;

  std::string attributes() const {
    return detail::norm_attributes(g) + (over_affine ? " over affine" : " over groups");
  }

  constexpr const Shape& target() const { return over_affine ? g.affine : g.stat; }

  template <class V>
  V compose(const std::vector<V>& in, const std::vector<IndicesOf<V>>&) const {
    const V h = mul(sub(in[1], in[2]), detail::inverse_deviation(in[3], g.eps));
    return detail::pair_of(
        sum_to(in[0], target()), sum_to(mul(in[0], h), target()), target().elements().value_or(0));
  }
  constexpr Shape result_shape(const Shape&) const {
    return Shape{2, target().elements().value_or(0)};
  }
  friend bool operator==(const NormSumsPrimitive&, const NormSumsPrimitive&) = default;
};

/// gamma * r * (v - sums[0]/n - h * sums[1]/n). Inputs v, x, mean, var, sums over groups, and gamma
/// where an affine pair belongs to one group.
struct NormInputGradPrimitive : detail::NormPrimitive<NormInputGradPrimitive> {
  static constexpr std::string_view name = "norm_input_grad";
  NormGeometry g;

  std::string attributes() const { return detail::norm_attributes(g); }
  /// Element by element, given the sums.
  static constexpr bool may_overwrite(int i) { return i < 2; }
  /// Not where the sums, two rows of all groups, belong to samples.
  std::optional<Split> split(std::span<const Shape> in) const {
    if (!g.is_shared()) {
      return std::nullopt;
    }
    std::optional<Split> split = split_broadcast(in, g.view);
    split->in[4] = false;
    return split;
  }
  NormInputGradPrimitive piece(Index count) const { return {{}, g.piece(count)}; }

  template <class V>
  V compose(const std::vector<V>& in, const std::vector<IndicesOf<V>>&) const {
    const V r = detail::inverse_deviation(in[3], g.eps);
    const V h = mul(sub(in[1], in[2]), r);
    const V mean_v = divide_by_count(detail::row_of(in[4], 0, g.stat), g.count);
    const V mean_vh = divide_by_count(detail::row_of(in[4], 1, g.stat), g.count);
    const V inner = sub(sub(in[0], mean_v), mul(h, mean_vh));
    return mul(inner, in.size() > 5 ? V(mul(r, in[5])) : r);
  }
  constexpr Shape result_shape(const Shape&) const { return g.view; }
  friend bool operator==(const NormInputGradPrimitive&, const NormInputGradPrimitive&) = default;
};

/// Inputs x, mean, var, and gamma and beta where there are any; all in shapes of the view.
///
/// Unless it is `inference`, mean and var are those of x: they come in only so that nobody computes
/// them twice, and the cotangent of x is the total one, theirs is none. It is written with mean and
/// var as values, so further derivatives find their way through them.
struct NormalisePrimitive : detail::NormPrimitive<NormalisePrimitive> {
  static constexpr std::string_view name = "normalise";
  NormGeometry g;
  bool inference = false;

  std::string attributes() const {
    return detail::norm_attributes(g) + (inference ? " inference" : "");
  }
  /// Element by element, given the statistics.
  static constexpr bool may_overwrite(int i) { return i == 0; }
  std::optional<Split> split(std::span<const Shape> in) const {
    return split_broadcast(in, g.view);
  }
  NormalisePrimitive piece(Index count) const { return {{}, g.piece(count), inference}; }
  std::optional<TileOf<NormalisePrimitive>> tile(std::span<const Shape> in, const Box& box) const {
    const std::optional<NormGeometry> part = g.tile(box);
    if (!part) {
      return std::nullopt;
    }
    TileOf<NormalisePrimitive> tile{box, {}, {{}, *part, inference}};
    for (const Shape& operand : in) {
      tile.in.push_back(broadcast_box(operand, g.view, box));
    }
    return tile;
  }
  /// By stored statistics of each channel it is y = scale * x + shift.
  template <class V>
  std::optional<ChannelMap<V>> channel_map(const Saved<V>& s) const {
    if (!inference || !g.is_shared()) {
      return std::nullopt;
    }
    const Shape channels{g.stat_cells()};
    const V r = detail::inverse_deviation(s[2], g.eps);
    const bool affine = s.in.size() > 3;
    const V scale = affine ? V(mul(r, s[3])) : r;
    const V drop = neg(mul(s[1], scale));
    return ChannelMap<V>{reshape(scale, channels),
                         reshape(affine ? V(add(drop, s[4])) : drop, channels)};
  }

  template <class V>
  V compose(const std::vector<V>& in, const std::vector<IndicesOf<V>>&) const {
    const V h = mul(sub(in[0], in[1]), detail::inverse_deviation(in[2], g.eps));
    return in.size() > 3 ? V(add(mul(h, in[3]), in[4])) : h;
  }
  constexpr Shape result_shape(const Shape&) const { return g.view; }
  template <class V>
  void vjp_all(const Saved<V>& saved,
               const V& u,
               const std::vector<bool>& needed,
               std::vector<std::optional<V>>& bars) const {
    if (inference) {
      ComposedPrimitive::vjp_all(saved, u, needed, bars);
      return;
    }
    const bool affine = needed.size() > 3;
    const bool parameters = affine && (needed[3] || needed[4]);
    const auto sums = [&](const V& v, bool over_affine) {
      return apply(NormSumsPrimitive{{}, g, over_affine}, {v, saved[0], saved[1], saved[2]});
    };
    std::optional<V> shared;
    if (needed[0]) {
      const bool outside = affine && g.affine_is_stat();
      const V v = affine && !outside ? V(mul(u, saved[3])) : u;
      const V v_sums = sums(v, false);
      std::vector<V> in{v, saved[0], saved[1], saved[2], v_sums};
      if (outside) {
        in.push_back(saved[3]);
        shared = v_sums;
      }
      bars[0] = detail::apply_list(NormInputGradPrimitive{{}, g}, in);
    }
    if (parameters) {
      const V u_sums = shared ? *shared : sums(u, true);
      if (needed[3]) {
        bars[3] = detail::row_of(u_sums, 1, g.affine);
      }
      if (needed[4]) {
        bars[4] = detail::row_of(u_sums, 0, g.affine);
      }
    }
  }
  friend bool operator==(const NormalisePrimitive&, const NormalisePrimitive&) = default;
};

namespace detail {

/// Whether gamma, beta, a mean or a variance has the shape of the parameters.
constexpr Fault check_parameters(Argument argument, const Shape& got, const NormGeometry& g) {
  if (got == g.parameters) {
    return {};
  }
  return {.code = ErrorCode::shape_mismatch,
          .argument = argument,
          .got = got.elements().value_or(0),
          .needed = g.parameters.elements().value_or(0)};
}

constexpr void require_parameters(std::string_view op,
                                  Argument argument,
                                  const Shape& got,
                                  const NormGeometry& g) {
  if (const Fault fault = check_parameters(argument, got, g)) {
    const std::string name = argument == Argument::gamma  ? spelled("gamma", "weight")
                             : argument == Argument::beta ? spelled("beta", "bias")
                                                          : std::string(argument_name(argument));
    throw Error(std::string(op),
                fault,
                std::string(op) + ": x = " + to_string(g.x) + ", " + name + " = " + to_string(got) +
                    "\n  fix: " + name + " of shape " + to_string(g.parameters));
  }
}

/// The list (x, mean, var, gamma, beta) in shapes of the view, with the statistics of x.
template <AnyValue V>
constexpr std::vector<V> norm_inputs(const NormGeometry& g, const V& x) {
  const V view = reshape(x, g.view);
  const V mean = divide_by_count(sum_to(view, g.stat), g.count);
  return {view, mean, apply(NormVariancePrimitive{{}, g}, {view, mean})};
}

template <AnyValue V>
constexpr void add_parameters(
    std::string_view op, const NormGeometry& g, const V& gamma, const V& beta, std::vector<V>& in) {
  require_parameters(op, Argument::gamma, gamma.shape(), g);
  require_parameters(op, Argument::beta, beta.shape(), g);
  in.push_back(reshape(gamma, g.affine));
  in.push_back(reshape(beta, g.affine));
}

template <AnyValue V>
constexpr V normalised(const NormGeometry& g, const std::vector<V>& in, bool inference) {
  return reshape(apply_list(NormalisePrimitive{{}, g, inference}, in), g.x);
}

/// An empty result that depends on all it would depend on, without statistics of groups of nothing.
template <AnyValue V>
constexpr V nothing_normalised(const NormGeometry& g, const V& x, const std::vector<V>& affine) {
  return reshape(add(mul(reshape(x, g.view), affine[0]), affine[1]), g.x);
}

/// With statistics of its own, and an affine pair.
template <AnyValue V>
constexpr V normalised_with(
    std::string_view op, const NormGeometry& g, const V& x, const V& gamma, const V& beta) {
  std::vector<V> in;
  if (g.is_empty()) {
    add_parameters(op, g, gamma, beta, in);
    return nothing_normalised(g, x, in);
  }
  in = norm_inputs(g, x);
  add_parameters(op, g, gamma, beta, in);
  return normalised(g, in, false);
}

template <AnyValue V>
constexpr Normalised<V> batch_normalised(const NormGeometry& g, const std::vector<V>& in) {
  return {normalised(g, in, false), reshape(in[1], g.parameters), reshape(in[2], g.parameters)};
}

template <AnyValue V>
constexpr std::vector<V> inference_inputs(const NormGeometry& g,
                                          const V& x,
                                          const V& mean,
                                          const V& var) {
  require_parameters("batch_norm_inference", Argument::mean, mean.shape(), g);
  require_parameters("batch_norm_inference", Argument::var, var.shape(), g);
  return {reshape(x, g.view), reshape(mean, g.stat), reshape(var, g.stat)};
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
constexpr Normalised<V> batch_norm_values(const V& x,
                                          const V& gamma,
                                          const V& beta,
                                          const NormOptions& options) {
  const NormGeometry g = batch_norm_geometry(x.shape(), options);
  std::vector<V> in = detail::norm_inputs(g, x);
  detail::add_parameters("batch_norm", g, gamma, beta, in);
  return detail::batch_normalised(g, in);
}
template <AnyValue V>
constexpr Normalised<V> batch_norm(const V& x, const NormOptions& options = {}) {
  const NormGeometry g = batch_norm_geometry(x.shape(), options);
  return detail::batch_normalised(g, detail::norm_inputs(g, x));
}

template <AnyValue V>
constexpr V batch_norm_inference_values(const V& x,
                                        const V& mean,
                                        const V& var,
                                        const V* gamma,
                                        const V* beta,
                                        const NormOptions& options) {
  const NormGeometry g = batch_norm_geometry(x.shape(), options);
  std::vector<V> in = detail::inference_inputs(g, x, mean, var);
  if (gamma != nullptr) {
    detail::add_parameters("batch_norm_inference", g, *gamma, *beta, in);
  }
  return detail::normalised(g, in, true);
}

template <AnyValue V>
constexpr V group_norm_values(
    const V& x, Index groups, const V& gamma, const V& beta, const NormOptions& options) {
  return detail::normalised_with(
      "group_norm", group_norm_geometry(x.shape(), groups, options), x, gamma, beta);
}
template <AnyValue V>
constexpr V group_norm(const V& x, Index groups, const NormOptions& options = {}) {
  const NormGeometry g = group_norm_geometry(x.shape(), groups, options);
  return g.is_empty() ? x : detail::normalised(g, detail::norm_inputs(g, x), false);
}

template <AnyValue V>
constexpr V layer_norm_values(const V& x, const V& gamma, const V& beta, double eps) {
  return detail::normalised_with(
      "layer_norm", layer_norm_geometry(x.shape(), gamma.shape().rank(), eps), x, gamma, beta);
}
template <AnyValue V>
constexpr V layer_norm(const V& x, int axes = 1, double eps = 1e-5) {
  const NormGeometry g = layer_norm_geometry(x.shape(), axes, eps);
  return g.is_empty() ? x : detail::normalised(g, detail::norm_inputs(g, x), false);
}

}  // namespace generic

}  // namespace fenestra
