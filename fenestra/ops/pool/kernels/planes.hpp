// Pools whose rows are short: whole planes at a time. Plain code; the vectors are in
// planes-inl.hpp. Internal: not installed.
//
// The source numbers of a few planes are stored by phase on every axis, with what lies outside
// around them. Every tap of all windows of a block is then one run of numbers at a fixed distance:
// no row has ends of its own, and nothing but the copy knows strides and padding. In the adjoint
// the roles change: windows are stored, with none around them, and cells are computed by phase.
// Channels first only, and small windows that slide on every axis.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/pool/kernels/links.hpp>
#include <fenestra/spec/window_walk.hpp>

#include <algorithm>

namespace fenestra::pooling {

/// One axis of stored planes. A source position is stored at a phase and a step; destination
/// positions are dealt to classes of equal phase, and all of a class look at the same distances
/// from their step, which is their place in the class.
struct PlaneAxis {
  WindowAxis a;
  bool to_cells = false;
  Index phases = 1;  ///< of the source
  Index low = 0;     ///< adjoint: steps stored before window 0
  Index reach = 0;   ///< the largest distance

  PlaneAxis() = default;
  PlaneAxis(const WindowAxis& axis, bool adjoint) : a(axis), to_cells(adjoint) {
    if (!to_cells) {
      phases = a.tap_phases();
      reach = a.last_step();
      return;
    }
    Index least = tap_distance(0);
    for (Index t = 0; t < a.kernel; ++t) {
      least = std::min(least, tap_distance(t));
    }
    low = -least;
    for (Index t = 0; t < a.kernel; ++t) {
      reach = std::max(reach, tap_distance(t) + low);
    }
  }

  Index source() const { return to_cells ? a.out : a.in; }
  Index dest() const { return to_cells ? a.in : a.out; }
  Index source_classes() const { return to_cells ? 1 : a.stride; }
  Index dest_classes() const { return to_cells ? a.stride : 1; }
  Dealing dest_dealing() const { return {dest_classes()}; }
  Index dest_steps() const { return dest_dealing().places(0, dest()); }

  struct Place {
    Index phase = -1;  ///< -1: no tap looks there
    Index step = 0;
  };
  Place place(Index position) const {
    if (to_cells) {
      return {0, position + low};
    }
    for (Index p = 0; p < phases; ++p) {
      if (a.tap_phase(p) == a.cell_phase(position)) {
        return {p, a.cell_step(position)};
      }
    }
    return {};
  }

  /// Calls f(phase, distance, tap) for the taps of a destination class, in ascending order of the
  /// source.
  template <class F>
  void for_each_tap(Index dest_class, const F& f) const {
    if (!to_cells) {
      for (Index t = 0; t < a.kernel; ++t) {
        f(t % phases, a.tap_step(t), t);
      }
      return;
    }
    for (Index t = a.kernel - 1; t >= 0; --t) {
      if (tap_class(t) == dest_class) {
        f(Index{0}, tap_distance(t) + low, t);
      }
    }
  }

 private:
  /// The class of the cells that tap t of some window sees, and how many windows before that one
  /// the first cell of the class is.
  Index tap_class(Index t) const { return a.first_cell(a.tap_phase(t)); }
  Index tap_distance(Index t) const { return a.cell_step(tap_class(t)) - a.tap_step(t); }
};

/// Bytes that the stored planes of one block take: half of a 32 KiB L1 cache. Small planes are
/// taken together up to this, large ones cut along their first axis.
inline constexpr Index kPlaneBytes = 16 * 1024;
/// Where even one step of the first axis takes more than this, planes are not stored.
inline constexpr Index kMostPlaneBytes = 64 * 1024;

/// How the planes of a call are stored. Follows from the geometry without the batch.
struct PlaneLayout {
  PlaneAxis axes[kMaxSpatialRank];
  int rank = 0;
  Index pitch[kMaxSpatialRank] = {};
  Index steps_per_block = 1;   ///< destination steps along the first axis
  Index blocks = 1;            ///< of a plane
  Index planes_per_group = 1;  ///< taken together; 1 where a plane has several blocks
  Index block_size = 0;        ///< numbers stored per plane, block and phase
  Index phase_size = 0;        ///< numbers from one phase to the next
  Index outer_phases = 1;
  bool dense = true;  ///< no distances: the destination numbers of a group are one run
  bool fits = true;

