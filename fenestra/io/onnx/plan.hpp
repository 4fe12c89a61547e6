// Plan<T>: a model made ready to run: the nodes that outputs need, in order, names as numbers, and
// the numbers that the model brings. Not installed.
#pragma once

#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/network.hpp>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace fenestra::onnx {

/// A node to run. Values are numbers into `Plan::names`; -1: left out.
struct Step {
  const Node* node = nullptr;
  const Operator* op = nullptr;  ///< null: not known; running it is an error
  int since = 0;
  std::string label;  ///< its name, or "#12"
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<int> released;  ///< values that nobody reads after it
};

/// A graph, or the branch of an If.
struct Body {
  std::vector<Step> steps;
  std::vector<int> outputs;
};

/// Numbers that the model brings, from an initialiser or a Constant.
struct ModelTensor {
  int value = -1;
  TensorData tensor;
  /// Whether its name stands for it alone in the file: not in a function, nor in two branches.
  bool is_named = true;
};

/// What does not depend on the scalar.
struct Outline {
  Model model;
  std::deque<Node> made;  ///< of functions, written out
  std::vector<std::string> names;
  Body main;
  std::map<const Graph*, Body> branches;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ModelTensor> tensors;
  std::vector<Problem> problems;

  int number_of(const std::string& name) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? -1 : found->second;
  }
  std::unordered_map<std::string, int> numbers;
};

Outline outline(Model model, const NetworkOptions& options);

/// How a tensor of the model is used.
enum class Role { unused, setting, plain, weight, statistic };
/// One for each of `Outline::tensors`.
std::vector<Role> roles(const Outline& outline);

std::string operator_label(const Step& step);

template <class T>
struct Plan {
  Outline outline;
  std::vector<std::pair<int, Datum<T>>> constants;  ///< that have no slot
  std::vector<int> weights;                         ///< the value of each weight
  std::vector<ElementType> weight_types;
};

}  // namespace fenestra::onnx
