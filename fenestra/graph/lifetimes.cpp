// Aliases, uses, and results that lie where an input lay.
#include <fenestra/graph/lifetimes.hpp>

#include <algorithm>

namespace fenestra::graph {

Lifetimes::Lifetimes(const Graph& graph)
    : graph_(graph), memory_(static_cast<std::size_t>(graph.size())) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    at(id).root = id;
  }
  find_groups();
  join_aliases();
  find_uses();
  find_local();
  join_overwritten();
}

NodeId Lifetimes::stretched(NodeId last_use) const {
  if (last_use < 0 || last_use >= graph_.size() || group(last_use) < 0) {
    return last_use;
  }
  return graph_.groups()[static_cast<std::size_t>(group(last_use))].last();
}

NodeId Lifetimes::first(NodeId id) const {
  return group(id) < 0 ? id : graph_.groups()[static_cast<std::size_t>(group(id))].first();
}

NodeId Lifetimes::workspace_last(NodeId id) const { return stretched(at(id).workspace_last); }

bool Lifetimes::group_reads_whole(NodeId id, NodeId over) const {
  if (group(id) < 0) {
    return false;
  }
  for (const NodeId member : graph_.groups()[static_cast<std::size_t>(group(id))].members) {
    const Node& node = graph_.node(member);
    const std::optional<Split> split = graph_.split(member);
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      if (root(node.in[i]) == over && !split->in[i]) {
        return true;
      }
    }
  }
  return false;
}

bool Lifetimes::may_overwrite(NodeId id, NodeId over) const {
  const Node& node = graph_.node(id);
  if (!node.operation || node.operation->aliases_input() || at(over).last_use != id) {
    return false;
  }
  bool reads = false;
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    if (root(node.in[i]) != over) {
      continue;
    }
    if (!node.operation->may_overwrite(static_cast<int>(i)) ||
        graph_.node(node.in[i]).shape != node.shape) {
      return false;
    }
    reads = true;
  }
  return reads && !group_reads_whole(id, over) &&
         std::none_of(node.data.begin(), node.data.end(), [&](NodeId data) {
           return graph_.node(data).type == DataType::index && root(data) == over;
         });
}

bool Lifetimes::may_replace(NodeId id, NodeId over) const {
  return (at(over).last_use < id && !group_reads_whole(id, over)) || may_overwrite(id, over);
}

void Lifetimes::find_groups() {
  for (std::size_t i = 0; i < graph_.groups().size(); ++i) {
    for (const NodeId id : graph_.groups()[i].members) {
      at(id).group = static_cast<Index>(i);
    }
  }
}

void Lifetimes::join_aliases() {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (node.operation && node.operation->aliases_input()) {
      at(id).root = root(node.in[0]);
    }
  }
}

void Lifetimes::find_uses() {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    at(root(id)).last_use = std::max(at(root(id)).last_use, id);
    if (node.operation && node.operation->aliases_input()) {
      continue;  // moves nothing
    }
    for (const NodeId input : node.in) {
      at(root(input)).last_use = id;
    }
    for (const NodeId input : node.data) {
      if (graph_.node(input).type == DataType::index) {
        at(root(input)).last_use = id;
      } else {
        at(input).workspace_last = id;
      }
    }
  }
  for (const Output& output : graph_.outputs()) {
    at(root(output.node)).last_use = graph_.size();
  }
}

void Lifetimes::find_local() {
  for (const Group& group : graph_.groups()) {
    for (const NodeId id : group.members) {
      at(id).is_local = root(id) == id;
      at(id).has_local_workspace = true;
    }
  }
  // Whatever somebody outside the group can see is not local.
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    const auto sees = [&](NodeId of) { return group(id) < 0 || group(id) != group(of); };
    for (const NodeId input : node.in) {
      if (sees(root(input))) {
        at(root(input)).is_local = false;
      }
    }
    for (const NodeId input : node.data) {
      if (sees(input)) {
        at(input).has_local_workspace = false;
      }
    }
  }
  for (const Output& output : graph_.outputs()) {
    at(root(output.node)).is_local = false;
  }
}

NodeId Lifetimes::home(NodeId id) const {
  const auto found =
      std::find_if(graph_.outputs().begin(), graph_.outputs().end(), [&](const Output& output) {
        return output.node == id && output.overwrites != kNoNode &&
               may_replace(id, output.overwrites);
      });
  return found == graph_.outputs().end() ? kNoNode : found->overwrites;
}

void Lifetimes::join_overwritten() {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    // An alias follows the memory that its source has now.
    if (node.operation && node.operation->aliases_input()) {
      at(id).root = root(node.in[0]);
    }
    if (root(id) != id) {
      continue;
    }
    const NodeId parameter = home(id);
    for (const NodeId input : node.in) {
      const NodeId over = root(input);
      // A lane's memory holds one piece: only what is local, too, fits.
      if (graph_.node(over).kind == NodeKind::operation && (!is_local(over) || is_local(id)) &&
          may_overwrite(id, over) && (parameter == kNoNode || may_replace(over, parameter))) {
        at(id).root = over;
        at(over).last_use = at(id).last_use;
        break;
      }
    }
  }
}

}  // namespace fenestra::graph
