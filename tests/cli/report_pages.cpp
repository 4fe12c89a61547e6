// Writes reports of trainings that never happened into a folder: one of each kind, with everything
// a report can hold, with wild numbers and wild names, and with nothing; and the page of such a run
// of the bench. tests/cli/report_test.py reads them as pages and opens them in a browser.
#include <fenestra/base/file.hpp>
#include <fenestra/bench/made_up_test.hpp>
#include <fenestra/bench/page.hpp>
#include <fenestra/cli/report.hpp>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <string>

namespace fenestra::cli {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kPi = 3.14159265F;

/// The same numbers everywhere, 0 to 1: a linear congruential generator's upper bits.
class Numbers {
 public:
  float next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<float>(state_ >> 40U) / static_cast<float>(1U << 24U);
  }

 private:
  std::uint64_t state_ = 1;
};

float smooth_step(float distance) { return 1 / (1 + std::exp(3 * distance)); }

/// Something like a letter: strokes of a class on a dark ground, (channels, side, side).
Tensor<float> drawing(Index channels, Index side, Index kind, Numbers& numbers) {
  Tensor<float> sample({channels, side, side});
  const float turn = 0.4F * numbers.next();
  const auto size = static_cast<float>(side);
  for (Index y = 0; y < side; ++y) {
    for (Index x = 0; x < side; ++x) {
      const float u = (static_cast<float>(x) + 0.5F) / size * 2 - 1;
      const float v = (static_cast<float>(y) + 0.5F) / size * 2 - 1;
      const float radius = std::hypot(u, v * (kind % 2 == 0 ? 0.8F : 1.1F));
      const float angle = std::atan2(v, u) + turn;
      const float ring =
          std::abs(radius - 0.55F - 0.12F * std::sin(static_cast<float>(kind) * angle));
      const float bar =
          std::abs(u * std::cos(turn) + v * std::sin(turn) - 0.1F * static_cast<float>(kind % 3));
      const float ink = smooth_step(size * 0.35F * ((kind % 4 == 1 ? bar : ring) - 0.11F));
      for (Index c = 0; c < channels; ++c) {
        const float tint =
            channels == 1 ? 1 : 0.35F + 0.65F * std::abs(std::sin(static_cast<float>(c + kind)));
        sample.mutable_at(c, y, x) = std::min(1.0F, tint * ink + 0.04F * numbers.next());
      }
    }
  }
  return sample;
}

Tensor<float> tone(Index channels, Index length, float pitch, Numbers& numbers) {
  Tensor<float> sample({channels, length});
  for (Index c = 0; c < channels; ++c) {
    for (Index i = 0; i < length; ++i) {
      const float t = static_cast<float>(i) / static_cast<float>(length);
      sample.mutable_at(c, i) =
          std::sin(2 * kPi * pitch * t + static_cast<float>(c)) * std::exp(-2 * t) +
          0.1F * numbers.next();
    }
  }
  return sample;
}

Tensor<float> noise(const Shape& shape, Numbers& numbers) {
  Tensor<float> tensor(shape);
  for (float& value : tensor.mutable_values()) {
    value = numbers.next() + numbers.next() - 1;
  }
  return tensor;
}

void add_history(TrainingReport& report, Index epochs, Index steps, Numbers& numbers) {
  report.steps_per_epoch = steps;
  for (Index step = 0; step < epochs * steps; ++step) {
    const double t = static_cast<double>(step) / static_cast<double>(steps);
    report.step_losses.push_back((2.3 * std::exp(-1.1 * t) + 0.012) *
                                 (0.6 + 0.8 * static_cast<double>(numbers.next())));
  }
  for (Index epoch = 1; epoch <= epochs; ++epoch) {
    const auto t = static_cast<double>(epoch);
    report.history.push_back(
        {.epoch = epoch,
         .training_loss = 2.3 * std::exp(-1.1 * (t - 0.5)) + 0.012,
         .validation_loss = 2.0 * std::exp(-1.0 * (t - 0.4)) + 0.031 + 0.001 * t,
         .score = 0.991 - 0.45 * std::exp(-0.8 * t),
         .seconds = 1.7 + 0.2 * static_cast<double>(numbers.next()),
         .learning_rate = 0.5e-3 * (1 + std::cos(kPi * t / static_cast<double>(epochs)))});
  }
}

