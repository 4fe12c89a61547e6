// The sum of leaves against a recursion that knows neither ranks nor buckets nor memory.
#include <fenestra/base/error.hpp>
#include <fenestra/base/key.hpp>
#include <fenestra/ranks/communicator.hpp>
#include <fenestra/ranks/leaf_sum.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

namespace fenestra::ranks {
namespace {

/// Numbers of very different sizes, whose sums depend on the order.
float number(Index leaf, Index element) {
  const Key key = Key(7).fold(static_cast<std::uint64_t>(leaf));
  const auto at = static_cast<std::uint64_t>(element);
  return static_cast<float>(key.normal(2 * at) * std::exp(4 * key.normal(2 * at + 1)));
}

/// The definition: halves at the largest power of two below the number of leaves.
float sum_of(Index begin, Index end, Index element) {
  if (end - begin == 1) {
    return number(begin, element);
  }
  Index half = 1;
  while (2 * half < end - begin) {
    half *= 2;
  }
  return sum_of(begin, begin + half, element) + sum_of(begin + half, end, element);
}

constexpr Index kElements = 37;

/// Adds the leaves of a rank, each in two parts, the second one first.
std::span<float> sum_on(LeafSum<float>& sum, const LeafSumTask& task) {
  sum.start(task);
  const int rank = task.communicator == nullptr ? 0 : task.communicator->rank();
  const int ranks = task.communicator == nullptr ? 1 : task.communicator->size();
  const LeafRange own = leaves_of(rank, ranks, task.leaves);
  for (Index leaf = own.begin; leaf < own.end; ++leaf) {
    float* const memory = sum.begin_leaf(leaf, leaf == 2 ? 0.5f : 1.0f);
    for (Index i = 0; i < kElements; ++i) {
      memory[i] = number(leaf, i) * (leaf == 2 ? 2.0f : 1.0f);
    }
    sum.ready({10, kElements});
    sum.poll();
    sum.ready({0, 10});
    sum.end_leaf();
  }
  return sum.finish();
}

TEST(LeafSum, HasTheBitsOfTheTreeOnAnyNumberOfRanks) {
  for (const Index leaves : {1, 2, 3, 5, 6, 8, 13, 16, 64}) {
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16}) {
      std::atomic<int> wrong = 0;
      run_ranks(ranks, [&](const CommunicatorPtr& communicator) {
        LeafSum<float> sum;
        for (int repeat = 0; repeat < 2; ++repeat) {  // the second time in kept memory
          const std::span<float> total = sum_on(sum,
                                                {.leaves = leaves,
                                                 .elements = kElements,
                                                 .ends = {7, 7, 20, kElements},
                                                 .divisor = 3,
                                                 .communicator = communicator.get()});
          ASSERT_EQ(total.size(), static_cast<std::size_t>(kElements));
          for (Index i = 0; i < kElements; ++i) {
            wrong += total[static_cast<std::size_t>(i)] != sum_of(0, leaves, i) / 3 ? 1 : 0;
          }
        }
      });
      EXPECT_EQ(wrong, 0) << leaves << " leaves, " << ranks << " ranks";
    }
  }
}

TEST(LeafSum, LeavesSideBySideHaveTheSameBits) {
  // Ranges in an order of their own, each for all leaves of a group; groups of any size.
  const std::vector<ElementRange> ranges = {{20, kElements}, {0, 7}, {7, 20}};
  for (const Index leaves : {2, 3, 5, 8, 13, 16}) {
    for (const Index most : {1, 2, 3, 4, 7, 16}) {
      for (const int ranks : {1, 2, 3}) {
        std::atomic<int> wrong = 0;
        run_ranks(ranks, [&](const CommunicatorPtr& communicator) {
          LeafSum<float> sum;
          for (int repeat = 0; repeat < 2; ++repeat) {
            sum.start({.leaves = leaves,
                       .elements = kElements,
                       .ends = {7, 20, kElements},
                       .divisor = 3,
                       .communicator = communicator.get()});
            const LeafRange own = leaves_of(communicator->rank(), ranks, leaves);
            for (Index first = own.begin; first < own.end; first += most) {
              const Index count = std::min(most, own.end - first);
              sum.begin_leaves(first, count, 17);
              for (const ElementRange& range : ranges) {
                for (Index k = 0; k < count; ++k) {
                  const auto leaf = static_cast<std::size_t>(k);
                  float* const memory = sum.room(leaf, range);
                  for (Index i = range.begin; i < range.end; ++i) {
                    memory[i - range.begin] = number(first + k, i);
                  }
                  sum.ready(leaf, range);
                  sum.poll();
                }
              }
              sum.end_leaves();
            }
            const std::span<float> total = sum.finish();
            for (Index i = 0; i < kElements; ++i) {
              wrong += total[static_cast<std::size_t>(i)] != sum_of(0, leaves, i) / 3 ? 1 : 0;
            }
          }
        });
        EXPECT_EQ(wrong, 0) << leaves << " leaves, " << most << " at a time, " << ranks << " ranks";
      }
    }
  }
}

