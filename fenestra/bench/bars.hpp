// The bars that results are held against, each a ratio inside one run.
#pragma once

#include <fenestra/bench/record.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fenestra::bench {

/// One bar over the cases it speaks of: what each of them must reach, their geometric mean, or
/// both.
struct Bar {
  std::string text;
  std::optional<double> each;
  std::optional<double> mean = {};
  bool at_least = true;  ///< values must be at least that much; at most otherwise

  double log_sum = 0;
  double worst = 0;
  std::string worst_case = {};
  std::string worst_kernel = {};
  std::optional<double> worst_share = {};  ///< of the peak, or of copy speed
  int cases = 0;
  int missed = 0;  ///< of the cases, by `each`

  void count(double value, const Result& result);
  void count(double value,
             const std::string& label,
             const std::string& kernel,
             std::optional<double> share);
  double geometric_mean() const;
  bool holds() const;
  /// What is needed: ">= 0.90, mean >= 1.10".
  std::string needed() const;
  /// What there is: "mean 1.21, worst 0.85", or the one figure there is.
  std::string found() const;
};

/// In the order in which they are printed, those without a case too.
std::vector<Bar> judge(const Record& record);

/// A choice is right where it takes at most so much of the time of the best candidate.
inline constexpr double kRightChoice = 1.10;
/// The part of the choices of an instruction set that are right.
double right_share(const std::vector<Choice>& choices, const std::string& isa);

/// Of the ratios that are there; nothing where there are none.
std::optional<double> geometric_mean(const std::vector<Result>& results,
                                     std::optional<double> (Result::*ratio)() const);

}  // namespace fenestra::bench
