// From a model to the list of what is run: functions are written out, names become numbers, nodes
// that no output needs are dropped, and it is written down who reads a value last.
#include <fenestra/base/nearest.hpp>
#include <fenestra/io/onnx/plan.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace fenestra::onnx {

namespace {

/// A node and the version of the operators that it is written in.
struct Source {
  const Node* node;
  Index opset;
  bool is_made = false;  ///< of a function
};

/// Why an operator of the standard has no rule here; empty where that is no decision.
std::string_view left_out(std::string_view op) {
  const auto has = [&](std::string_view part) { return op.find(part) != std::string_view::npos; };
  if (op == "Loop" || op == "Scan") {
    return "loops are left out on purpose; a model that was exported unrolled";
  }
  if (has("QuantizeLinear") || op.starts_with("QLinear") || op.ends_with("Integer")) {
    return "quantised operators are left out on purpose; the model before it was quantised";
  }
  if (has("Sequence") || has("Optional") || has("String")) {
    return "sequences, optionals and texts are left out on purpose; a model of tensors";
  }
  return {};
}

/// Of a node whose operator is in no list.
Problem unknown_operator(const std::string& label, const Node& node, Index opset) {
  const std::string title = node.op_type + "-" + std::to_string(opset);
  if (const std::string_view why = left_out(node.op_type); !why.empty()) {
    return {label, title, "the operator is not known", std::string(why)};
  }
  std::vector<std::string> names;
  for (const Operator& known : operators()) {
    names.emplace_back(known.name);
  }
  const std::string near(nearest_name(node.op_type, names));
  return {label,
          title,
          "the operator is not known",
          near.empty() ? "see docs/onnx-operators.md for those that are"
                       : "perhaps " + near + "; see docs/onnx-operators.md"};
}

class Outliner {
 public:
  Outliner(Outline& result, const NetworkOptions& options) : out_(result), options_(options) {}

  void run() {
    const Graph& graph = out_.model.graph;
    for (const ValueInfo& input : graph.inputs) {
      defined_.insert(input.name);
    }
    for_each_defined(graph, [&](const std::string& name) { defined_.insert(name); });
    std::vector<Source> sources;
    for (const Node& node : graph.nodes) {
      write_out(node, out_.model.opset(), 0, sources);
    }
    std::vector<std::string> wanted = options_.outputs;
    for (const ValueInfo& output : graph.outputs) {
      if (options_.outputs.empty()) {
        wanted.push_back(output.name);
        out_.outputs.push_back(output);
      }
      require_tensor(output);
    }
    for (const std::string& name : options_.outputs) {
      out_.outputs.push_back(described(name));
    }
    if (wanted.empty()) {
      out_.problems.push_back({"", "", "the model has no outputs", "a complete model"});
    }
    add_initializers(graph);
    copies_ = copies_of(graph);
    out_.main = body_of(sources, wanted);
    find_inputs(graph);
    drop_unread();
  }

 private:
  // --- Functions of the file ---------------------------------------------------------------------

  void write_out(const Node& node, Index opset, int depth, std::vector<Source>& sources) {
    const auto function =
        std::find_if(out_.model.functions.begin(), out_.model.functions.end(), [&](const auto& f) {
          return f.name == node.op_type && f.domain == node.domain;
        });
    if (function == out_.model.functions.end()) {
      sources.push_back({&node, opset, depth > 0});
      return;
    }
    if (depth > kDeepest) {
      if (!is_too_deep_) {
        out_.problems.push_back(
            {node.name,
             node.op_type,
             "functions call each other more than " + std::to_string(kDeepest) + " deep",
             "functions that do not call themselves"});
      }
      is_too_deep_ = true;
      return;
    }
    if (out_.made.size() > kMostMade) {
      if (!is_too_large_) {
        out_.problems.push_back({node.name,
                                 node.op_type,
                                 "functions that call functions become more than " +
                                     std::to_string(kMostMade) + " nodes",
                                 "fewer calls"});
      }
      is_too_large_ = true;
      return;
    }
    const std::string prefix = (node.name.empty() ? node.op_type : node.name) + "/" +
                               std::to_string(out_.made.size()) + "/";
    std::map<std::string, std::string> renamed;
    for (std::size_t i = 0; i < function->inputs.size(); ++i) {
      renamed[function->inputs[i]] = i < node.inputs.size() ? node.inputs[i] : "";
    }
    for (std::size_t i = 0; i < function->outputs.size() && i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) {
        renamed[function->outputs[i]] = node.outputs[i];
      }
    }
    const auto found = function->opsets.find("");
    const Index inner = found == function->opsets.end() ? opset : found->second;
    for (const Node& part : function->nodes) {
      out_.made.push_back(rewritten(part, node, *function, prefix, renamed));
      write_out(out_.made.back(), inner, depth + 1, sources);
    }
  }

