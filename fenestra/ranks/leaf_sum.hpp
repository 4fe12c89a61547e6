// LeafSum<T>: vectors of the leaves of a batch, added along the tree of tree.hpp by any number of
// ranks. A leaf is written where its sum is to be, and added part by part as it is found. Vectors
// are cut into buckets; a bucket is exchanged as soon as a rank has all it can add of it, while the
// rest is still computed: every rank gets a slice of it, adds it up, and sends the sum to all
// (bucket_sum.hpp). Memory is kept from one sum to the next. Not installed.
//
//   sum.start({.leaves = 8, .elements = n, .ends = {m, n}, .communicator = c});
//   for (leaf ...) { T* x = sum.begin_leaf(leaf); ...; sum.ready({0, n}); sum.end_leaf(); }
//   std::span<T> total = sum.finish();
//
// Several leaves may be computed side by side, element ranges one after the other, each for all of
// these leaves: then only what is left of them has memory for all elements.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/ranks/bucket_sum.hpp>
#include <fenestra/ranks/communicator.hpp>
#include <fenestra/ranks/tree.hpp>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace fenestra::ranks {

/// What is to be added; on all ranks the same but for the communicator.
struct LeafSumTask {
  Index leaves = 1;
  Index elements = 0;            ///< of a vector
  std::vector<Index> ends = {};  ///< of the buckets, rising, the last one `elements`; none: one
  std::vector<Index> cuts = {};  ///< where slices may begin, rising; none: anywhere
  double divisor = 1;            ///< of the sum
  bool gathers = true;           ///< whether every rank gets all of the sum, or its slices only
  Communicator* communicator = nullptr;  ///< null: one rank
  int channel = 0;                       ///< of the first bucket; the others follow
};

template <class T>
class LeafSum {
 public:
  /// Begins a sum; what the one before gave is gone.
  void start(const LeafSumTask& task);
  /// The leaves of this rank, one after the other: where its elements go, on a cache line. They
  /// are multiplied by `weight` before they are added.
  T* begin_leaf(Index leaf, T weight = 1);
  /// Elements that have been written, every one once.
  void ready(ElementRange range) { ready(0, range); }
  void end_leaf() { end_leaves(); }
  /// The same for `count` leaves side by side, numbered from 0, in ranges of at most `largest`
  /// elements. A range is written by the first leaf and ready, then by the next, to the last one,
  /// before another range begins.
  void begin_leaves(Index first, Index count, Index largest);
  /// Where the elements of a range go.
  T* room(std::size_t number, ElementRange range) { return at(flying_[number].chain[0], range); }
  void ready(std::size_t number, ElementRange range);
  void end_leaves();
  /// Goes on with what was sent; never waits.
  void poll();
  /// The sum, on every rank the same; without `gathers` only the slices of this rank (slices_of)
  /// are it.
  std::span<T> finish();
  /// After a sum without `gathers`: what the ranks have made of their slices, to all of them.
  std::span<T> gather();

 private:
  struct Free {
    void operator()(T* memory) const;
  };
  using Memory = std::unique_ptr<T[], Free>;
  /// Memory of a node: for all elements, or for one range after the other.
  struct Room {
    T* memory = nullptr;
    bool passes = false;
  };
  /// Remembers along which nodes a leaf is added, and which memory that leaves free.
  struct Join {
    LeafSum* sum;
    void operator()(Room& left, Room& right) const;
  };
  struct Leaf {
    std::vector<Room> chain;  ///< the leaf, and the nodes that it is added to, one after the other
    T weight = 1;
    bool is_last = false;  ///< of this rank
  };

  static Memory make_memory(Index elements);
  static T* at(const Room& room, ElementRange range) {
    return room.passes ? room.memory : room.memory + range.begin;
  }
  T* take_memory();
  T* take_passing(Index elements);
  void push(Index leaf, T weight, Room room);
  /// Which of these leaves are added to another of them, or to one before.
  std::vector<bool> passing_leaves(Index first, Index count);
  bool is_alone() const { return ranks_ == 1; }
  /// Gives buckets that nothing is missing of to the other ranks.
  void start_buckets();

  LeafSumTask task_;
  int rank_ = 0;
  int ranks_ = 1;
  LeafRange own_;
  std::optional<TreeSum<Room, Join>> tree_;
  std::vector<Leaf> flying_;  ///< leaves that have begun and not ended
  std::vector<T*> freed_;
  Index memory_elements_ = 0;
  std::vector<Memory> memory_;
  std::vector<T*> free_;
  Index passing_elements_ = 0;
  std::vector<Memory> passing_;
  std::vector<T*> free_passing_;
  std::vector<BucketSum<T>> buckets_;
  std::vector<Index> missing_;  ///< elements of each bucket
  T* result_ = nullptr;
};

extern template class LeafSum<float>;
extern template class LeafSum<double>;

}  // namespace fenestra::ranks
