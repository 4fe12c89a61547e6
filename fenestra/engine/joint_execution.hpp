// JointExecution: one plan on several batches of the same shape, step by step side by side: each
// gets the bits it gets alone. What an operation does sample by sample it does to the samples of
// all of them at once, as a single batch, so that its weights are read once; the rest (sums over
// samples, statistics) is done to one after the other, while what they share is in the cache. The
// members of a run of channels are steps like others, so that each of their results is complete
// before the next one is written. Internal: not installed.
#pragma once

#include <fenestra/engine/execution.hpp>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace fenestra::graph {

/// Called between steps, with one of the batches and its results that are complete since.
using AfterJointStep = std::function<void(std::size_t batch, std::span<const std::size_t> results)>;

template <class T>
class JointExecution {
 public:
  /// Whether each of the outputs from number `first` on is written once, by a step of its own, and
  /// read by none: then its memory may serve the next output, or batch, when it is complete.
  static bool writes_once(const Plan& plan, std::size_t first);

  /// In memory of the caller, on a cache line: as many bytes as the plan's arena for each batch.
  /// `differs` says which of the arguments are not the same for all batches.
  JointExecution(std::shared_ptr<const Plan> plan,
                 std::size_t batches,
                 std::byte* arena,
                 std::vector<bool> differs);

  /// For every batch as for Execution::run, but that arguments that differ lie one behind the other
  /// in memory.
  struct Batch {
    std::vector<const void*> arguments;
    std::vector<void*> outputs;
  };
  void run(std::span<const Batch> batches, const AfterJointStep& after);

  std::size_t batches() const { return executions_.size(); }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  /// A step on the samples of all batches, from the tensors and selections with these numbers on.
  struct Joined {
    std::unique_ptr<const Kernel> kernel;  ///< null: the step is done one by one
    std::vector<bool> cut;                 ///< of its inputs
    std::size_t tensor = 0;
    std::size_t selection = 0;
  };

  /// Whether it lies one behind the other for all batches.
  bool stacks(const Place& place, std::size_t bytes) const;
  bool is_shared(const Place& place) const;
  bool stacks_data(NodeId id) const;
  bool may_join(NodeId id) const;
  void find_joined();
  void run_joined(std::size_t step);

  std::shared_ptr<const Plan> plan_;
  std::vector<bool> differs_;
  std::unique_ptr<void, Free> scratch_;
  std::vector<Execution<T>> executions_;
  std::vector<Joined> joined_;      ///< one for each step
  std::vector<bool> joined_loops_;  ///< one for each loop
  std::vector<Tensor<T>> tensors_;  ///< of the step at hand
  std::vector<Selection> selections_;
};

extern template class JointExecution<float>;
extern template class JointExecution<double>;

}  // namespace fenestra::graph
