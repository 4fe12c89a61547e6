// `fenestra run`: a model on pictures or arrays.
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/cli/evaluate.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/report_colours.hpp>
#include <fenestra/cli/run_model.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/io/image.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/io/npy_header.hpp>
#include <fenestra/io/source.hpp>
#include <fenestra/nn/metrics.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <system_error>

namespace fenestra::cli {

namespace {

namespace fs = std::filesystem;

constexpr Index kAtOnce = 32;

/// What is to be looked at: its name, and the sample as it comes, 0 to 1.
struct Item {
  std::string name;
  Tensor<float> sample;
  std::string note;  ///< what was done to it before the preparation
};

bool has_picture_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  constexpr std::array<std::string_view, 7> kEndings = {
      ".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".pnm"};
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

Item picture_item(const fs::path& path, const Shape& input) {
  const io::Image image = io::load_image(path);
  Item item{.name = path.string(),
            .sample = io::to_tensor(io::with_channels(image, static_cast<int>(input[0]))),
            .note = {}};
  if (image.channels != input[0]) {
    item.note = std::to_string(image.channels) + " channels made " + std::to_string(input[0]);
  }
  return item;
}

[[noreturn]] void refuse_array(const std::string& file, const Shape& shape, const Shape& input) {
  throw Error(ErrorCode::shape_mismatch,
              file + ": an array " + to_string(shape) + "; the model takes " + to_string(input) +
                  ", " + sample_words(input) +
                  "\n  fix: (channels, spatial...) or (samples, channels, spatial...) with " +
                  std::to_string(input[0]) +
                  " channels; spatial extents are resized where the "
                  "model says a size");
}

/// The samples of an array: with or without the axis of samples, and without that of channels where
/// there is one channel.
std::vector<Item> array_items(const fs::path& path, const Shape& input) {
  const auto source = io::ByteSource::file(path);
  const bool is_bytes =
      io::read_npy_header(source.from(0), source.size(), source.name()).type == io::NumberType::u8;
  Tensor<float> all = io::load_npy<float>(path);
  if (is_bytes) {
    for (float& number : all.mutable_values()) {
      number /= 255;
    }
  }
  const Shape shape = all.shape();
  const bool adds_channel = input[0] == 1 && (shape.rank() == input.rank() - 1 ||
                                              (shape.rank() == input.rank() && shape[0] != 1));
  const int spatial_rank = input.rank() - 1;
  const bool has_samples = shape.rank() > spatial_rank + (adds_channel ? 0 : 1);
  if (shape.rank() != spatial_rank + (adds_channel ? 0 : 1) + (has_samples ? 1 : 0) ||
      (!adds_channel && shape[has_samples ? 1 : 0] != input[0]) || all.size() == 0) {
    refuse_array(path.string(), shape, input);
  }
  Shape sample{input[0]};
  for (int axis = shape.rank() - spatial_rank; axis < shape.rank(); ++axis) {
    sample.push_back(shape[axis]);
  }
  const Index count = has_samples ? shape[0] : 1;
  std::vector<Item> items;
  for (Index i = 0; i < count; ++i) {
    Tensor<float> one(sample);
    std::copy_n(all.data() + i * one.size(), one.size(), one.mutable_data());
    items.push_back({path.string() + (has_samples ? "[" + std::to_string(i) + "]" : ""),
                     std::move(one),
                     is_bytes ? "bytes over 255" : ""});
  }
  return items;
}

std::vector<Item> items_of(const std::string& text, const Network<float>& network) {
  const fs::path path(text);
  std::error_code ignored;
  const auto require_pictures = [&] {
    if (network.input.rank() != 3 || network.input[0] > 4) {
      throw Error(ErrorCode::rank_mismatch,
                  text + ": pictures; " + network.name + " takes " + sample_words(network.input) +
                      "\n  fix: an .npy file " + to_string(network.input));
    }
  };
  if (fs::is_directory(path, ignored)) {
    require_pictures();
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (entry.is_regular_file() && has_picture_name(entry.path())) {
        files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());
    if (files.empty()) {
      throw Error(ErrorCode::bad_file,
                  text + ": no pictures in this folder\n  fix: PNG, JPEG, BMP, PGM or PPM files");
    }
    std::vector<Item> items;
    for (const fs::path& file : files) {
      items.push_back(picture_item(file, network.input));
    }
    return items;
  }
  if (path.extension() == ".npy") {
    return array_items(path, network.input);
  }
  require_pictures();
  return {picture_item(path, network.input)};
}

/// Scores of all items, each (scores...) without the axis of samples.
std::vector<Tensor<float>> scores_of(const Network<float>& network,
                                     const std::vector<Item>& items) {
  nn::Trainer<nn::Layer<float>> runner(network.model);
  std::vector<Tensor<float>> results;
  for (std::size_t begin = 0; begin < items.size();) {
    std::vector<Tensor<float>> prepared;
    // Samples of one size go together.
    while (begin + prepared.size() < items.size() &&
           prepared.size() < static_cast<std::size_t>(kAtOnce)) {
      Tensor<float> one =
          nn::preprocess<float>(network.info.preprocessing, items[begin + prepared.size()].sample);
      if (!prepared.empty() && one.shape() != prepared[0].shape()) {
        break;
      }
      prepared.push_back(std::move(one));
    }
    Shape shape{static_cast<Index>(prepared.size())};
    for (const Index extent : prepared[0].shape()) {
      shape.push_back(extent);
    }
    Tensor<float> x(shape);
    for (std::size_t i = 0; i < prepared.size(); ++i) {
      std::copy_n(prepared[i].data(),
                  prepared[i].size(),
                  x.mutable_data() + static_cast<Index>(i) * prepared[i].size());
    }
    const Tensor<float> y = runner.predict(x);
    Shape each;
    for (int axis = 1; axis < y.rank(); ++axis) {
      each.push_back(y.shape()[axis]);
    }
    for (std::size_t i = 0; i < prepared.size(); ++i) {
      Tensor<float> one(each);
      std::copy_n(y.data() + static_cast<Index>(i) * one.size(), one.size(), one.mutable_data());
      results.push_back(std::move(one));
    }
    begin += prepared.size();
  }
  return results;
}

std::string class_name(const Network<float>& network, std::size_t number) {
  return number < network.info.classes.size() ? network.info.classes[number]
                                              : std::to_string(number);
}

}  // namespace

Tensor<Index> mask_of(const Tensor<float>& scores) {
  Shape batch{1};
  Shape cells;
  for (int axis = 0; axis < scores.rank(); ++axis) {
    batch.push_back(scores.shape()[axis]);
    if (axis > 0) {
      cells.push_back(scores.shape()[axis]);
    }
  }
  Tensor<float> as_batch(batch);
  std::copy_n(scores.data(), scores.size(), as_batch.mutable_data());
  const Tensor<Index> classes = nn::predicted_classes(as_batch);
  Tensor<Index> mask(cells);
  std::copy_n(classes.data(), classes.size(), mask.mutable_data());
  return mask;
}

Tensor<float> drawn(const Tensor<float>& scores) {
  return scores.map([](float score) { return 1 / (1 + std::exp(-score)); });
}

namespace {

io::Image mask_picture(const Tensor<Index>& mask) {
  io::Image image{.height = mask.shape()[0], .width = mask.shape()[1], .channels = 3, .bytes = {}};
  for (const Index number : mask.values()) {
    const Colour colour = colour_of_class(number);
    image.bytes.insert(image.bytes.end(), colour.begin(), colour.end());
  }
  return image;
}

template <class T>
Tensor<T> stacked(const std::vector<Tensor<T>>& each, const std::string& file) {
  Shape shape{static_cast<Index>(each.size())};
  for (const Index extent : each[0].shape()) {
    shape.push_back(extent);
  }
  Tensor<T> all(shape);
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (each[i].shape() != each[0].shape()) {
      throw Error(ErrorCode::shape_mismatch,
                  file + ": results of several sizes, " + to_string(each[0].shape()) + " and " +
                      to_string(each[i].shape()) + "\n  fix: inputs of one size");
    }
    std::copy_n(each[i].data(),
                each[i].size(),
                all.mutable_data() + static_cast<Index>(i) * each[i].size());
  }
  return all;
}

void write_results(const fs::path& path, nn::Task task, const std::vector<Tensor<float>>& scores) {
  if (path.extension() == ".png") {
    if (scores.size() != 1 || task == nn::Task::classification || scores[0].rank() != 3) {
      throw UsageError("--output: a .png is for one mask or one picture; .npy takes all results");
    }
    io::save_png(path,
                 task == nn::Task::segmentation ? mask_picture(mask_of(scores[0]))
                                                : io::to_image(drawn(scores[0])));
    return;
  }
  if (path.extension() != ".npy") {
    throw UsageError("--output: " + path.string() + " is neither .png nor .npy");
  }
  if (task == nn::Task::segmentation) {
    std::vector<Tensor<Index>> masks;
    for (const Tensor<float>& one : scores) {
      masks.push_back(mask_of(one));
    }
    io::save_npy(path, stacked(masks, path.string()));
    return;
  }
  std::vector<Tensor<float>> results;
  for (const Tensor<float>& one : scores) {
    results.push_back(task == nn::Task::reconstruction ? drawn(one) : one);
  }
  io::save_npy(path, stacked(results, path.string()));
}

struct Said {
  std::vector<std::string> words;  ///< columns for people
  Json json;
};

Said said_classes_of(const Network<float>& network, const Tensor<float>& scores, Index top) {
  const std::vector<double> p = probabilities(scores.data(), scores.size());
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(
      order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
  Said said{.words = {}, .json = {{"classes", Json::array()}}};
  for (std::size_t i = 0; i < std::min(order.size(), static_cast<std::size_t>(top)); ++i) {
    const std::string name = class_name(network, order[i]);
    said.words.push_back(name + "  " + decimal(100 * p[order[i]], 1) + " %");
    said.json["classes"].push_back({{"class", name}, {"probability", p[order[i]]}});
  }
  return said;
}

Said said_mask(const Network<float>& network, const Tensor<float>& scores) {
  const Tensor<Index> mask = mask_of(scores);
  std::vector<Index> cells(static_cast<std::size_t>(scores.shape()[0]));
  for (const Index number : mask.values()) {
    ++cells[static_cast<std::size_t>(number)];
  }
  Said said{.words = {}, .json = {{"cells", Json::object()}}};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string name = class_name(network, i);
    said.json["cells"][name] = cells[i];
    if (cells[i] > 0) {
      said.words.push_back(
          name + "  " +
          decimal(100 * static_cast<double>(cells[i]) / static_cast<double>(mask.size()), 1) +
          " %");
    }
  }
  return said;
}

Said said_numbers(const Network<float>& network, const Item& item, const Tensor<float>& scores) {
  const Tensor<float> picture = drawn(scores);
  const Tensor<float> target = network.info.preprocessing.size.rank() > 0
                                   ? nn::resized(item.sample, network.info.preprocessing.size)
                                   : item.sample;
  if (target.shape() != picture.shape()) {
    return {.words = {extents(picture.shape())}, .json = {{"shape", shape_json(picture.shape())}}};
  }
  double squares = 0;
  for (Index i = 0; i < picture.size(); ++i) {
    squares += std::pow(static_cast<double>(picture[i]) - static_cast<double>(target[i]), 2);
  }
  const double error = std::sqrt(squares / static_cast<double>(picture.size()));
  return {.words = {"off by " + decimal(error, 4) + " (root of the mean square)"},
          .json = {{"shape", shape_json(picture.shape())}, {"error", error}}};
}

}  // namespace

ExitCode run_command(const RunOptions& options) {
  if (options.threads) {
    set_threads(*options.threads);
  }
  if (options.output) {
    require_free(*options.output, options.force);
  }
  Network<float> network = load_network<float>(options.file, options.sample);
  apply(options.preparation, network.info.preprocessing);
  const std::vector<Item> items = items_of(options.input, network);
  const std::vector<Tensor<float>> scores = scores_of(network, items);
  std::vector<std::vector<std::string>> table;
  Json results = Json::array();
  for (std::size_t i = 0; i < items.size(); ++i) {
    Said said =
        network.task == nn::Task::classification ? said_classes_of(network, scores[i], options.top)
        : network.task == nn::Task::segmentation ? said_mask(network, scores[i])
                                                 : said_numbers(network, items[i], scores[i]);
    std::vector<std::string> row{items[i].name};
    row.insert(row.end(), said.words.begin(), said.words.end());
    table.push_back(std::move(row));
    Json result = {{"input", items[i].name}};
    result.update(said.json);
    results.push_back(std::move(result));
  }
  if (options.output) {
    write_results(*options.output, network.task, scores);
  }
  const std::string prepared =
      preparation_words(network.info.preprocessing, items[0].sample.shape()) +
      (items[0].note.empty() ? "" : ", " + items[0].note);
  if (options.json) {
    print_json({{"model", network.name},
                {"task", nn::task_name(network.task)},
                {"prepared", prepared},
                {"output", options.output ? Json(*options.output) : Json(nullptr)},
                {"results", std::move(results)}});
    return fine;
  }
  const Terminal terminal = terminal_of(Stream::out);
  std::cout << table_text(table, {.align = {}}, terminal)
            << wrapped("(" + prepared + ")\n", terminal);
  if (options.output) {
    std::cout << "written: " << *options.output << "\n";
  }
  return fine;
}

}  // namespace fenestra::cli
