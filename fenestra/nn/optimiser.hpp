// Optimisers on trees of tensors (see ops/tree.hpp): stochastic gradient descent, Adam, AdamW.
//
// `step` changes the parameters in place; a parameter that shares its storage (with a tape that
// still lives, say) gets storage of its own first; a step that throws has changed nothing. The
// state follows the order of the parameters and is made by the first step. Values do not depend on
// the number of threads. One optimiser belongs to one thread at a time.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/tree.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::nn {

struct SgdOptions {
  double rate = 0.01;       ///< learning rate
  double momentum = 0;      ///< 0 <= momentum < 1
  bool nesterov = false;    ///< needs momentum
  double weight_decay = 0;  ///< adds weight_decay * w to the gradient
};

struct AdamOptions {
  double rate = 0.001;  ///< learning rate
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< Adam: adds weight_decay * w to the gradient
  bool decoupled = false;   ///< AdamW: shrinks w by rate * weight_decay instead
};

namespace detail {

// The updates of one tensor of n elements, compiled for float and double in optimiser.cpp.

/// `velocity` is null without momentum; `first` starts it with the gradient.
template <KernelScalar T>
void sgd_kernel(T* w, const T* w_bar, T* velocity, Index n, const SgdOptions& options, bool first);
/// `step` counts from 1.
template <KernelScalar T>
void adam_kernel(
    T* w, const T* w_bar, T* mean, T* square, Index n, const AdamOptions& options, Index step);

inline void require_option(std::string_view optimiser,
                           std::string_view option,
                           double value,
                           bool fits,
                           std::string_view needed) {
  if (!fits) {
    throw Error(ErrorCode::invalid_extent,
                std::string(optimiser) + ": " + std::string(option) + " = " +
                    std::to_string(value) + "\n  fix: " + std::string(needed));
  }
}

/// Parameters to write and gradients to read, matched and checked.
template <KernelScalar T>
struct Update {
  std::vector<Tensor<T>*> parameters;
  std::vector<Tensor<T>> gradients;

  template <class Params, class Grads>
  Update(std::string_view optimiser, Params& params, const Grads& grads)
      : gradients(tree_flatten(grads)) {
    for_each_tensor(params, [&](Tensor<T>& value) { parameters.push_back(&value); });
    if (parameters.size() != gradients.size()) {
      throw Error(std::string(optimiser),
                  {.code = ErrorCode::shape_mismatch,
                   .argument = Argument::w,
                   .got = static_cast<Index>(gradients.size()),
                   .needed = static_cast<Index>(parameters.size())},
                  std::string(optimiser) + ": " + std::to_string(parameters.size()) +
                      " parameters, " + std::to_string(gradients.size()) +
                      " gradients\n  fix: one gradient per parameter");
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      require_equal(optimiser, i, gradients[i], "its gradient");
    }
  }

  /// State tensors as the parameters are shaped, zeros where there are none yet.
  void fit(std::string_view optimiser, std::vector<Tensor<T>>& state) const {
    if (state.empty()) {
      std::vector<Tensor<T>> zeros;
      for (const Tensor<T>* parameter : parameters) {
        zeros.emplace_back(parameter->shape());
      }
      state = std::move(zeros);
    }
    if (state.size() != parameters.size()) {
      throw Error(std::string(optimiser),
                  {.code = ErrorCode::shape_mismatch,
                   .argument = Argument::w,
                   .got = static_cast<Index>(parameters.size()),
                   .needed = static_cast<Index>(state.size())},
                  std::string(optimiser) + ": " + std::to_string(parameters.size()) +
                      " parameters, its state is of " + std::to_string(state.size()) +
                      "\n  fix: the same parameters in every step, in one order");
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      require_equal(optimiser, i, state[i], "the optimiser's state");
    }
  }

  /// Gives everything that a step writes storage of its own, so that the step itself allocates
  /// nothing and is done whole or not at all.
  void make_writable(std::initializer_list<std::vector<Tensor<T>>*> states) const {
    for (Tensor<T>* parameter : parameters) {
      parameter->mutable_data();
    }
    for (std::vector<Tensor<T>>* state : states) {
      for (Tensor<T>& tensor : *state) {
        tensor.mutable_data();
      }
    }
  }

 private:
  void require_equal(std::string_view optimiser,
                     std::size_t i,
                     const Tensor<T>& other,
                     std::string_view what) const {
    if (parameters[i]->shape() != other.shape()) {
      throw Error(std::string(optimiser),
                  {.code = ErrorCode::shape_mismatch, .argument = Argument::w},
                  std::string(optimiser) + ": parameter " + std::to_string(i) + " = " +
                      to_string(parameters[i]->shape()) + ", " + std::string(what) + " = " +
                      to_string(other.shape()) + "\n  fix: equal shapes, in the same order");
    }
  }
};

}  // namespace detail

