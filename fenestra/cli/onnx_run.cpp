// `fenestra run --input x=...`: an ONNX model with inputs and outputs by name.
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/onnx.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/io/image.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/io/onnx.hpp>
#include <fenestra/nn/model_info.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace fenestra::cli {

namespace {

namespace fs = std::filesystem;
using Datum = onnx::Datum<float>;

/// Axis `axis` of a declared shape, where it is a number.
std::optional<Index> declared(const onnx::ValueInfo& info, std::size_t axis) {
  return info.dims && axis < info.dims->size() ? (*info.dims)[axis].extent : std::nullopt;
}

/// A picture as the model takes it: channels and size as it says, or as the command line does.
Tensor<float> picture(const fs::path& path,
                      const onnx::ValueInfo& info,
                      const RunNamedOptions& options,
                      nn::Preprocessing preprocessing) {
  const std::size_t channel_axis = options.channels_last ? 3 : 1;
  const std::size_t first = options.channels_last ? 1 : 2;
  const Index channels = declared(info, channel_axis).value_or(3);
  if (channels != 1 && channels != 3 && channels != 4) {
    throw Error(ErrorCode::unsupported,
                path.string() + ": a picture for the input " + info.name + " with " +
                    std::to_string(channels) + " channels\n  fix: an .npy file" +
                    (options.channels_last ? "" : ", or --layout nhwc"));
  }
  const Tensor<float> cells =
      io::to_tensor(io::with_channels(io::load_image(path), static_cast<int>(channels)));
  if (preprocessing.size.rank() == 0 && declared(info, first) && declared(info, first + 1)) {
    preprocessing.size = Shape{*declared(info, first), *declared(info, first + 1)};
  }
  nn::check_fits(preprocessing, channels);
  const Tensor<float> ready = nn::preprocess<float>(preprocessing, cells);
  const Index height = ready.shape()[1];
  const Index width = ready.shape()[2];
  if (!options.channels_last) {
    return Tensor<float>(Shape{1, channels, height, width},
                         std::vector<float>(ready.values().begin(), ready.values().end()));
  }
  Tensor<float> transposed(Shape{1, height, width, channels});
  for (Index c = 0; c < channels; ++c) {
    for (Index cell = 0; cell < height * width; ++cell) {
      transposed.mutable_data()[cell * channels + c] = ready.data()[c * height * width + cell];
    }
  }
  return transposed;
}

Datum load_input(const fs::path& path,
                 const onnx::ValueInfo& info,
                 const RunNamedOptions& options,
                 const nn::Preprocessing& preprocessing) {
  if (path.extension() != ".npy") {
    return Datum(picture(path, info, options, preprocessing));
  }
  if (info.type == onnx::ElementType::undefined || onnx::is_floating(info.type)) {
    return Datum(io::load_npy<float>(path));
  }
  return Datum(io::load_npy<Index>(path), info.type);
}

/// A name of the model as the name of a file, which no other output has.
std::string file_name(const std::string& name, std::set<std::string>& taken) {
  std::string result;
  for (const char letter : name) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' ||
                          letter == '-' || (letter == '.' && !result.empty());
    result += is_plain ? letter : '_';
  }
  result = result.empty() ? "output" : result;
  const std::string first = result;
  for (int number = 2; !taken.insert(result).second; ++number) {
    result = first + "_" + std::to_string(number);
  }
  return result;
}

struct Range {
  double least = 0;
  double most = 0;
};
template <class T>
Range range_of(const Tensor<T>& tensor) {
  if (tensor.size() == 0) {
    return {};
  }
  const auto [least, most] = std::minmax_element(tensor.values().begin(), tensor.values().end());
  return {static_cast<double>(*least), static_cast<double>(*most)};
}

}  // namespace

ExitCode run_named_command(const RunNamedOptions& options) {
  if (options.threads) {
    set_threads(*options.threads);
  }
  onnx::Model model = onnx::read_model(fs::path(options.file));
  nn::Preprocessing preprocessing =
      nn::detail::info_from(model.metadata, options.file).preprocessing;
  apply(options.preparation, preprocessing);
  const onnx::Network<float> network(std::move(model));
  onnx::Network<float>::Data inputs;
  for (const std::string& text : options.inputs) {
    // A file's name may have an equals sign, a value's name hardly has.
    const std::size_t equals = text.find('=');
    std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    const std::string file = equals == std::string::npos ? text : text.substr(equals + 1);
    if (name.empty()) {
      if (network.inputs().size() != 1) {
        throw UsageError("--input " + text + ": the model has " +
                         std::to_string(network.inputs().size()) + " inputs; say NAME=FILE");
      }
      name = network.inputs()[0].name;
    }
    const auto info = std::find_if(network.inputs().begin(),
                                   network.inputs().end(),
                                   [&](const onnx::ValueInfo& i) { return i.name == name; });
    if (info == network.inputs().end()) {
      std::string names;
      for (const onnx::ValueInfo& known : network.inputs()) {
        names += (names.empty() ? "" : ", ") + known.name;
      }
      throw UsageError("--input " + text + ": the model's inputs are " + names);
    }
    inputs.insert_or_assign(name, load_input(file, *info, options, preprocessing));
  }
  std::vector<fs::path> files;
  std::set<std::string> taken;
  for (const onnx::ValueInfo& info : network.outputs()) {
    files.push_back(fs::path(options.folder) / (file_name(info.name, taken) + ".npy"));
    require_free(files.back(), options.force);
  }
  const onnx::Network<float>::Data outputs = network.run(inputs);
  std::error_code failed;
  fs::create_directories(options.folder, failed);
  if (failed) {
    throw Error(ErrorCode::bad_file,
                options.folder + ": cannot be made: " + failed.message() +
                    "\n  fix: another folder with --output-dir");
  }
  std::vector<std::vector<std::string>> table{{"output", "shape", "least", "most", "file"}};
  Json json = Json::array();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const onnx::ValueInfo& info = network.outputs()[i];
    const fs::path& path = files[i];
    const Datum& datum = outputs.find(info.name)->second;
    Range range;
    if (datum.is_real()) {
      const Tensor<float> numbers = datum.value().tensor();
      io::save_npy(path, numbers);
      range = range_of(numbers);
    } else {
      const Tensor<Index> numbers = datum.numbers();
      io::save_npy(path, numbers);
      range = range_of(numbers);
    }
    table.push_back({info.name,
                     extents(datum.shape()),
                     decimal(range.least, 4),
                     decimal(range.most, 4),
                     path.string()});
    json.push_back({{"output", info.name},
                    {"shape", shape_json(datum.shape())},
                    {"least", range.least},
                    {"most", range.most},
                    {"file", path.string()}});
  }
  if (options.json) {
    print_json({{"model", options.file}, {"outputs", std::move(json)}});
  } else {
    std::cout << table_text(table, {.align = {}}, terminal_of(Stream::out));
  }
  return fine;
}

}  // namespace fenestra::cli
