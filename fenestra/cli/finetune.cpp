// `fenestra finetune`: an ONNX model of somebody else, trained on, and written back as it was but
// for its weights.
#include <fenestra/base/nearest.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/cli/counted.hpp>
#include <fenestra/cli/evaluate.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/onnx.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/training_run.hpp>
#include <fenestra/cli/units.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/io/onnx.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <sstream>
#include <utility>

namespace fenestra::cli {

namespace {

namespace fs = std::filesystem;

using Network32 = onnx::Network<float>;

constexpr std::string_view kCommand = "finetune";

/// What is trained, and why not the rest.
struct Choice {
  std::vector<std::string> trained;
  std::vector<std::string> frozen;
  Index numbers = 0;  ///< that are trained
  std::vector<std::string> words;
};

/// "a, b, c and 5 more"
std::string named(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, names.size()); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  return names.size() > kNamed ? text + " and " + std::to_string(names.size() - kNamed) + " more"
                               : text;
}

bool matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// Sets what is trained. Every pattern must match something, or it is probably misspelt.
Choice choose(Network32& network, const FinetuneOptions& options) {
  Choice choice;
  std::vector<std::string> names;
  for (const onnx::Weight<float>& weight : network.weights()) {
    if (!weight.is_statistic) {
      names.push_back(weight.name);
    }
  }
  const auto count = [&](const std::string& option, const std::string& pattern) {
    std::vector<std::string> found;
    std::copy_if(names.begin(), names.end(), std::back_inserter(found), [&](const auto& name) {
      return matches(pattern, name);
    });
    if (found.empty()) {
      const bool is_statistic =
          std::any_of(network.weights().begin(), network.weights().end(), [&](const auto& weight) {
            return weight.is_statistic && matches(pattern, weight.name);
          });
      throw UsageError(option + " " + pattern + ": matches none of the " +
                       std::to_string(names.size()) + " weights" +
                       (is_statistic ? ", only statistics, which are never trained"
                                     : did_you_mean(pattern, names)) +
                       "\n  fix: a pattern for names such as " + named(names));
    }
    choice.words.push_back(option + " " + pattern + ": " + std::to_string(found.size()) + " of " +
                           std::to_string(names.size()) + " weights, " + named(found));
  };
  for (const std::string& pattern : options.train) {
    count("--train", pattern);
  }
  for (const std::string& pattern : options.freeze) {
    count("--freeze", pattern);
  }
  const auto any = [](const std::vector<std::string>& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return matches(pattern, name);
    });
  };
  for (const std::string& name : names) {
    const bool trained =
        (options.train.empty() || any(options.train, name)) && !any(options.freeze, name);
    network.set_trained(name, trained);
    (trained ? choice.trained : choice.frozen).push_back(name);
    choice.numbers += trained ? *network.find_weight(name)->value().shape().elements() : 0;
  }
  if (choice.trained.empty()) {
    throw UsageError(names.empty() ? options.file + " has no weights to be trained"
                                   : "nothing is left to be trained: --freeze matches everything");
  }
  return choice;
}

/// The model with the head that was asked for, and words about it.
onnx::Model with_head(const onnx::Model& model,
                      const FinetuneOptions& options,
                      const Shape& input,
                      Index classes,
                      std::string& words) {
  const Index wanted = options.head && *options.head > 0 ? *options.head : classes;
  if (options.cut) {
    const Network32 until(model, {.outputs = {*options.cut}});
    const Shape shape = nn::summary(until, batch_of_one(input)).output;
    onnx::Model cut = onnx::with_head_at(model, *options.cut, shape, wanted, options.seed);
    std::vector<std::string> left_out;
    const Network32 whole(model);
    for (const onnx::Weight<float>& weight : whole.weights()) {
      if (until.find_weight(weight.name) == nullptr) {
        left_out.push_back(weight.name);
      }
    }
    words = "a new head of " + counted(wanted, "class", "classes") + " after " + *options.cut +
            " " + to_string(shape) +
            (left_out.empty() ? "" : "; left out, behind it: " + named(left_out));
    return cut;
  }
  if (options.head) {
    const onnx::Head head = onnx::find_head(model);
    words = "the head " + head.weight + (head.bias.empty() ? "" : ", " + head.bias) + " for " +
            counted(wanted, "class", "classes") + " instead of " + grouped(head.classes) +
            ", drawn anew";
    return onnx::with_classes(model, wanted, options.seed);
  }
  return model;
}

/// The new file, and beside it what a run leaves: tuned.onnx, tuned.checkpoint.safetensors, ...
RunFiles files_of(const FinetuneOptions& options) {
  fs::path stem(options.file);
  stem.replace_extension();
  const fs::path model(options.output.value_or(stem.string() + "-tuned.onnx"));
  fs::path base = model;
  base.replace_extension();
  const auto beside = [&](const char* ending) { return fs::path(base) += ending; };
  return {.checkpoint = beside(".checkpoint.safetensors"),
          .best = beside(".best.safetensors"),
          .model = model,
          .report = options.report ? fs::path(*options.report) : beside(".html")};
}

