// Tracing a model of layers into a graph, with the names of its parameters.
#include <fenestra/cli/explain_network.hpp>
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/graph/var.hpp>
#include <fenestra/nn/pass.hpp>

#include <string>
#include <utility>

namespace fenestra::cli {

namespace {

/// A node of the graph, or a constant.
template <class T>
graph::Value<T> handle_of(const Value<T>& value) {
  const auto* traced = value.template as<graph::Value<T>>();
  return traced != nullptr ? *traced : graph::Value<T>(value.tensor());
}

template <class T>
Tensor<T> drawn_numbers(const Shape& shape, const Key& key) {
  Tensor<T> numbers(shape);
  std::uint64_t position = 0;
  for (T& number : numbers.mutable_values()) {
    number = static_cast<T>(key.uniform(position++));
  }
  return numbers;
}

}  // namespace

template <class T>
std::vector<RunArgument> NetworkProgram<T>::arguments() const {
  std::vector<RunArgument> all;
  all.emplace_back(x);
  if (labels) {
    all.emplace_back(*labels);
  }
  if (values) {
    all.emplace_back(*values);
  }
  for (const Tensor<T>& slot : slots) {
    all.emplace_back(slot);
  }
  for (const Tensor<T>& mask : masks) {
    all.emplace_back(mask);
  }
  return all;
}

template <class T>
NetworkProgram<T> compile_network(const ExplainModelOptions& options) {
  Network<T> network = load_or_make_network<T>(options.model, options.input);
  const Key key(1);
  Shape shape{options.batch};
  for (const Index extent : network.input) {
    shape.push_back(extent);
  }
  const bool is_step = options.form == ModelForm::step;
  graph::Builder<T> builder;
  const Value<T> x(builder.input(shape, "x"));
  Tensor<T> x_numbers = drawn_numbers<T>(shape, key.fold("x"));
  std::optional<Tensor<Index>> labels;
  std::optional<Tensor<T>> values;
  nn::Target<T> target;
  if (is_step) {
    const Shape& scores = network.layers.output;
    Shape of_target{options.batch};
    const bool has_classes = network.task != nn::Task::reconstruction && scores[1] > 1;
    for (int axis = has_classes ? 2 : 1; axis < scores.rank(); ++axis) {
      of_target.push_back(scores[axis]);
    }
    if (has_classes) {
      labels.emplace(of_target);
      target.labels = Indices(builder.data(of_target, "labels"));
    } else {
      values = drawn_numbers<T>(of_target, key.fold("targets"));
      target.values = Value<T>(builder.mask(of_target, "targets"));
    }
  }
  std::vector<Tensor<T>> slot_numbers;
  std::vector<graph::NodeId> trained;
  nn::Layer<T> model = network.model;
  for (const nn::Slot<T>& slot : nn::slots<T>(model)) {
    if (options.form == ModelForm::infer) {
      break;  // they stay constants
    }
    slot_numbers.push_back(slot.value->tensor());
    const Shape of_slot = slot.value->shape();
    const graph::Value<T> node =
        slot.trained ? builder.parameter(of_slot, slot.name) : builder.mask(of_slot, slot.name);
    if (slot.trained) {
      trained.push_back(node.node());
    }
    *slot.value = Value<T>(node);
  }
  nn::Pass<T> pass = is_step ? nn::Pass<T>::training(key.fold("masks")) : nn::Pass<T>::inference();
  std::vector<Tensor<T>> masks;
  pass.set_mask_source([&](const nn::MaskRequest& request) {
    masks.push_back(nn::draw_mask<T>(key, request));
    return Value<T>(builder.mask(request.shape, "mask" + std::to_string(request.number)));
  });
  const Value<T> scores = model(x, pass);
  const CompileOptions how{.memory_limit = options.memory_limit};
  if (!is_step) {
    builder.output(handle_of(scores), "scores");
    return {std::move(network),
            Program<T>(builder.graph(), how),
            std::move(x_numbers),
            {},
            {},
            std::move(slot_numbers),
            std::move(masks)};
  }
  const auto said = network.info.more.find(kLossKey);
  const std::string fitting = labels ? "cross-entropy" : "bce";
  const nn::Loss<T> loss =
      nn::Loss<T>::make(said != network.info.more.end() ? said->second : fitting);
  builder.output(handle_of(loss(scores, target)), "loss");
  builder.output(handle_of(scores), "scores");
  for (const nn::BufferUpdate<T>& update : pass.updates()) {
    builder.output(handle_of(update.value), "buffer" + std::to_string(update.buffer));
  }
  const std::size_t loss_output[] = {0};
  return {std::move(network),
          Program<T>(graph::reverse(builder.graph(), loss_output, trained, graph::Seed::one), how),
          std::move(x_numbers),
          std::move(labels),
          std::move(values),
          std::move(slot_numbers),
          std::move(masks)};
}

template struct NetworkProgram<float>;
template struct NetworkProgram<double>;
template NetworkProgram<float> compile_network(const ExplainModelOptions&);
template NetworkProgram<double> compile_network(const ExplainModelOptions&);

}  // namespace fenestra::cli
