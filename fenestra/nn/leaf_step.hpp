// LeafSteps<T>: the step of a batch as the mean of the steps of its leaves, which may be computed
// by several ranks. Every leaf is a step of its own; what they find is added along one tree
// (ranks/tree.hpp), so that the bits are a function of the batch and of the size of a leaf. Where
// pictures are cut into tiles, a leaf is one tile of its samples, weighted by its cells. Gradients
// are added and sent while the backward pass goes on. Not installed; the inside of
// trainer_core.hpp.
#pragma once

#include <fenestra/nn/trainer_program.hpp>
#include <fenestra/ranks/leaf_sum.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace fenestra::nn::detail {

/// What was found in a batch, or in a leaf of it.
template <class T>
struct Found {
  StepFindings<T>* findings = nullptr;
  /// Of a batch: in the order of the trained slots, or of the rank's pieces of them.
  std::vector<std::span<T>> gradients = {};
  double loss = 0;
  Index labels = 0;
  Index correct = 0;
  bool traced = false;
};

/// What a step is of, beside the batch.
template <class T>
struct LeafTask {
  Index leaf = 0;                     ///< samples in it; 0: those of the batch
  std::span<const Index> tiles = {};  ///< cells of each tile of a picture; none: it is not cut
  ranks::Communicator* communicator = nullptr;  ///< null: one rank
  std::span<const Slot<T>> slots = {};
  Index step = 0;  ///< its number
  Key key;         ///< of the masks
  /// Whether a rank needs the sum of its slices only (rank_pieces), and others are to have what it
  /// makes of them.
  bool is_sliced = false;
};

/// The samples [begin, end) of a batch that a rank computes.
struct RankShare {
  Index begin = 0;
  Index end = 0;
};
RankShare share_of(int rank, int ranks, Index samples, Index leaf);

/// Where the gradients of slots lie in one vector, the last slot first: in about the order in which
/// a backward pass finds them. Each begins on a cache line.
struct GradientLayout {
  std::vector<ranks::ElementRange> gradients = {};  ///< with what fills up the line
  std::vector<Index> sizes = {};
  std::vector<Index> ends = {};  ///< of buckets
  std::vector<Index> cuts = {};  ///< where slices begin: at blocks of gradients
  Index elements = 0;

  /// The most elements of a gradient, with what fills up the line.
  Index largest() const;
};
template <class T>
GradientLayout gradient_layout(std::span<const Slot<T>> slots);

/// A part of a gradient, of whole blocks of kGradientBlock elements but for the last one: sums over
/// blocks are then those of the whole gradient.
struct GradientPiece {
  std::size_t gradient = 0;
  Index begin = 0;  ///< in the gradient
  Index size = 0;
  Index place = 0;  ///< in the vector of the layout
};
/// What a rank adds up, in the order of the vector.
std::vector<GradientPiece> rank_pieces(const GradientLayout& layout, int rank, int ranks);

template <class T>
class LeafSteps {
 public:
  /// `leaf` has whole pictures; `tile` is the one of them that the leaf is, where they are cut.
  using RunLeaf = std::function<Found<T>(
      const Batch<T>& leaf, Index tile, const Key& key, const GradientRoom<T>& room)>;

  /// Leaves that are computed side by side, with the bits of one after the other.
  struct Joint {
    /// How many of `count` leaves of these samples; 1 where it is better not done.
    std::function<Index(const Batch<T>& leaf, Index count)> count = {};
    /// `leaves` lie one behind the other, with a key and a room for each.
    std::function<std::vector<Found<T>>(
        const Batch<T>& leaves, std::span<const Key> keys, std::span<const GradientRoom<T>> rooms)>
        run = {};
  };

  /// Its findings are valid until the next one. Throws `bad_environment` where ranks have different
  /// weights, batches or kernels.
  Found<T> run(const Batch<T>& batch,
               const LeafTask<T>& task,
               const RunLeaf& run_leaf,
               const Joint& joint = {});
  /// After a step in slices: what ranks have written into their gradients, from all of them, in the
  /// order of the trained slots.
  std::vector<std::span<T>> gather();
  const GradientLayout& layout() const { return layout_; }
  /// The weights were changed from outside: ranks look again whether they have the same ones.
  void forget() { has_agreed_ = false; }

 private:
  std::vector<std::span<T>> whole_gradients(T* vector) const;
  /// Where leaf `number` of those that are computed side by side has its gradients.
  GradientRoom<T> room_of(std::size_t number);
  void add_buffers(const LeafTask<T>& task, Index leaves, double divisor);

  GradientLayout layout_;
  ranks::LeafSum<T> sum_;
  std::vector<std::vector<T>> leaf_buffers_;  ///< of the rank's leaves
  std::vector<double> leaf_shares_;
  ranks::LeafSum<T> buffer_sum_;
  StepFindings<T> findings_;
  std::uint64_t weights_ = 0;  ///< the number of this step's
  bool has_agreed_ = false;
};

}  // namespace fenestra::nn::detail
