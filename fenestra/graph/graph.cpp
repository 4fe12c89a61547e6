// Building, printing and verifying graphs.
#include <fenestra/graph/graph.hpp>
#include <fenestra/graph/operation.hpp>

#include <algorithm>
#include <functional>
#include <sstream>
#include <utility>

namespace fenestra::graph {

std::size_t Operation::hash() const {
  const std::hash<std::string_view> text;
  return text(name()) * 31 + text(attributes());
}

bool Node::runs() const { return kind == NodeKind::operation && !operation->aliases_input(); }

NodeId Graph::append(Node node) {
  nodes_.push_back(std::move(node));
  return size() - 1;
}

NodeId Graph::add_input(DataType type, const Shape& shape, std::string name) {
  return append({.kind = NodeKind::input, .type = type, .shape = shape, .name = std::move(name)});
}

NodeId Graph::add_parameter(DataType type, const Shape& shape, std::string name) {
  return append(
      {.kind = NodeKind::parameter, .type = type, .shape = shape, .name = std::move(name)});
}

NodeId Graph::add_data(const Shape& shape, std::string name) {
  return append(
      {.kind = NodeKind::data, .type = DataType::index, .shape = shape, .name = std::move(name)});
}

NodeId Graph::add_mask(DataType type, const Shape& shape, std::string name) {
  return append({.kind = NodeKind::data, .type = type, .shape = shape, .name = std::move(name)});
}

NodeId Graph::add_constant(const Selection& value) {
  Node node{.kind = NodeKind::constant,
            .type = DataType::index,
            .shape = value.is_compact() ? value.taps().shape() : value.indices().shape()};
  node.constant = value;
  return append(std::move(node));
}

NodeId Graph::add_operation(std::shared_ptr<const Operation> operation,
                            std::vector<NodeId> in,
                            std::vector<NodeId> data) {
  std::vector<Shape> shapes;
  for (const NodeId input : in) {
    shapes.push_back(node(input).shape);
  }
  Node result{.kind = NodeKind::operation,
              .type = operation->result_type(),
              .shape = operation->result_shape(shapes)};
  result.workspace = operation->workspace();
  result.operation = std::move(operation);
  result.in = std::move(in);
  result.data = std::move(data);
  return append(std::move(result));
}

void Graph::add_output(NodeId node, std::string name, NodeId overwrites) {
  outputs_.push_back({node, std::move(name), overwrites});
}

void Graph::restrict_data(NodeId id, DataRange range) {
  Node& node = nodes_[static_cast<std::size_t>(id)];
  if (node.kind == NodeKind::data &&
      std::find(node.ranges.begin(), node.ranges.end(), range) == node.ranges.end()) {
    node.ranges.push_back(std::move(range));
  }
}

std::vector<NodeId> Graph::arguments() const {
  std::vector<NodeId> result;
  for (NodeId id = 0; id < size(); ++id) {
    if (node(id).is_argument()) {
      result.push_back(id);
    }
  }
  return result;
}

std::optional<Split> Graph::split(NodeId id) const {
  const Node& of = node(id);
  if (!of.operation || of.shape.rank() == 0) {
    return std::nullopt;
  }
  std::vector<Shape> shapes;
  for (const NodeId input : of.in) {
    shapes.push_back(node(input).shape);
  }
  return of.operation->split(shapes);
}

SelectionType Graph::selection_type(NodeId id) const {
  const Node& n = node(id);
  if (n.type != DataType::index) {
    return n.workspace;
  }
  const auto* constant = std::get_if<Selection>(&n.constant);
  const bool taps = constant != nullptr && constant->is_compact();
  return {taps ? SelectionForm::taps : SelectionForm::indices, n.shape};
}

std::string scalar_text(const Node& node) {
  std::ostringstream text;
  text.precision(9);
  if (const auto* f32 = std::get_if<Tensor<float>>(&node.constant); f32 && f32->size() == 1) {
    text << (*f32)[0];
  }
  if (const auto* f64 = std::get_if<Tensor<double>>(&node.constant); f64 && f64->size() == 1) {
    text << (*f64)[0];
  }
  return text.str();
}

namespace {

std::string operation_text(const Graph& graph, const Node& node) {
  std::string text(node.operation->name());
  text += "(";
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    text += (i > 0 ? ", " : "") + reference(node.in[i]);
  }
  for (std::size_t i = 0; i < node.data.size(); ++i) {
    const bool own = graph.node(node.data[i]).type == DataType::index;
    text += (i > 0             ? ", "
             : node.in.empty() ? ""
                               : "; ") +
            reference(node.data[i]) + (own ? "" : ".workspace");
  }
  text += ")";
  if (const std::string attributes = node.operation->attributes(); !attributes.empty()) {
    text += " {" + attributes + "}";
  }
  return text;
}

std::string node_text(const Graph& graph, const Node& node) {
  switch (node.kind) {
    case NodeKind::constant: {
      const std::string number = scalar_text(node);
      return number.empty() ? "constant" : "constant " + number;
    }
    case NodeKind::operation: return operation_text(graph, node);
    default: return std::string(node_kind_name(node.kind)) + " \"" + node.name + "\"";
  }
}

[[noreturn]] void complain(const Graph& graph, NodeId id, ErrorCode code, const std::string& text) {
  const Node& node = graph.node(id);
  throw Error(
      code,
      "graph: node " + reference(id) + " = " +
          (node.operation ? std::string(node.operation->name())
                          : std::string(node_kind_name(node.kind)) + " \"" + node.name + "\"") +
          ": " + text);
}

void verify_operation(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.operation) {
    throw Error(ErrorCode::invalid_graph, "graph: node " + reference(id) + " has no operation");
  }
  const auto earlier = [&](NodeId input) {
    if (input < 0 || input >= id) {
      complain(graph,
               id,
               ErrorCode::invalid_graph,
               "reads " + reference(input) + ", which does not come before it");
    }
  };
  std::vector<Shape> shapes;
  for (const NodeId input : node.in) {
    earlier(input);
    if (graph.node(input).type != node.operation->result_type()) {
      complain(graph,
               id,
               ErrorCode::dtype_mismatch,
               "reads " + reference(input) + " of " +
                   std::string(data_type_name(graph.node(input).type)) + " as " +
                   std::string(data_type_name(node.operation->result_type())));
    }
    shapes.push_back(graph.node(input).shape);
  }
  for (const NodeId input : node.data) {
    earlier(input);
    if (graph.selection_type(input).form == SelectionForm::none) {
      complain(graph,
               id,
               ErrorCode::dtype_mismatch,
               "reads indices of " + reference(input) + ", which leaves none");
    }
  }
  const Shape shape = node.operation->result_shape(shapes);
  if (shape != node.shape || node.type != node.operation->result_type() ||
      !(node.workspace == node.operation->workspace())) {
    complain(graph,
             id,
             ErrorCode::shape_mismatch,
             "is recorded as " + std::string(data_type_name(node.type)) + " " +
                 to_string(node.shape) + ", its operation gives " +
                 std::string(data_type_name(node.operation->result_type())) + " " +
                 to_string(shape));
  }
}

