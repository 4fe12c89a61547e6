// Forward and input gradient of the direct convolution, and its conditions: bands of target rows,
// strips of source rows, packed weights; see direct.hpp.
//
// All but the last two axes are unrolled into planes: a plane is one source channel seen through
// one outer tap. Forward and input gradient are the same loops: a target row has a list of (source
// row, row of taps), and the target cells of a row fall into phases that see the same column taps,
// one phase forward and `stride` phases in the input gradient. Every target cell is one chain of
// multiply-adds in the order of planes and taps, whatever the bands and threads.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/dense_tiles.hpp>
#include <fenestra/ops/conv/kernels/direct.hpp>
#include <fenestra/ops/conv/kernels/direct_axes.hpp>
#include <fenestra/ops/conv/kernels/direct_last.hpp>
#include <fenestra/ops/conv/kernels/direct_tiles.hpp>
#include <fenestra/ops/conv/kernels/direct_weights.hpp>
#include <fenestra/ops/conv/kernels/gemm_blocked.hpp>
#include <fenestra/ops/conv/kernels/samples.hpp>
#include <fenestra/spec/window_walk.hpp>

#include <algorithm>
#include <type_traits>

namespace fenestra::detail {

namespace {

// Multiply-adds of a sample below which the cost of a call decides.
constexpr Index kTinyWork = 20'000;
// Rows below which a weight gradient as a matrix product leaves its tiles half empty.
constexpr Index kFewTargets = 12;

/// A tensor of the problem, seen as planes.
struct Side {
  Index channels = 0;  // of a group
  Index outer = 1;
  Index rows = 1;
  Index width = 1;
  Index plane() const { return rows * width; }
  Index channel_stride() const { return outer * rows * width; }
};

template <class T>
class Correlation {
 public:
  Correlation(const ConvProblem& problem, const ConvArguments<T>& arguments)
      : g_(problem.geometry),
        arguments_(arguments),
        loops_(direct_loops<T>()),
        axes_(g_.windows),
        transposed_(problem.direction == ConvDirection::input_grad),
        columns_(axes_.column, transposed_),
        outer_taps_(axes_.outer_product(&WindowAxis::kernel)) {
    const Side x{
        g_.group_in(), axes_.outer_product(&WindowAxis::in), axes_.row.in, axes_.column.in};
    const Side y{
        g_.group_out(), axes_.outer_product(&WindowAxis::out), axes_.row.out, axes_.column.out};
    source_ = transposed_ ? y : x;
    target_ = transposed_ ? x : y;
    place_columns();
    choose_band();
    take_tables();
    fill_tables();
    if (arguments.packed == nullptr) {
      pack_weights();
    }
  }

  static Index packed_elements(const ConvGeometry& g) {
    return g.out_channels * g.group_in() * g.windows.taps();
  }
  /// Writes the weights `w` as a run reads them.
  static void pack(const ConvProblem& problem, const T* w, T* packed) {
    const ConvArguments<T> arguments{.rhs = w, .packed = packed};
    Correlation(problem, arguments).pack_weights();
  }

  void run() {
    const Index bands = ceil_of(target_.rows, band_rows_);
    const Index jobs = g_.batch * g_.groups * target_.outer * bands;
    const auto body = [&](Index begin, Index end) {
      for (Index job = begin; job < end; ++job) {
        Index rest = job;
        const Index band = rest % bands;
        rest /= bands;
        const Index outer = rest % target_.outer;
        rest /= target_.outer;
        run_job(rest / g_.groups, rest % g_.groups, outer, band * band_rows_);
      }
    };
    if (g_.multiply_adds() < kSerialWork) {
      body(0, jobs);
    } else {
      fenestra::parallel_for(jobs, 1, body);
    }
  }

 private:
  /// Where in a strip row the taps of the first cell are, and how long the row is.
  void place_columns() {
    const WindowAxis& axis = axes_.column;
    const Index lanes = loops_.lanes;
    if (!transposed_) {
      strip_stride_ = axis.stride;
      phase_pitch_ = round_up(round_up(target_.width, lanes) + axis.last_step(), lanes);
      return;
    }
    phase_pitch_ = round_up(round_up(columns_.places(), lanes) + columns_.reach, lanes);
  }

