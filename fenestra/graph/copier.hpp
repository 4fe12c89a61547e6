// How passes copy: nodes of one graph into another, with what they read renumbered. Internal: not
// installed.
#pragma once

#include <fenestra/graph/graph.hpp>

#include <utility>
#include <vector>

namespace fenestra::graph {

/// Copies nodes of one graph into another, with their inputs renumbered.
class Copier {
 public:
  explicit Copier(const Graph& from)
      : from_(from), place_(static_cast<std::size_t>(from.size()), kNoNode) {
    to_.reserve(from.size());
  }

  /// The node with its inputs where they are now.
  Node moved(NodeId id) const {
    Node node = from_.node(id);
    for (auto* list : {&node.in, &node.data}) {
      for (NodeId& input : *list) {
        input = place(input);
      }
    }
    return node;
  }
  void set_place(NodeId id, NodeId now) { place_[static_cast<std::size_t>(id)] = now; }
  NodeId place(NodeId id) const { return place_[static_cast<std::size_t>(id)]; }
  NodeId append(Node node) { return to_.append(std::move(node)); }
  const Graph& to() const { return to_; }
  Graph finish() {
    for (const Output& output : from_.outputs()) {
      to_.add_output(place(output.node),
                     output.name,
                     output.overwrites == kNoNode ? kNoNode : place(output.overwrites));
    }
    return std::move(to_);
  }

 private:
  const Graph& from_;
  Graph to_;
  std::vector<NodeId> place_;
};

}  // namespace fenestra::graph
