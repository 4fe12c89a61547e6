// What a network does to samples, for the report: its mistakes, masks and reconstructions, what its
// layers give, and which cells decide.
#include <fenestra/cli/evaluate.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/nn/data/loader.hpp>
#include <fenestra/nn/metrics.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra::cli {

namespace {

constexpr std::size_t kMistakes = 12;
constexpr std::size_t kPairs = 6;   ///< masks and reconstructions that are shown
constexpr std::size_t kLayers = 8;  ///< whose maps are shown
constexpr std::size_t kSaliencies = 4;

/// Sample i of a batch, without the batch's axis.
template <class T>
Tensor<T> item(const Tensor<T>& batch, Index i) {
  Shape shape;
  for (int axis = 1; axis < batch.rank(); ++axis) {
    shape.push_back(batch.shape()[axis]);
  }
  Tensor<T> result(shape);
  std::copy_n(batch.data() + i * result.size(), result.size(), result.mutable_data());
  return result;
}

Tensor<float> as_batch(const Tensor<float>& sample) {
  Shape shape{1};
  for (const Index extent : sample.shape()) {
    shape.push_back(extent);
  }
  Tensor<float> batch(shape);
  std::copy_n(sample.data(), sample.size(), batch.mutable_data());
  return batch;
}

Index first_largest(const std::vector<double>& numbers) {
  return std::max_element(numbers.begin(), numbers.end()) - numbers.begin();
}

std::string name_of(const std::vector<std::string>& classes, Index number) {
  const auto at = static_cast<std::size_t>(number);
  return at < classes.size() ? classes[at] : std::to_string(number);
}

void add_batch(TrainingReport& report,
               nn::Task task,
               const nn::Dataset& data,
               const nn::Batch<float>& batch,
               const Tensor<float>& scores) {
  for (Index i = 0; i < batch.size(); ++i) {
    const Tensor<float> said = item(scores, i);
    const nn::Sample sample = data.get(batch.which[static_cast<std::size_t>(i)]);
    if (task == nn::Task::classification) {
      const std::vector<double> p = probabilities(said.data(), said.size());
      const Index predicted = first_largest(p);
      if (predicted != sample.label) {
        report.mistakes.push_back({.sample = sample.image,
                                   .truth = sample.label,
                                   .predicted = predicted,
                                   .probability = p[static_cast<std::size_t>(predicted)]});
      }
    } else if (task == nn::Task::segmentation && report.segmentations.size() < kPairs) {
      report.segmentations.push_back(
          {.sample = item(batch.inputs, i),
           .mask = item(batch.labels, i),
           .prediction = item(nn::predicted_classes(as_batch(said)), 0)});
    } else if (task == nn::Task::reconstruction && report.reconstructions.size() < kPairs) {
      Tensor<float> drawn = said;
      for (float& number : drawn.mutable_values()) {
        number = 1 / (1 + std::exp(-number));
      }
      report.reconstructions.push_back({.input = item(batch.targets, i), .output = drawn});
    }
  }
}

void add_feature_maps(TrainingReport& report,
                      const nn::Layer<float>& model,
                      const Tensor<float>& x) {
  std::vector<FeatureMaps> all;
  nn::Pass<float> pass = nn::Pass<float>::inference();
  pass.set_observer([&](const nn::LayerCall<float>& call) {
    const Shape& shape = call.output.shape();
    // What a layer gives cell by cell looks like what it got, but for a rectifier's zeros.
    const auto is_a = [&](std::string_view word) {
      return call.kind.find(word) != std::string_view::npos;
    };
    // Nodes of ONNX models begin with a capital letter.
    const bool is_new = is_a("conv") || is_a("Conv") || is_a("pool") || is_a("Pool");
    if (!call.has_parts && is_new && shape.rank() > 2 && shape[shape.rank() - 1] > 1) {
      all.push_back({.layer = call.name, .maps = item(call.output.tensor(), 0)});
    }
  });
  model(Value<float>(x), pass);
  // Evenly spread over the depth.
  const std::size_t shown = std::min(kLayers, all.size());
  for (std::size_t i = 0; i < shown; ++i) {
    report.feature_maps.push_back(std::move(all[i * all.size() / shown]));
  }
}

/// The gradient of the largest score by the input.
Saliency saliency_of(const nn::Layer<float>& model,
                     const Tensor<float>& x,
                     const Tensor<float>& shown,
                     const std::vector<std::string>& classes,
                     Index label) {
  Tape<float> tape;
  const Value<float> at = tape.parameter(Value<float>(x), "x");
  nn::Pass<float> pass = nn::Pass<float>::inference();
  const Value<float> scores = model(at, pass);
  const Tensor<float>& numbers = scores.tensor();
  const std::vector<double> p = probabilities(numbers.data(), numbers.size());
  const Index predicted = first_largest(p);
  Tensor<float> chosen(numbers.shape());
  chosen.mutable_data()[numbers.size() == 1 ? 0 : predicted] = 1;
  const Gradients<float> gradients = tape.backward(Seed<float>{scores, Value<float>(chosen)});
  return {.sample = shown,
          .gradient = item(gradients[at].tensor(), 0),
          .caption = name_of(classes, label) + ", said " + name_of(classes, predicted)};
}

}  // namespace

void add_samples(TrainingReport& report,
                 const nn::Layer<float>& model,
                 nn::Task task,
                 const nn::Dataset& data,
                 const nn::Preprocessing& preprocessing,
                 const SampleOptions& options,
                 const std::function<Tensor<float>(const Tensor<float>&)>& predict) {
  const nn::DatasetPtr shared(std::shared_ptr<void>(), &data);
  nn::Loader<float> loader(
      shared,
      {.batch = options.batch, .shuffle = false, .prefetch = 0, .preprocessing = preprocessing});
  std::optional<nn::Batch<float>> first;
  while (std::optional<nn::Batch<float>> batch = loader.next()) {
    add_batch(report, task, data, *batch, predict(batch->inputs));
    if (!first) {
      first = std::move(batch);
    }
    if (task != nn::Task::classification) {
      break;
    }
  }
  std::stable_sort(
      report.mistakes.begin(), report.mistakes.end(), [](const Mistake& a, const Mistake& b) {
        return a.probability > b.probability;
      });
  report.mistakes.resize(std::min(report.mistakes.size(), kMistakes));

  nn::Layer<float> copy = model;
  for (const nn::Slot<float>& slot : nn::slots<float>(copy)) {
    if (slot.value->shape().rank() >= 3) {
      report.filters = slot.value->tensor();
      break;
    }
  }
  report.sample = item(first->inputs, 0);
  if (options.feature_maps) {
    add_feature_maps(report, model, as_batch(item(first->inputs, 0)));
  }
  if (task == nn::Task::classification) {
    // One of each class, as far as there is room.
    std::vector<Index> seen;
    for (Index i = 0; i < first->size() && seen.size() < kSaliencies; ++i) {
      const Index label = first->labels[i];
      if (std::find(seen.begin(), seen.end(), label) == seen.end()) {
        seen.push_back(label);
        const Tensor<float> sample = item(first->inputs, i);
        report.saliency.push_back(
            saliency_of(model, as_batch(sample), sample, report.classes, label));
      }
    }
  }
}

}  // namespace fenestra::cli
