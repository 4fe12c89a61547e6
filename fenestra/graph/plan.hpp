// The plan of a graph: which kernel runs each node, and where every buffer lies.
//
// Results, workspaces and scratch share one arena by lifetime. A result lies where an input lay
// that dies with the node and that the operation may overwrite, or in the caller's memory where it
// is an output. Constants that kernels pack are packed here. Groups run in workers, each with
// memory of its own for what only the group sees. A plan is immutable and may be shared between
// threads.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/channels.hpp>
#include <fenestra/graph/graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fenestra::graph {

class Lifetimes;

struct Place {
  enum class Kind {
    none,
    arena,     ///< at `offset`
    argument,  ///< what a run is given, number `index`
    output,    ///< memory for output number `index`
    constant,  ///< of node `index`
    worker,    ///< at `offset` in the memory of each worker of group number `index`
  };
  Kind kind = Kind::none;
  Index index = 0;
  std::size_t offset = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// Memory of the arena, from the step of node `first` to that of node `last`.
struct Buffer {
  enum class Role {
    result,     ///< of `node`, and of those that alias or overwrite it
    workspace,  ///< of `node`
    scratch,    ///< of the kernel of `node`
    workers,    ///< of the group that begins with `node`
  };
  Role role = Role::result;
  NodeId node = kNoNode;
  std::size_t bytes = 0;
  NodeId first = kNoNode;
  NodeId last = kNoNode;  ///< the graph's size where it is needed to the end
  std::size_t offset = 0;
};

/// What happens to one node; nothing for what is given, constants and aliases.
struct Step {
  NodeId node = kNoNode;
  std::unique_ptr<const Kernel> kernel;  ///< of a piece, for members of a group
  std::unique_ptr<const Kernel> rest;    ///< of the last piece, where that is smaller
  Place scratch;
  /// The packed form of the constant that the kernel, or the one of the last piece, packs; empty
  /// where there is none.
  Tensor<std::uint8_t> packed = Tensor<std::uint8_t>(Shape{0});
  Tensor<std::uint8_t> packed_rest = Tensor<std::uint8_t>(Shape{0});

  std::size_t scratch_bytes() const {
    return std::max(kernel->scratch_bytes(), rest ? rest->scratch_bytes() : 0);
  }
  /// The last piece has a form of its own only where it differs.
  std::size_t packed_bytes() const {
    const bool is_shared = packed.data() == packed_rest.data();
    return static_cast<std::size_t>(packed.size() + (is_shared ? 0 : packed_rest.size()));
  }
};

/// Consecutive steps that run for one piece of the samples after another.
struct PieceLoop {
  std::size_t first = 0;  ///< of the steps
  std::size_t end = 0;
  Index samples = 0;
  Index piece = 0;
  Index workers = 1;  ///< worker l runs the pieces l, l + workers, ...
  std::size_t worker_bytes = 0;
  Place memory;  ///< of all workers

  Index pieces() const { return (samples + piece - 1) / piece; }
};

/// Consecutive steps that run for one piece of the channels after another; threads take pieces.
struct ChannelLoop {
  std::size_t first = 0;  ///< of the steps
  std::size_t end = 0;
  ChannelView view;
  Index piece = 0;

  Index pieces() const { return (view.channels + piece - 1) / piece; }
};

/// What must hold of the numbers of something given, or of a constant.
struct Requirement {
  NodeId node = kNoNode;
  Condition condition;
  std::string reader;  ///< the operation that asks
};

/// An output that is no buffer of its own: copied after the last step.
struct OutputCopy {
  NodeId node = kNoNode;
  Index output = 0;
};

class FENESTRA_API Plan {
 public:
  /// The graph must have been verified. At most `workers` pieces of a group are computed at once.
  /// No member of `runs` is in a group.
  explicit Plan(Graph graph, int workers = 1, std::span<const ChannelRun> runs = {});

  /// Brings constants into the forms in which kernels read them, once for all runs.
  void pack_constants();

  const Graph& graph() const { return graph_; }
  const std::vector<NodeId>& arguments() const { return arguments_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<PieceLoop>& loops() const { return loops_; }
  const std::vector<ChannelLoop>& channel_loops() const { return channel_loops_; }
  const std::vector<OutputCopy>& copies() const { return copies_; }
  /// Of floats; those of data are in their nodes.
  const std::vector<Requirement>& requirements() const { return requirements_; }
  const Place& result(NodeId id) const { return results_[static_cast<std::size_t>(id)]; }
  /// None where nobody reads it.
  const Place& workspace(NodeId id) const { return workspaces_[static_cast<std::size_t>(id)]; }
  /// Bytes of what an operation leaves for others, whether or not somebody reads it.
  std::size_t workspace_bytes(NodeId id) const;
  /// What lies in the arena, and when.
  const std::vector<Buffer>& buffers() const { return buffers_; }
  /// Bytes of memory a run needs beside what the caller gives.
  std::size_t arena_bytes() const { return arena_bytes_; }
  /// Of constants, packed forms counted.
  std::size_t constant_bytes() const;
  Index multiply_adds() const;

 private:
  void find_requirements(const Lifetimes& lifetimes);
  void choose_kernels(const Lifetimes& lifetimes, int workers);
  void find_channel_loops(std::span<const ChannelRun> runs);
  std::vector<Place> place_outputs(const Lifetimes& lifetimes);
  void place_workers(const Lifetimes& lifetimes, std::vector<Place>& roots);
  void place_arena(const Lifetimes& lifetimes, std::vector<Place>& roots);

  Graph graph_;
  std::vector<NodeId> arguments_;
  std::vector<Step> steps_;
  std::vector<PieceLoop> loops_;
  std::vector<ChannelLoop> channel_loops_;
  std::vector<OutputCopy> copies_;
  std::vector<Requirement> requirements_;
  std::vector<Place> results_;
  std::vector<Place> workspaces_;
  std::vector<Buffer> buffers_;
  std::size_t arena_bytes_ = 0;
};

}  // namespace fenestra::graph
