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
  /// What follows a tag's prefix, e.g. 2 in "step:2".
  std::optional<double> number(std::string_view prefix) const;
  /// What follows a tag's prefix, as it is written; empty without such a tag.
  std::string word(std::string_view prefix) const;
  bool is_double() const { return has("f64"); }
  bool is_fast() const { return has("fast"); }
  bool is_channels_last() const { return has("last"); }
  bool is_conv() const { return op == "conv" || op == "conv_transpose"; }
  bool has_batch() const;
  std::string with_batch(Index batch) const;
};

/// Lines that stand for several cases (`both`, `grows:`) come as those. Throws `bad_file` with
/// the line that does not parse.
std::vector<Case> read_cases(const std::string& file);

/// Whether the direction is one of a compiled model.
constexpr bool is_compiled(char direction) { return direction == 'C' || direction == 'P'; }

/// Seconds of all runs in all turns.
struct Times {
  double median = 0;
  double least = 0;
};

/// One case in one direction, batch and number of threads. Ratios are those of medians.
struct Result {
  Case what;
  char direction = 'F';
  Index batch = 0;  ///< 0 where the problem fixes it
  int threads = 1;
  std::string problem;
  std::string kernel;  ///< that ran, with the instruction set
  Times ours;
  double bytes = 0;            ///< of all operands, each once
  double limit = 0;            ///< of the machine: flops at peak, or bytes at copy speed; 0: none
  std::optional<Times> plain;  ///< oneDNN at its best, tensors in and out in the case's layout
  std::optional<Times> any;    ///< oneDNN in its own layout, reorders not counted
  std::optional<Times> torch;
  std::optional<Times> xnnpack;        ///< with weights that it packed before
  std::optional<Times> strict;         ///< ours under Numerics::strict, where `ours` is fast
  std::optional<Times> eager;          ///< ours uncompiled, where `ours` is compiled
  std::optional<double> memory;        ///< bytes a compiled training step takes at most
  std::optional<double> torch_memory;  ///< the same of torch

  /// How many times faster than the peer; above 1 is ours.
  std::optional<double> against_plain() const;
  std::optional<double> against_torch() const;
  /// The peer that took least, where one has this operator; oneDNN with tensors as the case has
  /// them.
  struct Peer {
    std::string_view name;
    Times times;
  };
  std::optional<Peer> best_peer() const;
  std::optional<double> against_best() const;
  std::optional<double> against_strict() const;
  std::optional<double> against_eager() const;
  /// Of the peak, or of copy speed; nothing where there is no limit.
  std::optional<double> share() const;
  std::string label() const;
};

}  // namespace fenestra::bench
