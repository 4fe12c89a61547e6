// StepProfile: where the time and the memory of a training step go, by the layers of the model.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/tensor/shape.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::graph {
struct Report;  // graph/report.hpp
}

namespace fenestra::nn {

/// Seconds of a layer in one step.
struct PartTime {
  std::string name;  ///< as in the summary; "loss"; its kind where a layer has no name
  double forward = 0;
  double backward = 0;
};

/// Bytes. What an eager step takes of the tape is not counted.
struct StepMemory {
  std::size_t parameters = 0;
  std::size_t buffers = 0;
  std::size_t gradients = 0;
  std::size_t optimiser = 0;  ///< what it remembers
  std::size_t average = 0;    ///< of weights
  std::size_t batch = 0;
  /// What the forward pass leaves for the backward pass.
  std::optional<std::size_t> activations = {};
  /// What a program runs in, these activations among it.
  std::optional<std::size_t> arena = {};
};

struct StepProfile {
  Index samples = 0;            ///< that were measured; 0: nothing was
  std::vector<PartTime> parts;  ///< in the order in which they first run
  double forward = 0;
  double backward = 0;
  /// Whether the backward pass is known by parts. An eager one is known as a whole.
  bool has_backward_parts = false;
  StepMemory memory;
};

namespace detail {

/// What a model computes outside of layers after the last of them.
inline constexpr std::string_view kRestOfModel = "rest of the model";

/// The part of a step that a layer is.
std::string part_of(const std::string& name, std::string_view kind);

/// Takes the parts of a step in their order.
class PartTimes {
 public:
  void add(const std::string& part, bool is_backward, double seconds);
  /// With their sums.
  StepProfile finish(bool has_backward_parts);

 private:
  std::vector<PartTime> parts_;
};

/// What was measured of a program.
StepProfile profile_of(const graph::Report& report);

}  // namespace detail

}  // namespace fenestra::nn
