// Which settings a run has: said, chosen for model and data, or kept by a checkpoint.
#include <fenestra/base/error.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/train.hpp>
#include <fenestra/cli/training_run.hpp>
#include <fenestra/nn/any_optimiser.hpp>
#include <fenestra/nn/data/augmentation.hpp>
#include <fenestra/nn/losses.hpp>
#include <fenestra/nn/schedule.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace fenestra::cli {

namespace {

/// Extents that a model needs: its own where it ends in a linear layer over all cells, otherwise at
/// least so many, in steps of `multiple`.
struct SizeRule {
  std::string_view model;
  bool is_fixed = false;
  Index least = 1;
  Index multiple = 1;
};

constexpr std::array<SizeRule, 8> kSizeRules = {{
    {.model = "autoencoder", .is_fixed = true},
    {.model = "lenet", .is_fixed = true},
    {.model = "convnext_tiny", .least = 32},
    {.model = "mobilenet_v2", .least = 32},
    {.model = "mobilenet_v3_small", .least = 32},
    {.model = "resnet18", .least = 32},
    {.model = "small_resnet", .least = 28},
    {.model = "unet", .least = 8, .multiple = 8},
}};

Shape chosen_size(const nn::ModelEntry& model, const Shape& sample) {
  const auto rule = std::find_if(kSizeRules.begin(), kSizeRules.end(), [&](const SizeRule& r) {
    return r.model == model.name;
  });
  const Shape own = spatial(sample);
  if (rule == kSizeRules.end()) {
    return own;
  }
  if (rule->is_fixed) {
    return spatial(model.input);
  }
  Shape size;
  for (const Index extent : own) {
    const Index wanted = std::max(extent, rule->least);
    size.push_back((wanted + rule->multiple - 1) / rule->multiple * rule->multiple);
  }
  return size;
}

/// For what is known; others get the last line.
struct DataChoice {
  std::string_view data;
  Index epochs;
  Index batch;
  std::string_view augmentation;
  double smoothing = 0;  ///< of the labels
  double rate = 0.002;   ///< of Adam
};

constexpr std::array<DataChoice, 7> kDataChoices = {{
    {"digits", 30, 32, "shift=1,rotate=15,noise=0.05", 0.1},
    {"mnist", 3, 64, "none", 0, 0.006},
    {"fashion", 15, 64, "flip=0.5,shift=2"},
    {"shapes", 12, 16, "flip=0.5,flip_vertical=0.5"},
    {"tones", 8, 32, "none"},
    {"volumes", 8, 16, "none"},
    {"", 10, 32, "none"},
}};

const DataChoice& choice_for(std::string_view data) {
  const std::string_view name = data.substr(0, data.find(':'));
  const auto found = std::find_if(kDataChoices.begin(),
                                  kDataChoices.end(),
                                  [&](const DataChoice& choice) { return choice.data == name; });
  return found != kDataChoices.end() ? *found : kDataChoices.back();
}

/// The shortest text that reads as the same number.
std::string number_words(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

std::string optimiser_text(const TrainOptions& options) {
  nn::OptimiserOptions said;
  said.rate = options.rate;
  if (!options.rate &&
      (!options.optimiser || *options.optimiser == "adamw" || *options.optimiser == "adam")) {
    said.rate = choice_for(options.data).rate;
  }
  return nn::Optimiser<float>::make(options.optimiser.value_or("adamw"), said).text();
}

}  // namespace

nn::Task task_of(const nn::ModelEntry& model) {
  return model.output == "mask"      ? nn::Task::segmentation
         : model.output == "picture" ? nn::Task::reconstruction
                                     : nn::Task::classification;
}

Json TrainSettings::json() const {
  Json json = {{"model", model},
               {"data", data},
               {"epochs", epochs},
               {"batch", batch},
               {"optimiser", optimiser},
               {"schedule", schedule},
               {"loss", loss},
               {"augmentation", augmentation},
               {"seed", seed},
               {"width", width},
               {"size", size},
               {"count", count},
               {"held_out", held_out},
               {"patience", patience},
               {"average", average},
               {"clip", clip}};
  if (leaf > 0) {
    json["leaf"] = leaf;
  }
  if (!tile.empty()) {
    json["tile"] = tile;
  }
  return json;
}

TrainSettings TrainSettings::from_json(const std::string& text, const std::string& file) {
  TrainSettings s;
  try {
    const Json json = Json::parse(text);
    json.at("model").get_to(s.model);
    json.at("data").get_to(s.data);
    json.at("epochs").get_to(s.epochs);
    json.at("batch").get_to(s.batch);
    json.at("optimiser").get_to(s.optimiser);
    json.at("schedule").get_to(s.schedule);
    json.at("loss").get_to(s.loss);
    json.at("augmentation").get_to(s.augmentation);
    json.at("seed").get_to(s.seed);
    json.at("width").get_to(s.width);
    json.at("size").get_to(s.size);
    json.at("count").get_to(s.count);
    json.at("held_out").get_to(s.held_out);
    json.at("patience").get_to(s.patience);
    json.at("average").get_to(s.average);
    json.at("clip").get_to(s.clip);
    s.leaf = json.value("leaf", Index{0});
    s.tile = json.value("tile", std::string());
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::bad_file,
                file + ": the settings of its run cannot be read: " + error.what() +
                    "\n  fix: a checkpoint that `fenestra train` wrote");
  }
  return s;
}

