// One operation on constants.
#include <fenestra/base/memory.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/graph/run_once.hpp>

#include <utility>
#include <vector>

namespace fenestra::graph {

namespace {

template <class T>
Node run_typed(const Graph& graph, const Node& node) {
  std::vector<Tensor<T>> in;
  for (const NodeId input : node.in) {
    in.push_back(std::get<Tensor<T>>(graph.node(input).constant));
  }
  std::vector<Selection> data;
  for (const NodeId input : node.data) {
    data.push_back(std::get<Selection>(graph.node(input).constant));
  }
  Node result{.kind = NodeKind::constant, .type = node.type, .shape = node.shape};
  if (node.operation->aliases_input()) {
    result.constant = in[0].reshaped(node.shape);
    return result;
  }
  const std::unique_ptr<const Kernel> kernel = node.operation->prepare();
  auto scratch =
      Tensor<std::uint8_t>::uninitialised(Shape{static_cast<Index>(kernel->scratch_bytes())});
  const auto run = [&](void* out) {
    kernel->run({.in = in.data(),
                 .count = in.size(),
                 .data = data,
                 .out = out,
                 .workspace = {},
                 .scratch = scratch.mutable_data()});
  };
  if (node.type == DataType::index) {
    auto out = Tensor<Index>::uninitialised(node.shape);
    run(out.mutable_data());
    result.constant = Selection(std::move(out));
  } else {
    auto out = Tensor<T>::uninitialised(node.shape);
    run(out.mutable_data());
    result.constant = std::move(out);
  }
  return result;
}

}  // namespace

Node run_once(const Graph& graph, const Node& node) {
  return node.type == DataType::f32 ? run_typed<float>(graph, node)
                                    : run_typed<double>(graph, node);
}

}  // namespace fenestra::graph
