// What an operator's descriptor (`op.hpp` in its folder) offers to everything that treats operators
// alike: the law harness, the command line, the bindings. They ask this and never an operator's
// name.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/spec/window.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

template <class... Ts>
struct TypeList {
  static constexpr int size = sizeof...(Ts);
};

/// How a tensor of an operator follows the batch and the layout.
enum class Role {
  activation,  ///< batch, channels, space
  weight,      ///< (out, in, taps...) or (taps..., in, out)
  channels,    ///< one value per output channel
  scalar,      ///< rank 0
};

struct TensorInfo {
  std::string_view name;
  Shape shape;
  Role role = Role::activation;
};

/// What is known of an operator as a function of its differentiable inputs; decides which laws hold
/// exactly.
enum class Algebra {
  multilinear,       ///< linear in each input: a difference quotient of any step is exact
  piecewise_linear,  ///< linear away from ties
  rational,          ///< field operations only, so exact in rationals, but curved
  transcendental,    ///< leaves the rationals
};

/// The inputs of one call: differentiable tensors, and integer data that carries no gradient.
template <class T>
struct Inputs {
  std::vector<Tensor<T>> values;
  std::vector<Tensor<Index>> data;
};

/// One example with its answer, as the contract or a person computed it: what an operator may offer
/// as `answers()`, for what consistency alone cannot see.
struct KnownAnswer {
  std::string_view problem;
  std::vector<std::vector<double>> inputs;  ///< one list per differentiable input
  std::vector<double> y;
  std::vector<double> y_bar = {};              ///< empty where no gradient is stated
  std::vector<std::vector<double>> bars = {};  ///< one list per input; the first ones suffice
  std::vector<std::vector<Index>> data = {};
  double half_unit = 0;  ///< half a unit of the last digit printed; 0: the answer is exact
};

/// A field of problem strings that no options struct lists: what `explain OP --help` says of it.
struct OwnField {
  std::string_view name;
  std::string_view meaning;
  std::string_view otherwise = {};  ///< what holds where it is left out
  bool is_shape = false;            ///< of a tensor: printed before the options
};

struct Costs {
  Index parameters = 0;
  Index multiply_adds = 0;  ///< or comparisons, or exponentials: visits of a cell by a window
};

/// The contract of a descriptor. `g` is a validated geometry; the three templates are the
/// specification.
///
/// Optional, asked for with `requires`: Options (the struct whose fields a problem string has),
/// own_fields (those it has beside them that not every operator has), layout, batched, with_layout,
/// single_sample (operators on activations), groups and one_group, windows, costs, data with
/// data_limit and data_least (the values of integer inputs), positive (inputs with a one-sided
/// domain), scalar_value, jumps (where no difference quotient is a derivative), size_complaint,
/// answers, terms or error_bound (rounding), call<V> (the operator on any value type, where the
/// three templates are loops of their own), kernels (every candidate), transformed<T> (value,
/// tangent and cotangents as a candidate computes them that transforms its data first; its rounding
/// bound is that of this expression), random with Reach::networks (problems as large as those of
/// networks, for the laws on kernels), with_batch (the same sample another number of times),
/// cotangent_unit (factors that make every share of a cotangent exact) and listed<T> (what the
/// three templates give, sooner).
template <class Op>
concept Operator = requires(const typename Op::Geometry& g,
                            const Inputs<double>& inputs,
                            const Tensor<double>& y_bar,
                            Random& random) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::summary } -> std::convertible_to<std::string_view>;  ///< one line for people
  { Op::example } -> std::convertible_to<std::string_view>;  ///< a problem string
  { Op::parse(std::string_view{}) } -> std::same_as<typename Op::Geometry>;
  { to_string(g) } -> std::same_as<std::string>;
  { g == g } -> std::same_as<bool>;
  { Op::random(random) } -> std::same_as<typename Op::Geometry>;
  { Op::inputs(g) } -> std::same_as<std::vector<TensorInfo>>;  ///< the differentiable ones
  { Op::output(g) } -> std::same_as<TensorInfo>;
  { Op::algebra(g) } -> std::same_as<Algebra>;
  { Op::template forward<double>(g, inputs) } -> std::same_as<Tensor<double>>;
  { Op::template vjp<double>(g, inputs, y_bar) } -> std::same_as<std::vector<Tensor<double>>>;
  { Op::template jvp<double>(g, inputs, inputs.values) } -> std::same_as<Tensor<double>>;
};

}  // namespace fenestra
