// Who reads what: for passes that put operations together. Internal: not installed.
#pragma once

#include <fenestra/graph/graph.hpp>

#include <vector>

namespace fenestra::graph {

/// How often the result of each node is read, outputs counted.
inline std::vector<int> count_readers(const Graph& graph) {
  std::vector<int> readers(static_cast<std::size_t>(graph.size()));
  const auto count = [&](NodeId id) { ++readers[static_cast<std::size_t>(id)]; };
  for (const Node& node : graph.nodes()) {
    for (const auto* list : {&node.in, &node.data}) {
      for (const NodeId input : *list) {
        count(input);
      }
    }
  }
  for (const Output& output : graph.outputs()) {
    count(output.node);
  }
  return readers;
}

}  // namespace fenestra::graph
