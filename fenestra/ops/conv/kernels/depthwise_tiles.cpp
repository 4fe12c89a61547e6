// The loops of the depthwise convolution for every instruction set; see depthwise.hpp. A
// cell is one chain of multiply-adds in the order of its taps, whatever the tile.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/conv/kernels/depthwise.hpp>

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/conv/kernels/depthwise_tiles.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
//
#include <fenestra/kernels/vectors-inl.hpp>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
// A name of their own: other files have loops of the same names for the same instruction set.
namespace fenestra::detail::depthwise_tiles {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using kernels::HWY_NAMESPACE::kLanes;
using kernels::HWY_NAMESPACE::lanes;
using kernels::HWY_NAMESPACE::load_part;
using kernels::HWY_NAMESPACE::store_part;
using kernels::HWY_NAMESPACE::Wide;
template <class T>
using Narrow = hn::CappedTag<T, 4>;

/// Calls body(d, c) for vectors of channels from begin to end. The last vector may overlap the one
/// before: it computes the same numbers again. There are at least four channels.
template <class T, class Body>
HWY_INLINE void for_each_vector(Index begin, Index end, const Body& body) {
  const auto cover = [&](auto d) HWY_ATTR {
    constexpr Index kStep = lanes(decltype(d)());
    Index c = begin;
    for (; c + kStep <= end; c += kStep) {
      body(d, c);
    }
    if (c < end) {
      body(d, end - kStep);
    }
  };
  if (end - begin >= kLanes<T>) {
    cover(Wide<T>());
  } else {
    cover(Narrow<T>());
  }
}

/// Sums of n columns to channels c to c + count, at most a vector of them.
template <int n, class D, class T>
HWY_INLINE void store_tile(D d,
                           const DepthwiseLine<T>& line,
                           const DepthwiseRun& run,
                           Index c,
                           Index count,
                           hn::Vec<D> (&sum)[n]) {
  T* to = line.out + run.target + c;
  if (line.bias != nullptr) {
    const auto bias = load_part(d, line.bias + c, count, T(0));
    FENESTRA_UNROLL
    for (int k = 0; k < n; ++k) {
      sum[k] = hn::Add(sum[k], bias);
    }
  }
  FENESTRA_UNROLL
  for (int k = 0; k < n; ++k) {
    store_part(d, sum[k], to + k * line.target_step, count);
  }
}

template <int n, class D, class T>
HWY_INLINE void run_tile(D d, const DepthwiseLine<T>& line, const DepthwiseRun& run, Index c) {
  hn::Vec<D> sum[n];
  FENESTRA_UNROLL
  for (int k = 0; k < n; ++k) {
    sum[k] = hn::Zero(d);
  }
  const Index step = line.source_step;
  for (Index r = 0; r < line.rows; ++r) {
    const T* source = line.row[r].source + c;
    const T* weight = line.row[r].weight + c;
    for (Index t = 0; t < run.taps; ++t) {
      const auto w = hn::LoadU(d, weight + run.tap[t].weight);
      const T* from = source + run.tap[t].source;
      FENESTRA_UNROLL
      for (int k = 0; k < n; ++k) {
        sum[k] = hn::MulAdd(w, hn::LoadU(d, from + k * step), sum[k]);
      }
    }
  }
  store_tile(d, line, run, c, lanes(d), sum);
}

/// n columns of a block of groups. `kWhole`: there is a whole vector of sources to read.
template <int n, bool kWhole, class T>
HWY_INLINE void run_groups(const DepthwiseLine<T>& line, const DepthwiseRun& run, Index block) {
  const Wide<T> d;
  const DepthwiseGroups<T>& g = line.groups;
  hn::Vec<Wide<T>> sum[n];
  FENESTRA_UNROLL
  for (int k = 0; k < n; ++k) {
    sum[k] = hn::Zero(d);
  }
  const Index channel = block * g.source_block;
  const Index count = line.source_channels - channel;
  const Index step = line.source_step;
  for (Index r = 0; r < line.rows; ++r) {
    const T* source = line.row[r].source + channel;
    const T* weight = line.row[r].weight + block * g.weight_block;
    for (Index t = 0; t < run.taps; ++t) {
      const T* from = source + run.tap[t].source;
      const T* w = weight + run.tap[t].weight;
      for (Index s = 0; s < g.sources; ++s) {
        const auto lookup = hn::SetTableIndices(d, g.lookup + s * kLanes<T>);
        const auto weights = hn::LoadU(d, w + s * kLanes<T>);
        FENESTRA_UNROLL
        for (int k = 0; k < n; ++k) {
          const auto cell =
              kWhole ? hn::LoadU(d, from + k * step) : load_part(d, from + k * step, count, T(0));
          sum[k] = hn::MulAdd(weights, hn::TableLookupLanes(cell, lookup), sum[k]);
        }
      }
    }
  }
  const Index target = block * g.target_block;
  store_tile(d, line, run, target, std::min(g.target_block, line.channels - target), sum);
}

template <int n, class T>
void run_blocks(const DepthwiseLine<T>& line, const DepthwiseRun& run) {
  for (Index block = 0; block < line.groups.blocks; ++block) {
    if (line.source_channels - block * line.groups.source_block >= kLanes<T>) {
      run_groups<n, true>(line, run, block);
    } else {
      run_groups<n, false>(line, run, block);
    }
  }
}

template <class T>
void run_line(const DepthwiseLine<T>& line) {
  for (Index i = 0; i < line.runs; ++i) {
    const DepthwiseRun& run = line.run[i];
    constexpr Index kLine = 64 / static_cast<Index>(sizeof(T));
    for (Index at = i * line.ahead_size / line.runs; at < (i + 1) * line.ahead_size / line.runs;
         at += kLine) {
      hwy::Prefetch(line.ahead + at);
    }
    if (line.groups.blocks > 0) {
      switch (run.columns) {
        case 8: run_blocks<8>(line, run); break;
        case 4: run_blocks<4>(line, run); break;
        case 2: run_blocks<2>(line, run); break;
        default: run_blocks<1>(line, run);
      }
      continue;
    }
    for_each_vector<T>(0, line.channels, [&](auto d, Index c) HWY_ATTR {
      switch (run.columns) {
        case 8: return run_tile<8>(d, line, run, c);
        case 4: return run_tile<4>(d, line, run, c);
        case 2: return run_tile<2>(d, line, run, c);
        default: return run_tile<1>(d, line, run, c);
      }
    });
  }
}

/// Adds the products of a row of y and a row of x, taps t0 to t0 + n and v vectors of channels, to
/// `out`. Rows are summed on their own first, which keeps the rounding of long sums small.
template <int v, int n, class D, class T>
HWY_INLINE void add_row(D d, const DepthwiseDots<T>& j, const T* x, const T* y, Index t0, T* out) {
  constexpr Index kStep = lanes(D());
  hn::Vec<D> sum[v * n];
  FENESTRA_UNROLL
  for (int i = 0; i < v * n; ++i) {
    sum[i] = hn::Zero(d);
  }
  // Columns that all taps see, with the others on either side.
  Index first = j.first[t0];
  Index end = j.end[t0];
  for (int t = 1; t < n; ++t) {
    first = std::max(first, j.first[t0 + t]);
    end = std::min(end, j.end[t0 + t]);
  }
  if (first >= end) {
    first = end = *std::max_element(j.end + t0, j.end + t0 + n);
  }
  const auto edge = [&](int side) HWY_ATTR {
    FENESTRA_UNROLL
    for (int t = 0; t < n; ++t) {
      const Index from = side == 0 ? j.first[t0 + t] : std::max(end, j.first[t0 + t]);
      const Index to = side == 0 ? std::min(first, j.end[t0 + t]) : j.end[t0 + t];
      for (Index o = from; o < to; ++o) {
        const T* cell = x + (j.shift[t0 + t] + o * j.x_step);
        FENESTRA_UNROLL
        for (int k = 0; k < v; ++k) {
          sum[k * n + t] = hn::MulAdd(hn::LoadU(d, y + o * j.channels + k * kStep),
                                      hn::LoadU(d, cell + k * kStep),
                                      sum[k * n + t]);
        }
      }
    }
  };
  edge(0);
  for (Index o = first; o < end; ++o) {
    FENESTRA_UNROLL
    for (int k = 0; k < v; ++k) {
      const auto u = hn::LoadU(d, y + o * j.channels + k * kStep);
      FENESTRA_UNROLL
      for (int t = 0; t < n; ++t) {
        const T* cell = x + (j.shift[t0 + t] + o * j.x_step);
        sum[k * n + t] = hn::MulAdd(u, hn::LoadU(d, cell + k * kStep), sum[k * n + t]);
      }
    }
  }
  edge(1);
  FENESTRA_UNROLL
  for (int t = 0; t < n; ++t) {
    FENESTRA_UNROLL
    for (int k = 0; k < v; ++k) {
      T* to = out + t * j.channels + k * kStep;
      hn::StoreU(hn::Add(hn::LoadU(d, to), sum[k * n + t]), d, to);
    }
  }
}

/// Everything for v vectors of channels from c on.
template <int v, class D, class T>
void run_channels(D d, const DepthwiseDots<T>& j, Index c) {
  for (Index i = j.tap_row_begin * j.taps; i < j.tap_row_end * j.taps; ++i) {
    std::fill_n(j.out + i * j.channels + c, v * lanes(D()), T(0));
  }
  for (Index sample = 0; sample < j.batch; ++sample) {
    const T* x = j.x + sample * j.x_sample + c;
    for (Index r = 0; r < j.y_rows; ++r) {
      const T* y = j.y_bar + sample * j.y_sample + r * j.y_pitch + c;
      for (Index m = j.begin[r]; m < j.begin[r + 1]; ++m) {
        const auto [tap_row, x_row] = j.pairs[m];
        if (tap_row < j.tap_row_begin || tap_row >= j.tap_row_end) {
          continue;
        }
        for (Index t = 0; t < j.taps; t += kDepthwiseTaps) {
          T* out = j.out + (tap_row * j.taps + t) * j.channels + c;
          switch (std::min(kDepthwiseTaps, j.taps - t)) {
            case 1: add_row<v, 1>(d, j, x + x_row, y, t, out); break;
            case 2: add_row<v, 2>(d, j, x + x_row, y, t, out); break;
            default: add_row<v, 3>(d, j, x + x_row, y, t, out); break;
          }
        }
      }
    }
  }
}

template <class T>
void add_dots(const DepthwiseDots<T>& j) {
  constexpr Index kStep = kLanes<T>;
  Index c = j.channel_begin;
  for (; c + kDepthwiseVectors * kStep <= j.channel_end; c += kDepthwiseVectors * kStep) {
    run_channels<kDepthwiseVectors>(Wide<T>(), j, c);
  }
  for (; c + 2 * kStep <= j.channel_end; c += 2 * kStep) {
    run_channels<2>(Wide<T>(), j, c);
  }
  if (c < j.channel_end) {
    // A last vector reaches back into channels that this call has done, and does them again.
    const Index least = std::min(j.channel_end - j.channel_begin, kStep);
    for_each_vector<T>(std::min(c, j.channel_end - least),
                       j.channel_end,
                       [&](auto d, Index at) HWY_ATTR { run_channels<1>(d, j, at); });
  }
}

template <class T>
constexpr DepthwiseLoops<T> kLoops{kLanes<T>, &run_line<T>, &add_dots<T>};

const DepthwiseLoops<float>* loops_f32() { return &kLoops<float>; }
const DepthwiseLoops<double>* loops_f64() { return &kLoops<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::detail::depthwise_tiles
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {

namespace depthwise_tiles {

HWY_EXPORT(loops_f32);
HWY_EXPORT(loops_f64);

const DepthwiseLoops<float>& chosen_f32() { return *HWY_DYNAMIC_DISPATCH(loops_f32)(); }
const DepthwiseLoops<double>& chosen_f64() { return *HWY_DYNAMIC_DISPATCH(loops_f64)(); }

}  // namespace depthwise_tiles

template <>
const DepthwiseLoops<float>& depthwise_loops() {
  return depthwise_tiles::chosen_f32();
}

template <>
const DepthwiseLoops<double>& depthwise_loops() {
  return depthwise_tiles::chosen_f64();
}

}  // namespace fenestra::detail
#endif  // HWY_ONCE
