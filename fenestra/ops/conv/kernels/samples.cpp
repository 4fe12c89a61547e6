// Forward and input gradient with vectors along the batch; see samples.hpp.
//
// A block of samples, as many as a vector has lanes, is turned into cells of vectors, band by band.
// A row of the target sees only real rows of the source, and a tile of neighbouring cells the
// columns of taps that find a cell for one of them; between those, and around them, are zeros.
// Every cell is one chain of multiply-adds in the order of planes and taps, as in direct.cpp and
// dense.cpp. What those add for cells outside the source are zeros, as weights are finite: they
// change nothing but the sign of a zero, and all three add a zero, or a bias, at the end.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/direct_axes.hpp>
#include <fenestra/ops/conv/kernels/samples.hpp>
#include <fenestra/ops/conv/kernels/samples_tiles.hpp>
#include <fenestra/spec/window_walk.hpp>

#include <algorithm>

namespace fenestra::detail {

namespace {

// A band's source and results, in a second-level cache.
constexpr Index kBandBytes = 384 * 1024;
// Of a target cell: fewer take less time than turning the cell and what it sees.
constexpr Index kFewProducts = 4;
// Cells from which on a row that fills its vectors is hard to beat.
constexpr Index kLongRow = 24;

template <class T>
class Samples {
 public:
  Samples(const ConvProblem& problem, const ConvArguments<T>& arguments, BiasPlace bias)
      : g_(problem.geometry),
        arguments_(arguments),
        loops_(samples_loops<T>()),
        axes_(g_.windows),
        transposed_(problem.direction == ConvDirection::input_grad),
        bias_(bias),
        rows_(axes_.row, transposed_),
        columns_(axes_.column, transposed_),
        source_channels_(transposed_ ? g_.group_out() : g_.group_in()),
        target_channels_(transposed_ ? g_.group_in() : g_.group_out()),
        taps_(axes_.row.kernel * axes_.column.kernel),
        tiles_(ceil_of(target_channels_, loops_.tile_channels)) {}

  /// Whether a band of as many rows as a window spans fits: no source row is turned more than
  /// twice.
  bool fits() const {
    const Index rows = std::min(rows_.reach + 1, rows_.target);
    const Index seen = std::min((rows - 1) * rows_.step + rows_.reach + 1, rows_.source);
    return band_bytes(rows, seen) <= kBandBytes;
  }

  /// Whether it is faster than vectors along rows or channels, if there are enough samples.
  bool pays() const {
    const Index strides = transposed_ ? axes_.row.stride * axes_.column.stride : 1;
    const Index products = source_channels_ * taps_ / std::max<Index>(strides, 1);
    const Index width = columns_.target;
    if (products < kFewProducts) {
      return false;
    }
    // Rows fill vectors as they are, and turning them is paid by few products.
    const bool full_rows = axes_.column.stride == 1 && width >= kLongRow &&
                           5 * width >= 4 * round_up(width, loops_.lanes);
    return !full_rows || products >= (width < 2 * kLongRow ? 64 : 128);
  }

  Index run() {
    const Index blocks = g_.batch / loops_.lanes;
    if (blocks == 0 || !loops_.are_finite(arguments_.rhs, weights())) {
      return 0;
    }
    kernels::ScratchFrame frame;
    row_begin_ = frame.take<Index>(rows_.target + 1);
    row_entries_ = frame.take<RowTap>(rows_.target * axes_.row.kernel);
    weights_ = frame.take<T>(weights());
    list_rows();
    choose_band(blocks * g_.groups);
    pack_weights();
    const Index bands = ceil_of(rows_.target, band_rows_);
    const auto body = [&](Index begin, Index end) {
      for (Index job = begin; job < end; ++job) {
        const Index part = job / bands;
        run_band(part / g_.groups, part % g_.groups, job % bands * band_rows_);
      }
    };
    if (g_.multiply_adds() < kSerialWork) {
      body(0, blocks * g_.groups * bands);
    } else {
      fenestra::parallel_for(blocks * g_.groups * bands, 1, body);
    }
    return blocks * loops_.lanes;
  }

 private:
  Index weights() const { return g_.groups * target_channels_ * source_channels_ * taps_; }
  /// Of a strip's row.
  Index pitch() const { return columns_.seen(columns_.places()) * loops_.lanes; }
  Index band_bytes(Index rows, Index seen_rows) const {
    return (source_channels_ * seen_rows * pitch() + band_results(rows)) *
           static_cast<Index>(sizeof(T));
  }
  Index band_results(Index rows) const {
    return target_channels_ * rows * columns_.target * loops_.lanes;
  }

  void list_rows() {
    Index entries = 0;
    for (Index row = 0; row < rows_.target; ++row) {
      row_begin_[row] = entries;
      for_each_source(axes_.row, transposed_, row, [&](Index tap, Index cell) {
        row_entries_[entries++] = {cell, tap};
      });
    }
    row_begin_[rows_.target] = entries;
  }

