// Lifetimes and placement. Memory that lives longest at its size is placed first, each as low as
// what overlaps it in time allows.
#include <fenestra/base/memory.hpp>
#include <fenestra/graph/plan.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fenestra::graph {

namespace {

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// A piece of the arena that is needed from step `first` to step `last`.
struct Interval {
  std::size_t bytes = 0;
  NodeId first = 0;
  NodeId last = 0;
  std::size_t offset = 0;
};

/// Gives every interval an offset and returns the bytes of all.
std::size_t place(std::vector<Interval>& intervals) {
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return intervals[a].bytes > intervals[b].bytes;
  });
  std::size_t total = 0;
  std::vector<const Interval*> placed;  // by offset
  for (const std::size_t at : order) {
    Interval& interval = intervals[at];
    std::size_t offset = 0;
    for (const Interval* other : placed) {
      if (other->last < interval.first || interval.last < other->first) {
        continue;
      }
      if (offset + interval.bytes <= other->offset) {
        break;
      }
      offset = std::max(offset, other->offset + other->bytes);
    }
    interval.offset = offset;
    total = std::max(total, offset + interval.bytes);
    placed.insert(std::upper_bound(placed.begin(),
                                   placed.end(),
                                   offset,
                                   [](std::size_t o, const Interval* i) { return o < i->offset; }),
                  &interval);
  }
  return total;
}

/// Which nodes share memory, and from when to when it is needed.
class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph)
      : graph_(graph), memory_(static_cast<std::size_t>(graph.size())) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      at(id).root = id;
    }
    join_aliases();
    find_uses();
    join_overwritten();
  }

  /// The node whose memory holds the result of `id`.
  NodeId root(NodeId id) const { return at(id).root; }
  /// The last node that reads memory of root `id`; the graph's size for outputs.
  NodeId last_use(NodeId id) const { return at(id).last_use; }
  /// The last node that reads the workspace of `id`, kNoNode where none does.
  NodeId workspace_last(NodeId id) const { return at(id).workspace_last; }

  /// Whether `id` may write its result over the memory of root `root`: it reads it only where that
  /// is permitted, and nobody reads it later.
  bool may_overwrite(NodeId id, NodeId over) const {
    const Node& node = graph_.node(id);
    if (!node.operation || node.operation->aliases_input() || last_use(over) != id) {
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
    return reads && std::none_of(node.data.begin(), node.data.end(), [&](NodeId data) {
             return graph_.node(data).type == DataType::index && root(data) == over;
           });
  }

 private:
  struct Memory {
    NodeId root = kNoNode;
    NodeId last_use = kNoNode;
    NodeId workspace_last = kNoNode;
  };

  Memory& at(NodeId id) { return memory_[static_cast<std::size_t>(id)]; }
  const Memory& at(NodeId id) const { return memory_[static_cast<std::size_t>(id)]; }

  void join_aliases() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (node.operation && node.operation->aliases_input()) {
        at(id).root = root(node.in[0]);
      }
    }
  }
  void find_uses() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      at(root(id)).last_use = std::max(last_use(root(id)), id);
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
  /// Whether the result of `id` replaces a parameter that it may be written over at once.
  bool is_written_home(NodeId id) const {
    return std::any_of(graph_.outputs().begin(), graph_.outputs().end(), [&](const Output& output) {
      return output.node == id && output.overwrites != kNoNode &&
             may_overwrite(id, output.overwrites);
    });
  }
  void join_overwritten() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      // An alias follows the memory that its source has now.
      if (node.operation && node.operation->aliases_input()) {
        at(id).root = root(node.in[0]);
      }
      if (root(id) != id || is_written_home(id)) {
        continue;
      }
      for (const NodeId input : node.in) {
        const NodeId over = root(input);
        if (graph_.node(over).kind == NodeKind::operation && may_overwrite(id, over)) {
          at(id).root = over;
          at(over).last_use = last_use(id);
          break;
        }
      }
    }
  }

  const Graph& graph_;
  std::vector<Memory> memory_;
};

std::size_t workspace_bytes(const SelectionType& type) {
  const auto elements = static_cast<std::size_t>(type.shape.elements().value_or(0));
  return elements * (type.form == SelectionForm::taps ? sizeof(std::uint8_t) : sizeof(Index));
}

std::string place_text(const Place& place) {
  switch (place.kind) {
    case Place::Kind::none: return "-";
    case Place::Kind::arena: return "@" + std::to_string(place.offset);
    case Place::Kind::given: return "given " + std::to_string(place.index);
    case Place::Kind::output: return "output " + std::to_string(place.index);
    case Place::Kind::constant: return "constant";
  }
  return "";
}

}  // namespace

