// Kernels, and who wants memory for how long.
#include <fenestra/base/memory.hpp>
#include <fenestra/graph/lifetimes.hpp>
#include <fenestra/graph/packing.hpp>
#include <fenestra/graph/plan.hpp>

#include <algorithm>
#include <utility>

namespace fenestra::graph {

namespace {

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// What wants memory, and for whom.
class ArenaRequests {
 public:
  void add(Buffer buffer, const Place& kind, Place* owner) {
    *owner = kind;
    buffer.bytes = aligned(buffer.bytes);
    buffers_.push_back(buffer);
    owners_.push_back(owner);
  }
  /// Tells every owner its offset and returns the bytes of all.
  std::size_t place();
  std::vector<Buffer> take() { return std::move(buffers_); }

 private:
  std::vector<Buffer> buffers_;
  std::vector<Place*> owners_;
};

/// What `kernel` makes of the constant that it packs; nothing where it packs none.
Tensor<std::uint8_t> packed_form(const Kernel& kernel, const Graph& graph, const Node& node) {
  const Packing packing = kernel.packing();
  if (packing.bytes == 0) {
    return Tensor<std::uint8_t>(Shape{0});
  }
  NodeId id = node.in[static_cast<std::size_t>(packing.input)];
  while (graph.node(id).operation && graph.node(id).operation->aliases_input()) {
    id = graph.node(id).in[0];
  }
  const Node& source = graph.node(id);
  if (source.kind != NodeKind::constant) {
    return Tensor<std::uint8_t>(Shape{0});
  }
  const auto* f32 = std::get_if<Tensor<float>>(&source.constant);
  const void* data =
      f32 != nullptr ? static_cast<const void*>(f32->data())
                     : static_cast<const void*>(std::get<Tensor<double>>(source.constant).data());
  auto packed = Tensor<std::uint8_t>::uninitialised(Shape{static_cast<Index>(packing.bytes)});
  kernel.pack(data, packed.mutable_data());
  return packed;
}

std::size_t ArenaRequests::place() {
  const std::size_t total = pack(buffers_);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    owners_[i]->offset = buffers_[i].offset;
  }
  return total;
}

}  // namespace

Plan::Plan(Graph graph, int workers, std::span<const ChannelRun> runs)
    : graph_(std::move(graph)), arguments_(graph_.arguments()) {
  const auto count = static_cast<std::size_t>(graph_.size());
  const Lifetimes lifetimes(graph_, runs);
  results_.resize(count);
  workspaces_.resize(count);
  find_requirements(lifetimes);
  choose_kernels(lifetimes, workers);
  find_channel_loops(runs);
  std::vector<Place> roots = place_outputs(lifetimes);
  place_workers(lifetimes, roots);
  place_arena(lifetimes, roots);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    results_[static_cast<std::size_t>(id)] = roots[static_cast<std::size_t>(lifetimes.root(id))];
  }
}

void Plan::find_requirements(const Lifetimes& lifetimes) {
  for (const Node& node : graph_.nodes()) {
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      const NodeId source = lifetimes.root(node.in[i]);
      if (graph_.node(source).kind == NodeKind::operation) {
        continue;
      }
      if (const auto condition = node.operation->condition(static_cast<int>(i))) {
        requirements_.push_back({source, *condition, std::string(node.operation->name())});
      }
    }
  }
}

void Plan::choose_kernels(const Lifetimes& lifetimes, int workers) {
  for (const Group& group : graph_.groups()) {
    loops_.push_back({.samples = group.samples,
                      .piece = group.piece,
                      .workers = std::min<Index>(workers, group.pieces()),
                      .memory = {}});
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (!node.runs()) {
      continue;
    }
    Step step{.node = id, .kernel = nullptr, .rest = nullptr, .scratch = {}};
    if (const Index group = lifetimes.group(id); group >= 0) {
      PieceLoop& loop = loops_[static_cast<std::size_t>(group)];
      step.kernel = node.operation->piece(loop.piece)->prepare();
      if (const Index rest = loop.samples % loop.piece; rest > 0) {
        step.rest = node.operation->piece(rest)->prepare();
      }
      if (loop.end == 0) {
        loop.first = steps_.size();
      }
      loop.end = steps_.size() + 1;
    } else {
      step.kernel = node.operation->prepare();
    }
    steps_.push_back(std::move(step));
  }
}

void Plan::find_channel_loops(std::span<const ChannelRun> runs) {
  for (const ChannelRun& run : runs) {
    const auto first = std::find_if(
        steps_.begin(), steps_.end(), [&](const Step& step) { return step.node == run.first(); });
    const auto begin = static_cast<std::size_t>(first - steps_.begin());
    channel_loops_.push_back({begin, begin + run.members.size(), run.view, run.piece});
  }
}

void Plan::pack_constants() {
  for (Step& step : steps_) {
    const Node& node = graph_.node(step.node);
    step.packed = packed_form(*step.kernel, graph_, node);
    if (step.rest) {
      step.packed_rest = packed_form(*step.rest, graph_, node);
      // A form depends on the number of samples only where that decides how kernels walk it.
      const auto one = step.packed.values();
      const auto other = step.packed_rest.values();
      if (std::equal(one.begin(), one.end(), other.begin(), other.end())) {
        step.packed_rest = step.packed;
      }
    }
  }
}

