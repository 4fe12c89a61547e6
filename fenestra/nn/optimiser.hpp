// Optimisers on trees of tensors (see engine/tree.hpp), models made of layers among them:
// stochastic gradient descent, Adam, AdamW, RMSprop, Lion, LAMB. Any of them behind one type:
// any_optimiser.hpp.
//
//   const auto [loss, gradients] = value_and_grad(f, model);
//   optimiser.step(model, gradients);
//
// `step` changes the parameters in place; a parameter that shares its storage (with a tape that
// still lives, say) gets storage of its own first; a step that throws has changed nothing. The
// state follows the order of the parameters and is made by the first step. Values do not depend on
// the number of threads. One optimiser belongs to one thread at a time.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/tree.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
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

struct RmsPropOptions {
  double rate = 0.01;       ///< learning rate
  double smoothing = 0.99;  ///< of the mean square, 0 <= smoothing < 1
  double epsilon = 1e-8;
  double momentum = 0;      ///< 0 <= momentum < 1
  bool centred = false;     ///< divides by the deviation instead of the root of the mean square
  double weight_decay = 0;  ///< adds weight_decay * w to the gradient
};

struct LionOptions {
  double rate = 1e-4;  ///< learning rate, the size of every change
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;  ///< shrinks w by rate * weight_decay
};

struct LambOptions {
  double rate = 0.001;  ///< learning rate
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;  ///< adds weight_decay * w to the direction
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

/// `momentum` is null where the option is 0, `mean` where nothing is centred.
template <KernelScalar T>
void rmsprop_kernel(
    T* w, const T* w_bar, T* square, T* mean, T* momentum, Index n, const RmsPropOptions& options);
template <KernelScalar T>
void lion_kernel(T* w, const T* w_bar, T* mean, Index n, const LionOptions& options);
/// `step` counts from 1. `partial` has room for lamb_partials(n) numbers.
template <KernelScalar T>
void lamb_kernel(T* w,
                 const T* w_bar,
                 T* mean,
                 T* square,
                 Index n,
                 const LambOptions& options,
                 Index step,
                 double* partial);
FENESTRA_API Index lamb_partials(Index n);

inline void require_option(std::string_view optimiser,
                           std::string_view option,
                           double value,
                           bool fits,
                           std::string_view needed) {
  if (!fits) {
    throw Error(ErrorCode::invalid_option,
                std::string(optimiser) + ": " + std::string(option) + " = " +
                    std::to_string(value) + "\n  fix: " + std::string(needed));
  }
}

inline void require_rate(std::string_view optimiser, double rate) {
  require_option(optimiser, "rate", rate, std::isfinite(rate) && rate >= 0, "rate >= 0");
}
inline void require_fraction(std::string_view optimiser, std::string_view option, double value) {
  require_option(
      optimiser, option, value, value >= 0 && value < 1, "0 <= " + std::string(option) + " < 1");
}
inline void require_epsilon(std::string_view optimiser, double epsilon) {
  require_option(
      optimiser, "epsilon", epsilon, std::isfinite(epsilon) && epsilon > 0, "epsilon > 0");
}
inline void require_decay(std::string_view optimiser, double decay) {
  require_option(
      optimiser, "weight_decay", decay, std::isfinite(decay) && decay >= 0, "weight_decay >= 0");
}

/// The numbers of a value in a tree, which may be a tensor itself.
template <class T, class V>
auto& numbers_of(std::string_view optimiser, V& value) {
  if constexpr (std::is_same_v<std::remove_const_t<V>, Value<T>>) {
    if (value.level() != 0) {
      throw Error(std::string(optimiser),
                  {.code = ErrorCode::foreign_variable, .argument = Argument::w},
                  std::string(optimiser) + ": a value " + to_string(value.shape()) +
                      " belongs to a transform, a tape or a compiled function\n  fix: step outside "
                      "of it; in a program, compile_step");
    }
    return value.plain();
  } else {
    static_assert(std::is_same_v<std::remove_const_t<V>, Tensor<T>>,
                  "fenestra: parameters and gradients have the optimiser's scalar");
    return value;
  }
}

/// A parameter, or elements of one that lie together and are moved as if they were one.
template <KernelScalar T>
class ParameterPiece {
 public:
  explicit ParameterPiece(Tensor<T>& whole) : whole_(&whole), shape_(whole.shape()) {}
  ParameterPiece(Tensor<T>& whole, Index begin, Index size)
      : whole_(&whole), begin_(begin), shape_{size} {}

