// Primitives as operations of a graph: what passes ask. Rules are the primitive's own, called on
// values whose nodes they append. The one place that knows both sides.
#pragma once

#include <fenestra/engine/primitive.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/graph/value.hpp>

#include <algorithm>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra {

namespace graph {

/// Owns through the base class, so that no code of the owner is compiled for each operation.
inline std::shared_ptr<const Operation> shared_operation(const Operation* operation) {
  return std::shared_ptr<const Operation>(operation);
}

/// The nodes of one graph as values on a level of their own, for rules that append to it.
template <class T>
class Appending {
 public:
  explicit Appending(const std::shared_ptr<Graph>& graph) : graph_(graph), level_(graph->level()) {}

  fenestra::Value<T> value(NodeId id) const { return {level_, Value<T>(graph_, id)}; }
  std::optional<fenestra::Value<T>> optional_value(NodeId id) const {
    return id == kNoNode ? std::nullopt : std::optional(value(id));
  }
  /// The node that a rule's result is; a constant joins the graph.
  NodeId node(const fenestra::Value<T>& value) const {
    const auto* traced = value.template as<Value<T>>();
    return traced != nullptr ? traced->in(*graph_) : graph_->add_constant(value.plain());
  }
  NodeId node(const std::optional<fenestra::Value<T>>& value) const {
    return value ? node(*value) : kNoNode;
  }
  /// Everything a rule might read; what it does not read is no node's input and dies.
  Saved<fenestra::Value<T>> saved(NodeId id) const {
    const Node& node = graph_->node(id);
    Saved<fenestra::Value<T>> saved;
    for (const NodeId input : node.in) {
      saved.in.emplace_back(value(input));
    }
    saved.y = value(id);
    if (node.workspace.form != SelectionForm::none) {
      saved.workspace = Indices(level_, Data(graph_, id));
    }
    for (const NodeId input : node.data) {
      saved.data.emplace_back(level_, Data(graph_, input));
    }
    return saved;
  }

 private:
  std::shared_ptr<Graph> graph_;
  Level level_;
};

/// A primitive as an operation on values of T.
template <class T>
class OperationOn final : public Operation {
 public:
  explicit OperationOn(std::shared_ptr<const Primitive<T>> primitive)
      : primitive_(std::move(primitive)) {}

  const Primitive<T>& primitive() const { return *primitive_; }
  std::string_view name() const override { return primitive_->name(); }
  std::string attributes() const override { return primitive_->attributes(); }
  bool equals(const Operation& other) const override {
    const auto* alike = dynamic_cast<const OperationOn*>(&other);
    return alike != nullptr && primitive_->equals(*alike->primitive_);
  }
  DataType result_type() const override { return DataTypeOf<T>::value; }
  Shape result_shape(std::span<const Shape> in) const override {
    return primitive_->result_shape(in[0]);
  }
  SelectionType workspace() const override { return primitive_->workspace(); }
  bool aliases_input() const override { return primitive_->aliases_input(); }
  bool may_overwrite(int i) const override { return primitive_->may_overwrite(i); }
  std::optional<Split> split(std::span<const Shape> in) const override {
    return primitive_->split(in);
  }
  std::shared_ptr<const Operation> piece(Index count) const override {
    auto piece = primitive_->piece(count);
    return piece == nullptr ? nullptr : shared_operation(new OperationOn(std::move(piece)));
  }
  std::optional<TileOf<std::shared_ptr<const Operation>>> tile(std::span<const Shape> in,
                                                               const Box& result) const override {
    auto tile = primitive_->tile(in, result);
    if (!tile) {
      return std::nullopt;
    }
    return {{tile->result,
             std::move(tile->in),
             shared_operation(new OperationOn(std::move(tile->part))),
             tile->axes}};
  }
  std::string layout() const override { return primitive_->layout(); }
  std::optional<Condition> condition(int i) const override { return primitive_->condition(i); }
  Index multiply_adds() const override { return primitive_->multiply_adds(); }
  std::unique_ptr<const Kernel> prepare() const override { return primitive_->prepare(); }