std::vector<Place> Plan::place_outputs(const Lifetimes& lifetimes) {
  // What others own.
  std::vector<Place> roots(results_.size());
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    roots[static_cast<std::size_t>(arguments_[i])] = {
        Place::Kind::argument, static_cast<Index>(i), 0};
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (graph_.node(id).kind == NodeKind::constant) {
      roots[static_cast<std::size_t>(id)] = {Place::Kind::constant, id, 0};
    }
  }
  // Outputs lie in the caller's memory where they have memory of their own; an overwritten
  // parameter only where its last reader is the node that first writes the new value, and may write
  // over it.
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const Output& output = graph_.outputs()[i];
    const NodeId root = lifetimes.root(output.node);
    Place& place = roots[static_cast<std::size_t>(root)];
    if (place.kind == Place::Kind::none) {
      if (output.overwrites == kNoNode) {
        place = {Place::Kind::output, static_cast<Index>(i), 0};
        continue;
      }
      if (lifetimes.may_replace(root, output.overwrites)) {
        place = roots[static_cast<std::size_t>(output.overwrites)];
        continue;
      }
    }
    if (output.overwrites != kNoNode && place.kind == Place::Kind::argument) {
      throw Error(
          ErrorCode::invalid_graph,
          "plan: parameter \"" + output.name +
              "\" is overwritten by what another one holds, which may have changed by then\n"
              "  fix: overwrite it with a result of an operation");
    }
    copies_.push_back({output.node, static_cast<Index>(i)});
  }
  // A parameter is overwritten after everything else that is copied has been read.
  std::stable_sort(copies_.begin(), copies_.end(), [&](const OutputCopy& a, const OutputCopy& b) {
    const auto overwrites = [&](const OutputCopy& copy) {
      return graph_.outputs()[static_cast<std::size_t>(copy.output)].overwrites != kNoNode;
    };
    return !overwrites(a) && overwrites(b);
  });
  return roots;
}

void Plan::place_workers(const Lifetimes& lifetimes, std::vector<Place>& roots) {
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    PieceLoop& loop = loops_[i];
    const Place worker{Place::Kind::worker, static_cast<Index>(i), 0};
    const auto part = [&](std::size_t bytes) {
      return bytes / static_cast<std::size_t>(loop.samples) * static_cast<std::size_t>(loop.piece);
    };
    ArenaRequests requests;
    for (std::size_t s = loop.first; s < loop.end; ++s) {
      Step& step = steps_[s];
      const NodeId id = step.node;
      const Node& node = graph_.node(id);
      const auto at = static_cast<std::size_t>(id);
      if (lifetimes.root(id) == id && lifetimes.is_local(id)) {
        requests.add({Buffer::Role::result, id, part(node.bytes()), id, lifetimes.local_last(id)},
                     worker,
                     &roots[at]);
      }
      if (const NodeId last = lifetimes.local_workspace_last(id);
          last != kNoNode && lifetimes.has_local_workspace(id)) {
        requests.add({Buffer::Role::workspace, id, part(workspace_bytes(id)), id, last},
                     worker,
                     &workspaces_[at]);
      }
      if (const std::size_t bytes = step.scratch_bytes(); bytes > 0) {
        requests.add({Buffer::Role::scratch, id, bytes, id, id}, worker, &step.scratch);
      }
    }
    loop.worker_bytes = aligned(requests.place());
  }
}

void Plan::place_arena(const Lifetimes& lifetimes, std::vector<Place>& roots) {
  constexpr Place kArena{Place::Kind::arena, 0, 0};
  ArenaRequests requests;
  for (Step& step : steps_) {
    const NodeId id = step.node;
    const Node& node = graph_.node(id);
    const auto at = static_cast<std::size_t>(id);
    if (lifetimes.root(id) == id && roots[at].kind == Place::Kind::none) {
      requests.add(
          {Buffer::Role::result, id, node.bytes(), lifetimes.first(id), lifetimes.last(id)},
          kArena,
          &roots[at]);
    }
    if (const NodeId last = lifetimes.workspace_last(id);
        last != kNoNode && workspaces_[at].kind == Place::Kind::none) {
      requests.add({Buffer::Role::workspace, id, workspace_bytes(id), lifetimes.first(id), last},
                   kArena,
                   &workspaces_[at]);
    }
    if (const std::size_t bytes = step.scratch_bytes();
        bytes > 0 && step.scratch.kind == Place::Kind::none) {
      requests.add({Buffer::Role::scratch, id, bytes, id, id}, kArena, &step.scratch);
    }
  }
  for (PieceLoop& loop : loops_) {
    if (loop.worker_bytes > 0) {
      const NodeId first = steps_[loop.first].node;
      requests.add({Buffer::Role::workers,
                    first,
                    loop.worker_bytes * static_cast<std::size_t>(loop.workers),
                    first,
                    steps_[loop.end - 1].node},
                   kArena,
                   &loop.memory);
    }
  }
  arena_bytes_ = requests.place();
  buffers_ = requests.take();
}

std::size_t Plan::workspace_bytes(NodeId id) const {
  const SelectionType& type = graph_.node(id).workspace;
  const auto elements = static_cast<std::size_t>(type.shape.elements().value_or(0));
  return elements * (type.form == SelectionForm::taps ? sizeof(std::uint8_t) : sizeof(Index));
}

std::size_t Plan::constant_bytes() const {
  std::size_t bytes = 0;
  for (const Node& node : graph_.nodes()) {
    bytes += node.kind == NodeKind::constant ? node.bytes() : 0;
  }
  for (const Step& step : steps_) {
    bytes += step.packed_bytes();
  }
  return bytes;
}

Index Plan::multiply_adds() const {
  Index total = 0;
  for (const Step& step : steps_) {
    total += graph_.node(step.node).operation->multiply_adds();
  }
  return total;
}

}  // namespace fenestra::graph
