// The report of a training: what happened, as plain data, and the page that shows it to people.
//
// Everything may be missing: a number that is not known is not a number (NaN) or 0, a tensor that
// is not there has rank 0, and the page leaves out what has nothing to show. Samples are (C, H, W)
// for pictures, (C, L) for signals, (C, D, H, W) for volumes.
#pragma once

#include <fenestra/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace fenestra::cli {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct LayerRow {
  std::string layer;  ///< its dotted name
  std::string kind;   ///< "conv 3x3, 16"
  Shape output;
  Index parameters = 0;
  Index multiply_adds = 0;
  std::string receptive_field;  ///< "5x5"
};

struct EpochRow {
  Index epoch = 0;  ///< from 1
  double training_loss = kUnknown;
  double validation_loss = kUnknown;
  double score = kUnknown;  ///< on the validation data: accuracy or mean IoU, 0 to 1
  double seconds = kUnknown;
  double learning_rate = kUnknown;
};

struct Mistake {
  Tensor<float> sample;
  Index truth = 0;
  Index predicted = 0;
  double probability = kUnknown;  ///< of the predicted class
};

struct FeatureMaps {
  std::string layer;
  Tensor<float> maps;  ///< one per channel
};

struct Saliency {
  Tensor<float> sample;
  Tensor<float> gradient;  ///< of the score by the sample: its shape, or that without channels
  std::string caption;
};

struct Segmentation {
  Tensor<float> sample;
  Tensor<Index> mask;  ///< a class for each cell; negative: not counted
  Tensor<Index> prediction;
};

struct Reconstruction {
  Tensor<float> input;
  Tensor<float> output;
};

struct CostRow {
  std::string name;
  double milliseconds = kUnknown;
  double share = kUnknown;  ///< of all, 0 to 1; not known: of the sum of the rows
};

/// A layer in a step of the training.
struct StepRow {
  std::string layer;          ///< its dotted name, or "loss"
  std::string kind;           ///< as in LayerRow
  Index multiply_adds = 0;    ///< forward, of one sample
  double forward = kUnknown;  ///< milliseconds
  double backward = kUnknown;
};

/// Where the time of one step went.
struct StepReport {
  std::string note;           ///< what was measured, and what is not known
  std::vector<StepRow> rows;  ///< in the order in which layers run
  double forward = kUnknown;  ///< milliseconds, of all layers
  double backward = kUnknown;
};

struct MemoryRow {
  std::string name;
  std::optional<std::size_t> bytes;  ///< nothing where it is not known
  std::string note;
};

struct Environment {
  std::string version;  ///< of the library
  std::string isa;
  int threads = 0;
  std::optional<std::uint64_t> seed;
};

struct TrainingReport {
  std::string title;
  std::string command;  ///< what to type to do it again
  std::string model;
  std::string data;
  std::vector<LayerRow> layers;

  std::string score_name = "accuracy";
  double test_score = kUnknown;
  double test_loss = kUnknown;
  std::vector<EpochRow> history;
  std::vector<double> step_losses;
  Index steps_per_epoch = 0;  ///< 0: the steps are spread over all epochs

  std::vector<std::string> classes;  ///< names; numbers stand for those that are missing
  Tensor<Index> confusion;           ///< (classes, classes), a row for each true class
  std::vector<Mistake> mistakes;     ///< the worst first
  Tensor<float> filters;             ///< of the first convolution, (out, in, extents...)
  Tensor<float> sample;              ///< that the feature maps are of
  std::vector<FeatureMaps> feature_maps;
  std::vector<Saliency> saliency;
  std::vector<Segmentation> segmentations;
  std::vector<Reconstruction> reconstructions;

  std::vector<CostRow> costs;
  StepReport step;
  std::vector<MemoryRow> memory;
  std::size_t peak_bytes = 0;  ///< of the process
  Environment environment;
};

/// One HTML file that needs nothing else: no script, no other file, pictures and curves inside.
std::string report_html(const TrainingReport& report);

}  // namespace fenestra::cli
