// Cuts depthwise convolutions of channels-first tensors into planes and bands of target rows, and
// spreads them over threads; see planes.hpp.
//
// Forward and input gradient are the same loops (TargetAxis): cells of a phase see the same taps. A
// band's source rows are copied into a sheet with the zeros around them. Zeros beside the rows are
// written once for all planes of a range. Every target cell is one chain of multiply-adds in an
// order that follows from the taps alone.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/direct.hpp>
#include <fenestra/ops/conv/kernels/direct_axes.hpp>
#include <fenestra/ops/conv/kernels/planes.hpp>
#include <fenestra/ops/conv/kernels/planes_tiles.hpp>
#include <fenestra/spec/window_walk.hpp>

#include <algorithm>

namespace fenestra::detail {

namespace {

// Multiply-adds of a range of planes: some 5 us, the cost of waking a thread.
constexpr Index kRangeWork = 100'000;
// A row of windows may see as much as a second-level cache holds.
constexpr Index kMostSheetBytes = 256 * 1024;
// Columns of an input gradient from which the direct convolution deals strided ones faster.
constexpr Index kLongRow = 32;

/// The sheet of one problem: its sizes, and what goes into it.
struct Sheet {
  TargetAxis rows;
  TargetAxis columns;
  Index lanes;
  Index phase_pitch;
  Index source_column;
  Index sheet_column;
  Index seen_columns;

  Sheet(const Axes& axes, bool transposed, Index vector_lanes)
      : rows(axes.row, transposed),
        columns(axes.column, transposed),
        lanes(vector_lanes),
        phase_pitch(round_up(columns.places() + dealing().place(columns.reach), lanes)) {
    const TapRange existing = columns.existing();
    source_column = std::clamp<Index>(columns.first + existing.begin, 0, columns.source);
    sheet_column = existing.begin;
    seen_columns = existing.count();
  }

  Dealing dealing() const { return {columns.step}; }

  Index pitch() const { return columns.step * phase_pitch; }
  /// Vectors may be read beyond the last row.
  Index elements(Index row_places) const { return rows.seen(row_places) * pitch() + lanes; }
  /// Rows of places whose sheet stays in a first-level cache.
  Index band_rows(Index bytes_each) const {
    Index band = std::max<Index>(rows.places(), 1);
    while (band > 1 && elements(band) * bytes_each > kStripBytes) {
      band = ceil_of(band, 2);
    }
    return band;
  }
  /// Copies what the places from `row` on see.
  template <class T>
  void fill(const PlaneLoops<T>& loops, const T* plane, Index row, Index places, T* sheet) const {
    loops.fill({.plane = plane,
                .source_rows = rows.source,
                .source_width = columns.source,
                .first_row = rows.first_of(row),
                .rows = rows.seen(places),
                .source_column = source_column,
                .sheet_column = sheet_column,
                .columns = seen_columns,
                .step = columns.step,
                .phase_pitch = phase_pitch,
                .sheet = sheet});
  }
};

/// Taps of the phases, listed once for all planes.
class TapLists {
 public:
  explicit TapLists(const Sheet& sheet) : sheet_(sheet) {}

  static Index most_taps(const Sheet& sheet) {
    return sheet.rows.axis.kernel * sheet.columns.axis.kernel;
  }

  /// The taps of one phase, in the room that `tap` has for them.
  PlaneTaps list(Index row_phase, Index column_phase, PlaneTap* tap) const {
    const TargetAxis& rows = sheet_.rows;
    const TargetAxis& columns = sheet_.columns;
    const Index width = columns.axis.kernel;
    PlaneTaps taps{.tap = tap};
    Index before = -1;
    bool touching = true;
    for (Index c = 0; c < width; ++c) {
      const Index right = columns.shift(column_phase, c);
      if (right < 0) {
        continue;
      }
      ++taps.columns;
      taps.rows = 0;
      for (Index i = 0; i < rows.axis.kernel; ++i) {
        // Downwards in the sheet: an input gradient sees its last tap first.
        const Index t = rows.transposed ? rows.axis.kernel - 1 - i : i;
        const Index down = rows.shift(row_phase, t);
        if (down < 0) {
          continue;
        }
        const Index weight = t * width + c;
        if (taps.rows > 0) {
          touching = touching && down == before + 1;
          taps.weight_step = weight - tap[taps.count - 1].weight;
        }
        before = down;
        ++taps.rows;
        tap[taps.count++] = {
            down * sheet_.pitch() + sheet_.dealing().offset(right, sheet_.phase_pitch), weight};
      }
    }
    taps.rows = touching ? taps.rows : 0;
    return taps;
  }