TEST(LeafSum, SlicesAreAllElementsOnceAndBeginAtCuts) {
  // Directly, by halves, and directly where others would go by halves: for 7 leaves.
  for (const auto& [ranks, leaves] : {std::pair<int, Index>{3, 8}, {8, 8}, {8, 7}}) {
    std::vector<std::vector<ElementRange>> slices(static_cast<std::size_t>(ranks));
    std::atomic<int> wrong = 0;
    run_ranks(ranks, [&, ranks = ranks, leaves = leaves](const CommunicatorPtr& communicator) {
      LeafSum<float> sum;
      const std::span<float> part = sum_on(sum,
                                           {.leaves = leaves,
                                            .elements = kElements,
                                            .ends = {20, kElements},
                                            .cuts = {0, 5, 16, 20, 30},
                                            .gathers = false,
                                            .communicator = communicator.get()});
      auto& own = slices[static_cast<std::size_t>(communicator->rank())];
      const Index ends[] = {20, kElements};
      const Index cuts[] = {0, 5, 16, 20, 30};
      own = slices_of(ends, cuts, communicator->rank(), ranks);
      for (const ElementRange& range : own) {
        for (Index i = range.begin; i < range.end; ++i) {
          float& x = part[static_cast<std::size_t>(i)];
          wrong += x != sum_of(0, leaves, i) ? 1 : 0;
          x = -x;
        }
      }
      const std::span<float> all = sum.gather();
      for (Index i = 0; i < kElements; ++i) {
        wrong += all[static_cast<std::size_t>(i)] != -sum_of(0, leaves, i) ? 1 : 0;
      }
    });
    EXPECT_EQ(wrong, 0) << ranks << " ranks";
    std::vector<int> counts(static_cast<std::size_t>(kElements));
    for (const auto& own : slices) {
      for (const ElementRange& range : own) {
        const Index b = range.begin;
        EXPECT_TRUE(range.size() == 0 || b == 0 || b == 5 || b == 16 || b == 20 || b == 30);
        for (Index i = range.begin; i < range.end; ++i) {
          ++counts[static_cast<std::size_t>(i)];
        }
      }
    }
    EXPECT_EQ(counts, std::vector<int>(static_cast<std::size_t>(kElements), 1));
  }
}

/// Counts messages, and passes them on.
class Counting : public Communicator {
 public:
  explicit Counting(Communicator& real) : real_(real) {}
  int rank() const override { return real_.rank(); }
  int size() const override { return real_.size(); }
  std::unique_ptr<Exchange> start(std::span<const Outgoing> sends,
                                  std::span<const Incoming> receives,
                                  int channel) override {
    messages += sends.size();
    for (const Outgoing& send : sends) {
      bytes += send.bytes.size();
    }
    return real_.start(sends, receives, channel);
  }

  std::size_t messages = 0;
  std::size_t bytes = 0;

 private:
  Communicator& real_;
};

TEST(LeafSum, SendsNoMoreThanItMust) {
  // Twice (N-1)/N of a vector, and for many ranks few messages.
  for (const auto& [ranks, messages] : {std::pair{2, 2}, {4, 6}, {8, 6}, {16, 8}}) {
    run_ranks(ranks, [&, ranks = ranks, messages = messages](const CommunicatorPtr& communicator) {
      Counting counting(*communicator);
      LeafSum<float> sum;
      sum.start({.leaves = 16, .elements = 1600, .communicator = &counting});
      const LeafRange own = leaves_of(communicator->rank(), ranks, 16);
      for (Index leaf = own.begin; leaf < own.end; ++leaf) {
        std::fill_n(sum.begin_leaf(leaf), 1600, 1.0f);
        EXPECT_EQ(counting.messages, 0u);
        sum.ready({0, 1600});
        sum.end_leaf();
      }
      EXPECT_EQ(sum.finish()[1599], 16);
      EXPECT_EQ(counting.messages, static_cast<std::size_t>(messages));
      EXPECT_EQ(counting.bytes,
                static_cast<std::size_t>(2 * (ranks - 1) * 1600 / ranks) * sizeof(float));
    });
  }
}

TEST(LeafSum, BucketsGoBeforeTheLastLeafIsComplete) {
  run_ranks(2, [&](const CommunicatorPtr& communicator) {
    Counting counting(*communicator);
    LeafSum<float> sum;
    sum.start({.leaves = 4, .elements = 64, .ends = {32, 64}, .communicator = &counting});
    const Index first = 2 * communicator->rank();
    sum.begin_leaf(first)[0] = 1;
    sum.ready({0, 64});
    sum.end_leaf();
    EXPECT_EQ(counting.messages, 0u);  // the node is not complete
    sum.begin_leaf(first + 1)[0] = 1;
    sum.ready({0, 31});
    EXPECT_EQ(counting.messages, 0u);
    sum.ready({31, 40});
    EXPECT_EQ(counting.messages, 1u);  // the first bucket, one of the second is missing
    sum.ready({40, 64});
    sum.end_leaf();
    EXPECT_EQ(sum.finish()[0], 4);
    EXPECT_EQ(counting.messages, 4u);
  });
}

TEST(LeafSum, TakesFewerElementsThanRanks) {
  for (const int ranks : {5, 8}) {
    run_ranks(ranks, [&](const CommunicatorPtr& communicator) {
      LeafSum<double> sum;
      sum.start({.leaves = 8, .elements = 2, .communicator = communicator.get()});
      const LeafRange own = leaves_of(communicator->rank(), ranks, 8);
      for (Index leaf = own.begin; leaf < own.end; ++leaf) {
        double* const x = sum.begin_leaf(leaf);
        x[0] = static_cast<double>(leaf);
        x[1] = 1;
        sum.ready({0, 2});
        sum.end_leaf();
      }
      const std::span<double> total = sum.finish();
      EXPECT_EQ(total[0], 28);
      EXPECT_EQ(total[1], 8);
    });
  }
}

}  // namespace
}  // namespace fenestra::ranks
