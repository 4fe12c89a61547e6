// Which steps may be joined, and running them.
#include <fenestra/base/memory.hpp>
#include <fenestra/engine/joint_execution.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace fenestra::graph {

template <class T>
void JointExecution<T>::Free::operator()(void* memory) const {
  std::free(memory);
}

template <class T>
bool JointExecution<T>::writes_once(const Plan& plan, std::size_t first) {
  const Graph& graph = plan.graph();
  std::vector<int> writes(graph.outputs().size());
  const auto later = [&](const Place& place) {
    return place.kind == Place::Kind::output && static_cast<std::size_t>(place.index) >= first;
  };
  for (std::size_t s = 0; s < plan.steps().size(); ++s) {
    const Node& node = graph.node(plan.steps()[s].node);
    const Place& result = plan.result(plan.steps()[s].node);
    for (const NodeId input : node.in) {
      if (later(plan.result(input))) {
        return false;
      }
    }
    if (later(result)) {
      const bool is_alone =
          std::none_of(plan.loops().begin(), plan.loops().end(), [&](const PieceLoop& loop) {
            return s >= loop.first && s < loop.end;
          });
      writes[static_cast<std::size_t>(result.index)] += is_alone ? 1 : 2;
    }
  }
  return std::all_of(writes.begin() + static_cast<std::ptrdiff_t>(first),
                     writes.end(),
                     [](int count) { return count == 1; });
}

template <class T>
JointExecution<T>::JointExecution(std::shared_ptr<const Plan> plan,
                                  std::size_t batches,
                                  std::byte* arena,
                                  std::vector<bool> differs)
    : plan_(std::move(plan)), differs_(std::move(differs)) {
  executions_.reserve(batches);
  for (std::size_t batch = 0; batch < batches; ++batch) {
    executions_.emplace_back(plan_, arena, SharedArena{batches, batch});
    executions_.back().find_results(Execution<T>::Channels::at_once);
  }
  find_joined();
}

template <class T>
bool JointExecution<T>::stacks(const Place& place, std::size_t bytes) const {
  switch (place.kind) {
    case Place::Kind::arena: return bytes % kAlignment == 0;
    case Place::Kind::argument: return differs_[static_cast<std::size_t>(place.index)];
    case Place::Kind::worker: return true;  // where samples of a loop pass by
    default: return false;
  }
}

template <class T>
bool JointExecution<T>::is_shared(const Place& place) const {
  return place.kind == Place::Kind::constant ||
         (place.kind == Place::Kind::argument && !differs_[static_cast<std::size_t>(place.index)]);
}

template <class T>
bool JointExecution<T>::stacks_data(NodeId id) const {
  const Node& node = plan_->graph().node(id);
  return node.type == DataType::index ? stacks(plan_->result(id), node.bytes())
                                      : stacks(plan_->workspace(id), plan_->workspace_bytes(id));
}

template <class T>
bool JointExecution<T>::may_join(NodeId id) const {
  const Graph& graph = plan_->graph();
  const Node& node = graph.node(id);
  const std::optional<Split> split = graph.split(id);
  if (!split || !stacks(plan_->result(id), node.bytes())) {
    return false;
  }
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    const Place& place = plan_->result(node.in[i]);
    if (split->in[i] ? !stacks(place, graph.node(node.in[i]).bytes()) : !is_shared(place)) {
      return false;
    }
  }
  const Place& workspace = plan_->workspace(id);
  return (workspace.kind == Place::Kind::none || stacks(workspace, plan_->workspace_bytes(id))) &&
         std::all_of(
             node.data.begin(), node.data.end(), [&](NodeId data) { return stacks_data(data); });
}

