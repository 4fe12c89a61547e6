// A training of the command line from its first step to its report.
#include <fenestra/base/file.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/base/version.hpp>
#include <fenestra/cli/evaluate.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/step_rows.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/training_run.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/io/safetensors.hpp>
#include <fenestra/kernels/isa.hpp>

#include <cmath>
#include <iostream>
#include <system_error>
#include <utility>

namespace fenestra::cli {

namespace {

namespace fs = std::filesystem;

const std::string kHistoryKey = "train.history";

std::string settings_key(std::string_view command) { return std::string(command) + ".settings"; }

Json history_json(const std::vector<EpochRow>& history) {
  const auto number = [](double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  };
  Json rows = Json::array();
  for (const EpochRow& row : history) {
    rows.push_back(Json::array({row.epoch,
                                number(row.training_loss),
                                number(row.validation_loss),
                                number(row.score),
                                number(row.seconds),
                                number(row.learning_rate)}));
  }
  return rows;
}

std::vector<EpochRow> history_of(const std::string& text) {
  std::vector<EpochRow> history;
  const Json rows = Json::parse(text, nullptr, false);
  for (const Json& row : rows.is_array() ? rows : Json::array()) {
    if (row.is_array() && row.size() == 6 && row[0].is_number()) {
      const auto number = [&](std::size_t i) {
        return row[i].is_number() ? row[i].get<double>() : kUnknown;
      };
      history.push_back(
          {row[0].get<Index>(), number(1), number(2), number(3), number(4), number(5)});
    }
  }
  return history;
}

std::vector<LayerRow> layer_rows(const nn::Summary& summary) {
  std::vector<LayerRow> rows;
  for (const nn::SummaryRow& row : summary.rows) {
    std::string sees;
    for (const Index extent : row.receptive_field) {
      sees += (sees.empty() ? "" : "x") + std::to_string(extent);
    }
    rows.push_back({row.name,
                    row.kind,
                    row.output,
                    row.parameters,
                    row.multiply_adds,
                    sees.empty() ? "all" : sees});
  }
  return rows;
}

/// Scores for classes are compared with labels, pictures with numbers.
void require_loss(const TrainingPlan& plan) {
  const bool by_labels = plan.task != nn::Task::reconstruction;
  const auto fits = [&](std::string_view text) {
    const auto loss = nn::Loss<float>::make(text);
    return by_labels ? loss.takes_labels() : loss.takes_values();
  };
  if (fits(plan.trainer.loss)) {
    return;
  }
  std::string others;
  for (const std::string& name : nn::loss_names()) {
    if (fits(name)) {
      others += (others.empty() ? "" : ", ") + name;
    }
  }
  throw Error(ErrorCode::unsupported,
              "--loss \"" + plan.trainer.loss + "\" compares with " +
                  (by_labels ? "numbers; " : "labels; ") + plan.data + " has " +
                  (by_labels ? "labels" : "numbers") + "\n  fix: one of " + others);
}

}  // namespace

Shape batch_of_one(const Shape& sample) {
  Shape shape{1};
  for (const Index extent : sample) {
    shape.push_back(extent);
  }
  return shape;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

void require_new_run(const RunFiles& files, bool resume, bool force) {
  if (resume && force) {
    throw UsageError("--resume goes on, --force begins anew: one of them");
  }
  if (resume) {
    if (!is_there(files.checkpoint) && !is_there(files.previous())) {
      throw Error(ErrorCode::bad_file,
                  files.checkpoint.string() +
                      ": is not there, nothing can go on\n  fix: leave out --resume, or say with "
                      "--output where the run is");
    }
    return;
  }
  for (const fs::path& path : {files.checkpoint, files.previous(), files.model, files.report}) {
    if (!force && is_there(path)) {
      throw Error(ErrorCode::bad_file,
                  path.string() +
                      ": a run has been here\n  fix: --resume to go on with it, --force to replace "
                      "it, or another place with --output");
    }
  }
}

std::string stored_settings(const RunFiles& files, std::string_view command) {
  const fs::path path = is_there(files.checkpoint) ? files.checkpoint : files.previous();
  const io::SafetensorsReader reader(path);
  const std::string key = settings_key(command);
  const auto found = reader.metadata().find(key);
  if (found == reader.metadata().end()) {
    throw Error(ErrorCode::bad_file,
                path.string() + ": has no \"" + key + "\", so that it is not of `fenestra " +
                    std::string(command) + "`\n  fix: the place of a run of it with --output");
  }
  return found->second;
}

void refuse_change(const std::string& option,
                   const std::string& said,
                   const std::string& stored,
                   const fs::path& checkpoint) {
  throw Error(ErrorCode::invalid_option,
              option + " " + said + ": the run in " + checkpoint.string() + " has " + stored +
                  "\n  fix: leave it as it was, or start another run elsewhere (--output)");
}

TrainingRun::TrainingRun(TrainingPlan plan, nn::Layer<float> model)
    : plan_(std::move(plan)),
      trainer_(std::move(model), plan_.trainer),
      summary_(nn::summary(std::as_const(trainer_).model(), batch_of_one(plan_.input))),
      loader_(plan_.train,
              {.batch = plan_.batch,
               .seed = plan_.trainer.seed,
               .augmentation = nn::parse_augmentation(plan_.augmentation),
               .preprocessing = plan_.info.preprocessing}),
      held_out_(plan_.test,
                {.batch = std::min(plan_.held_batch(), plan_.test->size()),
                 .shuffle = false,
                 .preprocessing = plan_.info.preprocessing}) {
  require_loss(plan_);
  trainer_.metadata() = nn::model_metadata(std::as_const(trainer_).model(), plan_.info);
  if (plan_.resume) {
    trainer_.resume(plan_.files.checkpoint);
    const auto kept = trainer_.metadata().find(kHistoryKey);
    history_ = kept == trainer_.metadata().end() ? history_ : history_of(kept->second);
  } else if (is_first()) {
    std::error_code failed;
    const fs::path folder = plan_.files.checkpoint.parent_path();
    if (!folder.empty()) {
      fs::create_directories(folder, failed);
    }
    if (failed) {
      throw Error(ErrorCode::bad_file,
                  folder.string() + ": cannot be made: " + failed.message() +
                      "\n  fix: another folder with --output");
    }
    // What --force replaces must not be taken for the new run's, should that be killed soon.
    for (const fs::path& old :
         {plan_.files.checkpoint, plan_.files.previous(), plan_.files.best, plan_.files.report}) {
      fs::remove(old, failed);
    }
  }
  trainer_.metadata()[settings_key(plan_.command)] = plan_.settings;
  watch_.emplace(TrainWatchOptions{.json = plan_.json,
                                   .task = plan_.task,
                                   .epochs = plan_.epochs,
                                   .batches = loader_.batches_per_epoch(),
                                   .done = trainer_.steps()});
}

void TrainingRun::save() {
  trainer_.metadata()[kHistoryKey] = history_json(history_).dump();
  trainer_.save(plan_.files.checkpoint);
}

std::string TrainingRun::resumed_words() const {
  const std::string done = "step " + grouped(trainer_.steps());
  return has_trained() ? "all epochs are done, nothing is left to train after " + done + "\n"
                       : "going on after " + done + "\n";
}

bool TrainingRun::wants_checkpoint() {
  const ranks::CommunicatorPtr& communicator = plan_.trainer.communicator;
  const bool wants = is_first() && watch_->wants_checkpoint();
  return communicator ? ranks::any(*communicator, wants) : wants;
}

bool TrainingRun::fit() {
  if (!has_trained()) {
    const auto on_step = [&](const nn::StepResult& step) {
      watch_->step(step);
      if (wants_checkpoint()) {
        watch_->timed(&TrainCosts::checkpoints, [&] { save(); });
      }
    };
    const auto on_epoch = [&](const nn::EpochResult& epoch) {
      history_.push_back(watch_->epoch(epoch));
      watch_->timed(&TrainCosts::checkpoints, [&] {
        if (plan_.patience > 0 && epoch.is_best) {
          nn::save_model(plan_.files.best, trainer_.trained(), plan_.info);
        }
        save();
      });
    };
    result_ = trainer_.fit(loader_,
                           plan_.epochs,
                           {.validation = &held_out_,
                            .patience = plan_.patience,
                            .stop = &interrupted(),
                            .on_step = on_step,
                            .on_epoch = on_epoch});
  }
  watch_->end();
  if (result_.end == nn::FitEnd::diverged) {
    throw Error(ErrorCode::diverged,
                "the loss is not a finite number any more, in step " +
                    std::to_string(trainer_.steps()) + "\n  fix: a smaller " + plan_.rate_option +
                    ", or --clip 1; the last checkpoint is " + plan_.files.checkpoint.string());
  }
  // Several ranks were stopped together or not at all.
  const bool is_told = interrupted() && plan_.trainer.communicator == nullptr;
  if (!is_told && result_.end != nn::FitEnd::stopped) {
    return true;
  }
  save();
  const std::string line = shell_line(plan_.go_on);
  if (plan_.json) {
    print_json_line({{"event", "interrupted"},
                     {"step", trainer_.steps()},
                     {"epoch", trainer_.cursor().epoch},
                     {"checkpoint", plan_.files.checkpoint.string()},
                     {"go_on", line}});
  } else {
    std::cerr << wrapped("interrupted after step " + grouped(trainer_.steps()) + " (" +
                             std::to_string(trainer_.cursor().epoch) + " of " +
                             std::to_string(plan_.epochs) + " epochs done); the checkpoint is " +
                             plan_.files.checkpoint.string() + "\n",
                         terminal_of(Stream::err))
              << "to go on: " << line << "\n";
  }
  return false;
}

ExitCode TrainingRun::follow() {
  if (!has_trained()) {
    // The first rank saves what all of them have.
    const auto on_step = [&](const nn::StepResult&) {
      if (wants_checkpoint()) {
        save();
      }
    };
    result_ = trainer_.fit(loader_,
                           plan_.epochs,
                           {.validation = &held_out_,
                            .patience = plan_.patience,
                            .stop = &interrupted(),
                            .on_step = on_step,
                            .on_epoch = [&](const nn::EpochResult&) { save(); }});
  }
  if (result_.end == nn::FitEnd::stopped) {
    save();
  }
  return result_.end == nn::FitEnd::diverged  ? bad_input
         : result_.end == nn::FitEnd::stopped ? was_interrupted
                                              : fine;
}

const nn::Evaluation& TrainingRun::evaluate() {
  nn::Layer<float> trained = trainer_.trained();
  if (plan_.patience > 0 && is_there(plan_.files.best)) {
    nn::load_weights(plan_.files.best, trained);
  }
  deployed_.emplace(std::move(trained),
                    nn::TrainerOptions{.loss = plan_.trainer.loss,
                                       .compiled = plan_.trainer.compiled,
                                       .tile = plan_.trainer.tile});
  evaluation_ =
      watch_->timed(&TrainCosts::evaluation, [&] { return deployed_->evaluate(held_out_); });
  return evaluation_;
}

void TrainingRun::write_report() {
  TrainingReport report;
  report.title = plan_.info.name;
  report.command = shell_line(plan_.again);
  report.model = plan_.model;
  report.data = plan_.data;
  report.layers = layer_rows(summary_);
  report.score_name = score_name(plan_.task);
  report.test_loss = evaluation_.loss;
  report.history = history_;
  report.step_losses = watch_->step_losses();
  report.steps_per_epoch = loader_.batches_per_epoch();
  report.classes = plan_.info.classes;
  report.test_score = plan_.task == nn::Task::reconstruction ? kUnknown : evaluation_.score();
  if (evaluation_.confusion) {
    report.confusion = evaluation_.confusion->counts();
  }
  add_samples(report,
              std::as_const(*deployed_).model(),
              plan_.task,
              *plan_.test,
              plan_.info.preprocessing,
              {.batch = plan_.held_batch(), .feature_maps = !plan_.has_tiles()},
              [&](const Tensor<float>& x) { return deployed_->predict(x); });
  report.costs = watch_->cost_rows();
  const StepKind kind{.is_compiled = plan_.trainer.compiled,
                      .has_leaves = plan_.trainer.leaf > 0,
                      .has_tiles = plan_.has_tiles(),
                      .batches_ahead = loader_.options().prefetch};
  loader_.seek({});
  const nn::StepProfile profile = trainer_.profile(*loader_.next());
  report.step = step_report(profile, summary_, kind);
  report.memory = memory_rows(profile.memory, kind);
  report.peak_bytes = peak_memory();
  report.environment = {.version = std::string(version),
                        .isa = std::string(kernels::isa_name()),
                        .threads = threads(),
                        .seed = plan_.trainer.seed};
  replace_file(plan_.files.report, {report_html(report)});
}

std::string TrainingRun::early_end_words() const {
  return stopped_early()
             ? wrapped("stopped early: no better score for " + std::to_string(plan_.patience) +
                           " epochs; the best weights are kept\n\n",
                       terminal_of(Stream::out))
             : "";
}

Json TrainingRun::end_json() const {
  Json end = {{"event", "end"},
              {"reason", stopped_early() ? "patience" : "finished"},
              {"steps", trainer_.steps()},
              {"epochs", trainer_.cursor().epoch},
              {"seconds", watch_->seconds()}};
  end.update(evaluation_json(evaluation_, plan_.task, plan_.info.classes));
  end["model"] = plan_.files.model.string();
  end["checkpoint"] = plan_.files.checkpoint.string();
  end["report"] = plan_.files.report.string();
  return end;
}

}  // namespace fenestra::cli
