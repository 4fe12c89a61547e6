// training_cases: what optimisers, schedules and losses compute in f64, a line of JSON each, for
// training.py to compare with torch.
//
// Optimisers make 50 steps on five weights whose gradients are w_i (i + 1)/3 - cos(t (i + 1)) at
// step t, so that an error would grow.
#include <fenestra/engine/transforms.hpp>
#include <fenestra/nn/any_optimiser.hpp>
#include <fenestra/nn/losses.hpp>
#include <fenestra/nn/schedule.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace fenestra::nn {
namespace {

using D = Tensor<double>;

void print_numbers(const char* kind, const std::string& text, const std::vector<double>& numbers) {
  std::printf("{\"kind\": \"%s\", \"text\": \"%s\", \"numbers\": [", kind, text.c_str());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::printf("%s%.17g", i == 0 ? "" : ", ", numbers[i]);
  }
  std::puts("]}");
}

void run_optimiser(const std::string& text) {
  auto optimiser = Optimiser<double>::make(text);
  D w(Shape{5}, {1.0, -2.0, 0.5, 3.0, -0.25});
  std::vector<double> numbers;
  for (int t = 0; t < 50; ++t) {
    D g(w.shape());
    for (Index i = 0; i < 5; ++i) {
      const double k = static_cast<double>(i + 1);
      g.mutable_data()[i] = w[i] * k / 3 - std::cos(t * k);
    }
    optimiser.step(w, g);
    numbers.insert(numbers.end(), w.data(), w.data() + w.size());
  }
  print_numbers("optimiser", text, numbers);
}

void run_schedule(const std::string& text) {
  const Schedule schedule = Schedule::parse(text);
  std::vector<double> numbers;
  for (Index step = 0; step < 50; ++step) {
    numbers.push_back(schedule(step));
  }
  print_numbers("schedule", text, numbers);
}

/// Scores (3, 4, 2), and labels or numbers of fixed formulas; the loss and its gradient.
void run_loss(const std::string& text) {
  const auto loss = Loss<double>::make(text);
  D x(Shape{3, 4, 2});
  D target(x.shape());
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_data()[i] = 3 * std::sin(1.0 + static_cast<double>(i * i));
    target.mutable_data()[i] = i % 3 == 0 ? 1.0 : 0.0;
  }
  const Tensor<Index> labels(Shape{3, 2}, {0, 3, 2, 1, 1, 0});
  Target<double> what;
  if (loss.takes_labels()) {
    what.labels = Indices(labels);
  } else {
    what.values = Value<double>(target);
  }
  const auto [value, bar] =
      value_and_grad([&](const Value<double>& scores) { return loss(scores, what); }, x);
  std::vector<double> numbers{value[0]};
  numbers.insert(numbers.end(), bar.data(), bar.data() + bar.size());
  print_numbers("loss", text, numbers);
}

int run() {
  for (const char* text : {"sgd rate=0.05",
                           "sgd rate=0.05 momentum=0.9 weight_decay=0.01",
                           "sgd rate=0.05 momentum=0.9 nesterov=1",
                           "adam rate=0.05",
                           "adam rate=0.05 beta1=0.8 beta2=0.95 epsilon=1e-06 weight_decay=0.1",
                           "adamw rate=0.05 weight_decay=0.1",
                           "rmsprop rate=0.05",
                           "rmsprop rate=0.05 momentum=0.5 centred=1 weight_decay=0.1"}) {
    run_optimiser(text);
  }
  for (const char* text : {"constant",
                           "step every=7 factor=0.5",
                           "cosine steps=50",
                           "cosine steps=50 least=0.1",
                           "linear steps=40 least=0.25",
                           "one-cycle steps=50",
                           "one-cycle steps=50 rise=0.1 divisor=10 final_divisor=100"}) {
    run_schedule(text);
  }
  for (const char* text :
       {"cross-entropy", "cross-entropy smoothing=0.1", "bce", "mse", "l1", "huber delta=0.75"}) {
    run_loss(text);
  }
  return 0;
}

}  // namespace
}  // namespace fenestra::nn

int main() {
  try {
    return fenestra::nn::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_cases: %s\n", error.what());
    return 1;
  }
}
