// Normalisation in one passage: operations that treat channels one by one, run for a few channels
// after another, so that statistics, what they normalise and the activation behind it read memory
// once.
//
// Groups of samples (batch_tiling.hpp) cannot do that: a mean is over all samples. Every operation
// keeps its loops; only their order changes, so a run has the bits of its members. See
// docs/decisions/0033-channels-in-turn.md.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/graph.hpp>
#include <fenestra/graph/operation.hpp>

#include <span>
#include <vector>

namespace fenestra::graph {

/// A tensor as (samples, channels, cells), in this order in memory.
struct ChannelView {
  Index samples = 0;
  Index channels = 0;
  Index cells = 0;

  Index elements() const { return samples * channels * cells; }
  friend bool operator==(const ChannelView&, const ChannelView&) = default;
};

/// The kernel of an operation that reads and writes channel by channel: of operands as large as the
/// view the cells of a channel, of others the numbers that belong to it.
class FENESTRA_API ChannelKernel : public Kernel {
 public:
  /// Without channels where this one does not.
  virtual ChannelView view() const = 0;
  /// Channels [begin, end) of what `run` computes, with its bits, in the calling thread.
  virtual void run_channels(const Call& call, Index begin, Index end) const = 0;
};

/// Operations that follow each other and run channel by channel, `piece` of them at a time. The
/// last of a run reads what the first ones have brought into the cache.
struct ChannelRun {
  std::vector<NodeId> members;  ///< ascending; no other operation that runs lies between them
  ChannelView view;
  Index piece = 0;

  NodeId first() const { return members.front(); }
  NodeId last() const { return members.back(); }
};

/// Moves operations that go on with the channels of others right behind them, where only small
/// results lie between: gradients of scales and shifts, running statistics.
FENESTRA_API Graph join_channels(const Graph& graph);

/// The runs of a graph without groups: of operands that do not fit into the cache whole, though a
/// channel does.
FENESTRA_API std::vector<ChannelRun> channel_runs(const Graph& graph,
                                                  const BatchTilingOptions& options);

/// Adds the groups of samples, of operations that are in none of `runs`.
FENESTRA_API Graph tile_batch(const Graph& graph,
                              const BatchTilingOptions& options,
                              std::span<const ChannelRun> runs);

/// Channels [begin, end) of a member's result, from a call on whole tensors.
template <class T>
void run_channels(
    const Kernel& kernel, const ChannelView& view, const Call& call, Index begin, Index end);

}  // namespace fenestra::graph
