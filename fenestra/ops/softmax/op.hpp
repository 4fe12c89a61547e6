// The descriptor of softmax, log-softmax and log-sum-exp. See ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/ops/softmax/softmax.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

struct SoftmaxGeometry {
  SoftmaxFunction f = SoftmaxFunction::softmax;
  Shape x;
  LogSumExpOptions options;  ///< the others keep their axis

  friend constexpr bool operator==(const SoftmaxGeometry&, const SoftmaxGeometry&) = default;
};

namespace detail {
inline constexpr std::string_view kSoftmaxNames[] = {"softmax", "log_softmax", "logsumexp"};
}

inline std::string to_string(const SoftmaxGeometry& g) {
  return "f=" + std::string(detail::kSoftmaxNames[static_cast<int>(g.f)]) +
         " x=" + problem_text(g.x) + fields_text(g.options);
}

struct Softmax : EngineOperator<Softmax> {
  using Geometry = SoftmaxGeometry;
  using Options = LogSumExpOptions;
  static constexpr std::string_view name = "softmax";
  static constexpr std::string_view summary = "softmax, log-softmax or log-sum-exp along an axis";
  static constexpr std::string_view example = "f=log_softmax x=64x10 axis=1";

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    Geometry g;
    g.f = static_cast<SoftmaxFunction>(problem.choice("f", detail::kSoftmaxNames));
    g.x = problem.shape("x");
    g.options = problem.options<Options>();
    problem.finish(name);
    resolved_axis(name, g.x, g.options.axis);
    return g;
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "f=softmax x=3",
             .inputs = {{1, 2, 3}},
             .y = {0.09003057317, 0.244728471055, 0.665240955775},
             .y_bar = {1, 0, 0},
             .bars = {{0.081925069065, -0.02203304452, -0.059892024545}},
             .half_unit = 5e-13},
            {.problem = "f=log_softmax x=3",
             .inputs = {{1, 2, 3}},
             .y = {-2.407605964444, -1.407605964444, -0.407605964444},
             .y_bar = {1, 0, 0},
             .bars = {{0.90996942683, -0.244728471055, -0.665240955775}},
             .half_unit = 5e-13},
            {.problem = "f=logsumexp x=4",
             .inputs = {{1, 2, 3, 4}},
             .y = {4.440189698561},
             .y_bar = {1},
             .bars = {{0.03205860328, 0.087144318742, 0.23688281809, 0.643914259888}},
             .half_unit = 5e-13}};
  }
  static Geometry random(Random& random) {
    Geometry g;
    g.f = static_cast<SoftmaxFunction>(random.between(0, 2));
    g.x = random_shape(random, 1, 4, g.f == SoftmaxFunction::logsumexp ? 1 : 0);
    g.options = random_choices<Options>(random);
    g.options.axis = static_cast<int>(random.between(-g.x.rank(), g.x.rank() - 1));
    g.options.keep = g.options.keep && g.f == SoftmaxFunction::logsumexp;
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) { return {{"x", g.x}}; }
  static TensorInfo output(const Geometry& g) {
    if (g.f != SoftmaxFunction::logsumexp) {
      return {"y", g.x};
    }
    Shape y;
    for (int axis = 0; axis < g.x.rank(); ++axis) {
      if (axis != resolved_axis(name, g.x, g.options.axis)) {
        y.push_back(g.x[axis]);
      } else if (g.options.keep) {
        y.push_back(1);
      }
    }
    return {"y", y};
  }
  static Algebra algebra(const Geometry&) { return Algebra::transcendental; }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& /*data*/) {
    const int axis = g.options.axis;
    switch (g.f) {
      case SoftmaxFunction::log_softmax: return log_softmax(in[0], axis);
      case SoftmaxFunction::logsumexp: return logsumexp(in[0], axis, g.options.keep);
      default: return softmax(in[0], axis);
    }
  }
};

static_assert(Operator<Softmax>);

}  // namespace fenestra
