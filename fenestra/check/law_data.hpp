// What laws are tried on: random data for an operator's problem, and what tensors of other scalars
// are made of it.
#pragma once

#include <fenestra/check/law.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/ops/random_inputs.hpp>
#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::check {

namespace detail {

using Real = Interval<double>;

template <class T>
std::string show(const T& value) {
  std::ostringstream out;
  out.precision(std::numeric_limits<long double>::max_digits10);
  out << value;
  return out.str();
}

template <class U, class T, class F>
Inputs<U> convert(const Inputs<T>& in, F&& f) {
  Inputs<U> result;
  for (const Tensor<T>& value : in.values) {
    result.values.push_back(value.map(f));
  }
  result.data = in.data;
  return result;
}

template <class T>
Tensor<T> lift(const Tensor<double>& values) {
  return values.map([](double v) { return from_double<T>(v); });
}

template <class T>
Inputs<T> convert_doubles(const Inputs<double>& in) {
  return convert<T>(in, [](double v) { return from_double<T>(v); });
}

/// (value, tangent) pairs, element by element.
template <class T>
Tensor<Dual<T>> dual(const Tensor<T>& value, const Tensor<T>& tangent) {
  Tensor<Dual<T>> result(value.shape());
  Dual<T>* out = result.mutable_data();
  for (Index i = 0; i < value.size(); ++i) {
    out[i] = Dual<T>{value[i], tangent[i]};
  }
  return result;
}

template <class T>
Inputs<Dual<T>> dual(const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
  Inputs<Dual<T>> result;
  for (std::size_t i = 0; i < in.values.size(); ++i) {
    result.values.push_back(dual(in.values[i], dots[i]));
  }
  result.data = in.data;
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

/// Agreement of two results of the same exact number: equality, or enclosures that meet.
template <class T>
bool agree(const T& a, const T& b) {
  if constexpr (std::same_as<T, Real> || std::same_as<T, Interval<long double>>) {
    return intersects(a, b);
  } else {
    return identical(a, b);
  }
}

template <class T>
std::string compare(const Tensor<T>& got, const Tensor<T>& needed) {
  if (got.shape() != needed.shape()) {
    return "shape " + to_string(got.shape()) + ", needed " + to_string(needed.shape());
  }
  for (Index i = 0; i < got.size(); ++i) {
    if (!agree(got[i], needed[i])) {
      return "element " + std::to_string(i) + ": " + show(got[i]) + ", needed " + show(needed[i]);
    }
  }
  return {};
}

/// value += by * factor.
template <class T>
void shift(Tensor<T>& value, const Tensor<T>& by, const T& factor) {
  T* out = value.mutable_data();
  for (Index i = 0; i < value.size(); ++i) {
    out[i] = out[i] + by[i] * factor;
  }
}

}  // namespace detail

/// Draws for one problem. Everything is drawn as doubles that every scalar here represents exactly.
template <Operator Op>
class LawData {
 public:
  LawData(const typename Op::Geometry& geometry, std::uint64_t seed)
      : g_(geometry), random_(seed) {}

  /// Small integers: ties and zeros are frequent.
  Tensor<double> small(const Shape& shape) {
    return filled(shape, [&] { return static_cast<double>(random_.between(-3, 3)); });
  }
  /// Small integers without zero, for what divides.
  Tensor<double> nonzero(const Shape& shape) {
    return filled(shape, [&] {
      return static_cast<double>(random_.between(1, 3)) * (random_.chance(2) ? 1 : -1);
    });
  }
  /// Odd multiples of 1/2, all different, none zero: no tie within a distance of 1/2, zeros of
  /// padding included.
  Tensor<double> distinct(const Shape& shape) {
    Tensor<double> result(shape);
    double* out = result.mutable_data();
    const Index n = result.size();
    for (Index i = 0; i < n; ++i) {
      out[i] = static_cast<double>(i - n / 2) + 0.5;
    }
    for (Index i = n - 1; i > 0; --i) {
      std::swap(out[i], out[random_.between(0, i)]);
    }
    return result;
  }
  /// Reals in [-2, 2), none closer to zero than 2^-10.
  Tensor<double> reals(const Shape& shape) { return random_reals(shape, random_); }
  template <class Draw>
  Inputs<double> inputs(Draw&& draw) {
    return random_inputs<Op>(g_, random_, draw);
  }
  /// All different, between the inputs too: a maximum of two tensors has ties like any other.
  Inputs<double> distinct_inputs() {
    Index count = 0;
    for (const TensorInfo& info : Op::inputs(g_)) {
      count += info.shape.elements().value_or(0);
    }
    const Tensor<double> values = distinct(Shape{count});
    Index used = 0;
    return inputs(
        [&](const Shape& shape) { return filled(shape, [&] { return values[used++]; }); });
  }
  /// Inputs for an exact law (ties welcome), or for a transcendental one.
  Inputs<double> sample() {
    return inputs([&](const Shape& shape) {
      switch (Op::algebra(g_)) {
        case Algebra::transcendental: return reals(shape);
        case Algebra::rational: return nonzero(shape);
        default: return small(shape);
      }
    });
  }
  template <class T>
  std::vector<Tensor<T>> directions() {
    std::vector<Tensor<T>> list;
    for (const TensorInfo& info : Op::inputs(g_)) {
      list.push_back(detail::lift<T>(small(info.shape)));
    }
    return list;
  }

 private:
  typename Op::Geometry g_;
  Random random_;
};

}  // namespace fenestra::check