 private:
  const Sheet& sheet_;
};

template <class T>
class PlaneCorrelation {
 public:
  PlaneCorrelation(const ConvProblem& problem, const ConvArguments<T>& arguments)
      : g_(problem.geometry),
        arguments_(arguments),
        loops_(plane_loops<T>()),
        sheet_(Axes(g_.windows), problem.direction == ConvDirection::input_grad, loops_.lanes),
        rows_(sheet_.rows),
        columns_(sheet_.columns),
        band_rows_(sheet_.band_rows(static_cast<Index>(sizeof(T)))) {}

  void run() const {
    const Index phases = rows_.phases * columns_.phases;
    kernels::ScratchFrame frame;
    auto* taps = frame.take<PlaneTaps>(phases);
    auto* tap = frame.take<PlaneTap>(TapLists::most_taps(sheet_));
    for (Index p = 0; p < phases; ++p) {
      taps[p] = TapLists(sheet_).list(p / columns_.phases, p % columns_.phases, tap);
      tap += taps[p].count;
    }
    const Index bands = ceil_of(std::max<Index>(rows_.places(), 1), band_rows_);
    const Index jobs = g_.batch * g_.groups * bands;
    const Index work = g_.multiply_adds() / std::max<Index>(jobs, 1);
    const Index grain = kRangeWork / std::max<Index>(work, 1) + 1;
    const auto body = [&](Index begin, Index end) {
      kernels::ScratchFrame range;
      T* sheet = range.take<T>(sheet_.elements(band_rows_));
      T* places = range.take<T>(columns_.phases > 1 ? places_elements() : 0);
      std::fill_n(sheet, sheet_.elements(band_rows_), T(0));
      for (Index job = begin; job < end; ++job) {
        run_band(job / bands, job % bands * band_rows_, taps, sheet, places);
      }
    };
    if (g_.multiply_adds() < kSerialWork) {
      body(0, jobs);
    } else {
      fenestra::parallel_for(jobs, grain, body);
    }
  }

 private:
  Index places_pitch() const { return round_up(columns_.places(), loops_.lanes); }
  /// Column phases of a band, before they are joined.
  Index places_elements() const {
    return columns_.phases * band_rows_ * places_pitch() + loops_.lanes;
  }

