// The programs of a trainer: a training step and inference, traced from the functions that run
// eagerly. Not installed; the inside of trainer_core.hpp.
#pragma once

#include <fenestra/engine/joint_execution.hpp>
#include <fenestra/engine/program.hpp>
#include <fenestra/graph/report.hpp>
#include <fenestra/nn/trainer_core.hpp>

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

namespace fenestra::nn::detail {

/// What a batch is, for a loss: only what it has.
template <class T>
struct BatchView {
  const Tensor<T>* inputs = nullptr;
  const Tensor<Index>* labels = nullptr;
  const Tensor<T>* values = nullptr;
};

/// Other values in a model's slots while it lives; then the old ones again.
template <class T>
class SlotScope {
 public:
  explicit SlotScope(std::span<const Slot<T>> slots) : slots_(slots) {
    saved_.reserve(slots.size());
    for (const Slot<T>& slot : slots) {
      saved_.push_back(*slot.value);
    }
  }
  ~SlotScope() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      *slots_[i].value = std::move(saved_[i]);
    }
  }
  SlotScope(const SlotScope&) = delete;
  SlotScope& operator=(const SlotScope&) = delete;

  const Value<T>& saved(std::size_t i) const { return saved_[i]; }
  void put(std::size_t i, Value<T> value) { *slots_[i].value = std::move(value); }

 private:
  std::span<const Slot<T>> slots_;
  std::vector<Value<T>> saved_;
};

/// Nodes in the place of a model's slots, for as long as the scope lives; those that are trained.
template <class T>
std::vector<graph::NodeId> put_nodes(graph::Builder<T>& builder,
                                     std::span<const Slot<T>> slots,
                                     SlotScope<T>& scope);

/// What a step found, before anything is changed, but for the gradients.
template <class T>
struct StepFindings {
  std::vector<std::size_t> buffers;  ///< slots that change
  std::vector<Tensor<T>> results;    ///< loss, scores, what buffers become

  double loss() const { return static_cast<double>(results[0][0]); }
  const Tensor<T>& scores() const { return results[1]; }
  std::span<Tensor<T>> buffer_values() { return std::span<Tensor<T>>(results).subspan(2); }
};

/// Where the gradients of a step go, in the order of the trained slots, and who is told.
template <class T>
struct GradientRoom {
  std::vector<T*> memory = {};  ///< each on a cache line
  /// Called between the parts of a step, with the gradients that are complete since; with all of
  /// them in the end.
  std::function<void(std::span<const std::size_t> gradients)> found = {};
  /// A number of the weights: steps of one program that are given the same one have the same
  /// weights. 0: nobody says.
  std::uint64_t weights = 0;
};

/// The step of one shape of batches.
template <class T>
class StepProgram {
 public:
  StepProgram(const typename TrainerCore<T>::Parts& parts,
              const LossFunction<T>& loss,
              std::span<const Slot<T>> slots,
              const BatchView<T>& batch);

  bool fits(const BatchView<T>& batch) const;
  /// Masks are drawn from `key`. What it found is valid until the next run.
  StepFindings<T>& run(std::span<const Slot<T>> slots,
                       const BatchView<T>& batch,
                       const Key& key,
                       const GradientRoom<T>& room);
  /// Runs it some times and says what its steps took in the fastest run; what was found is lost.
  graph::Report profile(std::span<const Slot<T>> slots, const BatchView<T>& batch, const Key& key);
  /// How many of `count` batches are best run side by side, a power of two.
  Index joint_batches(Index count) const;
  /// The same for so many batches, one behind the other in `batches`, each with its key and room:
  /// the bits of one run after the other. A gradient is written when that of the batch before, and
  /// gradients before, were found.
  std::span<StepFindings<T>> run_joint(std::span<const Slot<T>> slots,
                                       const BatchView<T>& batches,
                                       std::span<const Key> keys,
                                       std::span<const GradientRoom<T>> rooms);
  /// Gives its memory back, all but what it found; the next run takes it again.
  void release() { context_.reset(); }

 private:
  /// Whether weights are packed for more than one run.
  PackedParameters packed_for(std::uint64_t weights);
  std::vector<Tensor<T>> drawn_masks(const Key& key) const;
  std::vector<RunArgument> arguments_of(std::span<const Slot<T>> slots,
                                        const BatchView<T>& batch,
                                        std::span<const Tensor<T>> masks) const;
  graph::JointExecution<T>& joint(std::size_t batches, std::size_t slots);
  StepFindings<T> empty_findings() const;

  Shape inputs_;
  std::optional<Shape> labels_;
  std::optional<Shape> values_;
  std::vector<MaskRequest> masks_;
  std::uint64_t weights_ = 0;  ///< of the last run
  int runs_ = 0;               ///< with these weights
  int runs_before_ = 0;        ///< with those before
  std::optional<Program<T>> program_;
  std::optional<Context<T>> context_;
  StepFindings<T> findings_;
  bool may_join_ = false;
  Numerics numerics_ = Numerics::strict;  ///< with which it was compiled
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> joint_memory_;
  std::size_t joint_bytes_ = 0;
  std::vector<std::unique_ptr<graph::JointExecution<T>>> joint_;
  std::vector<StepFindings<T>> joint_findings_;
};

/// Inference of one shape of inputs.
template <class T>
class InferenceProgram {
 public:
  InferenceProgram(const typename TrainerCore<T>::Parts& parts,
                   std::span<const Slot<T>> slots,
                   const Shape& inputs);

  bool fits(const Shape& inputs) const { return inputs_ == inputs; }
  Tensor<T> run(std::span<const Slot<T>> slots, const Tensor<T>& x);

 private:
  Shape inputs_;
  std::optional<Program<T>> program_;
  std::optional<Context<T>> context_;
};

/// The step, eagerly. `after_part` is called after each layer, the loss, and the backward
/// pass as a whole.
template <class T>
StepFindings<T> step_eagerly(
    const typename TrainerCore<T>::Parts& parts,
    const LossFunction<T>& loss,
    std::span<const Slot<T>> slots,
    const BatchView<T>& batch,
    const Key& key,
    const GradientRoom<T>& room,
    const std::function<void(const std::string& part, bool is_backward)>& after_part = {});

/// Shapes that come again and again are few; a program's memory is large. The least recently used
/// one goes.
template <class P>
class ProgramCache {
 public:
  /// The one that fits, now the most recently used, or null.
  template <class Fits>
  P* find(const Fits& fits) {
    for (auto it = programs_.begin(); it != programs_.end(); ++it) {
      if (fits(*it)) {
        programs_.splice(programs_.begin(), programs_, it);
        return &programs_.front();
      }
    }
    return nullptr;
  }
  template <class... Args>
  P* add(const Args&... args) {
    programs_.emplace_front(args...);
    if (programs_.size() > kMost) {
      programs_.pop_back();
    }
    return &programs_.front();
  }
  void clear() { programs_.clear(); }

 private:
  static constexpr std::size_t kMost = 8;
  std::list<P> programs_;
};

}  // namespace fenestra::nn::detail
