// Trainer<Model>: a model and all that trains it, in one object: parameters, buffers, optimiser,
// schedule, generator, data cursor and the compiled step.
//
//   nn::Trainer trainer(Net(), {.optimiser = "adamw rate=0.002", .schedule = "cosine"});
//   trainer.fit(loader, 10, {.validation = &test, .checkpoint = "run.safetensors"});
//   Tensor<float> scores = trainer.predict(x);
//
// A model is anything with slots (slots.hpp) that can be called as model(x, pass) or model(x). It
// runs compiled, one program for each shape of a batch, made when the shape first comes; or
// eagerly. Both are one function, and one optimiser moves the parameters in both: float weights,
// buffers and losses are equal to the last bit (see the tests). Nothing depends on the number of
// threads.
//
// A checkpoint is one file: the model, and all that a run needs to go on. A run that is killed at
// any moment and resumed ends with the same bits as one that was not. A step that throws has
// changed nothing. One trainer belongs to one thread at a time.
//
// Several processes train together where options name a communicator and a leaf; the result is that
// of one process with the same leaf. Read on: docs/guide/many-processes.md.
#pragma once

#include <fenestra/nn/description.hpp>
#include <fenestra/nn/trainer_core.hpp>

#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::nn {

template <class Model>
class Trainer {
 public:
  using T = ScalarOf<TreeValue<Model>>;

  explicit Trainer(Model model, const TrainerOptions& options = {})
      : Trainer(std::move(model), LossFunction<T>(), options) {}
  /// With a loss of one's own, a LossFunction<T>. A template, so that options in braces are no
  /// candidate for it: clang takes them for a function.
  template <class F>
    requires std::convertible_to<F, LossFunction<T>>
  Trainer(Model model, F loss, const TrainerOptions& options = {})
      : model_(std::make_unique<Model>(std::move(model))),
        core_({.slots = [model = model_.get()] { return slots<T>(*model); },
               .forward =
                   [model = model_.get()](const Value<T>& x, Pass<T>& pass) {
                     if constexpr (requires { (*model)(x, pass); }) {
                       return Value<T>((*model)(x, pass));
                     } else {
                       return Value<T>((*model)(x));
                     }
                   },
               .loss = std::move(loss),
               .describe = [model = model_.get()] { return description_of(*model); }},
              options) {}

  /// One step of the optimiser on a batch.
  StepResult step(const Batch<T>& batch) { return core_.step(batch); }
  /// What the model says in inference, with averaged weights where an average is kept.
  Tensor<T> predict(const Tensor<T>& x) { return core_.predict(x); }
  /// Of one epoch of the loader, from its start, in inference as by `predict`.
  /// `go_on` is asked after each batch, or when each of several ranks has had one; false on any of
  /// them ends it there, with the samples so far.
  Evaluation evaluate(Loader<T>& loader, const std::function<bool()>& go_on = {}) {
    return core_.evaluate(loader, go_on);
  }
  /// Trains until `epochs` are done, from where the cursor is: a trainer that was resumed goes on
  /// in the middle of its epoch.
  FitResult fit(Loader<T>& loader, Index epochs, const FitOptions<T>& options = {}) {
    return core_.fit(loader, epochs, options);
  }

  /// Where time and memory of a step on such a batch go, or of a step of its first leaf: the step
  /// is run a few times, and nothing is trained. Of tiles only memory is known.
  StepProfile profile(const Batch<T>& batch) { return core_.profile(batch); }

  /// Writes a checkpoint; the one that was there becomes PATH.previous. Whatever happens, one of
  /// them is whole. Several ranks all call it; the first one writes what the others send to it.
  void save(const std::filesystem::path& path) const { core_.save(path); }
  /// Takes all of a checkpoint: weights, buffers, and the optimiser, schedule, loss, seed and
  /// cursor of its run, whatever this trainer was made with. Where PATH is missing or damaged it
  /// takes PATH.previous; where both are, throws `bad_file` and has changed nothing. Gives the one
  /// it took.
  std::filesystem::path resume(const std::filesystem::path& path) { return core_.resume(path); }

  const Model& model() const { return *model_; }
  /// To change it: another loading, other weights. Its slots must stay what they are; for another
  /// architecture make another trainer.
  Model& model() {
    core_.restart_programs();
    return *model_;
  }
  /// A copy with averaged weights where an average is kept: what to deploy.
  Model trained() const {
    Model copy = *model_;
    const std::vector<Tensor<T>>& averages = core_.averages();
    std::size_t next = 0;
    for (const Slot<T>& slot : slots<T>(copy)) {
      if (slot.trained && next < averages.size()) {
        *slot.value = averages[next++];
      }
    }
    return copy;
  }

  /// As they are now; `resume` changes them.
  const TrainerOptions& options() const { return core_.options(); }
  /// Done so far.
  Index steps() const { return core_.steps(); }
  /// Of the batch that comes next, for checkpoints. `fit` keeps it; a loop of one's own says it.
  Cursor cursor() const { return core_.cursor(); }
  void set_cursor(Cursor cursor) { core_.set_cursor(cursor); }
  /// Of the epochs so far; -infinity before the first one.
  double best_score() const { return core_.best_score(); }
  /// Written into checkpoints beside the trainer's own and the model's description: classes,
  /// preprocessing.
  io::Metadata& metadata() { return core_.metadata(); }

 private:
  static std::optional<std::string> description_of(const Model& model) {
    if constexpr (Describable<Model>) {
      try {
        return model.describe().text();
      } catch (const Error& error) {
        // A layer of the program among those of the library: only its numbers can be kept.
        if (error.code() != ErrorCode::unknown_model) {
          throw;
        }
      }
    }
    return std::nullopt;
  }

  std::unique_ptr<Model> model_;  ///< where it is never changes
  TrainerCore<T> core_;
};

}  // namespace fenestra::nn
