// Handles on a graph under construction: Value<T> and Data, with shapes known at run time, and the
// Builder that starts them.
//
// A handle that belongs to no graph is a constant; it joins the graph of what it is computed with.
// Operators on handles append nodes. One graph is built by one thread at a time.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/graph/graph.hpp>
#include <fenestra/tensor/selection.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <memory>
#include <string>
#include <utility>

namespace fenestra {

/// Base of the handles. It is in this namespace so that operators are found by their arguments.
class GraphHandle {
 public:
  /// Null for a constant.
  const std::shared_ptr<graph::Graph>& graph() const { return graph_; }
  graph::NodeId node() const { return node_; }

 protected:
  GraphHandle() = default;
  GraphHandle(std::shared_ptr<graph::Graph> graph, graph::NodeId node)
      : graph_(std::move(graph)), node_(node) {}

 private:
  std::shared_ptr<graph::Graph> graph_;
  graph::NodeId node_ = graph::kNoNode;
};

namespace graph {

/// A floating-point result of a node.
template <class T>
class Value : public GraphHandle {
 public:
  using Scalar = T;

  Value(Tensor<T> constant) : shape_(constant.shape()), constant_(std::move(constant)) {}
  Value(std::shared_ptr<Graph> graph, NodeId node)
      : GraphHandle(std::move(graph), node), shape_(this->graph()->node(node).shape) {}

  const Shape& shape() const { return shape_; }
  bool is_constant() const { return graph() == nullptr; }
  /// Of a constant.
  const Tensor<T>& constant() const { return constant_; }
  /// The node, in the graph `to`, which a constant joins.
  NodeId in(Graph& to) const { return is_constant() ? to.add_constant(constant_) : node(); }

 private:
  Shape shape_;
  Tensor<T> constant_;
};

/// Integers of a node: data that is given, the result of an operation on such, or a workspace.
class Data : public GraphHandle {
 public:
  /// Nothing, as `Selection()`.
  Data() = default;
  Data(Selection constant) : constant_(std::move(constant)) {}
  Data(Tensor<Index> constant) : constant_(std::move(constant)) {}
  Data(std::shared_ptr<Graph> graph, NodeId node) : GraphHandle(std::move(graph), node) {}

  bool is_constant() const { return graph() == nullptr; }
  const Selection& constant() const { return constant_; }
  NodeId in(Graph& to) const { return is_constant() ? to.add_constant(constant_) : node(); }
  SelectionType type() const {
    if (!is_constant()) {
      return graph()->selection_type(node());
    }
    return constant_.type();
  }
  Shape shape() const { return type().shape; }

 private:
  Selection constant_;
};

/// The graph that all handles which have one share, or null; throws `foreign_variable` where there
/// are two.
class CommonGraph {
 public:
  explicit CommonGraph(std::string_view op) : op_(op) {}
  void add(const GraphHandle& handle) {
    if (handle.graph() == nullptr) {
      return;
    }
    if (graph_ != nullptr && graph_ != handle.graph()) {
      throw Error(ErrorCode::foreign_variable,
                  std::string(op_) +
                      ": its inputs belong to two different graphs\n  fix: create all inputs with "
                      "one builder");
    }
    graph_ = handle.graph();
  }
  const std::shared_ptr<Graph>& graph() const { return graph_; }

 private:
  std::string_view op_;
  std::shared_ptr<Graph> graph_;
};

/// Starts a graph: what a run is given, and what comes out.
template <class T>
class Builder {
 public:
  Builder() : graph_(std::make_shared<Graph>()) {}
  /// Continues a graph.
  explicit Builder(Graph graph) : graph_(std::make_shared<Graph>(std::move(graph))) {}

  Value<T> input(const Shape& shape, std::string name) {
    require_storage(shape, name);
    return {graph_, graph_->add_input(DataTypeOf<T>::value, shape, std::move(name))};
  }
  Value<T> parameter(const Shape& shape, std::string name) {
    require_storage(shape, name);
    return {graph_, graph_->add_parameter(DataTypeOf<T>::value, shape, std::move(name))};
  }
  /// Integers that receive no gradient: labels, indices.
  Data data(const Shape& shape, std::string name) {
    require_storage(shape, name);
    return {graph_, graph_->add_data(shape, std::move(name))};
  }
  /// Values that receive no gradient: masks, weights of samples.
  Value<T> mask(const Shape& shape, std::string name) {
    require_storage(shape, name);
    return {graph_, graph_->add_mask(DataTypeOf<T>::value, shape, std::move(name))};
  }
  void output(const Value<T>& value, std::string name) {
    graph_->add_output(node_of(value, name), std::move(name));
  }
  /// At the end of a run, `value` replaces what `parameter` held.
  void update(const Value<T>& parameter, const Value<T>& value) {
    const std::string name = graph_->node(parameter.node()).name;
    graph_->add_output(node_of(value, name), name, parameter.node());
  }
  /// A handle on a node of the graph.
  Value<T> value(NodeId node) const { return {graph_, node}; }
  /// The graph so far.
  const Graph& graph() const { return *graph_; }

 private:
  NodeId node_of(const Value<T>& value, std::string_view name) {
    if (!value.is_constant() && value.graph() != graph_) {
      throw Error(ErrorCode::foreign_variable,
                  "builder: output \"" + std::string(name) +
                      "\" belongs to another graph\n  fix: compute it from this builder's inputs");
    }
    return value.in(*graph_);
  }
  static void require_storage(const Shape& shape, std::string_view name) {
    if (!shape.elements()) {
      throw Error(ErrorCode::overflow,
                  "builder: no storage can hold \"" + std::string(name) + "\" of shape " +
                      to_string(shape) + "\n  fix: extents of 0 or more, and fewer elements");
    }
  }

  std::shared_ptr<Graph> graph_;
};

}  // namespace graph

}  // namespace fenestra
