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

#include <fenestra/kernels/vectors-inl.hpp>

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace fenestra::detail::outer_tiles {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace vectors = fenestra::kernels::HWY_NAMESPACE;

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

// --- output channels that fill no vector ---

/// kVectors vectors of neighbours, the last in part.
template <class T, int kVectors, int kChannels>
void add_neighbours(const OuterRest<T>& t, const T* x, Index count, T* sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr Index kLanes = lanes_of<T>();
  constexpr int kLast = kVectors - 1;
  const Index last = count - kLast * kLanes;
  V acc[kChannels][kVectors];
  FENESTRA_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      acc[c][v] = hn::Zero(d);
    }
  }
  for (const OuterRun* run = t.run; run < t.run + t.runs; ++run) {
    const T* HWY_RESTRICT from = x + run->x;
    const T* HWY_RESTRICT y = t.y + run->y;
    for (Index cell = 0; cell < run->cells; ++cell, from += t.step) {
      V right[kVectors];
      FENESTRA_UNROLL
      for (int v = 0; v < kLast; ++v) {
        right[v] = hn::LoadU(d, from + v * kLanes);
      }
      right[kLast] = vectors::load_part(d, from + kLast * kLanes, last, T(0));
      FENESTRA_UNROLL
      for (int c = 0; c < kChannels; ++c) {
        const V left = hn::Set(d, y[c * t.y_pitch + cell]);
        FENESTRA_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          acc[c][v] = hn::MulAdd(left, right[v], acc[c][v]);
        }
      }
    }
  }
  FENESTRA_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      T* sum = sums + c * t.sums_pitch + v * kLanes;
      const Index part = v < kLast ? kLanes : last;
      const V before = t.accumulate ? vectors::load_part(d, sum, part, T(0)) : hn::Zero(d);
      vectors::store_part(d, hn::Add(before, acc[c][v]), sum, part);
    }
  }
}

template <class T, int kChannels>
void add_places(const OuterRest<T>& t) {
  constexpr Index kLanes = lanes_of<T>();
  for (Index g = 0; g < t.groups; ++g) {
    for (Index place = 0; place < t.neighbours; place += 4 * kLanes) {
      const Index count = std::min(4 * kLanes, t.neighbours - place);
      const T* x = t.x[g] + place;
      T* sums = t.sums + g * t.neighbours + place;
      switch ((count + kLanes - 1) / kLanes) {
        case 1: add_neighbours<T, 1, kChannels>(t, x, count, sums); break;
        case 2: add_neighbours<T, 2, kChannels>(t, x, count, sums); break;
        case 3: add_neighbours<T, 3, kChannels>(t, x, count, sums); break;
        default: add_neighbours<T, 4, kChannels>(t, x, count, sums); break;
      }
    }
  }
}

// Places whose sums along cells are formed together.
constexpr int kRestPlaces = 6;

template <class T, int kChannels>
void add_cells(const OuterRest<T>& t) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr Index kLanes = lanes_of<T>();
  const Index places = t.groups * t.neighbours;
  for (Index first = 0; first < places; first += kRestPlaces) {
    const T* x[kRestPlaces];
    V acc[kRestPlaces][kChannels];
    FENESTRA_UNROLL
    for (int p = 0; p < kRestPlaces; ++p) {
      // Behind the last place the last again; it is stored once.
      const Index place = std::min(first + p, places - 1);
      x[p] = t.x[place / t.neighbours] + place % t.neighbours;
      FENESTRA_UNROLL
      for (int c = 0; c < kChannels; ++c) {
        acc[p][c] = hn::Zero(d);
      }
    }
    for (const OuterRun* run = t.run; run < t.run + t.runs; ++run) {
      const T* HWY_RESTRICT y = t.y + run->y;
      const auto add = [&](Index cell, auto load) HWY_ATTR {
        V left[kChannels];
        FENESTRA_UNROLL
        for (int c = 0; c < kChannels; ++c) {
          left[c] = load(y + c * t.y_pitch + cell);
        }
        FENESTRA_UNROLL
        for (int p = 0; p < kRestPlaces; ++p) {
          const V right = load(x[p] + run->x + cell);
          FENESTRA_UNROLL
          for (int c = 0; c < kChannels; ++c) {
            acc[p][c] = hn::MulAdd(left[c], right, acc[p][c]);
          }
        }
      };
      Index cell = 0;
      for (; cell + kLanes <= run->cells; cell += kLanes) {
        add(cell, [&](const T* from) HWY_ATTR { return hn::LoadU(d, from); });
      }
      if (cell < run->cells) {
        add(cell, [&](const T* from) HWY_ATTR {
          return vectors::load_part(d, from, run->cells - cell, T(0));
        });
      }
    }
    for (int p = 0; p < kRestPlaces && first + p < places; ++p) {
      for (int c = 0; c < kChannels; ++c) {
        T* sum = t.sums + c * t.sums_pitch + first + p;
        *sum = (t.accumulate ? *sum : T(0)) + hn::GetLane(hn::SumOfLanes(d, acc[p][c]));
      }
    }
  }
}

template <class T>
void add_rest_places(const OuterRest<T>& t) {
  switch (t.channels) {
    case 1: return add_places<T, 1>(t);
    case 2: return add_places<T, 2>(t);
    case 3: return add_places<T, 3>(t);
    default: return add_places<T, 4>(t);
  }
}

template <class T>
void add_rest_cells(const OuterRest<T>& t) {
  switch (t.channels) {
    case 1: return add_cells<T, 1>(t);
    case 2: return add_cells<T, 2>(t);
    case 3: return add_cells<T, 3>(t);
    default: return add_cells<T, 4>(t);
  }
}

template <class T>
void add_sums(const T* parts, Index pitch, Index count, bool accumulate, Index size, T* out) {
  const hn::ScalableTag<T> d;
  for (Index i = 0; i < size; i += lanes_of<T>()) {
    auto sum = accumulate ? hn::Add(hn::LoadU(d, out + i), hn::LoadU(d, parts + i))
                          : hn::LoadU(d, parts + i);
    for (Index part = 1; part < count; ++part) {
      sum = hn::Add(sum, hn::LoadU(d, parts + part * pitch + i));
    }
    hn::StoreU(sum, d, out + i);
  }
}

template <class T>
constexpr OuterLoops<T> kLoops{
    lanes_of<T>(), &places_of, &run_tile<T>, &add_rest_places<T>, &add_rest_cells<T>, &add_sums<T>};

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
