// What tests of the convolution's kernels share: random operands, the definition in a wider type,
// the a-priori bound of a sum of n products, and the bits that our own kernels promise. For tests
// only: not installed.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/conv/candidates.hpp>
#include <fenestra/ops/conv/op.hpp>
#include <fenestra/ops/conv/spec.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

namespace fenestra::testing {

inline constexpr ConvDirection kConvDirections[] = {
    ConvDirection::forward, ConvDirection::input_grad, ConvDirection::weight_grad};

inline Shape conv_lhs_shape(const ConvProblem& p) {
  return p.direction == ConvDirection::input_grad ? p.geometry.y_shape() : p.geometry.x_shape();
}
inline Shape conv_rhs_shape(const ConvProblem& p) {
  return p.direction == ConvDirection::weight_grad ? p.geometry.y_shape() : p.geometry.w_shape();
}
inline Shape conv_out_shape(const ConvProblem& p) {
  switch (p.direction) {
    case ConvDirection::forward: return p.geometry.y_shape();
    case ConvDirection::input_grad: return p.geometry.x_shape();
    case ConvDirection::weight_grad: return p.geometry.w_shape();
  }
  return {};
}

/// Products summed into one element of the result, the bias counted as one more.
inline Index conv_terms(const ConvProblem& p) {
  const ConvGeometry& g = p.geometry;
  switch (p.direction) {
    case ConvDirection::forward: return g.group_in() * g.windows.taps() + 1;
    case ConvDirection::input_grad: return g.group_out() * g.windows.taps() + 1;
    case ConvDirection::weight_grad: return g.batch * g.windows.out_cells() + 1;
  }
  return 0;
}

template <class T>
struct ConvOperands {
  Tensor<T> lhs;
  Tensor<T> rhs;
  Tensor<T> bias;
  bool has_bias = false;

  template <class F>
  auto map(F f) const -> ConvOperands<decltype(f(T()))> {
    return {lhs.map(f), rhs.map(f), bias.map(f), has_bias};
  }
};

template <class T>
ConvOperands<T> random_conv_operands(const ConvProblem& p, Random& random) {
  const auto fill = [&](const Shape& shape) {
    Tensor<T> result(shape);
    for (T& value : result.mutable_values()) {
      value = static_cast<T>(random.real());
    }
    return result;
  };
  const bool forward = p.direction == ConvDirection::forward;
  return {fill(conv_lhs_shape(p)),
          fill(conv_rhs_shape(p)),
          fill(Shape{forward ? p.geometry.out_channels : p.geometry.in_channels}),
          p.direction != ConvDirection::weight_grad && p.geometry.has_bias};
}

template <class T>
Tensor<T> conv_by_definition(const ConvProblem& p, const ConvOperands<T>& in) {
  switch (p.direction) {
    case ConvDirection::forward:
      return spec::conv<T>(in.lhs, in.rhs, in.has_bias ? &in.bias : nullptr, p.geometry);
    case ConvDirection::input_grad: {
      Tensor<T> x_bar = spec::conv_input_grad(in.lhs, in.rhs, p.geometry);
      if (in.has_bias) {
        spec::add_channel(x_bar, in.bias, p.geometry.x_map());
      }
      return x_bar;
    }
    case ConvDirection::weight_grad: return spec::conv_weight_grad(in.lhs, in.rhs, p.geometry);
  }
  return {};
}

template <class T>
using ConvRun = void (*)(const ConvProblem&, const ConvArguments<T>&);

/// The result starts as NaN, so that an element that is not written is found.
template <class T>
Tensor<T> conv_by(ConvRun<T> run, const ConvProblem& p, const ConvOperands<T>& in) {
  Tensor<T> out(conv_out_shape(p), std::numeric_limits<T>::quiet_NaN());
  run(p,
      {in.lhs.data(), in.rhs.data(), in.has_bias ? in.bias.data() : nullptr, out.mutable_data()});
  return out;
}

/// |computed - exact| <= gamma(n) * sum |a||b|; the reference is wider and has its own bound.
template <class T>
void expect_conv_within_bound(ConvRun<T> run, const ConvProblem& p, Random& random) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  const ConvOperands<T> in = random_conv_operands<T>(p, random);
  const Tensor<T> got = conv_by(run, p, in);
  const auto reference = conv_by_definition(p, in.map([](T v) { return static_cast<Wide>(v); }));
  const auto magnitude =
      conv_by_definition(p, in.map([](T v) { return std::fabs(static_cast<Wide>(v)); }));
  const auto n = static_cast<long double>(conv_terms(p));
  const auto gamma = [&](long double u) { return n * u / (1 - n * u); };
  const long double factor = gamma(std::numeric_limits<T>::epsilon() / 2.0L) +
                             gamma(std::numeric_limits<Wide>::epsilon() / 2.0L);
  for (Index i = 0; i < got.size(); ++i) {
    const long double error =
        std::fabs(static_cast<long double>(got[i]) - static_cast<long double>(reference[i]));
    ASSERT_LE(error, factor * static_cast<long double>(magnitude[i]))
        << "direction " << static_cast<int>(p.direction) << ", element " << i << " of "
        << got.size() << ": " << to_string(p.geometry);
  }
}

/// The same bits on one thread and on several.
template <class T>
void expect_conv_bits_on_any_threads(ConvRun<T> run, const ConvProblem& p, Random& random) {
  const int before = threads();
  const ConvOperands<T> in = random_conv_operands<T>(p, random);
  set_threads(1);
  const Tensor<T> one = conv_by(run, p, in);
  for (const int count : {2, 3, 7, 16}) {
    set_threads(count);
    EXPECT_TRUE(one == conv_by(run, p, in)) << count << " threads: " << to_string(p.geometry);
  }
  set_threads(before);
}

/// A sample has the same bits alone and in its batch; not for weight gradients, which add samples.
template <class T>
void expect_conv_bits_of_samples(ConvRun<T> run, const ConvProblem& p, Random& random) {
  const ConvProblem single{p.direction, Conv::single_sample(p.geometry)};
  const ConvOperands<T> in = random_conv_operands<T>(p, random);
  const Tensor<T> whole = conv_by(run, p, in);
  const Index step = in.lhs.size() / p.geometry.batch;
  const Index out_step = whole.size() / p.geometry.batch;
  for (Index n = 0; n < p.geometry.batch; ++n) {
    ConvOperands<T> alone = in;
    alone.lhs = Tensor<T>(conv_lhs_shape(single),
                          std::span(in.lhs.data() + n * step, static_cast<std::size_t>(step)));
    const Tensor<T> one = conv_by(run, single, alone);
    EXPECT_TRUE(std::equal(one.data(), one.data() + out_step, whole.data() + n * out_step))
        << "sample " << n << " of " << to_string(p.geometry);
  }
}

}  // namespace fenestra::testing
