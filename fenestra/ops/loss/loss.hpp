// Losses on any value type: cross entropy of logits, mean squared error, binary cross entropy.
//
// A loss refuses unequal shapes: broadcasting here hides mistakes. Cross entropy is fused forward
// and backward, softmax(x) - onehot needing one pass; its further derivatives are those of the
// composition it equals, logsumexp(x) - x[label].
#pragma once

#include <fenestra/engine/composed.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/axis.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/loss/call.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/softmax/softmax.hpp>

#include <string>
#include <utility>

namespace fenestra {

template <AnyValue V>
constexpr V reduced_loss(const V& loss, const LossOptions& options) {
  switch (options.reduction) {
    case Reduction::none: return loss;
    case Reduction::sum: return sum(loss);
    case Reduction::mean: return mean(loss);
  }
  return loss;
}

// --- Cross entropy ------------------------------

// Compiled for float and double in kernels/lines.cpp. `cells` is, for each line of classes, the
// flat index of the right one; `loss` and `u` have one value per line.
template <KernelScalar T>
void cross_entropy_kernel(const T* x, const Index* cells, T* loss, const AxisView& view);
template <KernelScalar T>
void cross_entropy_grad_kernel(
    const T* x, const T* u, const Index* cells, T* x_bar, const AxisView& view);

namespace detail {

/// The class axis: the second, or the only one.
constexpr int class_axis(const Shape& x) { return x.rank() == 1 ? 0 : 1; }

/// x without its class axis: the shape of the labels and of the losses.
constexpr Shape without_classes(const Shape& x) {
  Shape shape;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis != class_axis(x)) {
      shape.push_back(x[axis]);
    }
  }
  return shape;
}

}  // namespace detail

/// u * (softmax(x) - onehot(label)): the gradient of cross entropy, u one value per line.
struct CrossEntropyGradPrimitive : ComposedPrimitive<CrossEntropyGradPrimitive> {
  static constexpr std::string_view name = "cross_entropy_grad";
  Shape x;

  template <class V>
  V compose(const std::vector<V>& in, const std::vector<IndicesOf<V>>& data) const {
    Shape kept = x;
    kept[detail::class_axis(x)] = 1;
    const V p = apply_softmax(SoftmaxFunction::softmax, in[0], detail::class_axis(x));
    return sub(mul(p, reshape(in[1], kept)), place(in[1], data[0], x));
  }
  constexpr Shape result_shape(const Shape&) const { return x; }
  template <KernelScalar T>
  void run_kernel(std::span<const Tensor<T>> in, std::span<const Selection> data, T* out) const {
    cross_entropy_grad_kernel(in[0].data(),
                              in[1].data(),
                              data[0].indices().data(),
                              out,
                              axis_view(x, detail::class_axis(x)));
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  friend bool operator==(const CrossEntropyGradPrimitive&,
                         const CrossEntropyGradPrimitive&) = default;
};

/// logsumexp(x) - x[label] for each line of classes.
struct CrossEntropyPrimitive : ComposedPrimitive<CrossEntropyPrimitive> {
  static constexpr std::string_view name = "cross_entropy";
  Shape x;

  template <class V>
  V compose(const std::vector<V>& in, const std::vector<IndicesOf<V>>& data) const {
    const Shape lines = detail::without_classes(x);
    const V total = apply_softmax(SoftmaxFunction::logsumexp, in[0], detail::class_axis(x));
    return sub(reshape(total, lines), take(in[0], data[0], lines));
  }
  constexpr Shape result_shape(const Shape&) const { return detail::without_classes(x); }
  template <KernelScalar T>
  void run_kernel(std::span<const Tensor<T>> in, std::span<const Selection> data, T* out) const {
    cross_entropy_kernel(
        in[0].data(), data[0].indices().data(), out, axis_view(x, detail::class_axis(x)));
  }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return apply(CrossEntropyGradPrimitive{{}, x}, {saved[0], y_bar}, {saved.data[0]});
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int what) { return what == 0; }
  friend bool operator==(const CrossEntropyPrimitive&, const CrossEntropyPrimitive&) = default;
};

