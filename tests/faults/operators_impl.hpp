// The body of `make_calls`: only the generated unit of each operator includes it.
#pragma once

#include <fenestra/engine/compile.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/spec/random.hpp>
#include <tests/faults/operators.hpp>

#include <cmath>
#include <set>

namespace fenestra::faults {

/// Numbers that the operator takes, the same on every call.
template <Operator Op>
Inputs<float> inputs_of(const typename Op::Geometry& g) {
  Random random(1);
  Inputs<float> in;
  for (const TensorInfo& info : Op::inputs(g)) {
    if constexpr (requires { Op::scalar_value(g); }) {
      if (info.role == Role::scalar) {
        in.values.emplace_back(Shape{}, static_cast<float>(Op::scalar_value(g)));
        continue;
      }
    }
    Tensor<float> value(info.shape);
    for (float& v : value.mutable_values()) {
      v = static_cast<float>(2 * random.between(-1024, 1023) + 1) * 0x1p-10f;
    }
    if constexpr (requires { Op::positive(g, std::size_t{}); }) {
      if (Op::positive(g, in.values.size())) {
        value = value.map([](float v) { return std::fabs(v); });
      }
    }
    in.values.push_back(std::move(value));
  }
  if constexpr (requires { Op::data(g); }) {
    Index least = -1;
    if constexpr (requires { Op::data_least(g); }) {
      least = Op::data_least(g);
    }
    for (const TensorInfo& info : Op::data(g)) {
      Tensor<Index> data(info.shape);
      for (Index& value : data.mutable_values()) {
        value = random.between(least, Op::data_limit(g) - 1);
      }
      in.data.push_back(std::move(data));
    }
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
