// Operators on graph values: how a primitive becomes an operation of a graph, and its derivative
// rules passes of one.
//
// The one place that knows both sides. A rule is the primitive's own, called on handles; what it
// returns are nodes. A primitive may offer, beside what ops/apply.hpp asks for,
// - attributes(): what distinguishes it, for people
// - may_overwrite(i): the result may be written over input i
// - multiply_adds()
// - condition(i): what the numbers of input i must fulfil
// - channel_map(saved): a scale and a shift per channel, where it does no more than that to input 0
// - scaled(saved, scale, shift): scale * y + shift in one operation, where it can take them in
// - split(shapes of the inputs) and piece(count): itself on a few samples of axis 0
// - prepare<T>(): itself with the kernel chosen and tables made; has run(in, data, out, workspace,
//   scratch), and may have kernel_name() and scratch_bytes()
#pragma once

#include <fenestra/graph/value.hpp>
#include <fenestra/ops/apply.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/kernel_scalar.hpp>
#include <fenestra/ops/reduce/primitives.hpp>
#include <fenestra/ops/reshape/reshape.hpp>

#include <cassert>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra {

template <KernelScalar T>
struct ValueTraits<graph::Value<T>> {
  using Scalar = T;
  using Indices = graph::Data;
  static constexpr int depth = 1;
  static constexpr bool has_elements = false;
};

template <class P, class T>
Applied<graph::Value<T>> apply_all(const P& primitive,
                                   std::span<const graph::Value<T>> in,
                                   std::span<const graph::Data> data,
                                   bool keep);

namespace graph {

// What a tape asks of a value. Filled values are repeated scalars: a constant of their size would
// take memory for as long as the program lives.

template <class T>
Value<T> filled_like(const Value<T>& value, T fill) {
  if (value.is_constant()) {
    return Tensor<T>(value.shape(), fill);
  }
  const Value<T> scalar(value.graph(), value.graph()->add_constant(Tensor<T>(Shape{}, fill)));
  return broadcast_to(scalar, value.shape());
}
template <class T>
Value<T> zeros_like(const Value<T>& value) {
  return filled_like(value, T(0));
}
template <class T>
Value<T> ones_like(const Value<T>& value) {
  return filled_like(value, T(1));
}
template <class T>
void accumulate(Value<T>& sum, const Value<T>& term) {
  sum = add(sum, term);
}

/// A primitive's run as a kernel.
template <class P, class T>
class KernelOf final : public Kernel {
 public:
  explicit KernelOf(const P& primitive) : prepared_(prepared(primitive)) {}

  std::string_view name() const override {
    if constexpr (requires { prepared_.kernel_name(); }) {
      return prepared_.kernel_name();
    } else {
      return {};
    }
  }
  std::size_t scratch_bytes() const override {
    if constexpr (requires { prepared_.scratch_bytes(); }) {
      return prepared_.scratch_bytes();
    } else {
      return 0;
    }
  }
  void run(const Call& call) const override {
    const std::span<const Tensor<T>> in(static_cast<const Tensor<T>*>(call.in), call.count);
    T* out = static_cast<T*>(call.out);
    if constexpr (kPrepares) {
      prepared_.run(in, call.data, out, call.workspace, call.scratch);
    } else if constexpr (leaves_workspace<P, T>()) {
      prepared_.template run<T>(in, call.data, out, call.workspace);
    } else {
      prepared_.template run<T>(in, call.data, out);
    }
  }

 private:
  static constexpr bool kPrepares = requires(const P& p) { p.template prepare<T>(); };

  static auto prepared(const P& primitive) {
    if constexpr (kPrepares) {
      return primitive.template prepare<T>();
    } else {
      return primitive;
    }
  }

