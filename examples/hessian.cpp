// A Hessian-vector product without a Hessian: forward mode over reverse mode, checked against the
// other order.
#include <fenestra/rules.hpp>
#include <fenestra/spec/rational.hpp>

#include <iostream>

namespace fn = fenestra;
using Exact = fn::Tensor<fn::Rational>;

int main() {
  const Exact x(fn::Shape{1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Exact w(fn::Shape{1, 1, 2, 2}, {1, -1, 2, 1});
  const Exact v(fn::Shape{1, 1, 2, 2}, {1, 0, 0, -1});
  const auto loss = [&](const auto& weight) {
    const auto y = fn::conv(x, weight);
    return fn::sum(y * y * y);
  };
  const Exact product = fn::hvp(loss, fn::primals(w), fn::tangents(v));
  // The same number the other way round: the gradient of the directional derivative.
  const auto along_v = [&](const auto& weight) {
    return fn::jvp(loss, fn::primals(weight), fn::tangents(v)).second;
  };
  const Exact again = fn::grad(along_v, w);
  for (const fn::Rational& value : product.values()) {
    std::cout << value << ' ';
  }
  std::cout << "= H v, in both orders, exactly\n";
  return product == again ? 0 : 1;
}
