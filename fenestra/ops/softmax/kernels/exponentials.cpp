// Sums of exponentials along lines, for every instruction set; see exponentials.hpp.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/softmax/kernels/exponentials.hpp>

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/softmax/kernels/exponentials.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/kernels/vector_math-inl.hpp>
#include <fenestra/kernels/vectors-inl.hpp>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
// A name of their own: other files have loops of the same names for the same instruction set.
namespace fenestra::detail::softmax_lines {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using kernels::HWY_NAMESPACE::kLanes;
using kernels::HWY_NAMESPACE::load_part;
using kernels::HWY_NAMESPACE::store_part;
using kernels::HWY_NAMESPACE::Wide;

template <class V>
HWY_INLINE V greater(V best, V x) {
  return hn::IfThenElse(hn::Lt(best, x), x, best);
}

/// Vectors across the lines.
template <class T>
void sum_across(const SoftmaxLines<T>& l) {
  const Wide<T> d;
  for (Index i = 0; i < l.count; i += kLanes<T>) {
    const Index few = l.count - i;
    auto greatest = load_part(d, l.x + i, few, T(0));
    for (Index k = 1; k < l.extent; ++k) {
      greatest = greater(greatest, load_part(d, l.x + k * l.step + i, few, T(0)));
    }
    auto sum = hn::Zero(d);
    for (Index k = 0; k < l.extent; ++k) {
      const auto x = load_part(d, l.x + k * l.step + i, few, T(0));
      const auto e = kernels::HWY_NAMESPACE::vector_exp(d, hn::Sub(x, greatest));
      sum = hn::Add(sum, e);
      if (l.exponentials != nullptr) {
        store_part(d, e, l.exponentials + k * l.step + i, few);
      }
    }
    store_part(d, greatest, l.greatest + i, few);
    store_part(d, sum, l.sum + i, few);
  }
}

/// Vectors along one line.
template <class T>
void sum_along(const SoftmaxLines<T>& l) {
  const Wide<T> d;
  HWY_ALIGN T lanes[kLanes<T>];
  auto top = hn::Set(d, l.x[0]);
  for (Index k = 0; k < l.extent; k += kLanes<T>) {
    top = greater(top, load_part(d, l.x + k, l.extent - k, l.x[0]));
  }
  hn::Store(top, d, lanes);
  T greatest = lanes[0];
  for (Index i = 1; i < kLanes<T>; ++i) {
    greatest = greatest < lanes[i] ? lanes[i] : greatest;
  }
  const auto shift = hn::Set(d, greatest);
  auto sum = hn::Zero(d);
  for (Index k = 0; k < l.extent; k += kLanes<T>) {
    const Index few = l.extent - k;
    auto e =
        kernels::HWY_NAMESPACE::vector_exp(d, hn::Sub(load_part(d, l.x + k, few, greatest), shift));
    if (few < kLanes<T>) {
      e = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(few)), e);
    }
    sum = hn::Add(sum, e);
    if (l.exponentials != nullptr) {
      store_part(d, e, l.exponentials + k, few);
    }
  }
  hn::Store(sum, d, lanes);
  T total = lanes[0];
  for (Index i = 1; i < kLanes<T>; ++i) {
    total += lanes[i];
  }
  *l.greatest = greatest;
  *l.sum = total;
}

template <class T>
HWY_INLINE void sum_lines(const SoftmaxLines<T>& l) {
  if (l.count == 1 && l.step == 1) {
    sum_along(l);
  } else {
    sum_across(l);
  }
}

void sum_f32(const SoftmaxLines<float>& lines) { sum_lines(lines); }
void sum_f64(const SoftmaxLines<double>& lines) { sum_lines(lines); }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::detail::softmax_lines
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {

namespace softmax_lines {

HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);

void run(const SoftmaxLines<float>& lines) { HWY_DYNAMIC_DISPATCH(sum_f32)(lines); }
void run(const SoftmaxLines<double>& lines) { HWY_DYNAMIC_DISPATCH(sum_f64)(lines); }

}  // namespace softmax_lines

template <>
void sum_exponentials(const SoftmaxLines<float>& lines) {
  kernels::apply_isa_limit();
  softmax_lines::run(lines);
}

template <>
void sum_exponentials(const SoftmaxLines<double>& lines) {
  kernels::apply_isa_limit();
  softmax_lines::run(lines);
}

}  // namespace fenestra::detail
#endif  // HWY_ONCE
