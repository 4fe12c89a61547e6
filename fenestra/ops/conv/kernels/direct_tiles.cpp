// The vector loops of the direct convolution, for every instruction set; see
// direct_tiles.hpp.
//
// A tile is `channels` x `vectors` accumulators; each vector of the strip that is loaded feeds all
// channels, each weight that is broadcast feeds all vectors.
#include <fenestra/kernels/simd.hpp>
#include <fenestra/ops/conv/kernels/direct_tiles.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/conv/kernels/direct_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <fenestra/kernels/vectors-inl.hpp>

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace fenestra::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace vectors = fenestra::kernels::HWY_NAMESPACE;

// Accumulators: 16 registers hold 12 beside 3 vectors of the strip and a weight, 32 hold 24. Each
// vector of the strip is loaded across the border of two cache lines mostly, at twice the price,
// so as many channels as leave room for two of them share it.
#if HWY_TARGET == HWY_AVX3
constexpr int kAccumulators = 24;
constexpr int kMostChannels = 6;
constexpr int kMaxRows = 8;
#else
constexpr int kAccumulators = 12;
constexpr int kMostChannels = HWY_TARGET == HWY_AVX2 ? 6 : 4;
constexpr int kMaxRows = 4;
#endif
// Four vectors of a row, then rows: more vectors save no loads worth their code.
constexpr int kMaxVectors = 4;

constexpr int max_vectors(int channels) { return std::min(kMaxVectors, kAccumulators / channels); }
/// Rows of a tile that fill the registers: a chain of multiply-adds takes 4 cycles a link, and two
/// can start per cycle, so fewer than 8 accumulators leave the unit idle.
constexpr int max_rows(int channels, int vectors) {
  return std::min(kMaxRows, kAccumulators / (channels * vectors));
}

template <class T>
constexpr Index lanes_of() {
  return static_cast<Index>(hn::MaxLanes(hn::ScalableTag<T>()));
}

constexpr Index round_up(Index a, Index b) { return (a + b - 1) / b * b; }

// --- strips ---

/// dst[i] = src[i * step] for i in [0, count).
template <class T>
void copy_every(const T* HWY_RESTRICT src, Index step, Index count, T* HWY_RESTRICT dst) {
  for (Index i = 0; i < count; ++i) {
    dst[i] = src[i * step];
  }
}

template <class T>
void copy_row(const T* HWY_RESTRICT src, Index count, T* HWY_RESTRICT dst) {
  constexpr Index kLanes = lanes_of<T>();
  const hn::ScalableTag<T> d;
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(hn::LoadU(d, src + i), d, dst + i);
  }
  if (i == count) {
    return;
  }
  if (count >= kLanes) {
    hn::StoreU(hn::LoadU(d, src + count - kLanes), d, dst + count - kLanes);
  } else {
    vectors::store_part(d, vectors::load_part(d, src, count, T(0)), dst, count);
  }
}

/// Zeros in [0, count), count a multiple of the lanes. Rows are short: a call of memset costs more.
template <class T>
void clear_row(Index count, T* HWY_RESTRICT dst) {
  const hn::ScalableTag<T> d;
  for (Index i = 0; i < count; i += lanes_of<T>()) {
    hn::StoreU(hn::Zero(d), d, dst + i);
  }
}

/// [begin, end) of `source` and zeros around it: `count` numbers, a multiple of the lanes. Rows are
/// short: where masks are registers, two fills and a copy take longer than a mask for each vector
/// (weight gradient of 5x5 1 -> 6 @28 81 us, now 69; with the masks of AVX2 111 and 158).
template <class T>
void copy_padded(const T* source, Index begin, Index end, Index count, T* HWY_RESTRICT dst) {
  constexpr Index kLanes = lanes_of<T>();
#if HWY_TARGET == HWY_AVX3
  const hn::ScalableTag<T> d;
  for (Index i = 0; i < count; i += kLanes) {
    const Index low = std::clamp<Index>(begin - i, 0, kLanes);
    const Index high = std::clamp<Index>(end - i, low, kLanes);
    const auto before = hn::FirstN(d, static_cast<std::size_t>(low));
    const auto mask = hn::AndNot(before, hn::FirstN(d, static_cast<std::size_t>(high)));
    hn::StoreU(hn::MaskedLoad(mask, d, source + i), d, dst + i);
  }
#else
  clear_row(round_up(begin, kLanes), dst);
  clear_row(count - end / kLanes * kLanes, dst + end / kLanes * kLanes);
  copy_row(source + begin, end - begin, dst + begin);
#endif
}

