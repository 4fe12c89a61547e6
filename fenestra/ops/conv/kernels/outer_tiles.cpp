// The tiles of the weight gradient by outer products; see outer_tiles.hpp.
//
// A tile is places x vectors accumulators. A vector of y that is loaded feeds all places, a number
// of x that is broadcast all vectors.
#include <fenestra/kernels/simd.hpp>
#include <fenestra/ops/conv/kernels/outer_tiles.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/conv/kernels/outer_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace fenestra::detail::outer_tiles {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Accumulators: 16 registers hold 12 beside 2 vectors of y and a number of x, 32 hold 24.
#if HWY_TARGET == HWY_AVX3
constexpr int kAccumulators = 24;
#else
constexpr int kAccumulators = 12;
#endif
constexpr int most_places(int vectors) { return kAccumulators / vectors; }

template <class T>
constexpr Index lanes_of() {
  return static_cast<Index>(hn::MaxLanes(hn::ScalableTag<T>()));
}

template <class T, int kGroups, int kPlaces, int kVectors>
void add_tile(const OuterTile<T>& t) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr Index kLanes = lanes_of<T>();
  constexpr Index kWidth = kVectors * kLanes;
  V acc[kGroups][kPlaces][kVectors];
  const T* x[kGroups];
  FENESTRA_UNROLL
  for (int g = 0; g < kGroups; ++g) {
    x[g] = t.x[g];
    FENESTRA_UNROLL
    for (int p = 0; p < kPlaces; ++p) {
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        acc[g][p][v] = hn::Zero(d);
      }
    }
  }
  const Index step = t.step;
  for (const OuterRun* run = t.run; run < t.run + t.runs; ++run) {
    const T* HWY_RESTRICT y = t.y + run->y * kWidth;
    const T* HWY_RESTRICT y_end = y + run->cells * kWidth;
    Index at = run->x;
    for (; y < y_end; y += kWidth, at += step) {
      V left[kVectors];
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        left[v] = hn::LoadU(d, y + v * kLanes);
      }
      FENESTRA_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        FENESTRA_UNROLL
        for (int p = 0; p < kPlaces; ++p) {
          const V right = hn::Set(d, x[g][at + p]);
          FENESTRA_UNROLL
          for (int v = 0; v < kVectors; ++v) {
            acc[g][p][v] = hn::MulAdd(left[v], right, acc[g][p][v]);
          }
        }
      }
    }
  }
  FENESTRA_UNROLL
  for (int g = 0; g < kGroups; ++g) {
    T* HWY_RESTRICT sums = t.sums + g * t.group_pitch;
    FENESTRA_UNROLL
    for (int p = 0; p < kPlaces; ++p) {
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        T* HWY_RESTRICT sum = sums + p * kWidth + v * kLanes;
        const V before = t.accumulate ? hn::LoadU(d, sum) : hn::Zero(d);
        hn::StoreU(hn::Add(before, acc[g][p][v]), d, sum);
      }
    }
  }
}

template <class T>
using TileFunction = void (*)(const OuterTile<T>&);

template <class T, int kVectors, int kPlaces, int... kGroups>
TileFunction<T> pick_groups(Index groups, std::integer_sequence<int, kGroups...>) {
  static constexpr TileFunction<T> table[] = {&add_tile<T, kGroups + 1, kPlaces, kVectors>...};
  return table[groups - 1];
}

template <class T, int kVectors, int... kPlaces>
TileFunction<T> pick_places(Index groups, Index places, std::integer_sequence<int, kPlaces...>) {
  using Pick = TileFunction<T> (*)(Index);
  static constexpr Pick table[] = {+[](Index count) {
    constexpr int kMost =
        std::min(static_cast<int>(kOuterGroups), most_places(kVectors) / (kPlaces + 1));
    return pick_groups<T, kVectors, kPlaces + 1>(count, std::make_integer_sequence<int, kMost>());
  }...};
  return table[places - 1](groups);
}

template <class T, int kVectors>
TileFunction<T> pick(Index groups, Index places) {
  return pick_places<T, kVectors>(
      groups, places, std::make_integer_sequence<int, most_places(kVectors)>());
}

template <class T>
void run_tile(const OuterTile<T>& t) {
  const TileFunction<T> function = t.vectors == 1   ? pick<T, 1>(t.groups, t.places)
                                   : t.vectors == 2 ? pick<T, 2>(t.groups, t.places)
                                                    : pick<T, 4>(t.groups, t.places);
  function(t);
}

Index places_of(Index vectors) { return most_places(static_cast<int>(vectors)); }

template <class T>
constexpr OuterLoops<T> kLoops{lanes_of<T>(), &places_of, &run_tile<T>};

const OuterLoops<float>* loops_f32() { return &kLoops<float>; }
const OuterLoops<double>* loops_f64() { return &kLoops<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::detail::outer_tiles
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {

namespace outer_tiles {

HWY_EXPORT(loops_f32);
HWY_EXPORT(loops_f64);

const OuterLoops<float>& chosen_f32() { return *HWY_DYNAMIC_DISPATCH(loops_f32)(); }
const OuterLoops<double>& chosen_f64() { return *HWY_DYNAMIC_DISPATCH(loops_f64)(); }

}  // namespace outer_tiles

template <>
const OuterLoops<float>& outer_loops() {
  return outer_tiles::chosen_f32();
}

template <>
const OuterLoops<double>& outer_loops() {
  return outer_tiles::chosen_f64();
}

}  // namespace fenestra::detail
#endif  // HWY_ONCE
