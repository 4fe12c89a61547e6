// The stated box of window geometries on which the law on integers is tested, as problem strings.
//
// One axis of a 2-D window: kernel 1 to 7, stride 1 to 4, dilation 1 to 3 (1 for kernel 1), padding
// low and high 0 to 4 each: 1900 choices, all taken. The product of two axes is sampled: every
// choice with itself, and with another one by permutations of the list, so that every choice is
// taken equally often on the rows and on the columns. Where layouts and kinds of channels are
// sampled too, they take turns from problem to problem and, for each choice on the rows, from one
// time to the next: two times see both layouts, five all four kinds. On a line: every kernel 1 to
// 64 with every stride 1 to 16 and every dilation 1 to 9, padding low and high drawn from 0 to 40.
#pragma once

#include <fenestra/spec/random.hpp>
#include <fenestra/spec/window.hpp>
#include <fenestra/tensor/layout.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::check {

struct AxisChoice {
  Index kernel = 1;
  Index stride = 1;
  Index dilation = 1;
  Index low = 0;
  Index high = 0;

  /// An extent with room for `windows` windows, and at times for part of another.
  Index extent(Index windows, Random& random) const {
    const Index span = dilation * (kernel - 1) + 1;
    const Index needed = span + (windows - 1) * stride - low - high;
    return std::max<Index>(needed, 1) + random.between(0, stride - 1);
  }
};

inline std::vector<AxisChoice> box_choices() {
  std::vector<AxisChoice> choices;
  for (Index kernel = 1; kernel <= 7; ++kernel) {
    for (Index stride = 1; stride <= 4; ++stride) {
      for (Index dilation = 1; dilation <= (kernel == 1 ? 1 : 3); ++dilation) {
        for (Index low = 0; low <= 4; ++low) {
          for (Index high = 0; high <= 4; ++high) {
            choices.push_back({kernel, stride, dilation, low, high});
          }
        }
      }
    }
  }
  return choices;
}

inline std::vector<AxisChoice> line_choices(Random& random) {
  std::vector<AxisChoice> choices;
  for (Index kernel = 1; kernel <= 64; ++kernel) {
    for (Index stride = 1; stride <= 16; ++stride) {
      for (Index dilation = 1; dilation <= (kernel == 1 ? 1 : 9); ++dilation) {
        choices.push_back({kernel, stride, dilation, random.between(0, 40), random.between(0, 40)});
      }
    }
  }
  return choices;
}

/// The window of a problem: one choice per axis, with the extent it slides over.
struct BoxWindow {
  std::vector<AxisChoice> axes;
  std::vector<Index> extents;

  /// A few windows on every axis; on the last one, every third time, more than a vector holds.
  BoxWindow(std::vector<AxisChoice> choices, Random& random) : axes(std::move(choices)) {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const bool is_wide = i + 1 == axes.size() && random.chance(3);
      extents.push_back(
          axes[i].extent(is_wide ? random.between(15, 37) : random.between(1, 4), random));
    }
  }

  std::string spatial() const {
    std::string text;
    for (const Index extent : extents) {
      text += (text.empty() ? "" : "x") + std::to_string(extent);
    }
    return text;
  }
  std::string list(Index AxisChoice::*member, std::string_view separator = ",") const {
    std::string text;
    for (const AxisChoice& axis : axes) {
      text +=
          (text.empty() ? std::string() : std::string(separator)) + std::to_string(axis.*member);
    }
    return text;
  }
  std::string options() const {
    std::string padding;
    for (const AxisChoice& axis : axes) {
      padding +=
          (padding.empty() ? "" : ",") + std::to_string(axis.low) + ":" + std::to_string(axis.high);
    }
    return " stride=" + list(&AxisChoice::stride) + " padding=" + padding +
           " dilation=" + list(&AxisChoice::dilation);
  }
};

enum class BoxChannels { depthwise, multiplier, grouped, dense };
inline constexpr BoxChannels kBoxChannels[] = {
    BoxChannels::depthwise, BoxChannels::multiplier, BoxChannels::grouped, BoxChannels::dense};

/// A convolution, or with `transposed` the problem of its input gradient as an operator; both have
/// the same weights.
inline std::string box_conv(
    const BoxWindow& window, BoxChannels kind, Layout layout, bool transposed, Random& random) {
  Index groups = 1, in = 1, out = 1;  // channels of one group
  switch (kind) {
    case BoxChannels::depthwise: groups = random.between(1, 9); break;
    case BoxChannels::multiplier:
      groups = random.between(1, 5);
      out = random.between(2, 3);
      break;
    case BoxChannels::grouped:
      groups = random.between(2, 3);
      in = random.between(1, 4);
      out = random.between(1, 4);
      break;
    case BoxChannels::dense:
      in = random.between(1, 5);
      out = random.between(1, 5);
      break;
  }
  const bool is_first = layout == Layout::channels_first;
  // Now and then enough samples to fill vectors.
  const Index samples = random.chance(16) ? random.between(3, 18) : random.between(1, 2);
  const std::string batch = std::to_string(samples);
  // The windows of a transposed convolution are its input.
  std::string spatial = window.spatial();
  if (transposed) {
    spatial.clear();
    for (std::size_t i = 0; i < window.axes.size(); ++i) {
      const AxisChoice& a = window.axes[i];
      const WindowAxis axis{.kernel = a.kernel, .stride = a.stride, .dilation = a.dilation};
      const Index windows = axis.windows_within(window.extents[i] + a.low + a.high);
      spatial += (i == 0 ? "" : "x") + std::to_string(std::max<Index>(windows, 1));
    }
  }
  const std::string channels = std::to_string(groups * (transposed ? out : in));
  const std::string kernel = window.list(&AxisChoice::kernel, "x");
  const std::string from = std::to_string(in), to = std::to_string(groups * out);
  std::string text =
      is_first
          ? "x=" + batch + "x" + channels + "x" + spatial + " w=" + to + "x" + from + "x" + kernel
          : "x=" + batch + "x" + spatial + "x" + channels + " w=" + kernel + "x" + from + "x" + to;
  text += window.options() + " groups=" + std::to_string(groups);
  text += random.chance(3) ? " bias=true" : "";
  return text + (is_first ? "" : " layout=channels_last");
}

/// A pool; `options` are those of the operator beside its windows.
inline std::string box_pool(const BoxWindow& window,
                            Layout layout,
                            const std::string& options,
                            Random& random) {
  const bool is_first = layout == Layout::channels_first;
  const std::string batch = std::to_string(random.between(1, 2));
  const std::string channels = std::to_string(random.between(1, 9));
  return "x=" + batch + "x" +
         (is_first ? channels + "x" + window.spatial() : window.spatial() + "x" + channels) +
         " kernel=" + window.list(&AxisChoice::kernel) + window.options() + options +
         (random.chance(2) ? " ceil_mode=true" : "") + (is_first ? "" : " layout=channels_last");
}

}  // namespace fenestra::check
