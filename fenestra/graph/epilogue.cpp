// Readers, into the operations that they alone read.
#include <fenestra/graph/epilogue.hpp>
#include <fenestra/graph/names.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/graph/readers.hpp>
#include <fenestra/graph/simplify.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::graph {

Graph fuse_epilogues(const Graph& graph) {
  const std::vector<int> readers = count_readers(graph);
  const auto result = std::make_shared<Graph>();
  std::vector<std::string> names;
  std::vector<NodeId> places(readers.size(), kNoNode);
  const auto place = [&](NodeId id) -> NodeId& { return places[static_cast<std::size_t>(id)]; };
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph.node(id);
    for (auto* list : {&node.in, &node.data}) {
      for (NodeId& input : *list) {
        input = place(input);
      }
    }
    place(id) = result->append(std::move(node));
    const Node& reader = graph.node(id);
    if (!reader.runs() || reader.workspace.form != SelectionForm::none || !reader.data.empty()) {
      continue;
    }
    // Of two that could take it in, the later one: the other result is there by then.
    std::vector<NodeId> sources = reader.in;
    std::sort(sources.begin(), sources.end(), std::greater<>());
    for (const NodeId source : sources) {
      const Node& from = graph.node(source);
      if (readers[static_cast<std::size_t>(source)] != 1 || !from.runs() ||
          from.shape != reader.shape || from.workspace.form != SelectionForm::none) {
        continue;
      }
      // What was appended for the source may have taken in others already.
      const auto operation = result->node(place(source)).operation;
      const NodeId both = operation->with_epilogue(result, place(source), place(id));
      if (both != kNoNode) {
        const auto at = static_cast<std::size_t>(place(source));
        const std::string name = at < names.size() && !names[at].empty() ? names[at] : from.name;
        names.resize(static_cast<std::size_t>(result->size()));
        names.back() = name;
        place(id) = both;
        break;
      }
    }
  }
  for (const Output& output : graph.outputs()) {
    result->add_output(place(output.node),
                       output.name,
                       output.overwrites == kNoNode ? kNoNode : place(output.overwrites));
  }
  return eliminate_dead(names.empty() ? *result : with_names(*result, names));
}

}  // namespace fenestra::graph
