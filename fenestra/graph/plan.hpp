// The plan of a graph: which kernel runs each node, and where every buffer lies.
//
// Results, workspaces and scratch share one arena by lifetime. A result lies where an input lay
// that dies with the node and that the operation may overwrite, or in the caller's memory where it
// is an output. A plan is immutable and may be shared between threads.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fenestra::graph {

struct Place {
  enum class Kind {
    none,
    arena,     ///< at `offset`
    given,     ///< what a run is given, number `index`
    output,    ///< memory for output number `index`
    constant,  ///< of node `index`
  };
  Kind kind = Kind::none;
  Index index = 0;
  std::size_t offset = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// What happens to one node; nothing for what is given, constants and aliases.
struct Step {
  NodeId node = kNoNode;
  std::unique_ptr<const Kernel> kernel;
  Place scratch;
};

/// An output that is no buffer of its own: copied after the last step.
struct OutputCopy {
  NodeId node = kNoNode;
  Index output = 0;
};

class FENESTRA_API Plan {
 public:
  /// The graph must have been verified.
  explicit Plan(Graph graph);

  const Graph& graph() const { return graph_; }
  const std::vector<NodeId>& given() const { return given_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<OutputCopy>& copies() const { return copies_; }
  const Place& result(NodeId id) const { return results_[static_cast<std::size_t>(id)]; }
  /// None where nobody reads it.
  const Place& workspace(NodeId id) const { return workspaces_[static_cast<std::size_t>(id)]; }
  /// Bytes of memory a run needs beside what the caller gives.
  std::size_t arena_bytes() const { return arena_bytes_; }
  std::size_t constant_bytes() const;
  Index multiply_adds() const;

 private:
  Graph graph_;
  std::vector<NodeId> given_;
  std::vector<Step> steps_;
  std::vector<OutputCopy> copies_;
  std::vector<Place> results_;
  std::vector<Place> workspaces_;
  std::size_t arena_bytes_ = 0;
};

/// The plan in words: one line per step with its kernel and places, then the totals.
FENESTRA_API std::string to_string(const Plan& plan);

}  // namespace fenestra::graph
