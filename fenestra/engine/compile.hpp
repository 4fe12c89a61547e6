// compile: a callable on values, or a graph, becomes a program.
//
//   const CompileOptions options{.vjp = true};
//   auto program = compile<float>(model, Shape{8, 3, 32, 32}, parameters, options);
//   Context context(program);
//   auto results = program.run(context, x, w, b);
//
// The callable is the same that runs on tensors and tapes. It is called once, with values of the
// shapes it is compiled for, which are nodes of a graph on a level of their own, and may return a
// value or a tree of values.
#pragma once

#include <fenestra/engine/program.hpp>
#include <fenestra/engine/tree.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/graph/var.hpp>

#include <string>
#include <tuple>
#include <type_traits>
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

template <class A>
inline constexpr bool kIsTypedArgument = false;
template <Shape S>
inline constexpr bool kIsTypedArgument<TypedInput<S>> = true;
template <Shape S>
inline constexpr bool kIsTypedArgument<TypedParameter<S>> = true;
template <Shape S>
inline constexpr bool kIsTypedArgument<TypedData<S>> = true;
template <Shape S>
inline constexpr bool kIsTypedArgument<TypedMask<S>> = true;

/// Anything else that `compile` is given is a tree of parameters.
template <class A>
inline constexpr bool kIsShape = kIsTypedArgument<A>;
template <>
inline constexpr bool kIsShape<Shape> = true;
template <>
inline constexpr bool kIsShape<DataShape> = true;
template <>
inline constexpr bool kIsShape<MaskShape> = true;
template <>
inline constexpr bool kIsShape<CompileOptions> = true;

/// Turns what `compile` is given into what the callable is called with: values on a level of their
/// own; or, beside typed variables, handles of the graph, as typed variables are.
template <KernelScalar T, bool typed>
class GraphArguments {
 public:
  auto operator()(const Shape& shape) {
    return std::tuple(seen(builder_.input(shape, "x" + std::to_string(inputs_++))));
  }
  auto operator()(const DataShape& data) {
    return std::tuple(seen(builder_.data(data.shape, "data" + std::to_string(data_++))));
  }
  auto operator()(const MaskShape& mask) {
    return std::tuple(seen(builder_.mask(mask.shape, "mask" + std::to_string(masks_++))));
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
        [&](const auto& like) {
          return seen(builder_.parameter(like.shape(), "w" + std::to_string(parameters_++)));
        },
        params));
  }
  /// What the callable returned becomes the outputs.
  template <Tree Result>
  void finish(const Result& result) {
    std::vector<graph::Value<T>> outputs;
    for_each_tensor(result, [&](const auto& value) { outputs.push_back(handle(value)); });
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      builder_.output(outputs[i], outputs.size() == 1 ? "y" : "y" + std::to_string(i));
    }
  }
  graph::Builder<T>& builder() { return builder_; }
  const CompileOptions& options() const { return options_; }

 private:
  auto seen(graph::Value<T> handle) const {
    if constexpr (typed) {
      return handle;
    } else {
      return Value<T>(level_, std::move(handle));
    }
  }
  auto seen(graph::Data handle) const {
    if constexpr (typed) {
      return handle;
    } else {
      return Indices(level_, std::move(handle));
    }
  }
  static const graph::Value<T>& handle(const graph::Value<T>& value) { return value; }
  graph::Value<T> handle(const Value<T>& value) const {
    if (value.level() == 0) {
      return value.plain();
    }
    const auto* traced = value.template as<graph::Value<T>>();
    if (traced == nullptr || value.level() != level_) {
      throw Error(ErrorCode::foreign_variable,
                  "compile: the function returned " + to_string(value.shape()) +
                      ", a value of a transform around it\n  fix: give the value to the function "
                      "as an argument, or .tensor() of it");
    }
    return *traced;
  }

  graph::Builder<T> builder_;
  Level level_ = builder_.graph().level();
  CompileOptions options_;
  int inputs_ = 0;
  int data_ = 0;
  int masks_ = 0;
  int parameters_ = 0;
};

template <KernelScalar T, class... Args>
using GraphArgumentsFor = GraphArguments<T, (kIsTypedArgument<Args> || ...)>;

/// Calls f on values and makes what it returns the outputs.
template <class Arguments, class F, class... Args>
void build_graph(Arguments& arguments, const F& f, const Args&... args) {
  static_assert(
      (std::conditional_t<kIsShape<Args>, std::true_type, RequireTree<Args>>::value && ...));
  // Braces: the arguments are made in their order.
  const std::tuple<decltype(arguments(args))...> parts{arguments(args)...};
  const auto values =
      std::apply([](const auto&... part) { return std::tuple_cat(part...); }, parts);
  arguments.finish(std::apply(f, values));
}

}  // namespace detail

/// The graph of f. An argument is a Shape (an input), a DataShape, a MaskShape, or a tensor or tree
/// of tensors, whose shapes parameters take; or typed_input<S>, typed_parameter<S>, typed_data<S>,
/// typed_mask<S>, which f sees as typed variables.
template <KernelScalar T, class F, class... Args>
graph::Graph trace(const F& f, const Args&... args) {
  detail::GraphArgumentsFor<T, Args...> arguments;
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
  detail::GraphArgumentsFor<T, Args...> arguments;
  detail::build_graph(arguments, f, args...);
  return Program<T>(arguments.builder().graph(), arguments.options());
}

}  // namespace fenestra
