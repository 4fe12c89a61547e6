// One call of a kernel, and the kernels by algorithm: what candidates.cpp chooses from. Internal:
// not installed.
//
// An algorithm is one way to walk over windows; it is compiled for the reductions it serves, for
// every instruction set, and runs on the best one here.
#pragma once

#include <fenestra/ops/pool/kernels/divisors.hpp>
#include <fenestra/ops/pool/kernels/planes.hpp>
#include <fenestra/ops/pool/kernels/tiles.hpp>
#include <fenestra/ops/pool/pool.hpp>

#include <type_traits>
#include <variant>

namespace fenestra::pooling {

/// What a reduction's kernels know beside the windows.
template <class R>
struct CallData {
  CallData(const Plan&, const ReducedGeometry<R>&) {}
};
template <>
struct CallData<MaxReduction> {
  bool pad_zero;

  CallData(const Plan&, const MaxPoolGeometry& g) : pad_zero(g.pad_cells == PadCells::zero) {}
};
template <>
struct CallData<AverageReduction> {
  Divisors divisors;

  CallData(const Plan& plan, const AvgPoolGeometry& g) : divisors(plan, g) {}
};
template <>
struct CallData<SmoothMaxReduction> {
  bool pad_zero;
  bool normalised;
  Plan windows;  ///< always windows from cells

  CallData(const Plan&, const SmoothMaxPoolGeometry& g)
      : pad_zero(g.pad_cells == PadCells::zero),
        normalised(g.normalised),
        windows(g.pool, false, pad_zero) {}
};

/// Windows from cells, and cells from windows for a spread.
template <class R>
Plan plan_of(const PoolProblem<R>& problem) {
  const bool spread = problem.direction == PoolDirection::spread;
  bool pad_zero = false;
  if constexpr (requires { problem.geometry.pad_cells; }) {
    pad_zero = problem.geometry.pad_cells == PadCells::zero;
  }
  return Plan(problem.geometry.pool, spread, pad_zero && !spread);
}

template <class T, class R>
struct Call : CallData<R> {
  const PoolProblem<R>& problem;
  PoolArguments<T> args;
  Plan plan;
  Tiling tiling;       ///< of rows
  PlaneLayout layout;  ///< of planes

  Call(const PoolProblem<R>& of, const PoolArguments<T>& arguments)
      : Call(of, arguments, plan_of(of)) {}

 private:
  Call(const PoolProblem<R>& of, const PoolArguments<T>& arguments, const Plan& as)
      : CallData<R>(as, of.geometry), problem(of), args(arguments), plan(as) {}
};

/// A call of one of the reductions, so that an algorithm is one function for all of them.
template <class... Rs>
using CallOf = std::variant<const Call<float, Rs>*..., const Call<double, Rs>*...>;

/// Numbers that a stored window or cell takes in planes.
template <class R>
Index stored_numbers(const Plan& plan) {
  if constexpr (std::is_same_v<R, MaxReduction>) {
    return plan.to_cells ? 2 : 1;  // the value and its winner
  } else {
    // The number and its sums: one, or one per class of the columns.
    return 1 + (plan.to_cells ? std::min(plan.last().stride, kMostPlaneBytes) : 1);
  }
}

// --- The algorithms ------------------------------

/// Planes [begin, end) that are one window each.
void run_whole_on(const CallOf<MaxReduction, AverageReduction, LpReduction>& call,
                  Index begin,
                  Index end);
/// Rows of positions [begin, end): across the channels of a position, or one number at a time.
void run_channels_on(const CallOf<MaxReduction, AverageReduction, LpReduction>& call,
                     Index begin,
                     Index end);
void run_generic_on(const CallOf<MaxReduction, AverageReduction, LpReduction>& call,
                    Index begin,
                    Index end);
/// Destination rows [begin, end) of all planes, channels last.
void run_sweep_on(const CallOf<AverageReduction, LpReduction>& call, Index begin, Index end);
/// Groups [begin, end) of planes stored by phase.
void run_planes_on(const CallOf<MaxReduction>& call, Index begin, Index end);
void run_planes_on(const CallOf<AverageReduction>& call, Index begin, Index end);
/// Tiles [begin, end) of rows; and the numbers that a prepared row of so many columns takes.
void run_rows_on(const CallOf<MaxReduction>& call, Index begin, Index end);
void run_rows_on(const CallOf<AverageReduction, LpReduction>& call, Index begin, Index end);
void run_rows_on(const CallOf<SmoothMaxReduction>& call, Index begin, Index end);
Index slot_numbers(const CallOf<MaxReduction>& call, Index columns);
Index slot_numbers(const CallOf<AverageReduction, LpReduction>& call, Index columns);
Index slot_numbers(const CallOf<SmoothMaxReduction>& call, Index columns);
/// The winners' gather, all of it.
template <class T>
void run_gather(const PoolProblem<MaxReduction>& problem, const PoolArguments<T>& args);

}  // namespace fenestra::pooling