  const Shape& shape() const { return shape_; }
  Index size() const { return shape_.elements().value(); }
  /// Gives the whole parameter storage of its own first, where it shares some.
  T* mutable_data() const { return whole_->mutable_data() + begin_; }

 private:
  Tensor<T>* whole_;
  Index begin_ = 0;
  Shape shape_;
};

/// Parameters to write and gradients to read, matched and checked.
template <KernelScalar T>
struct Update {
  std::vector<ParameterPiece<T>> parameters;
  std::vector<Tensor<T>> gradients;

  template <class Params, class Grads>
  Update(std::string_view optimiser, Params& params, const Grads& grads) {
    for_each_tensor(params, [&](auto& value) {
      parameters.push_back(ParameterPiece<T>(numbers_of<T>(optimiser, value)));
    });
    for_each_tensor(
        grads, [&](const auto& value) { gradients.push_back(numbers_of<T>(optimiser, value)); });
    require_fit(optimiser);
  }
  Update(std::string_view optimiser,
         std::vector<ParameterPiece<T>> params,
         std::span<const Tensor<T>> grads)
      : parameters(std::move(params)), gradients(grads.begin(), grads.end()) {
    require_fit(optimiser);
  }

  /// One gradient for each parameter, shaped as it is.
  void require_fit(std::string_view optimiser) const {
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
      for (const ParameterPiece<T>& parameter : parameters) {
        zeros.emplace_back(parameter.shape());
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
    for (const ParameterPiece<T>& parameter : parameters) {
      parameter.mutable_data();
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
    if (parameters[i].shape() != other.shape()) {
      throw Error(std::string(optimiser),
                  {.code = ErrorCode::shape_mismatch, .argument = Argument::w},
                  std::string(optimiser) + ": parameter " + std::to_string(i) + " = " +
                      to_string(parameters[i].shape()) + ", " + std::string(what) + " = " +
                      to_string(other.shape()) + "\n  fix: equal shapes, in the same order");
    }
  }
};

}  // namespace detail

/// What an optimiser remembers between steps; to be stored and restored with the parameters. Each
/// names its parts, in one order, for files.
template <class T>
struct SgdState {
  std::vector<Tensor<T>> velocity = {};  ///< empty before the first step and without momentum

  template <class F>
  void parts(F&& f) {
    f("velocity", velocity);
  }
};
template <class T>
struct AdamState {
  Index steps = 0;
  std::vector<Tensor<T>> mean = {};    ///< of the gradients
  std::vector<Tensor<T>> square = {};  ///< mean of their squares

  template <class F>
  void parts(F&& f) {
    f("mean", mean);
    f("square", square);
  }
};
template <class T>
struct RmsPropState {
  std::vector<Tensor<T>> square = {};    ///< mean of the squares of the gradients
  std::vector<Tensor<T>> mean = {};      ///< of the gradients; empty unless centred
  std::vector<Tensor<T>> velocity = {};  ///< empty without momentum

  template <class F>
  void parts(F&& f) {
    f("square", square);
    f("mean", mean);
    f("velocity", velocity);
  }
};
template <class T>
struct LionState {
  std::vector<Tensor<T>> mean = {};  ///< of the gradients

