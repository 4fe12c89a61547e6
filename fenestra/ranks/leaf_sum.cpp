// Adding the leaves of one rank, and handing buckets to the others.
#include <fenestra/base/memory.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/ranks/leaf_sum.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace fenestra::ranks {

namespace {

// Elements that are added at a time, along all nodes of a chain while they are in the cache.
constexpr Index kRange = 16384;

}  // namespace

template <class T>
void LeafSum<T>::Free::operator()(T* memory) const {
  std::free(memory);
}

template <class T>
typename LeafSum<T>::Memory LeafSum<T>::make_memory(Index elements) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(T);
  const std::size_t room = (bytes / kAlignment + 1) * kAlignment;
  Memory memory(static_cast<T*>(std::aligned_alloc(kAlignment, room)));
  if (memory == nullptr) {
    throw OutOfMemory("the sum of leaves", room);
  }
  // Elements that no leaf writes, to fill up cache lines, are added too.
  std::fill_n(memory.get(), elements, T(0));
  return memory;
}

template <class T>
T* LeafSum<T>::take_memory() {
  if (free_.empty()) {
    memory_.push_back(make_memory(memory_elements_));
    free_.push_back(memory_.back().get());
  }
  T* const memory = free_.back();
  free_.pop_back();
  return memory;
}

template <class T>
T* LeafSum<T>::take_passing(Index elements) {
  if (passing_elements_ < elements) {
    // All of it is free: leaves that used it have ended.
    passing_.clear();
    free_passing_.clear();
    passing_elements_ = elements;
  }
  if (free_passing_.empty()) {
    passing_.push_back(make_memory(passing_elements_));
    free_passing_.push_back(passing_.back().get());
  }
  T* const memory = free_passing_.back();
  free_passing_.pop_back();
  return memory;
}

template <class T>
void LeafSum<T>::Join::operator()(Room& left, Room& right) const {
  sum->flying_.back().chain.push_back(left);
  // The next leaf writes a range when it is ready in this one.
  (right.passes ? sum->free_passing_ : sum->freed_).push_back(right.memory);
}

template <class T>
void LeafSum<T>::start(const LeafSumTask& task) {
  task_ = task;
  if (task_.ends.empty()) {
    task_.ends.push_back(task_.elements);
  }
  if (memory_elements_ != task_.elements) {
    memory_.clear();
    memory_elements_ = task_.elements;
  }
  // A sum that was left by an exception may have used some.
  free_.clear();
  freed_.clear();
  free_passing_.clear();
  for (const Memory& memory : passing_) {
    free_passing_.push_back(memory.get());
  }
  for (const Memory& memory : memory_) {
    free_.push_back(memory.get());
  }
  rank_ = task_.communicator == nullptr ? 0 : task_.communicator->rank();
  ranks_ = task_.communicator == nullptr ? 1 : task_.communicator->size();
  own_ = leaves_of(rank_, ranks_, task_.leaves);
  tree_.emplace(task_.leaves, Join{this});
  result_ = nullptr;
  missing_.clear();
  Index begin = 0;
  for (const Index end : task_.ends) {
    missing_.push_back(end - begin);
    begin = end;
  }
  buckets_.resize(is_alone() || task_.elements == 0 ? 0 : task_.ends.size());
  if (own_.begin == own_.end) {
    result_ = take_memory();
    std::fill(missing_.begin(), missing_.end(), 0);
    start_buckets();
  }
}

template <class T>
void LeafSum<T>::push(Index leaf, T weight, Room room) {
  flying_.push_back({.chain = {room}, .weight = weight, .is_last = leaf + 1 == own_.end});
  tree_->push({0, leaf}, room);
}

template <class T>
T* LeafSum<T>::begin_leaf(Index leaf, T weight) {
  flying_.clear();
  push(leaf, weight, {take_memory()});
  if (flying_.back().is_last) {
    result_ = tree_->entries().front().payload.memory;
  }
  return flying_.back().chain[0].memory;
}