  decltype(prepared(std::declval<const P&>())) prepared_;
};

/// Owns through the base class, so that no code of the owner is compiled for each operation.
inline std::shared_ptr<const Operation> shared_operation(const Operation* operation) {
  return std::shared_ptr<const Operation>(operation);
}

/// Whether an operation brings the rules of its primitive on graph values. One without rules is
/// made where derivatives were taken before there was a graph: nobody asks it for them, it takes
/// part in no folding, and a unit that makes it compiles no rule.
enum class Rules { all, none };

/// What operations on values of T share, whatever their primitive: compiled once for each T.
template <class T, Rules kRules>
class OperationOn : public Operation {
 public:
  DataType result_type() const override { return DataTypeOf<T>::value; }
  void vjp(const std::shared_ptr<Graph>& graph,
           NodeId node,
           NodeId y_bar,
           const std::vector<bool>& needed,
           std::vector<NodeId>& bars) const override {
    std::vector<std::optional<Value<T>>> found(needed.size());
    pull(saved_of(graph, node), Value<T>(graph, y_bar), needed, found);
    for (std::size_t i = 0; i < needed.size(); ++i) {
      bars[i] = found[i] ? found[i]->in(*graph) : kNoNode;
    }
  }
  NodeId jvp(const std::shared_ptr<Graph>& graph,
             NodeId node,
             const std::vector<NodeId>& dots) const override {
    std::vector<std::optional<Value<T>>> values;
    for (const NodeId dot : dots) {
      values.push_back(dot == kNoNode ? std::optional<Value<T>>() : Value<T>(graph, dot));
    }
    const std::optional<Value<T>> y_dot = push(saved_of(graph, node), values);
    return y_dot ? y_dot->in(*graph) : kNoNode;
  }
  NodeId folded(const std::shared_ptr<Graph>& graph, NodeId node, NodeId source) const override {
    const std::optional<ChannelMap<Value<T>>> map = map_of_channels(saved_of(graph, node));
    if (!map) {
      return kNoNode;
    }
    const NodeId scaled = graph->node(source).operation->scaled(
        graph, source, map->scale.in(*graph), map->shift.in(*graph));
    const Shape shape = graph->node(node).shape;
    return scaled == kNoNode ? kNoNode : reshape(Value<T>(graph, scaled), shape).in(*graph);
  }
  NodeId scaled(const std::shared_ptr<Graph>& graph,
                NodeId node,
                NodeId scale,
                NodeId shift) const override {
    const std::optional<Value<T>> y =
        with_scale(saved_of(graph, node), Value<T>(graph, scale), Value<T>(graph, shift));
    return y ? y->in(*graph) : kNoNode;
  }
  NodeId sum(const std::shared_ptr<Graph>& graph, NodeId a, NodeId b) const override {
    if constexpr (kRules == Rules::all) {
      return add(Value<T>(graph, a), Value<T>(graph, b)).node();
    } else {
      assert(false && "an operation without rules");
      return kNoNode;
    }
  }

 private:
  // The primitive's own rules.
  virtual void pull(const Saved<Value<T>>& saved,
                    const Value<T>& y_bar,
                    const std::vector<bool>& needed,
                    std::vector<std::optional<Value<T>>>& found) const = 0;
  virtual std::optional<Value<T>> push(const Saved<Value<T>>& saved,
                                       std::span<const std::optional<Value<T>>> dots) const = 0;
  virtual std::optional<ChannelMap<Value<T>>> map_of_channels(const Saved<Value<T>>&) const {
    return std::nullopt;
  }
  virtual std::optional<Value<T>> with_scale(const Saved<Value<T>>&,
                                             const Value<T>&,
                                             const Value<T>&) const {
    return std::nullopt;
  }

  /// Everything a rule might read; what it does not read is no node's input and dies.
  static Saved<Value<T>> saved_of(const std::shared_ptr<Graph>& graph, NodeId id) {
    const Node& node = graph->node(id);
    Saved<Value<T>> saved;
    for (const NodeId input : node.in) {
      saved.in.emplace_back(Value<T>(graph, input));
    }
    saved.y = Value<T>(graph, id);
    if (node.workspace.form != SelectionForm::none) {
      saved.workspace = Data(graph, id);
    }
    for (const NodeId input : node.data) {
      saved.data.emplace_back(graph, input);
    }
    return saved;
  }
};

/// A primitive as an operation on values of T.
template <class P, class T, Rules kRules = Rules::all>
class OperationOf final : public OperationOn<T, kRules> {
 public:
  explicit OperationOf(const P& primitive) : primitive_(primitive) {}

