// One thing to time: a call on tensors it owns, with what the call costs.
#pragma once

#include <fenestra/bench/case.hpp>
#include <fenestra/kernels/numerics.hpp>

#include <functional>
#include <optional>
#include <string>

namespace fenestra::bench {

struct Work {
  std::function<void()> run;
  std::string kernel;
  double flops = 0;                   ///< 0 where memory is the limit
  double bytes = 0;                   ///< of all operands, each once
  std::optional<double> memory = {};  ///< bytes a step takes at most, where it was measured
};

/// Ours: the eager operator as people call it, plain tensors in and out.
Work make_ours(const Case& what, char direction, const std::string& problem, Numerics numerics);

/// A whole network of ours: S a training step, I inference; C and P the same, compiled.
bool is_model(const Case& what);
Work make_model(const Case& what, char direction, const std::string& problem);

/// oneDNN's. `run` is empty where it has no such operator; see onednn.cpp for the two forms.
struct OnednnWork {
  std::function<void()> plain;          ///< on plain tensors
  std::function<void()> with_reorders;  ///< in its own layout, from and to plain tensors
  std::function<void()> own_layout;     ///< in its own layout throughout
};
OnednnWork make_onednn(const Case& what, char direction, const std::string& problem, int threads);

/// Whether this program was built with oneDNN, and its version.
std::string onednn_version();

}  // namespace fenestra::bench
