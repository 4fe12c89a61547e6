// TrainerCore<T>: what `Trainer` does, on slots and functions instead of a model's type; compiled
// once for float and double. Read on: trainer.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/base/key.hpp>
#include <fenestra/io/tensor_map.hpp>
#include <fenestra/nn/any_optimiser.hpp>
#include <fenestra/nn/data/loader.hpp>
#include <fenestra/nn/gradients.hpp>
#include <fenestra/nn/losses.hpp>
#include <fenestra/nn/metrics.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/nn/schedule.hpp>
#include <fenestra/nn/slots.hpp>
#include <fenestra/nn/step_profile.hpp>
#include <fenestra/ranks/communicator.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fenestra::nn {

struct TrainerOptions {
  std::string loss = "cross-entropy";  ///< see Loss::make; label smoothing is an option of it
  std::string optimiser = "adamw";     ///< see Optimiser::make: "sgd rate=0.1 momentum=0.9"
  std::string schedule = "constant";   ///< see Schedule::parse; `fit` knows how long a run is
  double clip_norm = 0;                ///< of all gradients together; 0: not clipped
  double clip_value = 0;               ///< of every element of a gradient; 0: not clipped
  double average = 0;                  ///< decay of the average of weights; 0: none is kept
  std::uint64_t seed = 0;              ///< of the masks
  bool compiled = true;                ///< run programs, one for each shape; else eagerly
  /// Samples of a leaf: a step is then the mean of the steps of a batch's leaves, each with its own
  /// statistics, and has the same bits however many ranks there are. 0: the batch is one piece.
  Index leaf = 0;
  /// Of the scores, along each spatial axis: a leaf is then one tile of its pictures, with what it
  /// needs of them, and memory is what a tile takes. The loss must be a mean over cells. Evaluation
  /// goes by tiles too. Empty: pictures are not cut.
  Shape tile = {};
  /// The ranks that train together; null: this process alone. More than one needs a leaf or a tile.
  /// All of them make the same calls on the same batches; each computes its leaves, all have the
  /// result.
  ranks::CommunicatorPtr communicator = {};
};

struct StepResult {
  Index step = 0;   ///< its number, from 0
  double loss = 0;  ///< before the step
  Index samples = 0;
  Index labels = 0;          ///< how many were compared; 0 where the task has none
  Index correct = 0;         ///< of the labels, before the step
  double rate = 0;           ///< with which the optimiser moved
  double gradient_norm = 0;  ///< before clipping; 0 unless it is clipped by norm
  double seconds = 0;
  bool traced = false;  ///< a program was made for it
};

struct Evaluation {
  double loss = 0;  ///< mean over the samples
  Index samples = 0;
  std::optional<ConfusionMatrix> confusion = {};  ///< where there are labels
  bool per_cell = false;                          ///< labels are of cells: segmentation
  double seconds = 0;

  /// Greater is better: accuracy, mean IoU of a segmentation, else -loss.
  FENESTRA_API double score() const;
};

struct EpochResult {
  Index epoch = 0;  ///< its number, from 0
  double loss = 0;  ///< mean over the samples, each before its step
  Index samples = 0;
  Index labels = 0;
  Index correct = 0;
  std::optional<Evaluation> validation = {};
  double score = 0;      ///< of the validation; -loss without one
  bool is_best = false;  ///< no epoch before had as good a score
  double seconds = 0;
};

/// Why `fit` ended.
enum class FitEnd {
  finished,  ///< all epochs are done
  stopped,   ///< it was told to
  patience,  ///< the score did not get better for so many epochs
  diverged,  ///< the loss was not a finite number
};

template <class T>
struct FitOptions {
  Loader<T>* validation = nullptr;        ///< evaluated after each epoch
  Index patience = 0;                     ///< epochs without a better score; 0: for ever
  std::filesystem::path checkpoint = {};  ///< saved after each epoch, and where it is stopped
  Index checkpoint_every = 0;             ///< also after so many steps; 0: not
  /// Asked after each step, and after each batch of the validation; a signal handler may set it.
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const StepResult&)> on_step = {};
  std::function<void(const EpochResult&)> on_epoch = {};
  std::function<void()> on_validation_batch = {};  ///< called after each
};

struct FitResult {
  FitEnd end = FitEnd::finished;
  Index epochs = 0;  ///< done in all, by earlier runs too
  double best_score = 0;
  std::optional<Evaluation> validation = {};  ///< of the last epoch
};

/// `loss(scores, target)`, a single element.
template <class T>
using LossFunction = std::function<Value<T>(const Value<T>&, const Target<T>&)>;

template <KernelScalar T>
class FENESTRA_API TrainerCore {
 public:
  struct Parts {
    std::function<std::vector<Slot<T>>()> slots;
    std::function<Value<T>(const Value<T>& x, Pass<T>& pass)> forward;
    LossFunction<T> loss = {};  ///< instead of the one of the options
    /// What the model is made of, for files; nothing where it cannot say.
    std::function<std::optional<std::string>()> describe = {};
  };

  TrainerCore(Parts parts, const TrainerOptions& options);
  ~TrainerCore();
  TrainerCore(TrainerCore&&) noexcept;
  TrainerCore& operator=(TrainerCore&&) noexcept;

  StepResult step(const Batch<T>& batch);
  Tensor<T> predict(const Tensor<T>& x);
  Evaluation evaluate(Loader<T>& loader, const std::function<bool()>& go_on = {});
  FitResult fit(Loader<T>& loader, Index epochs, const FitOptions<T>& options);
  StepProfile profile(const Batch<T>& batch);
  void save(const std::filesystem::path& path) const;
  std::filesystem::path resume(const std::filesystem::path& path);
  void restart_programs();

  const TrainerOptions& options() const;
  Index steps() const;
  Cursor cursor() const;
  void set_cursor(Cursor cursor);
  double best_score() const;
  io::Metadata& metadata();
  /// The averages in the order of the trained slots; empty where none are kept.
  const std::vector<Tensor<T>>& averages() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class TrainerCore<float>;
extern template class TrainerCore<double>;

}  // namespace fenestra::nn
