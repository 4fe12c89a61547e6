// Options and geometry of resizing: where on the input axis each output cell lies, in exact
// fractions.
//
// A coordinate is (cells of x per cell of y) * o, with half-pixel centres or aligned corners.
// Everything is integers, so no output cell depends on how a floating-point coordinate was rounded.
#pragma once

#include <fenestra/ops/geometry.hpp>
#include <fenestra/ops/resize/axis_map.hpp>
#include <fenestra/ops/resize/options.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

namespace fenestra {

/// A positive fraction in lowest terms.
struct Ratio {
  Index num = 1;
  Index den = 1;

  static constexpr Ratio of(Index num, Index den) {
    const Index g = std::gcd(num, den);
    return {num / g, den / g};
  }
  friend constexpr bool operator==(const Ratio&, const Ratio&) = default;
};

struct ResizeAxis {
  Index in = 1;
  Index out = 1;
  Ratio step;  ///< cells of x per cell of y; 0 where corners are aligned and one side has one cell
  // Of a tile: the cells of the whole before its own, and those of the whole, else 0.
  Index in_before = 0;
  Index out_before = 0;
  Index whole_in = 0;
  Index whole_out = 0;

  constexpr bool is_tile() const { return whole_in > 0; }
  /// True where the whole has fewer cells after than before.
  constexpr bool shrinks() const { return is_tile() ? whole_out < whole_in : out < in; }

  friend constexpr bool operator==(const ResizeAxis&, const ResizeAxis&) = default;
};

struct ResizeGeometry {
  bool batched = true;
  Index batch = 0;
  Index channels = 0;
  std::vector<ResizeAxis> axes;  ///< the spatial ones
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;
  Layout layout = Layout::channels_first;

  constexpr int rank() const { return static_cast<int>(axes.size()); }
  /// The tensor axis of spatial axis `axis`.
  int tensor_axis(int axis) const {
    return axis + (batched ? 1 : 0) + (layout == Layout::channels_first ? 1 : 0);
  }
  constexpr Shape x_shape() const { return shape(&ResizeAxis::in); }
  constexpr Shape y_shape() const { return shape(&ResizeAxis::out); }
  /// True where an axis stays as it is.
  bool keeps(int axis) const {
    const ResizeAxis& a = axes[static_cast<std::size_t>(axis)];
    return (a.is_tile() ? a.whole_in == a.whole_out : a.in == a.out) && a.step.num == a.step.den;
  }
  AxisMap map(int axis) const;
  /// The axes that change, in the order in which a resize takes them: those that shrink before
  /// those that grow, so that nothing between is larger than both ends; of either kind the last
  /// first, since the map without contiguous runs then sees the fewest cells.
  std::vector<int> changing_axes() const {
    std::vector<int> order;
    for (const bool shrinking : {true, false}) {
      for (int axis = rank() - 1; axis >= 0; --axis) {
        if (!keeps(axis) && axes[static_cast<std::size_t>(axis)].shrinks() == shrinking) {
          order.push_back(axis);
        }
      }
    }
    return order;
  }
  friend bool operator==(const ResizeGeometry&, const ResizeGeometry&) = default;