  PlaneLayout() = default;
  PlaneLayout(const Plan& plan, Index bytes_per_number) : rank(plan.windows.rank()) {
    Index step_numbers = 1;  // of all phases, and never so large that the next product overflows
    for (int axis = rank - 1; axis >= 0; --axis) {
      axes[axis] = PlaneAxis(plan.windows[axis], plan.to_cells);
      pitch[axis] = axis == rank - 1 ? 1 : pitch[axis + 1] * stored_steps(axis + 1);
      outer_phases *= axis < rank - 1 ? axes[axis].phases : 1;
      dense = dense && axes[axis].reach == 0;
      const Index room = kMostPlaneBytes / (step_numbers * axes[axis].phases);
      fits = room > 0 && axes[axis].reach < room && (axis == 0 || stored_steps(axis) <= room);
      if (!fits) {
        return;
      }
      step_numbers *= axes[axis].phases * (axis == 0 ? 1 : stored_steps(axis));
    }
    const Index steps = axes[0].dest_steps();
    const auto bytes_of = [&](Index n) {
      return (n + axes[0].reach) * step_numbers * bytes_per_number;
    };
    steps_per_block = std::min(steps, kPlaneBytes);
    while (steps_per_block > 1 && bytes_of(steps_per_block) > kPlaneBytes) {
      steps_per_block = (steps_per_block + 1) / 2;
    }
    fits = bytes_of(steps_per_block) <= kMostPlaneBytes;
    blocks = ceil_div(steps, steps_per_block);
    block_size = (steps_per_block + axes[0].reach) * pitch[0];
    if (blocks == 1) {
      planes_per_group = std::max<Index>(kPlaneBytes / bytes_of(steps), 1);
    }
    phase_size = planes_per_group * block_size + 2 * kSlack;
  }

  const PlaneAxis& last() const { return axes[rank - 1]; }
  Index phases() const { return outer_phases * last().phases; }
  Index stored_steps(int axis) const { return axes[axis].dest_steps() + axes[axis].reach; }
  Index groups(const Plan& plan) const { return ceil_div(plan.planes, planes_per_group); }
  Index row_classes() const {
    Index classes = 1;
    for (int axis = 0; axis < rank - 1; ++axis) {
      classes *= axes[axis].dest_classes();
    }
    return classes;
  }
  /// Destination rows of a block at most, and source rows.
  Index dest_rows() const {
    Index rows = std::min(steps_per_block * axes[0].dest_classes(), axes[0].dest());
    for (int axis = 1; axis < rank - 1; ++axis) {
      rows *= axes[axis].dest();
    }
    return rows;
  }
  Index source_rows() const {
    const Index most = (steps_per_block + axes[0].reach) * axes[0].source_classes();
    Index rows = std::min(most, axes[0].source());
    for (int axis = 1; axis < rank - 1; ++axis) {
      rows *= axes[axis].source();
    }
    return rows;
  }
};

/// Calls f(tuple) for all tuples of the axes above the rows, row-major; axis i runs from begin[i]
/// to end[i].
template <class F>
void for_each_tuple(int axes, const Index* begin, const Index* end, const F& f) {
  Index tuple[kMaxSpatialRank] = {};
  for (int axis = 0; axis < axes; ++axis) {
    if (begin[axis] >= end[axis]) {
      return;
    }
    tuple[axis] = begin[axis];
  }
  for (;;) {
    f(static_cast<const Index*>(tuple));
    int axis = axes - 1;
    while (axis >= 0 && ++tuple[axis] == end[axis]) {
      tuple[axis] = begin[axis];
      --axis;
    }
    if (axis < 0) {
      return;
    }
  }
}

/// The lists by which blocks are copied and computed.
class PlaneTables {
 public:
  struct SourceRow {
    Index from = 0;  ///< in the plane
    Index to = 0;    ///< in the stored block
  };
  struct SourceRun {  ///< the numbers of one class of a row, one every `source_classes`
    Index from = 0;
    Index to = 0;
    Index count = 0;
  };
  struct DestRow {
    Index at = 0;  ///< its first step in the stored block
    Index row_class = 0;
  };
  struct Tap {
    Index phase = 0;
    Index distance = 0;
    Index tap = 0;
  };
  /// The taps of class c are taps[begin[c]] .. taps[begin[c + 1]].
  struct Taps {
    Tap* taps = nullptr;
    Index* begin = nullptr;
  };