template <class T>
std::vector<bool> LeafSum<T>::passing_leaves(Index first, Index count) {
  constexpr Index kBefore = -1;
  std::vector<bool> passes(static_cast<std::size_t>(count));
  const auto add = [&](Index&, const Index& right) {
    if (right != kBefore) {
      passes[static_cast<std::size_t>(right)] = true;
    }
  };
  TreeSum<Index, decltype(add)> tree(task_.leaves, add);
  for (const auto& entry : tree_->entries()) {
    tree.entries().push_back({entry.node, kBefore});
  }
  for (Index i = 0; i < count; ++i) {
    tree.push({0, first + i}, i);
  }
  return passes;
}

template <class T>
void LeafSum<T>::begin_leaves(Index first, Index count, Index largest) {
  flying_.clear();
  const std::vector<bool> passes = passing_leaves(first, count);
  for (Index i = 0; i < count; ++i) {
    const bool is_passing = passes[static_cast<std::size_t>(i)];
    push(first + i, 1, {is_passing ? take_passing(largest) : take_memory(), is_passing});
  }
  if (flying_.back().is_last) {
    result_ = tree_->entries().front().payload.memory;
  }
}

template <class T>
void LeafSum<T>::ready(std::size_t number, ElementRange range) {
  const Leaf& leaf = flying_[number];
  const bool divides = is_alone() && leaf.is_last && task_.divisor != 1;
  const T by = static_cast<T>(task_.divisor);
  const T weight = leaf.weight;
  parallel_for(range.size(), kRange, [&](Index begin, Index end) {
    if (weight != 1) {
      T* const x = at(leaf.chain.front(), range);
      for (Index i = begin; i < end; ++i) {
        x[i] *= weight;
      }
    }
    for (std::size_t k = 1; k < leaf.chain.size(); ++k) {
      T* const x = at(leaf.chain[k], range);
      const T* const y = at(leaf.chain[k - 1], range);
      for (Index i = begin; i < end; ++i) {
        x[i] += y[i];
      }
    }
    if (divides) {
      T* const x = at(leaf.chain.back(), range);
      for (Index i = begin; i < end; ++i) {
        x[i] /= by;
      }
    }
  });
  if (leaf.is_last && !is_alone()) {
    Index begin = 0;
    for (std::size_t b = 0; b < missing_.size(); ++b) {
      const Index end = task_.ends[b];
      missing_[b] -= std::max<Index>(0, std::min(end, range.end) - std::max(begin, range.begin));
      begin = end;
    }
    start_buckets();
  }
}

template <class T>
void LeafSum<T>::start_buckets() {
  std::vector<T*> nodes;
  for (const auto& entry : tree_->entries()) {
    nodes.push_back(entry.payload.memory);
  }
  Index begin = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Index end = task_.ends[b];
    if (missing_[b] == 0) {
      missing_[b] = -1;  // under way
      buckets_[b].start({.range = {begin, end},
                         .cuts = task_.cuts,
                         .leaves = task_.leaves,
                         .nodes = nodes,
                         .result = result_,
                         .divisor = task_.divisor,
                         .communicator = task_.communicator,
                         .channel = task_.channel + static_cast<int>(b)},
                        task_.gathers);
    }
    begin = end;
  }
}

template <class T>
void LeafSum<T>::end_leaves() {
  // What was added to another node is free; the nodes themselves stay.
  free_.insert(free_.end(), freed_.begin(), freed_.end());
  freed_.clear();
}

template <class T>
void LeafSum<T>::poll() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    if (missing_[b] < 0) {
      buckets_[b].poll();
    }
  }
}

template <class T>
std::span<T> LeafSum<T>::finish() {
  for (BucketSum<T>& bucket : buckets_) {
    bucket.wait();
  }
  return {result_, static_cast<std::size_t>(task_.elements)};
}

template <class T>
std::span<T> LeafSum<T>::gather() {
  for (BucketSum<T>& bucket : buckets_) {
    bucket.start_gather();
  }
  return finish();
}

template class LeafSum<float>;
template class LeafSum<double>;

}  // namespace fenestra::ranks