Plan::Plan(Graph graph) : graph_(std::move(graph)), given_(graph_.given()) {
  const auto count = static_cast<std::size_t>(graph_.size());
  const Lifetimes lifetimes(graph_);
  results_.resize(count);
  workspaces_.resize(count);

  // What others own.
  std::vector<Place> roots(count);
  for (std::size_t i = 0; i < given_.size(); ++i) {
    roots[static_cast<std::size_t>(given_[i])] = {Place::Kind::given, static_cast<Index>(i), 0};
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (graph_.node(id).kind == NodeKind::constant) {
      roots[static_cast<std::size_t>(id)] = {Place::Kind::constant, id, 0};
    }
  }
  // Outputs lie in the caller's memory where they have memory of their own; an overwritten
  // parameter only where its last reader is the node that first writes the new value, and may write
  // over it.
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const Output& output = graph_.outputs()[i];
    const NodeId root = lifetimes.root(output.node);
    Place& place = roots[static_cast<std::size_t>(root)];
    if (place.kind == Place::Kind::none) {
      if (output.overwrites == kNoNode) {
        place = {Place::Kind::output, static_cast<Index>(i), 0};
        continue;
      }
      if (lifetimes.last_use(output.overwrites) < root ||
          lifetimes.may_overwrite(root, output.overwrites)) {
        place = roots[static_cast<std::size_t>(output.overwrites)];
        continue;
      }
    }
    if (output.overwrites != kNoNode && place.kind == Place::Kind::given) {
      throw Error(
          ErrorCode::foreign_variable,
          "plan: parameter \"" + output.name +
              "\" is overwritten by what another one holds, which may have changed by then\n"
              "  fix: overwrite it with a result of an operation");
    }
    copies_.push_back({output.node, static_cast<Index>(i)});
  }
  // A parameter is overwritten after everything else that is copied has been read.
  std::stable_sort(copies_.begin(), copies_.end(), [&](const OutputCopy& a, const OutputCopy& b) {
    const auto overwrites = [&](const OutputCopy& copy) {
      return graph_.outputs()[static_cast<std::size_t>(copy.output)].overwrites != kNoNode;
    };
    return !overwrites(a) && overwrites(b);
  });

  std::vector<Interval> intervals;
  std::vector<Place*> owners;
  const auto want = [&](std::size_t bytes, NodeId first, NodeId last, Place* owner) {
    owner->kind = Place::Kind::arena;
    intervals.push_back({aligned(bytes), first, last, 0});
    owners.push_back(owner);
  };
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::operation || node.operation->aliases_input()) {
      continue;
    }
    steps_.push_back({id, node.operation->prepare(), {}});
  }
  for (Step& step : steps_) {
    const Node& node = graph_.node(step.node);
    const auto at = static_cast<std::size_t>(step.node);
    if (lifetimes.root(step.node) == step.node && roots[at].kind == Place::Kind::none) {
      want(node.bytes(), step.node, lifetimes.last_use(step.node), &roots[at]);
    }
    if (const NodeId last = lifetimes.workspace_last(step.node); last != kNoNode) {
      want(workspace_bytes(node.workspace), step.node, last, &workspaces_[at]);
    }
    if (const std::size_t bytes = step.kernel->scratch_bytes(); bytes > 0) {
      want(bytes, step.node, step.node, &step.scratch);
    }
  }
  arena_bytes_ = place(intervals);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    owners[i]->offset = intervals[i].offset;
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    results_[static_cast<std::size_t>(id)] = roots[static_cast<std::size_t>(lifetimes.root(id))];
  }
}

std::size_t Plan::constant_bytes() const {
  std::size_t bytes = 0;
  for (const Node& node : graph_.nodes()) {
    bytes += node.kind == NodeKind::constant ? node.bytes() : 0;
  }
  return bytes;
}

Index Plan::multiply_adds() const {
  Index total = 0;
  for (const Step& step : steps_) {
    total += graph_.node(step.node).operation->multiply_adds();
  }
  return total;
}

std::string to_string(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps()) {
    const Node& node = plan.graph().node(step.node);
    text += "%" + std::to_string(step.node) + " " + std::string(node.operation->name());
    if (!step.kernel->name().empty()) {
      text += " by " + std::string(step.kernel->name());
    }
    text += ": " + std::to_string(node.bytes()) + " bytes " + place_text(plan.result(step.node));
    if (plan.workspace(step.node).kind != Place::Kind::none) {
      text += ", workspace " + std::to_string(workspace_bytes(node.workspace)) + " bytes " +
              place_text(plan.workspace(step.node));
    }
    if (step.scratch.kind != Place::Kind::none) {
      text += ", scratch " + std::to_string(step.kernel->scratch_bytes()) + " bytes " +
              place_text(step.scratch);
    }
    if (const Index work = node.operation->multiply_adds(); work > 0) {
      text += ", " + std::to_string(work) + " multiply-adds";
    }
    text += "\n";
  }
  for (const OutputCopy& copy : plan.copies()) {
    text +=
        "copy %" + std::to_string(copy.node) + " to output " + std::to_string(copy.output) + "\n";
  }
  return text + "arena " + std::to_string(plan.arena_bytes()) + " bytes, constants " +
         std::to_string(plan.constant_bytes()) + " bytes\n";
}

}  // namespace fenestra::graph
