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

/// Ours: the eager operator as people call it, tensors in the case's layout; P a compiled
/// convolution whose weights are constant.
Work make_ours(const Case& what, char direction, const std::string& problem, Numerics numerics);

/// A whole network of ours: S a training step, I inference; C and P the same, compiled.
bool is_model(const Case& what);
Work make_model(const Case& what, char direction, const std::string& problem);

/// oneDNN's. `run` is empty where it has no such operator; see onednn.cpp for the forms.
struct OnednnWork {
  std::function<void()> plain;           ///< on tensors in the case's layout
  std::function<void()> packed_weights;  ///< the same, but weights reordered into its own layout
  std::function<void()> with_reorders;   ///< in its own layout, from and to the case's
  std::function<void()> own_layout;      ///< in its own layout throughout
};
OnednnWork make_onednn(const Case& what, char direction, const std::string& problem, int threads);

/// Whether this program was built with oneDNN, and its version.
std::string onednn_version();

/// XNNPACK's convolution, which has its weights packed when it is made: a peer of compiled ones (P)
/// of two dimensions, channels last. Empty for everything else.
std::function<void()> make_xnnpack(const Case& what,
                                   char direction,
                                   const std::string& problem,
                                   int threads);
/// Whether this program was built with XNNPACK and the machine has what it needs.
bool has_xnnpack();

}  // namespace fenestra::bench
