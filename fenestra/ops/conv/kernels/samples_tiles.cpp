// The vector loops of convolutions along the batch, for every instruction set; see
// samples_tiles.hpp.
//
// A tile is `channels` x `places` accumulators. As a lane is a sample, every load is a whole vector
// that crosses no border of cache lines, and there is nothing to mask.
#include <fenestra/kernels/simd.hpp>
#include <fenestra/ops/conv/kernels/samples_tiles.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/conv/kernels/samples_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <fenestra/kernels/transpose-inl.hpp>
#include <fenestra/kernels/vectors-inl.hpp>

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace fenestra::detail {
namespace samples_tiles::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace vectors = fenestra::kernels::HWY_NAMESPACE;
using vectors::kLanes;
using vectors::Wide;

// 16 registers hold 12 accumulators, the 2 or 3 operands that are used most, and one more; 32 hold
// 24 and up to 4.
#if HWY_TARGET == HWY_AVX3
constexpr int kAccumulators = 24;
#else
constexpr int kAccumulators = 12;
#endif
constexpr int kTileChannels = 6;
constexpr int kMaxPlaces = 8;

constexpr int max_places(int channels) { return std::min(kMaxPlaces, kAccumulators / channels); }

template <class T, int kChannels, int kPlaces>
void run_tile(const SamplesTile<T>& t) {
  const Wide<T> d;
  using V = hn::Vec<Wide<T>>;
  V sum[kChannels][kPlaces];
  FENESTRA_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    const V start = t.start != nullptr ? hn::Set(d, t.start[c]) : hn::Zero(d);
    FENESTRA_UNROLL
    for (int i = 0; i < kPlaces; ++i) {
      sum[c][i] = start;
    }
  }
  const Index step = t.step;
  const T* HWY_RESTRICT plane = t.source;
  const T* HWY_RESTRICT weights = t.weights;
  for (Index p = 0; p < t.planes; ++p, plane += t.plane_pitch, weights += t.taps * kChannels) {
    for (const TapPlace* place = t.place; place < t.last_place; ++place) {
      const T* HWY_RESTRICT from = plane + place->source;
      const T* HWY_RESTRICT w = weights + place->weight * kChannels;
      // The fewer of the two stay in registers, the others come one by one.
      if constexpr (kChannels < kPlaces) {
        V weight[kChannels];
        FENESTRA_UNROLL
        for (int c = 0; c < kChannels; ++c) {
          weight[c] = hn::Set(d, w[c]);
          vectors::in_register(weight[c]);
        }
        FENESTRA_UNROLL
        for (int i = 0; i < kPlaces; ++i) {
          V x = hn::Load(d, from + i * step);
          vectors::in_register(x);
          FENESTRA_UNROLL
          for (int c = 0; c < kChannels; ++c) {
            sum[c][i] = hn::MulAdd(weight[c], x, sum[c][i]);
          }
        }
      } else {
        V x[kPlaces];
        FENESTRA_UNROLL
        for (int i = 0; i < kPlaces; ++i) {
          x[i] = hn::Load(d, from + i * step);
          vectors::in_register(x[i]);
        }
        FENESTRA_UNROLL
        for (int c = 0; c < kChannels; ++c) {
          V weight = hn::Set(d, w[c]);
          vectors::in_register(weight);
          FENESTRA_UNROLL
          for (int i = 0; i < kPlaces; ++i) {
            sum[c][i] = hn::MulAdd(weight, x[i], sum[c][i]);
          }
        }
      }
    }
  }
  FENESTRA_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    const V bias = t.bias != nullptr ? hn::Set(d, t.bias[c] + T(0)) : hn::Zero(d);
    FENESTRA_UNROLL
    for (int i = 0; i < kPlaces; ++i) {
      hn::Store(hn::Add(sum[c][i], bias), d, t.out + c * t.channel_stride + i * t.place_stride);
    }
  }
}

template <class T, int kChannels, int... kPlaces>
SamplesTileFunction<T> pick(Index places, std::integer_sequence<int, kPlaces...>) {
  static constexpr SamplesTileFunction<T> table[] = {&run_tile<T, kChannels, kPlaces + 1>...};
  return table[places - 1];
}

