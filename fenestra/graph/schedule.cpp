// Moving updates of parameters forward: which operations lead to an update and to nothing else, and
// when each of them can run. What is not part of an update keeps its order.
#include <fenestra/graph/copier.hpp>
#include <fenestra/graph/schedule.hpp>

#include <algorithm>
#include <iterator>
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
        is_early_(readers_.size()) {
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
  /// Whether an update reads its result.
  bool feeds_update(NodeId id) const {
    return std::any_of(readers_[at(id)].begin(), readers_[at(id)].end(), [&](NodeId reader) {
      return only_update(reader) || (!graph_.node(reader).runs() && feeds_update(reader));
    });
  }
  /// The first of `waiting` that can run and replaces a parameter, else the first that can run.
  std::vector<NodeId>::iterator next(std::vector<NodeId>& waiting, const Copier& placed) const {
    const auto found = std::find_if(waiting.begin(), waiting.end(), [&](NodeId id) {
      return replaces_[at(id)] != kNoNode && is_ready(id, placed);
    });
    return found != waiting.end() ? found
                                  : std::find_if(waiting.begin(), waiting.end(), [&](NodeId id) {
                                      return is_ready(id, placed);
                                    });
  }

 private:
  static constexpr NodeId kBeyond = -2;   ///< to more than updates
  static constexpr NodeId kSeveral = -3;  ///< to updates of several parameters, nothing else

  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }
  /// Whether `id` can run when the nodes that are placed have run: its inputs have, and so have the
  /// other readers of the parameter that it replaces. What reads nothing but gradients waits with
  /// the last operation of the update, so that the two stay together.
  bool is_ready(NodeId id, const Copier& placed) const {
    const auto done = [&](NodeId other) { return placed.place(other) != kNoNode; };
    const Node& node = graph_.node(id);
    if (!std::all_of(node.in.begin(), node.in.end(), done) ||
        !std::all_of(node.data.begin(), node.data.end(), done)) {
      return false;
    }
    if (const NodeId target = target_[at(id)];
        target >= 0 && is_inner(id) &&
        !std::all_of(
            others_[at(family(target))].begin(), others_[at(family(target))].end(), done)) {
      return false;
    }
    const NodeId parameter = replaces_[at(id)];
    return parameter == kNoNode ||
           std::all_of(readers_[at(parameter)].begin(),
                       readers_[at(parameter)].end(),
                       [&](NodeId reader) { return reader == id || done(reader); });
  }
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
      } else if (target == kSeveral || next == kSeveral || family(target) != family(next)) {
        target = kSeveral;
      }
    }
    const NodeId own = replaces_[at(id)];
    if (own == kNoNode || target == kBeyond || target == kSeveral) {
      return;
    }
    if (target != kNoNode) {
      family_[at(family(target))] = family(own);
    }
    target = own;
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<NodeId> replaces_;  ///< the parameter that a node replaces
  std::vector<NodeId> target_;    ///< the one whose update it leads to
  std::vector<NodeId> family_;    ///< of a parameter, as a forest
  std::vector<bool> is_early_;
  std::vector<std::vector<NodeId>> others_;  ///< who else reads the parameters of a family
};

}  // namespace

Graph update_early(const Graph& graph) {
  const Updates updates(graph);
  Copier copier(graph);
  std::vector<NodeId> waiting;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (updates.only_update(id)) {
      waiting.push_back(id);
    }
  }
  const auto place = [&](NodeId id) { copier.set_place(id, copier.append(copier.moved(id))); };
  // What an update reads beside the gradient was often given last: the rate, a velocity.
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).kind != NodeKind::operation) {
      place(id);
    }
  }
  // What treats samples one by one stays together with what it hands to nobody else.
  const auto stays_together = [&](NodeId id) {
    NodeId next = id + 1;
    while (next < graph.size() && (!graph.node(next).runs() || updates.only_update(next))) {
      ++next;
    }
    return next < graph.size() && graph.split(next) && !updates.feeds_update(id);
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).kind != NodeKind::operation || updates.only_update(id)) {
      continue;
    }
    place(id);
    if (stays_together(id)) {
      continue;
    }
    for (auto next = updates.next(waiting, copier); next != waiting.end();
         next = updates.next(waiting, copier)) {
      place(*next);
      waiting.erase(next);
    }
  }
  // Two updates that read each other's parameters wait for each other; as they were, they run.
  for (const NodeId id : waiting) {
    place(id);
  }
  return copier.finish();
}

}  // namespace fenestra::graph
