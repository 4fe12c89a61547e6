// Sums of runs for every instruction set; see sums.hpp.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/kernels/candidate.hpp>
#include <fenestra/kernels/sums.hpp>

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/kernels/sums.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/kernels/vectors-inl.hpp>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fenestra::kernels::sums {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using kernels::HWY_NAMESPACE::kLanes;
using kernels::HWY_NAMESPACE::load_part;
using kernels::HWY_NAMESPACE::Wide;
// Parts side by side: additions take 4 cycles, and one or two begin in each.
constexpr Index kParts = 4;

/// Zero beyond the first `count` lanes: what was read there stands for nothing.
template <class T>
HWY_INLINE hn::Vec<Wide<T>> within(Index count, hn::Vec<Wide<T>> v) {
  const Wide<T> d;
  return HWY_LIKELY(count >= kLanes<T>)
             ? v
             : hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(count)), v);
}

template <class T>
HWY_INLINE T total(const hn::Vec<Wide<T>> (&part)[kParts]) {
  HWY_ALIGN T lanes[kLanes<T>];
  hn::Store(hn::Add(hn::Add(part[0], part[1]), hn::Add(part[2], part[3])), Wide<T>(), lanes);
  for (Index half = kLanes<T> / 2; half > 0; half /= 2) {
    for (Index i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  return lanes[0];
}

/// Calls add(part, i, count) for vectors of the run; a count below a vector's is the end.
template <class T, class F>
HWY_INLINE void for_each_vector(Index n, const F& add) {
  Index i = 0;
  for (; i + kParts * kLanes<T> <= n; i += kParts * kLanes<T>) {
    FENESTRA_UNROLL
    for (Index k = 0; k < kParts; ++k) {
      add(k, i + k * kLanes<T>, kLanes<T>);
    }
  }
  for (; i < n; i += kLanes<T>) {
    add(0, i, std::min(kLanes<T>, n - i));
  }
}

template <class T>
T plain(const T* x, Index n) {
  const Wide<T> d;
  hn::Vec<Wide<T>> sum[kParts] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for_each_vector<T>(n, [&](Index k, Index i, Index count) HWY_ATTR {
    sum[k] = hn::Add(sum[k], load_part(d, x + i, count, T(0)));
  });
  return total<T>(sum);
}

template <class T>
T squares(const T* x, T mean, Index n) {
  const Wide<T> d;
  const auto shift = hn::Set(d, mean);
  hn::Vec<Wide<T>> sum[kParts] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for_each_vector<T>(n, [&](Index k, Index i, Index count) HWY_ATTR {
    const auto distance = within<T>(count, hn::Sub(load_part(d, x + i, count, mean), shift));
    sum[k] = hn::MulAdd(distance, distance, sum[k]);
  });
  return total<T>(sum);
}

template <class T>
SumPair<T> pair(const T* u, const T* x, T mean, T factor, Index n) {
  const Wide<T> d;
  const auto shift = hn::Set(d, mean);
  const auto scale = hn::Set(d, factor);
  hn::Vec<Wide<T>> sum[kParts] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  hn::Vec<Wide<T>> product[kParts] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for_each_vector<T>(n, [&](Index k, Index i, Index count) HWY_ATTR {
    const auto weight = load_part(d, u + i, count, T(0));
    const auto h = hn::Mul(hn::Sub(load_part(d, x + i, count, mean), shift), scale);
    sum[k] = hn::Add(sum[k], weight);
    product[k] = hn::MulAdd(weight, within<T>(count, h), product[k]);
  });
  return {total<T>(sum), total<T>(product)};
}

template <class T>
constexpr RunSums<T> kSums{&plain<T>, &squares<T>, &pair<T>};

const RunSums<float>* sums_f32() { return &kSums<float>; }
const RunSums<double>* sums_f64() { return &kSums<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::kernels::sums
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::kernels {

namespace sums {

HWY_EXPORT(sums_f32);
HWY_EXPORT(sums_f64);

const RunSums<float>& chosen_f32() { return *HWY_DYNAMIC_DISPATCH(sums_f32)(); }
const RunSums<double>& chosen_f64() { return *HWY_DYNAMIC_DISPATCH(sums_f64)(); }

}  // namespace sums

template <>
const RunSums<float>& run_sums() {
  apply_isa_limit();
  return sums::chosen_f32();
}

template <>
const RunSums<double>& run_sums() {
  apply_isa_limit();
  return sums::chosen_f64();
}

}  // namespace fenestra::kernels
#endif  // HWY_ONCE
