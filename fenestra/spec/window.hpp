// The window map: the only place where an output extent, an input cell, a stride phase, or what a
// range of outputs needs is computed. Here the axes together, and how they follow from sizes and
// options; one axis is in window_axis.hpp, how kernels walk it in window_walk.hpp.
#pragma once

#include <fenestra/base/checked.hpp>
#include <fenestra/base/error.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/spec/window_axis.hpp>
#include <fenestra/tensor/shape.hpp>

#include <functional>

namespace fenestra {

/// All spatial axes of an operator, outermost first.
struct Windows {
  WindowAxis axes[kMaxSpatialRank];
  int count = 0;

  constexpr Windows() = default;
  constexpr int rank() const { return count; }
  constexpr const WindowAxis& operator[](int axis) const { return axes[axis]; }
  constexpr void push_back(const WindowAxis& axis) { axes[count++] = axis; }

  constexpr Shape in_shape() const { return collect(&WindowAxis::in); }
  constexpr Shape out_shape() const { return collect(&WindowAxis::out); }
  constexpr Shape kernel_shape() const { return collect(&WindowAxis::kernel); }
  /// Cells of one channel of the input, windows of one channel, taps of one window.
  constexpr Index in_cells() const { return product(&WindowAxis::in); }
  constexpr Index out_cells() const { return product(&WindowAxis::out); }
  constexpr Index taps() const { return product(&WindowAxis::kernel); }

  friend constexpr bool operator==(const Windows&, const Windows&) = default;

 private:
  constexpr Shape collect(Index WindowAxis::*member) const {
    Shape shape;
    for (int axis = 0; axis < count; ++axis) {
      shape.push_back(axes[axis].*member);
    }
    return shape;
  }
  constexpr Index product(Index WindowAxis::*member) const {
    Index n = 1;
    for (int axis = 0; axis < count; ++axis) {
      n *= axes[axis].*member;
    }
    return n;
  }
};

/// One tap of one window: its flat number in the kernel and the flat input cell it looks at.
struct Tap {
  Index tap = 0;
  Index cell = -1;        ///< -1: outside the input
  bool declared = false;  ///< inside the input or its declared padding
};

/// Calls `f(Tap)` for every tap of window `o` (flat, row-major) that `visit` asks for, row-major
/// over the taps. The others cost nothing.
template <class F>
constexpr void for_each_tap(const Windows& windows, Index o, Visit visit, F&& f) {
  const int rank = windows.rank();
  Window window[kMaxSpatialRank] = {};
  TapRange range[kMaxSpatialRank] = {};
  Index position[kMaxSpatialRank] = {};
  bool any = true;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const Index out = windows[axis].out;
    window[axis] = windows[axis].window(o % out);
    range[axis] = windows[axis].taps(window[axis], visit);
    position[axis] = range[axis].begin;
    any = any && range[axis].count() > 0;
    o /= out;
  }
  while (any) {
    bool real = true;
    bool declared = true;
    Index tap = 0;
    Index cell = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const Index c = window[axis].cell(position[axis]);
      real = real && windows[axis].is_real(c);
      declared = declared && windows[axis].is_declared(c);
      tap = tap * window[axis].taps + position[axis];
      cell = real ? cell * windows[axis].in + c : 0;
    }
    f(Tap{.tap = tap, .cell = real ? cell : -1, .declared = declared});
    int axis = rank - 1;
    while (axis >= 0 && ++position[axis] == range[axis].end) {
      position[axis] = range[axis].begin;
      --axis;
    }
    any = axis >= 0;
  }
}

/// The same for every tap.
template <class F>
constexpr void for_each_tap(const Windows& windows, Index o, F&& f) {
  for_each_tap(windows, o, Visit::all, f);
}

/// In a tensor whose cells are `pitch[axis]` numbers apart along each axis: how far a tap (flat)
/// looks from where tap 0 does, and how far window `o` (flat) begins from where window 0 does. Of
/// windows that slide. `Number` may be unsigned, where what lies far outside need not fit.
template <class Number>
constexpr Number tap_distance(const Windows& windows, Index tap, const Number* pitch) {
  Number distance = 0;
  for (int axis = windows.rank() - 1; axis >= 0; --axis) {
    const WindowAxis& a = windows[axis];
    distance += static_cast<Number>(tap % a.kernel * a.dilation) * pitch[axis];
    tap /= a.kernel;
  }
  return distance;
}
template <class Number>
constexpr Number window_distance(const Windows& windows, Index o, const Number* pitch) {
  Number distance = 0;
  for (int axis = windows.rank() - 1; axis > 0; --axis) {
    const WindowAxis& a = windows[axis];
    distance += static_cast<Number>(o % a.out * a.stride) * pitch[axis];
    o /= a.out;
  }
  return distance + static_cast<Number>(o * windows[0].stride) * pitch[0];
}

