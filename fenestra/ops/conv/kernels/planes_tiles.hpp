// The vector loops of depthwise convolutions on planes. Internal: not installed. They know a sheet,
// a copy of some source rows with the zeros around them; planes.cpp says which rows and taps.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/window_walk.hpp>

namespace fenestra::detail {

/// Rows of a source plane on their way into a sheet. Columns of a sheet row are dealt to `step`
/// phases, so that cells `step` columns apart are neighbours. Cells beside the source are not
/// written: they are zeros from the beginning.
template <class T>
struct SheetFill {
  const T* plane = nullptr;
  Index source_rows = 0;
  Index source_width = 0;
  Index first_row = 0;  ///< source row of the first sheet row, may lie outside
  Index rows = 0;
  Index source_column = 0;  ///< the first column that is seen
  Index sheet_column = 0;   ///< where it goes
  Index columns = 0;        ///< that are seen
  Index step = 1;
  Index phase_pitch = 0;
  T* sheet = nullptr;

  Index pitch() const { return step * phase_pitch; }
  Dealing dealing() const { return {step}; }
};

/// A tap: where it finds the cell of place 0, and its weight.
struct PlaneTap {
  Index source = 0;
  Index weight = 0;
};

/// Taps that all places of a phase see. Where they are `columns` column taps times `rows` row taps
/// on neighbouring rows of the sheet, a row that is loaded serves several target rows.
struct PlaneTaps {
  const PlaneTap* tap = nullptr;  ///< column by column, in each the rows downwards
  Index count = 0;
  Index columns = 0;
  Index rows = 0;         ///< 0: they are no such rectangle
  Index weight_step = 0;  ///< from a row tap to the next
};

/// Places of a phase: out[r][q] = bias + sum over taps of the sheet times the weights.
template <class T>
struct PlaneRun {
  const T* sheet = nullptr;  ///< of place 0, before the taps' own offsets
  Index pitch = 0;
  Index step = 1;  ///< sheet rows from a row of places to the next
  Index rows = 0;
  Index width = 0;
  PlaneTaps taps = {};
  const T* weights = nullptr;
  T bias = T(0);
  T* out = nullptr;
  Index out_pitch = 0;
};

/// sums[tap][lane] += the sheet's cells that a tap sees times those of y, lane by lane.
template <class T>
struct PlaneDots {
  const T* sheet = nullptr;
  Index pitch = 0;
  Index step = 1;
  Index rows = 0;
  Index width = 0;
  PlaneTaps taps = {};
  const T* y = nullptr;      ///< [rows][width]
  const T* y_end = nullptr;  ///< where the tensor ends
  T* sums = nullptr;         ///< [tap][lanes]
};

/// The loops for one instruction set.
template <class T>
struct PlaneLoops {
  Index lanes = 0;
  void (*fill)(const SheetFill<T>&) = nullptr;
  void (*run)(const PlaneRun<T>&) = nullptr;
  void (*add_dots)(const PlaneDots<T>&) = nullptr;
  /// to[i * phases + p] = from[p * pitch + i], to[count - 1] being the last.
  void (*join)(const T* from, Index pitch, Index phases, Index count, T* to) = nullptr;
  T (*sum_of_lanes)(const T* lanes) = nullptr;
};

/// Those of the best instruction set of this machine.
template <class T>
const PlaneLoops<T>& plane_loops();
template <>
const PlaneLoops<float>& plane_loops();
template <>
const PlaneLoops<double>& plane_loops();

}  // namespace fenestra::detail
