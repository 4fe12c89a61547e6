// Execution: a plan with its pointers filled in, in the memory of one context. Internal: not
// installed.
#pragma once

#include <fenestra/engine/program.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fenestra::graph {

/// Memory as the indices of a type, and where those of a selection lie.
Selection view_of(const SelectionType& type, const void* data);
const void* data_of(const Selection& selection);

/// What a run of that plan is given must fit: count, types, shapes, ranges of indices and what
/// operations ask of numbers. `form` is for messages.
void check_arguments(const Plan& plan,
                     const std::string& form,
                     std::span<const RunArgument> arguments);

struct ExecutionOptions {
  /// One for each step or none at all: how long each took. Steps that ran in several workers count
  /// their mean.
  std::span<double> seconds = {};
  const AfterStep* after = nullptr;  ///< may be empty
  PackedParameters packed = PackedParameters::in_calls;
};

/// Which of several executions of one plan this is, in memory that they share: what one buffer of
/// the plan is for all of them lies side by side, so that samples of all may be seen as one batch.
struct SharedArena {
  std::size_t count = 1;
  std::size_t number = 0;
};

template <class T>
class JointExecution;

template <class T>
class Execution {
 public:
  Execution(std::shared_ptr<const Plan> plan, std::byte* arena, SharedArena shared = {});
  /// One pointer for each thing given and for each output; those of overwriting outputs are not
  /// read.
  void run(std::span<const void* const> arguments,
           std::span<void* const> outputs,
           const ExecutionOptions& options);
  const Plan* plan() const { return plan_.get(); }

 private:
  friend class JointExecution<T>;
  /// The slots that follow a pointer of the caller.
  struct Binding {
    const void* now = nullptr;
    std::vector<std::size_t> tensors;
    std::vector<std::size_t> selections;
    std::vector<std::size_t> results;  ///< calls that write there
  };
  /// A parameter as the kernel of a step reads it, and the one of the last piece.
  struct KeptForm {
    std::size_t step = 0;
    std::size_t argument = 0;
    Tensor<std::uint8_t> packed = Tensor<std::uint8_t>(Shape{0});
    Tensor<std::uint8_t> packed_rest = Tensor<std::uint8_t>(Shape{0});
  };
  /// Where a piece of a buffer lies: in the worker at `offset`, or `row` elements per sample from
  /// where the whole lies.
  struct Cut {
    bool is_whole = false;
    bool is_local = false;
    std::size_t offset = 0;
    Index row = 0;
  };
  /// What the steps of a loop read and write, in the order of the steps.
  struct Loop {
    struct Worker {
      std::byte* memory = nullptr;
      std::vector<Tensor<T>> tensors;
      std::vector<Selection> selections;
      std::vector<Call> calls;
      std::vector<double> seconds;
    };
    std::size_t first_tensor = 0;
    std::size_t first_selection = 0;
    std::vector<Cut> tensors;
    std::vector<Cut> selections;
    std::vector<Cut> results;
    std::vector<Cut> workspaces;
    std::vector<Worker> workers;
  };

  /// How the members of a run of channels go: together, a few channels at a time, so that all of
  /// their results are complete at the end, or each as a step of its own.
  enum class Channels { in_turn, at_once };

  void make_calls();
  /// Which steps complete which results.
  void find_results(Channels channels);
  void find_kept_forms();
  /// Memory for all forms, or for none of them, and calls that know it.
  void take_kept_forms(bool keeps);
  void pack(KeptForm& form);
  void make_loop(const PieceLoop& loop, std::size_t tensor, std::size_t selection);
  void bind(Binding& binding, const void* pointer) noexcept;
  void run_loop(std::size_t number, Index samples, std::span<double> seconds);
  void run_piece(const PieceLoop& plan,
                 Index samples,
                 const Loop& loop,
                 typename Loop::Worker& worker,
                 Index number,
                 bool timed);
  void run_channels(std::size_t number, std::span<double> seconds);
  void copy_outputs(std::span<void* const> outputs) noexcept;
  /// Of something with so many bytes.
  void* address(const Place& place, std::size_t bytes) const;
  void* address_of_data(NodeId id) const;
  Binding* binding(const Place& place);
  static Cut cut(const Place& place, const Shape& shape);

  std::shared_ptr<const Plan> plan_;
  std::byte* arena_;
  SharedArena shared_;
  std::vector<Tensor<T>> tensors_;
  std::vector<Selection> selections_;
  std::vector<Call> calls_;
  std::vector<Binding> arguments_;
  std::vector<Binding> outputs_;
  std::vector<Loop> loops_;
  std::vector<std::vector<double>> channel_seconds_;  ///< of a channel loop: steps of each piece
  std::vector<const void*> packed_rests_;  ///< of the steps, as `Call::packed` for the last piece
  std::vector<KeptForm> kept_forms_;       ///< in the order of the steps
  bool has_kept_memory_ = false;
  bool has_kept_forms_ = false;                          ///< all of them, whole
  std::vector<std::vector<std::size_t>> results_after_;  ///< that each step completes
  std::vector<std::size_t> copied_results_;              ///< complete when all steps have run
};

extern template class Execution<float>;
extern template class Execution<double>;

}  // namespace fenestra::graph
