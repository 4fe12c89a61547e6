// The tree over leaves and the sum along it, against a recursion that knows neither ranks nor
// buffers.
#include <fenestra/base/error.hpp>
#include <fenestra/base/key.hpp>
#include <fenestra/ranks/communicator.hpp>
#include <fenestra/ranks/leaf_sum.hpp>
#include <fenestra/ranks/tree.hpp>

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

std::vector<float> vector_of(Index leaf, Index elements) {
  std::vector<float> x(static_cast<std::size_t>(elements));
  for (Index i = 0; i < elements; ++i) {
    x[static_cast<std::size_t>(i)] = number(leaf, i);
  }
  return x;
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

TEST(LeafTree, RangesOfRanksAreAllLeavesOnce) {
  for (const Index leaves : {1, 2, 3, 7, 8, 24, 65}) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      Index next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const LeafRange range = leaves_of(rank, ranks, leaves);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.end - range.begin, (leaves + ranks - 1) / ranks);
        next = range.end;
      }
      EXPECT_EQ(next, leaves);
    }
  }
}

TEST(LeafTree, ARankIsLeftWithFewNodes) {
  EXPECT_EQ(nodes_of({0, 8}, 8), (std::vector<TreeNode>{{3, 0}}));
  EXPECT_EQ(nodes_of({8, 16}, 64), (std::vector<TreeNode>{{3, 1}}));
  EXPECT_EQ(nodes_of({3, 6}, 8), (std::vector<TreeNode>{{0, 3}, {1, 2}}));
  // The last one of an odd number stands for its pair.
  EXPECT_EQ(nodes_of({1, 3}, 3), (std::vector<TreeNode>{{0, 1}, {1, 1}}));
  EXPECT_EQ(nodes_of({4, 4}, 8), (std::vector<TreeNode>{}));
  EXPECT_EQ(nodes_of({0, 1}, 1), (std::vector<TreeNode>{{0, 0}}));
}

TEST(LeafSum, HasTheBitsOfTheTreeOnAnyNumberOfRanks) {
  const Index elements = 37;
  for (const Index leaves : {1, 2, 3, 5, 6, 8, 13, 64}) {
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) {
      std::atomic<int> wrong = 0;
      run_ranks(ranks, [&](const CommunicatorPtr& communicator) {
        LeafSum<float> sum;
        for (int repeat = 0; repeat < 2; ++repeat) {  // the second time in kept memory
          sum.start(leaves);
          const LeafRange own = leaves_of(communicator->rank(), ranks, leaves);
          for (Index leaf = own.begin; leaf < own.end; ++leaf) {
            const std::vector<float> x = vector_of(leaf, elements);
            const std::span<const float> all(x);
            const std::span<const float> pieces[] = {
                all.subspan(0, 10), all.subspan(10, 0), all.subspan(10)};
            sum.add(leaf, pieces);
          }
          const std::span<const float> total = sum.finish(elements, communicator.get());
          ASSERT_EQ(total.size(), static_cast<std::size_t>(elements));
          for (Index i = 0; i < elements; ++i) {
            wrong += total[static_cast<std::size_t>(i)] != sum_of(0, leaves, i) ? 1 : 0;
          }
        }
      });
      EXPECT_EQ(wrong, 0) << leaves << " leaves, " << ranks << " ranks";
    }
  }
}

TEST(LeafSum, TakesFewerElementsThanRanks) {
  run_ranks(5, [&](const CommunicatorPtr& communicator) {
    LeafSum<double> sum;
    sum.start(3);
    const LeafRange own = leaves_of(communicator->rank(), 5, 3);
    for (Index leaf = own.begin; leaf < own.end; ++leaf) {
      const double x[] = {static_cast<double>(leaf), 1};
      const std::span<const double> pieces[] = {x};
      sum.add(leaf, pieces);
    }
    const std::span<const double> total = sum.finish(2, communicator.get());
    EXPECT_EQ(total[0], 3);
    EXPECT_EQ(total[1], 3);
  });
}

TEST(Communicator, GathersWhatRanksSayHoweverLongItIs) {
  run_ranks(4, [](const CommunicatorPtr& communicator) {
    const std::vector<std::byte> mine(static_cast<std::size_t>(communicator->rank()),
                                      static_cast<std::byte>(communicator->rank()));
    const auto all = all_gather(*communicator, mine);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(all[rank], std::vector<std::byte>(rank, static_cast<std::byte>(rank)));
    }
    EXPECT_TRUE(any(*communicator, communicator->rank() == 3));
    EXPECT_FALSE(any(*communicator, false));
  });
}

TEST(Communicator, ARankThatEndsDoesNotLeaveOthersWaiting) {
  struct OwnError {};
  EXPECT_THROW(run_ranks(3,
                         [](const CommunicatorPtr& communicator) {
                           if (communicator->rank() == 1) {
                             throw OwnError();
                           }
                           any(*communicator, true);
                         }),
               OwnError);
  EXPECT_THROW(run_ranks(2,
                         [](const CommunicatorPtr& communicator) {
                           if (communicator->rank() == 1) {
                             any(*communicator, true);
                           }
                         }),
               Error);
  EXPECT_THROW(run_ranks(0, [](const CommunicatorPtr&) {}), Error);
}

}  // namespace
}  // namespace fenestra::ranks
