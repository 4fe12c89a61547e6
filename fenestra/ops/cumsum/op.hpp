// The descriptor of running sums. See ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/cumsum/cumsum.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

inline std::string to_string(const CumsumPrimitive& g) {
  return "x=" + problem_text(g.x) + fields_text(g);
}

struct Cumsum : EngineOperator<Cumsum> {
  using Geometry = CumsumPrimitive;
  using Options = CumsumPrimitive;
  static constexpr std::string_view name = "cumsum";
  static constexpr std::string_view summary = "running sums along an axis";
  static constexpr std::string_view example = "x=8x16x32 axis=1";

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    const Shape x = problem.shape("x");
    auto g = problem.options<Options>();
    problem.finish(name);
    g.x = x;
    g.axis = resolved_axis(name, x, g.axis);
    return g;
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=2x3 axis=1",
             .inputs = {{1, 2, 3, 4, 5, 6}},
             .y = {1, 3, 6, 4, 9, 15},
             .y_bar = {1, 10, 100, 1, 0, 0},
             .bars = {{111, 110, 100, 1, 0, 0}}},
            {.problem = "x=3 axis=0 reverse=true",
             .inputs = {{1, 2, 3}},
             .y = {6, 5, 3},
             .y_bar = {1, 10, 100},
             .bars = {{1, 11, 111}}}};
  }
  static Geometry random(Random& random) {
    auto g = random_choices<Options>(random);
    g.x = random_shape(random, 1, 4);
    g.axis = static_cast<int>(random.between(0, g.x.rank() - 1));
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) { return {{"x", g.x}}; }
  static TensorInfo output(const Geometry& g) { return {"y", g.x}; }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  static Index terms(const Geometry& g) { return g.x[g.axis]; }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& /*data*/) {
    return cumsum(in[0], g.axis, g.reverse);
  }
};

static_assert(Operator<Cumsum>);

}  // namespace fenestra