  /// Source rows that a band sees, from the first to the last.
  struct Rows {
    Index first = 0;
    Index count = 0;
  };
  Rows source_rows(Index row0, Index row1) const {
    const RowTap* entry = row_entries_ + row_begin_[row0];
    const RowTap* last = row_entries_ + row_begin_[row1];
    if (entry == last) {
      return {};
    }
    const auto [low, high] = std::minmax_element(
        entry, last, [](const RowTap& a, const RowTap& b) { return a.row < b.row; });
    return {low->row, high->row - low->row + 1};
  }

  /// As many rows as fit, and bands enough for threads to share them evenly.
  void choose_band(Index parts) {
    const Index wanted = threads() == 1 ? 1 : ceil_of(2 * threads(), parts);
    band_rows_ = ceil_of(rows_.target, std::min(wanted, rows_.target));
    const auto most_rows = [&] {
      Index most = 0;
      for (Index row = 0; row < rows_.target; row += band_rows_) {
        most = std::max(most, source_rows(row, std::min(row + band_rows_, rows_.target)).count);
      }
      return most;
    };
    strip_rows_ = most_rows();
    while (band_rows_ > 1 && (source_channels_ * strip_rows_ * pitch() + band_results(band_rows_)) *
                                     static_cast<Index>(sizeof(T)) >
                                 kBandBytes) {
      band_rows_ = ceil_of(band_rows_, 2);
      strip_rows_ = most_rows();
    }
  }

  /// [group][channel tile][source channel][tap][channel in the tile]
  void pack_weights() const {
    const Index target_stride = transposed_ ? taps_ : g_.group_in() * taps_;
    const Index source_stride = transposed_ ? g_.group_in() * taps_ : taps_;
    T* out = weights_;
    for (Index group = 0; group < g_.groups; ++group) {
      const T* w = arguments_.rhs + group * g_.group_out() * g_.group_in() * taps_;
      for (Index tile = 0; tile < tiles_; ++tile) {
        const Index c0 = tile * target_channels_ / tiles_;
        const Index c1 = (tile + 1) * target_channels_ / tiles_;
        for (Index s = 0; s < source_channels_; ++s) {
          for (Index t = 0; t < taps_; ++t) {
            for (Index c = c0; c < c1; ++c) {
              *out++ = w[s * source_stride + c * target_stride + t];
            }
          }
        }
      }
    }
  }

  void run_band(Index block, Index group, Index row0) const {
    const Index row1 = std::min(row0 + band_rows_, rows_.target);
    const Rows seen = source_rows(row0, row1);
    kernels::ScratchFrame frame;
    T* strip = frame.take<T>(source_channels_ * strip_rows_ * pitch());
    T* sums = frame.take<T>(band_results(band_rows_));
    auto* places = frame.take<TapPlace>(taps_);
    auto* columns = frame.take<Index>(axes_.column.kernel);
    fill_strip(block, group, seen, strip);
    for (Index phase = 0; phase < columns_.phases; ++phase) {
      const Index count = columns_.places(phase, 0, columns_.places());
      const Index most = loops_.tile_places(ceil_of(target_channels_, tiles_));
      const Index parts = ceil_of(count, most);
      for (Index i = 0; i < parts; ++i) {
        const Index begin = i * count / parts;
        const Index end = (i + 1) * count / parts;
        const Index column_taps = list_columns(phase, begin, end, columns);
        for (Index row = row0; row < row1; ++row) {
          TapPlace* last = places;
          for (Index e = row_begin_[row]; e < row_begin_[row + 1]; ++e) {
            for (Index k = 0; k < column_taps; ++k) {
              const Index column = columns_.shift(phase, columns[k]) + begin * columns_.step;
              *last++ = {(row_entries_[e].row - seen.first) * pitch() + column * loops_.lanes,
                         row_entries_[e].tap * axes_.column.kernel + columns[k]};
            }
          }
          SamplesTile<T> tile{.source = strip,
                              .plane_pitch = seen.count * pitch(),
                              .planes = source_channels_,
                              .step = columns_.step * loops_.lanes,
                              .place = places,
                              .last_place = last,
                              .taps = taps_,
                              .channel_stride = (row1 - row0) * columns_.target * loops_.lanes,
                              .place_stride = columns_.phases * loops_.lanes};
          T* out = sums + ((row - row0) * columns_.target + phase + begin * columns_.phases) *
                              loops_.lanes;
          for (Index t = 0; t < tiles_; ++t) {
            const Index c0 = t * target_channels_ / tiles_;
            const Index channels = (t + 1) * target_channels_ / tiles_ - c0;
            const T* bias = arguments_.bias != nullptr
                                ? arguments_.bias + group * target_channels_ + c0
                                : nullptr;
            (bias_ == BiasPlace::before_products ? tile.start : tile.bias) = bias;
            tile.weights = weights_ + (group * target_channels_ + c0) * source_channels_ * taps_;
            tile.out = out + c0 * tile.channel_stride;
            loops_.tile(channels, end - begin)(tile);
          }
        }
      }
    }
    store(block, group, row0, row1, sums);
  }

