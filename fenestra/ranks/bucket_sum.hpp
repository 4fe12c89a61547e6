// BucketSum<T>: the part of a sum that ranks do together, for one bucket of the vectors. Rounds of
// messages, each begun when the one before is done and what came has been added. Not installed.
//
// Up to a few ranks, or where they hold different nodes of the tree: one round in which every rank
// gets its slice of all nodes, and one in which it sends the sum of them to everybody. Many ranks
// with one node each, a power of two of them: halves are exchanged with the neighbour, quarters
// with the neighbour's neighbour, and so on, which adds along the same tree in messages to log N
// ranks instead of N; then the same way back.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/ranks/communicator.hpp>
#include <fenestra/ranks/tree.hpp>

#include <memory>
#include <span>
#include <vector>

namespace fenestra::ranks {

/// [begin, end)
struct ElementRange {
  Index begin = 0;
  Index end = 0;

  Index size() const { return end - begin; }
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

/// What of a vector with these buckets a rank adds up, a slice of each bucket: even ones, but that
/// they begin at the next of the cuts where there are some.
std::vector<ElementRange> slices_of(std::span<const Index> ends,
                                    std::span<const Index> cuts,
                                    int rank,
                                    int ranks);

/// What a rank has of a bucket, and where its sum goes. Memory is of whole vectors.
template <class T>
struct BucketTask {
  ElementRange range;
  std::span<const Index> cuts = {};  ///< where slices may begin; none: anywhere
  Index leaves = 1;
  std::vector<T*> nodes = {};  ///< of this rank, from left to right
  T* result = nullptr;         ///< may be the first of the nodes
  double divisor = 1;
  Communicator* communicator = nullptr;
  int channel = 0;
};

/// Whether ranks are so few that each sends to all others.
bool sends_directly(int ranks);

/// Whether ranks go by halves: with a node of the same level each.
bool adds_by_halves(int ranks, Index leaves);

template <class T>
class BucketSum {
 public:
  /// Nodes are complete in the range and belong to it from here on.
  void start(BucketTask<T> task, bool gathers);
  /// Whether it is done; never waits.
  bool poll();
  void wait();
  /// Sends what is in the slice of the result to all ranks; after a sum that did not.
  void start_gather();

 private:
  enum class Phase { idle, scatter, gather };

  ElementRange slices(int begin, int end) const;
  ElementRange slice_of(int rank) const;
  void start_round();
  /// After a round; false where it was the last one.
  bool finish_round();
  void start_direct_scatter();
  void start_direct_gather();
  void start_halving();
  void start_doubling();
  void add_nodes();
  void add_half(double divisor);

  BucketTask<T> task_;
  int rank_ = 0;
  int ranks_ = 1;
  bool gathers_ = true;
  bool by_halves_ = false;
  Phase phase_ = Phase::idle;
  int round_ = 0;  ///< by halves: the bit in which partners differ
  int first_ = 0;  ///< of the slices that this rank has, by halves
  int end_ = 0;
  std::vector<Index> bounds_;  ///< of slices, one more than there are
  ElementRange slice_;
  std::vector<T> received_;
  std::vector<std::vector<TreeNode>> nodes_;  ///< of all ranks
  std::unique_ptr<Exchange> exchange_;
};

extern template class BucketSum<float>;
extern template class BucketSum<double>;

}  // namespace fenestra::ranks
