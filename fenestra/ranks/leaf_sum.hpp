// LeafSum<T>: vectors of the leaves of a batch, added along the tree of tree.hpp by any number of
// ranks. Every rank cuts its nodes into slices, one for each rank, and sends them; each adds its
// slice of all nodes and sends the sum to everybody. Memory is kept from one sum to the next. Not
// installed.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/ranks/communicator.hpp>
#include <fenestra/ranks/tree.hpp>

#include <optional>
#include <span>
#include <vector>

namespace fenestra::ranks {

template <class T>
class LeafSum {
 public:
  /// The vector of a leaf comes in pieces; together they are its elements.
  using Pieces = std::span<const std::span<const T>>;

  /// Begins a sum over so many leaves; what the one before gave is gone.
  void start(Index leaves);
  /// The leaves of this rank, one after the other.
  void add(Index leaf, Pieces pieces);
  /// The sum of `elements` elements, on every rank the same. `communicator` may be null: one rank.
  std::span<const T> finish(Index elements, Communicator* communicator);

 private:
  /// Elements of a leaf: still the caller's pieces, or a buffer of ours.
  struct Vector {
    Pieces pieces = {};
    std::vector<T> buffer = {};
  };
  /// Gives buffers back.
  struct Join {
    LeafSum* sum;
    void operator()(Vector& left, Vector& right) const;
  };

  std::vector<T> take_buffer(std::size_t elements);
  void keep_buffer(std::vector<T> buffer);

  Index leaves_ = 0;
  std::optional<TreeSum<Vector, Join>> tree_;
  std::vector<std::vector<T>> free_;
  std::vector<T> received_;
  std::vector<T> result_;
};

extern template class LeafSum<float>;
extern template class LeafSum<double>;

}  // namespace fenestra::ranks
