// Watching a training: lines for people or programs while it goes on, and where its time went.
#pragma once

#include <fenestra/cli/command.hpp>
#include <fenestra/cli/report.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/nn/summary.hpp>
#include <fenestra/nn/trainer_core.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace fenestra::cli {

/// Seconds.
struct TrainCosts {
  double steps = 0;
  double programs = 0;  ///< steps for which a program was made
  double evaluation = 0;
  double checkpoints = 0;
  double gradients = 0;
};

struct TrainWatchOptions {
  bool json = false;
  nn::Task task = nn::Task::classification;
  Index epochs = 0;
  Index batches = 0;  ///< of an epoch
  Index done = 0;     ///< steps of earlier runs
};

class TrainWatch {
 public:
  explicit TrainWatch(const TrainWatchOptions& options);

  void step(const nn::StepResult& step);
  EpochRow epoch(const nn::EpochResult& epoch);
  /// Nothing more is drawn.
  void end();
  /// Whether the last checkpoint is long ago: epochs may take hours.
  bool wants_checkpoint() const;

  /// Calls f, and counts its time.
  template <class F>
  auto timed(double TrainCosts::*cost, const F& f) {
    const auto begin = Clock::now();
    const auto count = [&] {
      costs_.*cost += std::chrono::duration<double>(Clock::now() - begin).count();
      last_pause_ = Clock::now();
    };
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      count();
    } else {
      auto result = f();
      count();
      return result;
    }
  }

  double seconds() const;
  /// Of all steps; none where an earlier run made the first ones.
  const std::vector<double>& step_losses() const { return step_losses_; }
  std::vector<CostRow> cost_rows() const;

 private:
  using Clock = std::chrono::steady_clock;

  TrainWatchOptions options_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_pause_ = Clock::now();
  ProgressLine line_;
  TrainCosts costs_;
  Index steps_ = 0;  ///< of this run
  Index epoch_samples_ = 0;
  Index epoch_labels_ = 0;
  Index epoch_correct_ = 0;
  double epoch_loss_ = 0;
  double step_seconds_ = 0;  ///< of steps without a new program, and waiting for their data
  Clock::time_point last_step_ = Clock::now();
  Clock::time_point epoch_begin_ = Clock::now();
  Index counted_ = 0;
  double rate_ = 0;
  std::vector<double> step_losses_;
};

/// The table of a summary, within the terminal's width.
std::string summary_table(const nn::Summary& summary, const Terminal& terminal);

/// One line of JSON on standard output, written at once.
void print_json_line(const Json& json);

/// Bytes of memory that this process had at most.
std::size_t peak_memory();

}  // namespace fenestra::cli