/// What was said, under the names of the options; all but what --resume may change decides which
/// weights come out.
Json settings_json(const FinetuneOptions& options) {
  const auto said = [](const auto& option) { return option ? Json(*option) : Json(nullptr); };
  return {{"FILE", options.file},
          {"--data", options.data},
          {"--head", said(options.head)},
          {"--cut", said(options.cut)},
          {"--freeze", options.freeze},
          {"--train", options.train},
          {"--bn", said(options.batch_norm)},
          {"--input", said(options.input)},
          {"--size", said(options.preparation.size)},
          {"--mean", said(options.preparation.mean)},
          {"--scale", said(options.preparation.scale)},
          {"--loss", options.loss},
          {"--optimiser", options.optimiser},
          {"--schedule", options.schedule},
          {"--augmentation", options.augmentation},
          {"--batch", options.batch},
          {"--count", options.count},
          {"--held-out", options.held_out},
          {"--clip", options.clip},
          {"--seed", options.seed},
          {"--epochs", options.epochs},
          {"--patience", options.patience}};
}

void require_same(const FinetuneOptions& options, const RunFiles& files) {
  const Json stored = Json::parse(stored_settings(files, kCommand), nullptr, false);
  const Json now = settings_json(options);
  for (const auto& [option, value] : now.items()) {
    const bool may_change = option == "--epochs" || option == "--patience";
    const Json kept = stored.is_object() && stored.contains(option) ? stored[option] : Json();
    if (!may_change && kept != value) {
      refuse_change(option, value.dump(), kept.dump(), files.checkpoint);
    }
  }
}

/// What to type for the same run: all that is not as it is when nothing is said.
std::vector<std::string> command_words(const FinetuneOptions& options, const RunFiles& files) {
  std::vector<std::string> words{program_name(), std::string(kCommand), options.file};
  const Json defaults = settings_json({});
  const Json now = settings_json(options);
  const auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const auto& [option, value] : now.items()) {
    if (option == "FILE" || value == defaults[option]) {
      continue;
    }
    for (const Json& one : value.is_array() ? value : Json::array({value})) {
      words.insert(words.end(), {option, text(one)});
    }
  }
  words.insert(words.end(), {"--output", files.model.string()});
  if (options.eager) {
    words.emplace_back("--eager");
  }
  return words;
}

/// All that is known before the first step.
struct Start {
  std::string head_words;
  Choice choice;
  bool has_statistics = false;
  bool uses_batch = false;
  std::vector<onnx::Problem> cut_off;
};

void print_start(const FinetuneOptions& options, const Start& start, const TrainingRun& training) {
  const TrainingPlan& plan = training.plan();
  const Choice& choice = start.choice;
  if (options.json) {
    Json problems = Json::array();
    for (const onnx::Problem& problem : start.cut_off) {
      problems.push_back(to_string(problem));
    }
    print_json_line({{"event", options.resume ? "resume" : "start"},
                     {"model", options.file},
                     {"data", options.data},
                     {"head", start.head_words.empty() ? Json(nullptr) : Json(start.head_words)},
                     {"patterns", choice.words},
                     {"trained", choice.trained.size()},
                     {"frozen", choice.frozen.size()},
                     {"frozen_weights", choice.frozen},
                     {"parameters", choice.numbers},
                     {"batch_norm", start.uses_batch ? "batch" : "frozen"},
                     {"cut_off", std::move(problems)},
                     {"step", training.steps()}});
    return;
  }
  std::ostringstream words;
  if (!start.head_words.empty()) {
    words << start.head_words << "\n";
  }
  for (const std::string& word : choice.words) {
    words << word << "\n";
  }
  const auto count = [](const std::vector<std::string>& names) {
    return static_cast<Index>(names.size());
  };
  words << counted(count(choice.trained), "weight is", "weights are") << " trained ("
        << counted(choice.numbers, "number", "numbers") << "), "
        << counted(count(choice.frozen), "is", "are") << " frozen";
  // With patterns of one kind it is said already.
  if (!choice.frozen.empty() && !options.train.empty()) {
    words << ", which --train does not match or --freeze does: " << named(choice.frozen);
  }
  if (start.has_statistics) {
    words << "; batch norm " << (start.uses_batch ? "by the batch" : "as in inference")
          << " (--bn)";
  }
  words << "\n";
  for (const onnx::Problem& problem : start.cut_off) {
    words << "  not reached: " << to_string(problem) << "\n";
  }
  words << plan.train->info().name << ": " << grouped(plan.train->size())
        << " samples to learn from, " << grouped(plan.test->size()) << " held out; "
        << preparation_words(plan.info.preprocessing, plan.train->sample_shape()) << "\n"
        << counted(plan.epochs, "epoch", "epochs") << ", batches of " << plan.batch << ", "
        << options.optimiser << ", " << options.schedule << "\n";
  if (options.resume) {
    words << training.resumed_words();
  }
  words << "\n";
  std::cout << wrapped(words.str(), terminal_of(Stream::out)) << std::flush;
}

}  // namespace

