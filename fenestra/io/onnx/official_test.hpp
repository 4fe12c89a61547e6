// The official test vectors of ONNX (Debian's libonnx-testdata): models with inputs and the outputs
// that they must have. Shared by the tests that run and those that differentiate them. Not
// installed.
#pragma once

#include <fenestra/base/file.hpp>
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/network.hpp>
#include <fenestra/io/onnx/wire.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fenestra::onnx::official {

namespace fs = std::filesystem;

/// The lists of operators that the tests are counted by: what classic networks are made of, the
/// rest of them, recurrent networks with control and detectors' tails (1 to 3); others that are
/// known (4) and not (5).
inline int tier_of(const std::string& op) {
  static const auto words = [](const char* text) {
    std::istringstream in(text);
    std::set<std::string> result;
    for (std::string word; in >> word;) {
      result.insert(word);
    }
    return result;
  };
  static const std::set<std::string> tiers[] = {
      words(
          "Conv ConvTranspose MaxPool AveragePool GlobalAveragePool GlobalMaxPool "
          "BatchNormalization InstanceNormalization LayerNormalization Relu LeakyRelu PRelu Clip "
          "Sigmoid HardSigmoid HardSwish Tanh Softmax Erf Add Sub Mul Div Max Min Pow Sqrt Exp Log "
          "Neg MatMul Gemm ReduceMean ReduceSum ReduceMax Concat Split Slice Reshape Flatten "
          "Transpose Squeeze Unsqueeze Expand Pad Resize Gather Identity Constant ConstantOfShape "
          "Shape Cast Range Equal Where Floor"),
      words(
          "LpPool GlobalLpPool MaxUnpool LRN GroupNormalization LpNormalization "
          "MeanVarianceNormalization Elu Selu Celu ThresholdedRelu Softplus Softsign LogSoftmax "
          "Mish Gelu Dropout Hardmax Sum Mean Abs Reciprocal Ceil Round Sign Sin Cos ReduceMin "
          "ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare ArgMax ArgMin "
          "Tile Upsample DepthToSpace SpaceToDepth GatherElements Size Not And Or Xor Less "
          "LessOrEqual Greater GreaterOrEqual Mod CastLike NegativeLogLikelihoodLoss "
          "SoftmaxCrossEntropyLoss"),
      words(
          "LSTM GRU RNN If TopK NonMaxSuppression GatherND ScatterND ScatterElements OneHot CumSum "
          "Einsum GridSample RoiAlign")};
  for (int tier = 0; tier < 3; ++tier) {
    if (tiers[tier].count(op) > 0) {
      return tier + 1;
    }
  }
  return find_operator(op) != nullptr ? 4 : 5;
}

struct Case {
  std::string folder;
  std::string name;
  fs::path path;
  std::set<std::string> operators;
  int tier = 0;
  bool in_double = false;  ///< something is float64
  std::vector<fs::path> data_sets;
};

inline void collect_operators(const Graph& graph, std::set<std::string>& names) {
  for (const Node& node : graph.nodes) {
    names.insert(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type);
    for (const Attribute& attribute : node.attributes) {
      if (attribute.g) {
        collect_operators(*attribute.g, names);
      }
    }
  }
}

inline bool is_counted(const ValueInfo& info) {
  switch (info.type) {
    case ElementType::float32:
    case ElementType::float64:
    case ElementType::int64:
    case ElementType::int32:
    case ElementType::int8:
    case ElementType::uint8:
    case ElementType::boolean: return info.is_tensor;
    default: return false;
  }
}

/// A single tensor's file, as the only initialiser of a model around it.
inline TensorData read_tensor(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::string graph;
  append_bytes(graph, 5, bytes);
  std::string opset;
  append_number(opset, 2, 17);
  std::string model;
  append_number(model, 1, 8);
  append_bytes(model, 8, opset);
  append_bytes(model, 7, graph);
  const Model read = read_model(bytes_of(model), path.filename().string());
  return read.graph.initializers.at(0);
}

template <class T>
Datum<T> datum_of(const TensorData& tensor) {
  return is_floating(tensor.type) ? Datum<T>(tensor.read<T>(), tensor.type)
                                  : Datum<T>(tensor.read<Index>(), tensor.type);
}

/// All tests whose operators are in the lists, and that have tensors of usual types and data.
inline std::vector<Case> cases(const fs::path& root) {
  std::vector<Case> all;
  for (const char* folder : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    std::vector<fs::path> paths;
    for (const fs::directory_entry& entry : fs::directory_iterator(root / folder)) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
      Case test{folder, path.filename().string(), path, {}, 0, false, {}};
      Model model;
      try {
        model = read_model(path / "model.onnx");
      } catch (const Error&) {
        continue;  // sequences, optionals; what is counted is checked by number
      }
      collect_operators(model.graph, test.operators);
      bool counted = true;
      for (const auto* infos : {&model.graph.inputs, &model.graph.outputs}) {
        for (const ValueInfo& info : *infos) {
          counted = counted && is_counted(info);
          test.in_double = test.in_double || info.type == ElementType::float64;
        }
      }
      for (const std::string& op : test.operators) {
        test.tier = std::max(test.tier, tier_of(op));
      }
      for (int i = 0; fs::is_directory(path / ("test_data_set_" + std::to_string(i))); ++i) {
        test.data_sets.push_back(path / ("test_data_set_" + std::to_string(i)));
      }
      if (counted && test.tier <= 4 && !test.data_sets.empty()) {
        all.push_back(std::move(test));
      }
    }
  }
  return all;
}

/// The inputs of a data set, in the order of the model's.
template <class T>
typename Network<T>::Data inputs_of(const Network<T>& network, const fs::path& data_set) {
  typename Network<T>::Data inputs;
  std::size_t i = 0;
  for (const ValueInfo& info : network.model().graph.inputs) {
    const fs::path file = data_set / ("input_" + std::to_string(i++) + ".pb");
    if (fs::exists(file)) {
      inputs.insert_or_assign(info.name, datum_of<T>(read_tensor(file)));
    }
  }
  return inputs;
}

}  // namespace fenestra::onnx::official
