// The numbers of the fields of ONNX's messages, by message: what the reader reads, the patcher
// replaces and the exporter writes. Not installed.
#pragma once

#include <cstdint>

namespace fenestra::onnx::fields {

struct Model {
  static constexpr std::uint32_t ir_version = 1, producer = 2, producer_version = 3, graph = 7,
                                 opset = 8, metadata = 14, function = 25;
};
struct Opset {
  static constexpr std::uint32_t domain = 1, version = 2;
};
/// Of metadata, and of where external data are.
struct Entry {
  static constexpr std::uint32_t key = 1, value = 2;
};
struct Graph {
  static constexpr std::uint32_t node = 1, name = 2, initializer = 5, input = 11, output = 12,
                                 value_info = 13, sparse_initializer = 15;
};
struct Node {
  static constexpr std::uint32_t input = 1, output = 2, name = 3, op_type = 4, attribute = 5,
                                 domain = 7;
};
struct Attribute {
  static constexpr std::uint32_t name = 1, f = 2, i = 3, s = 4, t = 5, g = 6, floats = 7, ints = 8,
                                 strings = 9, tensors = 10, graphs = 11, type = 20, reference = 21;
};
struct Tensor {
  static constexpr std::uint32_t dims = 1, type = 2, floats = 4, ints = 5, strings = 6, longs = 7,
                                 name = 8, raw = 9, doubles = 10, unsigneds = 11, external = 13,
                                 location = 14;
};
struct SparseTensor {
  static constexpr std::uint32_t values = 1;
};
struct ValueInfo {
  static constexpr std::uint32_t name = 1, type = 2;
};
struct Type {
  static constexpr std::uint32_t tensor = 1, sequence = 4, map = 5, denotation = 6, sparse = 8,
                                 optional = 9;
};
struct TensorType {
  static constexpr std::uint32_t element = 1, shape = 2;
};
struct Dims {
  static constexpr std::uint32_t dim = 1;
};
struct Dim {
  static constexpr std::uint32_t extent = 1, label = 2;
};
struct Function {
  static constexpr std::uint32_t name = 1, input = 4, output = 5, attribute = 6, node = 7,
                                 opset = 9, domain = 10, default_attribute = 11;
};

}  // namespace fenestra::onnx::fields
