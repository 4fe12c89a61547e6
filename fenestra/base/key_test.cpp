#include <fenestra/base/key.hpp>

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace fenestra {
namespace {

// The known answers that its authors publish with the generator (Random123, kat_vectors).
TEST(Key, PhiloxGivesTheKnownAnswers) {
  EXPECT_EQ(Key::philox({0, 0, 0, 0}, {0, 0}),
            (Key::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Key::philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Key::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Key::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Key::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Key, DrawsAreFunctionsOfTheirPosition) {
  const Key key(7);
  std::vector<std::uint64_t> forwards;
  for (std::uint64_t i = 0; i < 100; ++i) {
    forwards.push_back(key.bits(i));
  }
  for (std::uint64_t i = 100; i-- > 0;) {
    EXPECT_EQ(Key(7).bits(i), forwards[i]);
  }
  EXPECT_EQ(std::set<std::uint64_t>(forwards.begin(), forwards.end()).size(), 100U);
}

TEST(Key, FoldedKeysDiffer) {
  const Key key(7);
  std::set<std::uint64_t> seen{key.bits(0)};
  for (std::uint64_t part = 0; part < 1000; ++part) {
    EXPECT_TRUE(seen.insert(key.fold(part).bits(0)).second) << part;
  }
  EXPECT_NE(key.fold("conv1.weight"), key.fold("conv2.weight"));
  EXPECT_EQ(key.fold("conv1.weight"), Key(7).fold("conv1.weight"));
}

TEST(Key, MomentsAreThoseOfTheDistributions) {
  const Key key(3);
  const int n = 100000;
  double sum = 0, sum_of_squares = 0, normal_sum = 0, normal_squares = 0;
  std::vector<int> counts(7);
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const double u = key.uniform(at);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    sum_of_squares += u * u;
    const double z = key.normal(at);
    normal_sum += z;
    normal_squares += z * z;
    ++counts[key.below(at, 7)];
  }
  // Five standard errors each.
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(sum_of_squares / n, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
  EXPECT_NEAR(normal_sum / n, 0, 5 * std::sqrt(1.0 / n));
  EXPECT_NEAR(normal_squares / n, 1, 5 * std::sqrt(2.0 / n));
  for (const int count : counts) {
    EXPECT_NEAR(count, n / 7.0, 5 * std::sqrt(n / 7.0 * 6 / 7));
  }
}

}  // namespace
}  // namespace fenestra
