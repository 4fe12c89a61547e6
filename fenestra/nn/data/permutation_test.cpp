// Orders by position: every number once, another order for every key, all orders about as often.
#include <fenestra/nn/data/permutation.hpp>

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace fenestra::nn {
namespace {

std::vector<Index> order_of(const Key& key, Index count) {
  const Permutation order(key, count);
  std::vector<Index> all;
  for (Index i = 0; i < count; ++i) {
    all.push_back(order(i));
  }
  return all;
}

TEST(Permutation, HasEveryNumberOnceForAllSmallCounts) {
  for (Index count = 1; count <= 300; ++count) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const auto order = order_of(Key(seed), count);
      const std::set<Index> distinct(order.begin(), order.end());
      ASSERT_EQ(static_cast<Index>(distinct.size()), count);
      ASSERT_EQ(*distinct.begin(), 0);
      ASSERT_EQ(*distinct.rbegin(), count - 1);
    }
  }
}

TEST(Permutation, HasEveryNumberOnceForALargeCount) {
  const Index count = 60'000;
  std::vector<bool> seen(static_cast<std::size_t>(count));
  for (const Index i : order_of(Key(5), count)) {
    ASSERT_TRUE(i >= 0 && i < count);
    ASSERT_FALSE(seen[static_cast<std::size_t>(i)]) << i;
    seen[static_cast<std::size_t>(i)] = true;
  }
}

TEST(Permutation, StaysInRangeForTheLargestCounts) {
  const Index count = (Index{1} << 62) + 12345;
  const Permutation order(Key(1), count);
  for (const Index i : {Index{0}, Index{1}, count / 2, count - 1}) {
    EXPECT_GE(order(i), 0);
    EXPECT_LT(order(i), count);
  }
}

TEST(Permutation, DiffersByEpoch) {
  for (Index count : {20, 100, 300}) {
    std::set<std::vector<Index>> orders;
    for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
      orders.insert(order_of(Key(7).fold(epoch), count));
    }
    EXPECT_EQ(orders.size(), 50U) << count;
  }
}

TEST(Permutation, GivesAllOrdersOfFourAboutAsOften) {
  constexpr int kDraws = 24'000;
  std::map<std::vector<Index>, int> counts;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    ++counts[order_of(Key(seed), 4)];
  }
  ASSERT_EQ(counts.size(), 24U);
  double chi_square = 0;
  for (const auto& [order, count] : counts) {
    chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  }
  EXPECT_LT(chi_square, 62.0);  // 23 degrees of freedom: exceeded once in 50,000 by chance
}

TEST(Permutation, MovesEachNumberToEachPlaceAboutAsOften) {
  constexpr int kCount = 11, kDraws = 11'000;
  std::vector<int> at(kCount * kCount);
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Permutation order(Key(seed), kCount);
    for (Index i = 0; i < kCount; ++i) {
      ++at[static_cast<std::size_t>(i * kCount + order(i))];
    }
  }
  double chi_square = 0;
  for (const int count : at) {
    chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  }
  EXPECT_LT(chi_square, 170.0);  // 100 degrees of freedom: exceeded once in 60,000 by chance
}

}  // namespace
}  // namespace fenestra::nn
