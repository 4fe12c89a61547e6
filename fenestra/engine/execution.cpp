// Binding pointers and running kernels: for all samples at once, or piece by piece.
#include <fenestra/base/memory.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/execution.hpp>

#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

namespace fenestra::graph {

namespace {

const void* constant_data(const Node& node) {
  if (const auto* f32 = std::get_if<Tensor<float>>(&node.constant)) {
    return f32->data();
  }
  if (const auto* f64 = std::get_if<Tensor<double>>(&node.constant)) {
    return f64->data();
  }
  const Selection& selection = std::get<Selection>(node.constant);
  return selection.is_compact() ? static_cast<const void*>(selection.taps().data())
                                : selection.indices().data();
}

SelectionBuffer buffer_of(const SelectionType& type, void* data) {
  if (type.form == SelectionForm::taps) {
    return {nullptr, static_cast<std::uint8_t*>(data)};
  }
  return {static_cast<Index*>(data), nullptr};
}

std::size_t element_bytes(SelectionForm form) {
  return form == SelectionForm::taps ? sizeof(std::uint8_t) : sizeof(Index);
}

const void* packed_data(const Tensor<std::uint8_t>& packed) {
  return packed.size() > 0 ? packed.data() : nullptr;
}

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class Stopwatch {
 public:
  double seconds() {
    const auto now = std::chrono::steady_clock::now();
    const double past = std::chrono::duration<double>(now - since_).count();
    since_ = now;
    return past;
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace

Selection view_of(const SelectionType& type, const void* data) {
  if (type.form == SelectionForm::taps) {
    return Tensor<std::uint8_t>::view(static_cast<const std::uint8_t*>(data), type.shape);
  }
  return Tensor<Index>::view(static_cast<const Index*>(data), type.shape);
}

const void* data_of(const Selection& selection) {
  return selection.is_compact() ? static_cast<const void*>(selection.taps().data())
                                : selection.indices().data();
}

template <class T>
Execution<T>::Execution(std::shared_ptr<const Plan> plan, std::byte* arena, SharedArena shared)
    : plan_(std::move(plan)),
      arena_(arena),
      shared_(shared),
      arguments_(plan_->arguments().size()),
      outputs_(plan_->graph().outputs().size()) {
  const Graph& graph = plan_->graph();
  // Where a pointer is not known yet the view stands on null, with the shape that it will have.
  for (const Step& step : plan_->steps()) {
    const Node& node = graph.node(step.node);
    for (const NodeId input : node.in) {
      const Place& place = plan_->result(input);
      if (Binding* follows = binding(place)) {
        follows->tensors.push_back(tensors_.size());
      }
      const Node& source = graph.node(input);
      tensors_.push_back(
          Tensor<T>::view(static_cast<const T*>(address(place, source.bytes())), source.shape));
    }
    for (const NodeId input : node.data) {
      const bool own = graph.node(input).type == DataType::index;
      const Place& place = own ? plan_->result(input) : plan_->workspace(input);
      if (Binding* follows = binding(place)) {
        follows->selections.push_back(selections_.size());
      }
      selections_.push_back(view_of(graph.selection_type(input), address_of_data(input)));
    }
  }
  make_calls();
  for (const ChannelLoop& loop : plan_->channel_loops()) {
    channel_seconds_.emplace_back(static_cast<std::size_t>(loop.pieces()) *
                                  (loop.end - loop.first));
  }
  find_results(Channels::in_turn);
  find_kept_forms();
}

template <class T>
void Execution<T>::find_kept_forms() {
  const Graph& graph = plan_->graph();
  std::vector<bool> stays(plan_->arguments().size());
  for (std::size_t i = 0; i < stays.size(); ++i) {
    stays[i] = graph.node(plan_->arguments()[i]).kind == NodeKind::parameter;
  }
  for (const Output& output : graph.outputs()) {
    if (output.overwrites != kNoNode) {
      stays[static_cast<std::size_t>(plan_->result(output.overwrites).index)] = false;
    }
  }
  for (std::size_t s = 0; s < plan_->steps().size(); ++s) {
    const Step& step = plan_->steps()[s];
    const Packing packing = step.kernel->packing();
    if (packing.bytes == 0) {
      continue;
    }
    const auto input = static_cast<std::size_t>(packing.input);
    const Place& place = plan_->result(graph.node(step.node).in[input]);
    if (place.kind == Place::Kind::argument && stays[static_cast<std::size_t>(place.index)]) {
      kept_forms_.push_back({s, static_cast<std::size_t>(place.index)});
    }
  }
}

template <class T>
void Execution<T>::take_kept_forms(bool keeps) {
  const auto memory_for = [&](const std::unique_ptr<const Kernel>& kernel) {
    const std::size_t bytes = keeps && kernel ? kernel->packing().bytes : 0;
    return Tensor<std::uint8_t>::uninitialised(Shape{static_cast<Index>(bytes)});
  };
  for (KeptForm& form : kept_forms_) {
    const Step& step = plan_->steps()[form.step];
    // What it was is gone before memory for it is found.
    calls_[form.step].packed = nullptr;
    packed_rests_[form.step] = nullptr;
    form.packed = memory_for(step.kernel);
    form.packed_rest = memory_for(step.rest);
  }
  has_kept_memory_ = keeps;
  has_kept_forms_ = false;
}

template <class T>
void Execution<T>::pack(KeptForm& form) {
  const Step& step = plan_->steps()[form.step];
  const auto pack_for = [&](const Kernel& kernel, Tensor<std::uint8_t>& packed) {
    if (packed.size() > 0) {
      kernel.pack(arguments_[form.argument].now, packed.mutable_data());
    }
    return packed_data(packed);
  };
  calls_[form.step].packed = pack_for(*step.kernel, form.packed);
  if (step.rest) {
    packed_rests_[form.step] = pack_for(*step.rest, form.packed_rest);
  }
}

template <class T>
void Execution<T>::find_results(Channels channels) {
  const std::vector<Step>& steps = plan_->steps();
  results_after_.assign(steps.size(), {});
  copied_results_.clear();
  // A step may write over what another one left in an output's memory: the last one completes it.
  std::vector<std::optional<std::size_t>> last(outputs_.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (const Place& place = plan_->result(steps[i].node); place.kind == Place::Kind::output) {
      last[static_cast<std::size_t>(place.index)] = i;
    }
  }
  const auto complete_at_end = [&](const auto& loops) {
    for (const auto& loop : loops) {
      for (std::optional<std::size_t>& step : last) {
        if (step && *step >= loop.first && *step < loop.end) {
          step = loop.end - 1;
        }
      }
    }
  };
  complete_at_end(plan_->loops());
  if (channels == Channels::in_turn) {
    complete_at_end(plan_->channel_loops());
  }
  std::size_t result = 0;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (plan_->graph().outputs()[i].overwrites == kNoNode) {
      (last[i] ? results_after_[*last[i]] : copied_results_).push_back(result++);
    }
  }
}

template <class T>
void Execution<T>::make_calls() {
  std::size_t tensor = 0;
  std::size_t selection = 0;
  std::size_t loop = 0;
  for (const Step& step : plan_->steps()) {
    if (loop < plan_->loops().size() && plan_->loops()[loop].first == calls_.size()) {
      make_loop(plan_->loops()[loop++], tensor, selection);
    }
    const Node& node = plan_->graph().node(step.node);
    Call call;
    call.in = tensors_.data() + tensor;
    call.count = node.in.size();
    call.data = std::span<const Selection>(selections_).subspan(selection, node.data.size());
    tensor += node.in.size();
    selection += node.data.size();
    const Place& place = plan_->result(step.node);
    if (Binding* follows = binding(place)) {
      follows->results.push_back(calls_.size());
    }
    call.out = address(place, node.bytes());
    if (const Place& workspace = plan_->workspace(step.node); workspace.kind != Place::Kind::none) {
      call.workspace =
          buffer_of(node.workspace, address(workspace, plan_->workspace_bytes(step.node)));
    }
    call.scratch = address(step.scratch, step.scratch_bytes());
    call.packed = packed_data(step.packed);
    calls_.push_back(call);
    packed_rests_.push_back(packed_data(step.packed_rest));
  }
}

template <class T>
typename Execution<T>::Cut Execution<T>::cut(const Place& place, const Shape& shape) {
  return {false, place.kind == Place::Kind::worker, place.offset, sample_elements(shape)};
}

template <class T>
void Execution<T>::make_loop(const PieceLoop& plan, std::size_t tensor, std::size_t selection) {
  const Graph& graph = plan_->graph();
  Loop loop;
  loop.first_tensor = tensor;
  loop.first_selection = selection;
  for (std::size_t s = plan.first; s < plan.end; ++s) {
    const NodeId id = plan_->steps()[s].node;
    const Node& node = graph.node(id);
    const std::optional<Split> split = graph.split(id);
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      loop.tensors.push_back(cut(plan_->result(node.in[i]), graph.node(node.in[i]).shape));
      loop.tensors.back().is_whole = !split->in[i];
    }
    for (const NodeId input : node.data) {
      const bool own = graph.node(input).type == DataType::index;
      loop.selections.push_back(cut(own ? plan_->result(input) : plan_->workspace(input),
                                    graph.selection_type(input).shape));
    }
    loop.results.push_back(cut(plan_->result(id), node.shape));
    loop.workspaces.push_back(cut(plan_->workspace(id), node.workspace.shape));
  }
  auto* memory = static_cast<std::byte*>(
      address(plan.memory, plan.worker_bytes * static_cast<std::size_t>(plan.workers)));
  for (Index l = 0; l < plan.workers; ++l) {
    typename Loop::Worker worker;
    worker.memory = memory + static_cast<std::size_t>(l) * plan.worker_bytes;
    worker.tensors.resize(loop.tensors.size());
    worker.selections.resize(loop.selections.size());
    worker.calls.resize(plan.end - plan.first);
    worker.seconds.resize(plan.end - plan.first);
    std::size_t in = 0;
    std::size_t data = 0;
    for (std::size_t s = plan.first; s < plan.end; ++s) {
      const Step& step = plan_->steps()[s];
      const Node& node = graph.node(step.node);
      Call& call = worker.calls[s - plan.first];
      call.in = worker.tensors.data() + in;
      call.count = node.in.size();
      call.data = std::span<const Selection>(worker.selections).subspan(data, node.data.size());
      call.scratch =
          step.scratch.kind == Place::Kind::none ? nullptr : worker.memory + step.scratch.offset;
      in += node.in.size();
      data += node.data.size();
    }
    loop.workers.push_back(std::move(worker));
  }
  loops_.push_back(std::move(loop));
}

template <class T>
void* Execution<T>::address(const Place& place, std::size_t bytes) const {
  switch (place.kind) {
    case Place::Kind::arena:
      return arena_ + place.offset * shared_.count + aligned(bytes) * shared_.number;
    case Place::Kind::constant:
      return const_cast<void*>(constant_data(plan_->graph().node(place.index)));
    default: return nullptr;
  }
}

template <class T>
void* Execution<T>::address_of_data(NodeId id) const {
  const Node& node = plan_->graph().node(id);
  return node.type == DataType::index ? address(plan_->result(id), node.bytes())
                                      : address(plan_->workspace(id), plan_->workspace_bytes(id));
}

template <class T>
typename Execution<T>::Binding* Execution<T>::binding(const Place& place) {
  switch (place.kind) {
    case Place::Kind::argument: return &arguments_[static_cast<std::size_t>(place.index)];
    case Place::Kind::output: return &outputs_[static_cast<std::size_t>(place.index)];
    default: return nullptr;
  }
}

template <class T>
void Execution<T>::bind(Binding& binding, const void* pointer) noexcept {
  if (binding.now == pointer) {
    return;
  }
  binding.now = pointer;
  for (const std::size_t slot : binding.tensors) {
    tensors_[slot] = Tensor<T>::view(static_cast<const T*>(pointer), tensors_[slot].shape());
  }
  for (const std::size_t slot : binding.selections) {
    selections_[slot] = view_of(selections_[slot].type(), pointer);
  }
  for (const std::size_t slot : binding.results) {
    calls_[slot].out = const_cast<void*>(pointer);
  }
}

template <class T>
void Execution<T>::run_piece(const PieceLoop& plan,
                             Index samples,
                             const Loop& loop,
                             typename Loop::Worker& worker,
                             Index number,
                             bool timed) {
  const Index begin = number * plan.piece;
  const Index count = std::min(plan.piece, samples - begin);
  for (std::size_t i = 0; i < loop.tensors.size(); ++i) {
    const Cut& cut = loop.tensors[i];
    const Tensor<T>& whole = tensors_[loop.first_tensor + i];
    if (cut.is_whole) {
      worker.tensors[i] = Tensor<T>::view(whole.data(), whole.shape());
      continue;
    }
    const T* data = cut.is_local ? reinterpret_cast<const T*>(worker.memory + cut.offset)
                                 : whole.data() + begin * cut.row;
    worker.tensors[i] = Tensor<T>::view(data, with_samples(whole.shape(), count));
  }
  for (std::size_t i = 0; i < loop.selections.size(); ++i) {
    const Cut& cut = loop.selections[i];
    const Selection& whole = selections_[loop.first_selection + i];
    SelectionType type = whole.type();
    type.shape[0] = count;
    const auto* data =
        cut.is_local ? worker.memory + cut.offset
                     : static_cast<const std::byte*>(data_of(whole)) +
                           static_cast<std::size_t>(begin * cut.row) * element_bytes(type.form);
    worker.selections[i] = view_of(type, data);
  }
  Stopwatch watch;
  for (std::size_t s = plan.first; s < plan.end; ++s) {
    const std::size_t at = s - plan.first;
    const Step& step = plan_->steps()[s];
    Call& call = worker.calls[at];
    const Cut& result = loop.results[at];
    call.out = result.is_local ? static_cast<void*>(worker.memory + result.offset)
                               : static_cast<std::byte*>(calls_[s].out) +
                                     static_cast<std::size_t>(begin * result.row) * sizeof(T);
    const SelectionBuffer& whole = calls_[s].workspace;
    const Cut& workspace = loop.workspaces[at];
    if (workspace.is_local) {
      call.workspace =
          buffer_of(plan_->graph().node(step.node).workspace, worker.memory + workspace.offset);
    } else if (whole.indices != nullptr) {
      call.workspace.indices = whole.indices + begin * workspace.row;
    } else if (whole.taps != nullptr) {
      call.workspace.taps = whole.taps + begin * workspace.row;
    }
    const bool is_rest = count < plan.piece;
    call.packed = is_rest ? packed_rests_[s] : calls_[s].packed;
    (is_rest ? *step.rest : *step.kernel).run(call);
    if (timed) {
      worker.seconds[at] += watch.seconds();
    }
  }
}

template <class T>
void Execution<T>::run_loop(std::size_t number, Index samples, std::span<double> seconds) {
  const PieceLoop& plan = plan_->loops()[number];
  const Index pieces = (samples + plan.piece - 1) / plan.piece;
  Loop& loop = loops_[number];
  const bool timed = !seconds.empty();
  for (typename Loop::Worker& worker : loop.workers) {
    std::fill(worker.seconds.begin(), worker.seconds.end(), 0.0);
  }
  parallel_for(plan.workers, 1, [&](Index begin, Index end) {
    for (Index worker = begin; worker < end; ++worker) {
      for (Index piece = worker; piece < pieces; piece += plan.workers) {
        run_piece(
            plan, samples, loop, loop.workers[static_cast<std::size_t>(worker)], piece, timed);
      }
    }
  });
  if (timed) {
    for (const typename Loop::Worker& worker : loop.workers) {
      for (std::size_t i = 0; i < worker.seconds.size(); ++i) {
        seconds[plan.first + i] += worker.seconds[i] / static_cast<double>(plan.workers);
      }
    }
  }
}

template <class T>
void Execution<T>::run_channels(std::size_t number, std::span<double> seconds) {
  const ChannelLoop& loop = plan_->channel_loops()[number];
  const std::size_t count = loop.end - loop.first;
  const bool timed = !seconds.empty();
  std::vector<double>& times = channel_seconds_[number];
  parallel_for(loop.pieces(), 1, [&](Index first, Index last) {
    for (Index piece = first; piece < last; ++piece) {
      const Index begin = piece * loop.piece;
      const Index end = std::min(begin + loop.piece, loop.view.channels);
      Stopwatch watch;
      for (std::size_t s = 0; s < count; ++s) {
        const std::size_t step = loop.first + s;
        graph::run_channels<T>(*plan_->steps()[step].kernel, loop.view, calls_[step], begin, end);
        if (timed) {
          times[static_cast<std::size_t>(piece) * count + s] = watch.seconds();
        }
      }
    }
  });
  if (timed) {
    const auto workers = static_cast<double>(std::min<Index>(threads(), loop.pieces()));
    for (std::size_t i = 0; i < times.size(); ++i) {
      seconds[loop.first + i % count] += times[i] / workers;
    }
  }
}

template <class T>
void Execution<T>::run(std::span<const void* const> arguments,
                       std::span<void* const> outputs,
                       const ExecutionOptions& options) {
  const std::span<double> seconds = options.seconds;
  const bool has_after = options.after != nullptr && *options.after;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    bind(arguments_[i], arguments[i]);
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    bind(outputs_[i], outputs[i]);
  }
  const bool keeps = options.packed != PackedParameters::in_calls;
  if (keeps != has_kept_memory_) {
    take_kept_forms(keeps);
  }
  const bool packs = options.packed == PackedParameters::kept || (keeps && !has_kept_forms_);
  has_kept_forms_ = keeps && !packs;
  std::fill(seconds.begin(), seconds.end(), 0.0);
  const std::vector<Step>& steps = plan_->steps();
  const std::vector<ChannelLoop>& channels = plan_->channel_loops();
  std::size_t loop = 0;
  std::size_t channel = 0;
  std::size_t form = 0;
  std::optional<Stopwatch> watch;  // to look at it takes as long as a small step
  const auto restart = [&] {
    if (!seconds.empty()) {
      watch.emplace();
    }
  };
  restart();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool is_loop = loop < loops_.size() && plan_->loops()[loop].first == i;
    const std::size_t end = is_loop ? plan_->loops()[loop].end : i + 1;
    // Right before it is read, while it is in the cache.
    for (; packs && form < kept_forms_.size() && kept_forms_[form].step < end; ++form) {
      pack(kept_forms_[form]);
    }
    if (is_loop) {
      run_loop(loop, plan_->loops()[loop].samples, seconds);
      ++loop;
      i = end - 1;
      restart();
    } else if (channel < channels.size() && channels[channel].first == i) {
      i = channels[channel].end - 1;
      run_channels(channel++, seconds);
      restart();
    } else {
      steps[i].kernel->run(calls_[i]);
      if (watch) {
        seconds[i] = watch->seconds();
      }
    }
    if (has_after) {
      (*options.after)(results_after_[i]);
    }
  }
  has_kept_forms_ = keeps;
  copy_outputs(outputs);
  if (has_after) {
    (*options.after)(copied_results_);
  }
}

template <class T>
void Execution<T>::copy_outputs(std::span<void* const> outputs) noexcept {
  for (const OutputCopy& copy : plan_->copies()) {
    const Output& output = plan_->graph().outputs()[static_cast<std::size_t>(copy.output)];
    const Place& from = plan_->result(copy.node);
    const Binding* source = binding(from);
    const std::size_t bytes = plan_->graph().node(copy.node).bytes();
    const void* data = source != nullptr ? source->now : address(from, bytes);
    void* to = outputs[static_cast<std::size_t>(copy.output)];
    if (output.overwrites != kNoNode) {
      to = const_cast<void*>(binding(plan_->result(output.overwrites))->now);
    }
    if (bytes > 0) {
      std::memcpy(to, data, bytes);
    }
  }
}

template class Execution<float>;
template class Execution<double>;

}  // namespace fenestra::graph