  static std::string new_name(const std::string& name,
                              const std::string& prefix,
                              std::map<std::string, std::string>& renamed) {
    if (name.empty()) {
      return name;
    }
    return renamed.try_emplace(name, prefix + name).first->second;
  }

  static Node rewritten(const Node& part,
                        const Node& call,
                        const Function& function,
                        const std::string& prefix,
                        std::map<std::string, std::string>& renamed) {
    Node node = part;
    node.name = prefix + (part.name.empty() ? part.op_type : part.name);
    for (std::string& name : node.inputs) {
      name = new_name(name, prefix, renamed);
    }
    for (std::string& name : node.outputs) {
      name = new_name(name, prefix, renamed);
    }
    std::vector<Attribute> attributes;
    for (Attribute& attribute : node.attributes) {
      if (!attribute.reference.empty()) {
        const Attribute* given = call.find(attribute.reference);
        for (const Attribute& other : function.default_attributes) {
          given = given == nullptr && other.name == attribute.reference ? &other : given;
        }
        if (given == nullptr) {
          continue;
        }
        const std::string name = attribute.name;
        attribute = *given;
        attribute.name = name;
      }
      if (attribute.g) {
        Graph graph = *attribute.g;
        for (Node& inner : graph.nodes) {
          inner = rewritten(inner, call, function, prefix, renamed);
        }
        for (ValueInfo& output : graph.outputs) {
          output.name = new_name(output.name, prefix, renamed);
        }
        for (TensorData& tensor : graph.initializers) {
          tensor.name = new_name(tensor.name, prefix, renamed);
        }
        attribute.g = std::make_shared<const Graph>(std::move(graph));
      }
      attributes.push_back(std::move(attribute));
    }
    node.attributes = std::move(attributes);
    return node;
  }

  // --- Names -------------------------------------------------------------------------------------

