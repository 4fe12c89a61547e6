// Ordering and grouping of operations that treat samples one by one.
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/channels.hpp>
#include <fenestra/graph/copier.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace fenestra::graph {

namespace {

/// Collects operations in their order and gives groups of them to a graph.
class Grouping {
 public:
  Grouping(const Graph& graph, const BatchTilingOptions& options)
      : graph_(graph), options_(options) {}

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::operation) {
      return;
    }
    const std::optional<Split> split = graph_.split(id);
    if (!node.runs()) {
      // An alias moves nothing. It belongs to a group where it carries one of its samples on.
      if (split && is_member(node.in[0]) && node.shape[0] == samples_) {
        members_.push_back(id);
      }
      return;
    }
    if (!split || !is_worth_cutting(node, *split)) {
      close();
      return;
    }
    if (!members_.empty() && (!joins(node, *split) || takes_too_much(*split))) {
      close();
    }
    if (members_.empty()) {
      samples_ = node.shape[0];
    }
    members_.push_back(id);
    least_ = std::max(least_, options_.pieces_may_be_slow ? 1 : split->least);
    std::size_t bytes = node.bytes();
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      bytes += split->in[i] ? graph_.node(node.in[i]).bytes() : 0;
    }
    step_bytes_ = std::max(step_bytes_, bytes);
    moved_bytes_ += bytes;
    ++steps_;
  }

  /// Something else runs here.
  void interrupt() { close(); }

  std::vector<Group> finish() {
    close();
    return std::move(groups_);
  }

 private:
  bool is_member(NodeId id) const {
    return std::binary_search(members_.begin(), members_.end(), id);
  }
  /// The node whose memory `id` is.
  NodeId source(NodeId id) const {
    while (graph_.node(id).operation && graph_.node(id).operation->aliases_input()) {
      id = graph_.node(id).in[0];
    }
    return id;
  }
  bool is_worth_cutting(const Node& node, const Split& split) const {
    const Index least = options_.pieces_may_be_slow ? 1 : split.least;
    for (const NodeId data : node.data) {
      const SelectionType type = graph_.selection_type(data);
      if (type.shape.rank() == 0 || type.shape[0] != node.shape[0]) {
        return false;
      }
    }
    return node.shape[0] >= 2 * least;
  }
  /// Whether the node goes on with what the group computes, and reads nothing of it whole.
  bool joins(const Node& node, const Split& split) const {
    if (node.shape[0] != samples_) {
      return false;
    }
    bool continues = false;
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      if (!is_member(source(node.in[i]))) {
        continue;
      }
      if (!split.in[i] || !is_member(node.in[i])) {
        return false;
      }
      continues = true;
    }
    for (const NodeId data : node.data) {
      continues = continues || is_member(data);
    }
    return continues;
  }
  /// Whether its least piece would push what the others hand on out of every cache.
  bool takes_too_much(const Split& split) const {
    constexpr std::size_t kTimes = 16;
    const auto least = static_cast<std::size_t>(split.least);
    return !options_.pieces_may_be_slow && split.least > least_ &&
           least * step_bytes_ / static_cast<std::size_t>(samples_) > kTimes * options_.cache_bytes;
  }
  /// Samples at a time: as many as the cache holds, no fewer than are fast, and pieces for all
  /// workers in equal numbers.
  Index piece() const {
    const std::size_t sample = step_bytes_ / static_cast<std::size_t>(samples_) + 1;
    const auto workers = static_cast<Index>(options_.workers);
    Index piece = static_cast<Index>(options_.cache_bytes / sample);
    piece = std::max({Index{1}, least_, std::min(piece, (samples_ + workers - 1) / workers)});
    const Index pieces = (samples_ + piece - 1) / piece;
    const Index rounds = (pieces + workers - 1) / workers;
    return std::max(least_, (samples_ + rounds * workers - 1) / (rounds * workers));
  }
  void close() {
    if (steps_ > 1 && moved_bytes_ >= options_.least_bytes) {
      Group group{std::move(members_), samples_, piece()};
      if (group.pieces() > 1) {
        groups_.push_back(std::move(group));
      }
    }
    members_.clear();
    samples_ = 0;
    least_ = 1;
    step_bytes_ = 0;
    moved_bytes_ = 0;
    steps_ = 0;
  }

  const Graph& graph_;
  const BatchTilingOptions& options_;
  std::vector<Group> groups_;
  std::vector<NodeId> members_;
  Index samples_ = 0;
  Index least_ = 1;
  std::size_t step_bytes_ = 0;   ///< the most a step reads and writes, all samples
  std::size_t moved_bytes_ = 0;  ///< what all steps read and write
  int steps_ = 0;
};

}  // namespace

Graph read_soon(const Graph& graph) {
  Copier copier(graph);
  std::vector<NodeId> held;
  std::vector<bool> is_held(static_cast<std::size_t>(graph.size()));
  const auto place = [&](NodeId id) { copier.set_place(id, copier.append(copier.moved(id))); };
  const auto release = [&] {
    for (const NodeId id : held) {
      place(id);
      is_held[static_cast<std::size_t>(id)] = false;
    }
    held.clear();
  };
  const auto reads = [&](NodeId id) { return is_held[static_cast<std::size_t>(id)]; };
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const bool reads_held = std::any_of(node.in.begin(), node.in.end(), reads) ||
                            std::any_of(node.data.begin(), node.data.end(), reads);
    if (node.kind == NodeKind::operation && graph.split(id)) {
      // Held back until it is seen what comes next; an alias waits with what it names.
      if (!reads_held || node.runs()) {
        release();
      }
      held.push_back(id);
      is_held[static_cast<std::size_t>(id)] = true;
      continue;
    }
    if (reads_held) {
      release();
    }
    place(id);
  }
  release();
  return copier.finish();
}

Graph tile_batch(const Graph& graph, const BatchTilingOptions& options) {
  return tile_batch(graph, options, {});
}

Graph tile_batch(const Graph& graph,
                 const BatchTilingOptions& options,
                 std::span<const ChannelRun> runs) {
  std::vector<bool> is_in_run(static_cast<std::size_t>(graph.size()));
  for (const ChannelRun& run : runs) {
    for (const NodeId id : run.members) {
      is_in_run[static_cast<std::size_t>(id)] = true;
    }
  }
  Grouping grouping(graph, options);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (is_in_run[static_cast<std::size_t>(id)]) {
      grouping.interrupt();
    } else {
      grouping.visit(id);
    }
  }
  Graph result = graph;
  for (Group& group : grouping.finish()) {
    result.add_group(std::move(group));
  }
  return result;
}

}  // namespace fenestra::graph