  Index strip_rows(Index band_rows) const {
    const WindowAxis& axis = axes_.row;
    return transposed_ ? axis.windows_over(band_rows) : axis.spanned(band_rows);
  }
  Index planes() const { return source_.channels * outer_taps_; }
  Index pitch() const { return strip_stride_ * phase_pitch_; }
  /// Rows above and below the source are zeros in the strip, so that all target rows see all row
  /// taps and share tiles; with a stride between target rows they would not, whatever is done.
  bool uniform_rows() const { return !transposed_ || axes_.row.stride == 1; }

  void choose_band() {
    const Index row_bytes = std::max<Index>(planes(), 1) * pitch() * static_cast<Index>(sizeof(T));
    band_rows_ = target_.rows;
    while (band_rows_ > 1 && strip_rows(band_rows_) * row_bytes > kStripBytes) {
      band_rows_ = ceil_of(band_rows_, 2);
    }
    // Rows that two bands need are copied twice: not more often than that.
    const Index least =
        std::min(target_.rows, transposed_ ? axes_.row.span() : axes_.row.windows_over(1));
    band_rows_ = std::max(band_rows_, std::min<Index>(least, 8));
  }

  void take_tables() {
    row_begin_ = frame_.take<Index>(target_.rows + 1);
    row_entries_ = frame_.take<RowTap>(target_.rows * axes_.row.kernel);
    offsets_ = frame_.take<Index>(axes_.column.kernel);
    taps_ = frame_.take<Index>(axes_.column.kernel);
    phase_ = frame_.take<ColumnPhase<T>>(columns_.phases);
    weights_ =
        arguments_.packed != nullptr ? arguments_.packed : frame_.take<T>(packed_elements(g_));
  }

  void fill_tables() {
    const TargetAxis rows(axes_.row, transposed_);
    Index entries = 0;
    for (Index row = 0; row < target_.rows; ++row) {
      row_begin_[row] = entries;
      if (uniform_rows()) {
        const Index first = rows.first_of(row);
        for (Index tap = 0; tap < axes_.row.kernel; ++tap) {
          row_entries_[entries++] = {first + rows.shift(0, tap), tap};
        }
        continue;
      }
      for_each_source(axes_.row, transposed_, row, [&](Index tap, Index cell) {
        row_entries_[entries++] = {cell, tap};
      });
    }
    row_begin_[target_.rows] = entries;
    const WindowAxis& axis = axes_.column;
    if (!transposed_) {
      for (Index t = 0; t < axis.kernel; ++t) {
        taps_[t] = t;
        offsets_[t] = axis.tap_phase(t) * phase_pitch_ + axis.tap_step(t);
      }
      phase_[0] = {target_.width, axis.kernel, offsets_, weights_};
      return;
    }
    Index used = 0;
    for (Index p = 0; p < columns_.phases; ++p) {
      const Index begin = used;
      for (Index t = 0; t < axis.kernel; ++t) {
        const Index shift = columns_.shift(p, t);
        if (shift >= 0) {
          taps_[used] = t;
          offsets_[used++] = shift;
        }
      }
      phase_[p] = {columns_.places(p, 0, columns_.places()),
                   used - begin,
                   offsets_ + begin,
                   weights_ + begin * weights_per_tap()};
    }
  }

  /// Weights of all groups that share a column tap.
  Index weights_per_tap() const { return g_.groups * weights_per_group_tap(); }
  Index weights_per_group_tap() const { return target_.channels * planes() * axes_.row.kernel; }

  void pack_weights() {
    const Index taps = g_.windows.taps();
    const Index target_stride = transposed_ ? taps : g_.group_in() * taps;
    const Index source_stride = transposed_ ? g_.group_in() * taps : taps;
    const Index row_taps = outer_taps_ * axes_.row.kernel;
    const Index tiles = ceil_of(target_.channels, loops_.tile_channels);
    for (Index p = 0; p < columns_.phases; ++p) {
      T* out = const_cast<T*>(phase_[p].weights);
      const Index* tap = taps_ + (phase_[p].offset - offsets_);
      for (Index group = 0; group < g_.groups; ++group) {
        const T* w = arguments_.rhs + group * g_.group_out() * g_.group_in() * taps;
        for (Index tile = 0; tile < tiles; ++tile) {
          const Index c0 = tile * target_.channels / tiles;
          const Index c1 = (tile + 1) * target_.channels / tiles;
          for (Index s = 0; s < source_.channels; ++s) {
            for (Index r = 0; r < row_taps; ++r) {
              const T* row = w + s * source_stride + r * axes_.column.kernel;
              for (Index k = 0; k < phase_[p].taps; ++k) {
                for (Index c = c0; c < c1; ++c) {
                  *out++ = row[c * target_stride + tap[k]];
                }
              }
            }
          }
        }
      }
    }
  }

