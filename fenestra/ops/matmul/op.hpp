// The descriptor of matrix products and linear layers (folder name in PascalCase: Matmul). See
// ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/matmul/matmul.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

/// `linear`: a is x, b is w and `bias` may hold the bias.
struct MatmulProblem {
  bool linear = false;
  bool bias = false;
  MatMulOptions options;
  Shape a;
  Shape b;

  friend constexpr bool operator==(const MatmulProblem&, const MatmulProblem&) = default;
};

inline std::string to_string(const MatmulProblem& g) {
  if (g.linear) {
    return "x=" + problem_text(g.a) + " w=" + problem_text(g.b) + (g.bias ? " bias=true" : "");
  }
  return "a=" + problem_text(g.a) + " b=" + problem_text(g.b) + fields_text(g.options);
}

struct Matmul : EngineOperator<Matmul> {
  using Geometry = MatmulProblem;
  using Options = MatMulOptions;
  static constexpr std::string_view name = "matmul";
  static constexpr std::string_view summary =
      "matrix products with broadcast stacks (a, b), and linear layers (x, w)";
  static constexpr std::string_view example = "x=64x128 w=10x128 bias=true";

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    Geometry g;
    g.linear = problem.has("w");
    if (g.linear) {
      g.a = problem.shape("x");
      g.b = problem.shape("w");
      g.bias = problem.flag("bias", false);
    } else {
      g.a = problem.shape("a");
      g.b = problem.shape("b");
      g.options = problem.options<Options>();
    }
    problem.finish(name);
    output(g);
    return g;
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "a=2x3 b=3x2",
             .inputs = {{1, 2, 3, 4, 5, 6}, {1, 0, 0, 1, 1, 1}},
             .y = {4, 5, 10, 11},
             .y_bar = {1, 0, 0, 1},
             .bars = {{1, 0, 1, 0, 1, 1}, {1, 4, 2, 5, 3, 6}}},
            {.problem = "a=3 b=3",
             .inputs = {{1, 2, 3}, {4, 5, 6}},
             .y = {32},
             .y_bar = {2},
             .bars = {{8, 10, 12}, {2, 4, 6}}},
            {.problem = "a=2x2x1 b=1x2 transpose_a=true transpose_b=true",
             .inputs = {{1, 2, 3, 4}, {5, 6}},
             .y = {17, 39}},
            {.problem = "x=1x2 w=3x2 bias=true",
             .inputs = {{1, 2}, {1, 0, 0, 1, 1, 1}, {10, 20, 30}},
             .y = {11, 22, 33},
             .y_bar = {1, 1, 2},
             .bars = {{3, 3}, {1, 2, 1, 2, 2, 4}, {1, 1, 2}}}};
  }
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    Geometry g;
    const auto extent = [&](Index largest) {
      return reach == Reach::networks ? random_count(random, 300) : random.between(1, largest);
    };
    const Index depth = random.chance(12) ? 0 : extent(5);
    g.linear = random.chance(3);
    if (g.linear) {
      g.a = random_shape(random, 0, 2);
      if (reach == Reach::networks) {
        g.a.push_back(extent(4));
      }
      g.a.push_back(depth);
      g.b = Shape{extent(4), depth};
      g.bias = random.chance(2);
      return g;
    }
    const Shape batch = random_shape(random, 0, 2);
    g.a = random.chance(2) ? batch : random_broadcastable(random, batch);
    g.b = random.chance(2) ? batch : random_broadcastable(random, batch);
    g.options = random_choices<Options>(random);
    const Index rows = extent(4), columns = extent(4);
    g.a.push_back(g.options.transpose_a ? depth : rows);
    g.a.push_back(g.options.transpose_a ? rows : depth);
    g.b.push_back(g.options.transpose_b ? columns : depth);
    g.b.push_back(g.options.transpose_b ? depth : columns);
    if (random.chance(5)) {
      g.a = Shape{depth};
      g.options.transpose_a = false;
    }
    if (random.chance(5)) {
      g.b = Shape{depth};
      g.options.transpose_b = false;
    }
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    if (!g.linear) {
      return {{"a", g.a}, {"b", g.b}};
    }
    std::vector<TensorInfo> list{{"x", g.a}, {"w", g.b}};
    if (g.bias) {
      list.push_back({"b", Shape{g.b[0]}});
    }
    return list;
  }
  static TensorInfo output(const Geometry& g) {
    if (g.linear) {
      detail::require_linear(g.a, g.b, nullptr);
      return {"y", detail::linear_shape(g.a, g.b)};
    }
    return {"y", resolve_matmul(g.a, g.b, g.options).y};
  }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  /// Products summed into one output, the bias as one more addition.
  static Index terms(const Geometry& g) { return depth(g) + (g.bias ? 1 : 0); }
  static Costs costs(const Geometry& g) {
    const Index parameters = g.linear ? g.b[0] * g.b[1] + (g.bias ? g.b[0] : 0) : 0;
    return {parameters, output(g).shape.elements().value_or(0) * depth(g)};
  }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& /*data*/) {
    if (!g.linear) {
      return matmul(in[0], in[1], g.options);
    }
    return g.bias ? linear(in[0], in[1], in[2]) : linear(in[0], in[1]);
  }

 private:
  static Index depth(const Geometry& g) {
    return g.options.transpose_a ? g.a[g.a.rank() - 2] : g.a[g.a.rank() - 1];
  }
};

static_assert(Operator<Matmul>);

}  // namespace fenestra
