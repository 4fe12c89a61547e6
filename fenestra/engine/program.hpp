// Program<T>: a graph and its derivatives, compiled. Context<T>: the memory one thread runs it in.
//
// A program is immutable and may be shared; each thread brings its context. What a run is given is
// checked before it starts (count, types, shapes, ranges of indices); from then on nothing is
// decided, and nothing allocated but the scratch that kernels keep per thread, which grows in a
// thread's first run and stays. A run that finds no memory for it throws std::bad_alloc: program
// and context are as good as before, but parameters that the program overwrites may be old or new.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>
#include <fenestra/graph/options.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace fenestra {

/// What a program can do, each compiled on its own.
enum class ProgramForm {
  run,             ///< the outputs
  vjp,             ///< given also a cotangent per output: the outputs, then the gradients
  jvp,             ///< given also a tangent per value of `wrt`: the outputs, then their tangents
  value_and_grad,  ///< the outputs, the first of a single element, then its gradients
};
inline constexpr std::size_t kProgramForms = 4;

struct CompileOptions {
  bool run = true;
  bool vjp = false;
  bool jvp = false;
  bool value_and_grad = false;
  /// What to differentiate by: numbers of inputs and parameters in the order in which a run is
  /// given them, data not counted. Empty: all of them.
  std::vector<std::size_t> wrt = {};
  /// Threads that work on pieces of a batch side by side; 0: as many as `threads()` says when it is
  /// compiled.
  int threads = 0;
  /// Whether kernels may transform their data; none: what the thread that compiles allows, see
  /// kernels/numerics.hpp.
  std::optional<Numerics> numerics = {};
  /// Whether what scales and shifts channels becomes part of the weights before it, see
  /// graph/fold.hpp; bits differ from eager evaluation then.
  bool fold = true;
  /// Bytes that the arena of a form may take, 0: as many as it needs. What waits too long is
  /// computed again, see graph/recompute.hpp; `memory_limit` is thrown where that does not help.
  std::size_t memory_limit = 0;
  /// How operations are run together; none: each on its own.
  std::optional<graph::BatchTilingOptions> batch_tiling = graph::BatchTilingOptions{};
};

/// Called by the thread that runs a program, between its steps, with the numbers of the results
/// that are complete since it was called before: to use them while the rest is computed, or to see
/// to what else is under way. What it throws ends the run.
using AfterStep = std::function<void(std::span<const std::size_t> results)>;

/// What becomes of parameters that kernels read in a form of their own (graph::Kernel::packing).
enum class PackedParameters {
  in_calls,  ///< a call packs what it reads, and forgets it
  kept,      ///< packed once, and kept by the context: runs with the same parameters follow
  again,     ///< as a run before has kept them: parameters have not changed since
};

/// A tensor that a run reads, or also writes where it was given as a variable.
class RunArgument {
 public:
  template <class T>
  RunArgument(const Tensor<T>& tensor)
      : type_(graph::DataTypeOf<T>::value), shape_(&tensor.shape()), data_(tensor.data()) {}
  template <class T>
  RunArgument(Tensor<T>& tensor)
      : type_(graph::DataTypeOf<T>::value),
        shape_(&tensor.shape()),
        data_(tensor.data()),
        tensor_(&tensor),
        write_([](void* t) -> void* { return static_cast<Tensor<T>*>(t)->mutable_data(); }) {}

  graph::DataType type() const { return type_; }
  const Shape& shape() const { return *shape_; }
  const void* data() const { return data_; }
  bool is_writable() const { return tensor_ != nullptr; }
  /// Detaches from tensors that share the storage.
  void* mutable_data() const { return write_(tensor_); }

 private:
  graph::DataType type_;
  const Shape* shape_;
  const void* data_;
  void* tensor_ = nullptr;
  void* (*write_)(void*) = nullptr;
};

namespace graph {
class Plan;  // graph/plan.hpp
template <class T>
class Execution;
}  // namespace graph

namespace detail {

template <class T>
struct IsTensor : std::false_type {};
template <class T>
struct IsTensor<Tensor<T>> : std::true_type {};
template <class T>
struct IsTensor<T&> : IsTensor<std::remove_const_t<T>> {};
template <class T>
struct IsTensor<const T> : IsTensor<T> {};

}  // namespace detail

template <class T>
class FENESTRA_API Program;  // clang asks the first declaration

/// Memory for runs of one program, by one thread at a time.
template <class T>
class FENESTRA_API Context {
 public:
  explicit Context(const Program<T>& program);
  /// In memory of the caller, which outlives it: `program.peak_bytes()` on a cache line. Contexts
  /// may share it, if they run one after the other.
  Context(const Program<T>& program, std::byte* memory);
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  std::size_t bytes() const { return bytes_; }

 private:
  friend class Program<T>;
  struct Free {
    void operator()(void* memory) const;
  };
  void make_executions(const Program<T>& program, std::byte* arena);