/// `count` columns of `channels` elements.
template <class T>
void copy_columns(
    const T* HWY_RESTRICT src, Index step, Index channels, Index count, T* HWY_RESTRICT dst) {
  for (Index i = 0; i < count; ++i) {
    copy_row(src + i * step, channels, dst + i * channels);
  }
}

/// Two lanes at once: even columns to `even`, odd ones to `odd`, `pairs` of each.
template <class T>
void deal_pairs(const T* HWY_RESTRICT src, Index pairs, T* HWY_RESTRICT even, T* HWY_RESTRICT odd) {
  Index i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr Index kLanes = lanes_of<T>();
  const hn::ScalableTag<T> d;
  for (; i + kLanes <= pairs; i += kLanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, src + 2 * i, a, b);
    hn::StoreU(a, d, even + i);
    hn::StoreU(b, d, odd + i);
  }
#endif
  for (; i < pairs; ++i) {
    even[i] = src[2 * i];
    odd[i] = src[2 * i + 1];
  }
}

template <class T>
void fill_strip(const StripJob<T>& s) {
  constexpr Index kLanes = lanes_of<T>();
  const Index pitch = s.pitch();
  // Columns of the strip that show the source; they are the same for every row.
  const Window columns{.first = s.first_column, .step = 1, .taps = pitch / s.channels};
  const TapRange shown = taps_within(columns, 0, s.source_width);
  const Index begin = shown.begin * s.channels;
  const Index end = shown.end * s.channels;
  T* row = s.dst;
  for (Index p = 0; p < s.planes; ++p) {
    const T* plane = s.plane[p];
    for (Index r = 0; r < s.rows; ++r, row += pitch) {
      const Index source_row = s.first_row + r;
      if (source_row < 0 || source_row >= s.source_rows) {
        clear_row(pitch, row);
        continue;
      }
      const T* source = plane + (source_row * s.source_width + s.first_column) * s.column_step;
      if (s.stride == 1 && s.column_step == s.channels) {
        copy_padded(source, begin, end, pitch, row);
        continue;
      }
      if (s.stride == 1) {
        clear_row(round_up(begin, kLanes), row);
        clear_row(pitch - end / kLanes * kLanes, row + end / kLanes * kLanes);
        const T* first = source + begin / s.channels * s.column_step;
        copy_columns(first, s.column_step, s.channels, (end - begin) / s.channels, row + begin);
        continue;
      }
      for (Index phase = 0; phase < s.stride; ++phase) {
        T* dst = row + phase * s.phase_pitch;
        const Index i0 = s.dealing().places(phase, begin);
        const Index i1 = s.dealing().places(phase, end);
        clear_row(round_up(i0, kLanes), dst);
        clear_row(s.phase_pitch - i1 / kLanes * kLanes, dst + i1 / kLanes * kLanes);
        if (s.stride != 2) {
          copy_every(source + s.dealing().position(phase, i0), s.stride, i1 - i0, dst + i0);
        }
      }
      if (s.stride == 2) {
        // A column of phase 1 may stand before the pairs, one of phase 0 behind them.
        constexpr Dealing kPairs{2};
        T* odd = row + s.phase_pitch;
        const Index i0 = kPairs.places(0, begin);
        const Index i1 = std::max(kPairs.places(1, end), i0);
        if (kPairs.places(1, begin) < i0 && begin < end) {
          odd[i0 - 1] = source[begin];
        }
        deal_pairs(source + kPairs.position(0, i0), i1 - i0, row + i0, odd + i0);
        if (kPairs.places(0, end) > i1) {
          row[i1] = source[end - 1];
        }
      }
    }
  }
}

