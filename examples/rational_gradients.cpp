// Learning a kernel exactly: conjugate gradients on |conv(x, w) - target|^2 in rational numbers.
//
// In n unknowns the method ends after n steps in exact arithmetic. With rationals as scalars it
// does: the last residual is zero, not small, and the kernel that made the target is found again.
#include <fenestra/ops/conv/spec.hpp>
#include <fenestra/spec/rational.hpp>

#include <iostream>

namespace fn = fenestra;
using fn::Index;
using fn::Rational;
using Vector = fn::Tensor<Rational>;

namespace {

Rational dot(const Vector& a, const Vector& b) {
  Rational sum;
  for (Index i = 0; i < a.size(); ++i) {
    sum = sum + a[i] * b[i];
  }
  return sum;
}

/// a + factor * b
Vector combined(Vector a, const Rational& factor, const Vector& b) {
  Rational* out = a.mutable_data();
  for (Index i = 0; i < a.size(); ++i) {
    out[i] = out[i] + factor * b[i];
  }
  return a;
}

void print(const char* name, const Vector& v) {
  std::cout << "  " << name << " =";
  for (const Rational& value : v.values()) {
    std::cout << "  " << value;
  }
  std::cout << '\n';
}

}  // namespace

int main() {
  const Vector x(fn::Shape{1, 5}, {-1, 0, -1, 2, -1});
  const Vector truth(fn::Shape{1, 1, 3}, {Rational(1, 2), Rational(1, 3), Rational(-1, 4)});
  const fn::ConvGeometry g =
      fn::conv_geometry(x.shape(), truth.shape(), std::nullopt, {.padding = 1});
  const auto forward = [&](const Vector& w) { return fn::spec::conv<Rational>(x, w, nullptr, g); };
  const auto gradient = [&](const Vector& y_bar) {
    return fn::spec::conv_weight_grad(x, y_bar, g);
  };

  // The convolution is linear in w, so the loss is a quadratic: r is its negative gradient (up to
  // the factor 2), and the Hessian times v is gradient(forward(v)).
  const Vector target = forward(truth);
  Vector w(truth.shape());
  Vector r = gradient(target);
  Vector direction = r;
  Index steps = 0;
  std::cout << "step 0, |gradient|^2 = " << dot(r, r) << '\n';
  while (dot(r, r) != Rational(0) && steps < truth.size()) {
    const Vector curved = gradient(forward(direction));
    const Rational length = dot(r, r) / dot(direction, curved);
    w = combined(w, length, direction);
    const Vector next = combined(r, -length, curved);
    direction = combined(next, dot(next, next) / dot(r, r), direction);
    r = next;
    std::cout << "step " << ++steps << ", |gradient|^2 = " << dot(r, r) << '\n';
    print("w", w);
  }
  const bool found = w == truth && forward(w) == target;
  std::cout << (found ? "the kernel is found exactly after " : "NOT found after ") << steps
            << " steps\n";
  return found ? 0 : 1;
}
