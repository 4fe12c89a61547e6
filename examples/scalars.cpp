// The number types that run through the specification, and what each one is for: rationals say what
// the answer is, intervals enclose it, duals differentiate it, and duals nest.
#include <fenestra/ops/conv/spec.hpp>
#include <fenestra/ops/pool/spec.hpp>
#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>

#include <iostream>

namespace fn = fenestra;
using fn::Dual;
using fn::Rational;
using fn::Tensor;
using Real = fn::Interval<double>;

namespace {

int failures = 0;

void check(const char* what, bool right) {
  std::cout << (right ? "  right: " : "  WRONG: ") << what << '\n';
  failures += right ? 0 : 1;
}

/// 1e16 + 1 - 1e16 as a convolution: the middle cell is lost in doubles.
template <class T>
T cancelling_sum() {
  const Tensor<T> x(fn::Shape{1, 3}, {T(1), T(1), T(-1)});
  const T big = fn::from_double<T>(1e16);
  const Tensor<T> w(fn::Shape{1, 1, 3}, {big, T(1), big});
  return fn::spec::conv(x, w)[0];
}

/// y(t) = log(e^t + 1), the smooth maximum of t and 0.
template <class T>
T softplus(const T& t) {
  const Tensor<T> x(fn::Shape{1, 2}, {t, T(0)});
  return fn::spec::smooth_max_pool(x, fn::SmoothMaxPoolOptions{.kernel = {2}})[0];
}

}  // namespace

int main() {
  std::cout << "one sum, three number types\n";
  const auto rounded = cancelling_sum<double>();
  const auto exact = cancelling_sum<Rational>();
  const auto enclosure = cancelling_sum<Real>();
  std::cout << "  double " << rounded << ", rational " << exact << ", interval " << enclosure
            << '\n';
  check("the rational is 1", exact == Rational(1));
  check("the interval encloses it", enclosure.contains(exact));
  check("the double does not hold it", rounded != 1.0);

  std::cout << "a derivative by dual numbers, exact in rationals\n";
  const Tensor<Dual<Rational>> x(fn::Shape{1, 3}, {{2, 1}, {3, 0}, {5, 0}});
  const Tensor<Dual<Rational>> w(fn::Shape{1, 1, 2}, {{Rational(1, 3), 0}, {Rational(1, 7), 0}});
  const auto y = fn::spec::conv(x, w);
  std::cout << "  conv gives " << y[0] << " and " << y[1] << '\n';
  check("dy/dx_0 is the first weight, then 0",
        y[0].tangent == Rational(1, 3) && y[1].tangent == Rational(0));

  std::cout << "three derivatives of a smooth maximum, each enclosed\n";
  // One level of duals per derivative, every level seeded with 1; the innermost type is an
  // interval.
  using D1 = Dual<Real>;
  using D2 = Dual<D1>;
  using D3 = Dual<D2>;
  const Real t(0.75);
  const D3 s = softplus(D3{D2{D1{t, Real(1)}, D1(Real(1))}, D2(D1(Real(1)))});
  const Real p = Real(1) / (Real(1) + exp(-t));
  const Real first = s.value.value.tangent;
  const Real second = s.value.tangent.tangent;
  const Real third = s.tangent.tangent.tangent;
  std::cout << "  y' in " << first << "\n  y'' in " << second << "\n  y''' in " << third << '\n';
  check("y' = p", intersects(first, p));
  check("y'' = p(1-p)", intersects(second, p * (Real(1) - p)));
  check("y''' = p(1-p)(1-2p)", intersects(third, p * (Real(1) - p) * (Real(1) - Real(2) * p)));
  return failures == 0 ? 0 : 1;
}
