// The cases of the bench: lines of cases.txt, and what is measured of each.
#pragma once

#include <fenestra/base/error.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::bench {

struct Case {
  std::string name;
  std::string op;
  std::string directions;  ///< letters of "FDWTSICP"
  std::vector<std::string> tags;
  std::string problem;  ///< N stands for the batch

  bool has(std::string_view tag) const;
  /// Whether every peer is weak in this direction.
  bool is_weak(char direction) const;
  /// What follows a tag's prefix, e.g. 2 in "step:2".
  std::optional<double> number(std::string_view prefix) const;
  bool is_double() const { return has("f64"); }
  bool is_fast() const { return has("fast"); }
  bool has_batch() const;
  std::string with_batch(Index batch) const;
};

/// Throws `bad_problem` with the line that does not parse.
std::vector<Case> read_cases(const std::string& file);

/// Whether the direction is one of a compiled model.
constexpr bool is_compiled(char direction) { return direction == 'C' || direction == 'P'; }

/// One case in one direction, batch and number of threads. Seconds are medians.
struct Result {
  Case what;
  char direction = 'F';
  Index batch = 0;  ///< 0 where the problem fixes it
  int threads = 1;
  std::string problem;
  std::string kernel;  ///< that ran, with the instruction set
  double ours = 0;
  double limit = 0;             ///< of the machine: flops at peak, or bytes at copy speed; 0: none
  std::optional<double> plain;  ///< oneDNN, plain tensors in and out
  std::optional<double> any;    ///< oneDNN in its own layout, reorders not counted
  std::optional<double> torch;
  std::optional<double> strict;        ///< ours under Numerics::strict, where `ours` is fast
  std::optional<double> eager;         ///< ours uncompiled, where `ours` is compiled
  std::optional<double> memory;        ///< bytes a compiled training step takes at most
  std::optional<double> torch_memory;  ///< the same of torch

  /// How many times faster than the peer; above 1 is ours.
  std::optional<double> against_plain() const;
  std::optional<double> against_torch() const;
  std::optional<double> against_best() const;
  std::optional<double> against_strict() const;
  std::optional<double> against_eager() const;
  std::string label() const;
};

}  // namespace fenestra::bench
