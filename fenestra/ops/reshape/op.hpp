// The descriptor of reshape. See ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

struct ReshapeGeometry {
  Shape x;
  Shape y;

  friend constexpr bool operator==(const ReshapeGeometry&, const ReshapeGeometry&) = default;
};

inline std::string to_string(const ReshapeGeometry& g) {
  return "x=" + problem_text(g.x) + " y=" + problem_text(g.y);
}

struct Reshape : EngineOperator<Reshape> {
  using Geometry = ReshapeGeometry;
  static constexpr std::string_view name = "reshape";
  static constexpr std::string_view summary = "the same elements under another shape";
  static constexpr std::string_view example = "x=8x16x4x4 y=8x-1";
  static constexpr OwnField own_fields[] = {
      {.name = "y",
       .meaning = "shape of the result; an extent of -1 is what is left",
       .is_shape = true}};

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    const Shape x = problem.shape("x");
    const Shape y = problem.shape("y");
    problem.finish(name);
    return {x, resolved_reshape(x, y)};
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=2x3 y=3x-1",
             .inputs = {{1, 2, 3, 4, 5, 6}},
             .y = {1, 2, 3, 4, 5, 6},
             .y_bar = {6, 5, 4, 3, 2, 1},
             .bars = {{6, 5, 4, 3, 2, 1}}}};
  }
  static Geometry random(Random& random) {
    const Shape x = random_shape(random, 0, 4);
    Index left = x.elements().value_or(0);
    Shape y;
    // Factors are split off until nothing is left; ones go in between.
    while (left != 1 && y.rank() < 6) {
      const Index factor = left == 0 ? 0 : random.between(1, left);
      if (left == 0 || left % factor == 0) {
        y.push_back(factor);
        left = left == 0 ? 1 : left / factor;
      }
    }
    if (left != 1) {
      y.push_back(left);
    }
    return {x, y};
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) { return {{"x", g.x}}; }
  static TensorInfo output(const Geometry& g) { return {"y", g.y}; }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  /// Nothing is computed, so nothing is rounded.
  static Index terms(const Geometry&) { return 0; }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& /*data*/) {
    return reshape(in[0], g.y);
  }
};

static_assert(Operator<Reshape>);

}  // namespace fenestra
