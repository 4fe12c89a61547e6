// Tracing and running the programs of a trainer, and the step without one.
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/nn/trainer_program.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace fenestra::nn::detail {

namespace {

void require_single(const Shape& loss) {
  if (loss.elements() != 1) {
    throw Error(ErrorCode::shape_mismatch,
                "trainer: the loss is " + to_string(loss) +
                    ", needed a single element\n  fix: the mean of it");
  }
}

[[noreturn]] void throw_foreign(const std::string& what, const Shape& shape) {
  throw Error(ErrorCode::foreign_variable,
              "trainer: " + what + " " + to_string(shape) +
                  " belongs to a transform around the trainer\n  fix: train outside of transforms");
}

/// What a function of nodes gave: a node of this graph, or a constant.
template <class T>
graph::Value<T> node_of(const graph::Builder<T>& builder, const Value<T>& value) {
  if (value.level() == 0) {
    return value.plain();
  }
  const auto* traced = value.template as<graph::Value<T>>();
  if (traced == nullptr || value.level() != builder.graph().level()) {
    throw_foreign("a result", value.shape());
  }
  return *traced;
}

template <class T>
void require_plain(std::span<const Slot<T>> slots) {
  for (const Slot<T>& slot : slots) {
    if (slot.value->level() != 0) {
      throw_foreign("slot " + slot.name, slot.value->shape());
    }
  }
}

/// Which slot a pass found a new value for.
template <class T>
std::size_t slot_of(std::span<const Slot<T>> slots, const BufferUpdate<T>& update) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].trained && slots[i].buffer == update.buffer) {
      if (slots[i].value->shape() != update.value.shape()) {
        throw Error(ErrorCode::shape_mismatch,
                    "trainer: buffer " + slots[i].name + " = " +
                        to_string(slots[i].value->shape()) + " is to become " +
                        to_string(update.value.shape()) + "\n  fix: equal shapes");
      }
      return i;
    }
  }
  throw Error(ErrorCode::foreign_variable,
              "trainer: a pass has a new value " + to_string(update.value.shape()) +
                  " for a buffer that the model does not have\n  fix: make the buffer part of the "
                  "model");
}

template <class T>
bool has_shape(const std::optional<Shape>& shape, const Tensor<T>* tensor) {
  return tensor == nullptr ? !shape.has_value() : shape == tensor->shape();
}

}  // namespace

template <class T>
std::vector<graph::NodeId> put_nodes(graph::Builder<T>& builder,
                                     std::span<const Slot<T>> slots,
                                     SlotScope<T>& scope) {
  std::vector<graph::NodeId> trained;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Shape& shape = scope.saved(i).shape();
    const graph::Value<T> node = slots[i].trained ? builder.parameter(shape, slots[i].name)
                                                  : builder.mask(shape, slots[i].name);
    if (slots[i].trained) {
      trained.push_back(node.node());
    }
    scope.put(i, Value<T>(node));
  }
  return trained;
}

template <class T>
StepProgram<T>::StepProgram(const typename TrainerCore<T>::Parts& parts,
                            const LossFunction<T>& loss_function,
                            std::span<const Slot<T>> slots,
                            const BatchView<T>& batch)
    : inputs_(batch.inputs->shape()) {
  require_plain(slots);
  graph::Builder<T> builder;
  const Value<T> x(builder.input(inputs_, "inputs"));
  Target<T> target;
  if (batch.labels != nullptr) {
    labels_ = batch.labels->shape();
    target.labels = Indices(builder.data(*labels_, "labels"));
  }
  if (batch.values != nullptr) {
    values_ = batch.values->shape();
    target.values = Value<T>(builder.mask(*values_, "targets"));
  }
  std::vector<graph::NodeId> trained;
  {
    SlotScope<T> scope(slots);
    trained = put_nodes(builder, slots, scope);
    Pass<T> pass = Pass<T>::training(Key(0));
    pass.set_mask_source([&](const MaskRequest& request) {
      masks_.push_back(request);
      return Value<T>(builder.mask(request.shape, "mask" + std::to_string(request.number)));
    });
    const Value<T> scores = parts.forward(x, pass);
    const Value<T> loss = loss_function(scores, target);
    require_single(loss.shape());
    builder.output(node_of(builder, loss), "loss");
    builder.output(node_of(builder, scores), "scores");
    for (const BufferUpdate<T>& update : pass.updates()) {
      const std::size_t slot = slot_of(slots, update);
      findings_.buffers.push_back(slot);
      builder.output(node_of(builder, update.value), slots[slot].name + "_next");
    }
  }
  const std::size_t loss_output[] = {0};
  const graph::Graph step = graph::reverse(builder.graph(), loss_output, trained, graph::Seed::one);
  // Folding would change bits.
  program_.emplace(step, CompileOptions{.fold = false});
  const std::vector<Shape> shapes = program_->result_shapes();
  for (std::size_t i = 0; i < 2 + findings_.buffers.size(); ++i) {
    findings_.results.push_back(Tensor<T>::uninitialised(shapes[i]));
  }
}

template <class T>
bool StepProgram<T>::fits(const BatchView<T>& batch) const {
  return batch.inputs->shape() == inputs_ && has_shape(labels_, batch.labels) &&
         has_shape(values_, batch.values);
}

template <class T>
PackedParameters StepProgram<T>::packed_for(std::uint64_t weights) {
  if (weights == 0 || weights != weights_) {
    runs_before_ = std::exchange(runs_, 0);
    weights_ = weights;
  }
  ++runs_;
  // That weights serve several leaves is seen when they do; then the next ones will, too. What a
  // single run would keep takes memory for nothing.
  if (weights == 0 || (runs_ == 1 && runs_before_ <= 1)) {
    return PackedParameters::in_calls;
  }
  return runs_ == 1 ? PackedParameters::kept : PackedParameters::again;
}

