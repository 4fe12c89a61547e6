// Whole networks: a training step with plain gradient descent and inference, by the tape and
// compiled.
#include <fenestra/bench/memory.hpp>
#include <fenestra/bench/work.hpp>
#include <fenestra/nn/models.hpp>
#include <fenestra/nn/optimiser.hpp>
#include <fenestra/ops/compile.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/spec/problem.hpp>
#include <fenestra/tape/tape.hpp>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace fenestra::bench {

namespace {

Tensor<float> random_tensor(const Shape& shape, Random& random) {
  return nn::uniform<float>(shape, random, 1.0);
}

/// A mask where the scores are an image, labels where they are classes.
template <class Model>
auto random_targets(const Shape& scores, Random& random) {
  if constexpr (std::is_same_v<Model, nn::UNet>) {
    return random_tensor(scores, random).map([](float v) { return v > 0 ? 1.0F : 0.0F; });
  } else {
    Tensor<Index> labels(Shape{scores[0]});
    for (Index& label : labels.mutable_values()) {
      label = random.between(0, scores[1] - 1);
    }
    return labels;
  }
}

/// The loss that fits them.
template <class Model, class V, class Targets>
V loss_of(const V& scores, const Targets& targets) {
  if constexpr (std::is_same_v<Model, nn::UNet>) {
    return bce_with_logits(scores, targets);
  } else {
    return cross_entropy(scores, targets);
  }
}

template <class Model, class V>
V infer(std::span<const V> parameters, const V& x) {
  if constexpr (requires { Model::template initial_statistics<float>(); }) {
    const auto statistics = Model::template initial_statistics<float>();
    const std::vector<V> given(statistics.begin(), statistics.end());
    return Model::template infer<V>(parameters, given, x);
  } else {
    return Model::template forward<V>(parameters, x);
  }
}

/// Everything a model is timed with.
template <class Model>
struct Setting {
  explicit Setting(Index batch)
      : random(1),
        parameters(Model::template initial<float>(random)),
        x(random_tensor(Model::input(batch), random)),
        targets(random_targets<Model>(
            Model::template forward<Tensor<float>>(std::span<const Tensor<float>>(parameters), x)
                .shape(),
            random)) {}

  Random random;
  std::vector<Tensor<float>> parameters;
  Tensor<float> x;
  decltype(random_targets<Model>(Shape{}, std::declval<Random&>())) targets;
};

template <class Model>
void eager_step(Setting<Model>& setting, nn::Sgd<float>& sgd) {
  using V = Var<Tensor<float>>;
  Tape<float> tape;
  std::vector<V> variables;
  for (const Tensor<float>& parameter : setting.parameters) {
    variables.push_back(tape.parameter(parameter));
  }
  const V scores = Model::template forward<V>(std::span<const V>(variables), V(setting.x));
  const auto grads = tape.backward(loss_of<Model>(scores, setting.targets));
  std::vector<Tensor<float>> bars;
  for (const V& variable : variables) {
    bars.push_back(grads[variable]);
  }
  sgd.step(setting.parameters, bars);
}

/// A program, what a run is given and where its results go.
struct Running {
  Program<float> program;
  Context<float> context;
  std::vector<Given> given;
  std::vector<Tensor<float>> results;

  explicit Running(Program<float> compiled) : program(std::move(compiled)), context(program) {
    for (const Shape& shape : program.result_shapes()) {
      results.emplace_back(shape);
    }
  }
  void run() { program.run(context, given, results); }
};

template <class Model>
Program<float> compiled_step(const Setting<Model>& setting) {
  const auto loss = [](const auto& parameters, const auto& x, const auto& targets) {
    using V = std::remove_cvref_t<decltype(x)>;
    return loss_of<Model>(Model::template forward<V>(std::span<const V>(parameters), x), targets);
  };
  if constexpr (std::is_same_v<Model, nn::UNet>) {
    return compile_step<float>(
        SgdUpdate{}, loss, setting.parameters, setting.x.shape(), setting.targets.shape());
  } else {
    return compile_step<float>(SgdUpdate{},
                               loss,
                               setting.parameters,
                               setting.x.shape(),
                               DataShape{setting.targets.shape()});
  }
}

/// Parameters are part of the program, as they are of a deployed model.
template <class Model>
Program<float> compiled_inference(const Setting<Model>& setting) {
  return compile<float>(
      [&](const auto& x) {
        using V = std::remove_cvref_t<decltype(x)>;
        const std::vector<V> parameters(setting.parameters.begin(), setting.parameters.end());
        return infer<Model, V>(parameters, x);
      },
      setting.x.shape());
}

template <class Model>
Work model_work(char direction, Index batch) {
  const auto setting = std::make_shared<Setting<Model>>(batch);
  Work work;
  work.kernel = direction == 'S' || direction == 'I' ? "eager" : "compiled";
  switch (direction) {
    case 'I':
      work.run = [setting] {
        infer<Model, Tensor<float>>(std::span<const Tensor<float>>(setting->parameters),
                                    setting->x);
      };
      return work;
    case 'S': {
      const auto sgd = std::make_shared<nn::Sgd<float>>(nn::SgdOptions{.rate = 1e-3});
      work.run = [setting, sgd] { eager_step(*setting, *sgd); };
      return work;
    }
    case 'P': {
      const auto running = std::make_shared<Running>(compiled_inference(*setting));
      running->given.emplace_back(std::as_const(setting->x));
      work.run = [setting, running] { running->run(); };
      return work;
    }
    default: {
      Program<float> program = compiled_step(*setting);
      const PeakMemory memory;
      const auto running = std::make_shared<Running>(std::move(program));
      const auto rate = std::make_shared<Tensor<float>>(Shape{}, 1e-3F);
      for (Tensor<float>& parameter : setting->parameters) {
        running->given.emplace_back(parameter);
      }
      running->given.emplace_back(std::as_const(setting->x));
      running->given.emplace_back(std::as_const(setting->targets));
      running->given.emplace_back(std::as_const(*rate));
      work.run = [setting, rate, running] { running->run(); };
      work.run();
      work.run();
      work.memory = static_cast<double>(std::max(memory.bytes(), running->program.peak_bytes()));
      return work;
    }
  }
}

}  // namespace

bool is_model(const Case& what) {
  return what.op == nn::LeNet5::name || what.op == nn::UNet::name || what.op == nn::ResNet18::name;
}

Work make_model(const Case& what, char direction, const std::string& problem) {
  if (std::string_view("SICP").find(direction) == std::string_view::npos) {
    throw Error(ErrorCode::unknown_operator,
                "bench: case \"" + what.name + "\": a model has the directions S, I, C and P");
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