  /// Taps through which one of the places [begin, end) sees a cell of the source.
  Index list_columns(Index phase, Index begin, Index end, Index* taps) const {
    Index count = 0;
    for (Index t = 0; t < axes_.column.kernel; ++t) {
      const Index shift = columns_.shift(phase, t);
      const Index first = columns_.first + shift + begin * columns_.step;
      const Index last = first + (end - 1 - begin) * columns_.step;
      if (shift >= 0 && last >= 0 && first < columns_.source) {
        taps[count++] = t;
      }
    }
    return count;
  }

  void fill_strip(Index block, Index group, const Rows& seen, T* strip) const {
    const Index plane = rows_.source * columns_.source;
    const Index columns = columns_.seen(columns_.places());
    const Index begin = std::clamp<Index>(-columns_.first, 0, columns);
    const Index end = std::clamp<Index>(columns_.source - columns_.first, begin, columns);
    SamplesStrip<T> job{.sample_stride = g_.groups * source_channels_ * plane,
                        .row_stride = columns_.source,
                        .rows = seen.count,
                        .columns = columns,
                        .begin = begin,
                        .end = end};
    const T* source = arguments_.lhs + block * loops_.lanes * job.sample_stride +
                      group * source_channels_ * plane + seen.first * columns_.source +
                      std::max<Index>(columns_.first, 0);
    for (Index c = 0; c < source_channels_; ++c) {
      job.source = source + c * plane;
      job.dst = strip + c * seen.count * pitch();
      loops_.fill_strip(job);
    }
  }

  void store(Index block, Index group, Index row0, Index row1, const T* sums) const {
    const Index plane = rows_.target * columns_.target;
    const Index sample = g_.groups * target_channels_ * plane;
    const Index cells = (row1 - row0) * columns_.target;
    for (Index c = 0; c < target_channels_; ++c) {
      T* out = arguments_.out + block * loops_.lanes * sample +
               (group * target_channels_ + c) * plane + row0 * columns_.target;
      loops_.store_run(sums + c * cells * loops_.lanes, cells, out, sample);
      for (Index i = 0; i < loops_.lanes && arguments_.finish != nullptr; ++i) {
        arguments_.finish->run(out + i * sample, cells);
      }
    }
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const SamplesLoops<T>& loops_;
  Axes axes_;
  bool transposed_;
  BiasPlace bias_;
  TargetAxis rows_;
  TargetAxis columns_;
  Index source_channels_;  // of a group
  Index target_channels_;
  Index taps_;
  Index tiles_;
  Index band_rows_ = 1;
  Index strip_rows_ = 0;
  Index* row_begin_ = nullptr;
  RowTap* row_entries_ = nullptr;
  T* weights_ = nullptr;
};

}  // namespace

template <class T>
Index samples_at_once(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (problem.direction == ConvDirection::weight_grad || g.layout != Layout::channels_first ||
      g.rank() == 0 || g.rank() > 2 || sample_work(g) == 0) {
    return 0;
  }
  const ConvArguments<T> none;
  const Samples<T> samples(problem, none, BiasPlace::before_products);
  return samples.pays() && samples.fits() ? samples_loops<T>().lanes : 0;
}

template <class T>
Index run_samples(const ConvProblem& problem, const ConvArguments<T>& arguments, BiasPlace bias) {
  const Index lanes = samples_at_once<T>(problem);
  return lanes == 0 || problem.geometry.batch < lanes ? 0
                                                      : Samples<T>(problem, arguments, bias).run();
}

template <class T>
RestOfSamples<T>::RestOfSamples(const ConvProblem& whole, const ConvArguments<T>& all, Index done)
    : problem(whole), arguments(all) {
  ConvGeometry& g = problem.geometry;
  const bool transposed = problem.direction == ConvDirection::input_grad;
  const Index x = g.in_channels * g.windows.in_cells();
  const Index y = g.out_channels * g.windows.out_cells();
  arguments.lhs += done * (transposed ? y : x);
  arguments.out += done * (transposed ? x : y);
  g.batch -= done;
}

#define FENESTRA_INSTANTIATE_CONV_SAMPLES(T)                                          \
  template Index samples_at_once<T>(const ConvProblem&);                              \
  template Index run_samples(const ConvProblem&, const ConvArguments<T>&, BiasPlace); \
  template struct RestOfSamples<T>

FENESTRA_INSTANTIATE_CONV_SAMPLES(float);
FENESTRA_INSTANTIATE_CONV_SAMPLES(double);
#undef FENESTRA_INSTANTIATE_CONV_SAMPLES

}  // namespace fenestra::detail