  explicit PlaneTables(const PlaneLayout& layout) : l_(layout) {}

  void take(ScratchFrame& frame) {
    source_rows = frame.take<SourceRow>(l_.source_rows());
    source_runs = frame.take<SourceRun>(l_.last().source_classes());
    dest_rows = frame.take<DestRow>(l_.dest_rows());
    Index outer_taps = 1;
    for (int axis = 0; axis < l_.rank - 1; ++axis) {
      outer_taps *= l_.axes[axis].a.kernel;
    }
    rows.taps = frame.take<Tap>(outer_taps);
    rows.begin = frame.take<Index>(l_.row_classes() + 1);
    columns.taps = frame.take<Tap>(l_.last().a.kernel);
    columns.begin = frame.take<Index>(l_.last().dest_classes() + 1);
  }

  /// What is the same for all blocks.
  void start() {
    Index next = 0;
    for (Index c = 0; c < l_.last().dest_classes(); ++c) {
      columns.begin[c] = next;
      l_.last().for_each_tap(c, [&](Index phase, Index distance, Index tap) {
        columns.taps[next++] = {phase, distance, tap};
      });
    }
    columns.begin[l_.last().dest_classes()] = next;
    list_row_taps();
    run_count = 0;
    for (Index c = 0; c < l_.last().source_classes(); ++c) {
      const PlaneAxis::Place place = l_.last().place(c);
      const Index skip = std::max<Index>(-place.step, 0);  // windows that no cell belongs to
      const Dealing dealing{l_.last().source_classes()};
      const Index numbers = dealing.places(c, l_.last().source());
      const Index room = l_.stored_steps(l_.rank - 1) - place.step;
      const Index count = std::min(numbers, room) - skip;
      if (place.phase >= 0 && count > 0) {
        source_runs[run_count++] = {
            dealing.position(c, skip), place.phase * l_.phase_size + place.step + skip, count};
      }
    }
  }

  /// What belongs to one block of a plane.
  void start_block(const Plan& plan, Index block) {
    const int outer = l_.rank - 1;
    const Index first_step = block * l_.steps_per_block;
    const Dealing first_axis = l_.axes[0].dest_dealing();
    Index begin[kMaxSpatialRank] = {};
    Index end[kMaxSpatialRank] = {};
    for (int axis = 0; axis < outer; ++axis) {
      end[axis] = l_.axes[axis].dest();
    }
    begin[0] = first_axis.position(0, first_step);
    end[0] = std::min(first_axis.position(0, first_step + l_.steps_per_block), l_.axes[0].dest());
    dest_row_count = 0;
    for_each_tuple(outer, begin, end, [&](const Index* tuple) {
      DestRow row;
      for (int axis = 0; axis < outer; ++axis) {
        const Dealing dealing = l_.axes[axis].dest_dealing();
        row.at += (dealing.place(tuple[axis]) - (axis == 0 ? first_step : 0)) * l_.pitch[axis];
        row.row_class = row.row_class * dealing.phases + dealing.phase(tuple[axis]);
      }
      dest_rows[dest_row_count++] = row;
    });
    Index rows_per_step = 1;
    for (int axis = 1; axis < outer; ++axis) {
      rows_per_step *= l_.axes[axis].dest();
    }
    dest_begin = begin[0] * rows_per_step * plan.dest_row_size();
    dest_numbers = dest_row_count * plan.dest_row_size();

    const Index stored_end = first_step + l_.steps_per_block + l_.axes[0].reach;
    const auto step_at = [&](Index position) {
      return l_.axes[0].to_cells ? position + l_.axes[0].low : l_.axes[0].a.cell_step(position);
    };
    for (int axis = 0; axis < outer; ++axis) {
      begin[axis] = 0;
      end[axis] = l_.axes[axis].source();
    }
    while (begin[0] < end[0] && step_at(begin[0]) < first_step) {
      ++begin[0];
    }
    while (end[0] > begin[0] && step_at(end[0] - 1) >= stored_end) {
      --end[0];
    }
    source_row_count = 0;
    for_each_tuple(outer, begin, end, [&](const Index* tuple) {
      SourceRow row;
      Index phase = 0;
      for (int axis = 0; axis < outer; ++axis) {
        const PlaneAxis::Place place = l_.axes[axis].place(tuple[axis]);
        const Index step = place.step - (axis == 0 ? first_step : 0);
        const bool stored = axis == 0 || (step >= 0 && step < l_.stored_steps(axis));
        if (place.phase < 0 || !stored) {
          return;
        }
        row.from = row.from * l_.axes[axis].source() + tuple[axis];
        row.to += step * l_.pitch[axis];
        phase = phase * l_.axes[axis].phases + place.phase;
      }
      row.from *= plan.source_row_size();
      row.to += phase * l_.last().phases * l_.phase_size;
      source_rows[source_row_count++] = row;
    });
  }

