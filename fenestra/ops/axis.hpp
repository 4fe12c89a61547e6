// A tensor seen along one of its axes, for operators that work on lines: softmax, running sums,
// sorting, choices by index.
#pragma once

#include <fenestra/ops/require.hpp>
#include <fenestra/tensor/shape.hpp>

#include <string>
#include <string_view>

namespace fenestra {

/// A tensor seen along one axis: element (o, k, i) at (o * extent + k) * inner + i.
struct AxisView {
  Index outer = 1;
  Index extent = 1;
  Index inner = 1;

  friend constexpr bool operator==(const AxisView&, const AxisView&) = default;
};

/// `axis` counted from 0; throws `rank_mismatch` where there is none, and where x cannot be.
constexpr int resolved_axis(std::string_view op, const Shape& x, int axis) {
  require_elements(op, "x", Argument::x, x);
  const int at = axis < 0 ? axis + x.rank() : axis;
  if (at < 0 || at >= x.rank()) {
    throw Error(std::string(op),
                {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = axis},
                std::string(op) + ": axis " + std::to_string(axis) + " of x = " + to_string(x) +
                    " does not exist\n  fix: an axis from " + std::to_string(-x.rank()) + " to " +
                    std::to_string(x.rank() - 1));
  }
  return at;
}

constexpr AxisView axis_view(const Shape& shape, int axis) {
  AxisView view{1, shape[axis], 1};
  for (int i = 0; i < shape.rank(); ++i) {
    (i < axis ? view.outer : view.inner) *= i == axis ? 1 : shape[i];
  }
  return view;
}

}  // namespace fenestra
