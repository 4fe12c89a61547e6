// Losses, composed of operators, for float and double.
#include <fenestra/nn/losses.hpp>
#include <fenestra/nn/words.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/ops/reduce/call.hpp>
#include <fenestra/ops/reduce/select.hpp>
#include <fenestra/ops/softmax/call.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra::nn {

namespace {

void require_number(
    const char* loss, const char* option, double value, bool fits, const char* fix) {
  if (!fits) {
    throw Error(
        ErrorCode::invalid_option,
        std::string(loss) + ": " + option + " = " + detail::number_text(value) + "\n  fix: " + fix);
  }
}
void require_gamma(double gamma) {
  require_number("focal_loss", "gamma", gamma, gamma >= 0 && std::isfinite(gamma), "gamma >= 0");
}
void require_delta(double delta) {
  require_number("huber_loss", "delta", delta, delta > 0 && std::isfinite(delta), "delta > 0");
}
void require_smoothing(double smoothing) {
  require_number("cross_entropy",
                 "smoothing",
                 smoothing,
                 smoothing >= 0 && smoothing <= 1,
                 "0 <= smoothing <= 1");
}

template <class T>
Value<T> one_minus(const Value<T>& x) {
  return sub(scalar_constant<Value<T>>(T(1)), x);
}

/// 1 at each label, in the shape of the scores.
template <class T>
Value<T> one_hot(const Value<T>& x, const Indices& cells) {
  const Tensor<T> ones(fenestra::detail::without_classes(x.shape()), T(1));
  return place(Value<T>(ones), cells, x.shape());
}

/// The mean of 1 - (2 sum(p t) + 1)/(sum(p) + sum(t) + 1) over samples and channels.
template <class T>
Value<T> dice_of(const Value<T>& p, const Value<T>& t) {
  ReduceOptions spatial;
  for (int axis = 2; axis < p.rank(); ++axis) {
    spatial.axes.push_back(axis);
  }
  // Without spatial axes an empty list would mean all of them.
  const auto total = [&](const Value<T>& x) { return p.rank() > 2 ? sum(x, spatial) : x; };
  const Value<T> one = scalar_constant<Value<T>>(T(1));
  const Value<T> both = add(scale(total(mul(p, t)), 2), one);
  const Value<T> all = add(add(total(p), total(t)), one);
  return mean(one_minus<T>(div(both, all)));
}

}  // namespace

template <KernelScalar T>
Value<T> smoothed_cross_entropy(const Value<T>& x,
                                const Indices& labels,
                                double smoothing,
                                const LossOptions& options) {
  require_smoothing(smoothing);
  if (smoothing == 0) {
    return cross_entropy(x, labels, options);
  }
  const Value<T> plain = cross_entropy(x, labels, {.reduction = Reduction::none});
  const int axis = fenestra::detail::class_axis(x.shape());
  const Value<T> even = sub(logsumexp(x, axis), mean(x, {.axes = {axis}}));
  return reduced_loss(add(scale(plain, 1 - smoothing), scale(even, smoothing)), options);
}

template <KernelScalar T>
Value<T> l1_loss(const Value<T>& x, const Value<T>& target, const LossOptions& options) {
  fenestra::detail::require_equal("l1_loss", x.shape(), target.shape());
  return reduced_loss(abs(sub(x, target)), options);
}

template <KernelScalar T>
Value<T> huber_loss(const Value<T>& x,
                    const Value<T>& target,
                    double delta,
                    const LossOptions& options) {
  fenestra::detail::require_equal("huber_loss", x.shape(), target.shape());
  require_delta(delta);
  // With c the difference within +-delta: c (d - c/2) is d^2/2 inside and the line outside.
  const Value<T> d = sub(x, target);
  const Value<T> c = clip(d, -delta, delta);
  return reduced_loss(mul(c, sub(d, scale(c, 0.5))), options);
}

template <KernelScalar T>
Value<T> dice_loss(const Value<T>& x, const Value<T>& target) {
  fenestra::detail::require_equal("dice_loss", x.shape(), target.shape());
  if (x.rank() < 2) {
    throw Error(ErrorCode::rank_mismatch,
                "dice_loss: x = " + to_string(x.shape()) +
                    " has no samples and channels\n  fix: scores (samples, channels, ...)");
  }
  return dice_of(sigmoid(x), target);
}

template <KernelScalar T>
Value<T> dice_loss(const Value<T>& x, const Indices& labels) {
  const Indices cells = label_cells(x.shape(), labels);
  if (x.rank() < 2) {
    throw Error(ErrorCode::rank_mismatch,
                "dice_loss: x = " + to_string(x.shape()) +
                    " has no samples and classes\n  fix: scores (samples, classes, ...)");
  }
  return dice_of(softmax(x, 1), one_hot(x, cells));
}

template <KernelScalar T>
Value<T> focal_loss(const Value<T>& x,
                    const Indices& labels,
                    double gamma,
                    const LossOptions& options) {
  require_gamma(gamma);
  const Indices cells = label_cells(x.shape(), labels);
  // z is the label's score against all others together: p = sigmoid(z), so that both log(p) and
  // log(1 - p) come without a difference of nearly equal numbers. The label itself is put so far
  // below the others that its exponential is 0.
  const Shape lines = fenestra::detail::without_classes(x.shape());
  const Value<T> others = sub(x, scale(one_hot(x, cells), 1e30));
  const Value<T> z =
      sub(take(x, cells, lines), logsumexp(others, fenestra::detail::class_axis(x.shape())));
  return reduced_loss(mul(exp(scale(softplus(z), -gamma)), softplus(neg(z))), options);
}

