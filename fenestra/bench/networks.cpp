// Ready networks (nn/models), trained and used as people do: steps of a trainer with plain gradient
// descent, eager and compiled, and inference.
#include <fenestra/bench/memory.hpp>
#include <fenestra/bench/networks.hpp>
#include <fenestra/engine/compile.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/trainer.hpp>

#include <memory>
#include <utility>

namespace fenestra::bench {

namespace {

Tensor<float> drawn(const Shape& shape, const Key& key) {
  Tensor<float> numbers(shape);
  std::uint64_t position = 0;
  for (float& number : numbers.mutable_values()) {
    number = static_cast<float>(2 * key.uniform(position++) - 1);
  }
  return numbers;
}

Value<float> inferred(const nn::Layer<float>& model, const Value<float>& x) {
  auto pass = nn::Pass<float>::inference();
  return model(x, pass);
}

Work step_work(nn::Layer<float> model, Tensor<float> x, Index classes, bool compiled) {
  using Trainer = nn::Trainer<nn::Layer<float>>;
  const auto batch = std::make_shared<nn::Batch<float>>();
  batch->labels = Tensor<Index>(Shape{x.shape()[0]});
  for (Index i = 0; i < x.shape()[0]; ++i) {
    batch->which.push_back(i);
    batch->labels.mutable_data()[i] = i * 37 % classes;
  }
  batch->inputs = std::move(x);
  const PeakMemory memory;
  const auto trainer = std::make_shared<Trainer>(
      std::move(model), nn::TrainerOptions{.optimiser = "sgd rate=0.001", .compiled = compiled});
  Work work;
  work.run = [trainer, batch] { trainer->step(*batch); };
  if (compiled) {
    work.run();
    work.run();
    work.memory = static_cast<double>(memory.bytes());
  }
  return work;
}

Work inference_work(nn::Layer<float> model, Tensor<float> x, bool compiled) {
  Work work;
  if (!compiled) {
    work.run = [model = std::move(model), x = std::move(x)] { inferred(model, x); };
    return work;
  }
  const auto program = std::make_shared<Program<float>>(
      compile<float>([&](const Value<float>& in) { return inferred(model, in); }, x.shape()));
  const auto context = std::make_shared<Context<float>>(*program);
  work.run = [program, context, x = std::move(x)] { program->run(*context, x); };
  return work;
}

}  // namespace

bool is_network(const std::string& name) {
  for (const nn::ModelEntry& entry : nn::model_entries()) {
    if (entry.name == name && entry.output == "classes") {
      return true;
    }
  }
  return false;
}

Work make_network(const std::string& name, char direction, Index batch) {
  const Key key(1);
  nn::Layer<float> model = nn::make_model<float>(name);
  nn::initialise(model, key.fold("model"));
  Shape shape{batch};
  for (const Index extent : nn::model_entry(name).input) {
    shape.push_back(extent);
  }
  Tensor<float> x = drawn(shape, key.fold("x"));
  const bool compiled = direction == 'C' || direction == 'P';
  Work work = [&] {
    if (direction == 'I' || direction == 'P') {
      return inference_work(std::move(model), std::move(x), compiled);
    }
    const Index classes = inferred(model, x).shape()[1];
    return step_work(std::move(model), std::move(x), classes, compiled);
  }();
  work.kernel = compiled ? "compiled" : "eager";
  return work;
}

}  // namespace fenestra::bench
