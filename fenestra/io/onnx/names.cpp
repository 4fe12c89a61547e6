// Names of values: each is made once, before it is used.
#include <fenestra/io/onnx/model.hpp>
#include <fenestra/io/source.hpp>

#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace fenestra::onnx {

namespace {

/// An operator is a word of the file like any other, and may hold whatever bytes.
std::string without_quotes(const std::string& text) { return text.substr(1, text.size() - 2); }

}  // namespace

std::string to_string(const Problem& problem) {
  std::string text;
  if (!problem.node.empty() || !problem.op.empty()) {
    const bool is_numbered = problem.node.starts_with('#');
    text += "node " + (is_numbered ? problem.node : io::shown(problem.node)) +
            (problem.op.empty() ? "" : " (" + without_quotes(io::shown(problem.op)) + ")") + ": ";
  }
  text += problem.text;
  return problem.help.empty() ? text : text + "; " + problem.help;
}

std::string kind_name(AttributeType type) {
  switch (type) {
    case AttributeType::undefined: return "of no type";
    case AttributeType::real: return "a number";
    case AttributeType::integer: return "an integer";
    case AttributeType::string: return "a text";
    case AttributeType::tensor: return "a tensor";
    case AttributeType::graph: return "a graph";
    case AttributeType::reals: return "a list of numbers";
    case AttributeType::integers: return "a list of integers";
    case AttributeType::strings: return "a list of texts";
    case AttributeType::tensors: return "a list of tensors";
    case AttributeType::graphs: return "a list of graphs";
  }
  return "of type " + std::to_string(static_cast<int>(type));
}

namespace {

using Names = std::set<std::string, std::less<>>;

class NameCheck {
 public:
  void graph(const Graph& graph, Names known) {
    Names own;
    const auto define = [&](const std::string& name, const Problem& where) {
      if (name.empty()) {
        return;
      }
      if (!own.insert(name).second) {
        complain(where, "defines " + io::shown(name) + ", which is defined already");
      }
      known.insert(name);
    };
    for (const ValueInfo& input : graph.inputs) {
      define(input.name, {.text = "an input "});
    }
    Names initializers;
    for (const TensorData& tensor : graph.initializers) {
      if (!initializers.insert(tensor.name).second) {
        complain({}, "two initialisers are called " + io::shown(tensor.name));
      }
      own.insert(tensor.name);
      known.insert(tensor.name);
    }
    for (const std::string& name : graph.sparse_initializers) {
      define(name, {.text = "a sparse initialiser "});
    }
    nodes(graph.nodes, known, define);
    for (const ValueInfo& output : graph.outputs) {
      if (!known.contains(output.name)) {
        complain({}, "nothing makes the output " + io::shown(output.name));
      }
    }
  }

  void function(const Function& function) {
    Names known(function.inputs.begin(), function.inputs.end());
    nodes(function.nodes, known, [&](const std::string& name, const Problem&) {
      known.insert(name);
    });
    for (const std::string& output : function.outputs) {
      if (!known.contains(output)) {
        complain({},
                 "nothing makes the output " + io::shown(output) + " of function " +
                     io::shown(function.name));
      }
    }
  }

  std::vector<Problem> take() { return std::move(problems_); }

 private:
  void complain(const Problem& where, const std::string& text) {
    problems_.push_back({.node = where.node, .op = where.op, .text = where.text + text});
  }

  template <class Define>
  void nodes(const std::vector<Node>& nodes, Names& known, const Define& define) {
    Names made;
    for (const Node& node : nodes) {
      made.insert(node.outputs.begin(), node.outputs.end());
    }
    std::size_t number = 0;
    for (const Node& node : nodes) {
      const Problem where{.node = node.name.empty() ? "#" + std::to_string(number) : node.name,
                          .op = node.op_type,
                          .text = {},
                          .help = {}};
      ++number;
      for (const std::string& input : node.inputs) {
        if (input.empty() || known.contains(input)) {
          continue;
        }
        complain(where,
                 made.contains(input)
                     ? "uses " + io::shown(input) +
                           ", which a later node makes: a cycle, or nodes out of order"
                     : "uses " + io::shown(input) + ", which nothing makes");
        known.insert(input);  // said once
      }
      for (const Attribute& attribute : node.attributes) {
        if (attribute.g) {
          graph(*attribute.g, known);
        }
      }
      for (const std::string& output : node.outputs) {
        define(output, where);
      }
    }
  }

  std::vector<Problem> problems_;
};

}  // namespace

std::map<std::string, const TensorData*, std::less<>> copies_of(const Graph& graph) {
  std::map<std::string_view, const TensorData*> initializers;
  for (const TensorData& tensor : graph.initializers) {
    if (is_floating(tensor.type)) {
      initializers.emplace(tensor.name, &tensor);
    }
  }
  std::map<std::string, const TensorData*, std::less<>> copies;
  std::map<const TensorData*, std::set<std::string_view>> read_as;
  for (const Node& node : graph.nodes) {
    const bool is_copy = is_identity(node);
    for (const std::string& input : node.inputs) {
      const auto copied = copies.find(input);
      const auto given = initializers.find(input);
      if (copied == copies.end() && given == initializers.end()) {
        continue;
      }
      const TensorData* const origin = copied != copies.end() ? copied->second : given->second;
      read_as[origin].insert(is_copy ? node.outputs[0] : input);
      if (is_copy) {
        copies.emplace(node.outputs[0], origin);
      }
    }
  }
  std::erase_if(copies, [&](const auto& copy) { return read_as[copy.second].size() < 2; });
  return copies;
}

std::vector<Problem> name_problems(const Model& model) {
  NameCheck check;
  check.graph(model.graph, {});
  for (const Function& function : model.functions) {
    check.function(function);
  }
  return check.take();
}

}  // namespace fenestra::onnx
