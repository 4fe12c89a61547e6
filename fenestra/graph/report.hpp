// What a plan does, as plain facts: steps, groups, kernels, memory and costs, with what was
// measured where a run was profiled. Made from a plan once; explain.hpp shows it, and so may
// others.
//
// Aliases (reshapes) do not run and have no line: whoever reads one is said to read its source.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/options.hpp>
#include <fenestra/graph/plan.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fenestra::graph {

/// What is given, and constants.
struct ReportValue {
  NodeId node = kNoNode;
  NodeKind kind = NodeKind::input;
  std::string name;  ///< of constants: their value, where it is a single number
  DataType type = DataType::f32;
  Shape shape;
  std::size_t bytes = 0;
};

/// Something that a step reads.
struct ReportRead {
  NodeId source = kNoNode;  ///< a step, what is given, or a constant
  std::string name;         ///< what people call it
  Shape shape;              ///< as it is read
  bool is_workspace = false;
};

struct ReportMemory {
  std::size_t bytes = 0;  ///< for all samples, in a worker too
  Place place;
};

struct ReportStep {
  NodeId node = kNoNode;
  std::string part = {};     ///< of the program, such as a layer, where that was said (names.hpp)
  bool is_backward = false;  ///< pulls back what the part computes
  std::string operation;
  std::string attributes;
  std::vector<ReportRead> reads = {};
  DataType type = DataType::f32;
  Shape shape;
  std::string layout;  ///< of operations that know where channels are
  std::string kernel;  ///< empty where there was no choice
  ReportMemory result = {};
  ReportMemory workspace = {};
  ReportMemory scratch = {};
  std::size_t packed_bytes = 0;  ///< of the packed form of a constant
  Index multiply_adds = 0;
  double seconds = 0;
  std::optional<std::size_t> group = {};  ///< of `Report::groups`
};

struct ReportOutput {
  std::string name;
  NodeId source = kNoNode;
  Shape shape;
  NodeId overwrites = kNoNode;
  bool is_copied = false;  ///< after the last step
};

/// A buffer of the arena, needed from step to step, both included.
struct ReportBuffer {
  Buffer buffer;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Steps that run together: pieces of samples, or of channels in their place.
struct ReportGroup : PieceLoop {
  bool by_channels = false;
};

/// All steps of one operation.
struct ReportOperation {
  std::string name;
  std::size_t steps = 0;
  Index multiply_adds = 0;
  double seconds = 0;
};

struct FENESTRA_API Report {
  std::string title;
  std::string subtitle;
  bool is_profiled = false;
  std::vector<ReportValue> values;
  std::vector<ReportStep> steps;
  std::vector<ReportGroup> groups;  ///< in the order of the steps
  std::vector<ReportOutput> outputs;
  std::vector<ReportBuffer> buffers;
  std::vector<ReportOperation> operations;  ///< the most expensive first
  Index multiply_adds = 0;
  double seconds = 0;
  std::size_t arena_bytes = 0;
  std::size_t constant_bytes = 0;
  /// What results and workspaces would take, each in memory of its own, besides the caller's.
  std::size_t bytes_without_reuse = 0;

  const ReportStep* find_step(NodeId node) const;
  const ReportValue* find_value(NodeId node) const;
  /// A step's part of what counts: of the time where it was measured, else of the multiply-adds.
  double share(const ReportStep& step) const;
  double share(const ReportOperation& operation) const;
};

/// Refuses seconds of another number of steps with `shape_mismatch`.
FENESTRA_API Report make_report(const Plan& plan, const ReportOptions& options = {});

}  // namespace fenestra::graph
