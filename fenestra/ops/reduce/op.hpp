// The descriptor of the reductions over axes. See ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

enum class ReduceFunction { sum, mean, max, min };

struct ReduceGeometry {
  ReduceFunction f = ReduceFunction::sum;
  Shape x;
  ReduceOptions options;

  friend bool operator==(const ReduceGeometry&, const ReduceGeometry&) = default;
};

namespace detail {
inline constexpr std::string_view kReduceNames[] = {"sum", "mean", "max", "min"};
}

inline std::string to_string(const ReduceGeometry& g) {
  return "f=" + std::string(detail::kReduceNames[static_cast<int>(g.f)]) +
         " x=" + problem_text(g.x) + fields_text(g.options);
}

struct Reduce : EngineOperator<Reduce> {
  using Geometry = ReduceGeometry;
  using Options = ReduceOptions;
  static constexpr std::string_view name = "reduce";
  static constexpr std::string_view summary = "sum, mean, maximum or minimum over axes";
  static constexpr std::string_view example = "f=mean x=8x16x32x32 axes=2,3 keep=true";

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    Geometry g;
    g.f = static_cast<ReduceFunction>(problem.choice("f", detail::kReduceNames));
    g.x = problem.shape("x");
    g.options = problem.options<Options>();
    problem.finish(name);
    reduced_shape(name, g.x, g.options.axes);
    return g;
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "f=sum x=2x3 axes=0",
             .inputs = {{1, 2, 3, 4, 5, 6}},
             .y = {5, 7, 9},
             .y_bar = {1, 2, 3},
             .bars = {{1, 2, 3, 1, 2, 3}}},
            {.problem = "f=mean x=2x2 axes=-1 keep=true",
             .inputs = {{1, 2, 3, 5}},
             .y = {1.5, 4},
             .y_bar = {2, 4},
             .bars = {{1, 1, 2, 2}}},
            {.problem = "f=max x=2x3 axes=1",
             .inputs = {{1, 4, 4, -3, -1, -2}},
             .y = {4, -1},
             .y_bar = {1, 2},
             .bars = {{0, 1, 0, 0, 2, 0}}},
            {.problem = "f=min x=2x3",
             .inputs = {{1, 4, 4, -3, -1, -3}},
             .y = {-3},
             .y_bar = {1},
             .bars = {{0, 0, 0, 1, 0, 0}}}};
  }
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    Geometry g;
    g.f = static_cast<ReduceFunction>(random.between(0, 3));
    g.x = random_shape(random, 0, 4, g.f == ReduceFunction::sum ? 0 : 1, reach);
    g.options = random_choices<Options>(random);
    for (int axis = 0; axis < g.x.rank(); ++axis) {
      if (random.chance(2)) {
        g.options.axes.push_back(random.chance(3) ? axis - g.x.rank() : axis);
      }
    }
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) { return {{"x", g.x}}; }
  static TensorInfo output(const Geometry& g) {
    const ReducedShape to = reduced_shape(name, g.x, g.options.axes);
    return {"y", g.options.keep ? to.kept : to.removed};
  }
  static Algebra algebra(const Geometry& g) {
    return g.f == ReduceFunction::sum || g.f == ReduceFunction::mean ? Algebra::multilinear
                                                                     : Algebra::piecewise_linear;
  }
  /// Additions, and the division of a mean; a maximum copies.
  static Index terms(const Geometry& g) {
    const Index count = reduced_shape(name, g.x, g.options.axes).count;
    switch (g.f) {
      case ReduceFunction::sum: return count;
      case ReduceFunction::mean: return count + 1;
      default: return 0;
    }
  }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& /*data*/) {
    switch (g.f) {
      case ReduceFunction::sum: return sum(in[0], g.options);
      case ReduceFunction::mean: return mean(in[0], g.options);
      case ReduceFunction::max: return max_over(in[0], g.options);
      case ReduceFunction::min: break;
    }
    return min_over(in[0], g.options);
  }
};

static_assert(Operator<Reduce>);

}  // namespace fenestra
