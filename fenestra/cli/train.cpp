// `fenestra train`: a ready model on data, from the summary to the report.
//
// The run is in one folder: checkpoint.safetensors (all that is needed to go on),
// model.safetensors, report.html, and one sample to try the model on.
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/cli/counted.hpp>
#include <fenestra/cli/evaluate.hpp>
#include <fenestra/cli/gradcheck.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/cli/terminal_picture.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/train.hpp>
#include <fenestra/cli/train_watch.hpp>
#include <fenestra/cli/training_run.hpp>
#include <fenestra/cli/units.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/io/image.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/nn/data/loader.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/ranks/mpi.hpp>

#include <algorithm>
#include <compare>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <system_error>

namespace fenestra::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCommand = "train";

/// Where a run keeps its files.
RunFiles files_in(const fs::path& folder, const std::optional<std::string>& report) {
  return {.checkpoint = folder / "checkpoint.safetensors",
          .best = folder / "best.safetensors",
          .model = folder / "model.safetensors",
          .report = report ? fs::path(*report) : folder / "report.html"};
}

std::string folder_name(const TrainOptions& options) {
  std::string data = options.data;
  for (char& letter : data) {
    letter = letter == '/' || letter == ':' || letter == '.' ? '-' : letter;
  }
  return "runs/" + options.model + "-" + data;
}

/// Whether to go on with a run or to begin one.
bool resumes(const TrainOptions& options, const RunFiles& files) {
  if (options.resume_or_start && (options.resume || options.force)) {
    throw UsageError("--resume-or-start decides itself: without --resume and --force");
  }
  return options.resume ||
         (options.resume_or_start && (is_there(files.checkpoint) || is_there(files.previous())));
}

/// The processes that train together; null for one alone. MPI is only asked for where it was said
/// how results are to be independent of it.
ranks::CommunicatorPtr communicator_for(const TrainSettings& settings) {
  const int launched = ranks::launched_ranks();
  if ((settings.leaf > 0 || !settings.tile.empty()) && launched > 0) {
    return ranks::mpi_communicator();
  }
  if (launched > 1) {
    throw Error(ErrorCode::bad_environment,
                std::to_string(launched) +
                    " processes were started, and without --leaf each would train by itself\n"
                    "  fix: --leaf 8, or another number of samples, for any number of processes "
                    "the same");
  }
  return nullptr;
}

/// Model, data and settings, put together.
struct Run {
  RunFiles files = {};
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
    throw Error(ErrorCode::unsupported,
                model.name + " does " + std::string(nn::task_name(task)) + "; " + data.info().name +
                    " is for " + std::string(nn::task_name(data.task())) +
                    "\n  fix: " + (others.empty() ? "other data" : "another model: " + others));
  }
}

