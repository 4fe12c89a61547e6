// LeafSteps<T>: the step of a batch as the mean of the steps of its leaves, which may be computed
// by several ranks. Every leaf is a step of its own; what they find is added along one tree
// (ranks/tree.hpp), so that the bits are a function of the batch and of the size of a leaf. Where
// pictures are cut into tiles, a leaf is one tile of its samples, weighted by its cells. Not
// installed; the inside of trainer_core.hpp.
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
};

/// The samples [begin, end) of a batch that a rank computes.
struct RankShare {
  Index begin = 0;
  Index end = 0;
};
RankShare share_of(int rank, int ranks, Index samples, Index leaf);

template <class T>
class LeafSteps {
 public:
  /// `leaf` has whole pictures; `tile` is the one of them that the leaf is, where they are cut.
  using RunLeaf = std::function<Found<T>(const Batch<T>& leaf, Index tile, const Key& key)>;

  /// Its findings are valid until the next one. Throws `bad_environment` where ranks have different
  /// weights, batches or kernels.
  Found<T> run(const Batch<T>& batch, const LeafTask<T>& task, const RunLeaf& run_leaf);
  /// The weights were changed from outside: ranks look again whether they have the same ones.
  void forget() { has_agreed_ = false; }

 private:
  ranks::LeafSum<T> sum_;
  StepFindings<T> findings_;
  bool has_agreed_ = false;
};

}  // namespace fenestra::nn::detail
