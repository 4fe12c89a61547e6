// Which values lie in blocks.
#include <fenestra/graph/layouts.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace fenestra::graph {

namespace {

class Layouts {
 public:
  explicit Layouts(const Graph& graph)
      : graph_(graph),
        preferred_(static_cast<std::size_t>(graph.size())),
        keeps_(preferred_.size()),
        wanted_(preferred_.size()),
        block_(preferred_.size()) {
    find_abilities();
    find_wanted();
    for (NodeId id = 0; id < graph.size(); ++id) {
      block_[at(id)] = chosen(id);
    }
  }

  /// The block in which the result of `id` lies, 0 for none.
  Index block(NodeId id) const { return block_[at(id)]; }
  Index preferred(NodeId id) const { return preferred_[at(id)]; }
  bool keeps(NodeId id) const { return keeps_[at(id)]; }
  bool any() const {
    return std::any_of(block_.begin(), block_.end(), [](Index block) { return block > 0; });
  }

 private:
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

  void find_abilities() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (!node.runs() || node.shape.rank() < 3) {
        continue;
      }
      std::vector<Shape> shapes;
      for (const NodeId input : node.in) {
        shapes.push_back(graph_.node(input).shape);
      }
      preferred_[at(id)] = node.operation->block();
      keeps_[at(id)] = node.operation->keeps_blocks(shapes);
    }
  }
  /// From the readers: the block that one of them wants a value in.
  void find_wanted() {
    for (NodeId id = graph_.size() - 1; id >= 0; --id) {
      const Node& node = graph_.node(id);
      if (preferred(id) > 0) {
        wanted_[at(node.in[0])] = preferred(id);
      } else if (keeps(id) && wanted_[at(id)] > 0) {
        for (const NodeId input : node.in) {
          if (graph_.node(input).shape == node.shape) {
            wanted_[at(input)] = wanted_[at(id)];
          }
        }
      }
    }
  }
  /// From the writers: a value that is wanted in blocks, and that something computes in them.
  Index chosen(NodeId id) const {
    const Node& node = graph_.node(id);
    const Index wanted = wanted_[at(id)];
    if (wanted == 0) {
      return 0;
    }
    if (preferred(id) > 0) {
      return preferred(id) == wanted ? wanted : 0;
    }
    const bool continues = keeps(id) && std::any_of(node.in.begin(), node.in.end(), [&](NodeId i) {
                             return block(i) == wanted;
                           });
    return continues ? wanted : 0;
  }

  const Graph& graph_;
  std::vector<Index> preferred_;
  std::vector<bool> keeps_;
  std::vector<Index> wanted_;
  std::vector<Index> block_;
};

/// Copies the graph, with every value moved to the layout in which it is read.
class Mover {
 public:
  Mover(const Graph& from, const Layouts& layouts)
      : from_(from), layouts_(layouts), places_(static_cast<std::size_t>(from.size())) {}

  Graph run() {
    for (NodeId id = 0; id < from_.size(); ++id) {
      append(id);
    }
    for (const Output& output : from_.outputs()) {
      to_->add_output(plain(output.node),
                      output.name,
                      output.overwrites == kNoNode ? kNoNode : plain(output.overwrites));
    }
    return std::move(*to_);
  }

 private:
  /// Where a value lies in the new graph, in each layout that somebody asked for.
  struct Places {
    NodeId plain = kNoNode;
    NodeId blocked = kNoNode;
  };

  Places& places(NodeId id) { return places_[static_cast<std::size_t>(id)]; }
  const Operation& any_operation(NodeId id) const { return *from_.node(id).operation; }

  NodeId plain(NodeId id) {
    Places& p = places(id);
    if (p.plain == kNoNode) {
      p.plain = any_operation(id).moved_from_blocks(to_, p.blocked, layouts_.block(id));
    }
    return p.plain;
  }
  NodeId blocked(NodeId id, Index block, const Operation& reader) {
    Places& p = places(id);
    if (p.blocked == kNoNode) {
      p.blocked = reader.moved_to_blocks(to_, p.plain, block);
    }
    return p.blocked;
  }
  void append(NodeId id) {
    Node node = from_.node(id);
    const Index block = layouts_.block(id);
    for (NodeId& input : node.data) {
      input = places(input).plain != kNoNode ? places(input).plain : places(input).blocked;
    }
    const bool prefers = layouts_.preferred(id) > 0;
    const bool first_blocked = prefers && layouts_.block(node.in[0]) == layouts_.preferred(id);
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      const NodeId input = node.in[i];
      const bool in_blocks =
          prefers ? i == 0 && first_blocked : block > 0 && from_.node(input).shape == node.shape;
      node.in[i] = in_blocks
                       ? blocked(input, prefers ? layouts_.preferred(id) : block, *node.operation)
                       : plain(input);
    }
    if (prefers && (first_blocked || block > 0)) {
      node.operation = node.operation->in_blocks(first_blocked ? layouts_.preferred(id) : 0, block);
    }
    const NodeId now = to_->append(std::move(node));
    (block > 0 ? places(id).blocked : places(id).plain) = now;
  }

  const Graph& from_;
  const Layouts& layouts_;
  std::shared_ptr<Graph> to_ = std::make_shared<Graph>();
  std::vector<Places> places_;
};

}  // namespace

Graph choose_layouts(const Graph& graph) {
  const Layouts layouts(graph);
  return layouts.any() ? Mover(graph, layouts).run() : graph;
}

}  // namespace fenestra::graph
