// The end of a network: found, replaced, or cut off.
#include <fenestra/base/key.hpp>
#include <fenestra/io/onnx/encode.hpp>
#include <fenestra/io/onnx/fields.hpp>
#include <fenestra/io/onnx/rewrite.hpp>
#include <fenestra/io/onnx/wire.hpp>
#include <fenestra/io/onnx/write.hpp>
#include <fenestra/io/source.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <utility>

namespace fenestra::onnx {

namespace {

using Names = std::set<std::string, std::less<>>;

/// Which node makes a value.
std::map<std::string, std::size_t, std::less<>> makers(const Graph& graph) {
  std::map<std::string, std::size_t, std::less<>> result;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs) {
      result.emplace(output, i);
    }
  }
  return result;
}

/// The values that a node reads, also those that its sub-graphs take from outside.
void add_uses(const Node& node, Names& uses) {
  uses.insert(node.inputs.begin(), node.inputs.end());
  for (const Attribute& attribute : node.attributes) {
    if (attribute.g) {
      for (const Node& inner : attribute.g->nodes) {
        add_uses(inner, uses);
      }
      for (const ValueInfo& output : attribute.g->outputs) {
        uses.insert(output.name);
      }
    }
  }
}

/// The numbers of an initialiser, of a copy of one or of a Constant, or null.
const TensorData* find_tensor(const Graph& graph, std::string_view name) {
  if (const TensorData* const found = graph.find_initializer(name)) {
    return found;
  }
  const auto copies = copies_of(graph);
  if (const auto copy = copies.find(name); copy != copies.end()) {
    return copy->second;
  }
  for (const Node& node : graph.nodes) {
    if (node.op_type == "Constant" && node.domain.empty() && node.outputs.size() == 1 &&
        node.outputs[0] == name) {
      const Attribute* const value = node.find("value");
      return value != nullptr ? value->t.get() : nullptr;
    }
  }
  return nullptr;
}

std::string label(const Graph& graph, std::size_t number) {
  const Node& node = graph.nodes[number];
  return node.name.empty() ? "#" + std::to_string(number) : node.name;
}

/// Operators between the last layer and the output that keep classes apart.
bool keeps_classes(const Node& node) {
  static const Names kPlain{"Identity",
                            "Cast",
                            "Flatten",
                            "Reshape",
                            "Squeeze",
                            "Dropout",
                            "Relu",
                            "GlobalAveragePool",
                            "GlobalMaxPool",
                            "AveragePool",
                            "Clip",
                            "Sigmoid",
                            "Softmax",
                            "LogSoftmax",
                            "ReduceMean"};
  return node.domain.empty() && kPlain.contains(node.op_type);
}

bool makes_probabilities(const Node& node) {
  return node.op_type == "Softmax" || node.op_type == "LogSoftmax" || node.op_type == "Sigmoid";
}

/// Drawn as a layer without a rectifier after it begins: variance 1/fan-in.
Tensor<float> draw(const Shape& shape, Index fan_in, std::uint64_t seed) {
  Tensor<float> tensor = Tensor<float>::uninitialised(shape);
  const Key key = Key(seed).fold("head");
  const double scale = 1 / std::sqrt(static_cast<double>(std::max<Index>(1, fan_in)));
  std::uint64_t position = 0;
  for (float& value : tensor.mutable_values()) {
    value = static_cast<float>(scale * key.normal(position++));
  }
  return tensor;
}

void require_classes(Index classes) {
  constexpr Index kMost = Index{1} << 24;
  if (classes < 1 || classes > kMost) {
    throw Error(
        ErrorCode::invalid_extent,
        "a head of " + std::to_string(classes) + " classes\n  fix: 1 to " + std::to_string(kMost));
  }
}

/// The node of a head and what it says.
struct FoundHead {
  Head head;
  std::size_t node = 0;
  int output_axis = 1;  ///< of the classes in its output; -1: the last
};

