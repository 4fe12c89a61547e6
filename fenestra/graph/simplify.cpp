// Dead-code elimination, common subexpressions, constant folding.
#include <fenestra/graph/copier.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/graph/run_once.hpp>
#include <fenestra/graph/simplify.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fenestra::graph {

namespace {

std::span<const std::byte> constant_bytes(const Node& node) {
  const auto bytes = [](const auto& tensor) { return std::as_bytes(tensor.values()); };
  if (const auto* f32 = std::get_if<Tensor<float>>(&node.constant)) {
    return bytes(*f32);
  }
  if (const auto* f64 = std::get_if<Tensor<double>>(&node.constant)) {
    return bytes(*f64);
  }
  const Selection& selection = std::get<Selection>(node.constant);
  return selection.is_compact() ? bytes(selection.taps()) : bytes(selection.indices());
}

bool is_compact(const Node& node) {
  const auto* selection = std::get_if<Selection>(&node.constant);
  return selection != nullptr && selection->is_compact();
}

/// Constants are compared by their bits: 0 and -0 differ, a NaN equals itself.
bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.type != b.type || a.shape != b.shape) {
    return false;
  }
  if (a.kind == NodeKind::constant) {
    const auto x = constant_bytes(a);
    const auto y = constant_bytes(b);
    return is_compact(a) == is_compact(b) && x.size() == y.size() &&
           (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
  }
  return a.in == b.in && a.data == b.data && a.operation->equals(*b.operation);
}

std::size_t hash_of(const Node& node) {
  std::size_t hash = static_cast<std::size_t>(node.elements());
  const auto mix = [&](std::size_t value) { hash = hash * 1099511628211u + value; };
  if (node.kind == NodeKind::constant) {
    const auto bytes = constant_bytes(node);
    mix(std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    return hash;
  }
  mix(node.operation->hash());
  for (const auto* list : {&node.in, &node.data}) {
    for (const NodeId input : *list) {
      mix(static_cast<std::size_t>(input));
    }
  }
  return hash;
}

}  // namespace

Graph eliminate_dead(const Graph& graph) {
  std::vector<bool> alive(static_cast<std::size_t>(graph.size()));
  for (const Output& output : graph.outputs()) {
    alive[static_cast<std::size_t>(output.node)] = true;
  }
  for (NodeId id = graph.size() - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    if (!alive[static_cast<std::size_t>(id)]) {
      continue;
    }
    for (const auto* list : {&node.in, &node.data}) {
      for (const NodeId input : *list) {
        alive[static_cast<std::size_t>(input)] = true;
      }
    }
  }
  Copier copier(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (alive[static_cast<std::size_t>(id)] || graph.node(id).is_argument()) {
      copier.set_place(id, copier.append(copier.moved(id)));
    }
  }
  return copier.finish();
}

Graph eliminate_aliases(const Graph& graph) {
  Copier copier(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = copier.moved(id);
    NodeId source = kNoNode;
    if (node.operation && node.operation->aliases_input()) {
      source = node.in[0];
      while (copier.to().node(source).shape != node.shape) {
        const Node& from = copier.to().node(source);
        if (!from.operation || !from.operation->aliases_input()) {
          source = kNoNode;
          break;
        }
        source = from.in[0];
      }
    }
    copier.set_place(id, source != kNoNode ? source : copier.append(std::move(node)));
  }
  return copier.finish();
}

Graph eliminate_common(const Graph& graph) {
  Copier copier(graph);
  std::unordered_multimap<std::size_t, NodeId> seen;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = copier.moved(id);
    if (node.is_argument()) {
      copier.set_place(id, copier.append(std::move(node)));
      continue;
    }
    const std::size_t hash = hash_of(node);
    const auto [first, last] = seen.equal_range(hash);
    const auto found = std::find_if(
        first, last, [&](const auto& entry) { return same(copier.to().node(entry.second), node); });
    if (found != last) {
      copier.set_place(id, found->second);
      continue;
    }
    const NodeId now = copier.append(std::move(node));
    copier.set_place(id, now);
    seen.emplace(hash, now);
  }
  return copier.finish();
}

Graph fold_constants(const Graph& graph, std::size_t most_bytes) {
  Copier copier(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = copier.moved(id);
    if (node.kind == NodeKind::operation && node.workspace.form == SelectionForm::none) {
      bool constant = true;
      std::size_t bytes = most_bytes;
      for (const auto* list : {&node.in, &node.data}) {
        for (const NodeId input : *list) {
          const Node& from = copier.to().node(input);
          constant = constant && from.kind == NodeKind::constant;
          bytes += from.bytes();
        }
      }
      if (constant && node.bytes() <= bytes) {
        node = run_once(copier.to(), node);
      }
    }
    copier.set_place(id, copier.append(std::move(node)));
  }
  return copier.finish();
}

Graph simplify(const Graph& graph) {
  Graph result = eliminate_dead(graph);
  verify(result);
  result = eliminate_aliases(result);
  verify(result);
  result = fold_constants(result);
  verify(result);
  result = eliminate_common(result);
  verify(result);
  result = eliminate_dead(result);
  verify(result);
  return result;
}

}  // namespace fenestra::graph
