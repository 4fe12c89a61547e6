// First fit by size, over a tree of times.
//
// A buffer asks for the lowest free place among all that overlap it in time, of which there may be
// as many as there are buffers: in a training step everything waits for the sweep back. So nobody
// is asked one by one. A segment tree over the steps keeps, for each stretch of time, which offsets
// are taken; what is packed tightly is one span however many buffers it is made of.
#include <fenestra/graph/packing.hpp>

#include <algorithm>
#include <bit>
#include <numeric>

namespace fenestra::graph {

namespace {

/// Offsets that are taken, as spans that neither overlap nor touch, ascending.
class Taken {
 public:
  bool empty() const { return spans_.empty(); }
  void add(std::size_t begin, std::size_t end) {
    const auto first = first_ending_at_or_after(begin);
    auto last = first;
    for (; last != spans_.end() && last->begin <= end; ++last) {
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
    }
    if (first == last) {
      spans_.insert(first, {begin, end});
      return;
    }
    *first = {begin, end};
    spans_.erase(first + 1, last);
  }
  /// The lowest place for `bytes` that is `offset` or higher.
  std::size_t free_from(std::size_t offset, std::size_t bytes) const {
    for (auto span = first_ending_at_or_after(offset + 1);
         span != spans_.end() && span->begin < offset + bytes;
         ++span) {
      offset = span->end;
    }
    return offset;
  }

 private:
  struct Span {
    std::size_t begin;
    std::size_t end;
  };
  template <class Spans>
  static auto first_in(Spans& spans, std::size_t end) {
    return std::lower_bound(spans.begin(), spans.end(), end, [](const Span& span, std::size_t e) {
      return span.end < e;
    });
  }
  std::vector<Span>::iterator first_ending_at_or_after(std::size_t end) {
    return first_in(spans_, end);
  }
  std::vector<Span>::const_iterator first_ending_at_or_after(std::size_t end) const {
    return first_in(spans_, end);
  }

  std::vector<Span> spans_;
};

/// What is taken when. Node 1 of the tree is all of the time, the nodes 2n and 2n + 1 are halves of
/// node n.
class Timetable {
 public:
  explicit Timetable(std::size_t times)
      : leaves_(std::bit_ceil(std::max<std::size_t>(times, 1))),
        throughout_(2 * leaves_),
        at_some_time_(2 * leaves_) {}

  /// The lowest place for `bytes` from time `first` to time `last`.
  std::size_t find(std::size_t first, std::size_t last, std::size_t bytes) {
    asked_.clear();
    const auto ask = [&](const Taken& taken) {
      if (!taken.empty()) {
        asked_.push_back(&taken);
      }
    };
    for_each_above(first, last, [&](std::size_t node) { ask(throughout_[node]); });
    for_each_part(first, last, [&](std::size_t node) { ask(at_some_time_[node]); });
    std::size_t offset = 0;
    for (std::size_t agree = 0; agree < asked_.size();) {
      for (const Taken* taken : asked_) {
        const std::size_t next = taken->free_from(offset, bytes);
        agree = next == offset ? agree + 1 : 1;
        offset = next;
        if (agree >= asked_.size()) {
          break;
        }
      }
    }
    return offset;
  }
  void take(std::size_t first, std::size_t last, std::size_t begin, std::size_t end) {
    for_each_above(first, last, [&](std::size_t node) { at_some_time_[node].add(begin, end); });
    for_each_part(first, last, [&](std::size_t node) {
      throughout_[node].add(begin, end);
      at_some_time_[node].add(begin, end);
    });
  }

 private:
  /// The nodes that make up a stretch of time.
  template <class Visit>
  void for_each_part(std::size_t first, std::size_t last, const Visit& visit) {
    std::size_t low = first + leaves_;
    std::size_t end = last + leaves_ + 1;
    for (; low < end; low /= 2, end /= 2) {
      if (low % 2 == 1) {
        visit(low++);
      }
      if (end % 2 == 1) {
        visit(--end);
      }
    }
  }
  /// The nodes above its ends, and the ends themselves: every node that some part of the stretch
  /// lies in.
  template <class Visit>
  void for_each_above(std::size_t first, std::size_t last, const Visit& visit) {
    std::size_t low = first + leaves_;
    std::size_t high = last + leaves_;
    for (; low != high; low /= 2, high /= 2) {
      visit(low);
      visit(high);
    }
    for (; low > 0; low /= 2) {
      visit(low);
    }
  }

  std::size_t leaves_;
  std::vector<Taken> throughout_;    ///< by what lasts for all of a node's time
  std::vector<Taken> at_some_time_;  ///< by what lasts for some of it
  std::vector<const Taken*> asked_;
};

}  // namespace

std::size_t pack(std::vector<Buffer>& buffers) {
  if (buffers.empty()) {
    return 0;
  }
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return buffers[a].bytes > buffers[b].bytes;
  });
  NodeId start = buffers[0].first;
  NodeId end = buffers[0].last;
  for (const Buffer& buffer : buffers) {
    start = std::min(start, buffer.first);
    end = std::max(end, buffer.last);
  }
  Timetable timetable(static_cast<std::size_t>(end - start) + 1);
  std::size_t total = 0;
  for (const std::size_t at : order) {
    Buffer& buffer = buffers[at];
    buffer.offset = 0;
    if (buffer.bytes == 0) {
      continue;
    }
    const auto first = static_cast<std::size_t>(buffer.first - start);
    const auto last = static_cast<std::size_t>(buffer.last - start);
    buffer.offset = timetable.find(first, last, buffer.bytes);
    timetable.take(first, last, buffer.offset, buffer.offset + buffer.bytes);
    total = std::max(total, buffer.offset + buffer.bytes);
  }
  return total;
}

}  // namespace fenestra::graph
