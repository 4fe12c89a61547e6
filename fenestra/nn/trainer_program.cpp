// Tracing and running the programs of a trainer, and the step without one.
#include <fenestra/base/memory.hpp>
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/graph/names.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/nn/step_profile.hpp>
#include <fenestra/nn/trainer_program.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>

namespace fenestra::nn::detail {

namespace {

// Bytes that batches which are run side by side may take together. Where one takes more, weights
// are read and gradients written in a small part of its time.
constexpr std::size_t kJointBytes = std::size_t{512} << 20;
// Gradients that a second-level cache holds beside weights: nothing is gained by reading them once.
constexpr std::size_t kCachedGradients = std::size_t{512} << 10;
// A step is measured so many times, unless that takes longer than so many seconds.
constexpr int kMostProfiles = 5;
constexpr double kProfileSeconds = 0.5;

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
  // The part of the step that each node is of: what was appended since the layer before.
  std::vector<std::string> parts_of_nodes;
  const auto name_part = [&](const std::string& part) {
    parts_of_nodes.resize(static_cast<std::size_t>(builder.graph().size()), part);
  };
  {
    SlotScope<T> scope(slots);
    trained = put_nodes(builder, slots, scope);
    Pass<T> pass = Pass<T>::training(Key(0));
    pass.set_observer([&](const LayerCall<T>& call) {
      if (!call.has_parts) {
        name_part(part_of(call.name, call.kind));
      }
    });
    pass.set_mask_source([&](const MaskRequest& request) {
      masks_.push_back(request);
      return Value<T>(builder.mask(request.shape, "mask" + std::to_string(request.number)));
    });
    const Value<T> scores = parts.forward(x, pass);
    name_part(std::string(kRestOfModel));
    const Value<T> loss = loss_function(scores, target);
    require_single(loss.shape());
    name_part("loss");
    builder.output(node_of(builder, loss), "loss");
    builder.output(node_of(builder, scores), "scores");
    for (const BufferUpdate<T>& update : pass.updates()) {
      const std::size_t slot = slot_of(slots, update);
      findings_.buffers.push_back(slot);
      builder.output(node_of(builder, update.value), slots[slot].name + "_next");
    }
  }
  const std::size_t loss_output[] = {0};
  const graph::Graph step = graph::reverse(
      graph::with_names(builder.graph(), parts_of_nodes), loss_output, trained, graph::Seed::one);
  // Folding would change bits.
  numerics_ = kernels::numerics();
  program_.emplace(step, CompileOptions{.numerics = numerics_, .fold = false});
  findings_ = empty_findings();
  const std::size_t first = findings_.results.size();
  const std::vector<Shape> shapes = program_->result_shapes();
  std::size_t gradients = 0;
  for (std::size_t i = first; i < shapes.size(); ++i) {
    gradients += static_cast<std::size_t>(shapes[i].elements().value()) * sizeof(T);
  }
  may_join_ = gradients > kCachedGradients &&
              graph::JointExecution<T>::writes_once(program_->plan(), first);
}

template <class T>
StepFindings<T> StepProgram<T>::empty_findings() const {
  const std::vector<Shape> shapes = program_->result_shapes();
  StepFindings<T> findings{.buffers = findings_.buffers, .results = {}};
  for (std::size_t i = 0; i < 2 + findings.buffers.size(); ++i) {
    findings.results.push_back(Tensor<T>::uninitialised(shapes[i]));
  }
  return findings;
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
std::vector<Tensor<T>> StepProgram<T>::drawn_masks(const Key& key) const {
  std::vector<Tensor<T>> masks;
  masks.reserve(masks_.size());
  for (const MaskRequest& request : masks_) {
    masks.push_back(draw_mask<T>(key, request));
  }
  return masks;
}

template <class T>
std::vector<RunArgument> StepProgram<T>::arguments_of(std::span<const Slot<T>> slots,
                                                      const BatchView<T>& batch,
                                                      std::span<const Tensor<T>> masks) const {
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
  return arguments;
}

template <class T>
StepFindings<T>& StepProgram<T>::run(std::span<const Slot<T>> slots,
                                     const BatchView<T>& batch,
                                     const Key& key,
                                     const GradientRoom<T>& room) {
  require_plain(slots);
  const std::vector<Tensor<T>> masks = drawn_masks(key);
  const std::vector<RunArgument> arguments = arguments_of(slots, batch, masks);
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
graph::Report StepProgram<T>::profile(std::span<const Slot<T>> slots,
                                      const BatchView<T>& batch,
                                      const Key& key) {
  require_plain(slots);
  const std::vector<Tensor<T>> masks = drawn_masks(key);
  const std::vector<RunArgument> arguments = arguments_of(slots, batch, masks);
  if (!context_) {
    context_.emplace(*program_);
  }
  std::vector<Tensor<T>> results;
  for (const Shape& shape : program_->result_shapes()) {
    results.push_back(Tensor<T>::uninitialised(shape));
  }
  std::vector<double> fastest;
  double least = 0;
  double all = 0;
  for (int run = 0; run < kMostProfiles && all < kProfileSeconds; ++run) {
    std::vector<double> seconds =
        program_->profile(ProgramForm::run, *context_, arguments, results);
    const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    all += sum;
    if (run == 0 || sum < least) {
      least = sum;
      fastest = std::move(seconds);
    }
  }
  return graph::make_report(program_->plan(), {.seconds = fastest});
}

template <class T>
void StepProgram<T>::Free::operator()(void* memory) const {
  std::free(memory);
}

template <class T>
Index StepProgram<T>::joint_batches(Index count) const {
  const std::size_t bytes = std::max<std::size_t>(1, program_->peak_bytes());
  const auto most = static_cast<Index>(std::max<std::size_t>(1, kJointBytes / bytes));
  const Index fitting = may_join_ ? std::min(count, most) : 1;
  return static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(fitting)));
}

template <class T>
graph::JointExecution<T>& StepProgram<T>::joint(std::size_t batches, std::size_t slots) {
  const std::size_t bytes = program_->peak_bytes() * batches;
  if (joint_memory_ == nullptr || joint_bytes_ < bytes) {
    joint_.clear();
    joint_memory_.reset();
    joint_memory_.reset(std::aligned_alloc(kAlignment, bytes + kAlignment));
    joint_bytes_ = bytes;
    if (joint_memory_ == nullptr) {
      throw OutOfMemory("the arena of leaves", bytes);
    }
  }
  for (const auto& known : joint_) {
    if (known->batches() == batches) {
      return *known;
    }
  }
  const auto plan = std::shared_ptr<const graph::Plan>(std::shared_ptr<void>(), &program_->plan());
  const std::size_t of_batch = 1 + (labels_ ? 1 : 0) + (values_ ? 1 : 0);
  std::vector<bool> differs(plan->arguments().size(), true);
  std::fill_n(differs.begin() + static_cast<std::ptrdiff_t>(of_batch), slots, false);
  const kernels::ScopedNumerics numerics(numerics_);
  return *joint_.emplace_back(std::make_unique<graph::JointExecution<T>>(
      plan, batches, static_cast<std::byte*>(joint_memory_.get()), std::move(differs)));
}

template <class T>
std::span<StepFindings<T>> StepProgram<T>::run_joint(std::span<const Slot<T>> slots,
                                                     const BatchView<T>& batches,
                                                     std::span<const Key> keys,
                                                     std::span<const GradientRoom<T>> rooms) {
  require_plain(slots);
  const std::size_t count = keys.size();
  const auto part = [&]<class N>(const Tensor<N>* whole, Shape shape, std::size_t i) {
    return Tensor<N>::view(whole->data() + static_cast<Index>(i) * shape.elements().value(), shape);
  };
  while (joint_findings_.size() < count) {
    joint_findings_.push_back(empty_findings());
  }
  // Masks of all batches, one behind the other.
  std::vector<Tensor<T>> masks;
  for (const MaskRequest& request : masks_) {
    const Index elements = request.shape.elements().value();
    Tensor<T>& all =
        masks.emplace_back(Tensor<T>::uninitialised(Shape{static_cast<Index>(count), elements}));
    for (std::size_t i = 0; i < count; ++i) {
      const Tensor<T> mask = draw_mask<T>(keys[i], request);
      std::copy_n(mask.data(), elements, all.mutable_data() + static_cast<Index>(i) * elements);
    }
  }
  std::vector<typename graph::JointExecution<T>::Batch> given(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor<T> inputs = part(batches.inputs, inputs_, i);
    BatchView<T> one{.inputs = &inputs};
    std::optional<Tensor<Index>> labels;
    std::optional<Tensor<T>> values;
    if (labels_) {
      one.labels = &labels.emplace(part(batches.labels, *labels_, i));
    }
    if (values_) {
      one.values = &values.emplace(part(batches.values, *values_, i));
    }
    std::vector<Tensor<T>> own_masks;
    for (std::size_t k = 0; k < masks.size(); ++k) {
      own_masks.push_back(part(&masks[k], masks_[k].shape, i));
    }
    const std::vector<RunArgument> arguments = arguments_of(slots, one, own_masks);
    graph::check_arguments(program_->plan(), "run", arguments);
    for (const RunArgument& argument : arguments) {
      given[i].arguments.push_back(argument.data());
    }
    for (Tensor<T>& tensor : joint_findings_[i].results) {
      given[i].outputs.push_back(tensor.mutable_data());
    }
    given[i].outputs.insert(given[i].outputs.end(), rooms[i].memory.begin(), rooms[i].memory.end());
  }
  const std::size_t first = findings_.results.size();
  std::vector<std::size_t> gradients;
  joint(count, slots.size())
      .run(given, [&](std::size_t batch, std::span<const std::size_t> complete) {
        gradients.clear();
        for (const std::size_t result : complete) {
          if (result >= first) {
            gradients.push_back(result - first);
          }
        }
        rooms[batch].found(gradients);
      });
  return std::span(joint_findings_).first(count);
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
                             const GradientRoom<T>& room,
                             const std::function<void(const std::string&, bool)>& after_part) {
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
  const auto done = [&](const std::string& part, bool is_backward) {
    if (after_part) {
      after_part(part, is_backward);
    }
  };
  if (after_part) {
    pass.set_observer([&](const LayerCall<T>& call) {
      if (!call.has_parts) {
        done(part_of(call.name, call.kind), false);
      }
    });
  }
  const Value<T> scores = parts.forward(Value<T>(*batch.inputs), pass);
  done(std::string(kRestOfModel), false);
  const Value<T> loss = loss_function(scores, target);
  require_single(loss.shape());
  done("loss", false);
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
  done("", true);
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
                                          const GradientRoom<float>&,
                                          const std::function<void(const std::string&, bool)>&);
template StepFindings<double> step_eagerly(const TrainerCore<double>::Parts&,
                                           const LossFunction<double>&,
                                           std::span<const Slot<double>>,
                                           const BatchView<double>&,
                                           const Key&,
                                           const GradientRoom<double>&,
                                           const std::function<void(const std::string&, bool)>&);

}  // namespace fenestra::nn::detail