void add_costs(TrainingReport& report) {
  report.costs = {{"conv1, backward", 5230.4, kUnknown},
                  {"conv1", 2104.0, kUnknown},
                  {"conv2, backward", 1840.7, kUnknown},
                  {"conv2", 911.2, kUnknown},
                  {"optimiser", 240.9, kUnknown},
                  {"data", 12.04, kUnknown}};
  report.step = {.note = "A batch of 64 samples, the fastest of a few runs.",
                 .rows = {{"conv1", "conv 5x5, 6 filters, padding 2", 117'600, 0.412, 1.31},
                          {"relu1", "relu", 0, kUnknown, 0.013},
                          {"level.skip.1.level.skip.1.level.skip.1.level.down.second.conv",
                           "conv 3x3",
                           1'240'000'000,
                           153.2,
                           341.77},
                          {"flatten", "flatten", 0, kUnknown, kUnknown},
                          {"classifier.4", "linear 84 to 10", 840, 0.0021, 0.0003},
                          {"loss", "", 0, 0.006, 0.004}},
                 .forward = 153.6,
                 .backward = 343.1};
  report.memory = {{"parameters", 246'824, ""},
                   {"buffers", 0, ""},
                   {"gradients", 246'824, ""},
                   {"optimiser", 493'648, "what it remembers of each parameter"},
                   {"activations", std::nullopt, "not known of an eager run"},
                   {"arena", 12'300'000, "all that a step computes"},
                   {"data", 301'056, "a batch, and 2 that are made ahead"}};
  report.peak_bytes = 47'300'000;
  report.environment = {.version = "0.1.0", .isa = "AVX2", .threads = 2, .seed = 1};
}

TrainingReport classification() {
  Numbers numbers;
  TrainingReport report;
  report.title = "LeNet on digits: 98.89 %";
  report.model = "lenet";
  report.data = "digits (1,437 for training, 360 for testing)";
  report.command =
      "fenestra train lenet --data digits --epochs 12 --batch 64 --optimiser adamw --lr 1e-3 "
      "--schedule cosine --seed 1 --threads 2 --augment shift,rotate --report lenet.html";
  report.layers = {{"conv1", "conv 5x5, 6 filters, padding 2", {1, 6, 28, 28}, 156, 117'600, "5x5"},
                   {"relu1", "relu", {1, 6, 28, 28}, 0, 0, "5x5"},
                   {"pool1", "max pool 2x2", {1, 6, 14, 14}, 0, 0, "6x6"},
                   {"conv2", "conv 5x5, 16 filters", {1, 16, 10, 10}, 2'416, 240'000, "14x14"},
                   {"pool2", "max pool 2x2", {1, 16, 5, 5}, 0, 0, "16x16"},
                   {"classifier.0", "linear 400 to 120", {1, 120}, 48'120, 48'000, "all"},
                   {"classifier.2", "linear 120 to 84", {1, 84}, 10'164, 10'080, "all"},
                   {"classifier.4", "linear 84 to 10", {1, 10}, 850, 840, "all"}};
  add_history(report, 12, 23, numbers);
  report.test_score = 0.98889;
  report.test_loss = 0.0411;
  for (int i = 0; i < 10; ++i) {
    report.classes.push_back(std::to_string(i));
  }
  report.confusion = Tensor<Index>({10, 10});
  for (Index i = 0; i < 10; ++i) {
    report.confusion.mutable_at(i, i) = 33 + i % 4;
  }
  report.confusion.mutable_at(4, 9) = 2;
  report.confusion.mutable_at(8, 1) = 1;
  report.confusion.mutable_at(3, 5) = 7;
  for (Index i = 0; i < 12; ++i) {
    report.mistakes.push_back({.sample = drawing(1, 28, i, numbers),
                               .truth = i % 10,
                               .predicted = (i + 5) % 10,
                               .probability = 0.99 - 0.04 * static_cast<double>(i)});
  }
  report.filters = noise({6, 1, 5, 5}, numbers);
  report.sample = drawing(1, 28, 3, numbers);
  Tensor<float> first({6, 28, 28});
  for (Index c = 0; c < 6; ++c) {
    const Tensor<float> map = drawing(1, 28, c + 2, numbers);
    std::copy(map.values().begin(), map.values().end(), first.mutable_data() + c * 784);
  }
  report.feature_maps = {{"conv1", first}, {"conv2", noise({48, 10, 10}, numbers)}};
  for (Index i = 0; i < 3; ++i) {
    Tensor<float> gradient = noise({1, 28, 28}, numbers);
    const Tensor<float> weight = drawing(1, 28, i + 4, numbers);
    for (Index j = 0; j < gradient.size(); ++j) {
      gradient.mutable_data()[j] *= weight[j];
    }
    report.saliency.push_back({.sample = drawing(1, 28, i + 4, numbers),
                               .gradient = gradient,
                               .caption = "score of class " + std::to_string(i + 4)});
  }
  add_costs(report);
  return report;
}

TrainingReport segmentation() {
  Numbers numbers;
  TrainingReport report;
  report.title = "U-Net on shapes";
  report.model = "unet";
  report.data = "generated shapes, 64 x 64";
  report.command = "fenestra train unet --data shapes --epochs 5";
  report.score_name = "mean IoU";
  add_history(report, 5, 40, numbers);
  report.test_score = 0.957;
  report.classes = {"background", "disc", "square", "triangle"};
  for (Index n = 0; n < 4; ++n) {
    Segmentation one{Tensor<float>({3, 64, 64}), Tensor<Index>({64, 64}), Tensor<Index>({64, 64})};
    for (Index y = 0; y < 64; ++y) {
      for (Index x = 0; x < 64; ++x) {
        const auto mask_at = [&](Index dy, Index dx) -> Index {
          const Index u = x + dx;
          const Index v = y + dy;
          const Index a = u - 20 - 3 * n;
          const Index b = v - 22;
          if (a * a + b * b < 150) {
            return 1;
          }
          return u > 36 && u < 58 && v > 30 + 2 * n && v < 54       ? 2
                 : v > 6 && v < 20 && u - 40 > 20 - v && u - 40 < v ? 3
                                                                    : 0;
        };
        one.mask.mutable_at(y, x) = mask_at(0, 0);
        one.prediction.mutable_at(y, x) = mask_at(y % 7 == 0 ? 1 : 0, x % 5 == 0 ? 1 : 0);
        for (Index c = 0; c < 3; ++c) {
          const float shade = 0.15F + 0.25F * static_cast<float>((mask_at(0, 0) * (c + 2)) % 4);
          one.sample.mutable_at(c, y, x) = shade + 0.15F * numbers.next();
        }
      }
    }
    report.segmentations.push_back(std::move(one));
  }
  report.filters = noise({16, 3, 3, 3}, numbers);
  report.sample = report.segmentations.front().sample;
  // A name as long as those of layers deep inside, without a place to break it.
  report.feature_maps = {
      {"level.skip.1.level.skip.1.level.skip.1.level.down.second.conv", noise({8, 8, 8}, numbers)}};
  add_costs(report);
  return report;
}

TrainingReport reconstruction() {
  Numbers numbers;
  TrainingReport report;
  report.title = "A convolutional autoencoder";
  report.model = "autoencoder";
  report.score_name = "";
  add_history(report, 8, 10, numbers);
  for (EpochRow& row : report.history) {
    row.score = kUnknown;
  }
  report.test_loss = 0.0061;
  for (Index i = 0; i < 6; ++i) {
    const Tensor<float> input = drawing(1, 28, i, numbers);
    report.reconstructions.push_back(
        {input, input.map([&](float v) { return 0.85F * v + 0.1F * numbers.next(); })});
  }
  return report;
}

TrainingReport signals() {
  Numbers numbers;
  TrainingReport report;
  report.title = "A dilated network on tones";
  report.model = "tones1d";
  report.command = "fenestra train tones --data tones";
  add_history(report, 3, 60, numbers);
  report.classes = {"low", "middle", "high", "chirp"};
  report.confusion = Tensor<Index>({4, 4}, {80, 3, 0, 0, 2, 77, 1, 0, 0, 0, 81, 0, 4, 0, 0, 79});
  for (Index i = 0; i < 4; ++i) {
    report.mistakes.push_back(
        {tone(2, 400, 3 + 2 * static_cast<float>(i), numbers), i, 3 - i, 0.8});
  }
  report.filters = noise({8, 2, 9}, numbers);
  report.sample = tone(1, 256, 6, numbers);
  report.feature_maps = {{"block1", tone(8, 256, 5, numbers)}};
  report.saliency = {{tone(1, 256, 4, numbers), noise({256}, numbers), "score of low"}};
  report.reconstructions = {{tone(1, 256, 4, numbers), tone(1, 256, 4, numbers)}};
  Segmentation labelled{tone(1, 256, 9, numbers), Tensor<Index>({256}), Tensor<Index>({256})};
  for (Index i = 0; i < 256; ++i) {
    labelled.mask.mutable_data()[i] = i / 64;
    labelled.prediction.mutable_data()[i] = (i + 5) / 64 % 4;
  }
  report.segmentations = {labelled};
  return report;
}

/// Numbers that are none, names that are markup, shapes that do not fit, classes without end.
TrainingReport wild() {
  Numbers numbers;
  constexpr auto kNan = std::numeric_limits<float>::quiet_NaN();
  const std::string evil = "<script>alert('1')</script>\"&\x01\xff";
  TrainingReport report;
  report.title = evil;
  report.command = "fenestra train " + evil;
  report.model = evil;
  report.data = evil;
  report.score_name = evil;
  report.layers = {{evil, evil, {}, -1, 0, evil}};
  report.history = {{1, kInfinity, kUnknown, kUnknown, -1, 0},
                    {2, 1e300, 1e-300, 2, kInfinity, -1},
                    {3, kUnknown, -kInfinity, -1, 1e9, kInfinity},
                    {3, 5e-324, 0, 0.5, 3, 1e-9}};
  report.step_losses = {kUnknown, kInfinity, 1, 0, -1e308, 1e308};
  report.test_score = kInfinity;
  report.test_loss = -kInfinity;
  report.classes = {evil, ""};
  report.confusion = Tensor<Index>({60, 60}, Index{3});
  Tensor<float> holes = drawing(3, 40, 2, numbers);
  holes.mutable_at(0, 20, 20) = kNan;
  holes.mutable_at(1, 21, 20) = std::numeric_limits<float>::infinity();
  report.mistakes = {{holes, 0, -7, kInfinity},
                     {Tensor<float>({1, 8, 8}, kNan), 1, 99, -3},
                     {Tensor<float>({0, 8, 8}), 1, 0, 1},
                     {Tensor<float>({1, 1, 1}), 1, 0, 1},
                     {noise({2, 300, 500}, numbers), 1, 0, 1},
                     {noise({1, 9, 16, 16}, numbers), 0, 1, 0.5},
                     {Tensor<float>(), 0, 0, 1}};
  report.filters = Tensor<float>({70, 2, 3, 3, 3}, kNan);
  report.feature_maps = {{evil, Tensor<float>({3, 4, 4}, 5.0F)}, {"flat", Tensor<float>({7})}};
  report.saliency = {{holes, Tensor<float>({40, 40}, kNan), evil},
                     {holes, Tensor<float>({3, 3}), "another shape"}};
  report.segmentations = {{holes, Tensor<Index>({40, 40}, Index{-1}), Tensor<Index>({40, 40})},
                          {holes, Tensor<Index>({40, 40}, Index{30}), Tensor<Index>({40, 40})},
                          {holes, Tensor<Index>({4}), Tensor<Index>({5})}};
  report.reconstructions = {{holes, holes}, {holes, Tensor<float>({1, 2, 2})}};
  report.costs = {
      {evil, kInfinity, kUnknown}, {"nothing", kUnknown, kUnknown}, {"some", 3, kUnknown}};
  report.step = {.note = evil,
                 .rows = {{evil, evil, -1, kInfinity, kUnknown}, {"", "", 0, kUnknown, -3}},
                 .forward = kUnknown,
                 .backward = -kInfinity};
  report.memory = {{evil, std::numeric_limits<std::size_t>::max(), evil}, {"", std::nullopt, ""}};
  return report;
}

void write_all(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, const TrainingReport& report) {
    replace_file(folder / (name + ".html"), {report_html(report)});
  };
  write("classification", classification());
  write("segmentation", segmentation());
  write("reconstruction", reconstruction());
  write("signals", signals());
  write("wild", wild());
  write("empty", {});
  replace_file(folder / "bench.html", {bench::page_html(bench::everything())});
}

}  // namespace

}  // namespace fenestra::cli

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: report_pages FOLDER\n";
    return 2;
  }
  fenestra::cli::write_all(argv[1]);
}
