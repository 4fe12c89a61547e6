// The descriptor of where. See ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/ops/where/where.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

struct WhereGeometry {
  Shape mask;
  Shape a;
  Shape b;

  friend constexpr bool operator==(const WhereGeometry&, const WhereGeometry&) = default;
};

inline std::string to_string(const WhereGeometry& g) {
  return "mask=" + problem_text(g.mask) + " a=" + problem_text(g.a) + " b=" + problem_text(g.b);
}

struct Where : EngineOperator<Where> {
  using Geometry = WhereGeometry;
  static constexpr std::string_view name = "where";
  static constexpr std::string_view summary =
      "elements of a or of b, as a mask says, with broadcasting";
  static constexpr std::string_view example = "mask=8x16 a=8x16 b=scalar";
  static constexpr OwnField own_fields[] = {
      {.name = "mask", .meaning = "shape of what chooses between a and b", .is_shape = true}};

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    Geometry g{problem.shape("mask"), problem.shape("a"), problem.shape("b")};
    problem.finish(name);
    result(g);
    return g;
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "mask=3 a=2x3 b=scalar",
             .inputs = {{1, 0, -2}, {1, 2, 3, 4, 5, 6}, {9}},
             .y = {1, 9, 3, 4, 9, 6},
             .y_bar = {1, 2, 3, 4, 5, 6},
             .bars = {{0, 0, 0}, {1, 0, 3, 4, 0, 6}, {7}}}};
  }
  static Geometry random(Random& random) {
    const Shape shape = random_shape(random, 0, 4);
    Geometry g{shape, random_broadcastable(random, shape), random_broadcastable(random, shape)};
    std::swap(g.mask, random.chance(2) ? g.a : g.b);
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    return {{"mask", g.mask}, {"a", g.a}, {"b", g.b}};
  }
  static TensorInfo output(const Geometry& g) { return {"y", result(g)}; }
  static Algebra algebra(const Geometry&) { return Algebra::piecewise_linear; }
  /// Elements are copied.
  static Index terms(const Geometry&) { return 0; }

  template <class V>
  static V call(const Geometry&,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& /*data*/) {
    return where(in[0], in[1], in[2]);
  }

 private:
  static Shape result(const Geometry& g) {
    return broadcast_shape(name, broadcast_shape(name, g.a, g.b), g.mask);
  }
};

static_assert(Operator<Where>);

}  // namespace fenestra
