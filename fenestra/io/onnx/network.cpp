// Running a model: node by node, each by the rule of its operator.
#include <fenestra/io/onnx/network.hpp>
#include <fenestra/io/onnx/plan.hpp>
#include <fenestra/io/onnx/wire.hpp>
#include <fenestra/io/source.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace fenestra::onnx {

namespace {

/// The lines of a message that say what is wrong, and the one that says what would help.
Problem problem_of(const Step& step, std::string text) {
  std::string help;
  const std::size_t fix = text.find("\n  fix: ");
  if (fix != std::string::npos) {
    help = text.substr(fix + 8);
    text.resize(fix);
  }
  for (std::string* line : {&text, &help}) {
    for (std::size_t at = line->find('\n'); at != std::string::npos; at = line->find('\n')) {
      std::size_t end = at;
      while (end < line->size() && ((*line)[end] == '\n' || (*line)[end] == ' ')) {
        ++end;
      }
      line->replace(at, end - at, "; ");
    }
  }
  return {.node = step.label, .op = operator_label(step), .text = text, .help = help};
}

/// node "conv1" (Conv-11): with a space after it.
std::string place_of(const Step& step) {
  return to_string(Problem{.node = step.label, .op = operator_label(step)});
}

std::string title(const Model& model) {
  return "onnx: " + (model.file ? model.file->name : std::string("the model"));
}

[[noreturn]] void throw_problems(const Model& model, const std::vector<Problem>& problems) {
  std::string text = title(model) + ": " + std::to_string(problems.size()) +
                     (problems.size() == 1 ? " problem" : " problems");
  for (const Problem& problem : problems) {
    text += "\n  " + to_string(problem);
  }
  throw Error(ErrorCode::unsupported, text);
}

/// One run of a plan.
template <class T>
class Runner {
 public:
  Runner(const Plan<T>& plan,
         const std::vector<Weight<T>>& weights,
         const NetworkOptions& options,
         nn::Pass<T>* pass)
      : plan_(plan), weights_(weights), values_(plan.outline.names.size()) {
    context_.pass = pass;
    context_.budget = options.budget;
    context_.batch_statistics = options.batch_norm == BatchNormMode::batch;
    context_.run_graph = [this](const Graph& graph) { return run_branch(graph); };
    context_.buffer = [this](int value) { return buffer_of(value); };
    for (const auto& [value, datum] : plan.constants) {
      place(value) = datum;
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      place(plan.weights[i]) = Datum<T>(weights[i].value(), plan.weight_types[i]);
    }
  }

  void give(const std::string& name, const Datum<T>& datum) {
    const int value = plan_.outline.number_of(name);
    if (value >= 0) {
      place(value) = datum;
    }
  }
  /// Nothing where a problem lies in its way.
  const std::optional<Datum<T>>& result(int value) { return place(value); }

  /// Where `problems` is given, they are collected and the run goes on with what does not need
  /// them.
  void run(std::vector<Problem>* problems) {
    problems_ = problems;
    run(plan_.outline.main);
  }

 private:
  std::optional<Datum<T>>& place(int value) { return values_[static_cast<std::size_t>(value)]; }

  void run(const Body& body) {
    for (const Step& step : body.steps) {
      if (is_ready(step)) {
        run_step(step);
      }
      for (const int value : step.released) {
        place(value).reset();
      }
    }
  }

  bool is_ready(const Step& step) {
    for (const int input : step.inputs) {
      if (input >= 0 && !place(input)) {
        if (problems_ == nullptr) {
          throw Error(ErrorCode::bad_file,
                      "onnx: " + place_of(step) + "reads " +
                          io::shown(plan_.outline.names[static_cast<std::size_t>(input)]) +
                          ", which nothing made\n  fix: give it as an input");
        }
        return false;
      }
    }
    return true;
  }