template <class T>
StepFindings<T>& StepProgram<T>::run(std::span<const Slot<T>> slots,
                                     const BatchView<T>& batch,
                                     const Key& key,
                                     const GradientRoom<T>& room) {
  require_plain(slots);
  std::vector<Tensor<T>> masks;
  masks.reserve(masks_.size());
  for (const MaskRequest& request : masks_) {
    masks.push_back(draw_mask<T>(key, request));
  }
  std::vector<RunArgument> arguments;
  arguments.reserve(3 + slots.size() + masks.size());
  arguments.emplace_back(*batch.inputs);
  if (batch.labels != nullptr) {
    arguments.emplace_back(*batch.labels);
  }
  if (batch.values != nullptr) {
    arguments.emplace_back(*batch.values);
  }
  for (const Slot<T>& slot : slots) {
    arguments.emplace_back(std::as_const(*slot.value).plain());
  }
  for (const Tensor<T>& mask : masks) {
    arguments.emplace_back(mask);
  }
  if (!context_) {
    context_.emplace(*program_);
  }
  std::vector<T*> results;
  for (Tensor<T>& tensor : findings_.results) {
    results.push_back(tensor.mutable_data());
  }
  const std::size_t first = results.size();
  results.insert(results.end(), room.memory.begin(), room.memory.end());
  std::vector<std::size_t> gradients;
  const AfterStep after = [&](std::span<const std::size_t> complete) {
    gradients.clear();
    for (const std::size_t result : complete) {
      if (result >= first) {
        gradients.push_back(result - first);
      }
    }
    room.found(gradients);
  };
  program_->run(*context_, arguments, results, after, packed_for(room.weights));
  return findings_;
}

template <class T>
InferenceProgram<T>::InferenceProgram(const typename TrainerCore<T>::Parts& parts,
                                      std::span<const Slot<T>> slots,
                                      const Shape& inputs)
    : inputs_(inputs) {
  require_plain(slots);
  graph::Builder<T> builder;
  const Value<T> x(builder.input(inputs_, "inputs"));
  SlotScope<T> scope(slots);
  put_nodes(builder, slots, scope);
  Pass<T> pass = Pass<T>::inference();
  builder.output(node_of(builder, parts.forward(x, pass)), "scores");
  program_.emplace(builder.graph(), CompileOptions{});
  context_.emplace(*program_);
}

template <class T>
Tensor<T> InferenceProgram<T>::run(std::span<const Slot<T>> slots, const Tensor<T>& x) {
  require_plain(slots);
  std::vector<RunArgument> arguments;
  arguments.reserve(1 + slots.size());
  arguments.emplace_back(x);
  for (const Slot<T>& slot : slots) {
    arguments.emplace_back(std::as_const(*slot.value).plain());
  }
  return std::move(program_->execute_new(ProgramForm::run, *context_, arguments)[0]);
}

template <class T>
StepFindings<T> step_eagerly(const typename TrainerCore<T>::Parts& parts,
                             const LossFunction<T>& loss_function,
                             std::span<const Slot<T>> slots,
                             const BatchView<T>& batch,
                             const Key& key,
                             const GradientRoom<T>& room) {
  require_plain(slots);
  Target<T> target;
  if (batch.labels != nullptr) {
    target.labels = Indices(*batch.labels);
  }
  if (batch.values != nullptr) {
    target.values = Value<T>(*batch.values);
  }
  Tape<T> tape;
  SlotScope<T> scope(slots);
  std::vector<Value<T>> trained;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].trained) {
      trained.push_back(tape.parameter(scope.saved(i), slots[i].name));
      scope.put(i, trained.back());
    }
  }
  Pass<T> pass = Pass<T>::training(key);
  const Value<T> scores = parts.forward(Value<T>(*batch.inputs), pass);
  const Value<T> loss = loss_function(scores, target);
  require_single(loss.shape());
  StepFindings<T> findings;
  findings.results = {loss.tensor(), scores.tensor()};
  for (const BufferUpdate<T>& update : pass.updates()) {
    findings.buffers.push_back(slot_of(slots, update));
    findings.results.push_back(update.value.tensor());
  }
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    all.push_back(i);
    std::fill_n(room.memory[i], trained[i].shape().elements().value(), T(0));
  }
  if (tape.owns(loss)) {
    const Gradients<T> gradients = tape.backward(loss);
    for (const std::size_t i : all) {
      const Tensor<T> gradient = gradients[trained[i]].tensor();
      std::copy_n(gradient.data(), gradient.size(), room.memory[i]);
    }
  }
  room.found(all);
  return findings;
}

template std::vector<graph::NodeId> put_nodes(graph::Builder<float>&,
                                              std::span<const Slot<float>>,
                                              SlotScope<float>&);
template std::vector<graph::NodeId> put_nodes(graph::Builder<double>&,
                                              std::span<const Slot<double>>,
                                              SlotScope<double>&);
template class StepProgram<float>;
template class StepProgram<double>;
template class InferenceProgram<float>;
template class InferenceProgram<double>;
template StepFindings<float> step_eagerly(const TrainerCore<float>::Parts&,
                                          const LossFunction<float>&,
                                          std::span<const Slot<float>>,
                                          const BatchView<float>&,
                                          const Key&,
                                          const GradientRoom<float>&);
template StepFindings<double> step_eagerly(const TrainerCore<double>::Parts&,
                                           const LossFunction<double>&,
                                           std::span<const Slot<double>>,
                                           const BatchView<double>&,
                                           const Key&,
                                           const GradientRoom<double>&);

}  // namespace fenestra::nn::detail
