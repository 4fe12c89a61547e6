// The windows that every pool shares, over each channel of an activation: windows that slide, or
// bins that divide the input. What is made of the cells of a window is in reduction.hpp.
//
// Options structs of the pools repeat the window fields instead of inheriting them, so that
// designated initialisers work; the templates here read those fields by name.
#pragma once

#include <fenestra/ops/geometry.hpp>
#include <fenestra/ops/pool/options.hpp>

#include <string>
#include <string_view>

namespace fenestra {

/// Validated windows of one pool. Fixed windows and adaptive bins alike.
struct PoolGeometry {
  Windows windows;
  bool batched = true;
  Index batch = 0;
  Index channels = 0;
  Layout layout = Layout::channels_first;

  constexpr int rank() const { return windows.rank(); }
  /// True where there is nothing to compute: neither cells nor windows, whatever their extents.
  constexpr bool is_empty() const { return batch == 0 || channels == 0; }
  constexpr ActivationMap x_map() const { return {batch, channels, windows.in_cells(), layout}; }
  constexpr ActivationMap y_map() const { return {batch, channels, windows.out_cells(), layout}; }
  constexpr Shape x_shape() const {
    return join_activation({batched, batch, channels, windows.in_shape()}, layout);
  }
  constexpr Shape y_shape() const {
    return join_activation({batched, batch, channels, windows.out_shape()}, layout);
  }

