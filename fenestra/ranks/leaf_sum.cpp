// Adding leaves, compiled for float and double.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ranks/leaf_sum.hpp>

#include <algorithm>
#include <utility>

namespace fenestra::ranks {

namespace {

// Elements per range, as for the optimisers.
constexpr Index kRange = 16384;

template <class T>
void add_to(T* x, const T* y, std::size_t count) {
  parallel_for(static_cast<Index>(count), kRange, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      x[i] += y[i];
    }
  });
}

template <class T>
void copy_to(T* x, const T* y, std::size_t count) {
  parallel_for(static_cast<Index>(count), kRange, [&](Index begin, Index end) {
    std::copy(y + begin, y + end, x + begin);
  });
}

struct Slice {
  std::size_t begin;
  std::size_t size;
};

Slice slice_of(int rank, int ranks, Index elements) {
  const Index begin = elements / ranks * rank + elements % ranks * rank / ranks;
  const Index end = elements / ranks * (rank + 1) + elements % ranks * (rank + 1) / ranks;
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)};
}

}  // namespace

template <class T>
std::vector<T> LeafSum<T>::take_buffer(std::size_t elements) {
  std::vector<T> buffer;
  if (!free_.empty()) {
    buffer = std::move(free_.back());
    free_.pop_back();
  }
  buffer.resize(elements);
  return buffer;
}

template <class T>
void LeafSum<T>::keep_buffer(std::vector<T> buffer) {
  if (buffer.capacity() > 0) {
    free_.push_back(std::move(buffer));
  }
}

template <class T>
void LeafSum<T>::Join::operator()(Vector& left, Vector& right) const {
  if (right.buffer.empty()) {
    T* at = left.buffer.data();
    for (const std::span<const T>& piece : right.pieces) {
      add_to(at, piece.data(), piece.size());
      at += piece.size();
    }
    return;
  }
  add_to(left.buffer.data(), right.buffer.data(), left.buffer.size());
  sum->keep_buffer(std::move(right.buffer));
}

template <class T>
void LeafSum<T>::start(Index leaves) {
  // A step that threw may have left something.
  if (tree_) {
    for (auto& entry : tree_->entries()) {
      keep_buffer(std::move(entry.payload.buffer));
    }
  }
  leaves_ = leaves;
  tree_.emplace(leaves, Join{this});
}

template <class T>
void LeafSum<T>::add(Index leaf, Pieces pieces) {
  tree_->push({0, leaf}, {.pieces = pieces});
  // What was not added at once is kept: the pieces are of the caller.
  Vector& last = tree_->entries().back().payload;
  if (last.buffer.empty()) {
    std::size_t elements = 0;
    for (const std::span<const T>& piece : pieces) {
      elements += piece.size();
    }
    last.buffer = take_buffer(elements);
    T* at = last.buffer.data();
    for (const std::span<const T>& piece : pieces) {
      copy_to(at, piece.data(), piece.size());
      at += piece.size();
    }
    last.pieces = {};
  }
}

template <class T>
std::span<const T> LeafSum<T>::finish(Index elements, Communicator* communicator) {
  auto& own = tree_->entries();
  if (communicator == nullptr || communicator->size() == 1) {
    return own.front().payload.buffer;
  }
  const int ranks = communicator->size();
  const int me = communicator->rank();
  const Slice mine = slice_of(me, ranks, elements);

  // Where the slices of others go, in the order of the leaves.
  struct Part {
    TreeNode node;
    T* data;
  };
  std::vector<Part> parts;
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  std::size_t foreign = 0;
  std::vector<std::vector<TreeNode>> nodes;
  for (int rank = 0; rank < ranks; ++rank) {
    nodes.push_back(nodes_of(leaves_of(rank, ranks, leaves_), leaves_));
    foreign += rank == me ? 0 : nodes.back().size();
  }
  received_.resize(foreign * mine.size);
  T* next = received_.data();
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == me) {
      for (auto& entry : own) {
        parts.push_back({entry.node, entry.payload.buffer.data() + mine.begin});
      }
      continue;
    }
    for (const TreeNode& node : nodes[static_cast<std::size_t>(rank)]) {
      parts.push_back({node, next});
      if (mine.size > 0) {
        receives.push_back({rank, std::as_writable_bytes(std::span(next, mine.size))});
      }
      next += mine.size;
    }
    const Slice theirs = slice_of(rank, ranks, elements);
    for (const auto& entry : own) {
      if (theirs.size > 0) {
        sends.push_back(
            {rank,
             std::as_bytes(std::span(entry.payload.buffer).subspan(theirs.begin, theirs.size))});
      }
    }
  }
  communicator->exchange(sends, receives);

  const auto add = [&](T* left, const T* right) { add_to(left, right, mine.size); };
  TreeSum<T*, decltype(add)> tree(leaves_, add);
  for (const Part& part : parts) {
    tree.push(part.node, part.data);
  }
  const T* const sum = tree.entries().front().payload;

  result_.resize(static_cast<std::size_t>(elements));
  std::copy_n(sum, mine.size, result_.data() + mine.begin);
  sends.clear();
  receives.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    const Slice theirs = slice_of(rank, ranks, elements);
    if (rank != me && mine.size > 0) {
      sends.push_back({rank, std::as_bytes(std::span(sum, mine.size))});
    }
    if (rank != me && theirs.size > 0) {
      receives.push_back(
          {rank, std::as_writable_bytes(std::span(result_).subspan(theirs.begin, theirs.size))});
    }
  }
  communicator->exchange(sends, receives);
  return result_;
}

template class LeafSum<float>;
template class LeafSum<double>;

}  // namespace fenestra::ranks