 private:
  constexpr Shape shape(Index ResizeAxis::*side) const {
    ActivationShape a{batched, batch, channels, {}};
    for (const ResizeAxis& axis : axes) {
      a.spatial.push_back(axis.*side);
    }
    return join_activation(a, layout);
  }
};

/// What the shapes do not say: mode, alignment, and the steps where they are not in/out.
inline std::string to_string(const ResizeGeometry& g) {
  std::string text = g.mode == ResizeMode::nearest ? "nearest" : "bilinear";
  text += g.align_corners ? " align_corners step" : " step";
  for (const ResizeAxis& axis : g.axes) {
    text += " " + std::to_string(axis.step.num) + "/" + std::to_string(axis.step.den);
    if (axis.is_tile()) {
      text += " from " + std::to_string(axis.out_before) + " of " + std::to_string(axis.in_before) +
              " in " + std::to_string(axis.whole_in);
    }
  }
  return text;
}

inline AxisMap ResizeGeometry::map(int axis) const {
  const ResizeAxis& a = axes[static_cast<std::size_t>(axis)];
  const Index last = (a.is_tile() ? a.whole_in : a.in) - 1;
  const Index end = a.out_before + a.out;
  AxisMap map;
  map.in = a.in;
  const auto cells = static_cast<std::size_t>(a.out);
  map.first.reserve(cells);
  if (mode == ResizeMode::nearest) {
    for (Index o = a.out_before; o < end; ++o) {
      map.first.push_back(std::min(o * a.step.num / a.step.den, last) - a.in_before);
    }
    return map;
  }
  map.second.reserve(cells);
  map.weight.reserve(cells);
  map.whole = align_corners ? a.step.den : 2 * a.step.den;
  for (Index o = a.out_before; o < end; ++o) {
    // The coordinate o * step, or (o + 1/2) * step - 1/2, times `whole`; before the first centre is
    // at it.
    const Index position =
        align_corners ? o * a.step.num : std::max<Index>((2 * o + 1) * a.step.num - a.step.den, 0);
    const Index cell = std::min(position / map.whole, last);
    map.first.push_back(cell - a.in_before);
    map.second.push_back(std::min(cell + 1, last) - a.in_before);
    map.weight.push_back(map.whole - position % map.whole);
  }
  return map;
}

namespace detail {

/// The scales that have an exact fraction here: denominators up to 2^20 are then recovered from a
/// double for certain.
inline constexpr double kLeastScale = 0x1p-10;
inline constexpr double kLargestScale = 0x1p10;

/// The simplest fraction that rounds to `value`, or the last with a denominator up to 2^20, by
/// continued fractions. `value` is within the limits above. 1.5 is 3/2 and the double nearest to
/// 0.1 is 1/10.
constexpr Ratio simplest_ratio(double value) {
  const Dyadic d = to_dyadic(value);
  Index p = static_cast<Index>(d.mantissa);
  Index q = 1;
  for (int i = 0; i < (d.exponent < 0 ? -d.exponent : d.exponent); ++i) {
    (d.exponent > 0 ? p : q) *= 2;
  }
  Ratio last{0, 1};
  Ratio best{1, 0};
  while (q != 0) {
    const Index whole = p / q;
    const Ratio next{whole * best.num + last.num, whole * best.den + last.den};
    if (next.den > (Index{1} << 20)) {
      break;
    }
    last = best;
    best = next;
    if (static_cast<double>(best.num) / static_cast<double>(best.den) == value) {
      break;
    }
    p = std::exchange(q, p % q);
  }
  return best;
}

[[noreturn]] inline void throw_resize(const Fault& fault,
                                      const std::string& where,
                                      const std::string& why,
                                      const std::string& fix) {
  throw Error("resize", fault, "resize: " + where + "\n  " + why + "\n  fix: " + fix);
}

}  // namespace detail

/// Validated sizes. The number of spatial axes is `named_rank`, else the length of the list, else
/// all but batch and channel.
constexpr ResizeGeometry resize_geometry(const Shape& x,
                                         const ResizeOptions& options,
                                         int named_rank = 0) {
  using detail::throw_resize;
  const bool by_size = options.size.is_given();
  const int listed =
      by_size ? (options.size.is_scalar() ? 0 : options.size.count) : options.scale.listed();
  const int rank = named_rank > 0 ? named_rank : listed > 0 ? listed : x.rank() - 2;
  const auto unlabelled = [&] { return "x = " + to_string(x); };
  if (by_size == options.scale.is_given()) {
    throw_resize({.code = ErrorCode::invalid_output_size, .argument = Argument::output_size},
                 unlabelled(),
                 by_size ? "size and scale are both given" : "neither size nor scale is given",
                 "one of the two");
  }
  if (options.align_corners && options.mode == ResizeMode::nearest) {
    throw_resize({.code = ErrorCode::invalid_output_size, .argument = Argument::output_size},
                 unlabelled(),
                 "align_corners has no meaning for mode nearest",
                 "mode bilinear, or " + spelled_option("align_corners", false));
  }
  const auto input = rank >= 1 && rank <= kMaxSpatialRank
                         ? split_activation(x, rank, options.layout)
                         : Resolved<ActivationShape>{
                               {}, {ErrorCode::rank_mismatch, Argument::x, -1, x.rank(), rank + 2}};
  if (input.fault.code == ErrorCode::rank_mismatch) {
    throw_resize(
        input.fault,
        unlabelled(),
        "x has " + std::to_string(x.rank()) + " axes for " + std::to_string(rank) + " spatial ones",
        "a batch of " + std::to_string(rank + 2) + " axes or a sample of " +
            std::to_string(rank + 1) + ", 1 to 8 spatial axes");
  }
  const auto where = [&] {
    return "x " + activation_label(rank, input.geometry.batched, options.layout) + " = " +
           to_string(x);
  };
  if (listed > 0 && listed != rank) {
    throw_resize({.code = ErrorCode::rank_mismatch,
                  .argument = Argument::output_size,
                  .got = listed,
                  .needed = rank},
                 where(),
                 std::to_string(listed) + " values for " + std::to_string(rank) + " spatial axes",
                 "one value for all axes, or " + std::to_string(rank));
  }
  if (input.fault || !x.elements()) {
    throw_resize(input.fault ? input.fault : kTooLarge,
                 where(),
                 "the number of elements is negative or too large",
                 "other extents");
  }
  ResizeGeometry g;
  g.batched = input.geometry.batched;
  g.batch = input.geometry.batch;
  g.channels = input.geometry.channels;
  g.mode = options.mode;
  g.align_corners = options.align_corners;
  g.layout = options.layout;
  for (int axis = 0; axis < rank; ++axis) {
    const Index in = input.geometry.spatial[axis];
    const auto name = [&] { return axis_name(rank, axis); };
    if (in < 1) {
      throw_resize({.code = ErrorCode::invalid_extent,
                    .argument = Argument::x,
                    .axis = axis,
                    .got = in,
                    .needed = 1},
                   where(),
                   name() + ": input extent = " + std::to_string(in) + ", needed >= 1",
                   "input " + name() + " >= 1");
    }
    Ratio scale;
    Index out = by_size ? options.size[axis] : 0;
    if (!by_size) {
      const double factor = options.scale[axis];
      if (!(factor >= detail::kLeastScale && factor <= detail::kLargestScale)) {
        throw_resize({.code = ErrorCode::invalid_output_size,
                      .argument = Argument::output_size,
                      .axis = axis},
                     where(),
                     name() + ": scale is not a number from 1/1024 to 1024",
                     "size instead of scale");
      }
      scale = detail::simplest_ratio(factor);
      const Checked product = Checked(in) * scale.num;
      out = product.ok() ? product.value() / scale.den : 0;
    }
    if (out < 1) {
      throw_resize({.code = ErrorCode::invalid_output_size,
                    .argument = Argument::output_size,
                    .axis = axis,
                    .got = out,
                    .needed = 1},
                   where(),
                   name() + ": " +
                       (by_size ? "size = " : "floor(" + std::to_string(in) + " * scale) = ") +
                       std::to_string(out) + ", needed >= 1",
                   "output " + name() + " >= 1");
    }
    // As in PyTorch, the sizes decide where they are equal, and for nearest where one is twice the
    // other.
    const bool plain_sizes = out == in || (options.mode == ResizeMode::nearest && out == 2 * in);
    Ratio step = by_size || plain_sizes ? Ratio::of(in, out) : Ratio{scale.den, scale.num};
    if (options.align_corners) {
      step = in > 1 && out > 1 ? Ratio::of(in - 1, out - 1) : Ratio{0, 1};
    }
    g.axes.push_back({in, out, step});
    const Checked last = (Checked(out) * 2 + 1) * step.num;
    if (!last.ok() || !(Checked(2) * step.den).ok()) {
      throw_resize({.code = ErrorCode::overflow, .argument = Argument::output_size, .axis = axis},
                   where(),
                   name() + ": from " + std::to_string(in) + " to " + std::to_string(out) +
                       " cells passes 64 bits",
                   "a smaller " + name());
    }
  }
  if (!g.y_shape().elements()) {
    throw_resize(kTooLarge, where(), "the number of output cells is too large", "smaller extents");
  }
  return g;
}

}  // namespace fenestra