TrainSettings settings_for(const TrainOptions& options,
                           const nn::ModelEntry& model,
                           const nn::Dataset& data) {
  const DataChoice& choice = choice_for(options.data);
  TrainSettings s{.model = options.model, .data = options.data};
  s.epochs = options.epochs.value_or(choice.epochs);
  s.batch = std::min(options.batch.value_or(choice.batch), data.size());
  s.optimiser = optimiser_text(options);
  s.schedule = nn::Schedule::parse(options.schedule.value_or("one-cycle")).text();
  s.loss = nn::Loss<float>::make(options.loss.value_or(task_of(model) == nn::Task::reconstruction
                                                           ? "bce"
                                                           : "cross-entropy smoothing=" +
                                                                 number_words(choice.smoothing)))
               .text();
  s.augmentation = nn::to_string(
      nn::parse_augmentation(options.augmentation.value_or(std::string(choice.augmentation))));
  s.seed = options.seed.value_or(1);
  s.width = options.width.value_or(1);
  const Shape own = spatial(data.sample_shape());
  const Shape size = options.size ? parse_extents(*options.size, "--size")
                                  : chosen_size(model, data.sample_shape());
  // Pictures of a folder have the size that was asked for; other samples their own.
  const bool is_said = options.size || options.data.starts_with("folder:");
  s.size = size == own && !is_said ? "" : extents(size);
  s.count = options.count.value_or(0);
  s.held_out = options.held_out.value_or(0.1);
  s.patience = options.patience.value_or(0);
  s.average = options.average.value_or(0);
  s.clip = options.clip.value_or(0);
  s.leaf = options.leaf.value_or(0);
  s.tile = options.tile ? extents(parse_extents(*options.tile, "--tile")) : "";
  return s;
}

TrainSettings resumed_settings(const TrainOptions& options,
                               TrainSettings stored,
                               const std::string& file) {
  const auto same = [&](const char* option, const auto& said, const auto& kept) {
    if (said && *said != kept) {
      refuse_change(option, Json(*said).dump(), Json(kept).dump(), file);
    }
  };
  const auto same_text = [&](const char* option, const std::string& said, const std::string& kept) {
    if (said != kept) {
      refuse_change(option, "\"" + said + "\"", "\"" + kept + "\"", file);
    }
  };
  same_text("MODEL", options.model, stored.model);
  same_text("--data", options.data, stored.data);
  same("--batch", options.batch, stored.batch);
  if (options.optimiser || options.rate) {
    same_text("--optimiser", optimiser_text(options), stored.optimiser);
  }
  if (options.schedule) {
    same_text("--schedule", nn::Schedule::parse(*options.schedule).text(), stored.schedule);
  }
  if (options.loss) {
    same_text("--loss", nn::Loss<float>::make(*options.loss).text(), stored.loss);
  }
  if (options.augmentation) {
    same_text("--augmentation",
              nn::to_string(nn::parse_augmentation(*options.augmentation)),
              stored.augmentation);
  }
  same("--seed", options.seed, stored.seed);
  same("--width", options.width, stored.width);
  same("--count", options.count, stored.count);
  same("--held-out", options.held_out, stored.held_out);
  same("--average", options.average, stored.average);
  same("--clip", options.clip, stored.clip);
  same("--leaf", options.leaf, stored.leaf);
  if (options.tile) {
    same_text("--tile", extents(parse_extents(*options.tile, "--tile")), stored.tile);
  }
  // Longer, and more or less patient: these go on from where the run is.
  stored.epochs = options.epochs.value_or(stored.epochs);
  stored.patience = options.patience.value_or(stored.patience);
  return stored;
}

std::vector<std::string> reproducing_command(const TrainSettings& s, const std::string& folder) {
  std::vector<std::string> words{program_name(), "train", s.model, "--data", s.data};
  const auto say = [&](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(value);
  };
  say("--epochs", std::to_string(s.epochs));
  say("--batch", std::to_string(s.batch));
  say("--optimiser", s.optimiser);
  say("--schedule", s.schedule);
  say("--loss", s.loss);
  say("--augmentation", s.augmentation);
  say("--seed", std::to_string(s.seed));
  if (s.width != 1) {
    say("--width", number_words(s.width));
  }
  if (!s.size.empty()) {
    say("--size", s.size);
  }
  if (s.count != 0) {
    say("--count", std::to_string(s.count));
  }
  if (s.held_out != 0.1) {
    say("--held-out", number_words(s.held_out));
  }
  if (s.patience != 0) {
    say("--patience", std::to_string(s.patience));
  }
  if (s.average != 0) {
    say("--average", number_words(s.average));
  }
  if (s.clip != 0) {
    say("--clip", number_words(s.clip));
  }
  if (s.leaf != 0) {
    say("--leaf", std::to_string(s.leaf));
  }
  if (!s.tile.empty()) {
    say("--tile", s.tile);
  }
  say("--output", folder);
  return words;
}

}  // namespace fenestra::cli
