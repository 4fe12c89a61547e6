// One small convolution with its VJP and JVP, computed by the same code in exact rationals, in
// floats, and in intervals of floats. Draws the windows, prints exact and rounded results side by
// side, and checks that every interval encloses both and that the adjoint identity
// <y_bar, J v> = <J' y_bar, v> is an equality in rationals.
#include <fenestra/ops/conv/spec.hpp>
#include <fenestra/spec/describe.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>

#include <iomanip>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>

namespace fn = fenestra;
using fn::Index;
using fn::Rational;
using fn::Tensor;

namespace {

/// Everything that is computed, for one scalar.
template <class T>
struct Results {
  Tensor<T> y, y_dot;
  fn::spec::ConvGrads<T> bars;
  T left, right;  ///< the two sides of the adjoint identity
};

/// Numerators over a common denominator: the same data for every scalar, exact in rationals.
template <class T>
Tensor<T> data(const fn::Shape& shape, Index step, Index denominator) {
  Tensor<T> result(shape);
  Index i = 0;
  for (T& value : result.mutable_values()) {
    value = fn::from_index<T>((i += step) % 10 - 4) / fn::from_index<T>(denominator);
  }
  return result;
}

template <class T>
T dot(const Tensor<T>& a, const Tensor<T>& b) {
  T sum(0);
  for (Index i = 0; i < a.size(); ++i) {
    sum = sum + a[i] * b[i];
  }
  return sum;
}

template <class T>
Results<T> compute(const fn::ConvGeometry& g) {
  const auto x = data<T>(g.x_shape(), 3, 1), x_dot = data<T>(g.x_shape(), 7, 3);
  const auto w = data<T>(g.w_shape(), 7, 9), w_dot = data<T>(g.w_shape(), 3, 6);
  const auto y_bar = data<T>(g.y_shape(), 9, 7);
  const auto y = fn::spec::conv<T>(x, w, nullptr, g);
  const auto y_dot = fn::spec::conv_jvp<T>(x, w, x_dot, w_dot, nullptr, g);
  const auto bars = fn::spec::conv_vjp(x, w, y_bar, g);
  return {y, y_dot, bars, dot(y_bar, y_dot), dot(bars.x_bar, x_dot) + dot(bars.w_bar, w_dot)};
}

template <class T>
std::string text(const T& value) {
  std::ostringstream out;
  out << std::setprecision(4) << value;
  return out.str();
}

/// Prints the rows of one result, exact and rounded; true when the enclosures hold both.
bool compare(const char* title,
             const Tensor<Rational>& exact,
             const Tensor<float>& rounded,
             const Tensor<fn::Interval<float>>& enclosed) {
  bool agree = true;
  const Index columns = exact.shape()[exact.rank() - 1];
  std::cout << "\n  " << title << "  " << fn::to_string(exact.shape()) << '\n';
  for (Index i = 0; i < exact.size(); i += columns) {
    std::cout << "   ";
    for (Index j = i; j < i + columns; ++j) {
      std::cout << std::setw(8) << text(exact[j]);
      agree = agree && enclosed[j].contains(exact[j]) && enclosed[j].contains(rounded[j]);
    }
    std::cout << "   |";
    for (Index j = i; j < i + columns; ++j) {
      std::cout << std::setw(10) << text(rounded[j]);
    }
    std::cout << '\n';
  }
  return agree;
}

}  // namespace

int main() {
  const fn::ConvGeometry g = fn::conv_geometry(
      fn::Shape{1, 4, 5}, fn::Shape{1, 1, 3, 3}, std::nullopt, {.stride = {1, 2}, .padding = 1});
  std::cout << "conv  " << fn::to_string(g) << '\n';
  for (int axis = 0; axis < g.rank(); ++axis) {
    std::cout << "\n  " << fn::axis_name(g.rank(), axis) << ": "
              << fn::extent_formula(g.windows[axis]) << '\n';
    for (const std::string& line : fn::draw_windows(g.windows[axis])) {
      std::cout << "    " << line << '\n';
    }
  }
  std::cout << "\nThe same definition in exact rationals (left) and in floats (right)\n";
  const auto e = compute<Rational>(g);
  const auto f = compute<float>(g);
  const auto i = compute<fn::Interval<float>>(g);
  bool agree = compare("y = conv(x, w)", e.y, f.y, i.y);
  agree &= compare("y_dot, the JVP", e.y_dot, f.y_dot, i.y_dot);
  agree &= compare("x_bar, the VJP to x", e.bars.x_bar, f.bars.x_bar, i.bars.x_bar);
  agree &= compare("w_bar, the VJP to w", e.bars.w_bar, f.bars.w_bar, i.bars.w_bar);
  std::cout << "\n  " << (agree ? "Every" : "NOT every")
            << " exact and every rounded number lies in its interval of floats.\n";

  const bool equal = e.left == e.right;
  std::cout << "\nThe adjoint identity <y_bar, J v> = <J' y_bar, v>\n"
            << "  rationals  " << e.left << (equal ? "  =  " : "  differs from  ") << e.right
            << '\n'
            << std::setprecision(std::numeric_limits<float>::max_digits10) << "  floats     "
            << f.left << (f.left == f.right ? "  =  " : "  ~  ") << f.right << '\n';
  return agree && equal ? 0 : 1;
}
