// Fuzzes graphs: bytes are the nodes of a network, each reading earlier ones. Built, differentiated
// twice, compiled in two ways and run, it has the bits of the eager engine.
#include <fenestra/base/error.hpp>
#include <fenestra/check/graph_law.hpp>
#include <fenestra/ops/all.hpp>

#include <fuzz/bytes.hpp>

#include <string>
#include <vector>

namespace fenestra::fuzz {
namespace {

constexpr Index kMostElements = 400;
constexpr std::size_t kMostNodes = 12;

enum class Kind {
  conv,
  conv_transpose,
  max_pool,
  avg_pool,
  smooth_max_pool,
  lp_pool,
  adaptive_avg_pool,
  add,
  mul,
  sub,
  maximum,
  relu,
  sigmoid,
  scale,
  concat,
  transpose,
  slice,
  pad,
  softmax,
  mean,
  last,
};

struct Node {
  Kind kind = Kind::relu;
  std::size_t a = 0;  ///< the values it reads
  std::size_t b = 0;
  Index n = 1;  ///< kernel, extent or axis, and stride or padding
  Index m = 1;
};

template <class V>
V run(const Node& node, const V& a, const V& b) {
  switch (node.kind) {
    case Kind::conv: return conv(a, b, {.stride = node.n, .padding = node.m});
    case Kind::conv_transpose: return conv_transpose(a, b, {.stride = node.n, .padding = node.m});
    case Kind::max_pool: return max_pool(a, {.kernel = node.n, .stride = node.m});
    case Kind::avg_pool: return avg_pool(a, {.kernel = node.n, .stride = node.m, .padding = 1});
    case Kind::smooth_max_pool: return smooth_max_pool(a, {.kernel = node.n, .beta = 2});
    case Kind::lp_pool: return lp_pool(a, {.kernel = node.n, .stride = node.m});
    case Kind::adaptive_avg_pool: return adaptive_avg_pool(a, {.output_size = node.n});
    case Kind::add: return add(a, b);
    case Kind::mul: return mul(a, b);
    case Kind::sub: return sub(a, b);
    case Kind::maximum: return maximum(a, b);
    case Kind::relu: return relu(a);
    case Kind::sigmoid: return sigmoid(a);
    case Kind::scale: return scale(a, static_cast<double>(node.n) / 4);
    case Kind::concat: return concat({a, b}, static_cast<int>(node.n));
    case Kind::transpose: return transpose(a, {0, 1, 3, 2});
    case Kind::slice: return slice(a, static_cast<int>(node.n), 0, node.m);
    case Kind::pad: return pad(a, {{1, 0}, {0, 1}}, {.axes = {2, 3}});
    case Kind::softmax: return softmax(a, static_cast<int>(node.n));
    case Kind::mean: return mean(a, {.axes = {static_cast<int>(node.n)}, .keep = true});
    case Kind::last: break;
  }
  return a;
}

/// The network that the bytes spell; a node that its operator refuses, or that grows, is left out.
class Network {
 public:
  explicit Network(Bytes& bytes) {
    const Index channels = bytes.between(1, 3);
    inputs_.push_back(
        Shape{bytes.between(0, 3), channels, bytes.between(1, 6), bytes.between(1, 6)});
    inputs_.push_back(Shape{channels, channels, bytes.between(1, 3), bytes.between(1, 3)});
    std::vector<Tensor<double>> values;
    for (const Shape& shape : inputs_) {
      values.emplace_back(shape);
    }
    while (!bytes.at_end() && nodes_.size() < kMostNodes) {
      const Node node{.kind = static_cast<Kind>(bytes.byte() % static_cast<int>(Kind::last)),
                      .a = bytes.byte() % values.size(),
                      .b = bytes.byte() % values.size(),
                      .n = bytes.between(0, 4),
                      .m = bytes.between(0, 3)};
      try {
        const Shape shape = run(node, values[node.a], values[node.b]).shape();
        if (shape.elements().value_or(kMostElements + 1) > kMostElements) {
          continue;
        }
        values.emplace_back(shape);
      } catch (const Error&) {
        continue;
      }
      nodes_.push_back(node);
    }
    output_ = values.back().shape();
  }

  const std::vector<Shape>& inputs() const { return inputs_; }
  const Shape& output() const { return output_; }
  bool empty() const { return nodes_.empty(); }
  std::string text() const {
    std::string text;
    for (const Node& node : nodes_) {
      text += " " + std::to_string(static_cast<int>(node.kind)) + ":" + std::to_string(node.a) +
              "," + std::to_string(node.b) + "," + std::to_string(node.n) + "," +
              std::to_string(node.m);
    }
    return text;
  }

  template <class V>
  V operator()(const std::vector<V>& in) const {
    std::vector<V> values = in;
    for (const Node& node : nodes_) {
      values.push_back(run(node, values[node.a], values[node.b]));
    }
    return values.back();
  }

 private:
  std::vector<Shape> inputs_;
  std::vector<Node> nodes_;
  Shape output_;
};

/// Multiples of a quarter in [-1, 1], none of them twice in a row.
Tensor<double> quarters(const Shape& shape, Index first) {
  Tensor<double> tensor(shape);
  Index next = first;
  for (double& value : tensor.mutable_values()) {
    value = static_cast<double>(next % 9 - 4) / 4;
    next += 5;
  }
  return tensor;
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fuzz = fenestra::fuzz;
  fuzz::Bytes bytes(std::span(data, size));
  const fuzz::Network network(bytes);
  if (network.empty()) {
    return 0;
  }
  std::vector<fenestra::Tensor<double>> in;
  std::vector<fenestra::Tensor<double>> dots;
  for (const fenestra::Shape& shape : network.inputs()) {
    in.push_back(fuzz::quarters(shape, static_cast<fenestra::Index>(in.size())));
    dots.push_back(fuzz::quarters(shape, 3));
  }
  const std::string complaint =
      fenestra::check::graph_complaint(network, in, dots, fuzz::quarters(network.output(), 1));
  if (!complaint.empty()) {
    fuzz::complain(complaint + "; nodes" + network.text());
  }
  return 0;
}
