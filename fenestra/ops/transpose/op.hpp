// The descriptor of transpose: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/transpose/transpose.hpp>
#include <fenestra/spec/problem.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fenestra {

struct TransposeGeometry {
  Shape x;
  Shape order;

  friend bool operator==(const TransposeGeometry&, const TransposeGeometry&) = default;
};

inline std::string to_string(const TransposeGeometry& g) {
  return "x=" + problem_text(g.x) + (g.x.rank() > 0 ? " order=" + list_text(g.order) : "");
}

struct Transpose : EngineOperator<Transpose> {
  using Geometry = TransposeGeometry;
  static constexpr std::string_view name = "transpose";
  static constexpr std::string_view summary =
      "transpose: the same elements with the axes in another order";
  static constexpr std::string_view example = "x=2x3x16x16 order=0,2,3,1";
  static constexpr OwnField own_fields[] = {
      {.name = "order", .meaning = "the axes in their new order, each once: 0,2,1"}};

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    const Shape x = problem.shape("x");
    std::vector<int> order;
    for (const Index axis : problem.integers("order")) {
      // Out of range stays out of range, whatever it narrows to.
      order.push_back(static_cast<int>(std::clamp<Index>(axis, -kMaxRank - 1, kMaxRank)));
    }
    problem.finish(name);
    require_elements(name, "x", Argument::x, x);
    return {x, resolve_order(x, order)};
  }

  static Geometry random(Random& random, Reach reach = Reach::exact) {
    Geometry g;
    const int rank = random.chance(15) ? 0 : random_rank(random) + (random.chance(2) ? 1 : 0);
    // Beyond the tile of the compiled copy now and then.
    const Index largest = rank == 2 ? 40 : rank == 3 ? 18 : 4;
    for (int axis = 0; axis < rank; ++axis) {
      g.x.push_back(reach == Reach::networks ? random_count(random, 4 * largest)
                    : random.chance(20)      ? 0
                                             : random.between(1, random.chance(3) ? largest : 4));
      g.order.push_back(axis);
    }
    for (int i = rank - 1; i > 0; --i) {
      std::swap(g.order[i], g.order[static_cast<int>(random.between(0, i))]);
    }
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) { return {{"x", g.x}}; }
  static TensorInfo output(const Geometry& g) { return {"y", transposed_shape(g.x, g.order)}; }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  /// Copies: no rounding at all.
  static Index terms(const Geometry&) { return 0; }

  template <class V>
  static V call(const Geometry& g, const std::vector<V>& in, const std::vector<Tensor<Index>>&) {
    const std::vector<int> order(g.order.begin(), g.order.end());
    return fenestra::transpose(in[0], order);
  }
};

static_assert(Operator<Transpose>);

}  // namespace fenestra