Run make_run(const TrainOptions& options, const RunFiles& files) {
  const nn::ModelEntry& model = known_model(options.model);
  Run run{.files = files, .task = task_of(model)};
  DataSource source{.text = options.data};
  if (options.resume) {
    const std::string file = files.checkpoint.string();
    run.settings = resumed_settings(
        options, TrainSettings::from_json(stored_settings(files, kCommand), file), file);
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

/// So many samples, those that come first of each class in turn.
std::vector<Index> of_all_classes(const nn::Dataset& data, Index count) {
  constexpr Index kLooked =
      32;  // for each one that is chosen: pictures are decoded to be looked at
  struct Turn {
    Index before = 0;  ///< samples of its class
    Index label = 0;
    Index sample = 0;
    auto operator<=>(const Turn&) const = default;
  };
  std::vector<Turn> turns;
  std::map<Index, Index> met;
  for (Index i = 0; i < std::min(data.size(), kLooked * count); ++i) {
    const Index label = data.get(i).label;
    turns.push_back({met[label]++, label, i});
  }
  std::sort(turns.begin(), turns.end());
  std::vector<Index> which;
  for (Index i = 0; i < count; ++i) {
    which.push_back(turns[static_cast<std::size_t>(i)].sample);
  }
  return which;
}

/// Samples of the held-out part with what the model says about them.
std::string drawn_samples(const Run& run, TrainingRun& training, Index count) {
  count = std::min(count, run.test->size());
  const std::vector<Index> which = of_all_classes(*run.test, count);
  nn::Loader<float> loader(
      nn::subset(run.test, which),
      {.batch = count, .shuffle = false, .prefetch = 0, .preprocessing = run.preprocessing});
  const nn::Batch<float> batch = *loader.next();
  const Tensor<float> scores = training.predict(batch.inputs);
  const Index classes = scores.shape()[1];
  std::vector<CaptionedPicture> pictures;
  for (Index i = 0; i < count; ++i) {
    const nn::Sample sample = run.test->get(which[static_cast<std::size_t>(i)]);
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

/// What to type to go on with an interrupted run.
std::vector<std::string> resuming_command(const TrainOptions& options) {
  std::vector<std::string> words{
      program_name(), std::string(kCommand), options.model, "--data", options.data};
  if (options.output) {
    words.insert(words.end(), {"--output", *options.output});
  }
  if (options.eager) {
    words.emplace_back("--eager");
  }
  words.emplace_back("--resume");
  return words;
}

TrainingPlan plan_of(const TrainOptions& options, const Run& run) {
  const TrainSettings& settings = run.settings;
  return {
      .command = std::string(kCommand),
      .files = run.files,
      .settings = settings.json().dump(),
      .model = settings.model,
      .data = settings.data,
      .task = run.task,
      .train = run.train,
      .test = run.test,
      .input = run.input,
      .info = run.info,
      .trainer = {.loss = settings.loss,
                  .optimiser = settings.optimiser,
                  .schedule = settings.schedule,
                  .clip_norm = settings.clip,
                  .average = settings.average,
                  .seed = settings.seed,
                  .compiled = !options.eager,
                  .leaf = settings.leaf,
                  .tile = settings.tile.empty() ? Shape{} : parse_extents(settings.tile, "--tile"),
                  .communicator = communicator_for(settings)},
      .augmentation = settings.augmentation,
      .epochs = settings.epochs,
      .batch = settings.batch,
      .patience = settings.patience,
      .rate_option = "--rate",
      .go_on = resuming_command(options),
      .again = reproducing_command(settings, run.files.model.parent_path().string()),
      .resume = options.resume,
      .json = options.json};
}

void print_start(const TrainOptions& options, const Run& run, const TrainingRun& training) {
  const TrainSettings& settings = run.settings;
  const nn::Summary& summary = training.summary();
  const ranks::CommunicatorPtr& communicator = training.plan().trainer.communicator;
  if (options.json) {
    Json start = {{"event", options.resume ? "resume" : "start"},
                  {"folder", run.files.model.parent_path().string()},
                  {"settings", settings.json()},
                  {"samples", run.train->size()},
                  {"held_out", run.test->size()},
                  {"parameters", summary.parameters},
                  {"multiply_adds", summary.multiply_adds},
                  {"threads", threads()},
                  {"step", training.steps()}};
    if (communicator) {
      start["ranks"] = communicator->size();
    }
    print_json_line(start);
    return;
  }
  std::ostringstream words;
  words << "\n"
        << run.train->info().name << ": " << grouped(run.train->size())
        << " samples to learn from, " << grouped(run.test->size()) << " held out; "
        << kind_of_samples(run.input.rank() - 1) << " "
        << preparation_words(run.preprocessing, run.train->sample_shape()) << "\n"
        << counted(settings.epochs, "epoch", "epochs") << ", batches of " << settings.batch << ", "
        << settings.optimiser << ", " << settings.schedule << ", augmentation "
        << settings.augmentation << ", seed " << settings.seed << "\n";
  if (settings.leaf > 0 || !settings.tile.empty()) {
    words << "leaves of "
          << (settings.leaf > 0 ? std::to_string(settings.leaf) + " samples" : "a batch")
          << (settings.tile.empty() ? "" : " in tiles of " + settings.tile) << ", on "
          << (communicator ? communicator->size() : 1) << " processes; any number of them "
          << "gives the same weights\n";
  }
  if (options.resume) {
    words << training.resumed_words();
  }
  words << "\n";
  const Terminal terminal = terminal_of(Stream::out);
  std::cout << summary_table(summary, terminal) << wrapped(words.str(), terminal) << std::flush;
}

}  // namespace

ExitCode train(const TrainOptions& said) {
  if (said.threads) {
    set_threads(*said.threads);
  }
  const fs::path folder(said.output.value_or(folder_name(said)));
  const RunFiles files = files_in(folder, said.report);
  TrainOptions options = said;
  options.resume = resumes(said, files);
  known_model(options.model);
  require_new_run(files, options.resume, options.force);
  const Run run = make_run(options, files);
  const TrainSettings& settings = run.settings;
  TrainingRun training(plan_of(options, run), initial_model(run));
  // All ranks train; the first one speaks and writes.
  if (!training.is_first()) {
    return training.follow();
  }
  if (!options.resume) {
    std::error_code ignored;
    fs::remove(files.model, ignored);  // of a run that --force replaces
  }
  print_start(options, run, training);
  if (!training.fit()) {
    return was_interrupted;
  }

  const nn::Evaluation& evaluation = training.evaluate();
  nn::ModelInfo info = run.info;
  info.more["score"] = score_text(evaluation, run.task);
  info.more["command"] = shell_line(training.plan().again);
  nn::save_model(files.model, training.trained(), info);
  const fs::path sample_file =
      folder / (is_picture(run.test->sample_shape()) ? "sample.png" : "sample.npy");
  write_sample(run, sample_file);

  std::optional<GradientCheck> gradients;
  if (options.gradcheck) {
    const Network<double> exact = load_network<double>(files.model.string());
    gradients = training.watch().timed(&TrainCosts::gradients, [&] {
      return check_network_gradients(exact, run.test.get(), 4, 2, settings.seed);
    });
  }
  training.write_report();

  const std::string tool = program_name();
  const std::string model_file = files.model.string();
  if (options.json) {
    Json end = training.end_json();
    if (gradients) {
      end["gradients_agree"] = gradients->agrees();
    }
    print_json_line(end);
  } else {
    std::cout << training.early_end_words();
    if (options.show > 0 && run.task == nn::Task::classification &&
        is_picture(run.test->sample_shape())) {
      std::cout << drawn_samples(run, training, options.show) << "\n";
    }
    std::cout << evaluation_text(evaluation, run.task, run.info.classes);
    if (gradients) {
      std::cout << wrapped(gradients->verdict() + "\n", terminal_of(Stream::out));
    }
    std::cout << "\n"
              << columns({{"model", model_file},
                          {"report", files.report.string()},
                          {"time", time_text(training.watch().seconds())}},
                         0)
              << "\nTry next:\n  " << shell_line({tool, "run", model_file, sample_file.string()})
              << "\n  " << shell_line({tool, "eval", model_file, "--data", settings.data}) << "\n  "
              << shell_line({tool, "explain", "model", model_file}) << "\n";
  }
  return gradients && !gradients->agrees() ? law_broken : fine;
}

}  // namespace fenestra::cli
