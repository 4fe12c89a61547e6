// What a network says about data, in numbers and examples: for `eval`, `train` and the report.
#pragma once

#include <fenestra/cli/command.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/onnx.hpp>
#include <fenestra/cli/report.hpp>
#include <fenestra/nn/trainer.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fenestra::cli {

/// Numbers of one evaluation for people: a line or two, and the confusion matrix, or what each
/// class has.
std::string evaluation_text(const nn::Evaluation& evaluation,
                            nn::Task task,
                            const std::vector<std::string>& classes);
Json evaluation_json(const nn::Evaluation& evaluation,
                     nn::Task task,
                     const std::vector<std::string>& classes);
/// "98.33 % of 179 samples right", "mean IoU 0.953 on 400 samples".
std::string score_text(const nn::Evaluation& evaluation, nn::Task task);

/// Softmax of one line of scores.
std::vector<double> probabilities(const float* scores, Index classes, Index stride = 1);

/// What the report may look at.
struct SampleOptions {
  Index batch = 64;          ///< held in memory at once
  bool feature_maps = true;  ///< of whole layers: what large pictures have no memory for
};

/// The part of the report that looks at samples: mistakes, masks, reconstructions, filters, feature
/// maps and saliency. `predict` is the model in inference on prepared samples.
void add_samples(TrainingReport& report,
                 const nn::Layer<float>& model,
                 nn::Task task,
                 const nn::Dataset& data,
                 const nn::Preprocessing& preprocessing,
                 const SampleOptions& options,
                 const std::function<Tensor<float>(const Tensor<float>&)>& predict);

struct EvalOptions {
  std::string file;
  std::string data;
  std::optional<std::string> input = {};
  PreparationOptions preparation = {};
  std::optional<int> threads = {};
  Index count = 0;
  double held_out = 0.1;
  Index batch = 64;
  bool training_part = false;
  bool json = false;
};
ExitCode evaluate_command(const EvalOptions& options);

}  // namespace fenestra::cli
