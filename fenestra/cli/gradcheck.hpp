// The gradients of a whole network against difference quotients, in double.
#pragma once

#include <fenestra/cli/command.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/nn/losses.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fenestra::cli {

/// The derivative of the loss along one direction in one parameter.
struct GradientRow {
  std::string parameter;
  Shape shape;
  double analytic = 0;
  double numeric = 0;
  double allowed = 0;  ///< what truncation and rounding of the quotient explain
  bool agrees = false;
};

struct GradientCheck {
  std::vector<GradientRow> rows;  ///< the worst direction of each parameter
  Index directions = 0;
  Index numbers = 0;  ///< of all parameters
  Index samples = 0;
  double loss = 0;

  bool agrees() const;
  /// One line.
  std::string verdict() const;
};

/// Directions are drawn from the seed. In training mode: with the statistics of these samples and a
/// mask that stays the same. `progress(done, of)` is called for each parameter.
GradientCheck check_gradients(const nn::Layer<double>& model,
                              const Tensor<double>& x,
                              const nn::Target<double>& target,
                              const std::string& loss,
                              Index directions,
                              std::uint64_t seed,
                              const std::function<void(std::size_t, std::size_t)>& progress = {});

/// Samples of the data, or drawn ones where there is none, and the loss that fits; then as above.
GradientCheck check_network_gradients(
    const Network<double>& network,
    const nn::Dataset* data,
    Index samples,
    Index directions,
    std::uint64_t seed,
    const std::function<void(std::size_t, std::size_t)>& progress = {});

struct GradcheckOptions {
  std::string file;
  std::optional<std::string> input = {};
  std::optional<std::string> data = {};
  Index samples = 4;
  Index directions = 2;
  std::uint64_t seed = 1;
  bool json = false;
};
ExitCode gradcheck_command(const GradcheckOptions& options);

}  // namespace fenestra::cli