/// What a caller asks of one axis, not yet validated.
struct AxisRequest {
  Index in = 0;
  Index kernel = 0;
  Index stride = 1;
  Index dilation = 1;
  Index pad_low = 0;
  Index pad_high = 0;
  bool same = false;
};

/// A resolved axis, or the fault that prevents it; `axis` holds the request's numbers either way.
struct ResolvedAxis {
  WindowAxis axis;
  Fault fault;
};

namespace detail {

/// Checks that do not depend on the rule, and K = d(k-1)+1 where they pass.
constexpr Fault check_request(const AxisRequest& r, int axis, Checked& span) {
  const auto at_least = [&](Index got, Index needed, ErrorCode code, Argument argument) {
    return got >= needed ? Fault{}
                         : Fault{.code = code,
                                 .argument = argument,
                                 .axis = axis,
                                 .got = got,
                                 .needed = needed};
  };
  if (const Fault f = at_least(r.in, 1, ErrorCode::invalid_extent, Argument::x)) {
    return f;
  }
  if (const Fault f = at_least(r.kernel, 1, ErrorCode::invalid_kernel, Argument::kernel)) {
    return f;
  }
  if (const Fault f = at_least(r.stride, 1, ErrorCode::invalid_stride, Argument::stride)) {
    return f;
  }
  if (const Fault f = at_least(r.dilation, 1, ErrorCode::invalid_dilation, Argument::dilation)) {
    return f;
  }
  if (const Fault f = at_least(r.pad_low, 0, ErrorCode::invalid_padding, Argument::padding)) {
    return f;
  }
  if (const Fault f = at_least(r.pad_high, 0, ErrorCode::invalid_padding, Argument::padding)) {
    return f;
  }
  span = Checked(r.dilation) * (Checked(r.kernel) - 1) + 1;
  return {};
}

constexpr WindowAxis copy_request(const AxisRequest& r) {
  return {.in = r.in,
          .kernel = r.kernel,
          .stride = r.stride,
          .dilation = r.dilation,
          .pad_low = r.pad_low,
          .pad_high = r.pad_high,
          .out = 0};
}

constexpr Fault overflow_on(int axis, Argument argument) {
  return {.code = ErrorCode::overflow, .argument = argument, .axis = axis};
}

/// Splits a total of padding: the odd cell goes to the high side.
constexpr void split_padding(WindowAxis& axis, Index total) {
  axis.pad_low = total / 2;
  axis.pad_high = total - total / 2;
}

}  // namespace detail

/// Windows that slide: o = floor((i + pl + pr - K [+ s - 1])/s) + 1, the bracket with `rule ==
/// ceil`, where a last window that would start at or beyond i + pl is dropped. So with `ceil` a
/// window larger than the padded input is one overhanging window, as long as it is so by less than
/// a stride.
constexpr ResolvedAxis resolve_sliding(const AxisRequest& request, int axis, ExtentRule rule) {
  ResolvedAxis result{.axis = detail::copy_request(request), .fault = {}};
  result.axis.rule = rule;
  Checked span = 0;
  result.fault = detail::check_request(request, axis, span);
  if (result.fault) {
    return result;
  }
  WindowAxis& a = result.axis;
  if (request.same) {
    const Index windows = ceil_div(a.in, a.stride);
    const Checked total = Checked(windows - 1) * a.stride + span - a.in;
    if (!total.ok()) {
      return {.axis = a, .fault = detail::overflow_on(axis, Argument::padding)};
    }
    detail::split_padding(a, total.value() > 0 ? total.value() : 0);
  }
  const Checked padded = Checked(a.in) + a.pad_low + a.pad_high;
  // The largest number any later step forms: a window that starts at the padded end and runs its
  // whole span.
  const Checked reach = padded + a.stride + span;
  if (!reach.ok()) {
    return {.axis = a, .fault = detail::overflow_on(axis, Argument::padding)};
  }
  const Index room = padded.value() + (rule == ExtentRule::ceil ? a.stride - 1 : 0);
  if (span.value() > room) {
    result.fault = {.code = ErrorCode::kernel_exceeds_input,
                    .argument = Argument::kernel,
                    .axis = axis,
                    .got = span.value(),
                    .needed = room};
    return result;
  }
  const Index slack = room - span.value();
  a.out = slack / a.stride + 1;
  if (rule == ExtentRule::ceil && (a.out - 1) * a.stride >= a.in + a.pad_low) {
    --a.out;
  }
  return result;
}

