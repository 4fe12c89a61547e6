// gradcheck: compares a function's gradients with central differences, element by element, and says
// where they differ.
//
// For people with a function of their own; the library's operators are held to exact laws instead.
// What a difference quotient cannot know is bounded by what two step sizes say: halving the step
// quarters its truncation error, so the change between the two estimates it, and the rounding of f
// adds u*|f|/h.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/transforms.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fenestra {

struct GradcheckReport {
  bool ok = true;
  int argument = 0;  ///< of the worst element, counted over all tensors of the arguments
  Index element = 0;
  double analytic = 0;
  double numeric = 0;
  double allowed = 0;  ///< the difference that truncation and rounding explain
  Index checked = 0;   ///< elements compared

  FENESTRA_API std::string text() const;
};

/// Checks the gradient of f (a single element) by every element of every argument, in double.
template <class F, class... Args>
GradcheckReport gradcheck(const F& f, const Args&... args) {
  static_assert(std::same_as<detail::CallValue<Args...>, Tensor<double>>,
                "gradcheck: differences need double; convert the arguments");
  const std::tuple<Args...> like(args...);
  const auto [value, grads] = value_and_grad(f, args...);
  std::vector<Tensor<double>> analytic = tree_flatten(grads);
  std::vector<Tensor<double>> point = tree_flatten(like);
  const auto evaluate = [&](std::size_t argument, Index element, double x) {
    std::vector<Tensor<double>> moved = point;
    moved[argument].mutable_data()[element] = x;
    return std::apply(f, tree_unflatten(like, moved))[0];
  };
  constexpr double u = std::numeric_limits<double>::epsilon() / 2;
  GradcheckReport worst;
  double worst_excess = -std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; a < point.size(); ++a) {
    for (Index i = 0; i < point[a].size(); ++i) {
      const double x = point[a][i];
      // The step that balances truncation (h^2) and rounding (u/h).
      const double h = std::cbrt(3 * u) * std::fmax(1.0, std::fabs(x));
      const auto slope = [&](double step) {
        const double above = x + step;
        const double below = x - step;
        return (evaluate(a, i, above) - evaluate(a, i, below)) / (above - below);
      };
      const double coarse = slope(2 * h);
      const double fine = slope(h);
      // A function of m operations is taken to be off by sqrt(m) roundings, m unknown: 64 covers
      // networks of thousands.
      const double rounding = 64 * u * std::fmax(std::fabs(value[0]), 1.0) / h;
      const double allowed = std::fabs(coarse - fine) + rounding;
      const double difference = std::fabs(analytic[a][i] - fine);
      ++worst.checked;
      const bool fails = !(difference <= allowed);
      if (fails) {
        worst.ok = false;
      }
      const double excess =
          std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference - allowed;
      if (excess > worst_excess) {
        worst_excess = excess;
        worst.argument = static_cast<int>(a);
        worst.element = i;
        worst.analytic = analytic[a][i];
        worst.numeric = fine;
        worst.allowed = allowed;
      }
    }
  }
  return worst;
}

}  // namespace fenestra
