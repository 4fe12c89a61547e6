// The descriptor of max unpooling: see ops/operator.hpp for the contract. Its indices are data
// without a gradient.
#pragma once

#include <fenestra/ops/max_unpool/max_unpool.hpp>
#include <fenestra/ops/max_unpool/spec.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/ops/random_options.hpp>

namespace fenestra {

struct MaxUnpool {
  using Geometry = MaxUnpoolGeometry;
  using Options = MaxUnpoolOptions;
  static constexpr std::string_view name = "max_unpool";
  static constexpr std::string_view summary =
      "max unpooling: every value back to the cell its index names";
  static constexpr std::string_view example = "x=1x8x4x4 kernel=2";

  static Geometry parse(std::string_view text) { return parse_max_unpool(Problem(text)); }
  static std::vector<KnownAnswer> answers() {
    return {
        {.problem = "x=1x1x2 kernel=2", .inputs = {{5, 6}}, .y = {0, 5, 0, 6}, .data = {{1, 3}}},
        // The last of duplicates stays; an index of -1 is nowhere.
        {.problem = "x=1x1x4 output_size=4",
         .inputs = {{5, 6, 7, 8}},
         .y = {6, 0, 7, 0},
         .y_bar = {1, 10, 100, 1000},
         .bars = {{0, 1, 100, 0}},
         .data = {{2, 0, 2, -1}}}};
  }
  static Geometry random(Random& random) {
    const int rank = random_rank(random);
    const RandomWindows windows(random, rank);
    MaxUnpoolOptions options;
    for (int axis = 0; axis < rank; ++axis) {
      options.output_size.push_back(random.between(1, 2 * windows.in[axis]));
    }
    const RandomActivation x(random, windows.in, random.chance(12) ? 0 : random.between(1, 3));
    options.layout = x.layout;
    return max_unpool_geometry(x.joined(), options);
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    return {{"x", g.x_shape(), Role::activation}};
  }
  static std::vector<TensorInfo> data(const Geometry& g) {
    return {{"indices", g.x_shape(), Role::activation}};
  }
  /// Values a data tensor may take: any cell, or nowhere.
  static Index data_limit(const Geometry& g) { return g.y_map().cells; }
  static TensorInfo output(const Geometry& g) { return {"y", g.y_shape(), Role::activation}; }
  static Layout layout(const Geometry& g) { return g.layout; }
  static bool batched(const Geometry& g) { return g.batched; }
  static Geometry with_layout(Geometry g, Layout layout) {
    g.layout = layout;
    return g;
  }
  static Geometry single_sample(Geometry g) {
    g.batched = false;
    g.batch = 1;
    return g;
  }
  static Windows windows(const Geometry&) { return {}; }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  static Costs costs(const Geometry& g) { return {0, g.x_shape().elements().value_or(0)}; }
  /// A placement copies: no rounding at all.
  static Index terms(const Geometry&) { return 0; }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& data) {
    return apply(
        PlacementPrimitive{{}, g}, {in[0]}, {IndicesOf<V>(spec::last_writers(data[0], g))});
  }
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return spec::max_unpool(in.values[0], in.data[0], g);
  }
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    return {spec::max_unpool_vjp(in.data[0], y_bar, g)};
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return spec::max_unpool(dots[0], in.data[0], g);
  }
};

static_assert(Operator<MaxUnpool>);

}  // namespace fenestra