  template <class F>
  void parts(F&& f) {
    f("mean", mean);
  }
};

/// v = momentum * v + g, w -= rate * v; with nesterov w -= rate * (g + momentum * v). The first v
/// is g.
template <KernelScalar T>
class Sgd {
 public:
  explicit Sgd(const SgdOptions& options = {}) : options_(options) {
    set_rate(options.rate);
    detail::require_fraction("sgd", "momentum", options.momentum);
    detail::require_decay("sgd", options.weight_decay);
    detail::require_option("sgd",
                           "momentum",
                           options.momentum,
                           !options.nesterov || options.momentum > 0,
                           "momentum > 0 with nesterov");
  }

  const SgdOptions& options() const { return options_; }
  void set_rate(double rate) {
    detail::require_rate("sgd", rate);
    options_.rate = rate;
  }
  const SgdState<T>& state() const { return state_; }
  void restore(SgdState<T> state) { state_ = std::move(state); }

  /// One update of all parameters by their gradients: two trees with equal shapes in equal places.
  template <Tree Params, Tree Grads>
  void step(Params& params, const Grads& grads) {
    step(detail::Update<T>("sgd", params, grads));
  }
  void step(const detail::Update<T>& update) {
    const bool first = state_.velocity.empty();
    if (options_.momentum > 0) {
      update.fit("sgd", state_.velocity);
    }
    update.make_writable({&state_.velocity});
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const detail::ParameterPiece<T>& w = update.parameters[i];
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
    detail::require_fraction("adam", "beta1", options.beta1);
    detail::require_fraction("adam", "beta2", options.beta2);
    detail::require_epsilon("adam", options.epsilon);
    detail::require_decay("adam", options.weight_decay);
  }

  const AdamOptions& options() const { return options_; }
  void set_rate(double rate) {
    detail::require_rate("adam", rate);
    options_.rate = rate;
  }
  const AdamState<T>& state() const { return state_; }
  void restore(AdamState<T> state) { state_ = std::move(state); }

  /// One update of all parameters by their gradients: two trees with equal shapes in equal places.
  template <Tree Params, Tree Grads>
  void step(Params& params, const Grads& grads) {
    step(detail::Update<T>("adam", params, grads));
  }
  void step(const detail::Update<T>& update) {
    update.fit("adam", state_.mean);
    update.fit("adam", state_.square);
    update.make_writable({&state_.mean, &state_.square});
    ++state_.steps;
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const detail::ParameterPiece<T>& w = update.parameters[i];
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

/// s = smoothing * s + (1 - smoothing) g^2, d = g/(sqrt(s) + epsilon), w -= rate * d; centred, s is
/// reduced by the square of the equally smoothed g. With momentum v = momentum * v + d, w -= rate *
/// v.
template <KernelScalar T>
class RmsProp {
 public:
  explicit RmsProp(const RmsPropOptions& options = {}) : options_(options) {
    set_rate(options.rate);
    detail::require_fraction("rmsprop", "smoothing", options.smoothing);
    detail::require_fraction("rmsprop", "momentum", options.momentum);
    detail::require_epsilon("rmsprop", options.epsilon);
    detail::require_decay("rmsprop", options.weight_decay);
  }

  const RmsPropOptions& options() const { return options_; }
  void set_rate(double rate) {
    detail::require_rate("rmsprop", rate);
    options_.rate = rate;
  }
  const RmsPropState<T>& state() const { return state_; }
  void restore(RmsPropState<T> state) { state_ = std::move(state); }

  /// One update of all parameters by their gradients: two trees with equal shapes in equal places.
  template <Tree Params, Tree Grads>
  void step(Params& params, const Grads& grads) {
    step(detail::Update<T>("rmsprop", params, grads));
  }
  void step(const detail::Update<T>& update) {
    update.fit("rmsprop", state_.square);
    if (options_.centred) {
      update.fit("rmsprop", state_.mean);
    }
    if (options_.momentum > 0) {
      update.fit("rmsprop", state_.velocity);
    }
    update.make_writable({&state_.square, &state_.mean, &state_.velocity});
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const detail::ParameterPiece<T>& w = update.parameters[i];
      detail::rmsprop_kernel(w.mutable_data(),
                             update.gradients[i].data(),
                             state_.square[i].mutable_data(),
                             options_.centred ? state_.mean[i].mutable_data() : nullptr,
                             options_.momentum > 0 ? state_.velocity[i].mutable_data() : nullptr,
                             w.size(),
                             options_);
    }
  }

 private:
  RmsPropOptions options_;
  RmsPropState<T> state_;
};

/// w -= rate * (sign(beta1 m + (1 - beta1) g) + weight_decay * w), then m = beta2 m + (1 - beta2)
/// g.
template <KernelScalar T>
class Lion {
 public:
  explicit Lion(const LionOptions& options = {}) : options_(options) {
    set_rate(options.rate);
    detail::require_fraction("lion", "beta1", options.beta1);
    detail::require_fraction("lion", "beta2", options.beta2);
    detail::require_decay("lion", options.weight_decay);
  }

