// `fenestra train`: a ready model on data, from the summary to the report.
//
// The run is in one folder: checkpoint.safetensors (all that is needed to go on),
// model.safetensors, report.html, and one sample to try the model on.
#include <fenestra/base/file.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/base/version.hpp>
#include <fenestra/cli/evaluate.hpp>
#include <fenestra/cli/gradcheck.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/cli/terminal_picture.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/train.hpp>
#include <fenestra/cli/train_watch.hpp>
#include <fenestra/cli/units.hpp>
#include <fenestra/io/image.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/io/safetensors.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/nn/data/loader.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/trainer.hpp>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <system_error>

namespace fenestra::cli {

namespace {

namespace fs = std::filesystem;

const std::string kSettingsKey = "train.settings";
const std::string kHistoryKey = "train.history";

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

/// The first interrupt is answered after the step; the second one ends the program, as if nobody
/// had listened.
class InterruptWatch {
 public:
  InterruptWatch() {
    interrupted = false;
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    sigaction(SIGINT, &action, &interrupt_before_);
    sigaction(SIGTERM, &action, &terminate_before_);
  }
  ~InterruptWatch() {
    sigaction(SIGINT, &interrupt_before_, nullptr);
    sigaction(SIGTERM, &terminate_before_, nullptr);
  }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct sigaction interrupt_before_ = {};
  struct sigaction terminate_before_ = {};
};

/// Where a run keeps its files.
struct RunFolder {
  fs::path folder = {};