// --- target = strip * weights ---

/// Tiles of kChannels x kRows x kVectors vectors. The rows of a tile see the same taps, each row
/// the source `source_shift` behind that of the row before.
template <class T>
struct TileJob {
  const BandJob<T>& band;
  const ColumnPhase<T>& phase;
  const T* weights;  // of the channel tile
  const RowTap* entry;
  const RowTap* last_entry;
  const TapPlace* place;  // of the first row
  const TapPlace* last_place;
  const T* source;  // from where the places count
  Index source_shift;
  const T* bias;
  T* out;
  Index channel_stride;
  Index row_stride;
};

template <class T, int kChannels, int kRows, int kVectors>
void run_tile(const TileJob<T>& t, Index column, Index columns) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr Index kLanes = lanes_of<T>();
  V acc[kChannels][kRows][kVectors];
  FENESTRA_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    const V start = t.bias != nullptr ? hn::Set(d, t.bias[c]) : hn::Zero(d);
    FENESTRA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        acc[c][r][v] = start;
      }
    }
  }
  const Index shift = t.source_shift;
  const T* HWY_RESTRICT source = t.source + column;
  const T* HWY_RESTRICT weights = t.weights;
  for (const TapPlace* place = t.place; place < t.last_place; ++place) {
    const T* HWY_RESTRICT from = source + place->source;
    const T* HWY_RESTRICT w = weights + place->weight * kChannels;
    V weight[kChannels];
    if constexpr (kRows > 1) {
      FENESTRA_UNROLL
      for (int c = 0; c < kChannels; ++c) {
        weight[c] = hn::Set(d, w[c]);
      }
    }
    FENESTRA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      V x[kVectors];
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        x[v] = hn::LoadU(d, from + r * shift + v * kLanes);
        if constexpr (kChannels > 1) {
          vectors::in_register(x[v]);
        }
      }
      FENESTRA_UNROLL
      for (int c = 0; c < kChannels; ++c) {
        if constexpr (kRows == 1) {
          weight[c] = hn::Set(d, w[c]);
        }
        FENESTRA_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          acc[c][r][v] = hn::MulAdd(weight[c], x[v], acc[c][r][v]);
        }
      }
    }
  }
  FENESTRA_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    FENESTRA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      T* out = t.out + c * t.channel_stride + r * t.row_stride + column;
      FENESTRA_UNROLL
      for (int v = 0; v + 1 < kVectors; ++v) {
        hn::StoreU(hn::Add(acc[c][r][v], hn::Zero(d)), d, out + v * kLanes);
      }
      constexpr Index kLast = (kVectors - 1) * kLanes;
      const V last = hn::Add(acc[c][r][kVectors - 1], hn::Zero(d));
      vectors::store_part(d, last, out + kLast, columns - kLast);
    }
  }
}

template <class T>
using TileFunction = void (*)(const TileJob<T>&, Index column, Index columns);

/// The tiles of one width, of 1 to `most_rows` rows.
template <class T>
struct TileKind {
  Index most_rows = 0;
  const TileFunction<T>* of_rows = nullptr;
};

template <class T, int kChannels, int kVectors, class Rows>
struct TilesOf;
template <class T, int kChannels, int kVectors, int... kRows>
struct TilesOf<T, kChannels, kVectors, std::integer_sequence<int, kRows...>> {
  static constexpr TileFunction<T> of_rows[] = {&run_tile<T, kChannels, kRows + 1, kVectors>...};
  static constexpr TileKind<T> kind{sizeof...(kRows), of_rows};
};

