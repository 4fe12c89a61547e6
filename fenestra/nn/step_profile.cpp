// The report of a step's program, by layers.
#include <fenestra/graph/report.hpp>
#include <fenestra/nn/step_profile.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace fenestra::nn::detail {

namespace {

/// Bytes of what steps of the forward pass give to steps of the backward pass.
std::size_t kept_bytes(const graph::Report& report) {
  std::set<std::pair<graph::NodeId, bool>> kept;
  std::size_t bytes = 0;
  for (const graph::ReportStep& step : report.steps) {
    if (!step.is_backward) {
      continue;
    }
    for (const graph::ReportRead& read : step.reads) {
      const graph::ReportStep* const from = report.find_step(read.source);
      if (from != nullptr && !from->is_backward &&
          kept.emplace(read.source, read.is_workspace).second) {
        bytes += read.is_workspace ? from->workspace.bytes : from->result.bytes;
      }
    }
  }
  return bytes;
}

}  // namespace

std::string part_of(const std::string& name, std::string_view kind) {
  return name.empty() ? std::string(kind) : name;
}

void PartTimes::add(const std::string& part, bool is_backward, double seconds) {
  auto found = std::find_if(
      parts_.begin(), parts_.end(), [&](const PartTime& known) { return known.name == part; });
  if (found == parts_.end()) {
    found = parts_.insert(parts_.end(), {.name = part});
  }
  (is_backward ? found->backward : found->forward) += seconds;
}

StepProfile PartTimes::finish(bool has_backward_parts) {
  StepProfile profile;
  profile.parts = std::move(parts_);
  profile.has_backward_parts = has_backward_parts;
  for (const PartTime& part : profile.parts) {
    profile.forward += part.forward;
    profile.backward += part.backward;
  }
  return profile;
}

StepProfile profile_of(const graph::Report& report) {
  PartTimes times;
  for (const graph::ReportStep& step : report.steps) {
    times.add(step.part, step.is_backward, step.seconds);
  }
  StepProfile profile = times.finish(true);
  profile.memory.activations = kept_bytes(report);
  profile.memory.arena = report.arena_bytes;
  return profile;
}

}  // namespace fenestra::nn::detail
