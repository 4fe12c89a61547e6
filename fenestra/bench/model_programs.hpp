// The networks of nn/models/functional.hpp as they are trained and deployed: targets, the loss that
// fits them, inference, and all of it compiled.
//
// A model that states a number of classes is trained on labels; others score every cell of an
// image, and are trained on a mask.
#pragma once

#include <fenestra/engine/compile.hpp>
#include <fenestra/nn/compile_step.hpp>
#include <fenestra/nn/models/functional.hpp>
#include <fenestra/ops/loss/loss.hpp>

#include <span>
#include <type_traits>
#include <vector>

namespace fenestra::bench {

template <class Model>
inline constexpr bool kHasClasses = requires { Model::classes; };

template <class Model, class T>
using Targets = std::conditional_t<kHasClasses<Model>, Tensor<Index>, Tensor<T>>;

/// (N) labels, or an (N, 1, spatial...) mask.
template <class Model>
Shape target_shape(Index batch) {
  if constexpr (kHasClasses<Model>) {
    return {batch};
  } else {
    Shape shape = Model::input(batch);
    shape[1] = 1;
    return shape;
  }
}

template <class Model, class T>
Targets<Model, T> random_targets(Index batch, Random& random) {
  if constexpr (kHasClasses<Model>) {
    Tensor<Index> labels(target_shape<Model>(batch));
    for (Index& label : labels.mutable_values()) {
      label = random.between(0, Model::classes - 1);
    }
    return labels;
  } else {
    return nn::uniform<T>(target_shape<Model>(batch), random, 1.0).map([](T v) {
      return v > 0 ? T(1) : T(0);
    });
  }
}

/// Mean over the batch of scores and targets; both may be of a graph or a tape.
template <class Model, class V, class T>
V loss_of(const V& scores, const T& targets) {
  if constexpr (kHasClasses<Model>) {
    return cross_entropy(scores, targets);
  } else {
    return bce_with_logits(scores, targets);
  }
}

/// Scores of a model that is not trained any more; normalisations use the statistics with which a
/// model starts.
template <class Model, AnyValue V>
V infer(std::span<const V> parameters, const V& x) {
  using T = typename ValueTraits<V>::Scalar;
  if constexpr (requires { Model::template initial_statistics<T>(); }) {
    const auto statistics = Model::template initial_statistics<T>();
    const std::vector<V> given(statistics.begin(), statistics.end());
    return Model::template infer<V>(parameters, given, x);
  } else {
    return Model::template forward<V>(parameters, x);
  }
}

/// Scores as in training. A run is given the parameters, then x.
template <class Model, class T>
Program<T> compile_forward(const std::vector<Tensor<T>>& parameters,
                           Index batch,
                           const CompileOptions& options = {}) {
  return compile<T>(
      [](const auto& given, const auto& x) {
        using V = std::remove_cvref_t<decltype(x)>;
        return Model::template forward<V>(std::span<const V>(given), x);
      },
      parameters,
      Model::input(batch),
      options);
}

/// Parameters are part of the program, as they are of a deployed model. A run is given x.
template <class Model, class T>
Program<T> compile_inference(const std::vector<Tensor<T>>& parameters,
                             Index batch,
                             const CompileOptions& options = {}) {
  return compile<T>(
      [&](const auto& x) {
        using V = std::remove_cvref_t<decltype(x)>;
        const std::vector<V> constants(parameters.begin(), parameters.end());
        return infer<Model, V>(constants, x);
      },
      Model::input(batch),
      options);
}

/// Plain gradient descent. A run is given the parameters, x, the targets and the rate.
template <class Model, class T>
Program<T> compile_training_step(const std::vector<Tensor<T>>& parameters,
                                 Index batch,
                                 const CompileOptions& options = {}) {
  const auto loss = [](const auto& given, const auto& x, const auto& targets) {
    using V = std::remove_cvref_t<decltype(x)>;
    return loss_of<Model>(Model::template forward<V>(std::span<const V>(given), x), targets);
  };
  const Shape targets = target_shape<Model>(batch);
  if constexpr (kHasClasses<Model>) {
    return compile_step<T>(
        SgdUpdate{}, loss, parameters, Model::input(batch), DataShape{targets}, options);
  } else {
    return compile_step<T>(SgdUpdate{}, loss, parameters, Model::input(batch), targets, options);
  }
}

}  // namespace fenestra::bench