  /// Two branches may each have a value of one name; the second is another one.
  const std::string& scoped(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) {
        return found->second;
      }
    }
    return name;
  }

  int number(const std::string& name) { return number_of(scoped(name)); }

  int number_of(const std::string& name) {
    if (name.empty()) {
      return -1;
    }
    const auto alias = aliases_.find(name);
    if (alias != aliases_.end()) {
      return number_of(alias->second);
    }
    const auto [place, is_new] =
        out_.numbers.try_emplace(name, static_cast<int>(out_.names.size()));
    if (is_new) {
      out_.names.push_back(name);
    }
    return place->second;
  }

  void add_initializers(const Graph& graph) {
    for (const TensorData& tensor : graph.initializers) {
      add_tensor(tensor, true);
    }
  }

  void add_tensor(const TensorData& tensor, bool is_named) {
    out_.tensors.push_back({number(tensor.name), tensor, is_named});
    known_.insert(scoped(tensor.name));
  }

  template <class F>
  static void for_each_defined(const Graph& graph, const F& f) {
    for (const TensorData& tensor : graph.initializers) {
      f(tensor.name);
    }
    for (const Node& node : graph.nodes) {
      for (const std::string& output : node.outputs) {
        f(output);
      }
    }
  }

  /// A Constant is a given tensor, a copy of an initialiser one of its own, and another name for
  /// one is that one.
  bool absorb(const Source& source) {
    const Node& node = *source.node;
    if (!node.domain.empty() || node.outputs.size() != 1) {
      return false;
    }
    if (is_identity(node) && known_.count(scoped(node.inputs[0])) > 0 &&
        !is_output(node.outputs[0])) {
      const auto copy = copies_.find(node.outputs[0]);
      if (copy != copies_.end() && branch_depth_ == 0 && !source.is_made) {
        TensorData tensor = *copy->second;
        tensor.name = copy->first;
        add_tensor(tensor, true);
      } else {
        aliases_[scoped(node.outputs[0])] = scoped(node.inputs[0]);
        known_.insert(scoped(node.outputs[0]));
      }
      return true;
    }
    const Attribute* value = node.find("value");
    if (node.op_type == "Constant" && value != nullptr && value->t && source.opset >= 1) {
      TensorData tensor = *value->t;
      tensor.name = node.outputs[0];
      add_tensor(tensor, !source.is_made);
      return true;
    }
    return false;
  }

  bool is_output(const std::string& name) const {
    return std::any_of(out_.outputs.begin(), out_.outputs.end(), [&](const ValueInfo& output) {
      return output.name == name;
    });
  }

  ValueInfo described(const std::string& name) const {
    for (const auto* list :
         {&out_.model.graph.outputs, &out_.model.graph.value_infos, &out_.model.graph.inputs}) {
      for (const ValueInfo& info : *list) {
        if (info.name == name) {
          return info;
        }
      }
    }
    ValueInfo unknown;
    unknown.name = name;
    return unknown;
  }

  // --- Steps -------------------------------------------------------------------------------------

  Body body_of(const std::vector<Source>& sources, const std::vector<std::string>& wanted) {
    Body body;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Node& node = *sources[i].node;
      if (absorb(sources[i])) {
        continue;
      }
      Step step;
      step.node = &node;
      step.label = node.name.empty() ? "#" + std::to_string(i) : node.name;
      for (const std::string& name : node.inputs) {
        step.inputs.push_back(number(name));
      }
      for (const std::string& name : node.outputs) {
        step.outputs.push_back(number(name));
      }
      if (node.domain.empty()) {
        step.op = find_operator(node.op_type);
        step.since = step.op != nullptr ? step.op->since(sources[i].opset) : 0;
      }
      opsets_[&node] = sources[i].opset;
      body.steps.push_back(std::move(step));
    }
    for (const std::string& name : wanted) {
      body.outputs.push_back(number(name));
    }
    keep_needed(body);
    return body;
  }

  /// Names that the branches of a node read.
  void branch_reads(const Node& node, std::vector<int>& reads) {
    for (const Attribute& attribute : node.attributes) {
      if (!attribute.g) {
        continue;
      }
      for (const Node& inner : attribute.g->nodes) {
        for (const std::string& name : inner.inputs) {
          reads.push_back(number(name));
        }
        branch_reads(inner, reads);
      }
      for (const ValueInfo& output : attribute.g->outputs) {
        reads.push_back(number(output.name));
      }
    }
  }

  void keep_needed(Body& body) {
    std::set<int> needed(body.outputs.begin(), body.outputs.end());
    const std::set<int> kept = needed;
    std::vector<Step> live;
    for (auto step = body.steps.rbegin(); step != body.steps.rend(); ++step) {
      const bool is_needed =
          std::any_of(step->outputs.begin(), step->outputs.end(), [&](int value) {
            return value >= 0 && needed.count(value) > 0;
          });
      if (!is_needed) {
        continue;
      }
      std::vector<int> reads = step->inputs;
      branch_reads(*step->node, reads);
      for (const int value : reads) {
        if (value >= 0 && needed.insert(value).second) {
          step->released.push_back(value);
        }
      }
      for (const int value : step->outputs) {
        if (value >= 0 && needed.count(value) == 0) {
          step->released.push_back(value);
        }
      }
      live.push_back(std::move(*step));
    }
    std::reverse(live.begin(), live.end());
    body.steps = std::move(live);
    for (const Step& step : body.steps) {
      describe_problem(step);
      for (const Attribute& attribute : step.node->attributes) {
        if (attribute.g) {
          add_branch(*attribute.g, opsets_[step.node]);
        }
      }
    }
    read_.insert(needed.begin(), needed.end());
  }

  void add_branch(const Graph& graph, Index opset) {
    std::map<std::string, std::string> scope;
    for_each_defined(graph, [&](const std::string& name) {
      if (!name.empty() && !defined_.insert(name).second) {
        scope[name] = name + "#" + std::to_string(out_.branches.size());
        shared_.insert(name);
      }
    });
    scopes_.push_back(std::move(scope));
    add_initializers(graph);
    std::vector<Source> sources;
    for (const Node& node : graph.nodes) {
      write_out(node, opset, 0, sources);
    }
    std::vector<std::string> wanted;
    for (const ValueInfo& output : graph.outputs) {
      wanted.push_back(output.name);
    }
    ++branch_depth_;
    Body body = body_of(sources, wanted);
    --branch_depth_;
    // What a branch reads may belong to the graph around it, which decides when it is let go of.
    for (Step& step : body.steps) {
      step.released.clear();
    }
    out_.branches[&graph] = std::move(body);
    scopes_.pop_back();
  }

  // --- Problems ----------------------------------------------------------------------------------

  /// A branch that is never taken needs no support: its nodes complain when they are run.
  void describe_problem(const Step& step) {
    if (branch_depth_ > 0) {
      return;
    }
    const Node& node = *step.node;
    const Index opset = opsets_[&node];
    if (!node.domain.empty()) {
      out_.problems.push_back({step.label,
                               node.domain + "." + node.op_type,
                               "an operator of the domain " + node.domain,
                               "a model of standard operators, or functions in the file"});
    } else if (step.op == nullptr) {
      out_.problems.push_back(unknown_operator(step.label, node, opset));
    } else if (step.since == 0) {
      out_.problems.push_back(
          {step.label,
           node.op_type + "-" + std::to_string(opset),
           "the operator exists from opset " + std::to_string(step.op->versions.front()) + " on",
           "an opset_import of at least that"});
    }
  }

  void require_tensor(const ValueInfo& info) {
    if (!info.is_tensor) {
      out_.problems.push_back(
          {"", "", "'" + info.name + "' is no tensor", "a model with tensors in and out"});
    }
  }

  void find_inputs(const Graph& graph) {
    for (const ValueInfo& input : graph.inputs) {
      if (graph.find_initializer(input.name) != nullptr) {
        continue;
      }
      require_tensor(input);
      number(input.name);
      if (read_.count(number(input.name)) > 0 || options_.outputs.empty()) {
        out_.inputs.push_back(input);
      }
    }
    for (const std::string& sparse : graph.sparse_initializers) {
      if (read_.count(number(sparse)) > 0) {
        out_.problems.push_back(
            {"", "", "the initialiser '" + sparse + "' is sparse", "a dense one"});
      }
    }
    for (const std::string& name : options_.outputs) {
      if (out_.numbers.count(name) == 0 || !is_made(name)) {
        out_.problems.push_back({"", "", "no value is called '" + name + "'", near_value(name)});
      }
    }
  }

  /// The value that was probably meant, and those that nodes near the output make.
  std::string near_value(const std::string& name) const {
    std::vector<std::string> made;
    for (const Node& node : out_.model.graph.nodes) {
      made.insert(made.end(), node.outputs.begin(), node.outputs.end());
    }
    constexpr std::size_t kShown = 8;
    const std::string near(nearest_name(name, made));
    std::string help = near.empty() ? "one of the model's, from the last on " : "perhaps " + near;
    for (std::size_t i = 0; near.empty() && i < std::min(kShown, made.size()); ++i) {
      help += (i > 0 ? ", " : "") + made[made.size() - 1 - i];
    }
    return help;
  }

  bool is_made(const std::string& name) {
    const int value = number(name);
    const auto makes = [&](const Step& step) {
      return std::find(step.outputs.begin(), step.outputs.end(), value) != step.outputs.end();
    };
    return known_.count(name) > 0 ||
           std::any_of(out_.inputs.begin(),
                       out_.inputs.end(),
                       [&](const ValueInfo& input) { return input.name == name; }) ||
           std::any_of(out_.main.steps.begin(), out_.main.steps.end(), makes);
  }

  void drop_unread() {
    for (ModelTensor& given : out_.tensors) {
      given.is_named = given.is_named && shared_.count(given.tensor.name) == 0;
    }
    std::erase_if(out_.tensors,
                  [&](const ModelTensor& given) { return read_.count(given.value) == 0; });
  }

  static constexpr int kDeepest = 100;  ///< functions within functions
  static constexpr std::size_t kMostMade = 1'000'000;
  bool is_too_large_ = false;
  bool is_too_deep_ = false;
  Outline& out_;
  const NetworkOptions& options_;
  std::map<std::string, std::string> aliases_;
  std::map<std::string, const TensorData*, std::less<>> copies_;
  std::set<std::string> known_;
  std::set<int> read_;
  std::map<const Node*, Index> opsets_;
  int branch_depth_ = 0;
  std::vector<std::map<std::string, std::string>> scopes_;  ///< other names of values of branches
  std::set<std::string> defined_;                           ///< names, wherever they are made
  std::set<std::string> shared_;                            ///< those that are made twice
};

