// Timing a model that a file holds, as `explain model` compiles it.
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/cli/bench_model.hpp>
#include <fenestra/cli/explain_network.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/units.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/kernels/isa.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>

namespace fenestra::cli {

namespace {

constexpr std::size_t kLeastCalls = 5;
constexpr std::size_t kMostCalls = 100000;

template <class F>
double seconds_of(const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

ExitCode bench_command(const BenchOptions& options) {
  if (options.threads) {
    set_threads(*options.threads);
  }
  ExplainModelOptions form;
  form.model = options.model;
  form.input = options.input;
  form.batch = options.batch;
  form.form = options.step ? ModelForm::step : ModelForm::infer;
  std::optional<NetworkProgram<float>> made;
  const double compiling = seconds_of([&] { made.emplace(compile_network<float>(form)); });
  const std::vector<RunArgument> arguments = made->arguments();
  Context<float> context(made->program);
  std::vector<Tensor<float>> results;
  for (const Shape& shape : made->program.result_shapes()) {
    results.emplace_back(shape);
  }
  const auto call = [&] { made->program.run(context, arguments, results); };
  // The first call packs weights and touches the memory.
  const double first = seconds_of(call);
  std::vector<double> times;
  double all = 0;
  while (times.size() < kLeastCalls || (all < options.seconds && times.size() < kMostCalls)) {
    times.push_back(seconds_of(call));
    all += times.back();
  }
  std::sort(times.begin(), times.end());
  const double least = times.front();
  const double middle = times[times.size() / 2];
  const double rate = static_cast<double>(options.batch) / middle;
  const Index multiply_adds = made->network.layers.multiply_adds * options.batch;
  const std::string what = options.step ? "training step" : "inference";
  if (options.json) {
    print_json({{"model", options.model},
                {"form", what},
                {"batch", options.batch},
                {"threads", threads()},
                {"isa", std::string(kernels::isa_name())},
                {"input", shape_json(made->x.shape())},
                {"calls", times.size()},
                {"median_seconds", middle},
                {"min_seconds", least},
                {"first_seconds", first},
                {"compile_seconds", compiling},
                {"samples_per_second", rate},
                {"multiply_adds", multiply_adds},
                {"arena_bytes", made->program.peak_bytes()}});
    return fine;
  }
  std::cout << wrapped(
      columns({{"model", options.model + ", " + what},
               {"input", extents(made->x.shape())},
               {"threads", std::to_string(threads()) + ", " + std::string(kernels::isa_name())},
               {"median",
                time_text(middle) + " for a call, of " + grouped(static_cast<Index>(times.size()))},
               {"least", time_text(least)},
               {"samples", decimal(rate, rate < 100 ? 1 : 0) + " in a second"},
               {"before",
                time_text(compiling) + " to load and compile, " + time_text(first) +
                    " for the first call"}},
              0),
      terminal_of(Stream::out));
  return fine;
}

}  // namespace fenestra::cli
