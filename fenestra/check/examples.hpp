// Small tensors for examples that have to come out the same on every scalar of the library. For
// tests; no law is here.
#pragma once

#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <initializer_list>
#include <ostream>

namespace fenestra {

/// For test messages; found beside `Tensor`.
template <class T>
void PrintTo(const Tensor<T>& tensor, std::ostream* out) {
  *out << to_string(tensor.shape()) << " [";
  for (Index i = 0; i < tensor.size(); ++i) {
    *out << (i > 0 ? ", " : "") << tensor[i];
  }
  *out << "]";
}

}  // namespace fenestra

namespace fenestra::check {

/// Values that every scalar holds exactly: integers and short binary fractions.
template <class T>
Tensor<T> tensor(const Shape& shape, std::initializer_list<double> values) {
  return Tensor<double>(shape, values).map([](double v) { return from_double<T>(v); });
}

/// One sample of one channel on one axis.
template <class T>
Tensor<T> line(std::initializer_list<double> values) {
  return tensor<T>({1, 1, static_cast<Index>(values.size())}, values);
}

/// 0, 1, 2, ...
template <class T>
Tensor<T> counting(const Shape& shape) {
  Tensor<T> result(shape);
  T* out = result.mutable_data();
  for (Index i = 0; i < result.size(); ++i) {
    out[i] = from_index<T>(i);
  }
  return result;
}

/// The shape of an activation whose `rank` spatial axes all have one extent.
inline Shape cube(Index batch, Index channels, Index extent, int rank) {
  Shape shape{batch, channels};
  for (int axis = 0; axis < rank; ++axis) {
    shape.push_back(extent);
  }
  return shape;
}

/// Calls f<T>() for every kind of scalar that adds, multiplies, divides and compares.
template <class F>
void for_each_scalar(F&& f) {
  f.template operator()<float>();
  f.template operator()<double>();
  f.template operator()<long double>();
  f.template operator()<Rational>();
  f.template operator()<Dual<double>>();
  f.template operator()<Dual<Dual<Rational>>>();
  f.template operator()<Interval<float>>();
  f.template operator()<Interval<double>>();
  f.template operator()<Dual<Interval<double>>>();
}

/// Of these, the ones with exp, log and pow.
template <class F>
void for_each_transcendental_scalar(F&& f) {
  f.template operator()<float>();
  f.template operator()<double>();
  f.template operator()<long double>();
  f.template operator()<Dual<double>>();
  f.template operator()<Dual<Dual<double>>>();
  f.template operator()<Interval<float>>();
  f.template operator()<Interval<double>>();
  f.template operator()<Dual<Interval<double>>>();
}

}  // namespace fenestra::check