  std::string_view name() const override { return name_of(primitive_); }
  std::string attributes() const override {
    if constexpr (requires { primitive_.attributes(); }) {
      return primitive_.attributes();
    } else {
      return {};
    }
  }
  bool equals(const Operation& other) const override {
    const auto* same = dynamic_cast<const OperationOf*>(&other);
    return same != nullptr && same->primitive_ == primitive_;
  }
  Shape result_shape(std::span<const Shape> in) const override {
    return primitive_.result_shape(in[0]);
  }
  SelectionType workspace() const override {
    if constexpr (leaves_workspace<P, T>()) {
      return primitive_.template workspace<T>();
    } else {
      return {};
    }
  }
  bool aliases_input() const override { return fenestra::aliases_input<P>(); }
  bool may_overwrite(int i) const override {
    if constexpr (requires { primitive_.may_overwrite(i); }) {
      return primitive_.may_overwrite(i);
    } else {
      return false;
    }
  }
  bool needs(int i, int what) const override { return primitive_.needs(i, what); }
  std::optional<Split> split(std::span<const Shape> in) const override {
    if constexpr (requires { primitive_.split(in); }) {
      return primitive_.split(in);
    } else {
      return std::nullopt;
    }
  }
  std::shared_ptr<const Operation> piece(Index count) const override {
    if constexpr (requires { primitive_.piece(count); }) {
      return shared_operation(new OperationOf(primitive_.piece(count)));
    } else {
      return nullptr;
    }
  }
  std::optional<Condition> condition(int i) const override {
    if constexpr (requires { primitive_.condition(i); }) {
      return primitive_.condition(i);
    } else {
      return std::nullopt;
    }
  }
  std::string layout() const override {
    if constexpr (requires { primitive_.g.layout; }) {
      return std::string(layout_name(primitive_.g.layout));
    } else if constexpr (requires { primitive_.g.pool.layout; }) {
      return std::string(layout_name(primitive_.g.pool.layout));
    } else {
      return {};
    }
  }
  Index multiply_adds() const override {
    if constexpr (requires { primitive_.multiply_adds(); }) {
      return primitive_.multiply_adds();
    } else {
      return 0;
    }
  }
  std::unique_ptr<const Kernel> prepare() const override {
    if constexpr (fenestra::aliases_input<P>()) {
      return nullptr;
    } else {
      return std::unique_ptr<const Kernel>(new KernelOf<P, T>(primitive_));
    }
  }

 private:
  void pull(const Saved<Value<T>>& saved,
            const Value<T>& y_bar,
            const std::vector<bool>& needed,
            std::vector<std::optional<Value<T>>>& found) const override {
    if constexpr (kRules == Rules::none) {
      assert(false && "an operation without rules");
    } else if constexpr (requires {
                           primitive_.template vjp_all<Value<T>>(saved, y_bar, needed, found);
                         }) {
      primitive_.template vjp_all<Value<T>>(saved, y_bar, needed, found);
    } else {
      for (std::size_t i = 0; i < needed.size(); ++i) {
        if (needed[i]) {
          found[i] = primitive_.template vjp<Value<T>>(static_cast<int>(i), saved, y_bar);
        }
      }
    }
  }
  std::optional<Value<T>> push(const Saved<Value<T>>& saved,
                               std::span<const std::optional<Value<T>>> dots) const override {
    if constexpr (kRules == Rules::all) {
      return primitive_.template jvp<Value<T>>(saved, dots);
    } else {
      assert(false && "an operation without rules");
      return std::nullopt;
    }
  }
  std::optional<ChannelMap<Value<T>>> map_of_channels(const Saved<Value<T>>& saved) const override {
    if constexpr (kRules == Rules::all &&
                  requires { primitive_.template channel_map<Value<T>>(saved); }) {
      return primitive_.template channel_map<Value<T>>(saved);
    } else {
      return std::nullopt;
    }
  }
  std::optional<Value<T>> with_scale(const Saved<Value<T>>& saved,
                                     const Value<T>& scale,
                                     const Value<T>& shift) const override {
    if constexpr (kRules == Rules::all &&
                  requires { primitive_.template scaled<Value<T>>(saved, scale, shift); }) {
      return primitive_.template scaled<Value<T>>(saved, scale, shift);
    } else {
      return std::nullopt;
    }
  }