  fs::path checkpoint() const { return folder / "checkpoint.safetensors"; }
  fs::path previous() const { return folder / "checkpoint.safetensors.previous"; }
  fs::path best() const { return folder / "best.safetensors"; }
  fs::path model() const { return folder / "model.safetensors"; }
  fs::path report() const { return folder / "report.html"; }
  fs::path sample(bool is_picture) const {
    return folder / (is_picture ? "sample.png" : "sample.npy");
  }
};

std::string folder_name(const TrainOptions& options) {
  std::string data = options.data;
  for (char& letter : data) {
    letter = letter == '/' || letter == ':' || letter == '.' ? '-' : letter;
  }
  return "runs/" + options.model + "-" + data;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// What a run would write must not be there, unless it was said to go on or to begin anew.
void require_new_run(const TrainOptions& options, const RunFolder& run, const fs::path& report) {
  if (options.resume && options.force) {
    throw UsageError("--resume goes on, --force begins anew: one of them");
  }
  if (options.resume) {
    if (!is_there(run.checkpoint()) && !is_there(run.previous())) {
      throw Error(ErrorCode::bad_file,
                  run.checkpoint().string() +
                      ": is not there, nothing can go on\n  fix: leave out --resume, or name the "
                      "folder of the run with --output");
    }
    return;
  }
  for (const fs::path& path : {run.checkpoint(), run.previous(), run.model(), report}) {
    if (!options.force && is_there(path)) {
      throw Error(ErrorCode::bad_file,
                  path.string() +
                      ": a run has been here\n  fix: --resume to go on with it, --force to replace "
                      "it, or another folder with --output");
    }
  }
}

/// Model, data and settings, put together.
struct Run {
  RunFolder files = {};
  TrainSettings settings = {};
  nn::Task task = nn::Task::classification;
  nn::DatasetPtr train = {};
  nn::DatasetPtr test = {};
  nn::Preprocessing preprocessing = {};
  Shape input = {};
  nn::ModelInfo info = {};
};

/// What a ready model can be trained on.
void require_task(const nn::ModelEntry& model, const nn::Dataset& data) {
  if (data.sample_shape().rank() != model.input.rank()) {
    std::string others;
    for (const nn::ModelEntry& entry : nn::model_entries()) {
      if (entry.input.rank() == data.sample_shape().rank() && task_of(entry) == data.task()) {
        others += (others.empty() ? "" : ", ") + entry.name;
      }
    }
    throw Error(ErrorCode::rank_mismatch,
                model.name + " takes " + std::string(kind_of_samples(model.input.rank() - 1)) +
                    "; " + data.info().name + " has " + sample_words(data.sample_shape()) +
                    "\n  fix: " + (others.empty() ? "other data" : "another model: " + others));
  }
  const nn::Task task = task_of(model);
  if (data.task() != task) {
    std::string others;
    for (const nn::ModelEntry& entry : nn::model_entries()) {
      if (task_of(entry) == data.task() && entry.input.rank() == data.sample_shape().rank()) {
        others += (others.empty() ? "" : ", ") + entry.name;
      }
    }
    throw Error(ErrorCode::bad_problem,
                model.name + " does " + std::string(nn::task_name(task)) + "; " + data.info().name +
                    " is for " + std::string(nn::task_name(data.task())) +
                    "\n  fix: " + (others.empty() ? "other data" : "another model: " + others));
  }
}

std::string stored_text(const RunFolder& files, const std::string& key) {
  const fs::path path = is_there(files.checkpoint()) ? files.checkpoint() : files.previous();
  const io::SafetensorsReader reader(path);
  const auto found = reader.metadata().find(key);
  if (found == reader.metadata().end()) {
    throw Error(ErrorCode::bad_file,
                path.string() + ": has no \"" + key +
                    "\", so that it is not of `fenestra train`\n  fix: the folder of a run");
  }
  return found->second;
}

Run make_run(const TrainOptions& options, const RunFolder& files) {
  const nn::ModelEntry& model = known_model(options.model);
  Run run{.files = files, .task = task_of(model)};
  DataSource source{.text = options.data};
  if (options.resume) {
    const std::string file = files.checkpoint().string();
    run.settings = resumed_settings(
        options, TrainSettings::from_json(stored_text(files, kSettingsKey), file), file);
    source.count = run.settings.count;
    source.held_out = run.settings.held_out;
  } else {
    source.count = options.count.value_or(0);
    source.held_out = options.held_out.value_or(0.1);
  }
  const std::optional<std::string> size_text =
      options.resume && !run.settings.size.empty() ? run.settings.size : options.size;
  Shape wanted = model.input;
  if (size_text) {
    const Shape size = parse_extents(*size_text, "--size");
    wanted = Shape{model.input[0]};
    for (const Index extent : size) {
      wanted.push_back(extent);
    }
  }
  run.train = open_for(source, nn::Split::train, run.task, wanted);
  // Of generated data, as many are held out as usual, whatever there is to learn from.
  source.count = source.count == 0 ? 0 : std::max<Index>(1, source.count / 5);
  run.test = open_for(source, nn::Split::test, run.task, wanted);
  require_task(model, *run.train);
  if (!options.resume) {
    run.settings = settings_for(options, model, *run.train);
  }
  run.preprocessing = nn::normalisation_of(*run.train);
  run.input = run.train->sample_shape();
  if (!run.settings.size.empty()) {
    run.preprocessing.size = parse_extents(run.settings.size, "--size");
    run.input = Shape{run.input[0]};
    for (const Index extent : run.preprocessing.size) {
      run.input.push_back(extent);
    }
  }
  run.info = {.name = run.settings.model + " on " + run.train->info().name,
              .classes = run.task == nn::Task::reconstruction ? std::vector<std::string>()
                                                              : run.train->classes(),
              .preprocessing = run.preprocessing,
              .more = {{std::string(kInputKey), extents(run.input)},
                       {std::string(kLossKey), run.settings.loss},
                       {std::string(kDataKey), run.settings.data}}};
  return run;
}

nn::Layer<float> initial_model(const Run& run) {
  nn::Layer<float> model = nn::make_model<float>(
      run.settings.model,
      {.classes = run.task == nn::Task::reconstruction ? run.input[0] : run.train->class_count(),
       .channels = run.input[0],
       .width = run.settings.width});
  nn::initialise(model, Key(run.settings.seed).fold("weights"));
  return model;
}

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

/// One sample of the held-out part, as a file that `fenestra run` takes.
void write_sample(const Run& run, const fs::path& path) {
  const Tensor<float> image = run.test->get(0).image;
  if (path.extension() == ".png") {
    io::save_png(path, io::to_image(image));
  } else {
    io::save_npy(path, image);
  }
}

bool is_picture(const Shape& sample) {
  return sample.rank() == 3 && (sample[0] == 1 || sample[0] == 3);
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

/// Samples of the held-out part with what the model says about them.
std::string drawn_samples(const Run& run, nn::Trainer<nn::Layer<float>>& trainer, Index count) {
  std::vector<Index> which;
  count = std::min(count, run.test->size());
  for (Index i = 0; i < count; ++i) {
    which.push_back(i);
  }
  nn::Loader<float> loader(
      nn::subset(run.test, which),
      {.batch = count, .shuffle = false, .prefetch = 0, .preprocessing = run.preprocessing});
  const nn::Batch<float> batch = *loader.next();
  const Tensor<float> scores = trainer.predict(batch.inputs);
  const Index classes = scores.shape()[1];
  std::vector<CaptionedPicture> pictures;
  for (Index i = 0; i < count; ++i) {
    const nn::Sample sample = run.test->get(i);
    const std::vector<double> p = probabilities(scores.data() + i * classes, classes);
    const auto said = static_cast<Index>(std::max_element(p.begin(), p.end()) - p.begin());
    const std::string name = run.info.classes[static_cast<std::size_t>(said)];
    const bool is_wrong = said != sample.label;
    pictures.push_back(
        {.sample = sample.image,
         .caption = is_wrong
                        ? name + " not " + run.info.classes[static_cast<std::size_t>(sample.label)]
                        : name + " " + decimal(100 * p[static_cast<std::size_t>(said)], 0) + "%",
         .is_wrong = is_wrong});
  }
  return picture_rows(pictures, terminal_of(Stream::out), 16);
}

}  // namespace

ExitCode train(const TrainOptions& options) {
  if (options.threads) {
    set_threads(*options.threads);
  }
  const RunFolder files{options.output.value_or(folder_name(options))};
  const fs::path report_file = options.report ? fs::path(*options.report) : files.report();
  known_model(options.model);
  require_new_run(options, files, report_file);
  const Run run = make_run(options, files);
  const TrainSettings& settings = run.settings;

  nn::Trainer<nn::Layer<float>> trainer(initial_model(run),
                                        {.loss = settings.loss,
                                         .optimiser = settings.optimiser,
                                         .schedule = settings.schedule,
                                         .clip_norm = settings.clip,
                                         .average = settings.average,
                                         .seed = settings.seed,
                                         .compiled = !options.eager});
  Shape batch_of_one{1};
  for (const Index extent : run.input) {
    batch_of_one.push_back(extent);
  }
  const nn::Summary summary = nn::summary(trainer.model(), batch_of_one);
  nn::Loader<float> loader(run.train,
                           {.batch = settings.batch,
                            .seed = settings.seed,
                            .augmentation = nn::parse_augmentation(settings.augmentation),
                            .preprocessing = run.preprocessing});
  nn::Loader<float> held_out(run.test,
                             {.batch = std::min<Index>(64, run.test->size()),
                              .shuffle = false,
                              .preprocessing = run.preprocessing});

  std::vector<EpochRow> history;
  trainer.metadata() = nn::model_metadata(trainer.model(), run.info);
  if (options.resume) {
    trainer.resume(files.checkpoint());
    const auto kept = trainer.metadata().find(kHistoryKey);
    history = kept == trainer.metadata().end() ? history : history_of(kept->second);
  } else {
    std::error_code failed;
    fs::create_directories(files.folder, failed);
    if (failed) {
      throw Error(ErrorCode::bad_file,
                  files.folder.string() + ": cannot be made: " + failed.message() +
                      "\n  fix: another folder with --output");
    }
    // What --force replaces must not be taken for the new run's, should that be killed soon.
    for (const fs::path& old :
         {files.checkpoint(), files.previous(), files.best(), files.model(), report_file}) {
      fs::remove(old, failed);
    }
  }
  trainer.metadata()[kSettingsKey] = settings.json().dump();
  const auto save = [&] {
    trainer.metadata()[kHistoryKey] = history_json(history).dump();
    trainer.save(files.checkpoint());
  };

  const InterruptWatch listens;
  TrainWatch watch({.json = options.json,
                    .task = run.task,
                    .epochs = settings.epochs,
                    .batches = loader.batches_per_epoch(),
                    .done = trainer.steps()});
  if (options.json) {
    Json start = {{"event", options.resume ? "resume" : "start"},
                  {"folder", files.folder.string()},
                  {"settings", settings.json()},
                  {"samples", run.train->size()},
                  {"held_out", run.test->size()},
                  {"parameters", summary.parameters},
                  {"multiply_adds", summary.multiply_adds},
                  {"threads", threads()},
                  {"step", trainer.steps()}};
    print_json_line(start);
  } else {
    std::cout << summary_table(summary, terminal_of(Stream::out)) << "\n"
              << run.train->info().name << ": " << grouped(run.train->size())
              << " samples to learn from, " << grouped(run.test->size()) << " held out; "
              << kind_of_samples(run.input.rank() - 1) << " "
              << preparation_words(run.preprocessing, run.train->sample_shape()) << "\n"
              << settings.epochs << " epochs, batches of " << settings.batch << ", "
              << settings.optimiser << ", " << settings.schedule << ", augmentation "
              << settings.augmentation << ", seed " << settings.seed << "\n";
    if (options.resume) {
      std::cout << "going on after step " << grouped(trainer.steps()) << "\n";
    }
    std::cout << "\n" << std::flush;
  }

  nn::FitResult result;
  if (trainer.cursor().epoch < settings.epochs) {
    result = trainer.fit(loader,
                         settings.epochs,
                         {.validation = &held_out,
                          .patience = settings.patience,
                          .stop = &interrupted,
                          .on_step =
                              [&](const nn::StepResult& step) {
                                watch.step(step);
                                if (watch.wants_checkpoint()) {
                                  watch.timed(&TrainCosts::checkpoints, save);
                                }
                              },
                          .on_epoch =
                              [&](const nn::EpochResult& epoch) {
                                history.push_back(watch.epoch(epoch));
                                watch.timed(&TrainCosts::checkpoints, [&] {
                                  if (settings.patience > 0 && epoch.is_best) {
                                    nn::save_model(files.best(), trainer.trained(), run.info);
                                  }
                                  save();
                                });
                              }});
  }
  watch.end();
  if (result.end == nn::FitEnd::diverged) {
    throw Error(ErrorCode::bad_problem,
                "the loss is not a finite number any more, in step " +
                    std::to_string(trainer.steps()) +
                    "\n  fix: a smaller --rate, or --clip 1; the last checkpoint is " +
                    files.checkpoint().string());
  }
  if (interrupted) {
    save();
    std::vector<std::string> words{
        program_name(), "train", settings.model, "--data", settings.data};
    if (options.output) {
      words.insert(words.end(), {"--output", *options.output});
    }
    if (options.eager) {
      words.emplace_back("--eager");
    }
    words.emplace_back("--resume");
    const std::string line = shell_line(words);
    if (options.json) {
      print_json_line({{"event", "interrupted"},
                       {"step", trainer.steps()},
                       {"epoch", trainer.cursor().epoch},
                       {"checkpoint", files.checkpoint().string()},
                       {"go_on", line}});
    } else {
      std::cerr << "interrupted after step " << grouped(trainer.steps()) << " ("
                << trainer.cursor().epoch << " of " << settings.epochs
                << " epochs done); the checkpoint is " << files.checkpoint().string()
                << "\nto go on: " << line << "\n";
    }
    return was_interrupted;
  }

  // The model that is kept: the last weights, or the best ones of a run that was to stop early.
  const bool keeps_best = settings.patience > 0 && is_there(files.best());
  nn::Layer<float> trained = trainer.trained();
  if (keeps_best) {
    nn::load_weights(files.best(), trained);
  }
  nn::Trainer<nn::Layer<float>> deployed(trained,
                                         {.loss = settings.loss, .compiled = !options.eager});
  const nn::Evaluation evaluation =
      watch.timed(&TrainCosts::evaluation, [&] { return deployed.evaluate(held_out); });
  nn::ModelInfo info = run.info;
  info.more["score"] = score_text(evaluation, run.task);
  info.more["command"] = shell_line(reproducing_command(settings, files.folder.string()));
  nn::save_model(files.model(), trained, info);
  const fs::path sample_file = files.sample(is_picture(run.test->sample_shape()));
  write_sample(run, sample_file);

  std::optional<GradientCheck> gradients;
  if (options.gradcheck) {
    const Network<double> exact = load_network<double>(files.model().string());
    gradients = watch.timed(&TrainCosts::gradients, [&] {
      return check_network_gradients(exact, run.test.get(), 4, 2, settings.seed);
    });
  }

  TrainingReport report;
  report.title = info.name;
  report.command = info.more["command"];
  report.model = settings.model;
  report.data = settings.data;
  report.layers = layer_rows(summary);
  report.score_name = score_name(run.task);
  report.test_loss = evaluation.loss;
  report.history = history;
  report.step_losses = watch.step_losses();
  report.steps_per_epoch = loader.batches_per_epoch();
  report.classes = run.info.classes;
  report.test_score = run.task == nn::Task::reconstruction ? kUnknown : evaluation.score();
  if (evaluation.confusion) {
    report.confusion = evaluation.confusion->counts();
  }
  add_samples(report, trained, run.task, *run.test, run.preprocessing, [&](const Tensor<float>& x) {
    return deployed.predict(x);
  });
  report.costs = watch.cost_rows();
  report.peak_bytes = peak_memory();
  report.environment = {.version = std::string(version),
                        .isa = std::string(kernels::isa_name()),
                        .threads = threads(),
                        .seed = settings.seed};
  replace_file(report_file, {report_html(report)});

  const std::string tool = program_name();
  const std::string model_file = files.model().string();
  if (options.json) {
    Json end = {{"event", "end"},
                {"reason", result.end == nn::FitEnd::patience ? "patience" : "finished"},
                {"steps", trainer.steps()},
                {"epochs", trainer.cursor().epoch},
                {"seconds", watch.seconds()}};
    end.update(evaluation_json(evaluation, run.task, run.info.classes));
    if (gradients) {
      end["gradients_agree"] = gradients->agrees();
    }
    end["model"] = model_file;
    end["checkpoint"] = files.checkpoint().string();
    end["report"] = report_file.string();
    print_json_line(end);
  } else {
    if (result.end == nn::FitEnd::patience) {
      std::cout << "stopped early: no better score for " << settings.patience
                << " epochs; the best weights are kept\n\n";
    }
    if (options.show > 0 && run.task == nn::Task::classification &&
        is_picture(run.test->sample_shape())) {
      std::cout << drawn_samples(run, deployed, options.show) << "\n";
    }
    std::cout << evaluation_text(evaluation, run.task, run.info.classes);
    if (gradients) {
      std::cout << gradients->verdict() << "\n";
    }
    std::cout << "\n"
              << columns({{"model", model_file},
                          {"report", report_file.string()},
                          {"time", time_text(watch.seconds())}},
                         0)
              << "\nTry next:\n  " << shell_line({tool, "run", model_file, sample_file.string()})
              << "\n  " << shell_line({tool, "eval", model_file, "--data", settings.data}) << "\n  "
              << shell_line({tool, "explain", "model", model_file}) << "\n";
  }
  return gradients && !gradients->agrees() ? law_broken : fine;
}

}  // namespace fenestra::cli
