// Who goes on with whose channels.
#include <fenestra/graph/chain.hpp>
#include <fenestra/graph/channels.hpp>
#include <fenestra/graph/copier.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

namespace fenestra::graph {

namespace {

/// Operands of a step that lie in the cache at once: two read, one written.
constexpr std::size_t kOperands = 3;
/// Of one operand's channel. Three of them are more than most second-level caches hold; what a step
/// has read is still found by the next one in a shared cache.
constexpr std::size_t kMostChannelBytes = 1 << 20;
/// Results that may be computed later than they stand, to bring others together.
constexpr std::size_t kSmallBytes = 16 << 10;
/// Small results that are passed over at a time: an optimiser makes a dozen of a scale and a shift.
constexpr int kMostPassed = 32;
/// Inputs of an elementwise member.
constexpr std::size_t kMostInputs = 8;

/// Of an operand as large as the view; 0 without channels.
std::size_t whole_bytes(const Node& node, const ChannelView& view) {
  return static_cast<std::size_t>(view.elements()) * bytes_of(node.type);
}

/// Answers whether operations belong together; asks each kernel once.
class ChannelFinder {
 public:
  explicit ChannelFinder(const Graph& graph)
      : graph_(graph), kernels_(static_cast<std::size_t>(graph.size())) {}

  /// That of an operation whose kernel takes channels one by one; without channels of others.
  ChannelView view(NodeId id) {
    const auto* kernel = dynamic_cast<const ChannelKernel*>(this->kernel(id));
    return kernel != nullptr ? kernel->view() : ChannelView{};
  }
  /// Whether `id` goes on with what one of `members` computes, and reads channels in turn, too.
  bool joins(NodeId id, const std::vector<NodeId>& members, const ChannelView& view) {
    const Node& node = graph_.node(id);
    const bool continues = std::any_of(node.in.begin(), node.in.end(), [&](NodeId input) {
      return std::find(members.begin(), members.end(), source(input)) != members.end();
    });
    return continues && (this->view(id) == view || is_elementwise(id, view));
  }
  /// The node whose memory `id` is.
  NodeId source(NodeId id) const {
    while (graph_.node(id).operation && graph_.node(id).operation->aliases_input()) {
      id = graph_.node(id).in[0];
    }
    return id;
  }

 private:
  /// Null where it is plain that the kernel has no channels: to prepare it can be expensive.
  const Kernel* kernel(NodeId id) {
    const Node& node = graph_.node(id);
    if (!node.runs() || !node.data.empty() || node.type == DataType::index ||
        node.workspace.form != SelectionForm::none || node.operation->multiply_adds() > 0) {
      return nullptr;
    }
    std::unique_ptr<const Kernel>& kernel = kernels_[static_cast<std::size_t>(id)];
    if (kernel == nullptr) {
      kernel = node.operation->prepare();
    }
    return kernel->scratch_bytes() == 0 ? kernel.get() : nullptr;
  }
  /// Of every number of the view, or of one number per channel, from operands of the same shape and
  /// single numbers: so nothing that a member reads can be written for another channel before.
  bool is_elementwise(NodeId id, const ChannelView& view) {
    const Node& node = graph_.node(id);
    return (node.elements() == view.elements() || node.elements() == view.channels) &&
           node.in.size() <= kMostInputs &&
           std::all_of(node.in.begin(),
                       node.in.end(),
                       [&](NodeId input) {
                         const Node& read = graph_.node(input);
                         return read.shape == node.shape || read.elements() == 1;
                       }) &&
           dynamic_cast<const ElementwiseKernel*>(kernel(id)) != nullptr;
  }

