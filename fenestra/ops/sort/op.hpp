// The descriptor of sorting. See ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/ops/sort/sort.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

inline std::string to_string(const SortPrimitive& g) {
  const SortOptions options{.axis = g.axis, .descending = g.descending};
  return "x=" + problem_text(g.x) + fields_text(options, {}, "axis") +
         " count=" + std::to_string(g.count) + fields_text(options, "axis");
}

struct Sort : EngineOperator<Sort> {
  using Geometry = SortPrimitive;
  using Options = SortOptions;
  static constexpr std::string_view name = "sort";
  static constexpr std::string_view summary =
      "the elements of an axis in order, or the first few of them";
  static constexpr std::string_view example = "x=8x100 axis=1 count=5 descending=true";
  static constexpr OwnField own_fields[] = {
      {.name = "count", .meaning = "how many of the sorted are kept", .otherwise = "all of them"}};

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    const Shape x = problem.shape("x");
    const auto options = problem.options<Options>();
    const OptionalIndex count = problem.optional_integer("count");
    problem.finish(name);
    return detail::resolve_sort(name, x, options.axis, count, options.descending);
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=2x3 axis=1",
             .inputs = {{3, 1, 2, 5, 5, -1}},
             .y = {1, 2, 3, -1, 5, 5},
             .y_bar = {1, 2, 3, 4, 5, 6},
             .bars = {{3, 1, 2, 5, 6, 4}}},
            {.problem = "x=4 count=2 descending=true",
             .inputs = {{7, 8, 8, 1}},
             .y = {8, 8},
             .y_bar = {1, 2},
             .bars = {{0, 1, 2, 0}}}};
  }
  static Geometry random(Random& random) {
    const Shape x = random_shape(random, 1, 4);
    const auto axis = static_cast<int>(random.between(0, x.rank() - 1));
    const Index count = random.chance(2) ? x[axis] : random.between(0, x[axis]);
    return {{}, x, axis, count, random_choices<Options>(random).descending};
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) { return {{"x", g.x}}; }
  static TensorInfo output(const Geometry& g) { return {"y", g.result_shape(g.x)}; }
  static Algebra algebra(const Geometry&) { return Algebra::piecewise_linear; }
  /// Elements are copied.
  static Index terms(const Geometry&) { return 0; }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& /*data*/) {
    return apply(g, in[0]);
  }
};

static_assert(Operator<Sort>);

}  // namespace fenestra
