// The normal distribution from sums, products, quotients and square roots alone, which IEEE 754
// rounds in one way. Compiled without contraction (as all of the library is): a fused multiply-add
// would round differently.
#include <fenestra/nn/initialise.hpp>

#include <cmath>
#include <numbers>

namespace fenestra::nn {

namespace {

/// Natural logarithm of s in (0, 1): s = m * 2^e with m in [sqrt(1/2), sqrt(2)), log m = 2
/// artanh((m - 1)/(m + 1)).
double fixed_log(double s) {
  int exponent = 0;
  double m = std::frexp(s, &exponent);  // exact
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double t =
      (m - 1) / (m + 1);  // |t| < 0.1716, so the first term left out is below 2^-60 of the sum
  const double square = t * t;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) {
    sum = sum * square + 1.0 / k;
  }
  return 2 * t * sum + exponent * std::numbers::ln2;
}

/// Marsaglia's polar method, of whose two values one is used: a generator without memory of its own
/// stays a value.
template <DrawSource S>
double polar_normal(S& random) {
  for (;;) {
    const double u = random.real();
    const double v = random.real();
    const double s = u * u + v * v;
    if (s > 0 && s < 1) {
      return u * std::sqrt(-2 * fixed_log(s) / s);
    }
  }
}

}  // namespace

double standard_normal(Random& random) { return polar_normal(random); }
double standard_normal(KeyDraws& draws) { return polar_normal(draws); }

}  // namespace fenestra::nn
