// Losses on values, beside those of ops/loss: every derivative, vmap and the graph compiler work on
// them, since they are made of operators. None of them overflows or takes the logarithm of 0,
// however large the scores are. Compiled for float and double.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/loss/call.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::nn {

/// Cross entropy with smoothed labels: the target is 1 - smoothing on the label, and `smoothing` is
/// spread over all classes. Scores (N, C, ...), labels (N, ...); 0 <= smoothing <= 1.
template <KernelScalar T>
FENESTRA_API Value<T> smoothed_cross_entropy(const Value<T>& x,
                                             const Indices& labels,
                                             double smoothing,
                                             const LossOptions& options = {});

/// |x - target|
template <KernelScalar T>
FENESTRA_API Value<T> l1_loss(const Value<T>& x,
                              const Value<T>& target,
                              const LossOptions& options = {});

/// (x - target)^2/2 where |x - target| <= delta, continued by lines: delta (|x - target| -
/// delta/2).
template <KernelScalar T>
FENESTRA_API Value<T> huber_loss(const Value<T>& x,
                                 const Value<T>& target,
                                 double delta = 1,
                                 const LossOptions& options = {});

/// 1 - (2 sum(p t) + 1)/(sum(p) + sum(t) + 1) for each sample and channel, sums over the spatial
/// axes, and their mean. p is sigmoid(x), t the target of x's shape (N, C, ...).
template <KernelScalar T>
FENESTRA_API Value<T> dice_loss(const Value<T>& x, const Value<T>& target);
/// The same with p = softmax(x) over the classes and one label for each cell: x (N, C, ...), labels
/// (N, ...).
template <KernelScalar T>
FENESTRA_API Value<T> dice_loss(const Value<T>& x, const Indices& labels);

/// (1 - p)^gamma times cross entropy, p the probability of the label: what is already right counts
/// little (Lin et al., "Focal loss for dense object detection", 2017). gamma >= 0.
template <KernelScalar T>
FENESTRA_API Value<T> focal_loss(const Value<T>& x,
                                 const Indices& labels,
                                 double gamma = 2,
                                 const LossOptions& options = {});
/// The same for a yes or no in each element: x and target of one shape, target in [0, 1].
template <KernelScalar T>
FENESTRA_API Value<T> focal_loss(const Value<T>& x,
                                 const Value<T>& target,
                                 double gamma = 2,
                                 const LossOptions& options = {});

/// What a network is to say about a batch: labels, numbers, or both.
template <class T>
struct Target {
  std::optional<Indices> labels = {};
  std::optional<Value<T>> values = {};
};

/// A loss by name, a mean over the batch. Names and options: "cross-entropy smoothing=0", "bce",
/// "mse", "l1", "huber delta=1", "dice", "focal gamma=2".
template <KernelScalar T>
class FENESTRA_API Loss {
 public:
  /// Throws `unknown_choice` for a word that it does not know, or `invalid_option`.
  static Loss make(std::string_view text);

  const std::string& name() const { return name_; }
  /// What `make` reads.
  std::string text() const;
  /// Whether it can compare with labels: cross-entropy, and dice and focal, which prefer them.
  bool takes_labels() const {
    return name_ == "cross-entropy" || name_ == "dice" || name_ == "focal";
  }
  /// Whether it can compare with numbers: all but cross-entropy.
  bool takes_values() const { return name_ != "cross-entropy"; }
  /// Whether the loss of a picture is the mean of the losses of its cells: all but dice.
  bool is_mean_of_cells() const { return name_ != "dice"; }
  /// Throws `dtype_mismatch` where the target has not what it compares with.
  Value<T> operator()(const Value<T>& x, const Target<T>& target) const;

 private:
  std::string name_;
  double option_ = 0;  ///< smoothing, delta or gamma
};

FENESTRA_API std::vector<std::string> loss_names();

extern template class Loss<float>;
extern template class Loss<double>;

}  // namespace fenestra::nn
