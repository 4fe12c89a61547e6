// What the loops of the direct convolution work on: bands of target rows, strips of source rows,
// packed weights; see kernels_direct.hpp.
//
// All but the last two axes are unrolled into planes: a plane is one source channel seen through
// one outer tap. Forward and input gradient are the same loops: a target row has a list of (source
// row, row of taps), and the target cells of a row fall into phases that see the same column taps,
// one phase forward and `stride` phases in the input gradient. Every target cell is one chain of
// multiply-adds in the order of planes and taps, whatever the bands and threads.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels_direct.hpp>
#include <fenestra/ops/conv/kernels_direct_tiles.hpp>

#include <algorithm>
#include <cstddef>

namespace fenestra::detail {

namespace {

// A strip should leave room for weights and targets in a first-level cache of 32 KiB; few planes of
// wide rows are cut at 24 KiB, measured within 3 % of 16 and 48 KiB.
constexpr Index kStripBytes = 24 * 1024;
// Multiply-adds below which waking threads (some 5 us) costs more than they save.
constexpr Index kSerialWork = 200'000;

constexpr Index ceil_of(Index a, Index b) { return (a + b - 1) / b; }
constexpr Index round_up(Index a, Index b) { return ceil_of(a, b) * b; }

/// Cuts arrays from one scratch buffer: first all sizes are added up, then all pointers are handed
/// out, by the same calls.
class Arena {
 public:
  explicit Arena(std::byte* base) : base_(base) {}

  template <class U>
  U* take(Index count) {
    U* result = base_ != nullptr ? reinterpret_cast<U*>(base_ + used_) : nullptr;
    used_ += static_cast<std::size_t>(round_up(count * static_cast<Index>(sizeof(U)), 64));
    return result;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

/// `cut(arena)` takes what it needs; it is called twice.
template <class Cut>
void allocate(int slot, const Cut& cut) {
  Arena measured(nullptr);
  cut(measured);
  Arena arena(kernels::scratch<std::byte>(slot, measured.used()));
  cut(arena);
}

/// The axes of a problem as the loops see them: outer ones, rows, columns.
struct Axes {
  WindowAxis outer[kMaxSpatialRank];
  int outer_rank = 0;
  WindowAxis row;
  WindowAxis column;

  explicit Axes(const Windows& windows) : column(windows[windows.rank() - 1]) {
    if (windows.rank() >= 2) {
      row = windows[windows.rank() - 2];
    }
    for (int a = 0; a + 2 < windows.rank(); ++a) {
      outer[outer_rank++] = windows[a];
    }
  }
  Index outer_product(Index WindowAxis::*member) const {
    Index n = 1;
    for (int a = 0; a < outer_rank; ++a) {
      n *= outer[a].*member;
    }
    return n;
  }
};

/// Calls f(tap, source cell) for the taps through which target cell `q` sees a cell of the source.
template <class F>
void for_each_source(const WindowAxis& axis, bool transposed, Index q, F&& f) {
  if (!transposed) {
    const Window window = axis.window(q);
    for (Index t = 0; t < window.taps; ++t) {
      if (axis.is_real(window.cell(t))) {
        f(t, window.cell(t));
      }
    }
    return;
  }
  for (Index t = 0; t < axis.kernel; ++t) {
    const Index reach = q + axis.pad_low - t * axis.dilation;
    if (reach >= 0 && reach % axis.stride == 0 && reach / axis.stride < axis.out) {
      f(t, reach / axis.stride);
    }
  }
}

/// Calls f(outer tap, source cell) over all outer axes for the flat outer target cell `q`.
template <class F>
void for_each_outer(const Axes& axes, bool transposed, Index q, F&& f) {
  Index cell[kMaxSpatialRank] = {};
  for (int a = axes.outer_rank - 1; a >= 0; --a) {
    const Index extent = transposed ? axes.outer[a].in : axes.outer[a].out;
    cell[a] = q % extent;
    q /= extent;
  }
  const auto visit = [&](auto&& self, int a, Index tap, Index source) -> void {
    if (a == axes.outer_rank) {
      f(tap, source);
      return;
    }
    for_each_source(axes.outer[a], transposed, cell[a], [&](Index t, Index c) {
      self(self,
           a + 1,
           tap * axes.outer[a].kernel + t,
           source * (transposed ? axes.outer[a].out : axes.outer[a].in) + c);
    });
  };
  visit(visit, 0, 0, 0);
}

/// Planes of one job: where they lie and their numbers in the weights.
template <class T>
struct PlaneList {
  const T** data = nullptr;
  Index* weight_plane = nullptr;
  Index count = 0;

  void cut(Arena& arena, Index most) {
    data = arena.take<const T*>(most);
    weight_plane = arena.take<Index>(most);
  }
  /// The planes of `channels` channels from `base` on that outer target cell `q` sees.
  void fill(const Axes& axes,
            bool transposed,
            Index q,
            const T* base,
            Index channels,
            Index channel_stride,
            Index plane_cells) {
    count = 0;
    if (axes.outer_rank == 0) {
      for (; count < channels; ++count) {
        data[count] = base + count * channel_stride;
        weight_plane[count] = count;
      }
      return;
    }
    const Index outer_taps = axes.outer_product(&WindowAxis::kernel);
    for (Index c = 0; c < channels; ++c) {
      for_each_outer(axes, transposed, q, [&](Index tap, Index cell) {
        data[count] = base + c * channel_stride + cell * plane_cells;
        weight_plane[count++] = c * outer_taps + tap;
      });
    }
  }
};

// --- forward and input gradient ------------------------------------------------------------------

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
        outer_taps_(axes_.outer_product(&WindowAxis::kernel)) {
    const Side x{
        g_.group_in(), axes_.outer_product(&WindowAxis::in), axes_.row.in, axes_.column.in};
    const Side y{
        g_.group_out(), axes_.outer_product(&WindowAxis::out), axes_.row.out, axes_.column.out};
    source_ = transposed_ ? y : x;
    target_ = transposed_ ? x : y;
    phases_ = transposed_ ? std::min(axes_.column.stride, target_.width) : 1;
    place_columns();
    choose_band();
    allocate(kernels::scratch_caller, [&](Arena& arena) { cut_tables(arena); });
    fill_tables();
    pack_weights();
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
      first_column_ = axis.window(0).first;
      lane_pitch_ =
          round_up(round_up(target_.width, lanes) + (axis.span() - 1) / axis.stride, lanes);
      return;
    }
    // The cell of phase p at place i sees, through tap t, column i + (p + pad - t * d) / s.
    first_column_ = floor_div(axis.pad_low - axis.span() + 1, axis.stride);
    const Index last = floor_div(phases_ - 1 + axis.pad_low, axis.stride);
    const Index width = ceil_of(target_.width, axis.stride);
    lane_pitch_ = round_up(round_up(width, lanes) + last - first_column_, lanes);
  }

