// What the commands on networks share: a model that a file holds, data that fits it, and words for
// people about both.
#pragma once

#include <fenestra/cli/command.hpp>
#include <fenestra/nn/data/dataset.hpp>
#include <fenestra/nn/data/open.hpp>
#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/summary.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

/// Metadata of model files that the tool writes and reads beside the library's own.
inline constexpr std::string_view kInputKey = "input";  ///< of one sample: "1x28x28"
inline constexpr std::string_view kLossKey = "loss";
inline constexpr std::string_view kDataKey = "data";  ///< what it was trained on

/// A model with what is known about it.
template <class T>
struct Network {
  std::string name;  ///< the file, or the name of a ready model
  nn::Layer<T> model;
  nn::ModelInfo info;
  Shape input;         ///< of one sample, (channels, spatial...)
  nn::Summary layers;  ///< for one sample
  nn::Task task = nn::Task::classification;
};

/// Reads a model file. `input` ("1x28x28") is for files that do not say it. Throws `bad_file` where
/// the file is none of a model of layers, or its input is not known.
template <class T>
Network<T> load_network(const std::string& file, const std::optional<std::string>& input = {});

/// What a ready model begins with: a summary needs no numbers, and they take time to draw.
enum class Weights { drawn, zero };

/// The same, or a ready model by its name.
template <class T>
Network<T> load_or_make_network(const std::string& file_or_name,
                                const std::optional<std::string>& input = {},
                                Weights weights = Weights::drawn);

/// The ready model; throws `unknown_model` with the nearest name.
const nn::ModelEntry& known_model(std::string_view name);

/// "1x28x28" to a shape; throws `UsageError` with `what` in it.
Shape parse_extents(std::string_view text, std::string_view what);
/// The opposite.
std::string extents(const Shape& shape);
/// Without the first extent: of (channels, spatial...).
Shape spatial(const Shape& sample);
/// "pictures", "signals", "volumes".
std::string_view kind_of_samples(int spatial_rank);
/// "samples (1, 28, 28): pictures of 28x28, 1 channel"
std::string sample_words(const Shape& sample);

/// Of what `open_dataset` takes, as far as a command line says it.
struct DataSource {
  std::string text;
  Index count = 0;
  double held_out = 0.1;
  std::uint64_t seed = 0;
};
/// A part of the data for a network of that task and input: pictures of folders are read in that
/// size and number of channels, and classes are left out where pictures are to be drawn again.
nn::DatasetPtr open_for(const DataSource& source,
                        nn::Split split,
                        nn::Task task,
                        const Shape& input);

/// Throws unless samples, channels and classes of the data are those of the network.
template <class T>
void require_fit(const Network<T>& network, const nn::Dataset& data);

/// What preparation does to samples of this shape, in words: "28x28 from 8x8, 1 channel, minus 0.3,
/// over 0.38".
std::string preparation_words(const nn::Preprocessing& preprocessing, const Shape& sample);

/// "accuracy", "mean IoU", "error".
std::string_view score_name(nn::Task task);

/// The command line as a shell reads it.
std::string shell_line(const std::vector<std::string>& words);

/// Throws `bad_file` where something is under that name, unless it may be replaced.
void require_free(const std::filesystem::path& path, bool force);

extern template Network<float> load_network(const std::string&, const std::optional<std::string>&);
extern template Network<double> load_network(const std::string&, const std::optional<std::string>&);
extern template Network<float> load_or_make_network(const std::string&,
                                                    const std::optional<std::string>&,
                                                    Weights);
extern template Network<double> load_or_make_network(const std::string&,
                                                     const std::optional<std::string>&,
                                                     Weights);
extern template void require_fit(const Network<float>&, const nn::Dataset&);
extern template void require_fit(const Network<double>&, const nn::Dataset&);

}  // namespace fenestra::cli
