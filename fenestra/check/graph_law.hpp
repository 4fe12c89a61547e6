// The law that a compiled graph computes what the eager engine does, bit for bit: value,
// cotangents, tangent, and the tangents of the cotangents (a graph differentiated twice).
//
// A program calls the same kernels in the same order, and pieces of a batch have the bits of the
// batch, so there is no tolerance.
#pragma once

#include <fenestra/engine/compile.hpp>
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/engine/program.hpp>
#include <fenestra/graph/batch_tiling.hpp>
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

inline std::vector<RunArgument> joined_arguments(
    std::initializer_list<const std::vector<Tensor<double>>*> lists) {
  std::vector<RunArgument> arguments;
  for (const auto* list : lists) {
    arguments.insert(arguments.end(), list->begin(), list->end());
  }
  return arguments;
}

/// What the eager engine gives for each form of a program, in the order of its results.
struct EagerResults {
  std::vector<Tensor<double>> run;
  std::vector<Tensor<double>> vjp;
  std::vector<Tensor<double>> jvp;
  std::vector<Tensor<double>> second;  ///< the tangents of vjp
};

/// From one tape inside forward mode, which has everything at once; its primal parts are those of
/// plain tensors.
template <class F>
EagerResults eager_results(const F& f,
                           const std::vector<Tensor<double>>& in,
                           const std::vector<Tensor<double>>& dots,
                           const Tensor<double>& y_bar) {
  using V = Value<double>;
  const Level level = new_level();
  const auto jet_of = [&](const V& value) { return value.on<V::Jet>(level); };
  Tape<double> tape;
  std::vector<V> variables;
  for (std::size_t i = 0; i < in.size(); ++i) {
    variables.push_back(tape.parameter(V(level, V::Jet(in[i], V(dots[i])))));
  }
  const V y = f(variables);
  const V::Jet y_jet = jet_of(tape.around(y));
  EagerResults results;
  results.run = {y_jet.primal()};
  results.jvp = {y_jet.primal(), y_jet.tangent_or_zeros()};
  results.vjp = results.run;
  std::vector<Tensor<double>> bar_dots;
  if (tape.owns(y)) {
    const auto grads = tape.backward(Seed<double>{y, y_bar});
    for (const V& variable : variables) {
      const V::Jet bar = jet_of(grads[variable]);
      results.vjp.push_back(bar.primal());
      bar_dots.push_back(bar.tangent_or_zeros());
    }
  } else {
    for (const Tensor<double>& x : in) {
      results.vjp.push_back(zeros_like(x));
      bar_dots.push_back(zeros_like(x));
    }
  }
  results.second = results.vjp;
  results.second.push_back(results.jvp[1]);
  results.second.insert(results.second.end(), bar_dots.begin(), bar_dots.end());
  return results;
}

/// Every form of the graph, compiled as `options` say, against what is needed.
inline std::string program_complaint(const graph::Graph& graph,
                                     CompileOptions options,
                                     const std::vector<Tensor<double>>& in,
                                     const std::vector<Tensor<double>>& dots,
                                     const std::vector<Tensor<double>>& y_bars,
                                     const EagerResults& needed) {
  const std::vector<graph::NodeId> wrt = graph::differentiable(graph);
  const std::size_t first[] = {0};
  const Program<double> second(
      graph::forward(graph::reverse(graph, first, wrt, graph::Seed::input), wrt), options);
  options.vjp = true;
  options.jvp = true;
  const Program<double> program(graph, options);
  Context<double> context(program);
  Context<double> second_context(second);

  std::string complaint = compare_bits(
      "value", program.execute_new(ProgramForm::run, context, joined_arguments({&in})), needed.run);
  if (complaint.empty()) {
    complaint =
        compare_bits("jvp",
                     program.execute_new(ProgramForm::jvp, context, joined_arguments({&in, &dots})),
                     needed.jvp);
  }
  if (complaint.empty()) {
    complaint = compare_bits(
        "vjp",
        program.execute_new(ProgramForm::vjp, context, joined_arguments({&in, &y_bars})),
        needed.vjp);
  }
  if (complaint.empty()) {
    complaint =
        compare_bits("second order",
                     second.execute_new(
                         ProgramForm::run, second_context, joined_arguments({&in, &y_bars, &dots})),
                     needed.second);
  }
  return complaint;
}

}  // namespace detail

/// f(values) of one value type, compiled and eager, at `in`, along `dots`, against `y_bar`;
/// compiled as programs are by default, and cut into the smallest pieces there are.
template <class F>
std::string graph_complaint(const F& f,
                            const std::vector<Tensor<double>>& in,
                            const std::vector<Tensor<double>>& dots,
                            const Tensor<double>& y_bar) {
  graph::Builder<double> builder;
  std::vector<graph::Value<double>> values;
  for (const Tensor<double>& value : in) {
    values.push_back(builder.input(value.shape(), "x" + std::to_string(values.size())));
  }
  builder.output(f(values), "y");
  const detail::EagerResults needed = detail::eager_results(f, in, dots, y_bar);
  std::string complaint = detail::program_complaint(builder.graph(), {}, in, dots, {y_bar}, needed);
  if (complaint.empty()) {
    const CompileOptions pieces{.threads = 2, .batch_tiling = graph::kSmallestPieces};
    complaint = detail::program_complaint(builder.graph(), pieces, in, dots, {y_bar}, needed);
    complaint = complaint.empty() ? complaint : "in pieces: " + complaint;
  }
  return complaint;
}

}  // namespace fenestra::check
