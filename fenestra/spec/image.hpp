// Padding and cropping of whole images: helpers of a specification, not operators.
//
// Operators never call these: their padding is part of the window map. All four functions are one
// frame moved over the cells, and padding by p is the adjoint of cropping by p, for any scalar and
// any number of axes.
#pragma once

#include <fenestra/base/checked.hpp>
#include <fenestra/base/error.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra::spec {

namespace detail {

enum class FrameMove { pad, crop };

/// The axes of a tensor that are spatial: `count` of them from `first` on.
struct SpatialAxes {
  int first = 0;
  int count = 0;
};

[[noreturn]] inline void throw_frame_fault(std::string_view op,
                                           const Fault& fault,
                                           const Shape& shape,
                                           const std::string& cause,
                                           const std::string& fix) {
  throw Error(std::string(op),
              fault,
              std::string(op) + ": x = " + to_string(shape) + "\n  " + cause + "\n  fix: " + fix);
}

/// Checks the padding of one axis against its extent; returns the extent after the move.
inline Index moved_extent(std::string_view op,
                          const Shape& shape,
                          Index extent,
                          LowHigh padding,
                          int axis,
                          FrameMove move) {
  const std::string name = "spatial axis " + std::to_string(axis) + ": ";
  const std::string text = std::to_string(padding.low) + ":" + std::to_string(padding.high);
  Fault fault{.code = ErrorCode::invalid_padding, .argument = Argument::padding, .axis = axis};
  const Index least = padding.low < padding.high ? padding.low : padding.high;
  if (least < 0) {
    fault.got = least;
    throw_frame_fault(
        op, fault, shape, name + "padding " + text + ", needed >= 0", "padding >= 0 on both sides");
  }
  const Checked total = Checked(padding.low) + padding.high;
  const Checked result = move == FrameMove::pad ? total + extent : Checked(extent) - total;
  if (!total.ok() || !result.ok()) {
    fault.code = ErrorCode::overflow;
    throw_frame_fault(op,
                      fault,
                      shape,
                      name + "padding " + text + " does not fit into 64 bits",
                      "smaller numbers on this axis");
  }
  if (result.value() < 0) {
    fault.got = total.value();
    fault.needed = extent;
    throw_frame_fault(op,
                      fault,
                      shape,
                      name + "cannot crop " + text + " from " + std::to_string(extent) + " cells",
                      "low + high <= " + std::to_string(extent) + " on this axis");
  }
  return result.value();
}

/// result[c] = x[c + shift], 0 where x has no such cell; the shift is -low when padding and +low
/// when cropping, and 0 on axes that are not spatial.
template <Scalar T>
Tensor<T> move_frame(std::string_view op,
                     const Tensor<T>& x,
                     SpatialAxes axes,
                     const Padding& padding,
                     FrameMove move) {
  if (padding.is_same || !padding.fits(axes.count)) {
    const int got = padding.is_same ? 0 : padding.low.count;
    throw_frame_fault(op,
                      {.code = ErrorCode::rank_mismatch,
                       .argument = Argument::padding,
                       .got = got,
                       .needed = axes.count},
                      x.shape(),
                      padding.is_same ? "`same` padding has no meaning without a window"
                                      : "padding has " + std::to_string(got) + " values for " +
                                            std::to_string(axes.count) + " spatial axes",
                      "one number, or one per spatial axis");
  }
  Shape shape = x.shape();
  std::vector<Index> shift(static_cast<std::size_t>(x.rank()), 0);
  for (int axis = 0; axis < axes.count; ++axis) {
    const LowHigh pair(padding.low[axis], padding.high[axis]);
    const int at = axes.first + axis;
    shape[at] = moved_extent(op, x.shape(), shape[at], pair, axis, move);
    shift[static_cast<std::size_t>(at)] = move == FrameMove::pad ? -pair.low : pair.low;
  }
  Tensor<T> result(shape);
  T* out = result.mutable_data();
  for (Index i = 0; i < result.size(); ++i) {
    Index offset = 0;
    Index stride = 1;
    Index rest = i;
    bool inside = true;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      const Index cell = rest % shape[axis] + shift[static_cast<std::size_t>(axis)];
      rest /= shape[axis];
      inside = inside && cell >= 0 && cell < x.shape()[axis];
      offset += cell * stride;
      stride *= x.shape()[axis];
    }
    if (inside) {
      out[i] = x[offset];
    }
  }
  return result;
}

template <Scalar T>
Tensor<T> move_channels(std::string_view op,
                        const Tensor<T>& x,
                        const Padding& padding,
                        Layout layout,
                        FrameMove move) {
  if (x.rank() < 2) {
    throw_frame_fault(
        op,
        {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = x.rank(), .needed = 2},
        x.shape(),
        "x has " + std::to_string(x.rank()) + " axes, needed one of channels and spatial ones",
        "pad_image or unpad_image for an image without channels");
  }
  const int first = layout == Layout::channels_first ? 1 : 0;
  return move_frame(op, x, {first, x.rank() - 1}, padding, move);
}

}  // namespace detail

/// An image (spatial...) with a border of zeros.
template <Scalar T>
Tensor<T> pad_image(const Tensor<T>& image, const Padding& padding) {
  return detail::move_frame("pad_image", image, {0, image.rank()}, padding, detail::FrameMove::pad);
}

/// An image (spatial...) without its border; undoes `pad_image`.
template <Scalar T>
Tensor<T> unpad_image(const Tensor<T>& image, const Padding& padding) {
  return detail::move_frame(
      "unpad_image", image, {0, image.rank()}, padding, detail::FrameMove::crop);
}

/// `pad_image` on every channel of (C, spatial...), or of (spatial..., C).
template <Scalar T>
Tensor<T> pad_channels(const Tensor<T>& x,
                       const Padding& padding,
                       Layout layout = Layout::channels_first) {
  return detail::move_channels("pad_channels", x, padding, layout, detail::FrameMove::pad);
}

/// `unpad_image` on every channel of (C, spatial...), or of (spatial..., C).
template <Scalar T>
Tensor<T> unpad_channels(const Tensor<T>& x,
                         const Padding& padding,
                         Layout layout = Layout::channels_first) {
  return detail::move_channels("unpad_channels", x, padding, layout, detail::FrameMove::crop);
}

}  // namespace fenestra::spec
