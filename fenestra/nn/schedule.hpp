// Learning rates as functions of the step, counted from 0. Plain values: keep one, ask it before
// each step.
#pragma once

#include <fenestra/base/error.hpp>

#include <cmath>
#include <numbers>
#include <string>

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
      throw Error(ErrorCode::invalid_extent,
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
      throw Error(ErrorCode::invalid_extent,
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

}  // namespace fenestra::nn