  const LionOptions& options() const { return options_; }
  void set_rate(double rate) {
    detail::require_rate("lion", rate);
    options_.rate = rate;
  }
  const LionState<T>& state() const { return state_; }
  void restore(LionState<T> state) { state_ = std::move(state); }

  /// One update of all parameters by their gradients: two trees with equal shapes in equal places.
  template <Tree Params, Tree Grads>
  void step(Params& params, const Grads& grads) {
    step(detail::Update<T>("lion", params, grads));
  }
  void step(const detail::Update<T>& update) {
    update.fit("lion", state_.mean);
    update.make_writable({&state_.mean});
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const detail::ParameterPiece<T>& w = update.parameters[i];
      detail::lion_kernel(w.mutable_data(),
                          update.gradients[i].data(),
                          state_.mean[i].mutable_data(),
                          w.size(),
                          options_);
    }
  }

 private:
  LionOptions options_;
  LionState<T> state_;
};

/// The direction of Adam and weight_decay * w, d, scaled for each tensor by |w|/|d| (1 where one of
/// them is zero): w -= rate * |w|/|d| * d.
template <KernelScalar T>
class Lamb {
 public:
  explicit Lamb(const LambOptions& options = {}) : options_(options) {
    set_rate(options.rate);
    detail::require_fraction("lamb", "beta1", options.beta1);
    detail::require_fraction("lamb", "beta2", options.beta2);
    detail::require_epsilon("lamb", options.epsilon);
    detail::require_decay("lamb", options.weight_decay);
  }

  const LambOptions& options() const { return options_; }
  void set_rate(double rate) {
    detail::require_rate("lamb", rate);
    options_.rate = rate;
  }
  const AdamState<T>& state() const { return state_; }
  void restore(AdamState<T> state) { state_ = std::move(state); }

  /// One update of all parameters by their gradients: two trees with equal shapes in equal places.
  template <Tree Params, Tree Grads>
  void step(Params& params, const Grads& grads) {
    step(detail::Update<T>("lamb", params, grads));
  }
  void step(const detail::Update<T>& update) {
    update.fit("lamb", state_.mean);
    update.fit("lamb", state_.square);
    update.make_writable({&state_.mean, &state_.square});
    Index partials = 0;
    for (const detail::ParameterPiece<T>& parameter : update.parameters) {
      partials = std::max(partials, detail::lamb_partials(parameter.size()));
    }
    std::vector<double> partial(static_cast<std::size_t>(partials));
    ++state_.steps;
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const detail::ParameterPiece<T>& w = update.parameters[i];
      detail::lamb_kernel(w.mutable_data(),
                          update.gradients[i].data(),
                          state_.mean[i].mutable_data(),
                          state_.square[i].mutable_data(),
                          w.size(),
                          options_,
                          state_.steps,
                          partial.data());
    }
  }

 private:
  LambOptions options_;
  AdamState<T> state_;
};

}  // namespace fenestra::nn