template <class T>
void JointExecution<T>::find_joined() {
  const std::vector<Step>& steps = plan_->steps();
  const auto batches = static_cast<Index>(executions_.size());
  std::vector<bool> in_loop(steps.size());
  for (const PieceLoop& loop : plan_->loops()) {
    // The last piece of a batch may be smaller, and its kernel is for so many samples.
    bool joins = loop.samples % loop.piece == 0;
    for (std::size_t s = loop.first; s < loop.end; ++s) {
      in_loop[s] = true;
      joins = joins && may_join(steps[s].node);
    }
    joined_loops_.push_back(joins);
  }
  std::size_t tensor = 0;
  std::size_t selection = 0;
  std::size_t scratch = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Node& node = plan_->graph().node(steps[s].node);
    Joined& joined = joined_.emplace_back();
    joined.tensor = tensor;
    joined.selection = selection;
    if (!in_loop[s] && may_join(steps[s].node)) {
      joined.kernel = node.operation->piece(batches * node.shape[0])->prepare();
      joined.cut = plan_->graph().split(steps[s].node)->in;
      scratch = std::max(scratch, joined.kernel->scratch_bytes());
      tensors_.resize(std::max(tensors_.size(), node.in.size()));
      selections_.resize(std::max(selections_.size(), node.data.size()));
    }
    tensor += node.in.size();
    selection += node.data.size();
  }
  scratch_.reset(std::aligned_alloc(kAlignment, (scratch / kAlignment + 1) * kAlignment));
  if (scratch_ == nullptr) {
    throw OutOfMemory("the scratch of a program", scratch);
  }
}

template <class T>
void JointExecution<T>::run_joined(std::size_t step) {
  const Joined& joined = joined_[step];
  const Execution<T>& first = executions_.front();
  const auto batches = static_cast<Index>(executions_.size());
  Call call = first.calls_[step];
  for (std::size_t i = 0; i < call.count; ++i) {
    const Tensor<T>& of_first = first.tensors_[joined.tensor + i];
    const Shape& shape = of_first.shape();
    tensors_[i] = Tensor<T>::view(of_first.data(),
                                  joined.cut[i] ? with_samples(shape, batches * shape[0]) : shape);
  }
  for (std::size_t i = 0; i < call.data.size(); ++i) {
    const Selection& of_first = first.selections_[joined.selection + i];
    SelectionType type = of_first.type();
    type.shape[0] *= batches;
    selections_[i] = view_of(type, data_of(of_first));
  }
  call.in = tensors_.data();
  call.data = std::span<const Selection>(selections_).first(call.data.size());
  call.scratch = scratch_.get();
  call.packed = nullptr;
  joined.kernel->run(call);
}

template <class T>
void JointExecution<T>::run(std::span<const Batch> batches, const AfterJointStep& after) {
  for (std::size_t b = 0; b < executions_.size(); ++b) {
    Execution<T>& execution = executions_[b];
    for (std::size_t i = 0; i < execution.arguments_.size(); ++i) {
      execution.bind(execution.arguments_[i], batches[b].arguments[i]);
    }
    for (std::size_t i = 0; i < execution.outputs_.size(); ++i) {
      execution.bind(execution.outputs_[i], batches[b].outputs[i]);
    }
  }
  const std::vector<Step>& steps = plan_->steps();
  std::size_t next_loop = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t loop = next_loop;
    const bool is_loop = loop < plan_->loops().size() && plan_->loops()[loop].first == i;
    if (is_loop) {
      i = plan_->loops()[next_loop++].end - 1;
    }
    const Index samples = is_loop ? plan_->loops()[loop].samples : 0;
    if (is_loop && joined_loops_[loop]) {
      executions_.front().run_loop(loop, samples * static_cast<Index>(executions_.size()), {});
      after(0, {});
    } else if (!is_loop && joined_[i].kernel != nullptr) {
      run_joined(i);
      after(0, {});
    } else {
      for (std::size_t b = 0; b < executions_.size(); ++b) {
        Execution<T>& execution = executions_[b];
        if (is_loop) {
          execution.run_loop(loop, samples, {});
        } else {
          steps[i].kernel->run(execution.calls_[i]);
        }
        after(b, execution.results_after_[i]);
      }
    }
  }
  for (std::size_t b = 0; b < executions_.size(); ++b) {
    executions_[b].copy_outputs(batches[b].outputs);
    after(b, executions_[b].copied_results_);
  }
}

template class JointExecution<float>;
template class JointExecution<double>;

}  // namespace fenestra::graph
