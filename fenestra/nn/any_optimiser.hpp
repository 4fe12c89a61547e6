// Optimiser<T>: any of the optimisers of optimiser.hpp, by name, with its state under the names of
// the parameters. What the trainer, files, the tool and Python use.
//
//   auto optimiser = nn::Optimiser<float>::make("adamw", {.rate = 0.002});
//   auto same = nn::Optimiser<float>::make("adamw rate=0.002");
//
// Names: sgd, adam, adamw, rmsprop, lion, lamb.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/io/tensor_map.hpp>
#include <fenestra/nn/optimiser.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fenestra::nn {

/// What an optimiser may be told; what is not said has the optimiser's own default. Telling one
/// what it does not have is an error.
struct OptimiserOptions {
  std::optional<double> rate = {};
  std::optional<double> momentum = {};   ///< sgd, rmsprop
  std::optional<bool> nesterov = {};     ///< sgd
  std::optional<double> beta1 = {};      ///< adam, adamw, lion, lamb
  std::optional<double> beta2 = {};      ///< adam, adamw, lion, lamb
  std::optional<double> epsilon = {};    ///< adam, adamw, rmsprop, lamb
  std::optional<double> smoothing = {};  ///< rmsprop
  std::optional<bool> centred = {};      ///< rmsprop
  std::optional<double> weight_decay = {};
};

/// The names that `Optimiser::make` knows.
FENESTRA_API std::vector<std::string> optimiser_names();

template <KernelScalar T>
class FENESTRA_API Optimiser {
 public:
  /// `text` is a name, and may say options: "sgd momentum=0.9 nesterov=1". Throws
  /// `unknown_choice` for a word that it does not know, or `invalid_option`.
  static Optimiser make(std::string_view text, const OptimiserOptions& options = {});
  Optimiser(Sgd<T> sgd) : one_(std::move(sgd)) {}
  Optimiser(Adam<T> adam) : one_(std::move(adam)) {}
  Optimiser(RmsProp<T> rmsprop) : one_(std::move(rmsprop)) {}
  Optimiser(Lion<T> lion) : one_(std::move(lion)) {}
  Optimiser(Lamb<T> lamb) : one_(std::move(lamb)) {}

  std::string_view name() const;
  /// The name and all options: `make` gives an equal optimiser, without its state.
  std::string text() const;
  double rate() const;
  void set_rate(double rate);

  /// One update of all parameters by their gradients, in one order.
  void step(std::span<Tensor<T>* const> parameters, std::span<const Tensor<T>> gradients);
  /// The same of pieces, each moved as a parameter of its own would be.
  void step(std::vector<detail::ParameterPiece<T>> pieces, std::span<const Tensor<T>> gradients);
  /// The same on trees.
  template <Tree Params, Tree Grads>
  void step(Params& params, const Grads& grads) {
    std::visit([&](auto& one) { one.step(params, grads); }, one_);
  }

  /// Steps so far where the optimiser counts them ("steps"), and "mean.<name>", "square.<name>",
  /// "velocity.<name>" for the parameters' names in their order.
  io::TensorMap state(std::span<const std::string> names) const;
  /// What it remembers takes so many bytes; nothing before the first step.
  std::size_t state_bytes() const;
  /// Goes on from there. Throws `bad_file` where a tensor is missing, of another shape or type, or
  /// of no parameter, and then has changed nothing.
  void set_state(std::span<const std::string> names,
                 std::span<const Shape> shapes,
                 const io::TensorMap& state);

 private:
  std::variant<Sgd<T>, Adam<T>, RmsProp<T>, Lion<T>, Lamb<T>> one_;
};

extern template class Optimiser<float>;
extern template class Optimiser<double>;

}  // namespace fenestra::nn
