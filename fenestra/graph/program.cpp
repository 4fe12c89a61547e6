// Compiling, binding and running.
#include <fenestra/base/memory.hpp>
#include <fenestra/graph/differentiate.hpp>
#include <fenestra/graph/program.hpp>
#include <fenestra/graph/schedule.hpp>
#include <fenestra/graph/simplify.hpp>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace fenestra {

namespace graph {

namespace {

const void* constant_data(const Node& node) {
  if (const auto* f32 = std::get_if<Tensor<float>>(&node.constant)) {
    return f32->data();
  }
  if (const auto* f64 = std::get_if<Tensor<double>>(&node.constant)) {
    return f64->data();
  }
  const Selection& selection = std::get<Selection>(node.constant);
  return selection.is_compact() ? static_cast<const void*>(selection.taps().data())
                                : selection.indices().data();
}

Selection view_of(const SelectionType& type, const void* data) {
  if (type.form == SelectionForm::taps) {
    return Tensor<std::uint8_t>::view(static_cast<const std::uint8_t*>(data), type.shape);
  }
  return Tensor<Index>::view(static_cast<const Index*>(data), type.shape);
}

SelectionBuffer buffer_of(const SelectionType& type, void* data) {
  if (type.form == SelectionForm::taps) {
    return {nullptr, static_cast<std::uint8_t*>(data)};
  }
  return {static_cast<Index*>(data), nullptr};
}

}  // namespace

template <class T>
Execution<T>::Execution(std::shared_ptr<const Plan> plan, std::byte* arena)
    : plan_(std::move(plan)),
      arena_(arena),
      given_(plan_->given().size()),
      outputs_(plan_->graph().outputs().size()) {
  const Graph& graph = plan_->graph();
  // Where a pointer is not known yet the view stands on null, with the shape that it will have.
  for (const Step& step : plan_->steps()) {
    const Node& node = graph.node(step.node);
    for (const NodeId input : node.in) {
      const Place& place = plan_->result(input);
      if (Binding* follows = binding(place)) {
        follows->tensors.push_back(tensors_.size());
      }
      tensors_.push_back(
          Tensor<T>::view(static_cast<const T*>(address(place)), graph.node(input).shape));
    }
    for (const NodeId input : node.data) {
      const bool own = graph.node(input).type == DataType::index;
      const Place& place = own ? plan_->result(input) : plan_->workspace(input);
      if (Binding* follows = binding(place)) {
        follows->selections.push_back(selections_.size());
      }
      selections_.push_back(view_of(graph.selection_type(input), address(place)));
    }
  }
  std::size_t tensor = 0;
  std::size_t selection = 0;
  for (const Step& step : plan_->steps()) {
    const Node& node = graph.node(step.node);
    Call call;
    call.in = tensors_.data() + tensor;
    call.count = node.in.size();
    call.data = std::span<const Selection>(selections_).subspan(selection, node.data.size());
    tensor += node.in.size();
    selection += node.data.size();
    const Place& place = plan_->result(step.node);
    if (Binding* follows = binding(place)) {
      follows->results.push_back(calls_.size());
    }
    call.out = address(place);
    if (plan_->workspace(step.node).kind != Place::Kind::none) {
      call.workspace = buffer_of(node.workspace, address(plan_->workspace(step.node)));
    }
    call.scratch = address(step.scratch);
    calls_.push_back(call);
  }
}

template <class T>
void* Execution<T>::address(const Place& place) const {
  switch (place.kind) {
    case Place::Kind::arena: return arena_ + place.offset;
    case Place::Kind::constant:
      return const_cast<void*>(constant_data(plan_->graph().node(place.index)));
    default: return nullptr;
  }
}

template <class T>
typename Execution<T>::Binding* Execution<T>::binding(const Place& place) {
  switch (place.kind) {
    case Place::Kind::given: return &given_[static_cast<std::size_t>(place.index)];
    case Place::Kind::output: return &outputs_[static_cast<std::size_t>(place.index)];
    default: return nullptr;
  }
}

template <class T>
void Execution<T>::bind(Binding& binding, const void* pointer) noexcept {
  if (binding.now == pointer) {
    return;
  }
  binding.now = pointer;
  for (const std::size_t slot : binding.tensors) {
    tensors_[slot] = Tensor<T>::view(static_cast<const T*>(pointer), tensors_[slot].shape());
  }
  for (const std::size_t slot : binding.selections) {
    selections_[slot] = view_of(selections_[slot].type(), pointer);
  }
  for (const std::size_t slot : binding.results) {
    calls_[slot].out = const_cast<void*>(pointer);
  }
}

template <class T>
void Execution<T>::run(std::span<const void* const> given,
                       std::span<void* const> outputs) noexcept {
  for (std::size_t i = 0; i < given_.size(); ++i) {
    bind(given_[i], given[i]);
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    bind(outputs_[i], outputs[i]);
  }
  const std::vector<Step>& steps = plan_->steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].kernel->run(calls_[i]);
  }
  for (const OutputCopy& copy : plan_->copies()) {
    const Output& output = plan_->graph().outputs()[static_cast<std::size_t>(copy.output)];
    const Place& from = plan_->result(copy.node);
    const Binding* source = binding(from);
    const void* data = source != nullptr ? source->now : address(from);
    void* to = outputs[static_cast<std::size_t>(copy.output)];
    if (output.overwrites != kNoNode) {
      to = const_cast<void*>(binding(plan_->result(output.overwrites))->now);
    }
    if (const std::size_t bytes = plan_->graph().node(copy.node).bytes(); bytes > 0) {
      std::memcpy(to, data, bytes);
    }
  }
}

}  // namespace graph

