// Whole networks, eagerly: a training step by the tape with plain gradient descent, and inference.
#include <fenestra/bench/work.hpp>
#include <fenestra/nn/models.hpp>
#include <fenestra/nn/optimiser.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/spec/problem.hpp>
#include <fenestra/tape/tape.hpp>

#include <memory>

namespace fenestra::bench {

namespace {

Tensor<float> random_tensor(const Shape& shape, Random& random) {
  return nn::uniform<float>(shape, random, 1.0);
}

/// A loss on targets that fit the scores: classes, or a mask.
template <class Model>
auto loss_of(const Shape& scores, Random& random) {
  if constexpr (std::is_same_v<Model, nn::UNet>) {
    const Tensor<float> mask =
        random_tensor(scores, random).map([](float v) { return v > 0 ? 1.0F : 0.0F; });
    return [mask](const auto& y) { return bce_with_logits(y, mask); };
  } else {
    Tensor<Index> labels(Shape{scores[0]});
    for (Index& label : labels.mutable_values()) {
      label = random.between(0, scores[1] - 1);
    }
    return [labels](const auto& y) { return cross_entropy(y, labels); };
  }
}

template <class Model>
Work model_work(char direction, Index batch) {
  Random random(1);
  auto parameters =
      std::make_shared<std::vector<Tensor<float>>>(Model::template initial<float>(random));
  const Tensor<float> x = random_tensor(Model::input(batch), random);
  Work work;
  work.kernel = "eager";
  if (direction == 'I') {
    work.run = [parameters, x] {
      const std::span<const Tensor<float>> p(*parameters);
      if constexpr (requires { Model::template initial_statistics<float>(); }) {
        static const auto statistics = Model::template initial_statistics<float>();
        Model::template infer<Tensor<float>>(p, statistics, x);
      } else {
        Model::template forward<Tensor<float>>(p, x);
      }
    };
    return work;
  }
  const Tensor<float> scores =
      Model::template forward<Tensor<float>>(std::span<const Tensor<float>>(*parameters), x);
  const auto loss = loss_of<Model>(scores.shape(), random);
  auto sgd = std::make_shared<nn::Sgd<float>>(nn::SgdOptions{.rate = 1e-3});
  work.run = [parameters, x, loss, sgd] {
    Tape<float> tape;
    std::vector<Var<Tensor<float>>> variables;
    for (const Tensor<float>& parameter : *parameters) {
      variables.push_back(tape.parameter(parameter));
    }
    const auto y = Model::template forward<Var<Tensor<float>>>(
        std::span<const Var<Tensor<float>>>(variables), Var<Tensor<float>>(x));
    const auto grads = tape.backward(loss(y));
    std::vector<Tensor<float>> bars;
    for (const auto& variable : variables) {
      bars.push_back(grads[variable]);
    }
    sgd->step(*parameters, bars);
  };
  return work;
}

}  // namespace

bool is_model(const Case& what) {
  return what.op == nn::LeNet5::name || what.op == nn::UNet::name || what.op == nn::ResNet18::name;
}

Work make_model(const Case& what, char direction, const std::string& problem) {
  if (direction != 'S' && direction != 'I') {
    throw Error(ErrorCode::unknown_operator,
                "bench: case \"" + what.name + "\": a model has the directions S and I");
  }
  const Index batch = Problem(problem).integer("batch", 1);
  if (what.op == nn::LeNet5::name) {
    return model_work<nn::LeNet5>(direction, batch);
  }
  if (what.op == nn::UNet::name) {
    return model_work<nn::UNet>(direction, batch);
  }
  return model_work<nn::ResNet18>(direction, batch);
}

}  // namespace fenestra::bench
