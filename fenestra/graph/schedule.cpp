// Moving updates of parameters forward: which operations lead to an update and to nothing else, and
// when each of them can run. What is not part of an update keeps its order.
#include <fenestra/graph/copier.hpp>
#include <fenestra/graph/schedule.hpp>
#include <fenestra/tensor/split.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <vector>

namespace fenestra::graph {

namespace {

/// Who reads what, and which nodes lead to the update of one parameter and to nothing else. A
/// parameter whose new value another update reads (a velocity) is of one family with it.
class Updates {
 public:
  explicit Updates(const Graph& graph)
      : graph_(graph),
        readers_(static_cast<std::size_t>(graph.size())),
        replaces_(readers_.size(), kNoNode),
        target_(readers_.size(), kNoNode),
        family_(readers_.size()),
        is_early_(readers_.size()),
        feeds_update_(readers_.size()) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      family_[at(id)] = id;
      for (const auto* list : {&graph.node(id).in, &graph.node(id).data}) {
        for (const NodeId input : *list) {
          readers_[at(input)].push_back(id);
        }
      }
    }
    for (const Output& output : graph.outputs()) {
      if (output.overwrites != kNoNode && replaces_[at(output.node)] == kNoNode) {
        replaces_[at(output.node)] = output.overwrites;
      } else {
        target_[at(output.node)] = kBeyond;
      }
    }
    for (NodeId id = graph.size() - 1; id >= 0; --id) {
      find_target(id);
    }
    for (NodeId id = 0; id < graph.size(); ++id) {
      is_early_[at(id)] = is_early(id);
    }
    for (NodeId id = graph.size() - 1; id >= 0; --id) {
      feeds_update_[at(id)] =
          std::any_of(readers(id).begin(), readers(id).end(), [&](NodeId reader) {
            return only_update(reader) || (!graph_.node(reader).runs() && feeds_update(reader));
          });
    }
    others_.resize(readers_.size());
    for (const Output& output : graph.outputs()) {
      if (output.overwrites != kNoNode) {
        std::vector<NodeId>& others = others_[at(family(output.overwrites))];
        std::copy_if(readers_[at(output.overwrites)].begin(),
                     readers_[at(output.overwrites)].end(),
                     std::back_inserter(others),
                     [&](NodeId reader) { return !only_update(reader); });
      }
    }
  }

  /// Whether it leads to the update of one parameter, or to updates alone and waits for nothing.
  bool only_update(NodeId id) const {
    return graph_.node(id).kind == NodeKind::operation &&
           (target_[at(id)] >= 0 || (target_[at(id)] == kSeveral && is_early_[at(id)]));
  }
  /// Whether an update reads its result, itself or by another name.
  bool feeds_update(NodeId id) const { return feeds_update_[at(id)]; }
  /// The parameter that `id` replaces, kNoNode where it replaces none.
  NodeId replaces(NodeId id) const { return replaces_[at(id)]; }
  /// Who reads the result of `id`, as often as it does.
  const std::vector<NodeId>& readers(NodeId id) const { return readers_[at(id)]; }
  /// The family whose other readers `id` waits for: what reads nothing but gradients waits with the
  /// last operation of the update, so that the two stay together. kNoNode for none.
  NodeId waits_for(NodeId id) const {
    return target_[at(id)] >= 0 && is_inner(id) ? family(target_[at(id)]) : kNoNode;
  }
  /// Who else reads the parameters of a family.
  const std::vector<NodeId>& others(NodeId of_family) const { return others_[at(of_family)]; }

 private:
  static constexpr NodeId kBeyond = -2;   ///< to more than updates
  static constexpr NodeId kSeveral = -3;  ///< to updates of several parameters, nothing else

  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }
  /// Whether no value of the network itself is among what it reads.
  bool is_inner(NodeId id) const {
    const Node& node = graph_.node(id);
    const auto inner = [&](NodeId input) {
      return graph_.node(input).kind != NodeKind::operation || only_update(input);
    };
    return std::all_of(node.in.begin(), node.in.end(), inner) &&
           std::all_of(node.data.begin(), node.data.end(), inner);
  }
  /// Whether it is given, or a number computed for updates from such: what an optimiser shares.
  bool is_early(NodeId id) const {
    const Node& node = graph_.node(id);
    const auto early = [&](NodeId input) { return is_early_[at(input)]; };
    return node.kind != NodeKind::operation ||
           (target_[at(id)] != kBeyond && node.shape.rank() == 0 &&
            std::all_of(node.in.begin(), node.in.end(), early) &&
            std::all_of(node.data.begin(), node.data.end(), early));
  }
  NodeId family(NodeId parameter) const {
    while (family_[at(parameter)] != parameter) {
      parameter = family_[at(parameter)];
    }
    return parameter;
  }
  /// The same, with the way there made short.
  NodeId find_family(NodeId parameter) {
    while (family_[at(parameter)] != parameter) {
      NodeId& next = family_[at(parameter)];
      next = family_[at(next)];
      parameter = next;
    }
    return parameter;
  }
  /// Its readers know theirs.
  void find_target(NodeId id) {
    NodeId& target = target_[at(id)];
    for (const NodeId reader : readers_[at(id)]) {
      const NodeId next = target_[at(reader)];
      if (target == kBeyond || next == kNoNode) {
        continue;
      }
      if (next == kBeyond || target == kNoNode) {
        target = next;
      } else if (target == kSeveral || next == kSeveral ||
                 find_family(target) != find_family(next)) {
        target = kSeveral;
      }
    }
    const NodeId own = replaces_[at(id)];
    if (own == kNoNode || target == kBeyond || target == kSeveral) {
      return;
    }
    if (target != kNoNode) {
      family_[at(find_family(target))] = find_family(own);
    }
    target = own;
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<NodeId> replaces_;  ///< the parameter that a node replaces
  std::vector<NodeId> target_;    ///< the one whose update it leads to
  std::vector<NodeId> family_;    ///< of a parameter, as a forest
  std::vector<bool> is_early_;
  std::vector<bool> feeds_update_;
  std::vector<std::vector<NodeId>> others_;  ///< who else reads the parameters of a family
};

