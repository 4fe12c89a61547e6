// The graph: nodes in topological order, and what comes out. It knows no operator.
//
// A node has one result (of floats, or of indices: labels, places) and may leave a workspace beside
// it. Graphs grow by appending only, so node numbers stay valid while one is built; passes take a
// graph and give a new one. `verify` states what must hold of every graph between passes.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/base/level.hpp>
#include <fenestra/graph/data_type.hpp>
#include <fenestra/tensor/selection.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fenestra {
struct Split;  // tensor/split.hpp
}

namespace fenestra::graph {

class Operation;  // graph/operation.hpp

enum class NodeKind {
  input,      ///< given for each run
  data,       ///< given for each run, without gradient: integers, or values such as masks
  parameter,  ///< given for each run, and what training changes
  constant,
  operation,
};

constexpr std::string_view node_kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::input: return "input";
    case NodeKind::data: return "data";
    case NodeKind::parameter: return "parameter";
    case NodeKind::constant: return "constant";
    case NodeKind::operation: return "operation";
  }
  return "";
}

/// Numbers that integer data may hold: least <= i < limit. `reader` is the operator that asks for
/// it.
struct DataRange {
  Index least = 0;
  Index limit = 0;
  std::string reader;

  friend bool operator==(const DataRange&, const DataRange&) = default;
};

using Constant = std::variant<std::monostate, Tensor<float>, Tensor<double>, Selection>;

struct Node {
  NodeKind kind = NodeKind::input;
  DataType type = DataType::f32;
  Shape shape = {};
  std::string name = {};  ///< of what is given; of operations see graph/names.hpp; may be empty
  std::shared_ptr<const Operation> operation = {};  ///< of operations
  std::vector<NodeId> in = {};                      ///< nodes whose results are read
  /// Nodes whose indices are read: their result where that is of indices, else their workspace.
  std::vector<NodeId> data = {};
  SelectionType workspace = {};        ///< what an operation leaves
  Constant constant = {};              ///< of constants
  std::vector<DataRange> ranges = {};  ///< of data: all of them must hold

  /// Whether a run is given it.
  bool is_argument() const {
    return kind == NodeKind::input || kind == NodeKind::data || kind == NodeKind::parameter;
  }
  /// Whether something happens at it: it is an operation and no alias.
  FENESTRA_API bool runs() const;
  Index elements() const { return shape.elements().value_or(0); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * bytes_of(type); }
};

struct Output {
  NodeId node = kNoNode;
  std::string name;
  NodeId overwrites = kNoNode;  ///< a parameter whose memory receives it at the end of the run
};

/// Operations that run together, `piece` of their samples at a time: what they hand to each other
/// stays in a cache, and what only they read never takes memory for all samples.
struct Group {
  std::vector<NodeId> members;  ///< ascending; no other operation that runs lies between them
  Index samples = 0;            ///< the extent of axis 0 of every member
  Index piece = 0;

  NodeId first() const { return members.front(); }
  NodeId last() const { return members.back(); }
  Index pieces() const { return (samples + piece - 1) / piece; }
};

class FENESTRA_API Graph {
 public:
  NodeId add_input(DataType type, const Shape& shape, std::string name);
  NodeId add_parameter(DataType type, const Shape& shape, std::string name);
  NodeId add_data(const Shape& shape, std::string name);
  NodeId add_mask(DataType type, const Shape& shape, std::string name);
  template <class T>
  NodeId add_constant(const Tensor<T>& value) {
    Node node{.kind = NodeKind::constant, .type = DataTypeOf<T>::value, .shape = value.shape()};
    node.constant = value;
    return append(std::move(node));
  }
  NodeId add_constant(const Selection& value);
  /// The inputs must be in the graph; their shapes were checked by whoever made the operation.
  NodeId add_operation(std::shared_ptr<const Operation> operation,
                       std::vector<NodeId> in,
                       std::vector<NodeId> data = {});
  void add_output(NodeId node, std::string name, NodeId overwrites = kNoNode);
  void clear_outputs() { outputs_.clear(); }
  /// Groups come last: copying a graph drops them.
  void add_group(Group group) { groups_.push_back(std::move(group)); }
  /// A reader of integer data states what it takes; a no-op on indices that the graph computes.
  void restrict_data(NodeId node, DataRange range);

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  const std::vector<Output>& outputs() const { return outputs_; }
  const std::vector<Group>& groups() const { return groups_; }
  NodeId size() const { return static_cast<NodeId>(nodes_.size()); }
  /// What a run is given, in the order in which it was added.
  std::vector<NodeId> arguments() const;
  /// How an operation treats its samples; none of other nodes.
  std::optional<Split> split(NodeId id) const;
  /// Form and shape of what a reader of `node` in `data` sees.
  SelectionType selection_type(NodeId node) const;
  /// A node appended as it is, by passes that copy.
  NodeId append(Node node);
  /// Room for that many nodes.
  void reserve(NodeId count) { nodes_.reserve(static_cast<std::size_t>(count)); }

  /// That of its nodes among values; a copy keeps it.
  Level level() const { return level_; }

 private:
  Level level_ = new_level();
  std::vector<Node> nodes_;
  std::vector<Output> outputs_;
  std::vector<Group> groups_;
};

/// The number that a constant of a single float is; empty of other nodes.
FENESTRA_API std::string scalar_text(const Node& node);

/// The graph in words, one node to a line; equal graphs print equally.
FENESTRA_API std::string to_string(const Graph& graph);

/// Throws `foreign_variable` or `shape_mismatch`, naming the node, where an invariant does not
/// hold: inputs come before their readers, values are read as values and indices as indices, shapes
/// and types are those the operations compute, outputs exist, only parameters are overwritten, each
/// once; members of a group treat samples one by one and read nothing of each other whole.
FENESTRA_API void verify(const Graph& graph);

}  // namespace fenestra::graph