  std::size_t bytes_ = 0;
  std::unique_ptr<void, Free> arena_;
  std::array<std::unique_ptr<graph::Execution<T>>, kProgramForms> executions_;
  std::vector<const void*> arguments_;
  std::vector<void*> outputs_;
};

template <class T>
class FENESTRA_API Program {
 public:
  explicit Program(const graph::Graph& graph, const CompileOptions& options = {});

  /// Throws `unknown_operator` where that form was not asked for.
  const graph::Plan& plan(ProgramForm form = ProgramForm::run) const;
  bool has(ProgramForm form) const { return plans_[static_cast<std::size_t>(form)] != nullptr; }
  /// Bytes a context takes: the most any form needs.
  std::size_t peak_bytes() const;
  /// Shapes of the results of a form, overwritten parameters not counted.
  std::vector<Shape> result_shapes(ProgramForm form = ProgramForm::run) const;
  /// Steps, groups, kernels, places and totals of a form, for people: as text, as a drawing for
  /// Graphviz or as a page. `options.seconds` are what `profile` returned.
  std::string explain(ProgramForm form = ProgramForm::run,
                      graph::ExplainFormat format = graph::ExplainFormat::text,
                      const graph::ReportOptions& options = {}) const;

  /// Runs a form once and says how long each of its steps took, in seconds, in the order of
  /// `plan(form).steps()`. Steps that ran in several workers count their mean.
  std::vector<double> profile(ProgramForm form,
                              Context<T>& context,
                              std::span<const RunArgument> arguments,
                              std::span<Tensor<T>> results) const;

  /// Writes the results into `results`, which have their shapes. Allocates nothing, given results
  /// that share no storage.
  void run(Context<T>& context,
           std::span<const RunArgument> arguments,
           std::span<Tensor<T>> results) const {
    execute(ProgramForm::run, context, arguments, results);
  }
  /// The same into the caller's memory: for every result room for its elements, on a cache line
  /// (kAlignment).
  void run(Context<T>& context,
           std::span<const RunArgument> arguments,
           std::span<T* const> results,
           const AfterStep& after = {},
           PackedParameters packed = PackedParameters::in_calls) const;
  void vjp(Context<T>& context,
           std::span<const RunArgument> arguments,
           std::span<Tensor<T>> results) const {
    execute(ProgramForm::vjp, context, arguments, results);
  }
  void jvp(Context<T>& context,
           std::span<const RunArgument> arguments,
           std::span<Tensor<T>> results) const {
    execute(ProgramForm::jvp, context, arguments, results);
  }
  void value_and_grad(Context<T>& context,
                      std::span<const RunArgument> arguments,
                      std::span<Tensor<T>> results) const {
    execute(ProgramForm::value_and_grad, context, arguments, results);
  }

  /// The same with tensors one by one, and new tensors for the results. A parameter that the
  /// program overwrites must be a variable.
  template <class... Args>
    requires(detail::IsTensor<Args>::value && ...)
  std::vector<Tensor<T>> run(Context<T>& context, Args&&... args) const {
    return execute_new(
        ProgramForm::run, context, std::array<RunArgument, sizeof...(Args)>{RunArgument(args)...});
  }
  template <class... Args>
    requires(detail::IsTensor<Args>::value && ...)
  std::vector<Tensor<T>> vjp(Context<T>& context, Args&&... args) const {
    return execute_new(
        ProgramForm::vjp, context, std::array<RunArgument, sizeof...(Args)>{RunArgument(args)...});
  }
  template <class... Args>
    requires(detail::IsTensor<Args>::value && ...)
  std::vector<Tensor<T>> jvp(Context<T>& context, Args&&... args) const {
    return execute_new(
        ProgramForm::jvp, context, std::array<RunArgument, sizeof...(Args)>{RunArgument(args)...});
  }
  template <class... Args>
    requires(detail::IsTensor<Args>::value && ...)
  std::vector<Tensor<T>> value_and_grad(Context<T>& context, Args&&... args) const {
    return execute_new(ProgramForm::value_and_grad,
                       context,
                       std::array<RunArgument, sizeof...(Args)>{RunArgument(args)...});
  }

  void execute(ProgramForm form,
               Context<T>& context,
               std::span<const RunArgument> arguments,
               std::span<Tensor<T>> results) const {
    execute(form, context, arguments, results, {});
  }
  std::vector<Tensor<T>> execute_new(ProgramForm form,
                                     Context<T>& context,
                                     std::span<const RunArgument> arguments) const;

 private:
  friend class Context<T>;
  void execute(ProgramForm form,
               Context<T>& context,
               std::span<const RunArgument> arguments,
               std::span<Tensor<T>> results,
               std::span<double> seconds) const;
  /// Checks what a run is given and notes where it lies.
  void bind(ProgramForm form, Context<T>& context, std::span<const RunArgument> arguments) const;
  std::array<std::shared_ptr<const graph::Plan>, kProgramForms> plans_;
};

extern template class Context<float>;
extern template class Context<double>;
extern template class Program<float>;
extern template class Program<double>;

}  // namespace fenestra