  SourceRow* source_rows = nullptr;
  Index source_row_count = 0;
  SourceRun* source_runs = nullptr;
  Index run_count = 0;
  DestRow* dest_rows = nullptr;
  Index dest_row_count = 0;
  Index dest_begin = 0;    ///< of the block in its plane
  Index dest_numbers = 0;  ///< of the block
  Taps rows;               ///< by class of the row; phases are those of the axes above the rows
  Taps columns;            ///< by class of the column

 private:
  void list_row_taps() {
    const int outer = l_.rank - 1;
    const Index none[kMaxSpatialRank] = {};
    Index classes[kMaxSpatialRank] = {};
    for (int axis = 0; axis < outer; ++axis) {
      classes[axis] = l_.axes[axis].dest_classes();
    }
    Index next = 0;
    Index c = 0;
    for_each_tuple(outer, none, classes, [&](const Index* tuple) {
      rows.begin[c++] = next;
      next = append_row_taps(0, tuple, Tap{}, next);
    });
    rows.begin[c] = next;
  }
  Index append_row_taps(int axis, const Index* tuple, const Tap& so_far, Index next) {
    if (axis == l_.rank - 1) {
      rows.taps[next] = so_far;
      return next + 1;
    }
    const PlaneAxis& a = l_.axes[axis];
    a.for_each_tap(tuple[axis], [&](Index phase, Index distance, Index tap) {
      next = append_row_taps(axis + 1,
                             tuple,
                             {so_far.phase * a.phases + phase,
                              so_far.distance + distance * l_.pitch[axis],
                              so_far.tap * a.a.kernel + tap},
                             next);
    });
    return next;
  }

  const PlaneLayout& l_;
};

/// Taps and strides up to this: the lists of a block take taps times stride to make, and rows sum
/// large windows in fewer steps.
inline constexpr Index kMostPlaneTaps = 16;

/// Why planes cannot be stored, or null where they can.
inline const char* refuse_planes(const Plan& plan) {
  if (plan.inner != 1) {
    return "needs one number per cell";
  }
  for (int axis = 0; axis < plan.windows.rank(); ++axis) {
    const WindowAxis& a = plan.windows[axis];
    if (a.rule == ExtentRule::adaptive) {
      return "bins of unequal size";
    }
    if (a.kernel > kMostPlaneTaps || a.stride > kMostPlaneTaps) {
      return "needs windows and strides of at most 16";
    }
  }
  return nullptr;
}

/// True where planes are faster than rows by themselves: what a row costs beside its numbers is
/// saved, but every number is copied. Measured on AVX2 from 8 to 300 numbers a row, f32 and f64:
/// forward the two meet at 320 to 448 bytes, in the adjoint at 640 to 900; on AVX-512 3x3 stride 2
/// maxima of 448 bytes take 177 us stored and 263 us as rows, 2x2 averages as long either way.
/// Where windows overlap, the rows of the adjoint read every window again for each of its cells,
/// and planes stay ahead.
inline bool has_short_rows(const Plan& plan, Index bytes_per_number) {
  constexpr Index kForward = 448;
  constexpr Index kAdjoint = 768;
  const WindowAxis& a = plan.last();
  const Index bytes = a.in * bytes_per_number;
  return plan.to_cells ? bytes <= kAdjoint || a.shared() > 0 : bytes <= kForward;
}

/// Calls run(begin, end) over the groups of planes of all blocks, on all threads: item i is block
/// i / groups of group i % groups.
template <class Run>
void for_plane_groups(const Plan& plan, const PlaneLayout& layout, const Run& run) {
  if (plan.dest_plane_size() == 0) {
    return;
  }
  const Index size = std::max(plan.dest_plane_size(), plan.source_plane_size());
  const Index items = layout.groups(plan) * layout.blocks;
  parallel_for(items, grain_of(items, size * layout.planes_per_group / layout.blocks), run);
}

}  // namespace fenestra::pooling
