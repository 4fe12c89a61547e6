// Accuracy: the share of samples whose largest score is that of their label. A figure to look at,
// not a loss.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <string>

namespace fenestra::nn {

/// Samples of `scores` (samples, classes) whose first largest score is at their label; NaN counts
/// as largest.
template <class T>
Index correct_predictions(const Tensor<T>& scores, const Tensor<Index>& labels) {
  if (scores.rank() != 2 || labels.rank() != 1 || labels.shape()[0] != scores.shape()[0] ||
      scores.shape()[1] < 1) {
    throw Error(
        "accuracy",
        {.code = ErrorCode::shape_mismatch, .argument = Argument::x},
        "accuracy: scores = " + to_string(scores.shape()) +
            ", labels = " + to_string(labels.shape()) +
            "\n  fix: scores (samples, classes) with at least one class, labels (samples,)");
  }
  const Index classes = scores.shape()[1];
  Index correct = 0;
  for (Index n = 0; n < labels.size(); ++n) {
    if (labels[n] < 0 || labels[n] >= classes) {
      throw Error("accuracy",
                  {.code = ErrorCode::invalid_index,
                   .argument = Argument::indices,
                   .got = labels[n],
                   .needed = classes},
                  "accuracy: label " + std::to_string(labels[n]) + " of sample " +
                      std::to_string(n) + ", scores = " + to_string(scores.shape()) +
                      "\n  fix: labels from 0 to " + std::to_string(classes - 1));
    }
    Index best = 0;
    for (Index c = 1; c < classes; ++c) {
      if (beats(scores[n * classes + c], scores[n * classes + best])) {
        best = c;
      }
    }
    correct += best == labels[n] ? 1 : 0;
  }
  return correct;
}

/// From 0 to 1; no samples are all correct.
template <class T>
double accuracy(const Tensor<T>& scores, const Tensor<Index>& labels) {
  const Index correct = correct_predictions(scores, labels);
  return labels.size() == 0 ? 1 : static_cast<double>(correct) / static_cast<double>(labels.size());
}

}  // namespace fenestra::nn
