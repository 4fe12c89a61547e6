// What a trainer holds. Not installed; the inside of trainer_core.hpp.
#pragma once

#include <fenestra/nn/leaf_step.hpp>
#include <fenestra/nn/sliced_optimiser.hpp>
#include <fenestra/nn/tile_step.hpp>
#include <fenestra/nn/tiles.hpp>
#include <fenestra/nn/trainer_core.hpp>
#include <fenestra/nn/trainer_program.hpp>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::nn {

namespace detail {

/// The loss and what was right, of a step of the batch or the part that has these labels.
template <KernelScalar T>
void read_figures(Found<T>& found, const Tensor<Index>& labels);

}  // namespace detail

template <KernelScalar T>
struct TrainerCore<T>::State {
  Parts parts;
  TrainerOptions options;
  bool own_loss = false;  ///< one of the caller's, which no file can name
  LossFunction<T> loss;
  std::optional<Loss<T>> named_loss;
  Optimiser<T> optimiser;
  double rate = 0;    ///< the full one; the optimiser's follows the schedule
  Schedule schedule;  ///< as it was said
  Schedule resolved;  ///< in steps, where that is known
  std::optional<WeightAverage<T>> average;

  Index steps = 0;
  Cursor cursor;
  double best_score = -std::numeric_limits<double>::infinity();
  Index epochs_since_best = 0;
  // Of the epoch that has begun.
  double epoch_loss = 0;  ///< sum over samples
  Index epoch_samples = 0;
  Index epoch_labels = 0;
  Index epoch_correct = 0;

  io::Metadata metadata;
  detail::StepFindings<T> eager;        ///< of the last step without a program
  mutable std::filesystem::path whole;  ///< a file that this trainer wrote or read
  detail::ProgramCache<detail::StepProgram<T>> step_programs;
  bool has_traced = false;  ///< a program of a step that has not been told of yet
  detail::ProgramCache<detail::InferenceProgram<T>> inference_programs;
  detail::LeafSteps<T> leaf_steps;
  detail::TileSteps<T> tile_steps;

  State(Parts given, const TrainerOptions& said)
      : parts(std::move(given)), optimiser(Optimiser<T>::make(said.optimiser)) {
    own_loss = static_cast<bool>(parts.loss);
    configure(said);
  }
  /// Takes options, whole or not at all.
  void configure(const TrainerOptions& said);
  void start_epoch() {
    epoch_loss = 0;
    epoch_samples = 0;
    epoch_labels = 0;
    epoch_correct = 0;
  }

  /// The slots, whose names no file may mistake for its own.
  std::vector<Slot<T>> slots() const;

  bool has_tiles() const { return options.tile.rank() > 0; }
  bool has_leaves() const { return options.leaf > 0 || has_tiles(); }
  detail::TileStepParts<T> tile_parts(const std::vector<Slot<T>>& all) const {
    return {parts, loss, all, options.tile};
  }

  detail::BatchView<T> view(const Batch<T>& batch, Tensor<T>& numbers) const;
  /// What a step of a batch or leaf finds, valid until the next one.
  detail::Found<T> find(const std::vector<Slot<T>>& all,
                        const Batch<T>& batch,
                        const Key& key,
                        const detail::GradientRoom<T>& room);
  /// The program of a step of such a batch.
  detail::StepProgram<T>& program_of(const std::vector<Slot<T>>& all,
                                     const detail::BatchView<T>& seen);
  /// Leaves side by side; see LeafSteps::Joint.
  Index joint_leaves(const std::vector<Slot<T>>& all, const Batch<T>& leaf, Index count);
  std::vector<detail::Found<T>> find_joint(const std::vector<Slot<T>>& all,
                                           const Batch<T>& leaves,
                                           std::span<const Key> keys,
                                           std::span<const detail::GradientRoom<T>> rooms);
  /// The same of a tile of its pictures.
  detail::Found<T> find_in_tile(const std::vector<Slot<T>>& all,
                                const Batch<T>& batch,
                                Index tile,
                                const Key& key,
                                const detail::GradientRoom<T>& room);
  /// What a step of such a batch takes, but for what its program does.
  StepMemory memory_of(const std::vector<Slot<T>>& all, const Batch<T>& batch) const;
  /// What this rank needs of a loader, to train and to evaluate; empty: everything.
  SharePredicate share_of_samples() const;
  SharePredicate share_of_batches(const Loader<T>& loader) const;
  bool has_ranks() const { return options.communicator && options.communicator->size() > 1; }
  /// Whether ranks share the optimiser's work and state.
  bool is_sliced() const { return has_ranks() && detail::is_elementwise(optimiser); }
  /// Whether this is the rank that writes files.
  bool writes() const { return !options.communicator || options.communicator->rank() == 0; }
  Tensor<T> infer(const std::vector<Slot<T>>& all, const Tensor<T>& x);
  Tensor<T> infer_in_tiles(const Tensor<T>& x) const;
};

namespace detail {

/// Averaged weights in a model's slots while it lives, where there are some.
template <class T>
class AverageScope {
 public:
  AverageScope(const std::vector<Slot<T>>& slots, const std::vector<Tensor<T>>* averages)
      : scope_(slots) {
    std::size_t next = 0;
    for (std::size_t i = 0; averages != nullptr && i < slots.size(); ++i) {
      if (slots[i].trained && next < averages->size()) {
        scope_.put(i, Value<T>((*averages)[next++]));
      }
    }
  }

 private:
  SlotScope<T> scope_;
};

}  // namespace detail

}  // namespace fenestra::nn