template <class T>
SamplesTileFunction<T> tile(Index channels, Index places) {
  switch (channels) {
    case 1: return pick<T, 1>(places, std::make_integer_sequence<int, max_places(1)>());
    case 2: return pick<T, 2>(places, std::make_integer_sequence<int, max_places(2)>());
    case 3: return pick<T, 3>(places, std::make_integer_sequence<int, max_places(3)>());
    case 4: return pick<T, 4>(places, std::make_integer_sequence<int, max_places(4)>());
    case 5: return pick<T, 5>(places, std::make_integer_sequence<int, max_places(5)>());
    default: return pick<T, 6>(places, std::make_integer_sequence<int, max_places(6)>());
  }
}

Index tile_places(Index channels) { return max_places(static_cast<int>(channels)); }

/// `columns` cells of as many samples as a vector has lanes.
template <class T>
void turn_row(const T* src, Index sample_stride, Index columns, T* HWY_RESTRICT dst) {
#if HWY_TARGET != HWY_SCALAR
  constexpr Index kSide = vectors::kSide<T>;
  const Wide<T> d;
  if (columns >= kSide) {
    for (Index j = 0; j < columns; j += kSide) {
      // The last cells again rather than one by one.
      const Index first = std::min(j, columns - kSide);
      vectors::transpose_columns(
          d, src + first, sample_stride, [&](Index c, hn::Vec<Wide<T>> v) HWY_ATTR {
            hn::Store(v, d, dst + (first + c) * kLanes<T>);
          });
    }
    return;
  }
#endif
  for (Index j = 0; j < columns; ++j) {
    for (Index lane = 0; lane < kLanes<T>; ++lane) {
      dst[j * kLanes<T> + lane] = src[lane * sample_stride + j];
    }
  }
}

template <class T>
void clear(Index cells, T* HWY_RESTRICT dst) {
  const Wide<T> d;
  for (Index i = 0; i < cells; ++i) {
    hn::Store(hn::Zero(d), d, dst + i * kLanes<T>);
  }
}

template <class T>
void fill_strip(const SamplesStrip<T>& s) {
  T* dst = s.dst;
  for (Index r = 0; r < s.rows; ++r, dst += s.columns * kLanes<T>) {
    clear(s.begin, dst);
    turn_row(
        s.source + r * s.row_stride, s.sample_stride, s.end - s.begin, dst + s.begin * kLanes<T>);
    clear(s.columns - s.end, dst + s.end * kLanes<T>);
  }
}

template <class T>
void store_run(const T* sums, Index cells, T* out, Index sample_stride) {
  vectors::transpose_block(sums, kLanes<T>, cells, kLanes<T>, out, sample_stride);
}

/// A product with zero is a NaN where the number is not finite.
template <class T>
bool are_finite(const T* numbers, Index count) {
  const Wide<T> d;
  auto products = hn::Zero(d);
  for (Index i = 0; i < count; i += kLanes<T>) {
    const auto v = vectors::load_part(d, numbers + i, count - i, T(0));
    products = hn::MulAdd(v, hn::Zero(d), products);
  }
  return hn::AllTrue(d, hn::Eq(products, hn::Zero(d)));
}

template <class T>
constexpr SamplesLoops<T> kLoops{kLanes<T>,
                                 kTileChannels,
                                 &tile_places,
                                 &tile<T>,
                                 &fill_strip<T>,
                                 &store_run<T>,
                                 &are_finite<T>};

const SamplesLoops<float>* loops_f32() { return &kLoops<float>; }
const SamplesLoops<double>* loops_f64() { return &kLoops<double>; }

}  // namespace samples_tiles::HWY_NAMESPACE
}  // namespace fenestra::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {

namespace samples_tiles {

HWY_EXPORT(loops_f32);
HWY_EXPORT(loops_f64);

const SamplesLoops<float>& chosen_f32() { return *HWY_DYNAMIC_DISPATCH(loops_f32)(); }
const SamplesLoops<double>& chosen_f64() { return *HWY_DYNAMIC_DISPATCH(loops_f64)(); }

}  // namespace samples_tiles

template <>
const SamplesLoops<float>& samples_loops() {
  return samples_tiles::chosen_f32();
}

template <>
const SamplesLoops<double>& samples_loops() {
  return samples_tiles::chosen_f64();
}

}  // namespace fenestra::detail
#endif  // HWY_ONCE
