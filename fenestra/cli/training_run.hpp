// What trainings of the command line share, wherever their model comes from: the files of a run,
// its checkpoints, Ctrl-C, what is kept at the end, and the report.
#pragma once

#include <fenestra/cli/command.hpp>
#include <fenestra/cli/interrupt.hpp>
#include <fenestra/cli/report.hpp>
#include <fenestra/cli/train_watch.hpp>
#include <fenestra/nn/data/loader.hpp>
#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/nn/trainer.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

/// Where a run keeps its files.
struct RunFiles {
  std::filesystem::path checkpoint = {};
  std::filesystem::path best = {};  ///< weights of the best epoch, where a run may stop early
  std::filesystem::path model = {};
  std::filesystem::path report = {};

  /// The checkpoint before the last one.
  std::filesystem::path previous() const {
    return std::filesystem::path(checkpoint) += ".previous";
  }
};

bool is_there(const std::filesystem::path& path);

/// The shape of a batch of one sample.
Shape batch_of_one(const Shape& sample);

/// What a run would write must not be there, unless it was said to go on or to begin anew.
void require_new_run(const RunFiles& files, bool resume, bool force);

/// What the checkpoint says of the run that wrote it. `command` is "train", for the message.
std::string stored_settings(const RunFiles& files, std::string_view command);

/// Throws `invalid_option`: a run that is resumed was told otherwise.
[[noreturn]] void refuse_change(const std::string& option,
                                const std::string& said,
                                const std::string& stored,
                                const std::filesystem::path& checkpoint);

/// A run once everything is decided.
struct TrainingPlan {
  std::string command = {};  ///< "train"
  RunFiles files = {};
  std::string settings = {};  ///< all that decides which weights come out, as JSON
  std::string model = {};     ///< as the command line calls it
  std::string data = {};
  nn::Task task = nn::Task::classification;
  nn::DatasetPtr train = {};
  nn::DatasetPtr test = {};
  Shape input = {};  ///< of one sample, prepared
  nn::ModelInfo info = {};
  nn::TrainerOptions trainer = {};
  std::string augmentation = {};
  Index epochs = 0;
  Index batch = 0;
  Index patience = 0;
  std::string rate_option = {};         ///< what makes steps smaller: "--rate"
  std::vector<std::string> go_on = {};  ///< what to type after an interrupt
  std::vector<std::string> again = {};  ///< what to type to train the same weights
  bool resume = false;
  bool json = false;

  bool has_tiles() const { return trainer.tile.rank() > 0; }
  /// Held-out samples at a time. Those that are trained in tiles are large.
  Index held_batch() const { return has_tiles() ? batch : 64; }
};

class TrainingRun {
 public:
  /// Goes on from the checkpoint, or makes place for new files.
  TrainingRun(TrainingPlan plan, nn::Layer<float> model);

  const TrainingPlan& plan() const { return plan_; }
  /// For one sample.
  const nn::Summary& summary() const { return summary_; }
  Index steps() const { return trainer_.steps(); }
  /// Where a run that is resumed goes on, or that nothing is left of it.
  std::string resumed_words() const;
  TrainWatch& watch() { return *watch_; }
  /// Whether this is the rank that speaks and writes; a process alone is it.
  bool is_first() const {
    return !plan_.trainer.communicator || plan_.trainer.communicator->rank() == 0;
  }

  /// False where it was interrupted: the checkpoint is written, and what to type was said. Throws
  /// `diverged` where the loss is no number any more.
  bool fit();
  /// `fit` on the other ranks: without a word, and how it ended.
  ExitCode follow();
  /// What to say where no better score came for too long; empty otherwise.
  std::string early_end_words() const;

  /// Decides what is kept: the last weights, or the best ones of a run that was to stop early.
  const nn::Evaluation& evaluate();
  /// After `evaluate`.
  const nn::Layer<float>& trained() const { return deployed_->model(); }
  Tensor<float> predict(const Tensor<float>& x) { return deployed_->predict(x); }
  void write_report();
  /// What JSON says of every training's end.
  Json end_json() const;

 private:
  void save();
  /// Whether it is time for one, on all ranks alike.
  bool wants_checkpoint();
  bool has_trained() const { return trainer_.cursor().epoch >= plan_.epochs; }
  bool stopped_early() const { return result_.end == nn::FitEnd::patience; }

  TrainingPlan plan_;
  nn::Trainer<nn::Layer<float>> trainer_;
  nn::Summary summary_;
  nn::Loader<float> loader_;
  nn::Loader<float> held_out_;
  std::vector<EpochRow> history_;
  InterruptWatch listens_;
  std::optional<TrainWatch> watch_;
  nn::FitResult result_;
  std::optional<nn::Trainer<nn::Layer<float>>> deployed_;
  nn::Evaluation evaluation_;
};

}  // namespace fenestra::cli
