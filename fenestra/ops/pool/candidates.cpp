// The candidates of the pools: which algorithm serves which reduction, what each of them refuses,
// and how a chosen one runs on all threads.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/pool/candidates.hpp>
#include <fenestra/ops/pool/kernels/call.hpp>
#include <fenestra/ops/pool/kernels/positions.hpp>
#include <fenestra/ops/pool/kernels/sweep.hpp>

#include <array>
#include <string>

namespace fenestra {
namespace pooling {
namespace {

enum class Algorithm { gather, whole, sweep, channels, planes, rows, generic, spec };

constexpr std::string_view name_of(Algorithm algorithm) {
  constexpr std::string_view names[] = {
      "gather", "whole", "sweep", "channels", "planes", "rows", "generic", "spec"};
  return names[static_cast<int>(algorithm)];
}

/// "max_pool_f32_rows"
template <class T, class R, Algorithm algorithm>
struct CandidateName {
  static constexpr std::string_view dtype = std::is_same_v<T, float> ? "_f32_" : "_f64_";
  static constexpr std::string_view last = name_of(algorithm);
  static constexpr auto chars = [] {
    std::array<char, R::op.size() + dtype.size() + last.size()> text{};
    auto to = text.begin();
    for (const std::string_view part : {R::op, dtype, last}) {
      to = std::copy(part.begin(), part.end(), to);
    }
    return text;
  }();
  static constexpr std::string_view value{chars.data(), chars.size()};
};

// --- Refusals ------------------------------

/// Why none of the vector kernels but the gather serves a reduction, or null.
const char* refuse_reduction(const PoolProblem<MaxReduction>& problem) {
  return problem.direction == PoolDirection::mix ? "forward and scatter only" : nullptr;
}
const char* refuse_reduction(const PoolProblem<AverageReduction>&) { return nullptr; }
const char* refuse_reduction(const PoolProblem<SmoothMaxReduction>&) { return nullptr; }
const char* refuse_reduction(const PoolProblem<LpReduction>& problem) {
  const double p = problem.geometry.p;
  return p == 1.0 || p == 2.0 ? nullptr : "needs p = 1 or p = 2: other powers are all the cost";
}

/// True where some window sees no real cell: only those that start outside can.
bool has_empty_window(const WindowAxis& a) {
  for (Index o = 0; o < a.out && a.window(o).first < 0; ++o) {
    if (real_taps(a.window(o), a.in) == 0) {
      return true;
    }
  }
  return a.window(a.out - 1).first >= a.in;
}

/// What stored planes do not hold: padding that counts as zero, and windows without a cell.
const char* refuse_stored(const PoolProblem<MaxReduction>& problem, const Plan& plan) {
  if (plan.to_cells) {
    return nullptr;
  }
  if (problem.geometry.pad_cells == PadCells::zero) {
    return "padding counts as zero";
  }
  for (int axis = 0; axis < plan.windows.rank(); ++axis) {
    if (has_empty_window(plan.windows[axis])) {
      return "a window has no cell";
    }
  }
  return nullptr;
}
const char* refuse_stored(const PoolProblem<AverageReduction>&, const Plan&) { return nullptr; }

template <class T, class R>
PlaneLayout layout_of(const Plan& plan) {
  return {plan, static_cast<Index>(sizeof(T)) * stored_numbers<R>(plan)};
}

template <class T, class R>
const char* planes_lack(const PoolProblem<R>& problem) {
  const Plan plan = plan_of(problem);
  if (const char* reason = refuse_planes(plan)) {
    return reason;
  }
  return layout_of<T, R>(plan).fits ? refuse_stored(problem, plan) : "planes too large to store";
}

/// True where windows have few cells and twice as many taps: the others are stored and compared for
/// nothing. 5x6 stride 2, 3 of 7x2, padded to 7x6: planes take 2.5 times the time of lists forward
/// and 2 to 3.7 times in the adjoint.
bool is_mostly_padding(const Plan& plan) {
  constexpr Index kFewVisits = 64;
  Index cells = 1;
  for (int axis = 0; axis < plan.windows.rank(); ++axis) {
    cells *= most_links(plan.windows[axis], false, false);
  }
  return 2 * cells <= plan.windows.taps() && cells * plan.windows.out_cells() <= kFewVisits;
}

template <class T>
const char* slow_as_planes(const Plan& plan) {
  if (is_mostly_padding(plan)) {
    return "windows are mostly padding";
  }
  if (!has_short_rows(plan, sizeof(T))) {
    return "rows are long enough by themselves";
  }
  // Of 55 random problems like that the generic kernel is slower in 8.
  if (!plan.to_cells && plan.dest_plane_size() <= 32 && plan.source_rows() >= 16) {
    return "few windows of many rows";
  }
  return nullptr;
}

/// True where windows read so little of a row that lists of single positions are shorter. Of 203
/// random forward problems with up to 14 numbers the generic kernel is slower in 32, of 34 adjoint
/// ones with up to 6 in one.
bool reads_little_of_rows(const Plan& plan) {
  const Index most = plan.to_cells ? 6 : 14;
  const WindowAxis& a = plan.last();
  return a.out <= most && a.kernel <= most && plan.inner <= most &&
         a.out * a.kernel * plan.inner <= most;
}

/// True where rows are faster than lists of taps with channels last. Vectors of channels need two
/// lines of memory to pay for a list (2x2 stride 2 of 48 @28: 1.6 times the time of rows, of 64 as
/// fast), in the adjoint of overlapping windows one. Forward, rows reduce what stride 1 windows
/// share once, as long as that stays in the nearest caches: 3x3 max of 64 @28 takes 3.2 times the
/// time of rows, of 128 @28 1.7 times, of 128 @56 as long.
template <class T>
bool rows_beat_channels(const PoolGeometry& g, const Plan& plan) {
  constexpr Index kVectorBytes = 256;
  constexpr Index kRowBytes = 16 * 1024;
  constexpr Index kWindowBytes = 96 * 1024;
  if (g.is_empty() || plan.refuse_rows() != nullptr) {
    return false;
  }
  const WindowAxis& a = plan.last();
  const Index bytes = g.channels * static_cast<Index>(sizeof(T));
  if (bytes < kVectorBytes && !(plan.to_cells && a.span() >= 2 * a.stride)) {
    return true;
  }
  const Index row_bytes = bytes * a.in;
  return !plan.to_cells && a.stride == 1 && a.kernel > 1 && row_bytes <= kRowBytes &&
         plan.windows.taps() / a.kernel <= kWindowBytes / row_bytes;
}

const char* refuse_few_channels(const PoolGeometry& g) {
  return g.layout == Layout::channels_last && g.channels >= kFewChannels
             ? nullptr
             : "needs channels last and at least 32 channels";
}

/// Why an algorithm cannot do a problem, or null.
template <class T, class R, Algorithm algorithm>
const char* lacks(const PoolProblem<R>& problem) {
  const PoolGeometry& g = problem.geometry.pool;
  if constexpr (algorithm == Algorithm::spec) {
    return nullptr;
  } else if constexpr (algorithm == Algorithm::gather) {
    return problem.direction == PoolDirection::mix ? nullptr : "reads at winners only";
  } else if constexpr (algorithm == Algorithm::generic && std::is_same_v<R, LpReduction>) {
    return nullptr;  // takes any power
  } else {
    if (const char* reason = refuse_reduction(problem)) {
      return reason;
    }
    if constexpr (algorithm == Algorithm::whole) {
      return is_whole(g) ? nullptr : "needs channels first and one window per plane";
    } else if constexpr (algorithm == Algorithm::sweep) {
      if (const char* reason = refuse_few_channels(g)) {
        return reason;
      }
      return g.is_empty() ? nullptr : refuse_sweep(plan_of(problem));
    } else if constexpr (algorithm == Algorithm::channels) {
      return refuse_few_channels(g);
    } else if constexpr (algorithm == Algorithm::planes) {
      return planes_lack<T>(problem);
    } else if constexpr (algorithm == Algorithm::rows) {
      return Plan(g, false).refuse_rows();
    } else {
      return nullptr;
    }
  }
}

/// The same, or why another algorithm is faster.
template <class T, class R, Algorithm algorithm>
const char* refuse(const PoolProblem<R>& problem) {
  const char* reason = lacks<T, R, algorithm>(problem);
  if (reason != nullptr) {
    return reason;
  }
  if constexpr (algorithm == Algorithm::channels) {
    reason = rows_beat_channels<T>(problem.geometry.pool, plan_of(problem)) ? "rows are faster"
                                                                            : nullptr;
  } else if constexpr (algorithm == Algorithm::planes) {
    reason = slow_as_planes<T>(plan_of(problem));
  } else if constexpr (algorithm == Algorithm::rows && !std::is_same_v<R, SmoothMaxReduction>) {
    // Smooth maxima have no other kernel.
    reason = reads_little_of_rows(plan_of(problem)) ? "windows read little of a row" : nullptr;
  }
  return reason;
}

// --- Runs ------------------------------

/// The specification on copies of the arguments.
template <class T>
Tensor<T> copy_of(const T* data, const Shape& shape) {
  return Tensor<T>(shape, std::span<const T>(data, static_cast<std::size_t>(*shape.elements())));
}
template <class T>
void run_spec(const PoolProblem<AverageReduction>& problem, const PoolArguments<T>& args) {
  const AvgPoolGeometry& g = problem.geometry;
  const bool forward = problem.direction == PoolDirection::forward;
  const Tensor<T> in = copy_of(args.in, forward ? g.pool.x_shape() : g.pool.y_shape());
  store(forward ? spec::avg_pool(in, g) : spec::avg_pool_vjp(in, g), args.out);
}
template <class T>
void run_spec(const PoolProblem<LpReduction>& problem, const PoolArguments<T>& args) {
  const LpPoolGeometry& g = problem.geometry;
  store(spec::lp_pool(copy_of(args.in, g.pool.x_shape()), g), args.out);
}
template <class T>
void run_spec(const PoolProblem<SmoothMaxReduction>& problem, const PoolArguments<T>& args) {
  const SmoothMaxPoolGeometry& g = problem.geometry;
  const Tensor<T> x = copy_of(args.in, g.pool.x_shape());
  const Tensor<T> beta(Shape{}, args.beta);
  if (problem.direction == PoolDirection::spread) {
    store(spec::smooth_spread(x, beta, copy_of(args.v, g.pool.y_shape()), g), args.out);
  } else if (problem.direction == PoolDirection::mix) {
    store(spec::smooth_mix(x, beta, copy_of(args.v, g.pool.x_shape()), g), args.out);
  } else {
    store(spec::smooth_max_pool(x, beta, g, problem.direction), args.out);
  }
}
/// Winners are taps here, cells there.
template <class T>
void run_spec(const PoolProblem<MaxReduction>& problem, const PoolArguments<T>& args) {
  const MaxPoolGeometry& g = problem.geometry;
  const auto each_tap = [&](const auto& f) {
    spec::for_each_window(g.pool, [&](Index n, Index c, Index o) {
      const Index at = g.pool.y_map().at(n, c, o);
      for_each_tap(g.pool.windows, o, Visit::real, [&](const Tap& tap) { f(at, tap); });
    });
  };
  if (problem.direction == PoolDirection::forward) {
    const Tensor<T> x = copy_of(args.in, g.pool.x_shape());
    const Tensor<Index> indices = spec::max_pool_indices(x, g);
    store(spec::gather(x, indices, g.pool.x_map(), g.pool.y_map()), args.out);
    if (args.winners_out != nullptr) {
      std::fill_n(args.winners_out, indices.size(), kNoWinner);
      each_tap([&](Index at, const Tap& tap) {
        if (tap.cell == indices[at]) {
          args.winners_out[at] = static_cast<WinnerTap>(tap.tap);
        }
      });
    }
    return;
  }
  Tensor<Index> indices(g.pool.y_shape(), spec::kNowhere);
  Index* cells = indices.mutable_data();
  each_tap([&](Index at, const Tap& tap) {
    if (args.winners_in[at] != kNoWinner && tap.tap == args.winners_in[at]) {
      cells[at] = tap.cell;
    }
  });
  store(problem.direction == PoolDirection::mix
            ? spec::max_pool_jvp(indices, copy_of(args.in, g.pool.x_shape()), g)
            : spec::max_pool_vjp(indices, copy_of(args.in, g.pool.y_shape()), g),
        args.out);
}

template <class T, class R, Algorithm algorithm>
void run(const PoolProblem<R>& problem, const PoolArguments<T>& args) {
  if constexpr (algorithm == Algorithm::spec) {
    run_spec(problem, args);
  } else if constexpr (algorithm == Algorithm::gather) {
    run_gather(problem, args);
  } else {
    Call<T, R> call(problem, args);
    if constexpr (algorithm == Algorithm::whole) {
      const Index size = std::max(call.plan.dest_plane_size(), call.plan.source_plane_size());
      parallel_for(call.plan.planes, grain_of(call.plan.planes, size), [&](Index b, Index e) {
        run_whole_on(&call, b, e);
      });
    } else if constexpr (algorithm == Algorithm::sweep) {
      for_positions(call.plan, 1, [&](Index b, Index e) { run_sweep_on(&call, b, e); });
    } else if constexpr (algorithm == Algorithm::channels) {
      for_positions(call.plan, 1, [&](Index b, Index e) { run_channels_on(&call, b, e); });
    } else if constexpr (algorithm == Algorithm::generic) {
      for_positions(
          call.plan, kGenericPlanes, [&](Index b, Index e) { run_generic_on(&call, b, e); });
    } else if constexpr (algorithm == Algorithm::planes) {
      call.layout = layout_of<T, R>(call.plan);
      for_plane_groups(
          call.plan, call.layout, [&](Index b, Index e) { run_planes_on(&call, b, e); });
    } else {
      call.tiling = make_tiling(call.plan, [&](Index columns) {
        return slot_numbers(&call, columns) * static_cast<Index>(sizeof(T));
      });
      for_tiles(call.plan, call.tiling, [&](Index b, Index e) { run_rows_on(&call, b, e); });
    }
  }
}

// --- The lists ------------------------------

/// Fastest first.
template <class T, class R, Algorithm... algorithms>
constexpr PoolKernel<T, R> kCandidates[] = {{.name = CandidateName<T, R, algorithms>::value,
                                             .refuse = refuse<T, R, algorithms>,
                                             .run = run<T, R, algorithms>,
                                             .lacks = lacks<T, R, algorithms>}...};

template <class T>
constexpr std::span<const PoolKernel<T, MaxReduction>> list_of(MaxReduction) {
  using enum Algorithm;
  return kCandidates<T, MaxReduction, gather, whole, channels, planes, rows, generic, spec>;
}
template <class T>
constexpr std::span<const PoolKernel<T, AverageReduction>> list_of(AverageReduction) {
  using enum Algorithm;
  return kCandidates<T, AverageReduction, whole, sweep, channels, planes, rows, generic, spec>;
}
template <class T>
constexpr std::span<const PoolKernel<T, LpReduction>> list_of(LpReduction) {
  using enum Algorithm;
  return kCandidates<T, LpReduction, whole, sweep, channels, rows, generic, spec>;
}
template <class T>
constexpr std::span<const PoolKernel<T, SmoothMaxReduction>> list_of(SmoothMaxReduction) {
  using enum Algorithm;
  return kCandidates<T, SmoothMaxReduction, rows, spec>;
}

}  // namespace
}  // namespace pooling

template <class T, class R>
std::span<const PoolKernel<T, R>> pool_candidates() {
  return pooling::list_of<T>(R{});
}

template <KernelScalar T, class R>
const PoolKernel<T, R>& choose_pool(const PoolProblem<R>& problem) {
  return kernels::choose(pool_candidates<T, R>(), problem);
}

template <KernelScalar T, class R>
void run_pool(const PoolKernel<T, R>& kernel,
              const PoolProblem<R>& problem,
              const PoolArguments<T>& args) {
  if (!problem.geometry.pool.is_empty()) {
    kernel.run(problem, args);
  }
}

template <class R>
std::vector<KernelChoice> pool_kernels(const ReducedGeometry<R>& g) {
  std::vector<KernelChoice> choices;
  for (int i = 0; i < kPoolDirections; ++i) {
    if (R::names[i].empty()) {
      continue;
    }
    const std::string direction(i == 0 ? "forward" : R::names[i].substr(R::op.size() + 1));
    const PoolProblem<R> problem{static_cast<PoolDirection>(i), g};
    const auto note = [&](const auto& candidate, const char* refusal) {
      choices.push_back({direction,
                         std::string(candidate.name),
                         refusal != nullptr ? refusal : "",
                         candidate.can_run(problem)});
    };
    kernels::for_each_candidate(pool_candidates<float, R>(), problem, note);
    kernels::for_each_candidate(pool_candidates<double, R>(), problem, note);
  }
  return choices;
}

#define FENESTRA_POOL_CANDIDATES_FOR(R, T)                                          \
  template std::span<const PoolKernel<T, R>> pool_candidates<T, R>();               \
  template FENESTRA_API const PoolKernel<T, R>& choose_pool(const PoolProblem<R>&); \
  template FENESTRA_API void run_pool(                                              \
      const PoolKernel<T, R>&, const PoolProblem<R>&, const PoolArguments<T>&);
#define FENESTRA_POOL_CANDIDATES(R)       \
  FENESTRA_POOL_CANDIDATES_FOR(R, float)  \
  FENESTRA_POOL_CANDIDATES_FOR(R, double) \
  template FENESTRA_API std::vector<KernelChoice> pool_kernels(const ReducedGeometry<R>&);

FENESTRA_POOL_CANDIDATES(MaxReduction)
FENESTRA_POOL_CANDIDATES(AverageReduction)
FENESTRA_POOL_CANDIDATES(LpReduction)
FENESTRA_POOL_CANDIDATES(SmoothMaxReduction)

}  // namespace fenestra
