// Which nodes of a graph share memory, and from when to when it is needed. Internal: not installed.
//
// A step of a group runs once for every piece of the samples. Memory for all samples that a group
// touches is therefore needed from its first step to its last; a value that lives and dies within
// the group needs memory for one piece only, in the worker that computes it. A run of channels is
// done with its memory when its last step is, too; all of it is for all channels.
#pragma once

#include <fenestra/graph/channels.hpp>
#include <fenestra/graph/graph.hpp>

#include <span>
#include <vector>

namespace fenestra::graph {

class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph, std::span<const ChannelRun> runs = {});

  /// The node whose memory holds the result of `id`.
  NodeId root(NodeId id) const { return at(id).root; }
  /// Where in the order memory of root `id` is written first, and read last; the graph's size for
  /// outputs.
  NodeId first(NodeId id) const;
  NodeId last(NodeId id) const { return stretched(at(id).last_use); }
  /// The same within a piece, for what is local.
  NodeId local_last(NodeId id) const { return at(id).last_use; }
  NodeId local_workspace_last(NodeId id) const { return at(id).workspace_last; }
  /// The last node that reads the workspace of `id`, kNoNode where none does.
  NodeId workspace_last(NodeId id) const;
  /// The number of the group of which `id` is a member, -1 where it is in none.
  Index group(NodeId id) const { return at(id).group; }
  /// Whether the memory of root `id`, or its workspace, is a worker's.
  bool is_local(NodeId id) const { return at(id).is_local; }
  bool has_local_workspace(NodeId id) const { return at(id).has_local_workspace; }

  /// Whether `id` may write its result over the memory of root `over`: it reads it only where that
  /// is permitted, nobody reads it later, and no member of its group reads it whole.
  bool may_overwrite(NodeId id, NodeId over) const;
  /// Whether `id` may be computed in the memory of the parameter `over`: it may write over it, or
  /// everybody has read it, members of its own group sample by sample.
  bool may_replace(NodeId id, NodeId over) const;

 private:
  struct Memory {
    NodeId root = kNoNode;
    NodeId last_use = kNoNode;
    NodeId workspace_last = kNoNode;
    Index group = -1;
    NodeId first_of_run = kNoNode;  ///< of the run of channels of which the node is a member
    NodeId last_of_run = kNoNode;
    Index read_whole_by =
        -1;  ///< the last group of which a member reads it for all samples at once
    bool is_local = false;
    bool has_local_workspace = false;
  };

  Memory& at(NodeId id) { return memory_[static_cast<std::size_t>(id)]; }
  const Memory& at(NodeId id) const { return memory_[static_cast<std::size_t>(id)]; }
  NodeId stretched(NodeId last_use) const;
  /// Whether a member of the group of `id` reads memory of root `over`, which nobody reads after
  /// `id`, for all samples at once.
  bool group_reads_whole(NodeId id, NodeId over) const;

  void find_groups();
  void join_aliases();
  void find_uses();
  void find_local();
  void join_overwritten();
  /// The first parameter of `overwritten` in whose memory `id` can leave its new value, kNoNode
  /// where there is none.
  NodeId home(NodeId id, const std::vector<NodeId>& overwritten) const;

  const Graph& graph_;
  std::vector<Memory> memory_;
};

}  // namespace fenestra::graph
