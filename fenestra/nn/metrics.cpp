// Figures of classifiers, counted.
#include <fenestra/base/error.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/nn/metrics.hpp>
#include <fenestra/spec/scalar.hpp>

#include <cmath>
#include <limits>

namespace fenestra::nn {

namespace {

/// Scores as (samples, classes, cells), with labels of (samples, cells).
struct ScoreView {
  Index samples = 0;
  Index classes = 0;
  Index cells = 1;
};

ScoreView view_scores(const Shape& scores) {
  if (scores.rank() < 2 || scores[1] < 1) {
    throw Error("metrics",
                {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = scores.rank()},
                "metrics: scores = " + to_string(scores) +
                    "\n  fix: scores (samples, classes, ...) with at least one class");
  }
  ScoreView view{scores[0], scores[1], 1};
  for (int axis = 2; axis < scores.rank(); ++axis) {
    view.cells *= scores[axis];
  }
  return view;
}

Shape label_shape(const Shape& scores) {
  Shape shape;
  for (int axis = 0; axis < scores.rank(); ++axis) {
    if (axis != 1) {
      shape.push_back(scores[axis]);
    }
  }
  return shape;
}

void require_shape(const Shape& labels, const Shape& needed) {
  if (labels != needed) {
    throw Error(
        "metrics",
        {.code = ErrorCode::shape_mismatch, .argument = Argument::labels},
        "metrics: labels = " + to_string(labels) + "\n  fix: labels of shape " + to_string(needed));
  }
}

void require_classes(const char* what, const Tensor<Index>& numbers, Index classes) {
  for (Index i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] >= classes) {
      throw Error("metrics",
                  {.code = ErrorCode::invalid_index,
                   .argument = Argument::labels,
                   .got = numbers[i],
                   .needed = classes},
                  std::string("metrics: ") + what + " " + std::to_string(numbers[i]) +
                      " at element " + std::to_string(i) + ", there are " +
                      std::to_string(classes) + " classes\n  fix: numbers from 0 to " +
                      std::to_string(classes - 1));
    }
  }
}

}  // namespace

template <KernelScalar T>
Tensor<Index> predicted_classes(const Tensor<T>& scores) {
  const ScoreView view = view_scores(scores.shape());
  Tensor<Index> best(label_shape(scores.shape()));
  Index* const out = best.mutable_data();
  const T* const x = scores.data();
  for (Index n = 0; n < view.samples; ++n) {
    for (Index cell = 0; cell < view.cells; ++cell) {
      const T* const line = x + n * view.classes * view.cells + cell;
      Index winner = 0;
      for (Index c = 1; c < view.classes; ++c) {
        if (beats(line[c * view.cells], line[winner * view.cells])) {
          winner = c;
        }
      }
      out[n * view.cells + cell] = winner;
    }
  }
  return best;
}

template <KernelScalar T>
Index top_k_correct(const Tensor<T>& scores, const Tensor<Index>& labels, Index k) {
  const ScoreView view = view_scores(scores.shape());
  require_shape(labels.shape(), label_shape(scores.shape()));
  require_classes("label", labels, view.classes);
  if (k < 1) {
    throw Error(ErrorCode::invalid_option, "metrics: k = " + std::to_string(k) + "\n  fix: k >= 1");
  }
  Index correct = 0;
  for (Index n = 0; n < view.samples; ++n) {
    for (Index cell = 0; cell < view.cells; ++cell) {
      const T* const line = scores.data() + n * view.classes * view.cells + cell;
      const Index label = labels[n * view.cells + cell];
      const T own = line[label * view.cells];
      Index before = 0;
      for (Index c = 0; c < view.classes; ++c) {
        const T other = line[c * view.cells];
        before += beats(other, own) || (c < label && !beats(own, other)) ? 1 : 0;
      }
      correct += before < k ? 1 : 0;
    }
  }
  return correct;
}

ConfusionMatrix::ConfusionMatrix(Index classes)
    : counts_(Shape{classes < 1 ? Index{1} : classes, classes < 1 ? Index{1} : classes}) {
  if (classes < 1) {
    throw Error(ErrorCode::invalid_extent,
                "confusion matrix: " + std::to_string(classes) + " classes\n  fix: at least one");
  }
}

