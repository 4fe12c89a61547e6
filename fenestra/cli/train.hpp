// `fenestra train`: what may be said on the command line, and what a run is made of once all that
// was not said is decided. A checkpoint keeps the latter, so that `--resume` needs no more than the
// names.
#pragma once

#include <fenestra/cli/command.hpp>
#include <fenestra/io/tensor_map.hpp>
#include <fenestra/nn/data/dataset.hpp>
#include <fenestra/nn/models/make.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fenestra::cli {

struct TrainOptions {
  std::string model;
  std::string data;
  std::optional<Index> epochs = {};
  std::optional<Index> batch = {};
  std::optional<std::string> optimiser = {};
  std::optional<double> rate = {};
  std::optional<std::string> schedule = {};
  std::optional<std::string> loss = {};
  std::optional<std::string> augmentation = {};
  std::optional<std::uint64_t> seed = {};
  std::optional<double> width = {};
  std::optional<std::string> size = {};
  std::optional<Index> count = {};
  std::optional<double> held_out = {};
  std::optional<Index> patience = {};
  std::optional<double> average = {};
  std::optional<double> clip = {};
  std::optional<Index> leaf = {};
  std::optional<std::string> tile = {};
  std::optional<int> threads = {};
  std::optional<std::string> output = {};  ///< a folder
  std::optional<std::string> report = {};  ///< instead of report.html in it
  Index show = 0;                          ///< samples to draw at the end
  bool gradcheck = false;
  bool resume = false;
  bool resume_or_start = false;
  bool force = false;
  bool eager = false;
  bool json = false;
};

/// All that decides which weights come out.
struct TrainSettings {
  std::string model = {};
  std::string data = {};
  Index epochs = 0;
  Index batch = 0;
  std::string optimiser = {};  ///< with its rate
  std::string schedule = {};
  std::string loss = {};
  std::string augmentation = {};
  std::uint64_t seed = 0;
  double width = 1;
  std::string size = {};  ///< "28x28"; empty: as samples come
  Index count = 0;
  double held_out = 0.1;
  Index patience = 0;
  double average = 0;
  double clip = 0;
  Index leaf = 0;
  std::string tile = {};  ///< "512x512"; empty: pictures are not cut

  Json json() const;
  /// Throws `bad_file`; `file` is for the message.
  static TrainSettings from_json(const std::string& text, const std::string& file);
};

/// The task that a ready model is for.
nn::Task task_of(const nn::ModelEntry& model);

/// What was said, and sensible choices for the rest. `data` is the part to learn from.
TrainSettings settings_for(const TrainOptions& options,
                           const nn::ModelEntry& model,
                           const nn::Dataset& data);

/// The settings of the run that is resumed, with what the command line may change. Throws
/// `invalid_option` where it says something else than the run did.
TrainSettings resumed_settings(const TrainOptions& options,
                               TrainSettings stored,
                               const std::string& file);

/// What to type to train the same weights again.
std::vector<std::string> reproducing_command(const TrainSettings& settings,
                                             const std::string& folder);

ExitCode train(const TrainOptions& options);

}  // namespace fenestra::cli
