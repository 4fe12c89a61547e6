// A network for tests of the trainer, small and with all that makes one hard: batch norm, whose
// buffers change, and dropout, whose masks are drawn. Not installed.
#pragma once

#include <fenestra/base/key.hpp>
#include <fenestra/nn/trainer.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/matmul/matmul.hpp>
#include <fenestra/ops/normalise/normalise.hpp>
#include <fenestra/ops/reshape/reshape.hpp>

#include <cmath>

namespace fenestra::nn {

inline constexpr Index kTestClasses = 3;
inline constexpr Index kTestSide = 6;

template <class T>
Tensor<T> test_normal(const Shape& shape, const Key& key, double scale) {
  Tensor<T> x(shape);
  std::uint64_t i = 0;
  for (T& value : x.mutable_values()) {
    value = static_cast<T>(scale * key.normal(i++));
  }
  return x;
}

template <class T>
struct TestNorm {
  Parameter<T> gamma{Tensor<T>(Shape{4}, T(1))};
  Parameter<T> beta{Tensor<T>(Shape{4})};
  Buffer<T> mean{Tensor<T>(Shape{4})};
  Buffer<T> var{Tensor<T>(Shape{4}, T(1))};

  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const {
    if (!pass.is_training()) {
      return batch_norm_inference(x, mean.value, var.value, gamma.value, beta.value);
    }
    const Normalised<Value<T>> normalised = batch_norm(x, gamma.value, beta.value);
    const auto moved = [](const Value<T>& old, const Value<T>& now) {
      return Value<T>(add(scale(old, 0.9), scale(now, 0.1)));
    };
    pass.update(mean, moved(pass.current(mean), normalised.mean));
    pass.update(var, moved(pass.current(var), normalised.var));
    return normalised.y;
  }
};

template <class T>
struct TestNet {
  Parameter<T> conv;
  TestNorm<T> norm;
  Parameter<T> weight;
  Parameter<T> bias;
  double keep = 0.75;

  static TestNet make(std::uint64_t seed, Index outputs = kTestClasses) {
    const Key key(seed);
    const Index cells = 4 * kTestSide * kTestSide;
    return {.conv = {test_normal<T>(Shape{4, 1, 3, 3}, key.fold("conv"), 0.5)},
            .norm = {},
            .weight = {test_normal<T>(Shape{outputs, cells}, key.fold("weight"), 0.1)},
            .bias = {Tensor<T>(Shape{outputs})}};
  }

  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const {
    Value<T> h = fenestra::conv(x, conv.value, ConvOptions{.padding = 1});
    h = relu(norm(h, pass));
    if (pass.is_training() && keep < 1) {
      h = mul(h, pass.keep_mask(h.shape(), keep));
    }
    return linear(reshape(h, Shape{h.shape()[0], -1}), weight.value, bias.value);
  }
};

/// Noise with a mark of the class in it: learnable, not at once.
inline DatasetPtr test_dataset(Index samples, std::uint64_t seed) {
  Tensor<float> x =
      test_normal<float>(Shape{samples, 1, kTestSide, kTestSide}, Key(seed).fold("x"), 0.5);
  Tensor<Index> labels(Shape{samples});
  const Index cells = kTestSide * kTestSide;
  for (Index i = 0; i < samples; ++i) {
    const auto label = static_cast<Index>(Key(seed).below(static_cast<std::uint64_t>(i), 3));
    labels.mutable_data()[i] = label;
    for (Index k = 0; k < kTestSide; ++k) {
      x.mutable_data()[i * cells + label * 2 * kTestSide + k] += 1.0f;
    }
  }
  return array_dataset(x, labels);
}

template <class T>
Batch<T> test_batch(Index samples, std::uint64_t seed) {
  Loader<T> loader(test_dataset(samples, seed),
                   {.batch = samples, .shuffle = false, .prefetch = 0});
  return *loader.next();
}

/// Every number of a model, in order.
template <class Model>
std::vector<Tensor<typename Trainer<Model>::T>> numbers_of(const Trainer<Model>& trainer) {
  using T = typename Trainer<Model>::T;
  std::vector<Tensor<T>> values;
  Model copy = trainer.model();
  for (const Slot<T>& slot : slots<T>(copy)) {
    values.push_back(slot.value->tensor());
  }
  return values;
}

}  // namespace fenestra::nn
