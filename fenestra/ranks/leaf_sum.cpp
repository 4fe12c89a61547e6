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
T* LeafSum<T>::take_memory() {
  if (free_.empty()) {
    const std::size_t bytes = static_cast<std::size_t>(memory_elements_) * sizeof(T);
    const std::size_t room = (bytes / kAlignment + 1) * kAlignment;
    memory_.emplace_back(static_cast<T*>(std::aligned_alloc(kAlignment, room)));
    if (memory_.back() == nullptr) {
      memory_.pop_back();
      throw OutOfMemory("the sum of leaves", room);
    }
    // Elements that no leaf writes, to fill up cache lines, are added too.
    std::fill_n(memory_.back().get(), memory_elements_, T(0));
    free_.push_back(memory_.back().get());
  }
  T* const memory = free_.back();
  free_.pop_back();
  return memory;
}

template <class T>
void LeafSum<T>::Join::operator()(T*& left, T*& right) const {
  sum->chain_.push_back(left);
  sum->freed_.push_back(right);
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
T* LeafSum<T>::begin_leaf(Index leaf, T weight) {
  T* const memory = take_memory();
  weight_ = weight;
  is_last_ = leaf + 1 == own_.end;
  chain_.assign(1, memory);
  tree_->push({0, leaf}, memory);
  if (is_last_) {
    result_ = tree_->entries().front().payload;
  }
  return memory;
}

template <class T>
void LeafSum<T>::ready(ElementRange range) {
  const bool divides = is_alone() && is_last_ && task_.divisor != 1;
  const T by = static_cast<T>(task_.divisor);
  parallel_for(range.size(), kRange, [&](Index first, Index last) {
    const Index begin = range.begin + first;
    const Index end = range.begin + last;
    if (weight_ != 1) {
      T* const x = chain_.front();
      for (Index i = begin; i < end; ++i) {
        x[i] *= weight_;
      }
    }
    for (std::size_t k = 1; k < chain_.size(); ++k) {
      T* const x = chain_[k];
      const T* const y = chain_[k - 1];
      for (Index i = begin; i < end; ++i) {
        x[i] += y[i];
      }
    }
    if (divides) {
      T* const x = chain_.back();
      for (Index i = begin; i < end; ++i) {
        x[i] /= by;
      }
    }
  });
  if (is_last_ && !is_alone()) {
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
    nodes.push_back(entry.payload);
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
void LeafSum<T>::end_leaf() {
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
