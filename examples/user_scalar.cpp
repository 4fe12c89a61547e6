// A number type of your own through the library: integers modulo a prime, where a convolution with
// (1, 0, 1) makes each row of Pascal's triangle from the one above and so draws Sierpinski's.
//
// All a scalar needs is in the struct below; nothing is specialised or registered. In a finite
// field nothing rounds, so the laws of derivatives are equalities there too.
#include <fenestra/ops/conv/spec.hpp>

#include <iostream>
#include <string>

namespace fn = fenestra;
using fn::Index;
using fn::Tensor;

/// An element of the field of `p` elements, p prime.
template <int p>
struct Mod {
  int value = 0;

  constexpr Mod() = default;
  constexpr explicit Mod(int n) : value((n % p + p) % p) {}

  friend constexpr Mod operator+(Mod a, Mod b) { return Mod(a.value + b.value); }
  friend constexpr Mod operator-(Mod a, Mod b) { return Mod(a.value - b.value); }
  friend constexpr Mod operator-(Mod a) { return Mod(-a.value); }
  friend constexpr Mod operator*(Mod a, Mod b) { return Mod(a.value * b.value); }
  friend constexpr bool operator==(Mod, Mod) = default;
};

using Z3 = Mod<3>;
static_assert(fn::Scalar<Z3>);

namespace {

/// Binomial coefficient modulo 3, digit by digit (Lucas): independent of any convolution.
int binomial_mod_3(Index n, Index k) {
  static constexpr int kSmall[3][3] = {{1, 0, 0}, {1, 1, 0}, {1, 2, 1}};
  int result = 1;
  for (; n > 0 || k > 0; n /= 3, k /= 3) {
    result *= kSmall[n % 3][k % 3];
  }
  return result % 3;
}

Z3 dot(const Tensor<Z3>& a, const Tensor<Z3>& b) {
  Z3 sum;
  for (Index i = 0; i < a.size(); ++i) {
    sum = sum + a[i] * b[i];
  }
  return sum;
}

Tensor<Z3> pattern(const fn::Shape& shape, int step) {
  Tensor<Z3> result(shape);
  int i = 0;
  for (Z3& value : result.mutable_values()) {
    value = Z3((i += step) / 2);
  }
  return result;
}

}  // namespace

int main() {
  constexpr Index rows = 27;
  constexpr Index width = 2 * rows + 1;
  const Tensor<Z3> w(fn::Shape{1, 1, 3}, {Z3(1), Z3(0), Z3(1)});
  Tensor<Z3> row(fn::Shape{1, width});
  row.mutable_data()[rows] = Z3(1);

  bool right = true;
  for (Index n = 0; n < rows; ++n) {
    std::string line;
    for (Index cell = 0; cell < width; ++cell) {
      line += " *o"[row[cell].value];
    }
    std::cout << line << '\n';
    for (Index k = 0; k <= n; ++k) {
      right = right && row[rows - n + 2 * k].value == binomial_mod_3(n, k);
    }
    row = fn::spec::conv(row, w, {.padding = 1});
  }
  std::cout << "Pascal's triangle modulo 3 (* is 1, o is 2): " << (right ? "right" : "WRONG")
            << '\n';

  const fn::ConvGeometry g = fn::conv_geometry(
      fn::Shape{2, 5, 6}, fn::Shape{3, 2, 2, 3}, std::nullopt, {.stride = {1, 2}, .padding = 1});
  const auto x = pattern(g.x_shape(), 7), x_dot = pattern(g.x_shape(), 5);
  const auto kernel = pattern(g.w_shape(), 11), kernel_dot = pattern(g.w_shape(), 3);
  const auto y_bar = pattern(g.y_shape(), 13);
  const auto y_dot = fn::spec::conv_jvp<Z3>(x, kernel, x_dot, kernel_dot, nullptr, g);
  const auto bars = fn::spec::conv_vjp(x, kernel, y_bar, g);
  const Z3 left = dot(y_bar, y_dot);
  const bool adjoint = left == dot(bars.x_bar, x_dot) + dot(bars.w_bar, kernel_dot);
  std::cout << "VJP and JVP are adjoint modulo 3: " << (adjoint ? "right" : "WRONG") << '\n';
  return right && adjoint ? 0 : 1;
}
