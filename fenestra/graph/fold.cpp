// Scales and shifts, into their sources.
#include <fenestra/graph/fold.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/graph/readers.hpp>

#include <utility>
#include <vector>

namespace fenestra::graph {

Graph fold_scales(const Graph& graph) {
  const std::vector<int> readers = count_readers(graph);
  const auto result = std::make_shared<Graph>();
  std::vector<NodeId> places(readers.size(), kNoNode);
  const auto place = [&](NodeId id) -> NodeId& { return places[static_cast<std::size_t>(id)]; };
  /// The operation behind aliases that nobody else reads.
  const auto source = [&](NodeId id) {
    while (readers[static_cast<std::size_t>(id)] == 1 && graph.node(id).operation) {
      if (graph.node(id).runs()) {
        return id;
      }
      id = graph.node(id).in[0];
    }
    return kNoNode;
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph.node(id);
    for (auto* list : {&node.in, &node.data}) {
      for (NodeId& input : *list) {
        input = place(input);
      }
    }
    const auto operation = node.operation;
    place(id) = result->append(std::move(node));
    if (!operation || graph.node(id).in.empty()) {
      continue;
    }
    if (const NodeId from = source(graph.node(id).in[0]); from != kNoNode) {
      const NodeId folded = operation->folded(result, place(id), place(from));
      place(id) = folded != kNoNode ? folded : place(id);
    }
  }
  for (const Output& output : graph.outputs()) {
    result->add_output(place(output.node),
                       output.name,
                       output.overwrites == kNoNode ? kNoNode : place(output.overwrites));
  }
  return std::move(*result);
}

}  // namespace fenestra::graph
