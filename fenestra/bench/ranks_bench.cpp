// ranks_bench: what leaves cost, and what a step is made of. Not run by `make bench`.
//
//   ranks_bench leaves MODEL SIDE BATCH LEAF...
//     processor time of a step in leaves, against one piece
//   mpirun -n 2 --bind-to core ranks_bench steps MODEL SIDE BATCH [LEAF]
//     a step of several processes, against one, in the same leaves; a leaf for each where none is
//     said
//   ranks_bench plan MODEL SIDE BATCH
//     a step as scripts/simulate-ranks takes it
#include <fenestra/base/parallel.hpp>
#include <fenestra/nn.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/leaf_step.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/trainer_program.hpp>
#include <fenestra/ranks/mpi.hpp>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

namespace fn = fenestra;
namespace nn = fenestra::nn;
using fn::Index;

constexpr int kRepeats = 5;
constexpr double kLeastSeconds = 3;  // of all leaves together: small steps are repeated more often

double processor_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

nn::Layer<float> model_of(const std::string& name) {
  nn::Layer<float> model = nn::make_model<float>(name);
  nn::initialise(model, fn::Key(1));
  return model;
}

nn::Batch<float> batch_of(Index channels, Index side, Index samples) {
  nn::Batch<float> batch{.inputs = fn::Tensor<float>(fn::Shape{samples, channels, side, side}),
                         .labels = fn::Tensor<Index>(fn::Shape{samples})};
  const fn::Key key(2);
  float* const x = batch.inputs.mutable_data();
  for (Index i = 0; i < batch.inputs.size(); ++i) {
    x[i] = static_cast<float>(key.normal(static_cast<std::uint64_t>(i)));
  }
  for (Index i = 0; i < samples; ++i) {
    batch.labels.mutable_data()[i] = i % 10;
  }
  return batch;
}

Index channels_of(const std::string& model) {
  for (const nn::ModelEntry& entry : nn::model_entries()) {
    if (entry.name == model) {
      return entry.input[0];
    }
  }
  return 3;
}

/// Trainers that differ in their leaves only, in turn, so that all of them see the same machine.
int measure_leaves(const std::string& name, Index side, Index samples, std::vector<Index> leaves) {
  leaves.insert(leaves.begin(), 0);
  const nn::Batch<float> batch = batch_of(channels_of(name), side, samples);
  std::vector<std::unique_ptr<nn::Trainer<nn::Layer<float>>>> trainers;
  for (const Index leaf : leaves) {
    trainers.push_back(std::make_unique<nn::Trainer<nn::Layer<float>>>(
        model_of(name),
        nn::TrainerOptions{.optimiser = "sgd rate=0.001 momentum=0.9", .leaf = leaf}));
    trainers.back()->step(batch);
  }
  std::vector<double> least(leaves.size(), std::numeric_limits<double>::infinity());
  int repeats = 0;
  for (const double start = processor_seconds();
       repeats < kRepeats || processor_seconds() - start < kLeastSeconds;
       ++repeats) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const double begin = processor_seconds();
      trainers[i]->step(batch);
      least[i] = std::min(least[i], processor_seconds() - begin);
    }
  }
  std::printf("%s, %ld samples of %ld x %ld, least processor time of %d\n",
              name.c_str(),
              static_cast<long>(samples),
              static_cast<long>(side),
              static_cast<long>(side),
              repeats);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    std::printf("  %-12s %8.2f ms  %.3f\n",
                leaves[i] == 0 ? "in one piece" : ("leaf " + std::to_string(leaves[i])).c_str(),
                1e3 * least[i],
                least[i] / least[0]);
  }
  return 0;
}

