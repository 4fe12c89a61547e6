// The vector loops of convolutions along the batch: a lane is a sample. Internal: not installed.
// They know cells, taps and channels; samples.cpp says which ones.
#pragma once

#include <fenestra/ops/conv/kernels/direct_tiles.hpp>

namespace fenestra::detail {

/// Cells of a plane's rows, a vector of samples each: `rows` rows of `columns` cells, of which
/// [begin, end) are copied from `source` (the first of them in the first row) and the others zeros.
template <class T>
struct SamplesStrip {
  const T* source = nullptr;
  Index sample_stride = 0;
  Index row_stride = 0;
  Index rows = 0;
  Index columns = 0;
  Index begin = 0;
  Index end = 0;
  T* dst = nullptr;
};

/// Neighbouring places of a row times a few channels: sums over planes and listed taps.
template <class T>
struct SamplesTile {
  const T* source = nullptr;  ///< from where the first place counts the taps of the first plane
  Index plane_pitch = 0;
  Index planes = 0;
  Index step = 0;  ///< elements from place to place
  const TapPlace* place = nullptr;
  const TapPlace* last_place = nullptr;
  const T* weights = nullptr;  ///< [plane][tap][channel of the tile]
  Index taps = 0;              ///< of a plane in the weights
  const T* start = nullptr;    ///< of each channel's sums, or null: zero
  const T* bias = nullptr;     ///< added behind all products, or null
  T* out = nullptr;
  Index channel_stride = 0;
  Index place_stride = 0;
};

template <class T>
using SamplesTileFunction = void (*)(const SamplesTile<T>&);

/// The loops for one instruction set.
template <class T>
struct SamplesLoops {
  Index lanes = 0;
  Index tile_channels = 0;
  /// Places of a tile of that many channels at most.
  Index (*tile_places)(Index channels) = nullptr;
  SamplesTileFunction<T> (*tile)(Index channels, Index places) = nullptr;
  void (*fill_strip)(const SamplesStrip<T>&) = nullptr;
  /// out[lane * sample_stride + cell] = sums[cell * lanes + lane].
  void (*store_run)(const T* sums, Index cells, T* out, Index sample_stride) = nullptr;
  bool (*are_finite)(const T* numbers, Index count) = nullptr;
};

/// Those of the best instruction set of this machine.
template <class T>
const SamplesLoops<T>& samples_loops();

}  // namespace fenestra::detail
