// The geometry every pool shares: windows over each channel of an activation. The pools' own
// options sit on top of it.
//
// Options structs of the pools repeat the window fields instead of inheriting them, so that
// designated initialisers work; the templates here read those fields by name.
#pragma once

#include <fenestra/ops/geometry.hpp>
#include <fenestra/tensor/split.hpp>

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

/// A pool's primitive on `count` samples.
template <class P>
P pool_piece(P primitive, Index count) {
  primitive.g.pool.batch = count;
  return primitive;
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

/// Sizes of x by layout, into the geometry; the fault where they are impossible.
constexpr Resolved<ActivationShape> start_pool(PoolGeometry& g,
                                               const Shape& x,
                                               int rank,
                                               Layout layout) {
  g.layout = layout;
  if (rank < 1 || rank > kMaxSpatialRank) {
    return {{}, {ErrorCode::rank_mismatch, Argument::kernel, -1, rank, kMaxSpatialRank}};
  }
  auto input = split_activation(x, rank, layout);
  g.batched = input.geometry.batched;
  g.batch = input.geometry.batch;
  g.channels = input.geometry.channels;
  return input;
}

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

}  // namespace detail

/// Windows from `options` with the fields kernel, stride (default: kernel), padding, dilation,
/// ceil_mode, layout.
template <class Options>
constexpr Resolved<PoolGeometry> resolve_pool(const Shape& x,
                                              const Options& options,
                                              int named_rank = 0) {
  Resolved<PoolGeometry> result;
  PoolGeometry& g = result.geometry;
  Fault& fault = result.fault;
  const int rank = pool_rank(x, options.kernel, named_rank);
  const auto input = detail::start_pool(g, x, rank, options.layout);
  if ((fault = input.fault)) {
    return result;
  }
  const PerAxis& stride = options.stride.is_given() ? options.stride : options.kernel;
  if ((fault = check_fits(options.kernel, rank, Argument::kernel))) {
    return result;
  }
  if ((fault = check_fits(stride, rank, Argument::stride))) {
    return result;
  }
  if ((fault = check_fits(options.padding, rank))) {
    return result;
  }
  if ((fault = check_fits(options.dilation, rank, Argument::dilation))) {
    return result;
  }
  for (int axis = 0; axis < rank; ++axis) {
    const auto resolved = resolve_sliding(axis_request(input.geometry.spatial[axis],
                                                       options.kernel[axis],
                                                       stride,
                                                       options.padding,
                                                       options.dilation,
                                                       axis),
                                          axis,
                                          options.ceil_mode ? ExtentRule::ceil : ExtentRule::floor);
    g.windows.push_back(resolved.axis);
    if ((fault = resolved.fault)) {
      return result;
    }
  }
  fault = detail::check_pool_counts(g);
  return result;
}

/// Bins from `options` with the fields output_size, layout.
template <class Options>
constexpr Resolved<PoolGeometry> resolve_adaptive_pool(const Shape& x,
                                                       const Options& options,
                                                       int named_rank = 0) {
  Resolved<PoolGeometry> result;
  PoolGeometry& g = result.geometry;
  Fault& fault = result.fault;
  const int rank = pool_rank(x, options.output_size, named_rank);
  const auto input = detail::start_pool(g, x, rank, options.layout);
  if ((fault = input.fault)) {
    return result;
  }
  if ((fault = check_fits(options.output_size, rank, Argument::output_size))) {
    return result;
  }
  for (int axis = 0; axis < rank; ++axis) {
    const auto resolved =
        resolve_adaptive(input.geometry.spatial[axis], options.output_size[axis], axis);
    g.windows.push_back(resolved.axis);
    if ((fault = resolved.fault)) {
      return result;
    }
  }
  fault = detail::check_pool_counts(g);
  return result;
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

/// The window fields of a problem string; " batched=false" tells a single sample from a batch of
/// one axis less.
inline std::string pool_text(const PoolGeometry& g) {
  const Windows& w = g.windows;
  std::string text = "x=" + problem_text(g.x_shape()) + " ";
  if (w[0].rule == ExtentRule::adaptive) {
    text += "output_size=" + problem_text(w, &WindowAxis::out);
  } else {
    text += "kernel=" + problem_text(w, &WindowAxis::kernel) +
            " stride=" + problem_text(w, &WindowAxis::stride) + " padding=" + padding_text(w) +
            " dilation=" + problem_text(w, &WindowAxis::dilation);
    if (w[0].rule == ExtentRule::ceil) {
      text += " ceil_mode=true";
    }
  }
  if (g.layout == Layout::channels_last) {
    text += " layout=channels_last";
  }
  if (!g.batched) {
    text += " batched=false";
  }
  return text;
}

/// The rank a problem string names by `batched=`, 0 where it leaves it to the window sizes.
inline int problem_rank(Problem& problem, const Shape& x) {
  if (!problem.has("batched")) {
    return 0;
  }
  return problem.flag("batched", true) ? x.rank() - 2 : x.rank() - 1;
}

/// Reads the window fields into a pool's options.
template <class Options>
void read_pool_options(Problem& problem, Options& options) {
  options.kernel = problem.per_axis("kernel", PerAxis());
  if (!options.kernel.is_given()) {
    problem.axis_list("kernel");  // reports the missing field
  }
  options.stride = problem.per_axis("stride", PerAxis());
  options.padding = problem.padding("padding");
  options.dilation = problem.per_axis("dilation", 1);
  options.ceil_mode = problem.flag("ceil_mode", false);
  options.layout = problem.layout();
}

constexpr std::size_t hash_value(const PoolGeometry& g) {
  std::size_t seed = hash_value(g.windows);
  for (const Index value :
       {static_cast<Index>(g.batched), g.batch, g.channels, static_cast<Index>(g.layout)}) {
    seed = detail::hash_combine(seed, value);
  }
  return seed;
}

}  // namespace fenestra
