// The bars that eager results are held against, each a ratio inside one run.
#pragma once

#include <fenestra/bench/case.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fenestra::bench {

/// One bar: the worst case of those it speaks of.
struct Bar {
  std::string text;
  double needed = 0;
  bool at_least = true;  ///< the value must be at least `needed`; at most otherwise
  double worst = 0;
  std::string worst_case;
  int cases = 0;
  int missed = 0;

  bool holds() const { return cases > 0 && missed == 0; }
};

std::vector<Bar> judge(const std::vector<Result>& results);

/// Of the ratios that are there; nothing where there are none.
std::optional<double> geometric_mean(const std::vector<Result>& results,
                                     std::optional<double> (Result::*ratio)() const);

}  // namespace fenestra::bench
