// A model of layers as a program, for `fenestra explain model`.
#pragma once

#include <fenestra/cli/command.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/engine/program.hpp>
#include <fenestra/nn/losses.hpp>

#include <optional>
#include <vector>

namespace fenestra::cli {

template <class T>
struct NetworkProgram {
  Network<T> network;
  Program<T> program;
  Tensor<T> x;                          ///< drawn
  std::optional<Tensor<Index>> labels;  ///< of a training step on classes
  std::optional<Tensor<T>> values;      ///< of one on numbers
  std::vector<Tensor<T>> slots;         ///< parameters and buffers that a run is given
  std::vector<Tensor<T>> masks;

  /// What a run is given.
  std::vector<RunArgument> arguments() const;
};

/// The model of the options in their form. A training step is the trainer's: loss, scores, new
/// buffers and gradients; the optimiser moves the parameters outside of it.
template <class T>
NetworkProgram<T> compile_network(const ExplainModelOptions& options);

extern template struct NetworkProgram<float>;
extern template struct NetworkProgram<double>;
extern template NetworkProgram<float> compile_network(const ExplainModelOptions&);
extern template NetworkProgram<double> compile_network(const ExplainModelOptions&);

}  // namespace fenestra::cli