namespace {

std::string form_name(ProgramForm form) {
  switch (form) {
    case ProgramForm::run: return "run";
    case ProgramForm::vjp: return "vjp";
    case ProgramForm::jvp: return "jvp";
    case ProgramForm::value_and_grad: return "value_and_grad";
  }
  return "";
}

std::shared_ptr<const graph::Plan> make_plan(const graph::Graph& graph) {
  graph::verify(graph);
  graph::Graph ordered = graph::update_early(graph::simplify(graph));
  graph::verify(ordered);
  return std::make_shared<const graph::Plan>(std::move(ordered));
}

std::vector<graph::NodeId> chosen(const graph::Graph& graph, const CompileOptions& options) {
  const std::vector<graph::NodeId> all = graph::differentiable(graph);
  if (options.wrt.empty()) {
    return all;
  }
  std::vector<graph::NodeId> result;
  for (const std::size_t i : options.wrt) {
    if (i >= all.size()) {
      throw Error(ErrorCode::invalid_index,
                  "compile: wrt names value " + std::to_string(i) + ", the program is given " +
                      std::to_string(all.size()) + "\n  fix: numbers from 0 to " +
                      std::to_string(all.size() - 1) + ", data not counted");
    }
    result.push_back(all[i]);
  }
  return result;
}

[[noreturn]] void throw_given(ProgramForm form,
                              const graph::Node& node,
                              std::size_t i,
                              ErrorCode code,
                              const std::string& got) {
  throw Error(code,
              "program " + form_name(form) + ": \"" + node.name + "\" (number " +
                  std::to_string(i) + ") is " + got + ", needed " +
                  std::string(graph::data_type_name(node.type)) + " " + to_string(node.shape) +
                  "\n  fix: pass what the graph was built for");
}

void require_ranges(const graph::Node& node, const Index* data) {
  for (const graph::DataRange& range : node.ranges) {
    for (Index i = 0; i < node.elements(); ++i) {
      if (data[i] < range.least || data[i] >= range.limit) {
        throw Error(range.reader,
                    {.code = ErrorCode::invalid_index,
                     .argument = Argument::indices,
                     .got = data[i],
                     .needed = range.limit},
                    range.reader + ": \"" + node.name + "\" holds " + std::to_string(data[i]) +
                        " at element " + std::to_string(i) + "\n  fix: numbers from " +
                        std::to_string(range.least) + " to " + std::to_string(range.limit - 1));
      }
    }
  }
}

}  // namespace

template <class T>
void Context<T>::Free::operator()(void* memory) const {
  std::free(memory);
}

template <class T>
Context<T>::Context(const Program<T>& program) : bytes_(program.peak_bytes()) {
  arena_.reset(std::aligned_alloc(kAlignment, bytes_ + kAlignment));
  if (arena_ == nullptr) {
    throw std::bad_alloc();
  }
  std::size_t most_given = 0;
  std::size_t most_outputs = 0;
  for (std::size_t form = 0; form < kProgramForms; ++form) {
    if (const auto& plan = program.plans_[form]) {
      executions_[form] =
          std::make_unique<graph::Execution<T>>(plan, static_cast<std::byte*>(arena_.get()));
      most_given = std::max(most_given, plan->given().size());
      most_outputs = std::max(most_outputs, plan->graph().outputs().size());
    }
  }
  given_.reserve(most_given);
  outputs_.reserve(most_outputs);
}

template <class T>
Program<T>::Program(const graph::Graph& graph, const CompileOptions& options) {
  const auto set = [&](ProgramForm form, const graph::Graph& of) {
    plans_[static_cast<std::size_t>(form)] = make_plan(of);
  };
  for (const graph::Node& node : graph.nodes()) {
    if (node.type != graph::DataType::index && node.type != graph::DataTypeOf<T>::value) {
      throw Error(ErrorCode::dtype_mismatch,
                  "compile: the graph computes in " +
                      std::string(graph::data_type_name(node.type)) + ", the program in " +
                      std::string(graph::data_type_name(graph::DataTypeOf<T>::value)) +
                      "\n  fix: the same scalar for both");
    }
  }
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    all.push_back(i);
  }
  if (options.run) {
    set(ProgramForm::run, graph);
  }
  if (options.vjp) {
    set(ProgramForm::vjp, graph::reverse(graph, all, chosen(graph, options), graph::Seed::input));
  }
  if (options.jvp) {
    set(ProgramForm::jvp, graph::forward(graph, chosen(graph, options)));
  }
  if (options.value_and_grad) {
    if (all.empty()) {
      throw Error(ErrorCode::shape_mismatch,
                  "compile: value_and_grad of a graph without outputs\n  fix: add the loss first");
    }
    const std::size_t first[] = {0};
    set(ProgramForm::value_and_grad,
        graph::reverse(graph, first, chosen(graph, options), graph::Seed::one));
  }
}

