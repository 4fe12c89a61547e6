// Where the time and the memory of a trainer's step go.
#include <fenestra/nn/trainer_state.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::nn {

namespace {

template <class T>
std::size_t bytes_of(const Tensor<T>& tensor) {
  return tensor.rank() == 0 ? 0 : static_cast<std::size_t>(tensor.size()) * sizeof(T);
}

/// The first samples of what a batch has.
template <class N>
Tensor<N> first_of(const Tensor<N>& x, Index samples) {
  if (x.rank() == 0 || x.size() == 0) {
    return x;
  }
  Shape shape = x.shape();
  shape[0] = samples;
  return Tensor<N>::view(x.data(), shape);
}

}  // namespace

template <KernelScalar T>
StepMemory TrainerCore<T>::State::memory_of(const std::vector<Slot<T>>& all,
                                            const Batch<T>& batch) const {
  StepMemory memory{
      .optimiser = optimiser.state_bytes(),
      .batch = bytes_of(batch.inputs) + bytes_of(batch.labels) + bytes_of(batch.targets)};
  for (const Slot<T>& slot : all) {
    const std::size_t bytes =
        static_cast<std::size_t>(slot.value->shape().elements().value()) * sizeof(T);
    (slot.trained ? memory.parameters : memory.buffers) += bytes;
    memory.gradients += slot.trained ? bytes : 0;
  }
  if (average) {
    for (const Tensor<T>& tensor : average->values()) {
      memory.average += static_cast<std::size_t>(tensor.size()) * sizeof(T);
    }
  }
  return memory;
}

template <KernelScalar T>
StepProfile TrainerCore<T>::profile(const Batch<T>& batch) {
  State& s = *state_;
  const std::vector<Slot<T>> all = s.slots();
  StepProfile result;
  StepMemory memory = s.memory_of(all, batch);
  if (s.has_tiles()) {
    result.memory = memory;
    return result;
  }
  const Index samples = batch.inputs.rank() > 0 ? batch.inputs.shape()[0] : 0;
  const Index measured = s.options.leaf > 0 ? std::min(s.options.leaf, samples) : samples;
  const Batch<T> part{.inputs = first_of(batch.inputs, measured),
                      .labels = first_of(batch.labels, measured),
                      .targets = first_of(batch.targets, measured)};
  Tensor<T> numbers;
  const detail::BatchView<T> seen = s.view(part, numbers);
  const Key key = Key(s.options.seed).fold("profile");
  if (s.options.compiled) {
    result = detail::profile_of(s.program_of(all, seen).profile(all, seen, key));
    s.has_traced = false;
    memory.activations = result.memory.activations;
    memory.arena = result.memory.arena;
  } else {
    std::vector<Tensor<T>> gradients;
    detail::GradientRoom<T> room{.found = [](std::span<const std::size_t>) {}};
    for (const Slot<T>& slot : all) {
      if (slot.trained) {
        gradients.push_back(Tensor<T>::uninitialised(slot.value->shape()));
        room.memory.push_back(gradients.back().mutable_data());
      }
    }
    using Clock = std::chrono::steady_clock;
    detail::PartTimes times;
    double backward = 0;
    Clock::time_point last = Clock::now();
    detail::step_eagerly<T>(
        s.parts, s.loss, all, seen, key, room, [&](const std::string& name, bool is_backward) {
          const double seconds = std::chrono::duration<double>(Clock::now() - last).count();
          if (is_backward) {
            backward += seconds;
          } else {
            times.add(name, false, seconds);
          }
          last = Clock::now();
        });
    result = times.finish(false);
    result.backward = backward;
  }
  result.samples = measured;
  result.memory = memory;
  return result;
}

template StepProfile TrainerCore<float>::profile(const Batch<float>&);
template StepProfile TrainerCore<double>::profile(const Batch<double>&);
template StepMemory TrainerCore<float>::State::memory_of(const std::vector<Slot<float>>&,
                                                         const Batch<float>&) const;
template StepMemory TrainerCore<double>::State::memory_of(const std::vector<Slot<double>>&,
                                                          const Batch<double>&) const;

}  // namespace fenestra::nn