template <class T, int kChannels, int... kVectors>
const TileKind<T>& pick_tile(Index vectors, std::integer_sequence<int, kVectors...>) {
  static constexpr const TileKind<T>* table[] = {
      &TilesOf<T,
               kChannels,
               kVectors + 1,
               std::make_integer_sequence<int, max_rows(kChannels, kVectors + 1)>>::kind...};
  return *table[vectors - 1];
}

template <class T>
const TileKind<T>& tile_kind(Index channels, Index vectors) {
  switch (channels) {
    case 1: return pick_tile<T, 1>(vectors, std::make_integer_sequence<int, max_vectors(1)>());
    case 2: return pick_tile<T, 2>(vectors, std::make_integer_sequence<int, max_vectors(2)>());
    case 3: return pick_tile<T, 3>(vectors, std::make_integer_sequence<int, max_vectors(3)>());
    case 4: return pick_tile<T, 4>(vectors, std::make_integer_sequence<int, max_vectors(4)>());
    case 5: return pick_tile<T, 5>(vectors, std::make_integer_sequence<int, max_vectors(5)>());
    default: return pick_tile<T, 6>(vectors, std::make_integer_sequence<int, max_vectors(6)>());
  }
}

/// The columns of `rows` rows of one phase. Rows are shared out evenly among tiles: a row that were
/// left over would wait for each of its multiply-adds.
template <class T>
void run_columns(const TileJob<T>& t, Index channels, Index rows) {
  constexpr Index kLanes = lanes_of<T>();
  const Index width = t.phase.width;
  const Index vectors = (width + kLanes - 1) / kLanes;
  const Index most = max_vectors(static_cast<int>(channels));
  const Index tiles = (vectors + most - 1) / most;
  for (Index i = 0; i < tiles; ++i) {
    const Index v0 = i * vectors / tiles;
    const Index count = (i + 1) * vectors / tiles - v0;
    const TileKind<T>& kind = tile_kind<T>(channels, count);
    const Index groups = (rows + kind.most_rows - 1) / kind.most_rows;
    TileJob<T> part = t;
    for (Index g = 0; g < groups; ++g) {
      const Index row = g * rows / groups;
      part.source = t.source + row * t.source_shift;
      part.out = t.out + row * t.row_stride;
      const Index taken = (g + 1) * rows / groups - row;
      kind.of_rows[taken - 1](part, v0 * kLanes, width - v0 * kLanes);
    }
  }
}

/// out[i * phases + p] = buffer of phase p, the inverse of dealing.
template <class T>
void join_phases(const BandJob<T>& b, Index channel, T* HWY_RESTRICT out) {
  const Index pitch = b.phase[0].width;
  const T* HWY_RESTRICT first = b.row_buffer + channel * pitch;
  const Index step = kMostChannels * pitch;
  if (b.phases == 2) {
    const T* HWY_RESTRICT second = first + step;
    const Index pairs = b.phase[1].width;
    Index i = 0;
#if HWY_TARGET != HWY_SCALAR
    constexpr Index kLanes = lanes_of<T>();
    const hn::ScalableTag<T> d;
    for (; i + kLanes <= pairs; i += kLanes) {
      hn::StoreInterleaved2(hn::LoadU(d, first + i), hn::LoadU(d, second + i), d, out + 2 * i);
    }
#endif
    for (; i < pairs; ++i) {
      out[2 * i] = first[i];
      out[2 * i + 1] = second[i];
    }
    if (pairs < b.phase[0].width) {
      out[2 * pairs] = first[pairs];
    }
    return;
  }
  for (Index p = 0; p < b.phases; ++p) {
    for (Index i = 0; i < b.phase[p].width; ++i) {
      out[i * b.phases + p] = first[p * step + i];
    }
  }
}

/// How many rows of the band from `row` on see the same row taps as it does. Rows list either all
/// taps or, in an input gradient with a row stride, those of their own phase: two neighbours with
/// the same first tap and as many taps have the same taps.
template <class T>
Index like_rows(const BandJob<T>& b, Index row) {
  const Index taps = b.row_begin[row + 1] - b.row_begin[row];
  const RowTap* first = b.row_entries + b.row_begin[row];
  Index rows = 1;
  for (Index next = row + 1; next < b.rows; ++next, ++rows) {
    const RowTap* entry = b.row_entries + b.row_begin[next];
    if (b.row_begin[next + 1] - b.row_begin[next] != taps ||
        (taps > 0 && entry->tap != first->tap)) {
      break;
    }
  }
  return rows;
}