void verify_constant(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const auto shape = [&]() -> std::optional<Shape> {
    if (const auto* f32 = std::get_if<Tensor<float>>(&node.constant)) {
      return node.type == DataType::f32 ? std::optional(f32->shape()) : std::nullopt;
    }
    if (const auto* f64 = std::get_if<Tensor<double>>(&node.constant)) {
      return node.type == DataType::f64 ? std::optional(f64->shape()) : std::nullopt;
    }
    if (std::holds_alternative<Selection>(node.constant)) {
      return node.type == DataType::index ? std::optional(graph.selection_type(id).shape)
                                          : std::nullopt;
    }
    return std::nullopt;
  }();
  if (shape != node.shape) {
    complain(graph, id, ErrorCode::dtype_mismatch, "its value is not of its type and shape");
  }
}

void verify_group(const Graph& graph, const Group& group) {
  if (group.members.empty() || group.piece < 1) {
    throw Error(ErrorCode::invalid_graph, "graph: a group is empty");
  }
  const auto is_member = [&](NodeId id) {
    return std::binary_search(group.members.begin(), group.members.end(), id);
  };
  for (const NodeId id : group.members) {
    if (id < 0 || id >= graph.size() || !graph.node(id).operation) {
      throw Error(ErrorCode::invalid_graph,
                  "graph: a group names " + reference(id) + ", which is no operation");
    }
    const Node& node = graph.node(id);
    const std::optional<Split> split = graph.split(id);
    if (!split || node.shape[0] != group.samples) {
      complain(graph,
               id,
               ErrorCode::shape_mismatch,
               "is in a group of " + std::to_string(group.samples) + " samples");
    }
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      if (!split->in[i] && is_member(node.in[i])) {
        complain(graph, id, ErrorCode::invalid_graph, "reads one of its group whole");
      }
    }
  }
}

}  // namespace

