// The law that a compiled graph computes what the eager engine does, bit for bit: value,
// cotangents, tangent, and the tangents of the cotangents (a graph differentiated twice).
//
// Without fusion a program calls the same kernels in the same order, so there is no tolerance.
#pragma once

#include <fenestra/graph/differentiate.hpp>
#include <fenestra/graph/program.hpp>
#include <fenestra/ops/compile.hpp>
#include <fenestra/ops/engine_operator.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace fenestra::check {

namespace detail {

/// Empty where every bit agrees.
inline std::string compare_bits(const Tensor<double>& got, const Tensor<double>& needed) {
  if (got.shape() != needed.shape()) {
    return "shape " + to_string(got.shape()) + ", needed " + to_string(needed.shape());
  }
  for (Index i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &needed[i], sizeof(double)) != 0) {
      return "element " + std::to_string(i) + ": " + std::to_string(got[i]) + ", needed " +
             std::to_string(needed[i]);
    }
  }
  return {};
}

inline std::string compare_bits(const std::string& what,
                                std::span<const Tensor<double>> got,
                                std::span<const Tensor<double>> needed) {
  if (got.size() != needed.size()) {
    return what + ": " + std::to_string(got.size()) + " results, needed " +
           std::to_string(needed.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (const std::string complaint = compare_bits(got[i], needed[i]); !complaint.empty()) {
      return what + " " + std::to_string(i) + " " + complaint;
    }
  }
  return {};
}

inline std::vector<Given> given_of(
    std::initializer_list<const std::vector<Tensor<double>>*> lists) {
  std::vector<Given> given;
  for (const auto* list : lists) {
    given.insert(given.end(), list->begin(), list->end());
  }
  return given;
}

}  // namespace detail

/// f(values) of one value type, compiled and eager, at `in`, along `dots`, against `y_bar`.
template <class F>
std::string graph_complaint(const F& f,
                            const std::vector<Tensor<double>>& in,
                            const std::vector<Tensor<double>>& dots,
                            const Tensor<double>& y_bar) {
  using T = Tensor<double>;
  using detail::compare_bits;
  using detail::given_of;
  graph::Builder<double> builder;
  std::vector<graph::Value<double>> values;
  for (const T& value : in) {
    values.push_back(builder.input(value.shape(), "x" + std::to_string(values.size())));
  }
  builder.output(f(values), "y");
  const std::vector<T> y_bars{y_bar};

  const Program<double> program(builder.graph(), {.vjp = true, .jvp = true});
  Context<double> context(program);

  // Eager: one tape over jets has everything at once; its primal parts are those of plain tensors.
  BasicTape<Jet<T>> tape;
  std::vector<Var<Jet<T>>> variables;
  for (std::size_t i = 0; i < in.size(); ++i) {
    variables.push_back(tape.parameter(Jet<T>(in[i], dots[i])));
  }
  const Var<Jet<T>> y = f(variables);
  std::vector<T> value{y.value().primal()};
  std::vector<T> tangent{y.value().tangent_or_zeros()};
  std::vector<T> bars;
  std::vector<T> bar_dots;
  if (y.requires_grad()) {
    const auto grads = tape.backward(Seed<Jet<T>>{y, Jet<T>(y_bar)});
    for (const auto& variable : variables) {
      const Jet<T> bar = grads[variable];
      bars.push_back(bar.primal());
      bar_dots.push_back(bar.tangent_or_zeros());
    }
  } else {
    for (const T& x : in) {
      bars.push_back(zeros_like(x));
      bar_dots.push_back(zeros_like(x));
    }
  }

  std::string complaint =
      compare_bits("value", program.execute_new(ProgramForm::run, context, given_of({&in})), value);
  if (!complaint.empty()) {
    return complaint;
  }
  std::vector<T> needed = value;
  needed.insert(needed.end(), tangent.begin(), tangent.end());
  complaint = compare_bits(
      "jvp", program.execute_new(ProgramForm::jvp, context, given_of({&in, &dots})), needed);
  if (!complaint.empty()) {
    return complaint;
  }
  needed = value;
  needed.insert(needed.end(), bars.begin(), bars.end());
  complaint = compare_bits(
      "vjp", program.execute_new(ProgramForm::vjp, context, given_of({&in, &y_bars})), needed);
  if (!complaint.empty()) {
    return complaint;
  }

  const std::vector<graph::NodeId> wrt = graph::differentiable(builder.graph());
  const std::size_t first[] = {0};
  const Program<double> second(
      graph::forward(graph::reverse(builder.graph(), first, wrt, graph::Seed::input), wrt));
  Context<double> second_context(second);
  needed.insert(needed.end(), tangent.begin(), tangent.end());
  needed.insert(needed.end(), bar_dots.begin(), bar_dots.end());
  return compare_bits(
      "second order",
      second.execute_new(ProgramForm::run, second_context, given_of({&in, &y_bars, &dots})),
      needed);
}

}  // namespace fenestra::check
