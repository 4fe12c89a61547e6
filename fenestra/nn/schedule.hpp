// Learning rates as functions of the step, counted from 0. Plain values: keep one, ask it before
// each step. `Schedule` is any of them, with a text form:
//
//   const auto schedule = nn::Schedule::parse("cosine warmup=100");
//   optimiser.set_rate(0.1 * schedule.of_run(epochs * batches, batches)(step));
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>

namespace fenestra::nn {

struct ConstantRate {
  double rate = 0.001;

  double operator()(Index) const { return rate; }
};

/// rate * factor^(number of whole periods of `every` steps so far).
struct StepRate {
  double rate = 0.1;
  Index every = 1;
  double factor = 0.1;

  double operator()(Index step) const {
    if (every < 1) {
      throw Error(ErrorCode::invalid_option,
                  "StepRate: every = " + std::to_string(every) + "\n  fix: every >= 1");
    }
    return rate * std::pow(factor, static_cast<double>(step / every));
  }
};

/// From `rate` at step 0 along half a cosine to `least` at step `steps`, where it stays. With
/// `warmup` > 0 the rate first rises in equal parts over that many steps, and the cosine takes what
/// is left.
struct CosineRate {
  double rate = 0.1;
  Index steps = 1;
  double least = 0;
  Index warmup = 0;

  double operator()(Index step) const {
    if (steps < 1 || warmup < 0 || warmup >= steps) {
      throw Error(ErrorCode::invalid_option,
                  "CosineRate: steps = " + std::to_string(steps) +
                      ", warmup = " + std::to_string(warmup) + "\n  fix: 0 <= warmup < steps");
    }
    if (step < warmup) {
      return rate * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    }
    if (step >= steps) {
      return least;
    }
    const double part = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
    return least + (rate - least) * (1 + std::cos(std::numbers::pi * part)) / 2;
  }
};

/// From `rate` in equal parts to `least` at step `steps`, where it stays.
struct LinearRate {
  double rate = 0.1;
  Index steps = 1;
  double least = 0;

  double operator()(Index step) const {
    if (steps < 1) {
      throw Error(ErrorCode::invalid_option,
                  "LinearRate: steps = " + std::to_string(steps) + "\n  fix: steps >= 1");
    }
    if (step >= steps) {
      return least;
    }
    return rate + (least - rate) * (static_cast<double>(step) / static_cast<double>(steps));
  }
};

/// Up and down again (Smith, "Super-convergence", 2018): along half a cosine from rate/divisor to
/// `rate` over the share `rise` of the steps, then along another to rate/divisor/final_divisor at
/// the last step, steps - 1, where it stays.
struct OneCycleRate {
  double rate = 0.1;
  Index steps = 2;
  double rise = 0.3;
  double divisor = 25;
  double final_divisor = 1e4;

  double operator()(Index step) const {
    if (steps < 2 || !(rise >= 0 && rise <= 1) || !(divisor > 0) || !(final_divisor > 0)) {
      throw Error(ErrorCode::invalid_option,
                  "OneCycleRate: steps = " + std::to_string(steps) + ", rise = " +
                      std::to_string(rise) + ", divisor = " + std::to_string(divisor) +
                      ", final_divisor = " + std::to_string(final_divisor) +
                      "\n  fix: steps >= 2, 0 <= rise <= 1, divisors > 0");
    }
    const double start = rate / divisor;
    const double end = start / final_divisor;
    const double last = static_cast<double>(steps) - 1;
    // The top lies at this step, which need not be a whole one.
    const double top = std::max(0.0, rise * static_cast<double>(steps) - 1);
    const double at = std::min(static_cast<double>(step), last);
    const auto along = [](double from, double to, double part) {
      return to + (from - to) * (1 + std::cos(std::numbers::pi * part)) / 2;
    };
    return at <= top && top > 0 ? along(start, rate, at / top)
                                : along(rate, end, (at - top) / (last - top));
  }
};

/// A length of training, in steps or in epochs.
struct TrainingSpan {
  double amount = 0;
  bool epochs = false;

  friend bool operator==(const TrainingSpan&, const TrainingSpan&) = default;
};

/// Any of the schedules, as factors of a rate: 1 is the full rate. Text forms, options in any order
/// and with these defaults:
///
///   constant
///   step every=1epochs factor=0.1
///   cosine least=0
///   linear least=0
///   one-cycle rise=0.3 divisor=25 final_divisor=10000
///
/// all but one-cycle also with warmup=SPAN (rising in equal parts first), cosine, linear and
/// one-cycle also with steps=SPAN, else as long as the run. A span is a number of steps, or of
/// epochs: every=10epochs.
class FENESTRA_API Schedule {
 public:
  enum class Kind { constant, step, cosine, linear, one_cycle };

  Schedule() = default;
  /// Throws `unknown_choice` for a word that it does not know, or `invalid_option`.
  static Schedule parse(std::string_view text);
  /// What `parse` reads.
  std::string text() const;

  /// The same schedule with all spans in steps: for a run of so many steps, with so many in each
  /// epoch.
  Schedule of_run(Index steps, Index steps_per_epoch) const;
  /// Whether every span is known in steps.
  bool is_resolved() const;
  /// The factor at a step. Throws `invalid_option` where a span is not known in steps.
  double operator()(Index step) const;

  friend bool operator==(const Schedule&, const Schedule&) = default;

 private:
  Kind kind_ = Kind::constant;
  TrainingSpan warmup_;
  TrainingSpan steps_;  ///< 0: as long as the run
  TrainingSpan every_ = {1, true};
  double factor_ = 0.1;
  double least_ = 0;
  double rise_ = 0.3;
  double divisor_ = 25;
  double final_divisor_ = 1e4;
};

}  // namespace fenestra::nn