/// Operators whose first input comes out with the same numbers, so that it has their role.
bool passes_on(std::string_view op) {
  for (const std::string_view known :
       {"Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"}) {
    if (op == known) {
      return true;
    }
  }
  return false;
}

/// Whether nothing can be learnt through a node, since it rounds to integers or truth values.
bool gives_integers(const Step& step) {
  const Attribute* const to = step.node->op_type == "Cast" ? step.node->find("to") : nullptr;
  return to != nullptr && to->type == AttributeType::integer &&
         !is_floating(static_cast<ElementType>(to->i));
}

Role role_of_input(std::string_view op, std::size_t i) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), op) != names.end();
  };
  if (op == "BatchNormalization" && (i == 3 || i == 4)) {
    return Role::statistic;
  }
  if (is({"Gemm", "MatMul"}) || (i > 0 && is({"Conv",
                                              "ConvTranspose",
                                              "BatchNormalization",
                                              "InstanceNormalization",
                                              "LayerNormalization",
                                              "GroupNormalization",
                                              "PRelu",
                                              "LSTM",
                                              "GRU",
                                              "RNN"}))) {
    return Role::weight;
  }
  if (op == "Range" ||
      (i > 0 && is({"Clip", "Pow", "Pad", "Resize", "Upsample", "OneHot", "Dropout"}))) {
    return Role::setting;
  }
  return Role::plain;
}

}  // namespace

