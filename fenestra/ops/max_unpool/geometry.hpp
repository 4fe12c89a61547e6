// Options and geometry of max unpooling: where a pooled tensor's values are placed back.
#pragma once

#include <fenestra/ops/max_unpool/options.hpp>
#include <fenestra/ops/pool/geometry.hpp>

#include <string>

namespace fenestra {

struct MaxUnpoolGeometry {
  bool batched = true;
  Index batch = 0;
  Index channels = 0;
  Shape in;   ///< spatial extents of x and of the indices
  Shape out;  ///< spatial extents of y
  Layout layout = Layout::channels_first;

  constexpr int rank() const { return in.rank(); }
  constexpr ActivationMap x_map() const {
    return {batch, channels, in.elements().value_or(0), layout};
  }
  constexpr ActivationMap y_map() const {
    return {batch, channels, out.elements().value_or(0), layout};
  }
  constexpr Shape x_shape() const {
    return join_activation({batched, batch, channels, in}, layout);
  }
  constexpr Shape y_shape() const {
    return join_activation({batched, batch, channels, out}, layout);
  }

  friend constexpr bool operator==(const MaxUnpoolGeometry&, const MaxUnpoolGeometry&) = default;
};

/// `axis` of the result is the one at fault, for the message.
struct ResolvedUnpool {
  MaxUnpoolGeometry geometry;
  Fault fault;
  WindowAxis axis;
};

constexpr ResolvedUnpool resolve_max_unpool(const Shape& x,
                                            const MaxUnpoolOptions& options,
                                            int named_rank = 0) {
  ResolvedUnpool result;
  MaxUnpoolGeometry& g = result.geometry;
  Fault& fault = result.fault;
  const bool by_size = options.output_size.is_given();
  const PerAxis& sizes = by_size ? options.output_size : options.kernel;
  const int rank = pool_rank(x, sizes, named_rank);
  g.layout = options.layout;
  if (!sizes.is_given() || rank < 1 || rank > kMaxSpatialRank) {
    fault = {ErrorCode::rank_mismatch,
             Argument::kernel,
             -1,
             sizes.is_given() ? rank : 0,
             kMaxSpatialRank};
    return result;
  }
  const auto input = split_activation(x, rank, options.layout);
  if ((fault = input.fault)) {
    return result;
  }
  g.batched = input.geometry.batched;
  g.batch = input.geometry.batch;
  g.channels = input.geometry.channels;
  g.in = input.geometry.spatial;
  if (by_size) {
    if ((fault = check_fits(options.output_size, rank, Argument::output_size))) {
      return result;
    }
  } else {
    if ((fault = check_fits(options.kernel, rank, Argument::kernel))) {
      return result;
    }
    if ((fault = check_fits(options.stride, rank, Argument::stride))) {
      return result;
    }
    if ((fault = check_fits(options.padding, rank))) {
      return result;
    }
  }
  const PerAxis& stride = options.stride.is_given() ? options.stride : options.kernel;
  for (int axis = 0; axis < rank; ++axis) {
    // Placing into a given size is bins from `in` to `out` as far as validity goes; else undo the
    // pool's extent rule.
    const auto resolved =
        by_size
            ? resolve_adaptive(g.in[axis], options.output_size[axis], axis)
            : resolve_transposed(
                  axis_request(g.in[axis], options.kernel[axis], stride, options.padding, 1, axis),
                  axis,
                  0,
                  OptionalIndex());
    result.axis = resolved.axis;
    if ((fault = resolved.fault)) {
      return result;
    }
    g.out.push_back(by_size ? resolved.axis.out : resolved.axis.in);
  }
  if (!g.x_shape().elements() || !g.y_shape().elements()) {
    fault = kTooLarge;
  }
  return result;
}

constexpr MaxUnpoolGeometry max_unpool_geometry(const Shape& x,
                                                const MaxUnpoolOptions& options,
                                                int named_rank = 0) {
  const auto resolved = resolve_max_unpool(x, options, named_rank);
  if (resolved.fault) {
    const bool by_size = options.output_size.is_given();
    const std::string text = by_size ? "output_size " + options_text(options.output_size)
                                     : "kernel " + options_text(options.kernel) + ", padding " +
                                           options_text(options.padding);
    FaultContext context =
        pool_context("max_unpool",
                     x,
                     options.layout,
                     text,
                     {},
                     pool_rank(x, by_size ? options.output_size : options.kernel, named_rank),
                     resolved.fault);
    context.axis = resolved.axis;
    throw make_error(resolved.fault, context);
  }
  return resolved.geometry;
}

inline std::string to_string(const MaxUnpoolGeometry& g) {
  MaxUnpoolOptions options{.layout = g.layout};
  for (const Index extent : g.out) {
    options.output_size.push_back(extent);
  }
  return "x=" + problem_text(g.x_shape()) + fields_text(options) +
         (g.batched ? "" : " batched=false");
}

inline MaxUnpoolGeometry parse_max_unpool(Problem problem) {
  const Shape x = problem.shape("x");
  const int rank = problem_rank(problem, x);
  const auto options = problem.options<MaxUnpoolOptions>();
  problem.finish("max_unpool");
  return max_unpool_geometry(x, options, rank);
}

}  // namespace fenestra