namespace detail {

constexpr Fault check_labels(const Shape& x, const SelectionType& labels) {
  if (x.rank() < 1 || x[class_axis(x)] < 1) {
    return {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = x.rank()};
  }
  if (labels.form != SelectionForm::indices) {
    return {.code = ErrorCode::dtype_mismatch, .argument = Argument::labels};
  }
  return check_shape(Argument::labels, labels.shape, without_classes(x));
}

/// Throws unless labels of this form and shape go with x.
constexpr void require_labels(const Shape& x, const SelectionType& labels) {
  const Fault fault = check_labels(x, labels);
  switch (fault.code) {
    case ErrorCode::none: return;
    case ErrorCode::rank_mismatch:
      throw Error("cross_entropy",
                  fault,
                  "cross_entropy: x = " + to_string(x) +
                      " has no classes\n  fix: logits (N, C, ...) or (C,) with at least one class");
    case ErrorCode::dtype_mismatch:
      throw Error("cross_entropy",
                  fault,
                  "cross_entropy: labels are the winners of a pool, not classes\n  fix: pass " +
                      spelled("Tensor<Index>", "an array of integers"));
    default:
      throw Error("cross_entropy",
                  fault,
                  "cross_entropy: x = " + to_string(x) + ", labels = " + to_string(labels.shape) +
                      "\n  fix: labels of shape " + to_string(without_classes(x)) +
                      ", the logits without their class axis");
  }
}

/// The labels as flat indices into x; shape and range have been checked.
inline void write_label_cells(const Shape& x, const Tensor<Index>& labels, Index* out) noexcept {
  const AxisView view = axis_view(x, class_axis(x));
  for (Index i = 0; i < labels.size(); ++i) {
    out[i] = (i / view.inner * view.extent + labels[i]) * view.inner + i % view.inner;
  }
}

/// The labels as flat indices into x, after checking shape and range.
inline Selection label_cells(const Shape& x, const Selection& labels) {
  require_labels(x, labels.type());
  const Tensor<Index>& given = labels.indices();
  const Index classes = x[class_axis(x)];
  for (Index i = 0; i < given.size(); ++i) {
    const Index label = given[i];
    if (label < 0 || label >= classes) {
      throw Error("cross_entropy",
                  {.code = ErrorCode::invalid_index,
                   .argument = Argument::labels,
                   .got = label,
                   .needed = classes},
                  "cross_entropy: label " + std::to_string(label) + " at element " +
                      std::to_string(i) + ", x = " + to_string(x) + " has " +
                      std::to_string(classes) + " classes\n  fix: labels from 0 to " +
                      std::to_string(classes - 1));
    }
  }
  Tensor<Index> cells = Tensor<Index>::uninitialised(given.shape());
  write_label_cells(x, given, cells.mutable_data());
  return cells;
}

constexpr void require_equal(std::string_view op, const Shape& x, const Shape& target) {
  if (const Fault fault = check_shape(Argument::x, x, target)) {
    throw Error(std::string(op),
                fault,
                std::string(op) + ": x = " + to_string(x) + ", target = " + to_string(target) +
                    "\n  a loss does not broadcast\n  fix: reshape or expand one of them to the "
                    "other's shape");
  }
}

}  // namespace detail

/// The labels of values as flat indices, and those of a graph, whose numbers are checked when they
/// are given.
FENESTRA_API Indices label_cells(const Shape& x, const Indices& labels);
namespace graph {
FENESTRA_API Data label_cells(const Shape& x, const Data& labels);
}  // namespace graph

inline namespace generic {

template <AnyValue V>
constexpr V cross_entropy(const V& x, const IndicesOf<V>& labels, const LossOptions& options = {}) {
  using detail::label_cells;  // other index types bring their own
  const IndicesOf<V> cells = label_cells(x.shape(), labels);
  return reduced_loss(apply(CrossEntropyPrimitive{{}, x.shape()}, {x}, {cells}), options);
}

// --- Losses between two tensors ------------------------------

template <AnyValue V>
constexpr V mse_loss_values(const V& x, const V& target, const LossOptions& options) {
  detail::require_equal("mse_loss", x.shape(), target.shape());
  const V difference = sub(x, target);
  return reduced_loss(mul(difference, difference), options);
}

/// As softplus(-x) + (1 - target) x.
template <AnyValue V>
constexpr V bce_with_logits_values(const V& x, const V& target, const LossOptions& options) {
  detail::require_equal("bce_with_logits", x.shape(), target.shape());
  const V rest = sub(scalar_constant<V>(ScalarOf<V>(1)), target);
  return reduced_loss(V(add(softplus(neg(x)), mul(rest, x))), options);
}

}  // namespace generic

}  // namespace fenestra
