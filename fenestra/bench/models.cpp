// Whole networks: a training step with plain gradient descent and inference, by the tape and
// compiled.
#include <fenestra/bench/memory.hpp>
#include <fenestra/bench/model_programs.hpp>
#include <fenestra/bench/networks.hpp>
#include <fenestra/bench/work.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/nn/optimiser.hpp>
#include <fenestra/spec/problem.hpp>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace fenestra::bench {

namespace {

/// Everything a model is timed with.
template <class Model>
struct Setting {
  explicit Setting(Index batch)
      : random(1),
        parameters(Model::template initial<float>(random)),
        x(nn::uniform<float>(Model::input(batch), random, 1.0)),
        targets(random_targets<Model, float>(batch, random)) {}

  Random random;
  std::vector<Tensor<float>> parameters;
  Tensor<float> x;
  Targets<Model, float> targets;
};

template <class Model>
void eager_step(Setting<Model>& setting, nn::Sgd<float>& sgd) {
  using V = Value<float>;
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
  std::vector<RunArgument> arguments;
  std::vector<Tensor<float>> results;

  explicit Running(Program<float> compiled) : program(std::move(compiled)), context(program) {
    for (const Shape& shape : program.result_shapes()) {
      results.emplace_back(shape);
    }
  }
  void run() { program.run(context, arguments, results); }
};

template <class Model>
Work model_work(char direction, Index batch) {
  const auto setting = std::make_shared<Setting<Model>>(batch);
  Work work;
  work.kernel = direction == 'S' || direction == 'I' ? "eager" : "compiled";
  switch (direction) {
    case 'I':
      work.run = [setting] { infer<Model, Tensor<float>>(setting->parameters, setting->x); };
      return work;
    case 'S': {
      const auto sgd = std::make_shared<nn::Sgd<float>>(nn::SgdOptions{.rate = 1e-3});
      work.run = [setting, sgd] { eager_step(*setting, *sgd); };
      return work;
    }
    case 'P': {
      const auto running =
          std::make_shared<Running>(compile_inference<Model, float>(setting->parameters, batch));
      running->arguments.emplace_back(std::as_const(setting->x));
      work.run = [setting, running] { running->run(); };
      return work;
    }
    default: {
      Program<float> program = compile_training_step<Model, float>(setting->parameters, batch);
      const PeakMemory memory;
      const auto running = std::make_shared<Running>(std::move(program));
      const auto rate = std::make_shared<Tensor<float>>(Shape{}, 1e-3F);
      for (Tensor<float>& parameter : setting->parameters) {
        running->arguments.emplace_back(parameter);
      }
      running->arguments.emplace_back(std::as_const(setting->x));
      running->arguments.emplace_back(std::as_const(setting->targets));
      running->arguments.emplace_back(std::as_const(*rate));
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
  return what.op == nn::LeNet5::name || what.op == nn::UNet::name ||
         what.op == nn::ResNet18::name || is_network(what.op);
}

Work make_model(const Case& what, char direction, const std::string& problem) {
  if (std::string_view("SICP").find(direction) == std::string_view::npos) {
    throw Error(ErrorCode::unknown_choice,
                "bench: case \"" + what.name + "\": a model has the directions S, I, C and P");
  }
  const Index batch = Problem(problem).integer("batch", 1);
  if (what.op == nn::LeNet5::name) {
    return model_work<nn::LeNet5>(direction, batch);
  }
  if (what.op == nn::UNet::name) {
    return model_work<nn::UNet>(direction, batch);
  }
  if (what.op == nn::ResNet18::name) {
    return model_work<nn::ResNet18>(direction, batch);
  }
  return make_network(what.op, direction, batch);
}

}  // namespace fenestra::bench