  NodeId folded(const std::shared_ptr<Graph>& graph, NodeId node, NodeId source) const override {
    const Appending<T> to(graph);
    const std::optional<ChannelMap<V>> map = primitive_->channel_map(to.saved(node));
    if (!map) {
      return kNoNode;
    }
    const NodeId scaled = graph->node(source).operation->scaled(
        graph, source, to.node(map->scale), to.node(map->shift));
    const Shape shape = graph->node(node).shape;
    return scaled == kNoNode ? kNoNode : to.node(reshape(to.value(scaled), shape));
  }
  NodeId scaled(const std::shared_ptr<Graph>& graph,
                NodeId node,
                NodeId scale,
                NodeId shift) const override {
    const Appending<T> to(graph);
    return to.node(primitive_->scaled(to.saved(node), to.value(scale), to.value(shift)));
  }
  NodeId with_epilogue(const std::shared_ptr<Graph>& graph,
                       NodeId node,
                       NodeId reader) const override {
    const Node& next = graph->node(reader);
    const auto* other = dynamic_cast<const OperationOn*>(next.operation.get());
    const auto input = std::find(next.in.begin(), next.in.end(), node);
    if (other == nullptr || input == next.in.end()) {
      return kNoNode;
    }
    auto both = primitive_->with_epilogue(*other->primitive_,
                                          static_cast<std::size_t>(input - next.in.begin()));
    if (both == nullptr) {
      return kNoNode;
    }
    std::vector<NodeId> in = graph->node(node).in;
    in.insert(in.end(), next.in.begin(), input);
    in.insert(in.end(), input + 1, next.in.end());
    return graph->add_operation(
        shared_operation(new OperationOn(std::move(both))), std::move(in), graph->node(node).data);
  }

 private:
  using V = fenestra::Value<T>;

  std::shared_ptr<const Primitive<T>> primitive_;
};

/// A function of integers, as a small comparable struct.
template <class M>
concept DataMap = std::equality_comparable<M> &&
                  requires(const M& map, const Selection& data, Index* out, void* scratch) {
                    { M::name } -> std::convertible_to<std::string_view>;
                    { map.result_shape() } -> std::convertible_to<Shape>;
                    { map.scratch_bytes() } -> std::same_as<std::size_t>;
                    map.run(data, out, scratch);
                  };

/// The same as an operation.
template <DataMap M>
class DataOperationOf final : public Operation {
 public:
  explicit DataOperationOf(const M& map) : map_(map) {}

  std::string_view name() const override { return M::name; }
  std::string attributes() const override { return {}; }
  bool equals(const Operation& other) const override {
    const auto* alike = dynamic_cast<const DataOperationOf*>(&other);
    return alike != nullptr && alike->map_ == map_;
  }
  DataType result_type() const override { return DataType::index; }
  Shape result_shape(std::span<const Shape>) const override { return map_.result_shape(); }
  std::unique_ptr<const Kernel> prepare() const override {
    return std::unique_ptr<const Kernel>(new DataKernel(map_));
  }

 private:
  class DataKernel final : public Kernel {
   public:
    explicit DataKernel(const M& map) : map_(map) {}
    std::size_t scratch_bytes() const override { return map_.scratch_bytes(); }
    void run(const Call& call) const override {
      map_.run(call.data[0], static_cast<Index*>(call.out), call.scratch);
    }

   private:
    M map_;
  };

  M map_;
};

/// `map` of the integers `data`, which belong to a graph.
template <DataMap M>
Data apply_to_data(const M& map, const Data& data) {
  return {data.graph(),
          data.graph()->add_operation(
              shared_operation(new DataOperationOf<M>(map)), {}, {data.node()})};
}

/// The graph that the inputs share, or none where all of them are constants.
template <class T>
std::shared_ptr<Graph> common_graph(std::string_view name,
                                    std::span<const Value<T>> in,
                                    std::span<const Data> data) {
  CommonGraph common(name);
  for (const Value<T>& value : in) {
    common.add(value);
  }
  for (const Data& indices : data) {
    common.add(indices);
  }
  return common.graph();
}

template <class T>
NodeId append(Graph& graph,
              std::shared_ptr<const Operation> operation,
              std::span<const Value<T>> in,
              std::span<const Data> data) {
  std::vector<NodeId> inputs;
  for (const Value<T>& value : in) {
    inputs.push_back(value.in(graph));
  }
  std::vector<NodeId> indices;
  for (const Data& selection : data) {
    indices.push_back(selection.in(graph));
  }
  return graph.add_operation(std::move(operation), std::move(inputs), std::move(indices));
}

template <class T>
std::vector<Tensor<T>> constants_of(std::span<const Value<T>> in) {
  std::vector<Tensor<T>> values;
  for (const Value<T>& value : in) {
    values.push_back(value.constant());
  }
  return values;
}
inline std::vector<Selection> constants_of(std::span<const Data> data) {
  std::vector<Selection> selections;
  for (const Data& indices : data) {
    selections.push_back(indices.constant());
  }
  return selections;
}

}  // namespace graph

}  // namespace fenestra