/// The forward convolution's axis of a transposed convolution with `request.in` input cells:
/// o = (i - 1)s - pl - pr + K + op. The result has `in` = o and `out` = i. `output_size` wins over
/// `output_padding`.
constexpr ResolvedAxis resolve_transposed(const AxisRequest& request,
                                          int axis,
                                          Index output_padding,
                                          const OptionalIndex& output_size) {
  ResolvedAxis result{.axis = detail::copy_request(request), .fault = {}};
  WindowAxis& a = result.axis;
  a.rule = ExtentRule::transposed;
  a.out = request.in;
  a.in = 0;
  Checked span = 0;
  result.fault = detail::check_request(request, axis, span);
  if (result.fault) {
    return result;
  }
  if (request.same && span.ok()) {
    detail::split_padding(a, span.value() > a.stride ? span.value() - a.stride : 0);
  }
  const Checked base = (Checked(request.in) - 1) * a.stride - a.pad_low - a.pad_high + span;
  const Checked extra =
      output_size.given ? Checked(output_size.value) - base : Checked(output_padding);
  const Checked out = base + extra;
  const Checked reach = out + a.pad_low + a.pad_high + a.stride + span;
  if (!reach.ok()) {
    return {.axis = a, .fault = detail::overflow_on(axis, Argument::output_padding)};
  }
  a.in = out.value();
  const Index limit = a.output_padding_limit();
  if (extra.value() < 0 || extra.value() >= limit) {
    const bool by_size = output_size.given;
    result.fault = {
        .code = by_size ? ErrorCode::invalid_output_size : ErrorCode::invalid_output_padding,
        .argument = by_size ? Argument::output_size : Argument::output_padding,
        .axis = axis,
        .got = by_size ? output_size.value : output_padding,
        .needed = by_size ? base.value() : limit - 1};
    return result;
  }
  if (a.in < 1) {
    result.fault = {.code = ErrorCode::empty_output,
                    .argument = Argument::padding,
                    .axis = axis,
                    .got = a.in,
                    .needed = 1};
  }
  return result;
}

/// `out` bins over `in` cells: bin j covers [floor(j*i/o), ceil((j+1)*i/o)).
constexpr ResolvedAxis resolve_adaptive(Index in, Index out, int axis) {
  ResolvedAxis result{
      .axis = {.in = in, .kernel = 0, .stride = 0, .out = out, .rule = ExtentRule::adaptive},
      .fault = {}};
  if (in < 1) {
    result.fault = {ErrorCode::invalid_extent, Argument::x, axis, in, 1};
  } else if (out < 1) {
    result.fault = {ErrorCode::invalid_output_size, Argument::output_size, axis, out, 1};
  } else if (!(Checked(in) * out + out).ok()) {
    result.fault = detail::overflow_on(axis, Argument::output_size);
  }
  return result;
}

namespace detail {

/// Mixes `value` into `seed` (the usual golden-ratio combine); geometries hash through it.
constexpr std::size_t hash_combine(std::size_t seed, Index value) {
  return seed ^
         (static_cast<std::size_t>(value) + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
}

}  // namespace detail

constexpr std::size_t hash_value(const Windows& windows, std::size_t seed = 0) {
  for (int axis = 0; axis < windows.rank(); ++axis) {
    const WindowAxis& a = windows[axis];
    for (const Index value : {a.in,
                              a.kernel,
                              a.stride,
                              a.dilation,
                              a.pad_low,
                              a.pad_high,
                              a.out,
                              static_cast<Index>(a.rule)}) {
      seed = detail::hash_combine(seed, value);
    }
  }
  return seed;
}

}  // namespace fenestra