std::string to_string(const Graph& graph) {
  std::string text;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    text += reference(id) + " = " + node_text(graph, node) + " : " +
            std::string(data_type_name(node.type)) + " " + to_string(node.shape);
    if (node.workspace.form != SelectionForm::none) {
      text += std::string(", leaves ") +
              (node.workspace.form == SelectionForm::taps ? "taps " : "indices ") +
              to_string(node.workspace.shape);
    }
    for (const DataRange& range : node.ranges) {
      text += ", " + std::to_string(range.least) + " to " + std::to_string(range.limit - 1);
    }
    text += "\n";
  }
  for (const Group& group : graph.groups()) {
    text += "group";
    for (const NodeId id : group.members) {
      text += " " + reference(id);
    }
    text += ": " + std::to_string(group.samples) + " samples, " + std::to_string(group.piece) +
            " at a time\n";
  }
  for (const Output& output : graph.outputs()) {
    text += "output \"" + output.name + "\" = " + reference(output.node) +
            (output.overwrites != kNoNode ? " over " + reference(output.overwrites) : "") + "\n";
  }
  return text;
}

void verify(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!node.shape.elements()) {
      complain(graph, id, ErrorCode::overflow, "no storage can hold " + to_string(node.shape));
    }
    if (node.kind == NodeKind::operation) {
      verify_operation(graph, id);
    } else if (node.kind == NodeKind::constant) {
      verify_constant(graph, id);
    } else if (node.type == DataType::index && node.kind != NodeKind::data) {
      complain(graph, id, ErrorCode::invalid_graph, "indices that are given are data");
    }
  }
  for (const Group& group : graph.groups()) {
    verify_group(graph, group);
  }
  std::vector<bool> overwritten(static_cast<std::size_t>(graph.size()));
  for (const Output& output : graph.outputs()) {
    if (output.node < 0 || output.node >= graph.size()) {
      throw Error(ErrorCode::invalid_graph,
                  "graph: output \"" + output.name + "\" is " + reference(output.node) +
                      ", the graph has " + std::to_string(graph.size()) + " nodes");
    }
    if (output.overwrites == kNoNode) {
      continue;
    }
    if (output.overwrites < 0 || output.overwrites >= graph.size() ||
        graph.node(output.overwrites).kind != NodeKind::parameter) {
      throw Error(ErrorCode::invalid_graph,
                  "graph: output \"" + output.name + "\" overwrites " +
                      reference(output.overwrites) + ", which is no parameter");
    }
    const Node& from = graph.node(output.node);
    const Node& to = graph.node(output.overwrites);
    const auto at = static_cast<std::size_t>(output.overwrites);
    if (from.shape != to.shape || from.type != to.type || overwritten[at]) {
      complain(
          graph,
          output.overwrites,
          overwritten[at] ? ErrorCode::invalid_graph : ErrorCode::shape_mismatch,
          overwritten[at] ? "is overwritten twice" : "is overwritten by " + to_string(from.shape));
    }
    overwritten[at] = true;
  }
}

}  // namespace fenestra::graph