  friend constexpr bool operator==(const PoolGeometry&, const PoolGeometry&) = default;
};

/// Taps of `window` that find one of the cells 0 .. in - 1.
constexpr Index real_taps(const Window& window, Index in) {
  return taps_within(window, 0, in).count();
}

/// The number of spatial axes a pool has: `named_rank` where the operator's name fixes it (2 for
/// `max_pool2d`), else the length of the list that sizes its windows, else all axes of x but batch
/// and channel.
constexpr int pool_rank(const Shape& x, const PerAxis& sizes, int named_rank) {
  if (named_rank > 0) {
    return named_rank;
  }
  return sizes.is_scalar() ? x.rank() - 2 : sizes.count;
}

namespace detail {

/// Every count a pool of these sizes will form, window visits included.
constexpr Fault check_pool_counts(const PoolGeometry& g) {
  if (!g.x_shape().elements() || !g.y_shape().elements()) {
    return kTooLarge;
  }
  Shape work{g.batch, g.channels, g.windows.out_cells()};
  for (int axis = 0; axis < g.rank(); ++axis) {
    const WindowAxis& a = g.windows[axis];
    work.push_back(a.rule == ExtentRule::adaptive ? 1 : a.kernel);
  }
  return work.elements() ? Fault{} : kTooLarge;
}

/// A pool with `rank` spatial axes, `fits` the fault of options that do not fit as many, and
/// resolve_axis(extent of x, axis) the windows of one.
template <class ResolveAxis>
constexpr Resolved<PoolGeometry> resolve_windows(
    const Shape& x, Layout layout, int rank, Fault fits, const ResolveAxis& resolve_axis) {
  Resolved<PoolGeometry> result;
  PoolGeometry& g = result.geometry;
  Fault& fault = result.fault;
  g.layout = layout;
  if (rank < 1 || rank > kMaxSpatialRank) {
    fault = {ErrorCode::rank_mismatch, Argument::kernel, -1, rank, kMaxSpatialRank};
    return result;
  }
  const auto input = split_activation(x, rank, layout);
  g.batched = input.geometry.batched;
  g.batch = input.geometry.batch;
  g.channels = input.geometry.channels;
  if ((fault = input.fault ? input.fault : fits)) {
    return result;
  }
  for (int axis = 0; axis < rank; ++axis) {
    const auto resolved = resolve_axis(input.geometry.spatial[axis], axis);
    g.windows.push_back(resolved.axis);
    if ((fault = resolved.fault)) {
      return result;
    }
  }
  fault = check_pool_counts(g);
  return result;
}

}  // namespace detail

/// Windows from `options` with the fields kernel, stride (default: kernel), padding, dilation,
/// ceil_mode, layout.
template <class Options>
constexpr Resolved<PoolGeometry> resolve_pool(const Shape& x,
                                              const Options& options,
                                              int named_rank = 0) {
  const int rank = pool_rank(x, options.kernel, named_rank);
  const PerAxis& stride = options.stride.is_given() ? options.stride : options.kernel;
  Fault fits = check_fits(options.kernel, rank, Argument::kernel);
  fits = fits ? fits : check_fits(stride, rank, Argument::stride);
  fits = fits ? fits : check_fits(options.padding, rank);
  fits = fits ? fits : check_fits(options.dilation, rank, Argument::dilation);
  return detail::resolve_windows(x, options.layout, rank, fits, [&](Index in, int axis) {
    return resolve_sliding(
        axis_request(in, options.kernel[axis], stride, options.padding, options.dilation, axis),
        axis,
        options.ceil_mode ? ExtentRule::ceil : ExtentRule::floor);
  });
}

/// Bins.
constexpr Resolved<PoolGeometry> resolve_adaptive_pool(const Shape& x,
                                                       const AdaptivePoolOptions& options,
                                                       int named_rank = 0) {
  const int rank = pool_rank(x, options.output_size, named_rank);
  const Fault fits = check_fits(options.output_size, rank, Argument::output_size);
  return detail::resolve_windows(x, options.layout, rank, fits, [&](Index in, int axis) {
    return resolve_adaptive(in, options.output_size[axis], axis);
  });
}

/// The context of a refused pool; `sizes` is the list that fixed its rank.
inline FaultContext pool_context(std::string_view op,
                                 const Shape& x,
                                 Layout layout,
                                 const std::string& options,
                                 const PoolGeometry& g,
                                 int rank,
                                 const Fault& fault) {
  const bool known =
      rank >= 1 && rank <= kMaxSpatialRank && (x.rank() == rank + 1 || x.rank() == rank + 2);
  FaultContext context;
  context.op = op;
  context.shapes.push_back(
      {known ? "x " + activation_label(rank, x.rank() == rank + 2, layout) : "x", x});
  context.options = options;
  context.rank = rank;
  context.axis = faulty_axis(g.windows, fault);
  return context;
}

/// "kernel 3, stride 2, ..." for messages.
template <class Options>
std::string pool_options_text(const Options& options) {
  return "kernel " + options_text(options.kernel) + ", stride " +
         options_text(options.stride.is_given() ? options.stride : options.kernel) + ", padding " +
         options_text(options.padding) + ", dilation " + options_text(options.dilation) +
         (options.ceil_mode ? ", ceil_mode" : "");
}

/// Throws the fault of a pool with fixed windows, if it has one.
template <class Options>
constexpr void throw_pool_fault(std::string_view op,
                                const Shape& x,
                                const Options& options,
                                const PoolGeometry& g,
                                const Fault& fault,
                                int named_rank) {
  if (!fault) {
    return;
  }
  throw make_error(fault,
                   pool_context(op,
                                x,
                                options.layout,
                                pool_options_text(options),
                                g,
                                pool_rank(x, options.kernel, named_rank),
                                fault));
}

/// The bins of the adaptive pool that messages call `op`.
constexpr PoolGeometry adaptive_pool_geometry(std::string_view op,
                                              const Shape& x,
                                              const AdaptivePoolOptions& options,
                                              int named_rank) {
  const auto [geometry, fault] = resolve_adaptive_pool(x, options, named_rank);
  if (fault) {
    throw make_error(fault,
                     pool_context(op,
                                  x,
                                  options.layout,
                                  "output_size " + options_text(options.output_size),
                                  geometry,
                                  pool_rank(x, options.output_size, named_rank),
                                  fault));
  }
  return geometry;
}

/// The window fields of a problem string; " batched=false" tells a single sample from a batch of
/// one axis less.
inline std::string pool_text(const PoolGeometry& g) {
  const Windows& w = g.windows;
  const std::string options =
      w[0].rule == ExtentRule::adaptive
          ? fields_text(AdaptivePoolOptions{.output_size = per_axis_of(w, &WindowAxis::out),
                                            .layout = g.layout})
          : fields_text(MaxPoolOptions{.kernel = per_axis_of(w, &WindowAxis::kernel),
                                       .stride = per_axis_of(w, &WindowAxis::stride),
                                       .padding = padding_of(w),
                                       .dilation = per_axis_of(w, &WindowAxis::dilation),
                                       .ceil_mode = w[0].rule == ExtentRule::ceil,
                                       .layout = g.layout});
  return "x=" + problem_text(g.x_shape()) + options + (g.batched ? "" : " batched=false");
}

/// The rank a problem string names by `batched=`, 0 where it leaves it to the window sizes.
inline int problem_rank(Problem& problem, const Shape& x) {
  if (!problem.has("batched")) {
    return 0;
  }
  return problem.flag("batched", true) ? x.rank() - 2 : x.rank() - 1;
}

inline PoolGeometry parse_adaptive_pool(std::string_view op, Problem problem) {
  const Shape x = problem.shape("x");
  const int rank = problem_rank(problem, x);
  const auto options = problem.options<AdaptivePoolOptions>();
  problem.finish(op);
  return adaptive_pool_geometry(op, x, options, rank);
}

}  // namespace fenestra
