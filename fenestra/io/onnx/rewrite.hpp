// One walk over a model's bytes that copies them with changes. Not installed.
#pragma once

#include <fenestra/io/onnx/model.hpp>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace fenestra::onnx {

/// What is to be another. Tensors may be those of branches; the rest is about the main graph.
struct Edit {
  std::map<std::string, const io::AnyTensor*, std::less<>> tensors = {};
  io::Metadata metadata = {};
  bool inline_external = true;
  std::set<std::size_t> dropped_nodes = {};  ///< by number
  std::set<std::string, std::less<>> dropped_tensors = {};
  std::set<std::string, std::less<>> dropped_infos = {};  ///< inputs and value_infos
  bool drops_outputs = false;
  std::map<std::string, ValueInfo, std::less<>> outputs = {};  ///< instead of those of the name
  std::string added = {};  ///< fields of the graph that follow all others
};

/// Throws `bad_file` for a tensor that the model does not have.
std::string rewritten(const Model& model, const Edit& edit);
/// Read again, from memory.
Model reread(const Model& model, const Edit& edit);

}  // namespace fenestra::onnx
