// What the commands do with ONNX files: models of other tools beside our own model files.
#pragma once

#include <fenestra/cli/check_onnx.hpp>
#include <fenestra/cli/command.hpp>
#include <fenestra/nn/data/preprocessing.hpp>
#include <fenestra/nn/model_file.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

/// The network behind the type of our own layers: its scores before a closing softmax, with what
/// the metadata say, and the input's extents where the model says them.
template <class T>
nn::LoadedModel<T> load_onnx(const std::string& file);

/// How pictures are prepared, as far as a command line says it; the rest is the model's.
struct PreparationOptions {
  std::optional<std::string> size = {};   ///< "224x224"
  std::optional<std::string> mean = {};   ///< "0.485,0.456,0.406", of cells from 0 to 1
  std::optional<std::string> scale = {};  ///< to divide by, likewise
};
void apply(const PreparationOptions& options, nn::Preprocessing& preprocessing);

struct RunNamedOptions {
  std::string file;
  std::vector<std::string> inputs;  ///< "x=picture.png", "x=array.npy"
  std::string folder;               ///< of the outputs, an .npy each
  PreparationOptions preparation = {};
  bool channels_last = false;  ///< pictures as (N, spatial..., C)
  std::optional<int> threads = {};
  bool force = false;
  bool json = false;
};
/// A model with inputs and outputs by name.
ExitCode run_named_command(const RunNamedOptions& options);

struct ConvertOptions {
  std::string from;
  std::string to;
  std::optional<std::string> model = {};  ///< the file whose weights are to be replaced
  std::optional<std::string> input = {};  ///< of one sample, where a model file does not say it
  bool force = false;
  bool json = false;
};
/// Weights out of and into models, ours and ONNX files; our model files to ONNX.
ExitCode convert_command(const ConvertOptions& options);

struct FinetuneOptions {
  std::string file;
  std::string data;
  std::optional<Index> head = {};        ///< classes; 0: as many as the data have
  std::optional<std::string> cut = {};   ///< the value that a new head follows
  std::vector<std::string> freeze = {};  ///< patterns of names of weights
  std::vector<std::string> train = {};   ///< likewise: only these
  std::optional<std::string> batch_norm = {};
  std::optional<std::string> input = {};
  PreparationOptions preparation = {};
  std::string loss = "cross-entropy";
  std::string optimiser = "adamw rate=0.001";
  std::string schedule = "cosine";
  std::string augmentation = "none";
  Index epochs = 5;
  Index batch = 32;
  Index count = 0;
  Index patience = 0;
  double held_out = 0.1;
  double clip = 0;
  std::uint64_t seed = 1;
  std::optional<int> threads = {};
  std::optional<std::string> output = {};
  std::optional<std::string> report = {};  ///< instead of the HTML page beside the new file
  bool resume = false;
  bool eager = false;
  bool force = false;
  bool json = false;
};
ExitCode finetune_command(const FinetuneOptions& options);

extern template nn::LoadedModel<float> load_onnx(const std::string&);
extern template nn::LoadedModel<double> load_onnx(const std::string&);

}  // namespace fenestra::cli