Outline outline(Model model, const NetworkOptions& options) {
  Outline result;
  result.model = std::move(model);
  result.problems = name_problems(result.model);
  if (result.problems.empty()) {
    Outliner(result, options).run();
    return result;
  }
  // Nothing can be followed through names that are wrong, but unknown operators are seen at once.
  const std::vector<Node>& nodes = result.model.graph.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].domain.empty() && find_operator(nodes[i].op_type) == nullptr) {
      const std::string label = nodes[i].name.empty() ? "#" + std::to_string(i) : nodes[i].name;
      result.problems.push_back(unknown_operator(label, nodes[i], result.model.opset()));
    }
  }
  return result;
}

std::vector<Role> roles(const Outline& outline) {
  std::vector<Role> of_value(outline.names.size(), Role::unused);
  const auto raise = [&](int value, Role role) {
    if (value >= 0) {
      Role& known = of_value[static_cast<std::size_t>(value)];
      known = std::max(known, role);
    }
  };
  for (const auto& branch : outline.branches) {
    for (const Step& step : branch.second.steps) {
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        raise(step.inputs[i], role_of_input(step.node->op_type, i));
      }
    }
  }
  for (const int output : outline.main.outputs) {
    raise(output, Role::plain);
  }
  for (auto step = outline.main.steps.rbegin(); step != outline.main.steps.rend(); ++step) {
    const bool is_rounded = gives_integers(*step);
    Role made = is_rounded ? Role::setting : Role::unused;
    for (const int output : step->outputs) {
      made = is_rounded || output < 0 ? made
                                      : std::max(made, of_value[static_cast<std::size_t>(output)]);
    }
    for (std::size_t i = 0; i < step->inputs.size(); ++i) {
      const Role role = role_of_input(step->node->op_type, i);
      const bool passes = i == 0 && passes_on(step->node->op_type);
      // What only settings are made of is a setting: scales put together of two constants.
      raise(step->inputs[i],
            passes || (role == Role::plain && made == Role::setting) ? made : role);
    }
  }
  std::vector<Role> result;
  for (const ModelTensor& given : outline.tensors) {
    result.push_back(of_value[static_cast<std::size_t>(given.value)]);
  }
  return result;
}

std::string operator_label(const Step& step) {
  return (step.node->domain.empty() ? "" : step.node->domain + ".") + step.node->op_type +
         (step.since > 0 ? "-" + std::to_string(step.since) : "");
}

}  // namespace fenestra::onnx
