// The descriptor of max pooling: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/max_pool/spec.hpp>
#include <fenestra/ops/pool_operator.hpp>

namespace fenestra {

/// Values and derivatives of a max over windows, fixed or adaptive.
struct MaxOverWindows : PoolOperator<MaxPoolGeometry> {
  static Algebra algebra(const Geometry&) { return Algebra::piecewise_linear; }
  /// A maximum copies: no rounding at all.
  static Index terms(const Geometry&) { return 0; }

  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return spec::max_pool(in.values[0], g);
  }
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    return {spec::max_pool_vjp(spec::max_pool_indices(in.values[0], g), y_bar, g)};
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return spec::max_pool_jvp(spec::max_pool_indices(in.values[0], g), dots[0], g);
  }
};

struct MaxPool : MaxOverWindows {
  static constexpr std::string_view name = "max_pool";
  static constexpr std::string_view summary =
      "max pooling: the largest cell of each window, the first of equals";
  static constexpr std::string_view example = "x=1x64x112x112 kernel=3 stride=2 padding=1";

  static Geometry parse(std::string_view text) { return parse_max_pool(Problem(text)); }
  static Geometry random(Random& random) {
    MaxPoolOptions options;
    const Shape x = random_pool(random, options);
    options.pad_cells = random.chance(3) ? PadCells::zero : PadCells::ignore;
    return max_pool_geometry(x, options);
  }
};

static_assert(Operator<MaxPool>);

}  // namespace fenestra
