// The algorithm "gather", plain code: max pooling's mix, which reads at the winners.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/pool/kernels/call.hpp>
#include <fenestra/ops/pool/kernels/positions.hpp>

#include <algorithm>
#include <cstdint>

namespace fenestra::pooling {

/// y_dot: one read per window. Where windows slide, the tap gives the distance from the window's
/// first cell; bins have no padding, so the tap numbers their cells.
template <class T>
void run_gather(const PoolProblem<MaxReduction>& problem, const PoolArguments<T>& args) {
  const Plan plan(problem.geometry.pool, false);
  bool slides = true;
  for (int axis = 0; axis < plan.windows.rank(); ++axis) {
    slides = slides && plan.windows[axis].rule != ExtentRule::adaptive;
  }
  if (!slides) {
    const auto visit =
        [&](const Entry* entries, Index, Index plane, Index end, Index at, Moved moved) {
          for (; plane < end; ++plane) {
            const T* x = args.in + plane * plan.source_plane_size() + moved.numbers;
            for (Index i = 0; i < plan.inner; ++i) {
              const Index o = plane * plan.dest_plane_size() + at + i;
              const WinnerTap tap = args.winners_in[o];
              args.out[o] = tap == kNoWinner ? T(0) : x[entries[tap].offset + i];
            }
          }
        };
    parallel_for(ceil_div(plan.planes, kGenericPlanes) * plan.dest_rows(),
                 1,
                 [&](Index b, Index e) { run_positions(plan, kGenericPlanes, b, e, visit); });
    return;
  }
  // Taps and windows far outside the input have distances that may not fit, but never those of a
  // winner: unsigned numbers wrap around and come back.
  using Wrapping = std::uint64_t;
  const auto wrapping = [](Index n) { return static_cast<Wrapping>(n); };
  Wrapping distance[kNoWinner + 1] = {};
  const Index taps = std::min<Index>(plan.windows.taps(), kNoWinner);
  Wrapping pitch[kMaxSpatialRank] = {};
  Wrapping origin = 0;
  Wrapping numbers = wrapping(plan.inner);
  for (int axis = plan.windows.rank() - 1; axis >= 0; --axis) {
    const WindowAxis& a = plan.windows[axis];
    pitch[axis] = numbers;
    origin += wrapping(a.window(0).first) * numbers;
    numbers *= wrapping(a.in);
  }
  for (Index tap = 0; tap < taps; ++tap) {
    distance[tap] = tap_distance(plan.windows, tap, pitch);
  }
  const WindowAxis& last = plan.last();
  const auto rows = [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Index plane = i / plan.dest_rows();
      const Index row = i % plan.dest_rows();
      Wrapping first = origin + window_distance(plan.windows, row * last.out, pitch);
      const T* x = args.in + plane * plan.source_plane_size();
      const WinnerTap* winners = args.winners_in + i * plan.dest_row_size();
      T* y = args.out + i * plan.dest_row_size();
      for (Index o = 0; o < last.out; ++o) {
        for (Index c = 0; c < plan.inner; ++c, ++winners, ++y) {
          *y = *winners == kNoWinner ? T(0) : x[first + wrapping(c) + distance[*winners]];
        }
        first += wrapping(last.stride) * wrapping(plan.inner);
      }
    }
  };
  const Index items = plan.planes * plan.dest_rows();
  parallel_for(items, grain_of(items, plan.dest_row_size()), rows);
}

template void run_gather(const PoolProblem<MaxReduction>&, const PoolArguments<float>&);
template void run_gather(const PoolProblem<MaxReduction>&, const PoolArguments<double>&);

}  // namespace fenestra::pooling
