// The two sweeps. The reverse one visits nodes and adds cotangents in the order in which a tape
// would, so that compiled gradients have the bits of eager ones.
#include <fenestra/graph/differentiate.hpp>

#include <memory>
#include <string>
#include <utility>

namespace fenestra::graph {

namespace {

NodeId add_filled(Graph& graph, DataType type, const Shape& shape, int value) {
  if (type == DataType::f32) {
    return graph.add_constant(Tensor<float>(shape, static_cast<float>(value)));
  }
  return graph.add_constant(Tensor<double>(shape, value));
}

void require_float(const Graph& graph, NodeId id, const char* pass) {
  if (id < 0 || id >= graph.size() || graph.node(id).type == DataType::index) {
    throw Error(
        ErrorCode::foreign_variable,
        std::string(pass) + ": %" + std::to_string(id) +
            " is no value of the graph\n  fix: inputs, parameters or results of operations");
  }
}

/// Nodes that depend on one of `wrt`, up to and including the last node of the original graph.
std::vector<bool> dependents(const Graph& graph, std::span<const NodeId> wrt) {
  std::vector<bool> depends(static_cast<std::size_t>(graph.size()));
  for (const NodeId id : wrt) {
    depends[static_cast<std::size_t>(id)] = true;
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const NodeId input : graph.node(id).in) {
      if (depends[static_cast<std::size_t>(input)]) {
        depends[static_cast<std::size_t>(id)] = true;
      }
    }
  }
  return depends;
}

std::string name_of(const Graph& graph, NodeId id) {
  const std::string& name = graph.node(id).name;
  return name.empty() ? std::to_string(id) : name;
}

}  // namespace

std::vector<NodeId> differentiable(const Graph& graph) {
  std::vector<NodeId> result;
  for (const NodeId id : graph.arguments()) {
    if (graph.node(id).kind != NodeKind::data) {
      result.push_back(id);
    }
  }
  return result;
}

Graph reverse(const Graph& graph,
              std::span<const std::size_t> outputs,
              std::span<const NodeId> wrt,
              Seed seed) {
  for (const NodeId id : wrt) {
    require_float(graph, id, "reverse");
  }
  const std::vector<bool> depends = dependents(graph, wrt);
  const NodeId original = graph.size();
  const auto result = std::make_shared<Graph>(graph);
  std::vector<NodeId> bars(static_cast<std::size_t>(original), kNoNode);
  const auto add = [&](NodeId to, NodeId term, const Operation& by) {
    NodeId& bar = bars[static_cast<std::size_t>(to)];
    bar = bar == kNoNode ? term : by.sum(result, bar, term);
  };
  for (const std::size_t at : outputs) {
    const Output& output = graph.outputs()[at];
    require_float(graph, output.node, "reverse");
    const Node& node = graph.node(output.node);
    if (seed == Seed::one && node.elements() != 1) {
      throw Error(ErrorCode::shape_mismatch,
                  "reverse: output \"" + output.name + "\" is " + to_string(node.shape) +
                      ", needed a single element\n  fix: sum or mean of it, or a seed");
    }
    const NodeId y_bar = seed == Seed::one
                             ? add_filled(*result, node.type, node.shape, 1)
                             : result->add_input(node.type, node.shape, output.name + "_bar");
    // An output without an operation that depends on something is one of `wrt` itself.
    NodeId& bar = bars[static_cast<std::size_t>(output.node)];
    if (bar != kNoNode && !node.operation) {
      throw Error(ErrorCode::foreign_variable,
                  "reverse: input %" + std::to_string(output.node) +
                      " is two outputs at once\n  fix: differentiate one of them");
    }
    if (bar == kNoNode) {
      bar = y_bar;
    } else {
      add(output.node, y_bar, *node.operation);
    }
  }
  for (NodeId id = original - 1; id >= 0; --id) {
    const NodeId y_bar = bars[static_cast<std::size_t>(id)];
    // A copy: the rule appends nodes.
    const Node node = graph.node(id);
    if (y_bar == kNoNode || !node.operation || !depends[static_cast<std::size_t>(id)]) {
      continue;
    }
    std::vector<bool> needed;
    bool any = false;
    for (const NodeId input : node.in) {
      needed.push_back(depends[static_cast<std::size_t>(input)]);
      any = any || needed.back();
    }
    if (!any) {
      continue;
    }
    std::vector<NodeId> parts(node.in.size(), kNoNode);
    node.operation->vjp(result, id, y_bar, needed, parts);
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      if (needed[i] && parts[i] != kNoNode) {
        add(node.in[i], parts[i], *node.operation);
      }
    }
  }
  for (const NodeId id : wrt) {
    NodeId bar = bars[static_cast<std::size_t>(id)];
    if (bar == kNoNode) {
      bar = add_filled(*result, graph.node(id).type, graph.node(id).shape, 0);
    }
    result->add_output(bar, name_of(graph, id) + "_bar");
  }
  return std::move(*result);
}

Graph forward(const Graph& graph, std::span<const NodeId> wrt) {
  const auto result = std::make_shared<Graph>(graph);
  std::vector<NodeId> dots(static_cast<std::size_t>(graph.size()), kNoNode);
  for (const NodeId id : wrt) {
    require_float(graph, id, "forward");
    const Node& node = graph.node(id);
    dots[static_cast<std::size_t>(id)] =
        result->add_input(node.type, node.shape, name_of(graph, id) + "_dot");
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    NodeId& dot = dots[static_cast<std::size_t>(id)];
    const Node& node = graph.node(id);
    if (!node.operation || dot != kNoNode) {
      continue;
    }
    std::vector<NodeId> in;
    bool moves = false;
    for (const NodeId input : node.in) {
      in.push_back(dots[static_cast<std::size_t>(input)]);
      moves = moves || in.back() != kNoNode;
    }
    if (moves) {
      dot = node.operation->jvp(result, id, in);
    }
  }
  for (const Output& output : graph.outputs()) {
    NodeId dot = dots[static_cast<std::size_t>(output.node)];
    const Node& node = graph.node(output.node);
    require_float(graph, output.node, "forward");
    if (dot == kNoNode) {
      dot = add_filled(*result, node.type, node.shape, 0);
    }
    result->add_output(dot, output.name + "_dot");
  }
  return std::move(*result);
}

}  // namespace fenestra::graph
