// Sums of runs against sums in long double, within the a-priori bound, at every length.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/kernels/sums.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

namespace fenestra::kernels {
namespace {

template <class T>
void expect_sums() {
  std::mt19937_64 random(3);
  std::vector<T> x(1100);
  std::vector<T> u(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<T>(std::generate_canonical<double, 53>(random)) - T(0.25);
    u[i] = static_cast<T>(std::generate_canonical<double, 53>(random)) - T(0.5);
  }
  const T mean = T(0.375);
  const T factor = T(1.7);
  for (const std::string_view isa : supported_isas()) {
    const ScopedIsa scope(isa);
    const RunSums<T>& sums = run_sums<T>();
    for (Index n = 0; n <= static_cast<Index>(x.size()); n += n < 150 ? 1 : 137) {
      long double plain = 0, plain_size = 0, squares = 0, weights = 0, weights_size = 0;
      long double products = 0, products_size = 0;
      for (Index i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const long double distance = static_cast<long double>(x[at]) - mean;
        plain += x[at];
        plain_size += std::fabs(x[at]);
        squares += distance * distance;
        weights += u[at];
        weights_size += std::fabs(u[at]);
        products += u[at] * distance * factor;
        products_size += std::fabs(u[at] * distance * factor);
      }
      // At most n additions, and four roundings of each term.
      const long double bound = static_cast<long double>(n + 5) * std::numeric_limits<T>::epsilon();
      EXPECT_LE(std::fabs(sums.plain(x.data(), n) - plain), bound * plain_size) << isa << " " << n;
      EXPECT_LE(std::fabs(sums.squares(x.data(), mean, n) - squares), bound * squares)
          << isa << " " << n;
      const SumPair<T> pair = sums.pair(u.data(), x.data(), mean, factor, n);
      EXPECT_LE(std::fabs(pair.u - weights), bound * weights_size) << isa << " " << n;
      EXPECT_LE(std::fabs(pair.uh - products), bound * products_size) << isa << " " << n;
    }
  }
}

/// What stands beyond the end of a run is no part of it, whatever is done to the numbers.
template <class T>
void expect_infinite_sums() {
  const T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> x(40, T(1));
  for (const std::string_view isa : supported_isas()) {
    const ScopedIsa scope(isa);
    for (Index n = 1; n <= 40; ++n) {
      EXPECT_EQ(run_sums<T>().squares(x.data(), infinity, n), infinity) << isa << " " << n;
      const SumPair<T> pair = run_sums<T>().pair(x.data(), x.data(), -infinity, T(1), n);
      EXPECT_EQ(pair.uh, infinity) << isa << " " << n;
    }
  }
}

TEST(RunSums, AreInfiniteAtEveryLengthWhereTheMeanIs) {
  expect_infinite_sums<float>();
  expect_infinite_sums<double>();
}

TEST(RunSums, StayWithinTheBoundOfASumAtEveryLength) {
  expect_sums<float>();
  expect_sums<double>();
}

}  // namespace
}  // namespace fenestra::kernels
