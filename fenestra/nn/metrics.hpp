// Figures of classifiers, to look at: predicted classes, top-k, the confusion matrix and what
// follows from it. Scores are (samples, classes, ...), labels (samples, ...).
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <string>
#include <vector>

namespace fenestra::nn {

/// The first class with the largest score, (samples, ...); NaN counts as largest.
template <KernelScalar T>
FENESTRA_API Tensor<Index> predicted_classes(const Tensor<T>& scores);

/// Labels among the k largest scores; of equal scores the first class comes first. 1 <= k.
template <KernelScalar T>
FENESTRA_API Index top_k_correct(const Tensor<T>& scores, const Tensor<Index>& labels, Index k);

/// How often each class was taken for each. It grows by `add`.
class FENESTRA_API ConfusionMatrix {
 public:
  explicit ConfusionMatrix(Index classes);

  /// Throws `shape_mismatch` or `invalid_index`, and then has counted nothing.
  template <KernelScalar T>
  void add(const Tensor<T>& scores, const Tensor<Index>& labels);
  void add(const Tensor<Index>& predicted, const Tensor<Index>& labels);

  /// What another matrix counted, (label, predicted).
  void add_counts(const Tensor<Index>& counts);

  Index classes() const { return counts_.shape()[0]; }
  /// (label, predicted)
  const Tensor<Index>& counts() const { return counts_; }
  Index total() const;
  Index correct() const;
  /// From 0 to 1; nothing counted is all correct.
  double accuracy() const;
  /// Of each class, what is both of the label and predicted over what is either; NaN where it is
  /// neither.
  std::vector<double> iou() const;
  /// The mean over the classes that occur; 1 where none does.
  double mean_iou() const;

  friend bool operator==(const ConfusionMatrix&, const ConfusionMatrix&) = default;

 private:
  Tensor<Index> counts_;
};

/// The cells of a table for people: names of the predicted classes, then a row for each label.
/// Classes without a name are called by number.
FENESTRA_API std::vector<std::vector<std::string>> table_rows(
    const ConfusionMatrix& matrix, const std::vector<std::string>& classes);
/// That table as text.
FENESTRA_API std::string to_string(const ConfusionMatrix& matrix,
                                   const std::vector<std::string>& classes = {});

}  // namespace fenestra::nn
