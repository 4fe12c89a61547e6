// Aliases, uses, and results that lie where an input lay.
#include <fenestra/graph/lifetimes.hpp>

#include <algorithm>

namespace fenestra::graph {

Lifetimes::Lifetimes(const Graph& graph, std::span<const ChannelRun> runs)
    : graph_(graph), memory_(static_cast<std::size_t>(graph.size())) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    at(id).root = id;
  }
  find_groups();
  for (const ChannelRun& run : runs) {
    for (const NodeId id : run.members) {
      at(id).first_of_run = run.first();
      at(id).last_of_run = run.last();
    }
  }
  join_aliases();
  find_uses();
  find_local();
  join_overwritten();
}

NodeId Lifetimes::stretched(NodeId last_use) const {
  if (last_use < 0 || last_use >= graph_.size()) {
    return last_use;
  }
  if (at(last_use).last_of_run != kNoNode) {
    return at(last_use).last_of_run;
  }
  if (group(last_use) < 0) {
    return last_use;
  }
  return graph_.groups()[static_cast<std::size_t>(group(last_use))].last();
}

NodeId Lifetimes::first(NodeId id) const {
  if (at(id).first_of_run != kNoNode) {
    return at(id).first_of_run;
  }
  return group(id) < 0 ? id : graph_.groups()[static_cast<std::size_t>(group(id))].first();
}

NodeId Lifetimes::workspace_last(NodeId id) const { return stretched(at(id).workspace_last); }

bool Lifetimes::group_reads_whole(NodeId id, NodeId over) const {
  // Groups follow each other, so the last one that reads it is the one to ask about.
  return group(id) >= 0 && at(over).read_whole_by == group(id);
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
    const std::optional<Split> split = group(id) < 0 ? std::optional<Split>() : graph_.split(id);
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      Memory& read = at(root(node.in[i]));
      read.last_use = id;
      if (split && !split->in[i]) {
        read.read_whole_by = group(id);
      }
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

NodeId Lifetimes::home(NodeId id, const std::vector<NodeId>& overwritten) const {
  const auto found = std::find_if(overwritten.begin(), overwritten.end(), [&](NodeId parameter) {
    return may_replace(id, parameter);
  });
  return found == overwritten.end() ? kNoNode : *found;
}

void Lifetimes::join_overwritten() {
  std::vector<std::vector<NodeId>> overwritten(memory_.size());  // by the node that does it
  for (const Output& output : graph_.outputs()) {
    if (output.overwrites != kNoNode) {
      overwritten[static_cast<std::size_t>(output.node)].push_back(output.overwrites);
    }
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    // An alias follows the memory that its source has now.
    if (node.operation && node.operation->aliases_input()) {
      at(id).root = root(node.in[0]);
    }
    if (root(id) != id) {
      continue;
    }
    const NodeId parameter = home(id, overwritten[static_cast<std::size_t>(id)]);
    for (const NodeId input : node.in) {
      const NodeId over = root(input);
      // A worker's memory holds one piece: only what is local, too, fits.
      if (graph_.node(over).kind == NodeKind::operation && (!is_local(over) || is_local(id)) &&
          may_overwrite(id, over) && (parameter == kNoNode || may_replace(over, parameter))) {
        at(id).root = over;
        at(over).last_use = at(id).last_use;
        at(over).read_whole_by = std::max(at(over).read_whole_by, at(id).read_whole_by);
        break;
      }
    }
  }
}

}  // namespace fenestra::graph