  const Graph& graph_;
  std::vector<std::unique_ptr<const Kernel>> kernels_;
};

}  // namespace

Graph join_channels(const Graph& graph) {
  ChannelFinder finder(graph);
  Copier copier(graph);
  std::vector<bool> is_placed(static_cast<std::size_t>(graph.size()));
  const auto placed = [&](NodeId id) { return is_placed[static_cast<std::size_t>(id)]; };
  const auto place = [&](NodeId id) {
    copier.set_place(id, copier.append(copier.moved(id)));
    is_placed[static_cast<std::size_t>(id)] = true;
  };
  const auto is_ready = [&](NodeId id) {
    const Node& node = graph.node(id);
    return std::all_of(node.in.begin(), node.in.end(), placed) &&
           std::all_of(node.data.begin(), node.data.end(), placed);
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (placed(id)) {
      continue;
    }
    place(id);
    const ChannelView view = finder.view(id);
    if (whole_bytes(graph.node(id), view) <= BatchTilingOptions{}.cache_bytes) {
      continue;
    }
    std::vector<NodeId> members{id};
    int passed = 0;
    for (NodeId next = id + 1; next < graph.size() && passed < kMostPassed; ++next) {
      const Node& node = graph.node(next);
      if (placed(next)) {
        continue;
      }
      if (!node.runs()) {
        // What is given and aliases come along: others may be waiting for them.
        if (is_ready(next)) {
          place(next);
        }
      } else if (is_ready(next) && finder.joins(next, members, view)) {
        place(next);
        members.push_back(next);
      } else if (node.bytes() <= kSmallBytes) {
        ++passed;
      } else {
        break;
      }
    }
  }
  return copier.finish();
}

std::vector<ChannelRun> channel_runs(const Graph& graph, const BatchTilingOptions& options) {
  ChannelFinder finder(graph);
  std::vector<ChannelRun> runs;
  ChannelRun run;
  const auto close = [&] {
    if (run.members.size() > 1) {
      runs.push_back(std::move(run));
    }
    run = {};
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!node.runs()) {
      continue;
    }
    if (!run.members.empty() && finder.joins(id, run.members, run.view)) {
      run.members.push_back(id);
      continue;
    }
    close();
    const ChannelView view = finder.view(id);
    const std::size_t whole = whole_bytes(node, view);
    if (whole <= options.cache_bytes) {
      continue;
    }
    const std::size_t channel = whole / static_cast<std::size_t>(view.channels);
    if (options.pieces_may_be_slow || channel <= kMostChannelBytes) {
      const std::size_t piece = options.cache_bytes / (kOperands * channel);
      run = {{id}, view, std::clamp<Index>(static_cast<Index>(piece), 1, view.channels)};
    }
  }
  close();
  return runs;
}

template <class T>
void run_channels(
    const Kernel& kernel, const ChannelView& view, const Call& call, Index begin, Index end) {
  if (const auto* channels = dynamic_cast<const ChannelKernel*>(&kernel)) {
    channels->run_channels(call, begin, end);
    return;
  }
  const auto& elementwise = dynamic_cast<const ElementwiseKernel&>(kernel);
  const std::span<const Tensor<T>> in(static_cast<const Tensor<T>*>(call.in), call.count);
  T* const out = static_cast<T*>(call.out);
  std::array<const void*, kMostInputs> pointers{};
  const auto run = [&](Index at, Index count) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      pointers[i] = in[i].size() == 1 ? in[i].data() : in[i].data() + at;
    }
    elementwise.run_range(std::span(pointers).first(in.size()), at, count, out + at);
  };
  const bool is_whole = std::any_of(in.begin(), in.end(), [&](const Tensor<T>& operand) {
    return operand.size() == view.elements();
  });
  if (!is_whole) {
    run(begin, end - begin);
    return;
  }
  for (Index sample = 0; sample < view.samples; ++sample) {
    run((sample * view.channels + begin) * view.cells, (end - begin) * view.cells);
  }
}

template void run_channels<float>(const Kernel&, const ChannelView&, const Call&, Index, Index);
template void run_channels<double>(const Kernel&, const ChannelView&, const Call&, Index, Index);

}  // namespace fenestra::graph