/// The taps of a row in the order in which they are added; returns the end of the list.
template <class T>
TapPlace* list_taps(const BandJob<T>& b,
                    const ColumnPhase<T>& phase,
                    const RowTap* entry,
                    const RowTap* last_entry,
                    TapPlace* place) {
  for (Index p = 0; p < b.planes; ++p) {
    for (const RowTap* e = entry; e < last_entry; ++e) {
      const Index source = p * b.plane_pitch + e->row * b.pitch;
      const Index weight = (b.weight_plane[p] * b.row_taps + e->tap) * phase.taps;
      for (Index k = 0; k < phase.taps; ++k) {
        *place++ = {source + phase.offset[k], weight + k};
      }
    }
  }
  return place;
}

template <class T>
void run_band(const BandJob<T>& b) {
  const Index tiles = (b.channels + kMostChannels - 1) / kMostChannels;
  const bool direct = b.phases == 1;
  for (Index row = 0; row < b.rows;) {
    // Phases are joined row by row, and rows of an input gradient alternate between row taps.
    const Index rows = direct ? like_rows(b, row) : 1;
    const RowTap* entry = b.row_entries + b.row_begin[row];
    const RowTap* last_entry = b.row_entries + b.row_begin[row + 1];
    TapPlace* listed = b.places;
    for (Index p = 0; p < b.phases; ++p) {
      listed = list_taps(b, b.phase[p], entry, last_entry, listed);
    }
    for (Index i = 0; i < tiles; ++i) {
      const Index c0 = i * b.channels / tiles;
      const Index channels = (i + 1) * b.channels / tiles - c0;
      T* out = b.out + c0 * b.channel_stride + row * b.row_stride;
      const TapPlace* place = b.places;
      for (Index p = 0; p < b.phases; ++p) {
        const ColumnPhase<T>& phase = b.phase[p];
        const TapPlace* end = place + b.planes * (last_entry - entry) * phase.taps;
        const TileJob<T> tile{b,
                              phase,
                              phase.weights + c0 * b.weight_planes * b.row_taps * phase.taps,
                              entry,
                              last_entry,
                              place,
                              end,
                              b.strip,
                              b.source_shift * b.pitch,
                              b.bias != nullptr ? b.bias + c0 : nullptr,
                              direct ? out : b.row_buffer + p * kMostChannels * b.phase[0].width,
                              direct ? b.channel_stride : b.phase[0].width,
                              b.row_stride};
        run_columns(tile, channels, rows);
        place = end;
      }
      for (Index c = 0; c < channels && !direct; ++c) {
        join_phases(b, c, out + c * b.channel_stride);
      }
    }
    row += rows;
  }
}

// --- sums of products along rows ---

