// compile: a callable on values, or a graph, becomes a program.
//
//   auto program = compile<float>(model, Shape{8, 3, 32, 32}, parameters, CompileOptions{.vjp =
//   true}); Context context(program); auto results = program.run(context, x, w, b);
//
// The callable is the same that runs on tensors and tapes. It is called once, with graph values of
// the shapes it is compiled for, and may return a value or a tree of values.
#pragma once

#include <fenestra/graph/differentiate.hpp>
#include <fenestra/graph/program.hpp>
#include <fenestra/graph/var.hpp>
#include <fenestra/ops/all.hpp>
#include <fenestra/ops/graph_values.hpp>
#include <fenestra/ops/loss/graph.hpp>
#include <fenestra/ops/max_pool/graph.hpp>
#include <fenestra/ops/max_unpool/graph.hpp>
#include <fenestra/ops/tree.hpp>
#include <fenestra/ops/typed.hpp>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fenestra {

/// The shape of integer data that a program is given: labels, indices. It receives no gradient.
struct DataShape {
  Shape shape;
};

/// The shape of values that a program is given and that receive no gradient: masks.
struct MaskShape {
  Shape shape;
};

namespace detail {

/// Turns what `compile` is given into what the callable is called with.
template <KernelScalar T>
class GraphArguments {
 public:
  std::tuple<graph::Value<T>> operator()(const Shape& shape) {
    return {builder_.input(shape, "x" + std::to_string(inputs_++))};
  }
  std::tuple<graph::Data> operator()(const DataShape& data) {
    return {builder_.data(data.shape, "data" + std::to_string(data_++))};
  }
  std::tuple<graph::Value<T>> operator()(const MaskShape& mask) {
    return {builder_.mask(mask.shape, "mask" + std::to_string(masks_++))};
  }
  template <Shape S>
  std::tuple<graph::Var<T, S>> operator()(TypedInput<S>) {
    return {graph::Var<T, S>(std::get<0>((*this)(S)))};
  }
  template <Shape S>
  std::tuple<graph::Var<T, S>> operator()(TypedParameter<S>) {
    return {graph::Var<T, S>(builder_.parameter(S, "w" + std::to_string(parameters_++)))};
  }
  template <Shape S>
  std::tuple<graph::DataVar<S>> operator()(TypedData<S>) {
    return {graph::DataVar<S>(std::get<0>((*this)(DataShape{S})))};
  }
  template <Shape S>
  std::tuple<graph::Var<T, S>> operator()(TypedMask<S>) {
    return {graph::Var<T, S>(std::get<0>((*this)(MaskShape{S})))};
  }
  std::tuple<> operator()(const CompileOptions& options) {
    options_ = options;
    return {};
  }
  /// Parameters, shaped like a tree of tensors.
  template <Tree Params>
  auto operator()(const Params& params) {
    return std::tuple(tree_map(
        [&](const Tensor<T>& like) {
          return builder_.parameter(like.shape(), "w" + std::to_string(parameters_++));
        },
        params));
  }
  graph::Builder<T>& builder() { return builder_; }
  const CompileOptions& options() const { return options_; }

 private:
  graph::Builder<T> builder_;
  CompileOptions options_;
  int inputs_ = 0;
  int data_ = 0;
  int masks_ = 0;
  int parameters_ = 0;
};

/// Calls f on handles and makes what it returns the outputs.
template <KernelScalar T, class F, class... Args>
void build_graph(GraphArguments<T>& arguments, const F& f, const Args&... args) {
  // Braces: the arguments are made in their order.
  const std::tuple<decltype(arguments(args))...> parts{arguments(args)...};
  const auto handles =
      std::apply([](const auto&... part) { return std::tuple_cat(part...); }, parts);
  const auto result = std::apply(f, handles);
  const std::vector<graph::Value<T>> outputs = tree_flatten(result);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    arguments.builder().output(outputs[i], outputs.size() == 1 ? "y" : "y" + std::to_string(i));
  }
}

}  // namespace detail

/// The graph of f. An argument is a Shape (an input), a DataShape, a MaskShape, or a tensor or tree
/// of tensors, whose shapes parameters take; or typed_input<S>, typed_parameter<S>, typed_data<S>,
/// typed_mask<S>, which f sees as typed variables.
template <KernelScalar T, class F, class... Args>
graph::Graph trace(const F& f, const Args&... args) {
  detail::GraphArguments<T> arguments;
  detail::build_graph(arguments, f, args...);
  return arguments.builder().graph();
}

/// The program of a graph.
template <KernelScalar T>
Program<T> compile(const graph::Graph& graph, const CompileOptions& options = {}) {
  return Program<T>(graph, options);
}

/// The program of f, arguments as for `trace`; a CompileOptions among them says what is compiled.
template <KernelScalar T, class F, class... Args>
  requires(!std::same_as<F, graph::Graph>)
Program<T> compile(const F& f, const Args&... args) {
  detail::GraphArguments<T> arguments;
  detail::build_graph(arguments, f, args...);
  return Program<T>(arguments.builder().graph(), arguments.options());
}

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

/// A training step: the value of f, a single element, and every parameter moved by
/// update(builder, rate, w, w_bar). A run is given what f is, then the rate (of rank 0), then what
/// the update keeps between steps; parameters are written in place.
template <KernelScalar T, class Update, class F, class... Args>
Program<T> compile_step(const Update& update, const F& f, const Args&... args) {
  detail::GraphArguments<T> arguments;
  detail::build_graph(arguments, f, args...);
  const graph::Graph& loss = arguments.builder().graph();
  std::vector<graph::NodeId> parameters;
  for (const graph::NodeId id : loss.given()) {
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
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const graph::Value<T> w = builder.value(parameters[i]);
    builder.update(w, update(builder, rate, w, builder.value(bars[i])));
  }
  return Program<T>(builder.graph(), arguments.options());
}

}  // namespace fenestra
