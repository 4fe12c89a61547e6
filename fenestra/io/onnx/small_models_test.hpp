// Models written down in a test: one node or a few, everything an input. Not installed.
#pragma once

#include <fenestra/base/key.hpp>
#include <fenestra/io/onnx/network.hpp>
#include <fenestra/io/onnx/wire.hpp>

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::onnx::small {

inline Attribute integer(std::string name, Index i) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::integer;
  a.i = i;
  return a;
}
inline Attribute integers(std::string name, std::vector<Index> list) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::integers;
  a.ints = std::move(list);
  return a;
}
inline Attribute real(std::string name, float f) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::real;
  a.f = f;
  return a;
}
inline Attribute text(std::string name, std::string s) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::string;
  a.s = std::move(s);
  return a;
}
inline Attribute graph(std::string name, Graph g) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::graph;
  a.g = std::make_shared<const Graph>(std::move(g));
  return a;
}

inline Node node(std::string op,
                 std::vector<std::string> inputs,
                 std::vector<std::string> outputs,
                 std::vector<Attribute> attributes = {}) {
  Node n;
  n.name = op + "_node";
  n.op_type = std::move(op);
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  n.attributes = std::move(attributes);
  return n;
}
inline ValueInfo value(std::string name, ElementType type = ElementType::undefined) {
  ValueInfo info;
  info.name = std::move(name);
  info.type = type;
  return info;
}

inline Model model(Index opset,
                   std::vector<Node> nodes,
                   const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs) {
  Model m;
  m.ir_version = 8;
  m.opsets[""] = opset;
  m.graph.nodes = std::move(nodes);
  for (const std::string& name : inputs) {
    m.graph.inputs.push_back(value(name));
  }
  for (const std::string& name : outputs) {
    m.graph.outputs.push_back(value(name));
  }
  return m;
}

/// The outputs of one node on these inputs, in double.
inline std::vector<Datum<double>> run(Index opset,
                                      const std::string& op,
                                      const std::vector<Datum<double>>& inputs,
                                      const std::vector<Attribute>& attributes = {},
                                      int outputs = 1,
                                      const NetworkOptions& options = {}) {
  std::vector<std::string> in;
  std::vector<std::string> out;
  Network<double>::Data data;
  for (const Datum<double>& datum : inputs) {
    in.push_back("x" + std::to_string(in.size()));
    data.insert_or_assign(in.back(), datum);
  }
  for (int i = 0; i < outputs; ++i) {
    out.push_back("y" + std::to_string(i));
  }
  const Network<double> network(model(opset, {node(op, in, out, attributes)}, in, out), options);
  const auto results = network.run(data);
  std::vector<Datum<double>> list;
  for (const std::string& name : out) {
    list.push_back(results.at(name));
  }
  return list;
}

/// float32 numbers between -1 and 1, or `fill`, in bytes that the tensor keeps.
inline TensorData weight(const std::string& name,
                         const Shape& shape,
                         std::optional<float> fill = {}) {
  struct Kept {
    std::vector<float> numbers;
    WireFile file;
  };
  auto kept = std::make_shared<Kept>();
  const Key key = Key(name.size()).fold(static_cast<std::uint64_t>(name[0]));
  for (Index i = 0; i < shape.elements().value_or(0); ++i) {
    kept->numbers.push_back(
        fill.value_or(static_cast<float>(2 * key.uniform(static_cast<std::uint64_t>(i)) - 1)));
  }
  kept->file = {"weights", std::as_bytes(std::span(kept->numbers))};
  TensorData tensor;
  tensor.name = name;
  tensor.type = ElementType::float32;
  tensor.shape = shape;
  tensor.storage = TensorData::Storage::raw;
  tensor.pieces = {kept->file.bytes};
  tensor.file = std::shared_ptr<const WireFile>(kept, &kept->file);
  return tensor;
}

template <class T>
Tensor<T> drawn(const Shape& shape) {
  Tensor<T> x(shape);
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_data()[i] = static_cast<T>(2 * Key(5).uniform(static_cast<std::uint64_t>(i)) - 1);
  }
  return x;
}

inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace fenestra::onnx::small