  void run_step(const Step& step) {
    std::vector<const Datum<T>*> inputs;
    for (const int input : step.inputs) {
      inputs.push_back(input < 0 ? nullptr : &*place(input));
    }
    try {
      if (step.op == nullptr || step.since == 0) {
        throw Error(ErrorCode::unknown_operator,
                    "the operator is not known\n  fix: see docs/onnx-operators.md for those that "
                    "are");
      }
      Call<T> call{*step.node, step.since, std::move(inputs), step.inputs, context_};
      const Results<T> results = step.op->template rule<T>()(call);
      // What no rule could refuse before it was made: in a trace nothing is allocated yet.
      for (const Datum<T>& result : results) {
        call.require_budget(result.shape());
      }
      observe(step, call, results);
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        if (step.outputs[i] < 0) {
          continue;
        }
        if (i >= results.size()) {
          throw Error(ErrorCode::unsupported,
                      "output " + std::to_string(i) +
                          " is not computed here\n  fix: a model that "
                          "does not use it");
        }
        place(step.outputs[i]) = results[i];
      }
    } catch (const Error& error) {
      if (problems_ != nullptr) {
        problems_->push_back(problem_of(step, error.what()));
        // The inputs are there when it is run.
        problems_->back().is_open = error.code() == ErrorCode::foreign_variable;
        return;
      }
      const std::string_view text = error.what();
      throw Error(error.code(),
                  (text.starts_with("onnx: node") ? "" : "onnx: " + place_of(step)) +
                      spelled(text, error.text(Language::python)));
    }
  }

  /// Whoever watches a pass sees nodes as layers.
  void observe(const Step& step, const Call<T>& call, const Results<T>& results) {
    if (context_.pass == nullptr || !context_.pass->is_observed() || results.empty() ||
        results[0].as_value() == nullptr || !call.has(0) || call.at(0).as_value() == nullptr) {
      return;
    }
    const auto scope = context_.pass->enter(step.label);
    context_.pass->observed(
        step.node->op_type, *call.at(0).as_value(), *results[0].as_value(), call.reach);
  }

  Results<T> run_branch(const Graph& graph) {
    const Body& body = plan_.outline.branches.at(&graph);
    run(body);
    Results<T> results;
    for (const int output : body.outputs) {
      if (!place(output)) {
        throw Error(ErrorCode::unsupported, "its branch cannot be run\n  fix: see above");
      }
      results.push_back(*place(output));
    }
    return results;
  }

  const nn::Buffer<T>* buffer_of(int value) const {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (plan_.weights[i] == value && weights_[i].is_statistic) {
        return &weights_[i].buffer;
      }
    }
    return nullptr;
  }

  const Plan<T>& plan_;
  const std::vector<Weight<T>>& weights_;
  std::vector<std::optional<Datum<T>>> values_;
  RunContext<T> context_;
  std::vector<Problem>* problems_ = nullptr;
};

/// With the type that the model says it has.
template <class T>
Datum<T> as_declared(const Datum<T>& datum, const ValueInfo& info) {
  if (info.type == ElementType::undefined || datum.type() == info.type) {
    return datum;
  }
  if (is_floating(info.type)) {
    return Datum<T>(datum.value(), info.type);
  }
  if (datum.as_indices() != nullptr) {
    return Datum<T>(datum.indices(), info.type);
  }
  return datum.is_known() ? Datum<T>(datum.numbers(), info.type)
                          : Datum<T>(datum.value(), info.type);
}

/// The outline with its numbers, those with slots as weights.
template <class T>
std::shared_ptr<const Plan<T>> plan_of(Outline outline, std::vector<Weight<T>>& weights) {
  auto plan = std::make_shared<Plan<T>>();
  plan->outline = std::move(outline);
  const Outline& lines = plan->outline;
  const std::vector<Role> role = roles(lines);
  for (std::size_t i = 0; i < lines.tensors.size(); ++i) {
    const auto& [value, tensor, is_named] = lines.tensors[i];
    if (!is_floating(tensor.type)) {
      plan->constants.emplace_back(value, Datum<T>(tensor.read<Index>(), tensor.type));
      continue;
    }
    const Tensor<T> numbers = tensor.read<T>();
    const bool is_weight =
        role[i] == Role::weight || (role[i] == Role::plain && numbers.size() > 1);
    if (!is_named || (!is_weight && role[i] != Role::statistic)) {
      plan->constants.emplace_back(value, Datum<T>(numbers, tensor.type));
      continue;
    }
    Weight<T> weight;
    weight.name = lines.names[static_cast<std::size_t>(value)];
    weight.trained = is_weight;
    weight.is_statistic = !is_weight;
    weight.value() = numbers;
    weights.push_back(std::move(weight));
    plan->weights.push_back(value);
    plan->weight_types.push_back(tensor.type);
  }
  return plan;
}

