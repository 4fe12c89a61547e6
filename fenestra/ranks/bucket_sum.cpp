// Rounds of messages, and what is added between them.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ranks/bucket_sum.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace fenestra::ranks {

namespace {

// Elements per range, as for the optimisers.
constexpr Index kRange = 16384;
// Few ranks save few messages by going in rounds, and each round waits until somebody polls. Where
// exactly the one begins to be better was not measured.
constexpr int kFewRanks = 4;

template <class T>
void add_to(T* x, const T* y, Index count) {
  for (Index i = 0; i < count; ++i) {
    x[i] += y[i];
  }
}

template <class T>
void divide_by(T* x, Index count, double divisor) {
  if (divisor != 1) {
    const T by = static_cast<T>(divisor);
    for (Index i = 0; i < count; ++i) {
      x[i] /= by;
    }
  }
}

template <class T>
std::span<const std::byte> bytes_of(const T* x, ElementRange range) {
  return std::as_bytes(std::span(x + range.begin, static_cast<std::size_t>(range.size())));
}

template <class T>
std::span<std::byte> room_in(T* x, ElementRange range) {
  return std::as_writable_bytes(std::span(x + range.begin, static_cast<std::size_t>(range.size())));
}

bool is_power_of_two(Index n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); }

/// Which slice is a rank's: by halves the one that is left in the end, where the first bit of the
/// rank decides first; and the same one otherwise, since an optimiser keeps what belongs to it.
int slice_number(int rank, int ranks) {
  if (!is_power_of_two(ranks)) {
    return rank;
  }
  int slice = 0;
  for (int bit = 1; bit < ranks; bit *= 2) {
    slice = 2 * slice + ((rank & bit) != 0 ? 1 : 0);
  }
  return slice;
}

/// Where slices begin and end.
std::vector<Index> bounds_of(ElementRange range, std::span<const Index> cuts, int ranks) {
  std::vector<Index> bounds{range.begin};
  for (int i = 1; i < ranks; ++i) {
    Index bound = range.begin + range.size() / ranks * i + range.size() % ranks * i / ranks;
    if (!cuts.empty()) {
      const auto next = std::lower_bound(cuts.begin(), cuts.end(), bound);
      bound = next == cuts.end() ? range.end : std::min(*next, range.end);
    }
    bounds.push_back(bound);
  }
  bounds.push_back(range.end);
  return bounds;
}

}  // namespace

std::vector<ElementRange> slices_of(std::span<const Index> ends,
                                    std::span<const Index> cuts,
                                    int rank,
                                    int ranks) {
  std::vector<ElementRange> slices;
  const auto number = static_cast<std::size_t>(slice_number(rank, ranks));
  Index begin = 0;
  for (const Index end : ends) {
    const std::vector<Index> bounds = bounds_of({begin, end}, cuts, ranks);
    slices.push_back({bounds[number], bounds[number + 1]});
    begin = end;
  }
  return slices;
}

bool sends_directly(int ranks) { return ranks <= kFewRanks; }

bool adds_by_halves(int ranks, Index leaves) {
  return !sends_directly(ranks) && is_power_of_two(ranks) && leaves % ranks == 0 &&
         is_power_of_two(leaves / ranks);
}

template <class T>
ElementRange BucketSum<T>::slices(int begin, int end) const {
  return {bounds_[static_cast<std::size_t>(begin)], bounds_[static_cast<std::size_t>(end)]};
}

template <class T>
ElementRange BucketSum<T>::slice_of(int rank) const {
  const int slice = slice_number(rank, ranks_);
  return slices(slice, slice + 1);
}

template <class T>
void BucketSum<T>::start(BucketTask<T> task, bool gathers) {
  task_ = std::move(task);
  gathers_ = gathers;
  rank_ = task_.communicator->rank();
  ranks_ = task_.communicator->size();
  by_halves_ = adds_by_halves(ranks_, task_.leaves);
  bounds_ = bounds_of(task_.range, task_.cuts, ranks_);
  slice_ = slice_of(rank_);
  first_ = 0;
  end_ = ranks_;
  round_ = 0;
  phase_ = Phase::scatter;
  start_round();
}

template <class T>
void BucketSum<T>::start_round() {
  if (by_halves_) {
    phase_ == Phase::scatter ? start_halving() : start_doubling();
  } else {
    phase_ == Phase::scatter ? start_direct_scatter() : start_direct_gather();
  }
}

template <class T>
void BucketSum<T>::start_direct_scatter() {
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  nodes_.clear();
  std::size_t foreign = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    nodes_.push_back(nodes_of(leaves_of(rank, ranks_, task_.leaves), task_.leaves));
    foreign += rank == rank_ ? 0 : nodes_.back().size();
  }
  const Index size = slice_.size();
  received_.resize(foreign * static_cast<std::size_t>(size));
  T* next = received_.data();
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) {
      continue;
    }
    for (std::size_t i = 0; i < nodes_[static_cast<std::size_t>(rank)].size(); ++i, next += size) {
      if (size > 0) {
        receives.push_back({rank, room_in(next, {0, size})});
      }
    }
    const ElementRange theirs = slice_of(rank);
    for (const T* node : task_.nodes) {
      if (theirs.size() > 0) {
        sends.push_back({rank, bytes_of(node, theirs)});
      }
    }
  }
  exchange_ = task_.communicator->start(sends, receives, task_.channel);
}