/// The operations of updates that have not run, and which of them can. Each knows how many nodes it
/// still waits for: its inputs, the other readers of the parameter that it replaces, and as one the
/// other readers of its family.
class Waiting {
 public:
  Waiting(const Graph& graph, const Updates& updates)
      : graph_(graph),
        updates_(updates),
        blockers_(static_cast<std::size_t>(graph.size())),
        others_(blockers_.size()),
        family_members_(blockers_.size()),
        families_read_(blockers_.size()),
        replaced_by_(blockers_.size(), kNoNode) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (updates.only_update(id)) {
        add(id);
      }
    }
  }

  /// Tells that `id` runs: those that waited for it may be ready now.
  void ran(NodeId id) {
    for (const NodeId reader : updates_.readers(id)) {
      unblock(reader);
    }
    const Node& node = graph_.node(id);
    for (const auto* list : {&node.in, &node.data}) {
      for (const NodeId input : *list) {
        if (const NodeId by = replaced_by_[at(input)]; by != kNoNode && by != id) {
          unblock(by);
        }
      }
    }
    for (const NodeId family : families_read_[at(id)]) {
      if (--others_[at(family)] == 0) {
        for (const NodeId member : family_members_[at(family)]) {
          unblock(member);
        }
      }
    }
  }
  /// The first that can run and replaces a parameter, else the first that can run, else kNoNode.
  NodeId take() {
    for (Ready* ready : {&replacing_, &others_ready_}) {
      if (!ready->empty()) {
        const NodeId id = ready->top();
        ready->pop();
        blockers_[at(id)] = kTaken;
        return id;
      }
    }
    return kNoNode;
  }
  /// All that could not run.
  std::vector<NodeId> rest() const {
    std::vector<NodeId> result;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (updates_.only_update(id) && blockers_[at(id)] != kTaken) {
        result.push_back(id);
      }
    }
    return result;
  }

 private:
  using Ready = std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>>;
  static constexpr Index kTaken = -1;

  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }
  void add(NodeId id) {
    const Node& node = graph_.node(id);
    Index& blockers = blockers_[at(id)];
    blockers += static_cast<Index>(node.in.size() + node.data.size());
    if (const NodeId family = updates_.waits_for(id); family != kNoNode) {
      const std::vector<NodeId>& others = updates_.others(family);
      if (!others.empty()) {
        blockers += 1;
        family_members_[at(family)].push_back(id);
      }
      if (others_[at(family)] == 0) {
        others_[at(family)] = static_cast<Index>(others.size());
        for (const NodeId other : others) {
          families_read_[at(other)].push_back(family);
        }
      }
    }
    if (const NodeId parameter = updates_.replaces(id); parameter != kNoNode) {
      replaced_by_[at(parameter)] = id;
      const std::vector<NodeId>& readers = updates_.readers(parameter);
      blockers += std::count_if(
          readers.begin(), readers.end(), [&](NodeId reader) { return reader != id; });
    }
    if (blockers == 0) {
      ready(id);
    }
  }
  void unblock(NodeId id) {
    if (updates_.only_update(id) && --blockers_[at(id)] == 0) {
      ready(id);
    }
  }
  void ready(NodeId id) {
    (updates_.replaces(id) != kNoNode ? replacing_ : others_ready_).push(id);
  }

  const Graph& graph_;
  const Updates& updates_;
  std::vector<Index> blockers_;  ///< nodes that it still waits for
  std::vector<Index> others_;    ///< other readers of a family that have not run
  std::vector<std::vector<NodeId>> family_members_;
  std::vector<std::vector<NodeId>> families_read_;  ///< for which a node is one of the others
  std::vector<NodeId> replaced_by_;                 ///< of parameters
  Ready replacing_;
  Ready others_ready_;
};

}  // namespace

Graph update_early(const Graph& graph) {
  const Updates updates(graph);
  Waiting waiting(graph, updates);
  Copier copier(graph);
  const auto place = [&](NodeId id) {
    copier.set_place(id, copier.append(copier.moved(id)));
    waiting.ran(id);
  };
  // What an update reads beside the gradient was often given last: the rate, a velocity.
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).kind != NodeKind::operation) {
      place(id);
    }
  }
  // The operation that runs next where no update comes between.
  std::vector<NodeId> next(static_cast<std::size_t>(graph.size()), kNoNode);
  for (NodeId id = graph.size() - 1; id > 0; --id) {
    const bool counts = graph.node(id).runs() && !updates.only_update(id);
    next[static_cast<std::size_t>(id - 1)] = counts ? id : next[static_cast<std::size_t>(id)];
  }
  // What treats samples one by one stays together with what it hands to nobody else.
  const auto stays_together = [&](NodeId id) {
    const NodeId after = next[static_cast<std::size_t>(id)];
    return after != kNoNode && !updates.feeds_update(id) && graph.split(after);
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).kind != NodeKind::operation || updates.only_update(id)) {
      continue;
    }
    place(id);
    if (stays_together(id)) {
      continue;
    }
    for (NodeId update = waiting.take(); update != kNoNode; update = waiting.take()) {
      place(update);
    }
  }
  // Two updates that read each other's parameters wait for each other; as they were, they run.
  for (const NodeId id : waiting.rest()) {
    place(id);
  }
  return copier.finish();
}

}  // namespace fenestra::graph