  Index strip_rows(Index band_rows) const {
    const WindowAxis& axis = axes_.row;
    return transposed_ ? (band_rows - 1 + axis.span() - 1) / axis.stride + 1
                       : (band_rows - 1) * axis.stride + axis.span();
  }
  Index planes() const { return source_.channels * outer_taps_; }
  Index pitch() const { return strip_stride_ * lane_pitch_; }
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
    const Index least = std::min(
        target_.rows, transposed_ ? axes_.row.span() : ceil_of(axes_.row.span(), axes_.row.stride));
    band_rows_ = std::max(band_rows_, std::min<Index>(least, 8));
  }

  void cut_tables(Arena& arena) {
    row_begin_ = arena.take<Index>(target_.rows + 1);
    row_entries_ = arena.take<RowTap>(target_.rows * axes_.row.kernel);
    offsets_ = arena.take<Index>(axes_.column.kernel);
    taps_ = arena.take<Index>(axes_.column.kernel);
    phase_ = arena.take<ColumnPhase<T>>(phases_);
    weights_ = arena.take<T>(g_.out_channels * g_.group_in() * g_.windows.taps());
  }

  void fill_tables() {
    Index entries = 0;
    for (Index row = 0; row < target_.rows; ++row) {
      row_begin_[row] = entries;
      if (uniform_rows()) {
        const Index first = transposed_ ? row + axes_.row.pad_low : axes_.row.window(row).first;
        const Index step = transposed_ ? -axes_.row.dilation : axes_.row.dilation;
        for (Index tap = 0; tap < axes_.row.kernel; ++tap) {
          row_entries_[entries++] = {first + tap * step, tap};
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
        const Index shift = t * axis.dilation;
        taps_[t] = t;
        offsets_[t] = shift % axis.stride * lane_pitch_ + shift / axis.stride;
      }
      phase_[0] = {target_.width, axis.kernel, offsets_, weights_};
      return;
    }
    Index used = 0;
    for (Index p = 0; p < phases_; ++p) {
      const Index begin = used;
      for (Index t = 0; t < axis.kernel; ++t) {
        const Index reach = p + axis.pad_low - t * axis.dilation;
        if (floor_div(reach, axis.stride) * axis.stride == reach) {
          taps_[used] = t;
          offsets_[used++] = floor_div(reach, axis.stride) - first_column_;
        }
      }
      phase_[p] = {ceil_of(target_.width - p, axis.stride),
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
    const Index tiles = ceil_of(target_.channels, kTileChannels);
    for (Index p = 0; p < phases_; ++p) {
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
    T* strip = nullptr;
    T* row_buffer = nullptr;
    ColumnPhase<T>* phase = nullptr;
    allocate(kernels::scratch_caller_2, [&](Arena& arena) {
      list.cut(arena, planes());
      strip = arena.take<T>(planes() * strip_rows(band_rows_) * pitch());
      row_buffer = arena.take<T>(phases_ > 1 ? phases_ * kTileChannels * phase_[0].width : 0);
      phase = arena.take<ColumnPhase<T>>(phases_);
    });
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
                       .first_column = first_column_,
                       .stride = strip_stride_,
                       .lane_pitch = lane_pitch_,
                       .dst = strip});
    for (Index p = 0; p < phases_; ++p) {
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
         .phases = phases_,
         .channels = target_.channels,
         .bias = arguments_.bias != nullptr ? arguments_.bias + group * target_.channels : nullptr,
         .out = arguments_.out + target_channel * target_.channel_stride() +
                outer * target_.plane() + row0 * target_.width,
         .rows = rows,
         .width = target_.width,
         .channel_stride = target_.channel_stride(),
         .row_stride = target_.width,
         .row_buffer = row_buffer});
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const DirectLoops<T>& loops_;
  Axes axes_;
  bool transposed_;
  Index outer_taps_;
  Side source_;
  Side target_;
  Index phases_ = 1;
  Index strip_stride_ = 1;
  Index first_column_ = 0;
  Index lane_pitch_ = 0;
  Index band_rows_ = 1;
  Index* row_begin_ = nullptr;
  RowTap* row_entries_ = nullptr;
  Index* offsets_ = nullptr;
  Index* taps_ = nullptr;
  ColumnPhase<T>* phase_ = nullptr;
  T* weights_ = nullptr;
};

// --- weight gradient -----------------------------------------------------------------------------

/// One job is a tile of output channels of a group: all their weights, all samples in order.
template <class T>
class WeightGrad {
 public:
  WeightGrad(const ConvProblem& problem, const ConvArguments<T>& arguments)
      : g_(problem.geometry),
        arguments_(arguments),
        loops_(direct_loops<T>()),
        axes_(g_.windows),
        outer_taps_(axes_.outer_product(&WindowAxis::kernel)),
        outer_(axes_.outer_product(&WindowAxis::out)),
        in_plane_(axes_.row.in * axes_.column.in),
        in_stride_(axes_.outer_product(&WindowAxis::in) * in_plane_),
        out_plane_(axes_.row.out * axes_.column.out),
        plane_taps_(axes_.row.kernel * axes_.column.kernel) {
    const WindowAxis& column = axes_.column;
    y_pitch_ = round_up(column.out, loops_.lanes);
    lane_pitch_ = round_up(y_pitch_ + (column.span() - 1) / column.stride, loops_.lanes);
    const Index row_bytes =
        (std::max<Index>(planes(), 1) * pitch() * axes_.row.stride + kTileChannels * y_pitch_) *
        static_cast<Index>(sizeof(T));
    band_rows_ = std::min(axes_.row.out, std::max(2 * kStripBytes / row_bytes, axes_.row.span()));
    allocate(kernels::scratch_caller,
             [&](Arena& arena) { offsets_ = arena.take<Index>(plane_taps_); });
    for (Index r = 0; r < axes_.row.kernel; ++r) {
      for (Index t = 0; t < column.kernel; ++t) {
        const Index shift = t * column.dilation;
        offsets_[r * column.kernel + t] = r * axes_.row.dilation * pitch() +
                                          shift % column.stride * lane_pitch_ +
                                          shift / column.stride;
      }
    }
  }

  void run() {
    const Index tiles = ceil_of(g_.group_out(), kTileChannels);
    const auto body = [&](Index begin, Index end) {
      for (Index job = begin; job < end; ++job) {
        const Index tile = job % tiles;
        run_job(job / tiles, tile * g_.group_out() / tiles, (tile + 1) * g_.group_out() / tiles);
      }
    };
    if (g_.multiply_adds() < kSerialWork) {
      body(0, g_.groups * tiles);
    } else {
      fenestra::parallel_for(g_.groups * tiles, 1, body);
    }
  }

 private:
  Index planes() const { return g_.group_in() * outer_taps_; }
  Index pitch() const { return axes_.column.stride * lane_pitch_; }
  Index strip_rows(Index rows) const { return (rows - 1) * axes_.row.stride + axes_.row.span(); }

  void run_job(Index group, Index c0, Index c1) {
    const Index channels = c1 - c0;
    const Index count = planes() * channels * plane_taps_;
    PlaneList<T> list;
    PlaneList<T> targets;
    T* strip = nullptr;
    T* y = nullptr;
    T* sums = nullptr;
    allocate(kernels::scratch_caller_2, [&](Arena& arena) {
      list.cut(arena, planes());
      targets.cut(arena, kTileChannels);
      strip = arena.take<T>(planes() * strip_rows(band_rows_) * pitch());
      y = arena.take<T>(kTileChannels * band_rows_ * y_pitch_);
      sums = arena.take<T>(count * (loops_.lanes + 1));
    });
    std::fill(sums, sums + count * loops_.lanes, T(0));
    const Index first_out = group * g_.group_out() + c0;
    for (Index n = 0; n < g_.batch; ++n) {
      for (Index outer = 0; outer < outer_; ++outer) {
        list.fill(axes_,
                  false,
                  outer,
                  arguments_.lhs + (n * g_.in_channels + group * g_.group_in()) * in_stride_,
                  g_.group_in(),
                  in_stride_,
                  in_plane_);
        const T* y_bar =
            arguments_.rhs + ((n * g_.out_channels + first_out) * outer_ + outer) * out_plane_;
        for (Index c = 0; c < channels; ++c) {
          targets.data[c] = y_bar + c * outer_ * out_plane_;
        }
        for (Index row0 = 0; row0 < axes_.row.out; row0 += band_rows_) {
          add_band(list, targets.data, channels, row0, strip, y, sums);
        }
      }
    }
    T* totals = sums + count * loops_.lanes;
    loops_.sum_lanes(sums, count, totals);
    for (Index c = 0; c < channels; ++c) {
      T* w_bar = arguments_.out + (first_out + c) * planes() * plane_taps_;
      for (Index p = 0; p < planes(); ++p) {
        std::copy_n(
            totals + (p * channels + c) * plane_taps_, plane_taps_, w_bar + p * plane_taps_);
      }
    }
  }

  void add_band(const PlaneList<T>& list,
                const T* const* y_bar,
                Index channels,
                Index row0,
                T* strip,
                T* y,
                T* sums) {
    const Index rows = std::min(band_rows_, axes_.row.out - row0);
    const Index copied = strip_rows(rows);
    loops_.fill_strip({.plane = list.data,
                       .planes = list.count,
                       .source_rows = axes_.row.in,
                       .source_width = axes_.column.in,
                       .first_row = axes_.row.window(row0).first,
                       .rows = copied,
                       .first_column = axes_.column.window(0).first,
                       .stride = axes_.column.stride,
                       .lane_pitch = lane_pitch_,
                       .dst = strip});
    loops_.fill_strip({.plane = y_bar,
                       .planes = channels,
                       .source_rows = axes_.row.out,
                       .source_width = axes_.column.out,
                       .first_row = row0,
                       .rows = rows,
                       .first_column = 0,
                       .stride = 1,
                       .lane_pitch = y_pitch_,
                       .dst = y});
    loops_.add_dots({.strip = strip,
                     .plane_pitch = copied * pitch(),
                     .pitch = pitch(),
                     .planes = list.count,
                     .weight_plane = list.weight_plane,
                     .taps = plane_taps_,
                     .offset = offsets_,
                     .row_step = axes_.row.stride * pitch(),
                     .y = y,
                     .y_pitch = y_pitch_,
                     .channels = channels,
                     .rows = rows,
                     .width = axes_.column.out,
                     .sums = sums});
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const DirectLoops<T>& loops_;
  Axes axes_;
  Index outer_taps_;
  Index outer_;
  Index in_plane_;
  Index in_stride_;
  Index out_plane_;
  Index plane_taps_;
  Index y_pitch_ = 0;
  Index lane_pitch_ = 0;
  Index band_rows_ = 1;
  Index* offsets_ = nullptr;
};

}  // namespace

const char* direct_lacks(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (g.layout != Layout::channels_first) {
    return "channels last";
  }
  if (g.in_channels == 0 || g.out_channels == 0) {
    return "no channels";
  }
  return nullptr;
}

template <class T>
const char* refuse_conv_direct(const ConvProblem& problem) {
  return direct_lacks(problem);
}

template <class T>
void run_conv_direct(const ConvProblem& problem, const ConvArguments<T>& arguments) noexcept {
  if (problem.direction == ConvDirection::weight_grad) {
    WeightGrad<T>(problem, arguments).run();
  } else {
    Correlation<T>(problem, arguments).run();
  }
}

template const char* refuse_conv_direct<float>(const ConvProblem&);
template const char* refuse_conv_direct<double>(const ConvProblem&);
template void run_conv_direct(const ConvProblem&, const ConvArguments<float>&) noexcept;
template void run_conv_direct(const ConvProblem&, const ConvArguments<double>&) noexcept;

}  // namespace fenestra::detail
