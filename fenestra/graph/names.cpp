// Names of operations.
#include <fenestra/graph/copier.hpp>
#include <fenestra/graph/names.hpp>

#include <utility>

namespace fenestra::graph {

namespace {

constexpr std::string_view kBackward = " backward";

}  // namespace

Graph with_names(const Graph& graph, std::span<const std::string> names) {
  Copier copier(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = copier.moved(id);
    const auto at = static_cast<std::size_t>(id);
    if (node.operation && at < names.size() && !names[at].empty()) {
      node.name = names[at];
    }
    copier.set_place(id, copier.append(std::move(node)));
  }
  return copier.finish();
}

std::string backward_name(std::string_view name) {
  return name.empty() ? std::string() : std::string(name) + std::string(kBackward);
}

PartName part_name(std::string_view name) {
  const bool is_backward = name.ends_with(kBackward);
  return {std::string(name.substr(0, name.size() - (is_backward ? kBackward.size() : 0))),
          is_backward};
}

}  // namespace fenestra::graph
