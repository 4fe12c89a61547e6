// Models written down in a test: one node or a few, everything an input. Not installed.
#pragma once

#include <fenestra/io/onnx/network.hpp>

#include <initializer_list>
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

}  // namespace fenestra::onnx::small