/// Whether a shape is another than a model says. Names are labels, and what is not positive stands
/// for an extent that the exporter did not know; so do no extents at all.
bool contradicts(const Shape& shape, const std::vector<Dimension>& dims) {
  if (dims.empty()) {
    return false;
  }
  bool differs = shape.rank() != static_cast<int>(dims.size());
  for (int axis = 0; !differs && axis < shape.rank(); ++axis) {
    const std::optional<Index> extent = dims[static_cast<std::size_t>(axis)].extent;
    differs = extent && *extent > 0 && *extent != shape[axis];
  }
  return differs;
}

bool is_exactly(const Shape& shape, const std::vector<Dimension>& dims) {
  return !contradicts(shape, dims) && std::all_of(dims.begin(), dims.end(), [](const Dimension& d) {
    return d.extent.value_or(0) > 0;
  });
}

/// Outputs of the model that are not what it says they are. Nothing here relies on what it says,
/// and files that other runtimes accept are wrong about it, so that this is no error of a run.
template <class T>
std::vector<Problem> wrong_outputs(const Outline& lines, Runner<T>& runner) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < lines.outputs.size(); ++i) {
    const ValueInfo& info = lines.outputs[i];
    const int value = lines.main.outputs[i];
    if (value < 0) {
      continue;  // an empty name, which is listed by itself
    }
    const std::optional<Datum<T>>& result = runner.result(value);
    const bool is_output = std::any_of(lines.model.graph.outputs.begin(),
                                       lines.model.graph.outputs.end(),
                                       [&](const ValueInfo& o) { return o.name == info.name; });
    if (!is_output || !info.dims || !result || !contradicts(result->shape(), *info.dims)) {
      continue;
    }
    Problem problem{.text = "the output " + io::shown(info.name) + " is " +
                            to_string(result->shape()) + ", the model says (",
                    .help = "a file that says what it makes; a run does not rely on it"};
    for (std::size_t axis = 0; axis < info.dims->size(); ++axis) {
      const Dimension& dim = (*info.dims)[axis];
      problem.text += (axis > 0 ? ", " : "") + (dim.extent ? std::to_string(*dim.extent) : "?");
    }
    problem.text += ")";
    for (const Step& step : lines.main.steps) {
      if (std::find(step.outputs.begin(), step.outputs.end(), value) != step.outputs.end()) {
        problem.node = step.label;
        problem.op = operator_label(step);
      }
    }
    problems.push_back(std::move(problem));
  }
  return problems;
}

