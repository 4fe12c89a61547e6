// Compiling, binding and running.
#include <fenestra/base/memory.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/engine/execution.hpp>
#include <fenestra/engine/program.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/chain.hpp>
#include <fenestra/graph/channels.hpp>
#include <fenestra/graph/epilogue.hpp>
#include <fenestra/graph/explain.hpp>
#include <fenestra/graph/fold.hpp>
#include <fenestra/graph/recompute.hpp>
#include <fenestra/graph/schedule.hpp>
#include <fenestra/graph/simplify.hpp>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace fenestra {

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

void require(const graph::Requirement& requirement, const graph::Node& node, const void* data) {
  for (Index i = 0; i < node.elements(); ++i) {
    const double value = node.type == graph::DataType::f32
                             ? static_cast<double>(static_cast<const float*>(data)[i])
                             : static_cast<const double*>(data)[i];
    if (const Fault fault = requirement.condition.check(value)) {
      throw Error(requirement.reader,
                  fault,
                  requirement.reader + ": \"" + node.name + "\" holds " + std::to_string(value) +
                      " at element " + std::to_string(i) + "\n  fix: numbers that are " +
                      std::string(requirement.condition.needed));
    }
  }
}

void require_constants(const graph::Plan& plan) {
  for (const graph::Requirement& requirement : plan.requirements()) {
    const graph::Node& node = plan.graph().node(requirement.node);
    if (const auto* f32 = std::get_if<Tensor<float>>(&node.constant)) {
      require(requirement, node, f32->data());
    } else if (const auto* f64 = std::get_if<Tensor<double>>(&node.constant)) {
      require(requirement, node, f64->data());
    }
  }
}

