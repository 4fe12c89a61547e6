// The descriptor of choosing by integers. See ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/gather/gather.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

inline std::string to_string(const GatherGeometry& g) {
  return "x=" + problem_text(g.x) + " indices=" + problem_text(g.indices) + fields_text(g);
}

struct Gather : EngineOperator<Gather> {
  using Geometry = GatherGeometry;
  using Options = GatherGeometry;
  static constexpr std::string_view name = "gather";
  static constexpr std::string_view summary =
      "elements, or slices, of a tensor along an axis by integers";
  static constexpr std::string_view example = "x=8x100 indices=8x5 axis=1";
  static constexpr OwnField own_fields[] = {
      {.name = "indices", .meaning = "shape of the indices", .is_shape = true}};

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    const Shape x = problem.shape("x");
    const Shape indices = problem.shape("indices");
    const auto options = problem.options<Options>();
    problem.finish(name);
    require_elements(name, "indices", Argument::indices, indices);
    return gather_geometry(x, indices, options.axis, options.slices);
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=2x3 indices=2x2 axis=1",
             .inputs = {{1, 2, 3, 4, 5, 6}},
             .y = {3, 1, 5, 5},
             .y_bar = {1, 2, 3, 4},
             .bars = {{2, 0, 1, 0, 7, 0}},
             .data = {{2, 0, -2, 1}}},
            {.problem = "x=3x2 indices=2 axis=0 slices=true",
             .inputs = {{1, 2, 3, 4, 5, 6}},
             .y = {5, 6, 1, 2},
             .y_bar = {1, 2, 3, 4},
             .bars = {{3, 4, 0, 0, 1, 2}},
             .data = {{-1, 0}}}};
  }
  static Geometry random(Random& random) {
    const Shape x = random_shape(random, 1, 3, 1);
    const auto axis = static_cast<int>(random.between(0, x.rank() - 1));
    if (random_choices<Options>(random).slices) {
      return gather_geometry(x, random_shape(random, 0, 2), axis, true);
    }
    Shape indices = x;
    indices[axis] = random.between(0, 4);
    return gather_geometry(x, indices, axis, false);
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) { return {{"x", g.x}}; }
  static std::vector<TensorInfo> data(const Geometry& g) { return {{"indices", g.indices}}; }
  static Index data_least(const Geometry& g) { return -g.x[g.axis]; }
  static Index data_limit(const Geometry& g) { return g.x[g.axis]; }
  static TensorInfo output(const Geometry& g) { return {"y", g.y_shape()}; }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  /// Elements are copied.
  static Index terms(const Geometry&) { return 0; }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& data) {
    return detail::gathered(in[0], IndicesOf<V>(data[0]), g.axis, g.slices);
  }
};

static_assert(Operator<Gather>);

}  // namespace fenestra
