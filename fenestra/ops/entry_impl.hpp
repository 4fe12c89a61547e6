// The body of `make_entry`: only the generated unit of each operator includes this. Not installed.
#pragma once

#include <fenestra/engine/tape.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/entry.hpp>
#include <fenestra/ops/random_inputs.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

namespace fenestra {

namespace detail {

template <Operator Op>
Description describe(std::string_view problem) {
  const auto g = Op::parse(problem);
  Description d{.problem = to_string(g),
                .inputs = Op::inputs(g),
                .data = {},
                .output = Op::output(g),
                .layout = {},
                .batched = {},
                .windows = {},
                .costs = {},
                .notes = {},
                .kernels = {}};
  if constexpr (requires { Op::layout(g); }) {
    d.layout = Op::layout(g);
    d.batched = Op::batched(g);
  }
  if constexpr (requires { Op::windows(g); }) {
    d.windows = Op::windows(g);
  }
  if constexpr (requires { Op::costs(g); }) {
    d.costs = Op::costs(g);
  }
  if constexpr (requires { Op::data(g); }) {
    d.data = Op::data(g);
  }
  if constexpr (requires { Op::notes(g); }) {
    d.notes = Op::notes(g);
  }
  if constexpr (requires { Op::kernels(g); }) {
    d.kernels = Op::kernels(g);
  }
  return d;
}

template <Operator Op>
std::vector<ProblemField> problem_options() {
  if constexpr (requires { typename Op::Options; }) {
    return problem_fields<typename Op::Options>();
  } else {
    return {};
  }
}

template <Operator Op>
std::span<const OwnField> own_fields() {
  if constexpr (requires { Op::own_fields; }) {
    return Op::own_fields;
  } else {
    return {};
  }
}

/// The least time of `f` in the runs that fit into a budget, of at least one.
template <class F>
double least_seconds(double budget, const F& f) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration t) { return std::chrono::duration<double>(t).count(); };
  const Clock::time_point begin = Clock::now();
  double least = std::numeric_limits<double>::infinity();
  do {
    const Clock::time_point start = Clock::now();
    f();
    least = std::min(least, seconds(Clock::now() - start));
  } while (seconds(Clock::now() - begin) < budget);
  return least;
}

/// Of the value, or of the cotangent of the one input that a direction is named after.
template <class Op, class T>
std::optional<double> time_of(const typename Op::Geometry& g,
                              const KernelChoice& choice,
                              double budget) {
  Random random(0);
  const auto lifted = [](const Tensor<double>& values) {
    return values.map([](double v) { return static_cast<T>(v); });
  };
  const Inputs<double> in =
      random_inputs<Op>(g, random, [&](const Shape& shape) { return random_reals(shape, random); });
  std::vector<Value<T>> values;
  for (const Tensor<double>& value : in.values) {
    values.emplace_back(lifted(value));
  }
  if (choice.direction == "forward") {
    const kernels::ForcedKernel forced(choice.name, kernels::IfRefused::run_if_able);
    return least_seconds(budget, [&] { Op::template call<Value<T>>(g, values, in.data); });
  }
  // Pools have names of their own for the gradient of their input.
  const bool of_weight = choice.direction == "weight_grad";
  const bool of_input = choice.direction == "input_grad" || choice.direction == "scatter" ||
                        choice.direction == "spread";
  const std::vector<TensorInfo> infos = Op::inputs(g);
  const Role role = of_weight ? Role::weight : Role::activation;
  const auto found = std::find_if(
      infos.begin(), infos.end(), [&](const TensorInfo& info) { return info.role == role; });
  if (found == infos.end() || !(of_weight || of_input)) {
    return std::nullopt;
  }
  const Tensor<T> y_bar = lifted(random_reals(Op::output(g).shape, random));
  Tape<T> tape;
  Value<T>& wanted = values[static_cast<std::size_t>(found - infos.begin())];
  wanted = tape.parameter(wanted.tensor());
  // Forward runs on what is chosen for it: a candidate may serve one direction only.
  const Value<T> y = Op::template call<Value<T>>(g, values, in.data);
  const kernels::ForcedKernel forced(choice.name, kernels::IfRefused::run_if_able);
  return least_seconds(budget, [&] { tape.backward(Seed<T>{y, y_bar}, {.retain = true}); });
}

template <Operator Op>
std::optional<double> time(std::string_view problem, const KernelChoice& choice, double budget) {
  if constexpr (requires(const typename Op::Geometry& g) { Op::kernels(g); }) {
    const auto g = Op::parse(problem);
    // The specification is not waited for on large problems.
    if (choice.name.ends_with("_spec") && work_of<Op>(g) > kMostSpecified) {
      return std::nullopt;
    }
    const bool is_narrow = choice.name.find("_f32_") != std::string::npos;
    return is_narrow ? time_of<Op, float>(g, choice, budget)
                     : time_of<Op, double>(g, choice, budget);
  } else {
    return std::nullopt;
  }
}

}  // namespace detail

template <Operator Op>
OperatorEntry make_entry() {
  return {.name = Op::name,
          .summary = Op::summary,
          .example = Op::example,
          .options = &detail::problem_options<Op>,
          .own_fields = detail::own_fields<Op>(),
          .describe = &detail::describe<Op>,
          .random_problem = [](Random& random) { return to_string(Op::random(random)); },
          .time = &detail::time<Op>};
}

}  // namespace fenestra
