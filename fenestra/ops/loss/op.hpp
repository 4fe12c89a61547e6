// The descriptor of the losses. See ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

enum class LossFunction { cross_entropy, mse, bce_with_logits };

struct LossGeometry {
  LossFunction f = LossFunction::cross_entropy;
  Shape x;
  LossOptions options;

  friend constexpr bool operator==(const LossGeometry&, const LossGeometry&) = default;
};

namespace detail {
inline constexpr std::string_view kLossNames[] = {"cross_entropy", "mse", "bce_with_logits"};
}  // namespace detail

inline std::string to_string(const LossGeometry& g) {
  return "f=" + std::string(detail::kLossNames[static_cast<int>(g.f)]) + " x=" + problem_text(g.x) +
         fields_text(g.options);
}

struct Loss : EngineOperator<Loss> {
  using Geometry = LossGeometry;
  using Options = LossOptions;
  static constexpr std::string_view name = "loss";
  static constexpr std::string_view summary =
      "cross entropy of logits, mean squared error, binary cross entropy with logits";
  static constexpr std::string_view example = "f=cross_entropy x=64x10 reduction=mean";

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    Geometry g;
    g.f = static_cast<LossFunction>(problem.choice("f", detail::kLossNames));
    g.x = problem.shape("x");
    g.options = problem.options<Options>();
    problem.finish(name);
    require_elements(name, "x", Argument::x, g.x);
    return g;
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "f=cross_entropy x=2x3",
             .inputs = {{1, 2, 3, 0, 0, 2}},
             .y = {1.323575365333},
             .y_bar = {1},
             .bars = {{0.045015286585,
                       0.122364235527,
                       -0.167379522113,
                       -0.44674651054,
                       0.05325348946,
                       0.393493021081}},
             .data = {{2, 0}},
             .half_unit = 5e-13},
            {.problem = "f=cross_entropy x=1x2x2 reduction=sum",
             .inputs = {{1, 2, 3, -1}},
             .y = {0.175515362617},
             .y_bar = {1},
             .bars = {{0.119202922022, -0.047425873178, -0.119202922022, 0.047425873178}},
             .data = {{1, 0}},
             .half_unit = 5e-13},
            {.problem = "f=mse x=2",
             .inputs = {{1, 3}, {2, -1}},
             .y = {8.5},
             .y_bar = {1},
             .bars = {{-1, 4}, {1, -4}}},
            {.problem = "f=bce_with_logits x=2",
             .inputs = {{0.5, -2}, {1, 0.25}},
             .y = {0.550502497612},
             .y_bar = {1},
             .bars = {{-0.188770334399, -0.065398538989}, {-0.25, 1}},
             .half_unit = 5e-13}};
  }
  static Geometry random(Random& random) {
    Geometry g;
    g.f = static_cast<LossFunction>(random.between(0, 2));
    g.options = random_choices<Options>(random);
    const bool may_be_empty =
        g.f != LossFunction::cross_entropy && g.options.reduction != Reduction::mean;
    g.x = random_shape(random, g.f == LossFunction::cross_entropy ? 1 : 0, 4, may_be_empty ? 0 : 1);
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    if (g.f == LossFunction::cross_entropy) {
      return {{"x", g.x}};
    }
    return {{"x", g.x}, {"target", g.x}};
  }
  static std::vector<TensorInfo> data(const Geometry& g) {
    if (g.f == LossFunction::cross_entropy) {
      return {{"labels", detail::without_classes(g.x)}};
    }
    return {};
  }
  static Index data_limit(const Geometry& g) { return g.x[detail::class_axis(g.x)]; }
  static Index data_least(const Geometry&) { return 0; }
  static TensorInfo output(const Geometry& g) {
    if (g.options.reduction != Reduction::none) {
      return {"y", Shape{}};
    }
    return {"y", g.f == LossFunction::cross_entropy ? detail::without_classes(g.x) : g.x};
  }
  static Algebra algebra(const Geometry& g) {
    return g.f == LossFunction::mse ? Algebra::rational : Algebra::transcendental;
  }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& labels) {
    switch (g.f) {
      case LossFunction::cross_entropy: return cross_entropy(in[0], labels[0], g.options);
      case LossFunction::mse: return mse_loss(in[0], in[1], g.options);
      case LossFunction::bce_with_logits: break;
    }
    return bce_with_logits(in[0], in[1], g.options);
  }
};

static_assert(Operator<Loss>);

}  // namespace fenestra