/// What an optimiser remembers between steps; to be stored and restored with the parameters.
template <class T>
struct SgdState {
  std::vector<Tensor<T>> velocity = {};  ///< empty before the first step and without momentum
};
template <class T>
struct AdamState {
  Index steps = 0;
  std::vector<Tensor<T>> mean = {};    ///< of the gradients
  std::vector<Tensor<T>> square = {};  ///< mean of their squares
};

/// v = momentum * v + g, w -= rate * v; with nesterov w -= rate * (g + momentum * v). The first v
/// is g.
template <KernelScalar T>
class Sgd {
 public:
  explicit Sgd(const SgdOptions& options = {}) : options_(options) {
    set_rate(options.rate);
    detail::require_option("sgd",
                           "momentum",
                           options.momentum,
                           options.momentum >= 0 && options.momentum < 1,
                           "0 <= momentum < 1");
    detail::require_option("sgd",
                           "weight_decay",
                           options.weight_decay,
                           std::isfinite(options.weight_decay) && options.weight_decay >= 0,
                           "weight_decay >= 0");
    detail::require_option("sgd",
                           "momentum",
                           options.momentum,
                           !options.nesterov || options.momentum > 0,
                           "momentum > 0 with nesterov");
  }

  const SgdOptions& options() const { return options_; }
  void set_rate(double rate) {
    detail::require_option("sgd", "rate", rate, std::isfinite(rate) && rate >= 0, "rate >= 0");
    options_.rate = rate;
  }
  const SgdState<T>& state() const { return state_; }
  void restore(SgdState<T> state) { state_ = std::move(state); }

  /// One update of all parameters by their gradients: two trees with equal shapes in equal places.
  template <Tree Params, Tree Grads>
  void step(Params& params, const Grads& grads) {
    const detail::Update<T> update("sgd", params, grads);
    const bool first = state_.velocity.empty();
    if (options_.momentum > 0) {
      update.fit("sgd", state_.velocity);
    }
    update.make_writable({&state_.velocity});
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      Tensor<T>& w = *update.parameters[i];
      T* velocity = options_.momentum > 0 ? state_.velocity[i].mutable_data() : nullptr;
      detail::sgd_kernel(
          w.mutable_data(), update.gradients[i].data(), velocity, w.size(), options_, first);
    }
  }

 private:
  SgdOptions options_;
  SgdState<T> state_;
};

/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, both divided by 1 - beta^steps, w -=
/// rate * m/(sqrt(v) + epsilon).
template <KernelScalar T>
class Adam {
 public:
  explicit Adam(const AdamOptions& options = {}) : options_(options) {
    set_rate(options.rate);
    detail::require_option(
        "adam", "beta1", options.beta1, options.beta1 >= 0 && options.beta1 < 1, "0 <= beta1 < 1");
    detail::require_option(
        "adam", "beta2", options.beta2, options.beta2 >= 0 && options.beta2 < 1, "0 <= beta2 < 1");
    detail::require_option("adam",
                           "epsilon",
                           options.epsilon,
                           std::isfinite(options.epsilon) && options.epsilon > 0,
                           "epsilon > 0");
    detail::require_option("adam",
                           "weight_decay",
                           options.weight_decay,
                           std::isfinite(options.weight_decay) && options.weight_decay >= 0,
                           "weight_decay >= 0");
  }

  const AdamOptions& options() const { return options_; }
  void set_rate(double rate) {
    detail::require_option("adam", "rate", rate, std::isfinite(rate) && rate >= 0, "rate >= 0");
    options_.rate = rate;
  }
  const AdamState<T>& state() const { return state_; }
  void restore(AdamState<T> state) { state_ = std::move(state); }

  /// One update of all parameters by their gradients: two trees with equal shapes in equal places.
  template <Tree Params, Tree Grads>
  void step(Params& params, const Grads& grads) {
    const detail::Update<T> update("adam", params, grads);
    update.fit("adam", state_.mean);
    update.fit("adam", state_.square);
    update.make_writable({&state_.mean, &state_.square});
    ++state_.steps;
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      Tensor<T>& w = *update.parameters[i];
      detail::adam_kernel(w.mutable_data(),
                          update.gradients[i].data(),
                          state_.mean[i].mutable_data(),
                          state_.square[i].mutable_data(),
                          w.size(),
                          options_,
                          state_.steps);
    }
  }

 private:
  AdamOptions options_;
  AdamState<T> state_;
};

/// Adam with decoupled weight decay, 0.01 unless said otherwise.
template <KernelScalar T>
Adam<T> adamw(AdamOptions options = {.weight_decay = 0.01}) {
  options.decoupled = true;
  return Adam<T>(options);
}

}  // namespace fenestra::nn