  void run_job(Index sample, Index group, Index outer, Index row0) {
    const Index rows = std::min(band_rows_, target_.rows - row0);
    PlaneList<T> list;
    kernels::ScratchFrame frame;
    list.take(frame, planes());
    T* strip = frame.take<T>(planes() * strip_rows(band_rows_) * pitch());
    T* row_buffer = frame.take<T>(
        columns_.phases > 1 ? columns_.phases * loops_.tile_channels * phase_[0].width : 0);
    auto* places = frame.take<TapPlace>(planes() * axes_.row.kernel * axes_.column.kernel);
    auto* phase = frame.take<ColumnPhase<T>>(columns_.phases);
    const Index source_channel = (sample * g_.groups + group) * source_.channels;
    const Index target_channel = (sample * g_.groups + group) * target_.channels;
    list.fill(axes_,
              transposed_,
              outer,
              arguments_.lhs + source_channel * source_.channel_stride(),
              source_.channels,
              source_.channel_stride(),
              source_.plane());

    const RowTap* entry = row_entries_ + row_begin_[row0];
    const RowTap* last = row_entries_ + row_begin_[row0 + rows];
    Index first_row = entry < last ? entry->row : 0;
    Index end_row = first_row;
    for (const RowTap* e = entry; e < last; ++e) {
      first_row = std::min(first_row, e->row);
      end_row = std::max(end_row, e->row + 1);
    }
    const Index copied = end_row - first_row;
    loops_.fill_strip({.plane = list.data,
                       .planes = list.count,
                       .source_rows = source_.rows,
                       .source_width = source_.width,
                       .first_row = first_row,
                       .rows = copied,
                       .first_column = columns_.first,
                       .stride = strip_stride_,
                       .phase_pitch = phase_pitch_,
                       .dst = strip});
    for (Index p = 0; p < columns_.phases; ++p) {
      phase[p] = phase_[p];
      phase[p].weights += group * weights_per_group_tap() * phase_[p].taps;
    }
    loops_.run_band(
        {.strip = strip - first_row * pitch(),
         .plane_pitch = copied * pitch(),
         .pitch = pitch(),
         .planes = list.count,
         .weight_plane = list.weight_plane,
         .weight_planes = planes(),
         .row_taps = axes_.row.kernel,
         .row_begin = row_begin_ + row0,
         .row_entries = row_entries_,
         .source_shift = transposed_ ? 1 : axes_.row.stride,
         .phase = phase,
         .phases = columns_.phases,
         .channels = target_.channels,
         .bias = arguments_.bias != nullptr ? arguments_.bias + group * target_.channels : nullptr,
         .out = arguments_.out + target_channel * target_.channel_stride() +
                outer * target_.plane() + row0 * target_.width,
         .rows = rows,
         .width = target_.width,
         .channel_stride = target_.channel_stride(),
         .row_stride = target_.width,
         .places = places,
         .row_buffer = row_buffer});
    if (arguments_.finish != nullptr) {
      T* out = arguments_.out + target_channel * target_.channel_stride() +
               outer * target_.plane() + row0 * target_.width;
      for (Index c = 0; c < target_.channels; ++c) {
        arguments_.finish->run(out + c * target_.channel_stride(), rows * target_.width);
      }
    }
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const DirectLoops<T>& loops_;
  kernels::ScratchFrame frame_;
  Axes axes_;
  bool transposed_;
  TargetAxis columns_;
  Index outer_taps_;
  Side source_;
  Side target_;
  Index strip_stride_ = 1;
  Index phase_pitch_ = 0;
  Index band_rows_ = 1;
  Index* row_begin_ = nullptr;
  RowTap* row_entries_ = nullptr;
  Index* offsets_ = nullptr;
  Index* taps_ = nullptr;
  ColumnPhase<T>* phase_ = nullptr;
  const T* weights_ = nullptr;
};

/// How many windows see a cell of x, on average and rounded down, padding counted with the cells.
/// 0 without samples, where the products may not fit.
Index reads_per_cell(const ConvGeometry& g) {
  return g.batch == 0
             ? 0
             : g.windows.taps() * g.windows.out_cells() / std::max<Index>(g.windows.in_cells(), 1);
}

}  // namespace

const char* direct_lacks(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (g.in_channels == 0 || g.out_channels == 0) {
    return "no channels";
  }
  return nullptr;
}

// Where conv_*_gemm is faster: one thread, microseconds of this kernel and of gemm in f32, on
// AVX-512 where nothing else is said. Asks about one sample only, see sample_work.
template <class T>
const char* refuse_conv_direct(const ConvProblem& problem) {
  if (const char* reason = direct_lacks(problem)) {
    return reason;
  }
  const ConvGeometry& g = problem.geometry;
  const Axes axes(g.windows);
  const bool transposed = problem.direction == ConvDirection::input_grad;
  const bool sums_cells = problem.direction == ConvDirection::weight_grad;
  const Index channels = transposed ? g.group_out() : g.group_in();
  const Index planes = channels * axes.outer_product(&WindowAxis::kernel);
  const Index widest_group = std::max(g.group_in(), g.group_out());
  const Index width = transposed ? axes.column.in : axes.column.out;
  const bool depthwise =
      g.groups > 1 && std::min(g.group_in(), g.group_out()) == 1 && widest_group <= kTileChannels;
  const bool few_outer = transposed || axes.outer_product(&WindowAxis::out) < 3;
  if (!sums_cells && g.layout == Layout::channels_first && (!depthwise || !few_outer) &&
      reads_per_cell(g) < 2 && width < 16 * (transposed ? axes.column.stride : 1)) {
    // Of 6264 directions of random problems 164 are such; gemm is faster in 120, slower in 26.
    // On rows wider than that it mostly loses; depthwise input gradients and channels last are
    // even.
    return "a matrix product: windows hardly share the cells of a strip";
  }
  if (depthwise) {
    return nullptr;  // depthwise 96 @56: F 150, gemm 1400; channels last F 520, gemm 11000
  }
  if (!sums_cells && g.group_in() * g.group_out() <= 16 && reads_per_cell(g) >= 5) {
    // With so few channels a product has less to multiply than to gather, even on short rows. Of
    // 86 random problems that were refused for their rows or layout, 54 are faster here, 20 slower.
    return nullptr;
  }
  // Too few targets to fill vectors. One sample of 3x3 3 -> 16 @128: 306, gemm 483; of 5x5 8 -> 16
  // @32: 66, gemm 218; of 3x3 3 -> 32 @128: 740, gemm 590.
  if (g.layout == Layout::channels_last && transposed && axes.column.stride == 1 && width >= 16 &&
      axes.row.kernel * axes.column.kernel >= 9 && channels <= 16 && g.group_in() >= 3 &&
      g.group_in() <= 8) {
    return nullptr;
  }
  const Index targets = transposed ? g.group_in() : g.group_out();
  const DenseLoops<T>& dense = dense_loops<T>();
  if (g.layout == Layout::channels_last && !sums_cells && dense.cells[1] >= 14 &&
      axes.column.stride == 1 && axes.row.kernel * axes.column.kernel >= 9 && channels <= 32 &&
      targets > dense.lanes / 2 &&
      100 * targets * round_up(width, dense.lanes) < 62 * round_up(targets, dense.lanes) * width) {
    // Rows fill vectors, targets do not: 17 @64: 255, dense 363; 17 @24: 49, dense 51.
    return nullptr;
  }
  if (g.layout == Layout::channels_last && g.group_in() * g.group_out() > 64) {
    // 3 -> 16 @128: F 300, gemm 710; 8 to a group @28: F 630, gemm 1520; 16 @64: F 280, gemm 240.
    return "a matrix product: the channels of a cell lie side by side";
  }
  if (width < 4) {
    return "rows shorter than a vector";
  }
  if (sample_work(g) < kTinyWork && planes <= (width < 8 ? 4 : 16)) {
    return nullptr;  // 3x3 1 -> 1 @8: 0.6, gemm 1.2; 256 samples of it: 57, gemm 157
  }
  if (axes.row.kernel * axes.column.kernel < 3) {
    return "a matrix product: too few taps share a row";  // 1x1 256 -> 64 @56 [19 % of peak]
  }
  if (g.groups > 1 && widest_group <= 8) {
    return nullptr;  // groups of 4 @56: F 720, gemm 1420; of 8 @28: F 500, W 950, gemm 1280, 2790
  }
  if (sums_cells && g.layout == Layout::channels_first && blocking_pays<T>(g)) {
    return "a matrix product: enough channels to fill its panels";  // 32 @64: 1130, gemm 550
  }
  if (sums_cells && g.group_out() < kFewTargets && width >= 8) {
    return nullptr;  // 64 -> 1 @56: 190, gemm 1620; 128 -> 8 @28: 500, gemm 840
  }
  // F of 8 @14: 4.9, gemm 11.3; W of 8 -> 64: 88, gemm 34. On Zen 5, 16 samples of 5x5 16 -> 6 @14:
  // 85, gemm 167; D of 5x5 6 -> 16 @14: 84, gemm 92, but in f64 130 and 90.
  const Index most_planes = std::is_same_v<T, float> && width >= 12 ? 24 : 8;
  if (width < 8 || (width < 16 && (planes > most_planes || sums_cells))) {
    return "rows of less than two vectors";
  }
  // D of 7x7 s2 3 -> 64 @224: 3310, gemm 2170; of 3x3 3 -> 16 @64: 126, gemm 160.
  if (transposed && g.group_in() < kTileChannels && g.group_in() < planes / 8) {
    return "too few target channels share a strip";
  }
  if (!transposed && !sums_cells && g.group_out() <= kTileChannels) {
    return nullptr;  // 64 -> 1 @56: 230, gemm 590
  }
  // A strip of many planes leaves the cache. 64 @56: 2910, gemm 1980; 32 @64: 710, gemm 550, on
  // AVX2 980 and 1050; with outer axes gemm gathers longer: 3^3 32 @8x28: 4650, gemm 6120.
  return channels <= 32 ? nullptr : "too many channels: the strip leaves the cache";
}

template <class T>
void run_conv_direct(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  if (problem.geometry.layout == Layout::channels_last) {
    DirectLast<T, Correlation<T>>(problem, arguments).run();
  } else if (problem.direction == ConvDirection::weight_grad) {
    WeightGrad<T>(problem, arguments).run();
  } else {
    const Index done = run_samples(problem, arguments, BiasPlace::before_products);
    if (done < problem.geometry.batch) {
      const RestOfSamples<T> rest(problem, arguments, done);
      Correlation<T>(rest.problem, rest.arguments).run();
    }
  }
}

template <class T>
Index packed_elements_conv_direct(const ConvProblem& problem) {
  return problem.direction == ConvDirection::weight_grad
             ? 0
             : Correlation<T>::packed_elements(problem.geometry);
}

template <class T>
void pack_conv_direct(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  if (problem.geometry.layout == Layout::channels_last) {
    DirectLast<T, Correlation<T>>(problem, arguments).pack(arguments.out);
  } else {
    Correlation<T>::pack(problem, arguments.rhs, arguments.out);
  }
}

#define FENESTRA_INSTANTIATE_CONV_DIRECT(T)                                    \
  template const char* refuse_conv_direct<T>(const ConvProblem&);              \
  template Index packed_elements_conv_direct<T>(const ConvProblem&);           \
  template void pack_conv_direct(const ConvProblem&, const ConvArguments<T>&); \
  template void run_conv_direct(const ConvProblem&, const ConvArguments<T>&)

FENESTRA_INSTANTIATE_CONV_DIRECT(float);
FENESTRA_INSTANTIATE_CONV_DIRECT(double);
#undef FENESTRA_INSTANTIATE_CONV_DIRECT

}  // namespace fenestra::detail