ExitCode finetune_command(const FinetuneOptions& options) {
  if (options.threads) {
    set_threads(*options.threads);
  }
  const RunFiles files = files_of(options);
  require_new_run(files, options.resume, options.force);
  if (options.resume) {
    require_same(options, files);
  }
  const Network<float> given = load_network<float>(options.file, options.input);
  const Shape input = given.input;
  DataSource source{
      .text = options.data, .count = options.count, .held_out = options.held_out, .seed = 0};
  const nn::DatasetPtr train = open_for(source, nn::Split::train, given.task, input);
  source.count = source.count == 0 ? 0 : std::max<Index>(1, source.count / 5);
  const nn::DatasetPtr test = open_for(source, nn::Split::test, given.task, input);

  nn::ModelInfo info = given.info;
  if (info.preprocessing == nn::Preprocessing{}) {
    info.preprocessing = nn::normalisation_of(*train);
  }
  if (spatial(train->sample_shape()) != spatial(input)) {
    info.preprocessing.size = spatial(input);
  }
  apply(options.preparation, info.preprocessing);

  Start start;
  const onnx::Model model = with_head(onnx::read_model(fs::path(options.file)),
                                      options,
                                      input,
                                      train->class_count(),
                                      start.head_words);
  const Index batch = std::min(options.batch, train->size());
  // Fewer than 16 say too little about the statistics.
  start.uses_batch = options.batch_norm ? *options.batch_norm == "batch" : batch >= 16;
  Network32 network(
      model,
      {.batch_norm = start.uses_batch ? onnx::BatchNormMode::batch : onnx::BatchNormMode::frozen,
       .outputs = {onnx::scores_value(model)}});
  start.choice = choose(network, options);
  start.cut_off = network.cut_off();
  start.has_statistics = std::any_of(network.weights().begin(),
                                     network.weights().end(),
                                     [](const auto& weight) { return weight.is_statistic; });

  const Shape output = nn::summary(network, batch_of_one(input)).output;
  const Index scores = output.rank() >= 2 ? output[1] : 0;
  if (train->task() != nn::Task::reconstruction && scores != train->class_count()) {
    throw Error(ErrorCode::shape_mismatch,
                options.file + " gives " + std::to_string(scores) + " scores; " +
                    train->info().name + " has " + std::to_string(train->class_count()) +
                    " classes\n  fix: --head " + std::to_string(train->class_count()) +
                    " for a new last layer, or --cut VALUE");
  }
  if (info.name.empty()) {
    info.name = fs::path(options.file).stem().string() + " on " + train->info().name;
  }
  info.classes = train->classes();
  info.more[std::string(kInputKey)] = extents(input);
  info.more[std::string(kLossKey)] = options.loss;
  info.more[std::string(kDataKey)] = options.data;

  std::vector<std::string> go_on = command_words(options, files);
  go_on.emplace_back("--resume");
  TrainingRun training({.command = std::string(kCommand),
                        .files = files,
                        .settings = settings_json(options).dump(),
                        .model = options.file,
                        .data = options.data,
                        .task = train->task(),
                        .train = train,
                        .test = test,
                        .input = input,
                        .info = info,
                        .trainer = {.loss = options.loss,
                                    .optimiser = options.optimiser,
                                    .schedule = options.schedule,
                                    .clip_norm = options.clip,
                                    .seed = options.seed,
                                    .compiled = !options.eager},
                        .augmentation = options.augmentation,
                        .epochs = options.epochs,
                        .batch = batch,
                        .patience = options.patience,
                        .rate_option = "rate in --optimiser",
                        .go_on = go_on,
                        .again = command_words(options, files),
                        .resume = options.resume,
                        .json = options.json},
                       nn::Layer<float>(std::move(network)));
  print_start(options, start, training);
  if (!training.fit()) {
    return was_interrupted;
  }
  const nn::Evaluation& evaluation = training.evaluate();
  onnx::save(files.model,
             *training.trained().as<Network32>(),
             nn::detail::metadata_of(std::nullopt, info));
  training.write_report();
  if (options.json) {
    print_json_line(training.end_json());
    return fine;
  }
  const std::string file = files.model.string();
  std::cout << training.early_end_words()
            << evaluation_text(evaluation, train->task(), info.classes) << "\n"
            << columns({{"model", file},
                        {"report", files.report.string()},
                        {"time", time_text(training.watch().seconds())}},
                       0)
            << "\nTry next:\n  "
            << shell_line({program_name(), "eval", file, "--data", options.data}) << "\n  "
            << shell_line({program_name(), "summary", file}) << "\n";
  return fine;
}

}  // namespace fenestra::cli