template <class T, int kChannels, int kTaps>
void dot_tile(const DotJob<T>& j, const T* strip, Index tap, Index channel, T* sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr Index kLanes = lanes_of<T>();
  V acc[kChannels][kTaps];
  const T* x[kTaps];
  FENESTRA_UNROLL
  for (int k = 0; k < kTaps; ++k) {
    x[k] = strip + j.offset[tap + k];
    FENESTRA_UNROLL
    for (int c = 0; c < kChannels; ++c) {
      acc[c][k] = hn::LoadU(d, sums + ((channel + c) * j.taps + tap + k) * kLanes);
    }
  }
  const Index channel_pitch = j.rows * j.y_pitch;
  const T* HWY_RESTRICT y = j.y + channel * channel_pitch;
  for (Index row = 0; row < j.rows; ++row, y += j.y_pitch) {
    const Index shift = row * j.row_step;
    for (Index i = 0; i < j.width; i += kLanes) {
      V left[kChannels];
      FENESTRA_UNROLL
      for (int c = 0; c < kChannels; ++c) {
        left[c] = hn::LoadU(d, y + c * channel_pitch + i);
      }
      FENESTRA_UNROLL
      for (int k = 0; k < kTaps; ++k) {
        V right = hn::LoadU(d, x[k] + shift + i);
        vectors::in_register(right);
        FENESTRA_UNROLL
        for (int c = 0; c < kChannels; ++c) {
          acc[c][k] = hn::MulAdd(left[c], right, acc[c][k]);
        }
      }
    }
  }
  FENESTRA_UNROLL
  for (int k = 0; k < kTaps; ++k) {
    FENESTRA_UNROLL
    for (int c = 0; c < kChannels; ++c) {
      hn::StoreU(acc[c][k], d, sums + ((channel + c) * j.taps + tap + k) * kLanes);
    }
  }
}

template <class T>
using DotFunction = void (*)(const DotJob<T>&, const T* strip, Index tap, Index channel, T* sums);

template <class T, int kChannels, int... kTaps>
DotFunction<T> pick_dot(Index taps, std::integer_sequence<int, kTaps...>) {
  static constexpr DotFunction<T> table[] = {&dot_tile<T, kChannels, kTaps + 1>...};
  return table[taps - 1];
}

// A tile of one channel takes up to 9 taps, a whole 3x3 window; the registers of addresses end
// there.
constexpr int max_taps(int channels) { return std::min(9, kAccumulators / channels); }

template <class T>
DotFunction<T> dot_function(Index channels, Index taps) {
  switch (channels) {
    case 1: return pick_dot<T, 1>(taps, std::make_integer_sequence<int, max_taps(1)>());
    case 2: return pick_dot<T, 2>(taps, std::make_integer_sequence<int, max_taps(2)>());
    case 3: return pick_dot<T, 3>(taps, std::make_integer_sequence<int, max_taps(3)>());
    default: return pick_dot<T, 4>(taps, std::make_integer_sequence<int, max_taps(4)>());
  }
}

template <class T>
void add_dots(const DotJob<T>& j) {
  constexpr Index kLanes = lanes_of<T>();
  const Index most = max_taps(static_cast<int>(j.channels));
  const Index tiles = (j.taps + most - 1) / most;
  for (Index p = 0; p < j.planes; ++p) {
    T* sums = j.sums + j.weight_plane[p] * j.channels * j.taps * kLanes;
    for (Index i = 0; i < tiles; ++i) {
      const Index t0 = i * j.taps / tiles;
      const Index t1 = (i + 1) * j.taps / tiles;
      dot_function<T>(j.channels, t1 - t0)(j, j.strip + p * j.plane_pitch, t0, 0, sums);
    }
  }
}

template <class T>
void sum_lanes(const T* sums, Index count, T* out) {
  constexpr Index kLanes = lanes_of<T>();
  for (Index i = 0; i < count; ++i, sums += kLanes) {
    T total = sums[0];
    for (Index l = 1; l < kLanes; ++l) {
      total += sums[l];
    }
    out[i] = total;
  }
}

template <class T>
constexpr DirectLoops<T> kLoops{
    lanes_of<T>(), kMostChannels, &fill_strip<T>, &run_band<T>, &add_dots<T>, &sum_lanes<T>};

const DirectLoops<float>* loops_f32() { return &kLoops<float>; }
const DirectLoops<double>* loops_f64() { return &kLoops<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {

HWY_EXPORT(loops_f32);
HWY_EXPORT(loops_f64);

template <>
const DirectLoops<float>& direct_loops() {
  return *HWY_DYNAMIC_DISPATCH(loops_f32)();
}

template <>
const DirectLoops<double>& direct_loops() {
  return *HWY_DYNAMIC_DISPATCH(loops_f64)();
}

}  // namespace fenestra::detail
#endif  // HWY_ONCE
