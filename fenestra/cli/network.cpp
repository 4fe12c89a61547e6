// Models and data of the command line, and how they fit each other.
#include <fenestra/base/nearest.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/cli/command.hpp>
#include <fenestra/cli/counted.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/onnx.hpp>
#include <fenestra/nn/initialise_model.hpp>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace fenestra::cli {

namespace {

std::optional<Shape> extents_in(std::string_view text) {
  Shape shape;
  while (true) {
    Index extent = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (failed != std::errc() || extent < 1 || extent > (1 << 20) ||
        shape.rank() == kMaxSpatialRank + 1) {
      return std::nullopt;
    }
    shape.push_back(extent);
    if (end == text.data() + text.size()) {
      return shape;
    }
    if (*end != 'x') {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
}

/// Channels and spatial rank that the first window of a model has; nothing where the file cannot
/// tell.
template <class T>
std::optional<Shape> guessed_input(nn::Layer<T>& model, const nn::Preprocessing& preprocessing) {
  for (const nn::Slot<T>& slot : nn::slots<T>(model)) {
    const Shape& shape = slot.value->shape();
    if (slot.trained && shape.rank() >= 3) {
      if (preprocessing.size.rank() != shape.rank() - 2) {
        return std::nullopt;
      }
      Shape input{shape[1]};
      for (const Index extent : preprocessing.size) {
        input.push_back(extent);
      }
      return input;
    }
  }
  return std::nullopt;
}

Shape batch_of_one(const Shape& sample) {
  Shape shape{1};
  for (const Index extent : sample) {
    shape.push_back(extent);
  }
  return shape;
}

template <class T>
void complete(Network<T>& network) {
  network.layers = nn::summary(network.model, batch_of_one(network.input));
  const Shape& output = network.layers.output;
  network.task = output.rank() <= 2                ? nn::Task::classification
                 : network.info.classes.size() > 0 ? nn::Task::segmentation
                                                   : nn::Task::reconstruction;
  const Index scores = output.rank() >= 2 ? output[1] : 0;
  const auto classes = static_cast<Index>(network.info.classes.size());
  if (classes > 0 && scores != classes && !(scores == 1 && classes == 2)) {
    throw Error(ErrorCode::bad_file,
                network.name + ": it names " + counted(classes, "class", "classes") +
                    ", and the model gives " + counted(scores, "score", "scores") +
                    "\n  fix: as many names as scores");
  }
}

}  // namespace

const nn::ModelEntry& known_model(std::string_view name) {
  for (const nn::ModelEntry& entry : nn::model_entries()) {
    if (entry.name == name) {
      return entry;
    }
  }
  const std::vector<std::string> names = nn::model_names();
  throw Error(
      ErrorCode::unknown_model,
      unknown_name("model", name, std::vector<std::string_view>(names.begin(), names.end())));
}

Shape parse_extents(std::string_view text, std::string_view what) {
  const std::optional<Shape> shape = extents_in(text);
  if (!shape) {
    throw UsageError(std::string(what) + ": \"" + std::string(text) +
                     "\" is not a list of extents, such as 28x28");
  }
  return *shape;
}

std::string extents(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += (axis > 0 ? "x" : "") + std::to_string(shape[axis]);
  }
  return text;
}

Shape spatial(const Shape& sample) {
  Shape shape;
  for (int axis = 1; axis < sample.rank(); ++axis) {
    shape.push_back(sample[axis]);
  }
  return shape;
}

std::string_view kind_of_samples(int spatial_rank) {
  switch (spatial_rank) {
    case 1: return "signals";
    case 2: return "pictures";
    case 3: return "volumes";
    default: return "samples";
  }
}

std::string sample_words(const Shape& sample) {
  if (sample.rank() <= 1) {
    return "vectors of " + counted(sample.rank() > 0 ? sample[0] : 0, "number", "numbers");
  }
  return std::string(kind_of_samples(sample.rank() - 1)) + " of " + extents(spatial(sample)) +
         " with " + counted(sample.rank() > 0 ? sample[0] : 0, "channel", "channels");
}

template <class T>
Network<T> load_network(const std::string& file, const std::optional<std::string>& input) {
  nn::LoadedModel<T> loaded = is_onnx(file) ? load_onnx<T>(file) : nn::load_model<T>(file);
  Network<T> network{.name = file,
                     .model = std::move(loaded.model),
                     .info = std::move(loaded.info),
                     .input = {},
                     .layers = {}};
  const auto said = network.info.more.find(kInputKey);
  std::optional<Shape> shape;
  if (input) {
    shape = parse_extents(*input, "--input");
  } else if (said != network.info.more.end()) {
    shape = extents_in(said->second);
    if (!shape) {
      throw Error(ErrorCode::bad_file,
                  file + ": metadata \"input\" is \"" + said->second.substr(0, 40) +
                      "\", expected extents such as 1x28x28\n  fix: --input CHANNELSxSIZE");
    }
  } else {
    shape = guessed_input(network.model, network.info.preprocessing);
  }
  if (!shape) {
    throw Error(ErrorCode::bad_file,
                file +
                    ": does not say what it takes\n  fix: --input CHANNELSxHEIGHTxWIDTH, or "
                    "metadata \"input\" = \"1x28x28\" when it is saved");
  }
  network.input = *shape;
  complete(network);
  return network;
}

template <class T>
Network<T> load_or_make_network(const std::string& file_or_name,
                                const std::optional<std::string>& input,
                                Weights weights) {
  std::error_code ignored;
  const bool is_path = file_or_name.find('/') != std::string::npos ||
                       file_or_name.find(".safetensors") != std::string::npos ||
                       is_onnx(file_or_name);
  if (is_path || std::filesystem::exists(file_or_name, ignored)) {
    return load_network<T>(file_or_name, input);
  }
  const nn::ModelEntry& entry = known_model(file_or_name);
  const Shape shape = input ? parse_extents(*input, "--input") : entry.input;
  Network<T> network{.name = entry.name,
                     .model = nn::make_model<T>(entry.name, {.channels = shape[0]}),
                     .info = {.name = entry.name},
                     .input = shape,
                     .layers = {}};
  if (weights == Weights::drawn) {
    nn::initialise(network.model, Key(0));
  }
  complete(network);
  return network;
}

nn::DatasetPtr open_for(const DataSource& source,
                        nn::Split split,
                        nn::Task task,
                        const Shape& input) {
  nn::OpenOptions options{.split = split,
                          .count = source.count,
                          .held_out = {.share = source.held_out, .seed = source.seed}};
  if (source.text.starts_with("folder:") && input.rank() == 3) {
    options.size = spatial(input);
    options.channels = static_cast<int>(input[0]);
  }
  nn::DatasetPtr data = nn::open_dataset(source.text, options);
  return task == nn::Task::reconstruction && data->task() != nn::Task::reconstruction
             ? nn::as_reconstruction(std::move(data))
             : data;
}

template <class T>
void require_fit(const Network<T>& network, const nn::Dataset& data) {
  const std::string both = data.info().name + " has " + sample_words(data.sample_shape()) + "; " +
                           network.name + " takes " + sample_words(network.input);
  if (data.sample_shape().rank() != network.input.rank()) {
    throw Error(
        ErrorCode::rank_mismatch,
        both + "\n  fix: data of " + std::string(kind_of_samples(network.input.rank() - 1)));
  }
  if (data.sample_shape()[0] != network.input[0]) {
    throw Error(ErrorCode::channel_mismatch,
                both +
                    "\n  fix: data with as many channels; only pictures of folders are "
                    "converted (folder:PATH)");
  }
  const Shape size = spatial(data.sample_shape());
  if (network.info.preprocessing.size.rank() == 0 && size != spatial(network.input)) {
    // A network without a size of its own takes what its layers take.
    nn::summary(network.model, batch_of_one(data.sample_shape()));
  }
  if (data.task() != network.task) {
    throw Error(ErrorCode::unsupported,
                data.info().name + " is for " + std::string(nn::task_name(data.task())) + "; " +
                    network.name + " does " + std::string(nn::task_name(network.task)) +
                    "\n  fix: data for " + std::string(nn::task_name(network.task)));
  }
  if (network.task == nn::Task::reconstruction) {
    return;
  }
  const std::vector<std::string>& own = network.info.classes;
  if (data.classes().size() != own.size()) {
    throw Error(ErrorCode::shape_mismatch,
                data.info().name + " has " + counted(data.class_count(), "class", "classes") +
                    "; " + network.name + " was trained for " + std::to_string(own.size()) +
                    "\n  fix: data with the same classes");
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (data.classes()[i] != own[i]) {
      throw Error(ErrorCode::shape_mismatch,
                  data.info().name + ": class " + std::to_string(i) + " is \"" + data.classes()[i] +
                      "\"; " + network.name + " has \"" + own[i] +
                      "\" there\n  fix: data with the same classes in the same order");
    }
  }
}

std::string preparation_words(const nn::Preprocessing& preprocessing, const Shape& sample) {
  const Shape size = spatial(sample);
  std::string text = preprocessing.size.rank() > 0 && preprocessing.size != size
                         ? "resized from " + extents(size) + " to " + extents(preprocessing.size)
                         : "as they are, " + extents(size);
  const auto listed = [](const std::vector<double>& numbers) {
    std::string list;
    for (const double number : numbers) {
      list += (list.empty() ? "" : ", ") + decimal(number, 3);
    }
    return list;
  };
  if (!preprocessing.mean.empty()) {
    text += ", minus " + listed(preprocessing.mean);
  }
  if (!preprocessing.scale.empty()) {
    text += ", over " + listed(preprocessing.scale);
  }
  return text;
}

std::string_view score_name(nn::Task task) {
  switch (task) {
    case nn::Task::classification: return "accuracy";
    case nn::Task::segmentation: return "mean IoU";
    default: return "error";
  }
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? "" : " ";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char letter : word) {
      line += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    }
    line += '\'';
  }
  return line;
}

void require_free(const std::filesystem::path& path, bool force) {
  std::error_code ignored;
  if (!force && std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    throw Error(ErrorCode::bad_file,
                path.string() + ": exists\n  fix: another name, or --force to replace it");
  }
}

template Network<float> load_network(const std::string&, const std::optional<std::string>&);
template Network<double> load_network(const std::string&, const std::optional<std::string>&);
template Network<float> load_or_make_network(const std::string&,
                                             const std::optional<std::string>&,
                                             Weights);
template Network<double> load_or_make_network(const std::string&,
                                              const std::optional<std::string>&,
                                              Weights);
template void require_fit(const Network<float>&, const nn::Dataset&);
template void require_fit(const Network<double>&, const nn::Dataset&);

}  // namespace fenestra::cli