/// Steps in turn: of all ranks together, of each on its part without telling the others, which is
/// the most that processors that share memory leave to the first, and of rank 0 alone, on its part
/// and on the whole batch: all in the same leaves, so that the work is the same, and the whole
/// batch in one piece too. The middle of what they take, and of their ratios in a round: machines
/// have good and bad seconds.
int measure_steps(const std::string& name, Index side, Index samples, Index leaf) {
  const fn::ranks::CommunicatorPtr communicator = fn::ranks::mpi_communicator();
  const Index ranks = communicator->size();
  const Index samples_of_one = (samples + ranks - 1) / ranks;
  const nn::TrainerOptions in_one_piece{.optimiser = "sgd rate=0.001 momentum=0.9"};
  nn::TrainerOptions alone = in_one_piece;
  alone.leaf = leaf > 0 ? leaf : samples_of_one;
  nn::TrainerOptions shared = alone;
  shared.communicator = communicator;
  const nn::Batch<float> whole = batch_of(channels_of(name), side, samples);
  const nn::Batch<float> part = batch_of(channels_of(name), side, samples_of_one);
  using Trainer = nn::Trainer<nn::Layer<float>>;
  Trainer together(model_of(name), shared);
  Trainer apart(model_of(name), alone);
  Trainer one(model_of(name), alone);
  Trainer plain(model_of(name), in_one_piece);
  const auto seconds_of = [&](Trainer& trainer, const nn::Batch<float>& batch, bool on_all) {
    if (on_all) {
      fn::ranks::any(*communicator, false);  // until all of them are here
    } else if (communicator->rank() != 0) {
      return 0.0;
    }
    const auto begin = std::chrono::steady_clock::now();
    trainer.step(batch);
    if (on_all) {
      fn::ranks::any(*communicator, false);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  struct Round {
    double together, apart, part, whole, plain;
  };
  std::vector<Round> rounds;
  for (int repeat = 0; repeat <= kRepeats; ++repeat) {
    const Round round{.together = seconds_of(together, whole, true),
                      .apart = seconds_of(apart, part, true),
                      .part = seconds_of(one, part, false),
                      .whole = seconds_of(one, whole, false),
                      .plain = seconds_of(plain, whole, false)};
    if (repeat > 0) {  // the first one compiles
      rounds.push_back(round);
    }
  }
  if (communicator->rank() != 0) {
    return 0;
  }
  const auto middle = [&](const auto& of) {
    std::vector<double> all;
    for (const Round& round : rounds) {
      all.push_back(of(round));
    }
    std::nth_element(all.begin(), all.begin() + kRepeats / 2, all.end());
    return all[kRepeats / 2];
  };
  std::printf("%s, %ld samples of %ld x %ld in leaves of %ld on %ld processes, the middle of %d\n",
              name.c_str(),
              static_cast<long>(samples),
              static_cast<long>(side),
              static_cast<long>(side),
              static_cast<long>(alone.leaf),
              static_cast<long>(ranks),
              kRepeats);
  const auto print = [&](const char* what, double Round::*time) {
    std::printf(
        "  %-26s %8.1f ms", what, 1e3 * middle([&](const Round& round) { return round.*time; }));
  };
  const auto print_shared = [&](const char* what, double Round::*time) {
    print(what, time);
    const auto processes = static_cast<double>(ranks);
    std::printf(
        "  %.3f of one with all samples, %.3f of one with a part\n",
        middle([&](const Round& round) { return round.whole / (processes * (round.*time)); }),
        middle([&](const Round& round) { return round.part / (round.*time); }));
  };
  print("one process, in one piece", &Round::plain);
  std::printf("\n");
  print("one process, all samples", &Round::whole);
  std::printf("\n");
  print("one process, a part", &Round::part);
  std::printf("\n");
  print_shared("together", &Round::together);
  print_shared("apart", &Round::apart);
  return 0;
}

/// The least processor time of every part of a step on one thread, and the gradients that each
/// completes.
int measure_plan(const std::string& name, Index side, Index samples) {
  nn::Layer<float> model = model_of(name);
  const std::vector<nn::Slot<float>> slots = nn::slots<float>(model);
  const nn::Batch<float> batch = batch_of(channels_of(name), side, samples);
  const nn::detail::BatchView<float> view{.inputs = &batch.inputs, .labels = &batch.labels};
  const nn::TrainerCore<float>::Parts parts{
      .slots = [&] { return slots; },
      .forward = [&](const fn::Value<float>& x, nn::Pass<float>& pass) { return model(x, pass); }};
  const nn::Loss<float> loss = nn::Loss<float>::make("cross-entropy");
  nn::detail::StepProgram<float> program(
      parts, nn::LossFunction<float>(loss), std::span<const nn::Slot<float>>(slots), view);
  const nn::detail::GradientLayout layout =
      nn::detail::gradient_layout(std::span<const nn::Slot<float>>(slots));
  fn::ranks::LeafSum<float> memory;
  memory.start({.elements = layout.elements});
  nn::detail::GradientRoom<float> room;
  float* const at = memory.begin_leaf(0);
  for (const fn::ranks::ElementRange& range : layout.gradients) {
    room.memory.push_back(at + range.begin);
  }
  struct Part {
    double seconds = std::numeric_limits<double>::infinity();
    std::vector<std::size_t> gradients = {};
  };
  std::vector<Part> found;
  for (int repeat = 0; repeat <= kRepeats; ++repeat) {
    std::size_t next = 0;
    double since = processor_seconds();
    room.found = [&](std::span<const std::size_t> gradients) {
      const double now = processor_seconds();
      if (next == found.size()) {
        found.emplace_back();
      }
      Part& part = found[next++];
      part.gradients.assign(gradients.begin(), gradients.end());
      if (repeat > 0) {  // the first one finds memory
        part.seconds = std::min(part.seconds, now - since);
      }
      since = processor_seconds();
    };
    program.run(std::span<const nn::Slot<float>>(slots), view, fn::Key(3), room);
  }
  double total = 0;
  for (const Part& part : found) {
    total += part.seconds;
  }
  std::printf("# ranks_bench plan %s %ld %ld: one thread, %ld elements, %.1f ms\nbuckets",
              name.c_str(),
              static_cast<long>(side),
              static_cast<long>(samples),
              static_cast<long>(layout.elements),
              1e3 * total);
  for (const Index end : layout.ends) {
    std::printf(" %ld", static_cast<long>(end));
  }
  // Parts between gradients are one.
  double seconds = 0;
  std::printf("\n");
  for (const Part& part : found) {
    seconds += part.seconds;
    if (!part.gradients.empty() || &part == &found.back()) {
      std::printf("step %.6f", seconds);
      for (const std::size_t gradient : part.gradients) {
        const fn::ranks::ElementRange& range = layout.gradients[gradient];
        std::printf(" %ld %ld", static_cast<long>(range.begin), static_cast<long>(range.end));
      }
      std::printf("\n");
      seconds = 0;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 4 || (words[0] != "leaves" && words[0] != "plan" && words[0] != "steps")) {
    std::cerr
        << "ranks_bench: leaves MODEL SIDE BATCH LEAF..., plan MODEL SIDE BATCH, or steps MODEL "
           "SIDE BATCH [LEAF]\n";
    return 2;
  }
  const auto number = [&](std::size_t i) { return static_cast<Index>(std::stol(words[i])); };
  fn::set_threads(1);
  if (words[0] == "plan") {
    return measure_plan(words[1], number(2), number(3));
  }
  if (words[0] == "steps") {
    return measure_steps(words[1], number(2), number(3), words.size() > 4 ? number(4) : 0);
  }
  std::vector<Index> leaves;
  for (std::size_t i = 4; i < words.size(); ++i) {
    leaves.push_back(number(i));
  }
  return measure_leaves(words[1], number(2), number(3), leaves);
} catch (const std::exception& error) {
  std::cerr << "ranks_bench: " << error.what() << "\n";
  return 2;
}