template <KernelScalar T>
void ConfusionMatrix::add(const Tensor<T>& scores, const Tensor<Index>& labels) {
  add(predicted_classes(scores), labels);
}

void ConfusionMatrix::add(const Tensor<Index>& predicted, const Tensor<Index>& labels) {
  require_shape(labels.shape(), predicted.shape());
  require_classes("label", labels, classes());
  require_classes("predicted class", predicted, classes());
  Index* const counts = counts_.mutable_data();
  for (Index i = 0; i < labels.size(); ++i) {
    ++counts[labels[i] * classes() + predicted[i]];
  }
}

void ConfusionMatrix::add_counts(const Tensor<Index>& counts) {
  if (counts.shape() != counts_.shape()) {
    throw Error(ErrorCode::shape_mismatch,
                "confusion matrix: counts = " + to_string(counts.shape()) + ", needed " +
                    to_string(counts_.shape()) + "\n  fix: those of as many classes");
  }
  Index* const out = counts_.mutable_data();
  for (Index i = 0; i < counts.size(); ++i) {
    out[i] += counts[i];
  }
}

Index ConfusionMatrix::total() const {
  Index total = 0;
  for (Index i = 0; i < counts_.size(); ++i) {
    total += counts_[i];
  }
  return total;
}

Index ConfusionMatrix::correct() const {
  Index correct = 0;
  for (Index c = 0; c < classes(); ++c) {
    correct += counts_[c * classes() + c];
  }
  return correct;
}

double ConfusionMatrix::accuracy() const {
  const Index all = total();
  return all == 0 ? 1 : static_cast<double>(correct()) / static_cast<double>(all);
}

std::vector<double> ConfusionMatrix::iou() const {
  std::vector<double> result;
  for (Index c = 0; c < classes(); ++c) {
    Index either = -counts_[c * classes() + c];
    for (Index other = 0; other < classes(); ++other) {
      either += counts_[c * classes() + other] + counts_[other * classes() + c];
    }
    result.push_back(either == 0 ? std::numeric_limits<double>::quiet_NaN()
                                 : static_cast<double>(counts_[c * classes() + c]) /
                                       static_cast<double>(either));
  }
  return result;
}

double ConfusionMatrix::mean_iou() const {
  double total = 0;
  int count = 0;
  for (const double value : iou()) {
    if (!std::isnan(value)) {
      total += value;
      ++count;
    }
  }
  return count == 0 ? 1 : total / count;
}

std::vector<std::vector<std::string>> table_rows(const ConfusionMatrix& matrix,
                                                 const std::vector<std::string>& classes) {
  const auto name = [&](Index c) {
    const auto i = static_cast<std::size_t>(c);
    return i < classes.size() ? classes[i] : std::to_string(c);
  };
  std::vector<std::vector<std::string>> rows{{""}};
  for (Index c = 0; c < matrix.classes(); ++c) {
    rows[0].push_back(name(c));
  }
  for (Index label = 0; label < matrix.classes(); ++label) {
    rows.push_back({name(label)});
    for (Index c = 0; c < matrix.classes(); ++c) {
      rows.back().push_back(std::to_string(matrix.counts()[label * matrix.classes() + c]));
    }
  }
  return rows;
}

std::string to_string(const ConfusionMatrix& matrix, const std::vector<std::string>& classes) {
  return columns(table_rows(matrix, classes), 0, Align::right);
}

template FENESTRA_API Tensor<Index> predicted_classes(const Tensor<float>&);
template FENESTRA_API Tensor<Index> predicted_classes(const Tensor<double>&);
template FENESTRA_API Index top_k_correct(const Tensor<float>&, const Tensor<Index>&, Index);
template FENESTRA_API Index top_k_correct(const Tensor<double>&, const Tensor<Index>&, Index);
template FENESTRA_API void ConfusionMatrix::add(const Tensor<float>&, const Tensor<Index>&);
template FENESTRA_API void ConfusionMatrix::add(const Tensor<double>&, const Tensor<Index>&);

}  // namespace fenestra::nn