template <class T>
void BucketSum<T>::add_nodes() {
  // All nodes of some elements, while they are in the cache, and then of the next ones.
  parallel_for(slice_.size(), kRange, [&](Index begin, Index end) {
    const Index count = end - begin;
    const auto add = [&](T* left, const T* right) { add_to(left, right, count); };
    TreeSum<T*, decltype(add)> tree(task_.leaves, add);
    T* next = received_.data() + begin;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::vector<TreeNode>& nodes = nodes_[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (rank == rank_) {
          tree.push(nodes[i], task_.nodes[i] + slice_.begin + begin);
        } else {
          tree.push(nodes[i], next);
          next += slice_.size();
        }
      }
    }
    T* const sum = tree.entries().front().payload;
    divide_by(sum, count, task_.divisor);
    T* const result = task_.result + slice_.begin + begin;
    if (sum != result) {
      std::copy_n(sum, count, result);
    }
  });
}

template <class T>
void BucketSum<T>::start_direct_gather() {
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (int rank = 0; rank < ranks_; ++rank) {
    const ElementRange theirs = slice_of(rank);
    if (rank != rank_ && slice_.size() > 0) {
      sends.push_back({rank, bytes_of(task_.result, slice_)});
    }
    if (rank != rank_ && theirs.size() > 0) {
      receives.push_back({rank, room_in(task_.result, theirs)});
    }
  }
  exchange_ = task_.communicator->start(sends, receives, task_.channel);
}

template <class T>
void BucketSum<T>::start_halving() {
  const int partner = rank_ ^ (1 << round_);
  const int middle = (first_ + end_) / 2;
  const bool is_low = (rank_ & (1 << round_)) == 0;
  const ElementRange given = is_low ? slices(middle, end_) : slices(first_, middle);
  (is_low ? end_ : first_) = middle;
  const ElementRange kept = slices(first_, end_);
  received_.resize(static_cast<std::size_t>(kept.size()));
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  if (given.size() > 0) {
    sends.push_back({partner, bytes_of(task_.result, given)});
  }
  if (kept.size() > 0) {
    receives.push_back({partner, room_in(received_.data(), {0, kept.size()})});
  }
  exchange_ = task_.communicator->start(sends, receives, task_.channel);
}

template <class T>
void BucketSum<T>::start_doubling() {
  const int partner = rank_ ^ (1 << round_);
  const int count = end_ - first_;
  const bool is_low = (rank_ & (1 << round_)) == 0;
  const ElementRange own = slices(first_, end_);
  const ElementRange theirs = is_low ? slices(end_, end_ + count) : slices(first_ - count, first_);
  (is_low ? end_ : first_) += is_low ? count : -count;
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  if (own.size() > 0) {
    sends.push_back({partner, bytes_of(task_.result, own)});
  }
  if (theirs.size() > 0) {
    receives.push_back({partner, room_in(task_.result, theirs)});
  }
  exchange_ = task_.communicator->start(sends, receives, task_.channel);
}

template <class T>
void BucketSum<T>::add_half(double divisor) {
  const ElementRange kept = slices(first_, end_);
  T* const x = task_.result + kept.begin;
  parallel_for(kept.size(), kRange, [&](Index begin, Index end) {
    add_to(x + begin, received_.data() + begin, end - begin);
    divide_by(x + begin, end - begin, divisor);
  });
}

template <class T>
bool BucketSum<T>::finish_round() {
  exchange_.reset();
  if (phase_ == Phase::gather) {
    return by_halves_ && --round_ >= 0;
  }
  if (!by_halves_) {
    add_nodes();
  } else {
    const bool is_last = ++round_ == std::countr_zero(static_cast<unsigned>(ranks_));
    add_half(is_last ? task_.divisor : 1);
    if (!is_last) {
      return true;
    }
  }
  --round_;
  phase_ = Phase::gather;
  return gathers_;
}

template <class T>
void BucketSum<T>::start_gather() {
  gathers_ = true;
  start_round();
}

template <class T>
bool BucketSum<T>::poll() {
  while (exchange_ != nullptr) {
    if (!exchange_->poll()) {
      return false;
    }
    if (finish_round()) {
      start_round();
    }
  }
  return true;
}

template <class T>
void BucketSum<T>::wait() {
  while (exchange_ != nullptr) {
    exchange_->wait();
    if (finish_round()) {
      start_round();
    }
  }
}

template class BucketSum<float>;
template class BucketSum<double>;

}  // namespace fenestra::ranks
