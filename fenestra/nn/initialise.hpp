// Initial values of weights: the same bits from the same seed on every machine.
//
// Drawn from `Random`, or from a `Key` in the order of positions, by arithmetic that IEEE 754 fixes
// to the last bit; no function of the system's library is involved. Fans follow the weight layouts
// of convolutions; a matrix (out, in) of a linear layer is one without taps.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/base/key.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>
#include <string>

namespace fenestra::nn {

/// What sets the scale of kaiming weights: fan `in` keeps the variance of activations, fan `out`
/// that of gradients.
enum class Fan { in, out };

struct KaimingOptions {
  double gain =
      std::numbers::sqrt2;  ///< of the activation that follows; sqrt(2) for relu, 1 for none
  Fan fan = Fan::in;
  Layout layout = Layout::channels_first;
};

struct XavierOptions {
  double gain = 1;
  Layout layout = Layout::channels_first;
};

struct Fans {
  Index in = 0;
  Index out = 0;
};

/// Cells that feed one output, and outputs that one cell feeds: (out, in, taps...) or (taps..., in,
/// out).
inline Fans weight_fans(const Shape& shape, Layout layout = Layout::channels_first) {
  if (shape.rank() < 2) {
    throw Error("initialise",
                {.code = ErrorCode::rank_mismatch,
                 .argument = Argument::w,
                 .got = shape.rank(),
                 .needed = 2},
                "initialise: w = " + to_string(shape) +
                    " has no fan in and fan out\n  fix: at least the axes (out, in)");
  }
  const bool first = layout == Layout::channels_first;
  const int rank = shape.rank();
  Fans fans{shape[first ? 1 : rank - 2], shape[first ? 0 : rank - 1]};
  for (int axis = first ? 2 : 0; axis < (first ? rank : rank - 2); ++axis) {
    fans.in *= shape[axis];
    fans.out *= shape[axis];
  }
  return fans;
}

/// What numbers are drawn from: `real()` is uniform on [-1, 1).
template <class S>
concept DrawSource = requires(S& source) {
  { source.real() } -> std::same_as<double>;
};

/// The numbers of a key, one position after the other.
class KeyDraws {
 public:
  explicit KeyDraws(const Key& key) : key_(key) {}
  double real() { return 2 * key_.uniform(position_++) - 1; }

 private:
  Key key_;
  std::uint64_t position_ = 0;
};

/// A draw from the standard normal distribution.
FENESTRA_API double standard_normal(Random& random);
FENESTRA_API double standard_normal(KeyDraws& draws);

template <class T>
Tensor<T> zeros(const Shape& shape) {
  return Tensor<T>(shape);
}
template <class T>
Tensor<T> constant(const Shape& shape, double value) {
  return Tensor<T>(shape, from_double<T>(value));
}

/// Uniform on [-bound, bound).
template <class T, DrawSource S>
Tensor<T> uniform(const Shape& shape, S& random, double bound) {
  Tensor<T> w(shape);
  for (T& value : w.mutable_values()) {
    value = from_double<T>(bound * random.real());
  }
  return w;
}
/// Normal with mean 0.
template <class T, DrawSource S>
Tensor<T> normal(const Shape& shape, S& random, double deviation) {
  Tensor<T> w(shape);
  for (T& value : w.mutable_values()) {
    value = from_double<T>(deviation * standard_normal(random));
  }
  return w;
}

/// Standard deviation gain/sqrt(fan); zeros fan nothing and get 0.
inline double kaiming_deviation(const Shape& shape, const KaimingOptions& options) {
  const Fans fans = weight_fans(shape, options.layout);
  const Index fan = options.fan == Fan::in ? fans.in : fans.out;
  return fan == 0 ? 0 : options.gain / std::sqrt(static_cast<double>(fan));
}
template <class T, DrawSource S>
Tensor<T> kaiming_uniform(const Shape& shape, S& random, const KaimingOptions& options = {}) {
  return uniform<T>(shape, random, std::sqrt(3.0) * kaiming_deviation(shape, options));
}
template <class T, DrawSource S>
Tensor<T> kaiming_normal(const Shape& shape, S& random, const KaimingOptions& options = {}) {
  return normal<T>(shape, random, kaiming_deviation(shape, options));
}
/// Uniform on +-gain * sqrt(6/(fan in + fan out)).
template <class T, DrawSource S>
Tensor<T> xavier_uniform(const Shape& shape, S& random, const XavierOptions& options = {}) {
  const Fans fans = weight_fans(shape, options.layout);
  const double total = static_cast<double>(fans.in) + static_cast<double>(fans.out);
  return uniform<T>(shape, random, total == 0 ? 0 : options.gain * std::sqrt(6.0 / total));
}

}  // namespace fenestra::nn