  P primitive_;
};

/// A function of integers as an operation: `map` is a comparable struct with name, result_shape(),
/// run(data, out, scratch), and may have scratch_bytes().
template <class M>
class DataOperationOf final : public Operation {
 public:
  explicit DataOperationOf(const M& map) : map_(map) {}

  std::string_view name() const override { return M::name; }
  std::string attributes() const override { return {}; }
  bool equals(const Operation& other) const override {
    const auto* same = dynamic_cast<const DataOperationOf*>(&other);
    return same != nullptr && same->map_ == map_;
  }
  DataType result_type() const override { return DataType::index; }
  Shape result_shape(std::span<const Shape>) const override { return map_.result_shape(); }
  bool needs(int, int) const override { return false; }
  std::unique_ptr<const Kernel> prepare() const override {
    return std::unique_ptr<const Kernel>(new DataKernel(map_));
  }
  void vjp(const std::shared_ptr<Graph>&,
           NodeId,
           NodeId,
           const std::vector<bool>&,
           std::vector<NodeId>&) const override {}
  NodeId jvp(const std::shared_ptr<Graph>&, NodeId, const std::vector<NodeId>&) const override {
    return kNoNode;
  }
  NodeId sum(const std::shared_ptr<Graph>&, NodeId, NodeId) const override { return kNoNode; }

 private:
  class DataKernel final : public Kernel {
   public:
    explicit DataKernel(const M& map) : map_(map) {}
    std::size_t scratch_bytes() const override {
      if constexpr (requires { map_.scratch_bytes(); }) {
        return map_.scratch_bytes();
      } else {
        return 0;
      }
    }
    void run(const Call& call) const override {
      map_.run(call.data[0], static_cast<Index*>(call.out), call.scratch);
    }

   private:
    M map_;
  };

  M map_;
};

/// `map` of the integers `data`, which belong to a graph.
template <class M>
Data apply_to_data(const M& map, const Data& data) {
  return {data.graph(),
          data.graph()->add_operation(
              shared_operation(new DataOperationOf<M>(map)), {}, {data.node()})};
}

}  // namespace graph

namespace graph {

/// The graph that the inputs share, or none where all of them are constants.
template <class T>
std::shared_ptr<Graph> common_graph(std::string_view name,
                                    std::span<const Value<T>> in,
                                    std::span<const Data> data) {
  CommonGraph common(name);
  for (const Value<T>& value : in) {
    common.meet(value);
  }
  for (const Data& indices : data) {
    common.meet(indices);
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

/// The result as a node of the graph that the inputs share, or computed at once where all of them
/// are constants.
template <graph::Rules kRules, class P, class T>
Applied<graph::Value<T>> append_operation(const P& primitive,
                                          std::span<const graph::Value<T>> in,
                                          std::span<const graph::Data> data,
                                          bool keep) {
  const std::shared_ptr<graph::Graph> graph = graph::common_graph(name_of(primitive), in, data);
  if (graph == nullptr) {
    const std::vector<Tensor<T>> values = graph::constants_of(in);
    const std::vector<Selection> selections = graph::constants_of(data);
    Applied<Tensor<T>> result = apply_all(primitive,
                                          std::span<const Tensor<T>>(values),
                                          std::span<const Selection>(selections),
                                          keep);
    return {std::move(result.y), std::move(result.workspace)};
  }
  const graph::NodeId node = graph::append(
      *graph, graph::shared_operation(new graph::OperationOf<P, T, kRules>(primitive)), in, data);
  graph::Data workspace;
  if constexpr (leaves_workspace<P, T>()) {
    workspace = graph::Data(graph, node);
  }
  return {graph::Value<T>(graph, node), std::move(workspace)};
}

template <class P, class T>
Applied<graph::Value<T>> apply_all(const P& primitive,
                                   std::span<const graph::Value<T>> in,
                                   std::span<const graph::Data> data,
                                   bool keep) {
  return append_operation<graph::Rules::all>(primitive, in, data, keep);
}

}  // namespace fenestra