template <class T>
const graph::Plan& Program<T>::plan(ProgramForm form) const {
  if (!has(form)) {
    throw Error(ErrorCode::unknown_operator,
                "program: " + form_name(form) + " was not compiled\n  fix: {." + form_name(form) +
                    " = true} in CompileOptions");
  }
  return *plans_[static_cast<std::size_t>(form)];
}

template <class T>
std::size_t Program<T>::peak_bytes() const {
  std::size_t most = 0;
  for (const auto& plan : plans_) {
    most = std::max(most, plan ? plan->arena_bytes() : 0);
  }
  return (most + kAlignment - 1) / kAlignment * kAlignment;
}

template <class T>
std::vector<Shape> Program<T>::result_shapes(ProgramForm form) const {
  std::vector<Shape> shapes;
  const graph::Graph& graph = plan(form).graph();
  for (const graph::Output& output : graph.outputs()) {
    if (output.overwrites == graph::kNoNode) {
      shapes.push_back(graph.node(output.node).shape);
    }
  }
  return shapes;
}

template <class T>
std::string Program<T>::explain(ProgramForm form) const {
  return form_name(form) + "\n" + to_string(plan(form).graph()) + to_string(plan(form));
}

template <class T>
void Program<T>::execute(ProgramForm form,
                         Context<T>& context,
                         std::span<const Given> given,
                         std::span<Tensor<T>> results) const {
  const graph::Plan& plan = this->plan(form);
  const graph::Graph& graph = plan.graph();
  const auto& execution = context.executions_[static_cast<std::size_t>(form)];
  if (execution == nullptr || execution->plan() != &plan) {
    throw Error(ErrorCode::foreign_variable,
                "program " + form_name(form) +
                    ": the context was made for another program\n  fix: Context(program)");
  }
  if (given.size() != plan.given().size()) {
    throw Error(ErrorCode::shape_mismatch,
                "program " + form_name(form) + ": given " + std::to_string(given.size()) +
                    " tensors, needed " + std::to_string(plan.given().size()) +
                    "\n  fix: what the graph was built with, in that order");
  }
  context.given_.clear();
  context.outputs_.clear();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const graph::Node& node = graph.node(plan.given()[i]);
    if (given[i].type() != node.type) {
      throw_given(form,
                  node,
                  i,
                  ErrorCode::dtype_mismatch,
                  std::string(graph::data_type_name(given[i].type())));
    }
    if (given[i].shape() != node.shape) {
      throw_given(form, node, i, ErrorCode::shape_mismatch, to_string(given[i].shape()));
    }
    if (node.type == graph::DataType::index) {
      require_ranges(node, static_cast<const Index*>(given[i].data()));
    }
    context.given_.push_back(given[i].data());
  }
  std::size_t next = 0;
  for (const graph::Output& output : graph.outputs()) {
    if (output.overwrites != graph::kNoNode) {
      const auto at = static_cast<std::size_t>(plan.result(output.overwrites).index);
      if (!given[at].is_writable()) {
        throw_given(form,
                    graph.node(output.overwrites),
                    at,
                    ErrorCode::foreign_variable,
                    "a constant that the program overwrites");
      }
      context.given_[at] = given[at].mutable_data();
      context.outputs_.push_back(nullptr);
      continue;
    }
    const Shape& shape = graph.node(output.node).shape;
    if (next >= results.size() || results[next].shape() != shape) {
      throw Error(ErrorCode::shape_mismatch,
                  "program " + form_name(form) + ": result \"" + output.name + "\" (number " +
                      std::to_string(next) + ") is " +
                      (next < results.size() ? to_string(results[next].shape()) : "missing") +
                      ", needed " + to_string(shape) + "\n  fix: tensors of result_shapes()");
    }
    context.outputs_.push_back(results[next++].mutable_data());
  }
  execution->run(context.given_, context.outputs_);
}

template <class T>
std::vector<Tensor<T>> Program<T>::execute_new(ProgramForm form,
                                               Context<T>& context,
                                               std::span<const Given> given) const {
  std::vector<Tensor<T>> results;
  for (const Shape& shape : result_shapes(form)) {
    results.push_back(Tensor<T>::uninitialised(shape));
  }
  execute(form, context, given, results);
  return results;
}

template class Context<float>;
template class Context<double>;
template class Program<float>;
template class Program<double>;

}  // namespace fenestra
