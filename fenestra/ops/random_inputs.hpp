// Random inputs of an operator's problem, and how much work the problem is: for the clock and the
// laws. Not installed.
#pragma once

#include <fenestra/ops/operator.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace fenestra {

/// A real in [-2, 2), not closer to zero than 2^-10, with so few digits that float holds it.
inline double draw_real(Random& random) {
  return static_cast<double>(2 * random.between(-1024, 1023) + 1) * 0x1p-10;
}

template <class F>
Tensor<double> filled(const Shape& shape, F&& draw) {
  Tensor<double> result(shape);
  for (double& value : result.mutable_values()) {
    value = draw();
  }
  return result;
}

inline Tensor<double> random_reals(const Shape& shape, Random& random) {
  return filled(shape, [&] { return draw_real(random); });
}

/// draw(shape) for every input but the operator's own scalar, where it may be what is drawn; and
/// integers that are in range.
template <class Op, class F>
Inputs<double> random_inputs(const typename Op::Geometry& g, Random& random, F&& draw) {
  Inputs<double> in;
  for (const TensorInfo& info : Op::inputs(g)) {
    if constexpr (requires { Op::scalar_value(g); }) {
      if (info.role == Role::scalar) {
        in.values.emplace_back(Shape{}, Op::scalar_value(g));
        continue;
      }
    }
    in.values.push_back(draw(info.shape));
  }
  if constexpr (requires { Op::positive(g, std::size_t{}); }) {
    for (std::size_t i = 0; i < in.values.size(); ++i) {
      if (Op::positive(g, i)) {
        in.values[i] = in.values[i].map([](double v) { return std::fabs(v); });
      }
    }
  }
  if constexpr (requires { Op::data(g); }) {
    Index least = -1;
    if constexpr (requires { Op::data_least(g); }) {
      least = Op::data_least(g);
    }
    for (const TensorInfo& info : Op::data(g)) {
      Tensor<Index> data(info.shape);
      for (Index& value : data.mutable_values()) {
        value = random.between(least, Op::data_limit(g) - 1);
      }
      in.data.push_back(std::move(data));
    }
  }
  return in;
}

/// Multiply-adds, or the elements where the operator counts none: no result sums more terms.
template <class Op>
Index work_of(const typename Op::Geometry& g) {
  Checked elements = 0;
  for (const TensorInfo& info : Op::inputs(g)) {
    elements = elements + info.shape.elements().value_or(0);
  }
  elements = elements + Op::output(g).shape.elements().value_or(0);
  if constexpr (requires { Op::costs(g); }) {
    elements = elements + Op::costs(g).multiply_adds;
  }
  return elements.ok() ? elements.value() : std::numeric_limits<Index>::max();
}

/// Multiply-adds up to which the specification is run as a candidate, on its one thread.
inline constexpr Index kMostSpecified = Index{1} << 20;

}  // namespace fenestra
