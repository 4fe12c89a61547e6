// The two sweeps. The reverse one visits nodes and adds cotangents in the order in which a tape
// would, so that compiled gradients have the bits of eager ones.
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/engine/operation.hpp>
#include <fenestra/engine/rules.hpp>
#include <fenestra/graph/names.hpp>
#include <fenestra/graph/operation.hpp>

#include <algorithm>
#include <memory>
#include <optional>
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

/// The primitive that an operation is: passes of the planner alone append others, and nobody
/// differentiates what they made.
template <class T>
const Primitive<T>& primitive_of(const Operation& operation) {
  return dynamic_cast<const OperationOn<T>&>(operation).primitive();
}

/// Calls `rule` with an Appending of the scalar of `type`.
template <class Rule>
auto on_values(const std::shared_ptr<Graph>& graph, DataType type, const Rule& rule) {
  return type == DataType::f32 ? rule(Appending<float>(graph)) : rule(Appending<double>(graph));
}

/// Appends what pulls the cotangent `y_bar` of `node` back, and puts the cotangent of every input i
/// with `needed[i]` into `bars[i]`, or leaves kNoNode for zero.
void pull_back(const std::shared_ptr<Graph>& graph,
               NodeId node,
               NodeId y_bar,
               const std::vector<bool>& needed,
               std::vector<NodeId>& bars) {
  on_values(graph, graph->node(node).type, [&]<class T>(const Appending<T>& to) {
    std::vector<std::optional<fenestra::Value<T>>> found(needed.size());
    const std::shared_ptr<const Operation> operation = graph->node(node).operation;
    primitive_of<T>(*operation).vjp(to.saved(node), to.value(y_bar), needed, found);
    for (std::size_t i = 0; i < needed.size(); ++i) {
      bars[i] = to.node(found[i]);
    }
  });
}

/// Appends the tangent of `node`; dots[i] is that of input i, kNoNode for zero, as is the result.
NodeId push_forward(const std::shared_ptr<Graph>& graph,
                    NodeId node,
                    const std::vector<NodeId>& dots) {
  return on_values(graph, graph->node(node).type, [&]<class T>(const Appending<T>& to) {
    std::vector<std::optional<fenestra::Value<T>>> values;
    for (const NodeId dot : dots) {
      values.push_back(to.optional_value(dot));
    }
    const std::shared_ptr<const Operation> operation = graph->node(node).operation;
    return to.node(primitive_of<T>(*operation).jvp(to.saved(node), values));
  });
}

/// Appends a + b, both of one shape: how cotangents of one node are added.
NodeId add_cotangents(const std::shared_ptr<Graph>& graph, NodeId a, NodeId b) {
  return on_values(graph, graph->node(a).type, [&]<class T>(const Appending<T>& to) {
    fenestra::Value<T> sum = to.value(a);
    accumulate(sum, to.value(b));
    return to.node(sum);
  });
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
  std::vector<std::string> names(static_cast<std::size_t>(original));
  // What was appended since the last call belongs to `id`.
  const auto name_after = [&](NodeId id) {
    const Node& node = graph.node(id);
    names.resize(static_cast<std::size_t>(result->size()),
                 node.operation ? backward_name(node.name) : std::string());
  };
  const auto add = [&](NodeId to, NodeId term, NodeId by) {
    NodeId& bar = bars[static_cast<std::size_t>(to)];
    bar = bar == kNoNode ? term : add_cotangents(result, bar, term);
    name_after(by);
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
    add(output.node, y_bar, output.node);
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
    pull_back(result, id, y_bar, needed, parts);
    name_after(id);
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      if (needed[i] && parts[i] != kNoNode) {
        add(node.in[i], parts[i], id);
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
  const bool has_names = std::any_of(
      names.begin(), names.end(), [](const std::string& name) { return !name.empty(); });
  return has_names ? with_names(*result, names) : std::move(*result);
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
      dot = push_forward(result, id, in);
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
