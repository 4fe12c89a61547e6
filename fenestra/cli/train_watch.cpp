// The lines of a training.
#include <fenestra/base/text.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/train_watch.hpp>
#include <fenestra/cli/units.hpp>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace fenestra::cli {

namespace {

constexpr double kCheckpointSeconds = 60;

double seconds_between(std::chrono::steady_clock::time_point a,
                       std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

Json finite_json(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

std::string dashed(Index count) { return count == 0 ? "-" : grouped(count); }

}  // namespace

TrainWatch::TrainWatch(const TrainWatchOptions& options) : options_(options) {}

void TrainWatch::step(const nn::StepResult& step) {
  const auto now = Clock::now();
  (step.traced ? costs_.programs : costs_.steps) += step.seconds;
  // The time between steps is waiting for data, but not what was done in a pause.
  if (!step.traced) {
    step_seconds_ += seconds_between(std::max(last_step_, last_pause_), now);
    ++counted_;
  }
  last_step_ = now;
  ++steps_;
  epoch_samples_ += step.samples;
  epoch_labels_ += step.labels;
  epoch_correct_ += step.correct;
  epoch_loss_ += step.loss * static_cast<double>(step.samples);
  rate_ = step.rate;
  if (options_.done == 0) {
    step_losses_.push_back(step.loss);
  }
  line_.show([&] {
    const Index total = options_.epochs * options_.batches;
    const Index at = options_.done + steps_;
    const double each = counted_ > 0 ? step_seconds_ / static_cast<double>(counted_) : step.seconds;
    std::string details = "loss " + decimal(epoch_loss_ / static_cast<double>(epoch_samples_), 4);
    if (epoch_labels_ > 0) {
      details +=
          "  " +
          decimal(100 * static_cast<double>(epoch_correct_) / static_cast<double>(epoch_labels_),
                  1) +
          " %";
    }
    details +=
        "  " + time_text(each * static_cast<double>(std::max<Index>(0, total - at))) + " left";
    details +=
        "  " +
        grouped(static_cast<Index>(static_cast<double>(step.samples) / std::max(each, 1e-9))) +
        " samples/s";
    return ProgressState{
        .label = "epoch " +
                 std::to_string(std::min(options_.epochs, step.step / options_.batches + 1)) + "/" +
                 std::to_string(options_.epochs),
        .part = static_cast<double>(at) / static_cast<double>(std::max<Index>(1, total)),
        .details = std::move(details)};
  });
}

EpochRow TrainWatch::epoch(const nn::EpochResult& epoch) {
  const bool has_score = epoch.validation && options_.task != nn::Task::reconstruction;
  EpochRow row{.epoch = epoch.epoch + 1,
               .training_loss = epoch.loss,
               .validation_loss = epoch.validation ? epoch.validation->loss : kUnknown,
               .score = has_score ? epoch.validation->score() : kUnknown,
               .seconds = epoch.seconds,
               .learning_rate = rate_};
  if (epoch.validation) {
    costs_.evaluation += epoch.validation->seconds;
  }
  const double rate = epoch.seconds > 0 ? static_cast<double>(epoch_samples_) / epoch.seconds : 0;
  if (options_.json) {
    print_json_line({{"event", "epoch"},
                     {"epoch", row.epoch},
                     {"of", options_.epochs},
                     {"loss", finite_json(row.training_loss)},
                     {"accuracy",
                      epoch.labels > 0 ? Json(static_cast<double>(epoch.correct) /
                                              static_cast<double>(epoch.labels))
                                       : Json(nullptr)},
                     {"held_out_loss", finite_json(row.validation_loss)},
                     {"held_out_score", finite_json(row.score)},
                     {"samples_per_second", rate},
                     {"seconds", row.seconds},
                     {"rate", row.learning_rate},
                     {"best", epoch.is_best}});
  } else {
    line_.clear();
    struct Part {
      std::string text;
      int rank = 0;  ///< the higher, the sooner it is left out where there is no room
    };
    std::vector<Part> parts{{"epoch " + std::to_string(row.epoch) + "/" +
                             std::to_string(options_.epochs) + "  loss " +
                             decimal(row.training_loss, 4)}};
    if (epoch.labels > 0) {
      const double share = static_cast<double>(epoch.correct) / static_cast<double>(epoch.labels);
      parts.push_back({"  right " + decimal(100 * share, 2) + " %", 1});
    }
    if (epoch.validation) {
      parts.push_back({"  held out: loss " + decimal(row.validation_loss, 4)});
    }
    if (has_score) {
      parts.push_back({options_.task == nn::Task::segmentation
                           ? ", mean IoU " + decimal(row.score, 4)
                           : ", " + decimal(100 * row.score, 2) + " %"});
    }
    parts.push_back({"  " + time_text(row.seconds), 2});
    parts.push_back({", " + grouped(static_cast<Index>(rate)) + " samples/s", 3});
    const auto line_up_to = [&](int rank) {
      std::string line;
      for (const Part& part : parts) {
        line += part.rank <= rank ? part.text : "";
      }
      return line;
    };
    const Terminal terminal = terminal_of(Stream::err);
    int rank = 3;
    while (terminal.is_live && rank > 0 && display_width(line_up_to(rank)) > terminal.width) {
      --rank;
    }
    const std::string text =
        terminal.is_live ? shortened_end(line_up_to(rank), terminal.width, terminal.has_unicode)
                         : line_up_to(rank);
    std::cerr << text << "\n" << std::flush;
  }
  epoch_samples_ = 0;
  epoch_labels_ = 0;
  epoch_correct_ = 0;
  epoch_loss_ = 0;
  last_pause_ = Clock::now();
  return row;
}

void TrainWatch::end() { line_.clear(); }

bool TrainWatch::wants_checkpoint() const {
  return seconds_between(last_pause_, Clock::now()) > kCheckpointSeconds;
}

double TrainWatch::seconds() const { return seconds_between(begin_, Clock::now()); }

std::vector<CostRow> TrainWatch::cost_rows() const {
  const double known =
      costs_.steps + costs_.programs + costs_.evaluation + costs_.checkpoints + costs_.gradients;
  std::vector<CostRow> rows;
  const auto add = [&](const char* name, double seconds) {
    if (seconds > 0) {
      rows.push_back({.name = name, .milliseconds = 1e3 * seconds});
    }
  };
  add("training steps", costs_.steps);
  add("first steps, with making their programs", costs_.programs);
  add("evaluation of held-out samples", costs_.evaluation);
  add("checkpoints", costs_.checkpoints);
  add("check of gradients", costs_.gradients);
  add("waiting for data, and the rest", std::max(0.0, seconds() - known));
  return rows;
}

std::string summary_table(const nn::Summary& summary, const Terminal& terminal) {
  const auto by = [](const auto& list) {
    std::string text;
    for (const Index extent : list) {
      text += (text.empty() ? "" : "x") + std::to_string(extent);
    }
    return text;
  };
  std::vector<std::vector<std::string>> rows{
      {"name", "layer", "output", "parameters", "multiply-adds", "sees"}};
  for (const nn::SummaryRow& row : summary.rows) {
    rows.push_back({row.name.empty() ? "-" : row.name,
                    row.kind,
                    by(row.output),
                    dashed(row.parameters),
                    dashed(row.multiply_adds),
                    row.receptive_field.empty() ? "all" : by(row.receptive_field)});
  }
  rows.push_back({"total",
                  "",
                  by(summary.output),
                  grouped(summary.parameters),
                  grouped(summary.multiply_adds),
                  ""});
  return table_text(
      rows,
      {.align = {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right},
       .has_header = true,
       .has_footer = true,
       .indent = 0},
      terminal);
}

void print_json_line(const Json& json) {
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
}

std::size_t peak_memory() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

}  // namespace fenestra::cli