template <KernelScalar T>
Value<T> focal_loss(const Value<T>& x,
                    const Value<T>& target,
                    double gamma,
                    const LossOptions& options) {
  require_gamma(gamma);
  fenestra::detail::require_equal("focal_loss", x.shape(), target.shape());
  const Value<T> yes = softplus(neg(x));  // -log(p)
  const Value<T> no = softplus(x);        // -log(1 - p)
  const Value<T> is = mul(target, mul(exp(scale(no, -gamma)), yes));
  const Value<T> is_not = mul(one_minus(target), mul(exp(scale(yes, -gamma)), no));
  return reduced_loss(add(is, is_not), options);
}

std::vector<std::string> loss_names() {
  return {"cross-entropy", "bce", "mse", "l1", "huber", "dice", "focal"};
}

template <KernelScalar T>
Loss<T> Loss<T>::make(std::string_view text) {
  const detail::Words words = detail::parse_words("loss", text);
  Loss loss;
  const std::vector<std::string> names = loss_names();
  if (std::find(names.begin(), names.end(), words.name) == names.end()) {
    detail::throw_unknown("loss", text, words.name, names);
  }
  loss.name_ = words.name;
  const std::string option = loss.name_ == "cross-entropy" ? "smoothing"
                             : loss.name_ == "huber"       ? "delta"
                             : loss.name_ == "focal"       ? "gamma"
                                                           : "";
  loss.option_ = loss.name_ == "huber" ? 1 : loss.name_ == "focal" ? 2 : 0;
  for (const auto& [key, value] : words.options) {
    if (key != option) {
      std::vector<std::string_view> options;
      if (!option.empty()) {
        options.emplace_back(option);
      }
      detail::throw_unknown_option("loss", text, loss.name_, key, options);
    }
    loss.option_ = detail::parse_number("loss", text, key, value);
  }
  if (option == "smoothing") {
    require_smoothing(loss.option_);
  } else if (option == "delta") {
    require_delta(loss.option_);
  } else if (option == "gamma") {
    require_gamma(loss.option_);
  }
  return loss;
}

template <KernelScalar T>
std::string Loss<T>::text() const {
  const char* option = name_ == "cross-entropy" ? " smoothing="
                       : name_ == "huber"       ? " delta="
                       : name_ == "focal"       ? " gamma="
                                                : nullptr;
  return option == nullptr ? name_ : name_ + option + detail::number_text(option_);
}

template <KernelScalar T>
Value<T> Loss<T>::operator()(const Value<T>& x, const Target<T>& target) const {
  const bool by_labels = target.labels && takes_labels();
  if (!by_labels && !(target.values && takes_values())) {
    throw Error(ErrorCode::dtype_mismatch,
                "loss: " + name_ + " compares with " + (takes_labels() ? "labels" : "numbers") +
                    ", and was given " +
                    (target.labels   ? "labels"
                     : target.values ? "numbers"
                                     : "nothing") +
                    "\n  fix: " +
                    (takes_labels() ? "mse, l1, huber, bce or dice for numbers"
                                    : "cross-entropy, dice or focal for labels"));
  }
  if (name_ == "cross-entropy") {
    return smoothed_cross_entropy(x, *target.labels, option_);
  }
  if (name_ == "dice") {
    return by_labels ? dice_loss(x, *target.labels) : dice_loss(x, *target.values);
  }
  if (name_ == "focal") {
    return by_labels ? focal_loss(x, *target.labels, option_)
                     : focal_loss(x, *target.values, option_);
  }
  if (name_ == "bce") {
    return bce_with_logits(x, *target.values);
  }
  if (name_ == "l1") {
    return l1_loss(x, *target.values);
  }
  if (name_ == "huber") {
    return huber_loss(x, *target.values, option_);
  }
  return mse_loss(x, *target.values);
}

#define FENESTRA_LOSSES_FOR(T)                                                                  \
  template FENESTRA_API Value<T> smoothed_cross_entropy(                                        \
      const Value<T>&, const Indices&, double, const LossOptions&);                             \
  template FENESTRA_API Value<T> l1_loss(const Value<T>&, const Value<T>&, const LossOptions&); \
  template FENESTRA_API Value<T> huber_loss(                                                    \
      const Value<T>&, const Value<T>&, double, const LossOptions&);                            \
  template FENESTRA_API Value<T> dice_loss(const Value<T>&, const Value<T>&);                   \
  template FENESTRA_API Value<T> dice_loss(const Value<T>&, const Indices&);                    \
  template FENESTRA_API Value<T> focal_loss(                                                    \
      const Value<T>&, const Indices&, double, const LossOptions&);                             \
  template FENESTRA_API Value<T> focal_loss(                                                    \
      const Value<T>&, const Value<T>&, double, const LossOptions&);                            \
  template class Loss<T>;

FENESTRA_LOSSES_FOR(float)
FENESTRA_LOSSES_FOR(double)
#undef FENESTRA_LOSSES_FOR

}  // namespace fenestra::nn
