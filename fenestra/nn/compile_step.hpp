// A training step as a program: the value of a loss, its gradients, and every parameter moved by an
// optimiser, compiled together.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/engine/compile.hpp>
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/engine/program.hpp>
#include <fenestra/ops/elementwise/call.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace fenestra {

/// Stochastic gradient descent as part of a program: w - rate * v, v = momentum * v + w_bar +
/// weight_decay * w. With momentum, each parameter has a velocity, a further parameter that starts
/// as zeros.
struct SgdUpdate {
  double momentum = 0;
  double weight_decay = 0;

  template <class T>
  graph::Value<T> operator()(graph::Builder<T>& builder,
                             const graph::Value<T>& rate,
                             const graph::Value<T>& w,
                             const graph::Value<T>& w_bar) const {
    graph::Value<T> v = weight_decay != 0 ? add(w_bar, scale(w, weight_decay)) : w_bar;
    if (momentum != 0) {
      const graph::Value<T> velocity =
          builder.parameter(w.shape(), builder.graph().node(w.node()).name + "_velocity");
      v = add(scale(velocity, momentum), v);
      builder.update(velocity, v);
    }
    return sub(w, mul(rate, v));
  }
};

template <class T>
struct AdamStep;

/// Adam as part of a program: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w - rate
/// * m/(sqrt(v) + epsilon) with both corrected for their start at zero; see nn::Adam. Kept between
/// steps, as further parameters that start as zeros: the two corrections, of rank 0, then m and v
/// of each parameter. The correction 1 - beta^steps is the moment of a gradient that is always 1,
/// and is computed like one: a sum of positive terms, where the difference would cancel in f32.
struct AdamUpdate {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< adds weight_decay * w to the gradient
  bool decoupled = false;   ///< shrinks w by rate * weight_decay instead

  template <class T>
  AdamStep<T> start(graph::Builder<T>& builder, const graph::Value<T>& rate) const {
    using V = graph::Value<T>;
    require("beta1", beta1, beta1 >= 0 && beta1 < 1, "0 <= beta1 < 1");
    require("beta2", beta2, beta2 >= 0 && beta2 < 1, "0 <= beta2 < 1");
    require("epsilon", epsilon, std::isfinite(epsilon) && epsilon > 0, "epsilon > 0");
    require("weight_decay",
            weight_decay,
            std::isfinite(weight_decay) && weight_decay >= 0,
            "weight_decay >= 0");
    const V one = scalar_constant<V>(T(1));
    const auto correction = [&](const char* name, double beta) {
      const V before = builder.parameter(Shape{}, name);
      const V now = add(scale(before, beta), scale(one, 1 - beta));
      builder.update(before, now);
      return now;
    };
    const V mean = correction("mean_correction", beta1);
    const V square = correction("square_correction", beta2);
    return {*this,
            div(rate, mean),
            div(one, sqrt(square)),
            sub(one, scale(rate, decoupled ? weight_decay : 0))};
  }

 private:
  static void require(const char* option, double value, bool fits, const char* needed) {
    if (!fits) {
      throw Error(
          ErrorCode::invalid_option,
          std::string("adam: ") + option + " = " + std::to_string(value) + "\n  fix: " + needed);
    }
  }
};

/// Adam with what all parameters share.
template <class T>
struct AdamStep {
  AdamUpdate options;
  graph::Value<T> size;  ///< the rate over the correction of m
  graph::Value<T> root;  ///< 1 over the root of the correction of v
  graph::Value<T> kept;  ///< of a weight

  graph::Value<T> operator()(graph::Builder<T>& builder,
                             const graph::Value<T>&,
                             const graph::Value<T>& w,
                             const graph::Value<T>& w_bar) const {
    using V = graph::Value<T>;
    const std::string name = builder.graph().node(w.node()).name;
    const auto moment = [&](const char* suffix, double beta, const V& of) {
      const V before = builder.parameter(w.shape(), name + suffix);
      const V now = add(scale(before, beta), scale(of, 1 - beta));
      builder.update(before, now);
      return now;
    };
    const bool decays = options.weight_decay != 0;
    const V g = decays && !options.decoupled ? add(w_bar, scale(w, options.weight_decay)) : w_bar;
    const V mean = moment("_mean", options.beta1, g);
    const V square = moment("_square", options.beta2, mul(g, g));
    const V spread =
        add(mul(sqrt(square), root), scalar_constant<V>(static_cast<T>(options.epsilon)));
    return sub(decays && options.decoupled ? mul(kept, w) : w, div(mul(size, mean), spread));
  }
};

/// A training step: the value of f, a single element, and every parameter moved by
/// update(builder, rate, w, w_bar), or by what update.start(builder, rate) returns. A run is given
/// what f is, then the rate (of rank 0), then what the update keeps between steps; parameters are
/// written in place.
template <KernelScalar T, class Update, class F, class... Args>
Program<T> compile_step(const Update& update, const F& f, const Args&... args) {
  detail::GraphArgumentsFor<T, Args...> arguments;
  detail::build_graph(arguments, f, args...);
  const graph::Graph& loss = arguments.builder().graph();
  std::vector<graph::NodeId> parameters;
  for (const graph::NodeId id : loss.arguments()) {
    if (loss.node(id).kind == graph::NodeKind::parameter) {
      parameters.push_back(id);
    }
  }
  const std::size_t first[] = {0};
  graph::Graph with_gradients = graph::reverse(loss, first, parameters, graph::Seed::one);
  std::vector<graph::NodeId> bars;
  for (std::size_t i = loss.outputs().size(); i < with_gradients.outputs().size(); ++i) {
    bars.push_back(with_gradients.outputs()[i].node);
  }
  with_gradients.clear_outputs();
  for (const graph::Output& output : loss.outputs()) {
    with_gradients.add_output(output.node, output.name);
  }
  graph::Builder<T> builder(std::move(with_gradients));
  const graph::Value<T> rate = builder.input(Shape{}, "rate");
  const auto step = [&] {
    if constexpr (requires { update.start(builder, rate); }) {
      return update.start(builder, rate);
    } else {
      return update;
    }
  }();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const graph::Value<T> w = builder.value(parameters[i]);
    builder.update(w, step(builder, rate, w, builder.value(bars[i])));
  }
  return Program<T>(builder.graph(), arguments.options());
}

}  // namespace fenestra
