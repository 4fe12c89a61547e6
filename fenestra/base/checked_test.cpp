// Checked sizes against 128-bit arithmetic, and the two roundings of a quotient.
#include <fenestra/base/checked.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace fenestra {
namespace {

__extension__ typedef __int128 Wide;

constexpr Index kMin = std::numeric_limits<Index>::min();
constexpr Index kMax = std::numeric_limits<Index>::max();

static_assert((Checked(kMax) + 0).ok() && (Checked(kMax) + 0).value() == kMax);
static_assert(!(Checked(kMax) + 1).ok());
static_assert(!(Checked(kMin) - 1).ok());
static_assert(!(Checked(kMin) * -1).ok());
static_assert((Checked(kMax) + 1).value() == 0, "an overflowed value reads as 0");
static_assert(!(Checked(kMax) + 1 - 1).ok(), "an overflow is not undone by going back");
static_assert(!((Checked(kMax) + 1) * 0).ok());
static_assert(!(0 - (Checked(kMax) * 2)).ok());

const std::vector<Index>& notable() {
  static const std::vector<Index> list = {kMin,
                                          kMin + 1,
                                          -(Index{1} << 62),
                                          -(Index{1} << 32),
                                          -3037000500,
                                          -3,
                                          -2,
                                          -1,
                                          0,
                                          1,
                                          2,
                                          3,
                                          3037000499,
                                          3037000500,
                                          Index{1} << 32,
                                          Index{1} << 62,
                                          kMax - 1,
                                          kMax};
  return list;
}

void expect_checked(Checked got, Wide exact) {
  const bool fits = exact >= kMin && exact <= kMax;
  EXPECT_EQ(got.ok(), fits);
  EXPECT_EQ(got.value(), fits ? static_cast<Index>(exact) : 0);
}

TEST(Checked, EveryStepOverflowsExactlyWhereTheExactResultLeaves64Bits) {
  for (const Index a : notable()) {
    for (const Index b : notable()) {
      SCOPED_TRACE(std::to_string(a) + " and " + std::to_string(b));
      expect_checked(Checked(a) + b, Wide{a} + b);
      expect_checked(Checked(a) - b, Wide{a} - b);
      expect_checked(Checked(a) * b, Wide{a} * b);
    }
  }
}

TEST(Checked, QuotientsAreRoundedDownAndUpForEverySignOfTheDividend) {
  for (const Index a : notable()) {
    for (const Index b : notable()) {
      if (b < 1) {
        continue;
      }
      SCOPED_TRACE(std::to_string(a) + " / " + std::to_string(b));
      const Wide down = floor_div(a, b);
      EXPECT_TRUE(down * b <= a && (down + 1) * b > a);
      const Wide up = ceil_div(a, b);
      EXPECT_TRUE(up * b >= a && (up - 1) * b < a);
    }
  }
}

}  // namespace
}  // namespace fenestra