/// What goes wrong with inputs of these shapes, besides what the outline says already.
template <class T>
std::vector<Problem> shape_problems(const Plan<T>& plan,
                                    const std::vector<Weight<T>>& weights,
                                    const NetworkOptions& options,
                                    const std::map<std::string, Shape>& shapes) {
  const Outline& lines = plan.outline;
  std::vector<Problem> problems;
  Runner<T> runner(plan, weights, options, nullptr);
  graph::Builder<T> builder;
  bool are_declared = true;  // what comes out may be asked of the model for its own inputs only
  for (const ValueInfo& info : lines.inputs) {
    std::optional<Shape> shape;
    if (const auto given = shapes.find(info.name); given != shapes.end()) {
      shape = given->second;
    } else if (info.dims) {
      shape.emplace();
      for (const Dimension& dim : *info.dims) {
        if (!dim.extent) {
          shape.reset();
          break;
        }
        shape->push_back(*dim.extent);
      }
    }
    are_declared = are_declared && shape && info.dims && is_exactly(*shape, *info.dims);
    if (!shape || !shape->elements()) {
      problems.push_back({.text = "the shape of the input " + io::shown(info.name) + " is open",
                          .help = "say it: " + info.name + "=...",
                          .is_open = true});
      continue;
    }
    runner.give(info.name,
                info.type == ElementType::undefined || is_floating(info.type)
                    ? Datum<T>(Value<T>(builder.input(*shape, info.name)), info.type)
                    : Datum<T>(Indices(builder.data(*shape, info.name)), info.type));
  }
  runner.run(&problems);
  std::erase_if(problems, [&](const Problem& problem) {
    return std::any_of(lines.problems.begin(), lines.problems.end(), [&](const Problem& known) {
      return !known.node.empty() && known.node == problem.node;
    });
  });
  if (are_declared) {
    for (Problem& problem : wrong_outputs(lines, runner)) {
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

std::string listed(const std::vector<ValueInfo>& infos) {
  std::string text;
  for (const ValueInfo& info : infos) {
    text += (text.empty() ? "'" : ", '") + info.name + "'";
  }
  return text;
}

}  // namespace

template <class T>
Network<T>::Network(Model model, const NetworkOptions& options)
    : options_(options), plan_(plan_of<T>(outline(std::move(model), options), weights_)) {
  const Outline& lines = plan_->outline;
  if (!lines.problems.empty()) {
    std::vector<Problem> all = lines.problems;
    for (Problem& problem : shape_problems(*plan_, weights_, options_, {})) {
      if (!problem.is_open) {
        all.push_back(std::move(problem));
      }
    }
    throw_problems(lines.model, all);
  }
}

template <class T>
const std::vector<ValueInfo>& Network<T>::inputs() const {
  return plan_->outline.inputs;
}
template <class T>
const std::vector<ValueInfo>& Network<T>::outputs() const {
  return plan_->outline.outputs;
}
template <class T>
const Model& Network<T>::model() const {
  return plan_->outline.model;
}

template <class T>
typename Network<T>::Data Network<T>::run(const Data& inputs) const {
  return run(inputs, nullptr);
}
template <class T>
typename Network<T>::Data Network<T>::run(const Data& inputs, nn::Pass<T>& pass) const {
  return run(inputs, &pass);
}

template <class T>
typename Network<T>::Data Network<T>::run(const Data& inputs, nn::Pass<T>* pass) const {
  const Outline& lines = plan_->outline;
  Runner<T> runner(*plan_, weights_, options_, pass);
  for (const auto& [name, datum] : inputs) {
    const bool is_input = std::any_of(lines.model.graph.inputs.begin(),
                                      lines.model.graph.inputs.end(),
                                      [&](const ValueInfo& info) { return info.name == name; });
    if (!is_input && lines.model.graph.find_initializer(name) == nullptr) {
      throw Error(ErrorCode::unknown_choice,
                  title(lines.model) + " has no input '" + name + "'\n  fix: one of " +
                      listed(lines.inputs));
    }
    runner.give(name, datum);
  }
  for (const ValueInfo& info : lines.inputs) {
    const auto found = inputs.find(info.name);
    if (found == inputs.end()) {
      throw Error(ErrorCode::shape_mismatch,
                  title(lines.model) + ": the input '" + info.name +
                      "' is not given\n  fix: give all of " + listed(lines.inputs));
    }
    runner.give(info.name, as_declared(found->second, info));
  }
  runner.run(nullptr);
  Data results;
  for (std::size_t i = 0; i < lines.outputs.size(); ++i) {
    const std::optional<Datum<T>>& result = runner.result(lines.main.outputs[i]);
    if (!result) {
      throw Error(ErrorCode::bad_file,
                  title(lines.model) + ": nothing makes the output '" + lines.outputs[i].name +
                      "'\n  fix: a complete model");
    }
    results.insert_or_assign(lines.outputs[i].name, *result);
  }
  return results;
}

template <class T>
Value<T> Network<T>::call(const Value<T>& x, nn::Pass<T>* pass) const {
  const Outline& lines = plan_->outline;
  if (lines.inputs.size() != 1) {
    throw Error(ErrorCode::shape_mismatch,
                title(lines.model) + " has " + std::to_string(lines.inputs.size()) +
                    " inputs\n  fix: run({{name, value}, ...}) with " + listed(lines.inputs));
  }
  const Data results = run({{lines.inputs[0].name, Datum<T>(x)}}, pass);
  return results.find(lines.outputs[0].name)->second.value();
}
template <class T>
Value<T> Network<T>::operator()(const Value<T>& x) const {
  return call(x, nullptr);
}
template <class T>
Value<T> Network<T>::operator()(const Value<T>& x, nn::Pass<T>& pass) const {
  return call(x, &pass);
}

template <class T>
const Weight<T>* Network<T>::find_weight(std::string_view name) const {
  const auto found = std::find_if(weights_.begin(), weights_.end(), [&](const Weight<T>& weight) {
    return weight.name == name;
  });
  return found == weights_.end() ? nullptr : &*found;
}
template <class T>
Weight<T>* Network<T>::find_weight(std::string_view name) {
  return const_cast<Weight<T>*>(std::as_const(*this).find_weight(name));
}

template <class T>
void Network<T>::set_trained(std::string_view name, bool trained) {
  Weight<T>* weight = find_weight(name);
  if (weight == nullptr || (weight->is_statistic && trained)) {
    throw Error(ErrorCode::unknown_choice,
                "onnx: '" + std::string(name) +
                    (weight == nullptr ? "' is no weight of the model" : "' is a statistic") +
                    "\n  fix: the name of a floating-point initialiser that is no statistic");
  }
  Value<T> value = weight->value();
  weight->trained = trained;
  weight->value() = std::move(value);
}

template <class T>
std::vector<Problem> Network<T>::check(const std::map<std::string, Shape>& shapes) const {
  return shape_problems(*plan_, weights_, options_, shapes);
}

template <class T>
std::vector<Problem> Network<T>::cut_off() const {
  const Outline& lines = plan_->outline;
  std::set<int> reached(lines.main.outputs.begin(), lines.main.outputs.end());
  std::vector<const Step*> steps;  // those of branches too, the last first
  const auto follow = [&](const Body& body, const auto& again) -> void {
    for (auto step = body.steps.rbegin(); step != body.steps.rend(); ++step) {
      steps.push_back(&*step);
      const bool passes = (step->op == nullptr || step->op->derivative == Derivative::full) &&
                          std::any_of(step->outputs.begin(), step->outputs.end(), [&](int value) {
                            return reached.count(value) > 0;
                          });
      if (!passes) {
        continue;
      }
      reached.insert(step->inputs.begin(), step->inputs.end());
      for (const Attribute& attribute : step->node->attributes) {
        if (attribute.g) {
          const Body& branch = lines.branches.at(attribute.g.get());
          reached.insert(branch.outputs.begin(), branch.outputs.end());
          again(branch, again);
        }
      }
    }
  };
  follow(lines.main, follow);
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (!weights_[i].trained || reached.count(plan_->weights[i]) > 0) {
      continue;
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      const std::vector<int>& inputs = (*step)->inputs;
      if (std::find(inputs.begin(), inputs.end(), plan_->weights[i]) != inputs.end()) {
        problems.push_back({(*step)->label,
                            operator_label(**step),
                            "no derivative comes back to '" + weights_[i].name + "'",
                            "freeze it"});
        break;
      }
    }
  }
  return problems;
}

std::vector<Problem> problems(const Model& model, const NetworkOptions& options) {
  return outline(model, options).problems;
}
std::vector<Problem> problems(const Model& model,
                              const std::map<std::string, Shape>& shapes,
                              const NetworkOptions& options) {
  std::vector<Weight<float>> weights;
  const auto plan = plan_of<float>(outline(model, options), weights);
  std::vector<Problem> all = plan->outline.problems;
  for (Problem& problem : shape_problems(*plan, weights, options, shapes)) {
    all.push_back(std::move(problem));
  }
  return all;
}

template class Network<float>;
template class Network<double>;

}  // namespace fenestra::onnx