  void run_band(Index plane, Index row, const PlaneTaps* taps, T* sheet, T* places) const {
    const Index channel = plane % g_.groups;
    const Index row_end = std::min(row + band_rows_, rows_.places());
    sheet_.fill(
        loops_, arguments_.lhs + plane * rows_.source * columns_.source, row, row_end - row, sheet);
    PlaneRun<T> run{.sheet = sheet,
                    .pitch = sheet_.pitch(),
                    .step = rows_.step,
                    .weights = arguments_.rhs + channel * g_.windows.taps(),
                    .bias = arguments_.bias != nullptr ? arguments_.bias[channel] : T(0)};
    const IndexRange target_rows = rows_.outputs({row, row_end});
    T* target = arguments_.out + (plane * rows_.target + target_rows.begin) * columns_.target;
    for (Index r = 0; r < rows_.phases; ++r) {
      run.rows = rows_.places(r, row, row_end);
      T* out = target + r * columns_.target;
      const Index out_pitch = rows_.phases * columns_.target;
      for (Index c = 0; c < columns_.phases; ++c) {
        run.width = columns_.places(c, 0, columns_.places());
        run.taps = taps[r * columns_.phases + c];
        run.out = columns_.phases == 1 ? out : places + c * band_rows_ * places_pitch();
        run.out_pitch = columns_.phases == 1 ? out_pitch : places_pitch();
        loops_.run(run);
      }
      for (Index i = 0; columns_.phases > 1 && i < run.rows; ++i) {
        loops_.join(places + i * places_pitch(),
                    band_rows_ * places_pitch(),
                    columns_.phases,
                    columns_.target,
                    out + i * out_pitch);
      }
    }
    if (arguments_.finish != nullptr) {
      arguments_.finish->run(target, target_rows.count() * columns_.target);
    }
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const PlaneLoops<T>& loops_;
  Sheet sheet_;
  const TargetAxis& rows_;
  const TargetAxis& columns_;
  Index band_rows_;
};

/// Planes of a channel are added in the order of samples and rows, whatever the threads.
template <class T>
void run_weight_grad(const ConvGeometry& g, const ConvArguments<T>& arguments) {
  const PlaneLoops<T>& loops = plane_loops<T>();
  const Sheet form(Axes(g.windows), false, loops.lanes);
  const Index band_rows = form.band_rows(static_cast<Index>(sizeof(T)));
  const Index count = TapLists::most_taps(form);
  kernels::ScratchFrame frame;
  auto* tap = frame.take<PlaneTap>(count);
  const PlaneTaps taps = TapLists(form).list(0, 0, tap);
  const Index x_cells = g.windows.in_cells();
  const Index y_cells = g.windows.out_cells();
  const auto body = [&](Index begin, Index end) {
    kernels::ScratchFrame range;
    T* sheet = range.take<T>(form.elements(band_rows));
    T* sums = range.take<T>(count * loops.lanes);
    std::fill_n(sheet, form.elements(band_rows), T(0));
    for (Index channel = begin; channel < end; ++channel) {
      std::fill_n(sums, count * loops.lanes, T(0));
      for (Index n = 0; n < g.batch; ++n) {
        const Index plane = n * g.groups + channel;
        for (Index row = 0; row < form.rows.target; row += band_rows) {
          const Index rows = std::min(band_rows, form.rows.target - row);
          form.fill(loops, arguments.lhs + plane * x_cells, row, rows, sheet);
          loops.add_dots({.sheet = sheet,
                          .pitch = form.pitch(),
                          .step = form.rows.step,
                          .rows = rows,
                          .width = form.columns.target,
                          .taps = taps,
                          .y = arguments.rhs + plane * y_cells + row * form.columns.target,
                          .y_end = arguments.rhs + g.batch * g.groups * y_cells,
                          .sums = sums});
        }
      }
      for (Index t = 0; t < count; ++t) {
        arguments.out[channel * count + taps.tap[t].weight] =
            loops.sum_of_lanes(sums + t * loops.lanes);
      }
    }
  };
  const Index work = g.multiply_adds() / std::max<Index>(g.groups, 1);
  if (g.multiply_adds() < kSerialWork) {
    body(0, g.groups);
  } else {
    fenestra::parallel_for(g.groups, kRangeWork / std::max<Index>(work, 1) + 1, body);
  }
}

}  // namespace

template <class T>
const char* planes_lacks(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (g.layout != Layout::channels_first) {
    return "channels last: vectors along the channels do it";
  }
  if (g.in_channels != g.groups || g.out_channels != g.groups) {
    return "more than one channel to a group";
  }
  if (g.rank() > 2) {
    return "more than two axes";
  }
  const Sheet sheet(
      Axes(g.windows), problem.direction == ConvDirection::input_grad, plane_loops<T>().lanes);
  // One by one: the product of the two need not be a number.
  const Index most = kMostSheetBytes / static_cast<Index>(sizeof(T));
  if (sheet.rows.seen(1) > most || sheet.columns.seen(sheet.columns.places()) > most ||
      sheet.elements(1) > most) {
    return "rows too wide for a sheet";
  }
  return nullptr;
}

template <class T>
const char* refuse_conv_planes(const ConvProblem& problem) {
  if (const char* reason = planes_lacks<T>(problem)) {
    return reason;
  }
  // Such columns are dealt one by one, and most of what a sheet holds of the rows no tap sees.
  // Outer products are faster in 28 of 38 random problems, slower in 9. Direct, whose input
  // gradient needs long rows: 5x5 s3 32 @56: F 415, direct 147; D 443, direct 303; 3x3 s3 64 @28: F
  // 199, direct 84; D 232, direct 248; on AVX2 the same.
  const Axes axes(problem.geometry.windows);
  if (axes.column.stride >= 3) {
    const bool too_far =
        problem.direction == ConvDirection::weight_grad
            ? axes.column.out > 1 && axes.row.out * axes.column.out >= 10
            : (problem.direction == ConvDirection::forward || axes.column.in >= kLongRow) &&
                  refuse_conv_direct<T>(problem) == nullptr;
    if (too_far) {
      return "columns too far apart for a sheet";
    }
  }
  return nullptr;
}

template <class T>
void run_conv_planes(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  if (problem.direction == ConvDirection::weight_grad) {
    run_weight_grad<T>(problem.geometry, arguments);
  } else {
    PlaneCorrelation<T>(problem, arguments).run();
  }
}

#define FENESTRA_INSTANTIATE_CONV_PLANES(T)                       \
  template const char* planes_lacks<T>(const ConvProblem&);       \
  template const char* refuse_conv_planes<T>(const ConvProblem&); \
  template void run_conv_planes(const ConvProblem&, const ConvArguments<T>&)

FENESTRA_INSTANTIATE_CONV_PLANES(float);
FENESTRA_INSTANTIATE_CONV_PLANES(double);
#undef FENESTRA_INSTANTIATE_CONV_PLANES

}  // namespace fenestra::detail