std::shared_ptr<const graph::Plan> make_plan(const graph::Graph& graph,
                                             const CompileOptions& options) {
  const kernels::ScopedNumerics numerics(options.numerics.value_or(kernels::numerics()));
  const int workers = options.threads > 0 ? options.threads : threads();
  std::optional<graph::BatchTilingOptions> batch_tiling = options.batch_tiling;
  if (batch_tiling) {
    batch_tiling->workers = workers;
  }
  graph::verify(graph);
  graph::Graph result = graph::simplify(graph);
  const auto pass = [&](graph::Graph next) {
    result = std::move(next);
    graph::verify(result);
  };
  if (options.fold) {
    pass(graph::fold_scales(result));
    result = graph::simplify(result);
  }
  pass(graph::fuse_epilogues(result));
  pass(graph::read_soon(result));
  pass(graph::update_early(result));
  pass(graph::chain_elementwise(result));
  if (batch_tiling) {
    pass(graph::join_channels(result));
  }
  if (options.memory_limit > 0) {
    pass(graph::recompute(result, {options.memory_limit, batch_tiling, workers}));
  }
  std::vector<graph::ChannelRun> runs;
  if (batch_tiling) {
    runs = graph::channel_runs(result, *batch_tiling);
    pass(graph::tile_batch(result, *batch_tiling, runs));
  }
  const auto plan = std::make_shared<graph::Plan>(std::move(result), workers, runs);
  require_constants(*plan);
  plan->pack_constants();
  return plan;
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

[[noreturn]] void throw_argument(const std::string& form,
                                 const graph::Node& node,
                                 std::size_t i,
                                 ErrorCode code,
                                 const std::string& got) {
  throw Error(code,
              "program " + form + ": \"" + node.name + "\" (number " + std::to_string(i) + ") is " +
                  got + ", needed " + std::string(graph::data_type_name(node.type)) + " " +
                  to_string(node.shape) + "\n  fix: pass what the graph was built for");
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

namespace graph {

void check_arguments(const Plan& plan,
                     const std::string& form,
                     std::span<const RunArgument> arguments) {
  const Graph& graph = plan.graph();
  if (arguments.size() != plan.arguments().size()) {
    throw Error(ErrorCode::shape_mismatch,
                "program " + form + ": given " + std::to_string(arguments.size()) +
                    " tensors, needed " + std::to_string(plan.arguments().size()) +
                    "\n  fix: what the graph was built with, in that order");
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Node& node = graph.node(plan.arguments()[i]);
    if (arguments[i].type() != node.type) {
      throw_argument(form,
                     node,
                     i,
                     ErrorCode::dtype_mismatch,
                     std::string(data_type_name(arguments[i].type())));
    }
    if (arguments[i].shape() != node.shape) {
      throw_argument(form, node, i, ErrorCode::shape_mismatch, to_string(arguments[i].shape()));
    }
    if (node.type == DataType::index) {
      require_ranges(node, static_cast<const Index*>(arguments[i].data()));
    }
  }
  for (const Requirement& requirement : plan.requirements()) {
    if (const Node& node = graph.node(requirement.node); node.is_argument()) {
      const auto at = static_cast<std::size_t>(plan.result(requirement.node).index);
      require(requirement, node, arguments[at].data());
    }
  }
}

}  // namespace graph

template <class T>
void Context<T>::Free::operator()(void* memory) const {
  std::free(memory);
}

template <class T>
Context<T>::Context(const Program<T>& program) : bytes_(program.peak_bytes()) {
  arena_.reset(std::aligned_alloc(kAlignment, bytes_ + kAlignment));
  if (arena_ == nullptr) {
    throw OutOfMemory("the arena of a program", bytes_);
  }
  make_executions(program, static_cast<std::byte*>(arena_.get()));
}

template <class T>
Context<T>::Context(const Program<T>& program, std::byte* memory) : bytes_(program.peak_bytes()) {
  make_executions(program, memory);
}

template <class T>
void Context<T>::make_executions(const Program<T>& program, std::byte* arena) {
  std::size_t most_arguments = 0;
  std::size_t most_outputs = 0;
  for (std::size_t form = 0; form < kProgramForms; ++form) {
    if (const auto& plan = program.plans_[form]) {
      executions_[form] = std::make_unique<graph::Execution<T>>(plan, arena);
      most_arguments = std::max(most_arguments, plan->arguments().size());
      most_outputs = std::max(most_outputs, plan->graph().outputs().size());
    }
  }
  arguments_.reserve(most_arguments);
  outputs_.reserve(most_outputs);
}

template <class T>
Context<T>::~Context() = default;
template <class T>
Context<T>::Context(Context&&) noexcept = default;
template <class T>
Context<T>& Context<T>::operator=(Context&&) noexcept = default;

template <class T>
Program<T>::Program(const graph::Graph& graph, const CompileOptions& options) {
  const auto set = [&](ProgramForm form, const graph::Graph& of) {
    plans_[static_cast<std::size_t>(form)] = make_plan(of, options);
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
      throw Error(ErrorCode::invalid_graph,
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
    throw Error(ErrorCode::not_compiled,
                "program: " + form_name(form) + " was not compiled\n  fix: " +
                    spelled_option(form_name(form), true) + " in CompileOptions");
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
std::string Program<T>::explain(ProgramForm form,
                                graph::ExplainFormat format,
                                const graph::ReportOptions& options) const {
  graph::ReportOptions titled = options;
  if (titled.title.empty()) {
    titled.title = form_name(form);
  }
  return graph::explain(graph::make_report(plan(form), titled), format);
}

template <class T>
void Program<T>::bind(ProgramForm form,
                      Context<T>& context,
                      std::span<const RunArgument> arguments) const {
  const graph::Plan& plan = this->plan(form);
  const graph::Graph& graph = plan.graph();
  const auto& execution = context.executions_[static_cast<std::size_t>(form)];
  if (execution == nullptr || execution->plan() != &plan) {
    throw Error(ErrorCode::wrong_context,
                "program " + form_name(form) +
                    ": the context was made for another program\n  fix: Context(program)");
  }
  graph::check_arguments(plan, form_name(form), arguments);
  context.arguments_.clear();
  context.outputs_.clear();
  for (const RunArgument& argument : arguments) {
    context.arguments_.push_back(argument.data());
  }
  for (const graph::Output& output : graph.outputs()) {
    if (output.overwrites == graph::kNoNode) {
      continue;
    }
    const auto at = static_cast<std::size_t>(plan.result(output.overwrites).index);
    if (!arguments[at].is_writable()) {
      throw_argument(form_name(form),
                     graph.node(output.overwrites),
                     at,
                     ErrorCode::read_only,
                     "a constant that the program overwrites");
    }
    context.arguments_[at] = arguments[at].mutable_data();
  }
}

template <class T>
void Program<T>::execute(ProgramForm form,
                         Context<T>& context,
                         std::span<const RunArgument> arguments,
                         std::span<Tensor<T>> results,
                         std::span<double> seconds) const {
  bind(form, context, arguments);
  const graph::Graph& graph = plan(form).graph();
  std::size_t next = 0;
  for (const graph::Output& output : graph.outputs()) {
    if (output.overwrites != graph::kNoNode) {
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
  context.executions_[static_cast<std::size_t>(form)]->run(
      context.arguments_, context.outputs_, {.seconds = seconds});
}

template <class T>
void Program<T>::run(Context<T>& context,
                     std::span<const RunArgument> arguments,
                     std::span<T* const> results,
                     const AfterStep& after,
                     PackedParameters packed) const {
  bind(ProgramForm::run, context, arguments);
  std::size_t next = 0;
  for (const graph::Output& output : plan().graph().outputs()) {
    const bool is_result = output.overwrites == graph::kNoNode;
    if (is_result && next >= results.size()) {
      throw Error(ErrorCode::shape_mismatch,
                  "program run: memory for " + std::to_string(results.size()) +
                      " results\n  fix: one for each of result_shapes()");
    }
    context.outputs_.push_back(is_result ? results[next++] : nullptr);
  }
  context.executions_[static_cast<std::size_t>(ProgramForm::run)]->run(
      context.arguments_, context.outputs_, {.after = &after, .packed = packed});
}

template <class T>
std::vector<double> Program<T>::profile(ProgramForm form,
                                        Context<T>& context,
                                        std::span<const RunArgument> arguments,
                                        std::span<Tensor<T>> results) const {
  std::vector<double> seconds(plan(form).steps().size());
  execute(form, context, arguments, results, seconds);
  return seconds;
}

template <class T>
std::vector<Tensor<T>> Program<T>::execute_new(ProgramForm form,
                                               Context<T>& context,
                                               std::span<const RunArgument> arguments) const {
  const graph::Graph& graph = plan(form).graph();
  std::vector<Tensor<T>> results;
  results.reserve(graph.outputs().size());
  for (const graph::Output& output : graph.outputs()) {
    if (output.overwrites == graph::kNoNode) {
      results.push_back(Tensor<T>::uninitialised(graph.node(output.node).shape));
    }
  }
  execute(form, context, arguments, results);
  return results;
}

template class Context<float>;
template class Context<double>;
template class Program<float>;
template class Program<double>;

}  // namespace fenestra