FoundHead locate_head(const Model& model) {
  const Graph& graph = model.graph;
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::unsupported,
                model.file_name() + ": no last layer of classes was found: " + why +
                    "\n  fix: cut the network at a value, and a new head is put there");
  };
  if (graph.outputs.empty()) {
    fail("the model has no output");
  }
  const auto made_by = makers(graph);
  FoundHead found;
  Head& head = found.head;
  std::string value = graph.outputs[0].name;
  head.logits = value;
  // As long as nodes go back; every step is a node that was not met before, or the walk is a cycle.
  for (std::size_t steps = 0; steps <= graph.nodes.size(); ++steps) {
    const auto maker = made_by.find(value);
    if (maker == made_by.end()) {
      fail("nothing with weights makes " + io::shown(value));
    }
    const Node& node = graph.nodes[maker->second];
    found.node = maker->second;
    head.node = label(graph, maker->second);
    const auto input = [&](std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : ""; };
    if (node.op_type == "Gemm" || node.op_type == "MatMul" || node.op_type == "Conv") {
      head.weight = input(1);
      head.bias = head.bias.empty() && node.op_type != "MatMul" ? input(2) : head.bias;
      const TensorData* const weight = find_tensor(graph, head.weight);
      if (weight == nullptr || weight->shape.rank() < 2) {
        fail("the weights " + io::shown(head.weight) + " of node " + head.node +
             " are no tensor of the file");
      }
      const Attribute* const transposed = node.find("transB");
      const bool is_gemm_t = node.op_type == "Gemm" && transposed != nullptr && transposed->i != 0;
      head.class_axis = node.op_type == "Conv" || is_gemm_t ? 0 : weight->shape.rank() - 1;
      head.classes = weight->shape[head.class_axis];
      found.output_axis = node.op_type == "MatMul" ? -1 : 1;
      const TensorData* const bias = find_tensor(graph, head.bias);
      if (!head.bias.empty() && (bias == nullptr || *bias->shape.elements() != head.classes)) {
        fail("the bias " + io::shown(head.bias) + " of node " + head.node + " is no tensor of " +
             std::to_string(head.classes) + " numbers");
      }
      return found;
    }
    if (node.op_type == "Add" && head.bias.empty() && node.inputs.size() == 2) {
      const bool first = find_tensor(graph, input(0)) != nullptr;
      if (!first && find_tensor(graph, input(1)) == nullptr) {
        fail("node " + head.node + " (Add) adds two computed values");
      }
      head.bias = input(first ? 0 : 1);
      value = input(first ? 1 : 0);
    } else if (keeps_classes(node)) {
      value = input(0);
      if (makes_probabilities(node)) {
        head.logits = value;
      }
    } else {
      fail("node " + head.node + " (" + node.op_type + ") comes first");
    }
  }
  fail("its nodes form a cycle");
  return found;
}

}  // namespace

Head find_head(const Model& model) { return locate_head(model).head; }

std::string scores_value(const Model& model) {
  const Graph& graph = model.graph;
  if (graph.outputs.empty()) {
    return {};
  }
  const auto made_by = makers(graph);
  std::string value = graph.outputs[0].name;
  for (std::size_t steps = 0; steps <= graph.nodes.size(); ++steps) {
    const auto maker = made_by.find(value);
    if (maker == made_by.end() || graph.nodes[maker->second].inputs.empty()) {
      break;
    }
    const Node& node = graph.nodes[maker->second];
    if (node.op_type == "Softmax" || node.op_type == "LogSoftmax") {
      return node.inputs[0];
    }
    if (node.op_type != "Identity") {
      break;
    }
    value = node.inputs[0];
  }
  return graph.outputs[0].name;
}

Model with_classes(const Model& model, Index classes, std::uint64_t seed) {
  require_classes(classes);
  const Graph& graph = model.graph;
  const FoundHead found = locate_head(model);
  const Head& head = found.head;
  const auto copies = copies_of(graph);
  Names after(graph.nodes[found.node].outputs.begin(), graph.nodes[found.node].outputs.end());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    Names uses;
    add_uses(node, uses);
    const bool is_copy = is_identity(node) && copies.contains(node.outputs[0]);
    if (i != found.node && !is_copy && uses.contains(head.weight)) {
      throw Error(ErrorCode::unsupported,
                  model.file_name() + ": the weights " + io::shown(head.weight) +
                      " of the last layer are used by node " + label(graph, i) +
                      " too\n  fix: cut the network at a value before it");
    }
    if (std::any_of(uses.begin(), uses.end(), [&](const auto& u) { return after.contains(u); })) {
      after.insert(node.outputs.begin(), node.outputs.end());
    }
  }
  const TensorData& old_weight = *find_tensor(graph, head.weight);
  Shape shape = old_weight.shape;
  shape[head.class_axis] = classes;
  const Index fan_in = *old_weight.shape.elements() / std::max<Index>(1, head.classes);
  const io::AnyTensor weight = draw(shape, fan_in, seed);
  io::AnyTensor bias;
  Edit edit;
  edit.tensors.emplace(head.weight, &weight);
  if (!head.bias.empty()) {
    Shape bias_shape = find_tensor(graph, head.bias)->shape;
    for (int axis = 0; axis < bias_shape.rank(); ++axis) {
      bias_shape[axis] = bias_shape[axis] == head.classes ? classes : bias_shape[axis];
    }
    bias = Tensor<float>(bias_shape, 0.0F);
    edit.tensors.emplace(head.bias, &bias);
  }
  // What was equal to them by accident stays what it was.
  std::deque<io::AnyTensor> kept;
  for (const auto& [name, origin] : copies) {
    if (name != head.weight && name != head.bias &&
        (origin->name == head.weight || origin->name == head.bias)) {
      edit.tensors.emplace(name, &kept.emplace_back(origin->read_nearest()));
    }
  }
  for (const ValueInfo& info : graph.value_infos) {
    if (after.contains(info.name)) {
      edit.dropped_infos.insert(info.name);
    }
  }
  // Before IR 4 the weights are inputs too, with the old shape.
  for (const ValueInfo& info : graph.inputs) {
    if (info.name == head.weight || info.name == head.bias) {
      ValueInfo changed = info;
      changed.dims.emplace();
      for (const Index extent : shape_of(info.name == head.weight ? weight : bias)) {
        changed.dims->push_back({extent, {}});
      }
      edit.dropped_infos.insert(info.name);
      append_bytes(edit.added, fields::Graph::input, encode_value_info(changed));
    }
  }
  for (const ValueInfo& output : graph.outputs) {
    if (after.contains(output.name) && output.dims && output.dims->size() >= 2) {
      ValueInfo changed = output;
      const std::size_t axis = found.output_axis < 0 ? output.dims->size() - 1 : 1;
      (*changed.dims)[axis] = {classes, {}};
      edit.outputs.emplace(output.name, std::move(changed));
    }
  }
  return reread(model, edit);
}

