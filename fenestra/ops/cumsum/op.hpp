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

struct CumsumGeometry {
  Shape x;
  int axis = 0;
  bool reverse = false;

  friend constexpr bool operator==(const CumsumGeometry&, const CumsumGeometry&) = default;
};

inline std::string to_string(const CumsumGeometry& g) {
  return "x=" + problem_text(g.x) + " axis=" + std::to_string(g.axis) +
         (g.reverse ? " reverse=true" : "");
}

struct Cumsum : EngineOperator<Cumsum> {
  using Geometry = CumsumGeometry;
  static constexpr std::string_view name = "cumsum";
  static constexpr std::string_view summary = "running sums along an axis";
  static constexpr std::string_view example = "x=8x16x32 axis=1";
  static constexpr OwnField own_fields[] = {
      {.name = "reverse", .meaning = "whether it starts at the end", .otherwise = "false"}};

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    Geometry g;
    g.x = problem.shape("x");
    const Index axis = problem.integer("axis", -1);
    g.reverse = problem.flag("reverse", false);
    problem.finish(name);
    const bool possible = axis >= -kMaxRank && axis < kMaxRank;
    g.axis = resolved_axis(name, g.x, possible ? static_cast<int>(axis) : kMaxRank);
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
    Geometry g;
    g.x = random_shape(random, 1, 4);
    g.axis = static_cast<int>(random.between(0, g.x.rank() - 1));
    g.reverse = random.chance(2);
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
