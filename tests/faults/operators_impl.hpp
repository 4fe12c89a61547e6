// The body of `make_calls`: only the generated unit of each operator includes it.
#pragma once

#include <fenestra/engine/compile.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/random_inputs.hpp>
#include <fenestra/spec/random.hpp>
#include <tests/faults/operators.hpp>

#include <set>
#include <utility>

namespace fenestra::faults {

/// Numbers that the operator takes, the same on every call.
template <Operator Op>
Inputs<float> inputs_of(const typename Op::Geometry& g) {
  Random random(1);
  Inputs<double> drawn =
      random_inputs<Op>(g, random, [&](const Shape& shape) { return random_reals(shape, random); });
  Inputs<float> in{{}, std::move(drawn.data)};
  for (const Tensor<double>& value : drawn.values) {
    in.values.push_back(value.map([](double v) { return static_cast<float>(v); }));
  }
  return in;
}

/// Candidates for float that accept the problem in some direction; the first name is none.
template <Operator Op>
std::set<std::string> candidates_of(const typename Op::Geometry& g) {
  std::set<std::string> names{""};
  if constexpr (requires { Op::kernels(g); }) {
    for (const KernelChoice& choice : Op::kernels(g)) {
      if (choice.refusal.empty() && choice.name.find("_f64_") == std::string::npos) {
        names.insert(choice.name);
      }
    }
  }
  return names;
}

template <Operator Op>
std::vector<NamedCall> calls_of(std::string_view problem) {
  const auto g = Op::parse(problem);
  const Inputs<float> in = inputs_of<Op>(g);
  const Tensor<float> y_bar(Op::output(g).shape, 0.5f);
  std::vector<NamedCall> calls;
  for (const std::string& candidate : candidates_of<Op>(g)) {
    const std::string words = std::string(problem) + (candidate.empty() ? "" : ", " + candidate);
    const auto add = [&](const std::string& what, Call call) {
      calls.emplace_back(what + " of " + words, [candidate, call] {
        const kernels::ForcedKernel forced(candidate, kernels::IfRefused::choose_freely);
        return call();
      });
    };
    add("value", [=] { return Tensors{Engine<Op>::template forward<float>(g, in)}; });
    add("cotangents", [=] { return Engine<Op>::template vjp<float>(g, in, y_bar); });
    add("tangent", [=] { return Tensors{Engine<Op>::template jvp<float>(g, in, in.values)}; });
  }
  calls.emplace_back("program of " + std::string(problem), [=] {
    graph::Builder<float> builder;
    std::vector<graph::Value<float>> values;
    std::vector<RunArgument> arguments;
    for (const Tensor<float>& value : in.values) {
      values.push_back(builder.input(value.shape(), "x"));
      arguments.emplace_back(value);
    }
    builder.output(Op::template call<graph::Value<float>>(g, values, in.data), "y");
    const Program<float> program(builder.graph(),
                                 {.vjp = true, .batch_tiling = graph::kSmallestPieces});
    Context<float> context(program);
    arguments.emplace_back(y_bar);
    return program.execute_new(ProgramForm::vjp, context, arguments);
  });
  return calls;
}

template <Operator Op>
OperatorCalls make_calls() {
  return {Op::name, Op::example, &calls_of<Op>};
}

}  // namespace fenestra::faults