Model with_head_at(const Model& model,
                   std::string_view value,
                   const Shape& shape,
                   Index classes,
                   std::uint64_t seed) {
  require_classes(classes);
  const Graph& graph = model.graph;
  const auto made_by = makers(graph);
  if (!made_by.contains(value)) {
    std::string last;
    for (std::size_t i = graph.nodes.size(); i > 0 && i + 8 > graph.nodes.size(); --i) {
      for (const std::string& output : graph.nodes[i - 1].outputs) {
        last += (last.empty() ? "" : ", ") + output;
      }
    }
    throw Error(ErrorCode::unknown_choice,
                model.file_name() + ": no node makes a value called " + io::shown(value) +
                    "\n  fix: one of its values, from the last on " + last);
  }
  if (shape.rank() < 2) {
    throw Error(ErrorCode::rank_mismatch,
                "a head after " + std::string(value) + " of shape " + fenestra::to_string(shape) +
                    "\n  fix: a value with a batch and channels");
  }
  // Backwards from the value: nodes stand after what they use.
  Names needed{std::string(value)};
  Edit edit;
  for (std::size_t i = graph.nodes.size(); i > 0; --i) {
    const Node& node = graph.nodes[i - 1];
    if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& output) {
          return needed.contains(output);
        })) {
      add_uses(node, needed);
      needed.insert(node.outputs.begin(), node.outputs.end());
    } else {
      edit.dropped_nodes.insert(i - 1);
    }
  }
  for (const TensorData& tensor : graph.initializers) {
    if (!needed.contains(tensor.name)) {
      edit.dropped_tensors.insert(tensor.name);
    }
  }
  for (const auto* const infos : {&graph.inputs, &graph.value_infos}) {
    for (const ValueInfo& info : *infos) {
      if (!needed.contains(info.name)) {
        edit.dropped_infos.insert(info.name);
      }
    }
  }
  edit.drops_outputs = true;

  const auto fresh = [&](std::string name) {
    while (needed.contains(name)) {
      name += "_";
    }
    needed.insert(name);
    return name;
  };
  using F = fields::Graph;
  std::string features(value);
  const auto append = [&](const NodeBytes& node) {
    append_bytes(edit.added, F::node, node.bytes());
  };
  if (shape.rank() > 2) {
    const std::string pooled = fresh("head.pooled");
    const std::string flat = fresh("head.features");
    append(NodeBytes("GlobalAveragePool", fresh("head.pool"), {features}, {pooled}));
    append(NodeBytes("Flatten", fresh("head.flatten"), {pooled}, {flat}).set("axis", Index{1}));
    features = flat;
  }
  const std::string weight = fresh("head.weight");
  const std::string bias = fresh("head.bias");
  const std::string output = fresh("head.output");
  append(NodeBytes("Gemm", fresh("head.linear"), {features, weight, bias}, {output})
             .set("transB", Index{1}));
  const auto real = std::find_if(graph.inputs.begin(), graph.inputs.end(), [](const ValueInfo& i) {
    return is_floating(i.type);
  });
  const ElementType type = real != graph.inputs.end() ? real->type : ElementType::float32;
  append_bytes(edit.added,
               F::initializer,
               encode_tensor(weight, type, draw(Shape{classes, shape[1]}, shape[1], seed)));
  append_bytes(
      edit.added, F::initializer, encode_tensor(bias, type, Tensor<float>(Shape{classes}, 0.0F)));
  append_bytes(edit.added,
               F::output,
               encode_value_info({.name = output,
                                  .type = type,
                                  .is_tensor = true,
                                  .dims = {{{std::nullopt, "N"}, {classes, {}}}}}));
  return reread(model, edit);
}

}  // namespace fenestra::onnx
