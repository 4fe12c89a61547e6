// Resize and its adjoint on any value type: a linear pair, one map per spatial axis.
//
//   resize(x, options)                       nearest or linear interpolation of the spatial axes
//   resize_adjoint(y_bar, shape, options)    every output cell given back to the cells it was made
//   of
#pragma once

#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/engine/tensor_kernel.hpp>
#include <fenestra/ops/resize/call.hpp>
#include <fenestra/ops/resize/geometry.hpp>

#include <string>
#include <utility>

namespace fenestra {

/// With its maps made once.
template <class T>
class AxisStepsKernel final : public TensorKernel<T> {
 public:
  explicit AxisStepsKernel(AxisSteps<T> steps) : steps_(std::move(steps)) {}

  std::size_t scratch_bytes() const override { return steps_.scratch_bytes(); }
  void compute(std::span<const Tensor<T>> in,
               std::span<const Selection>,
               T* out,
               const SelectionBuffer&,
               void* scratch,
               const T*) const override {
    steps_.run(in[0].data(), out, static_cast<T*>(scratch));
  }

 private:
  AxisSteps<T> steps_;
};

struct ResizeAdjointPrimitive;

struct ResizePrimitive : PrimitiveBase<ResizePrimitive> {
  static constexpr std::string_view name = "resize";
  ResizeGeometry g;

  constexpr Shape result_shape(const Shape&) const { return g.y_shape(); }
  template <class T>
  AxisSteps<T> steps() const {
    Shape shape = g.x_shape();
    AxisSteps<T> result{{}, shape.elements().value_or(0), false};
    if (result.size == 0) {
      return result;
    }
    for (const int axis : g.changing_axes()) {
      result.steps.emplace_back(shape, g.tensor_axis(axis), g.map(axis), false);
    }
    return result;
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    steps<T>().run(in[0].data(), out);
  }
  template <KernelScalar T>
  std::unique_ptr<const graph::Kernel> prepare() const {
    return std::unique_ptr<const graph::Kernel>(new AxisStepsKernel<T>(steps<T>()));
  }
  std::string attributes() const { return to_string(g); }
  std::string layout() const { return std::string(layout_name(g.layout)); }
  /// A part of each axis, between the first and the last cell that it reads.
  std::optional<TileOf<ResizePrimitive>> tile(std::span<const Shape>, const Box& box) const {
    TileOf<ResizePrimitive> tile{box, {box}, *this};
    for (int axis = 0; axis < g.rank(); ++axis) {
      ResizeAxis& a = tile.part.g.axes[static_cast<std::size_t>(axis)];
      const IndexRange outputs = box[g.tensor_axis(axis)];
      a.whole_in = a.is_tile() ? a.whole_in : a.in;
      a.whole_out = a.whole_out > 0 ? a.whole_out : a.out;
      a.out_before += outputs.begin;
      a.out = outputs.count();
      IndexRange inputs = outputs;
      if (!g.keeps(axis)) {
        inputs = {};
        const AxisMap map = tile.part.g.map(axis);
        for (const std::vector<Index>* cells : {&map.first, &map.second}) {
          for (const Index cell : *cells) {
            inputs = hull(inputs, {cell, cell + 1});
          }
        }
      }
      a.in_before += inputs.begin;
      a.in = inputs.count();
      tile.in[0].set(g.tensor_axis(axis), inputs);
    }
    for (int axis = 0; axis < box.rank(); ++axis) {
      const int spatial = axis - g.tensor_axis(0);
      if ((spatial < 0 || spatial >= g.rank()) && box[axis] != IndexRange{0, g.y_shape()[axis]}) {
        return std::nullopt;
      }
    }
    return tile;
  }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const;
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return apply(*this, {*dots[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const ResizePrimitive&, const ResizePrimitive&) = default;
};

struct ResizeAdjointPrimitive : PrimitiveBase<ResizeAdjointPrimitive> {
  static constexpr std::string_view name = "resize_adjoint";
  ResizeGeometry g;

  constexpr Shape result_shape(const Shape&) const { return g.x_shape(); }
  template <class T>
  AxisSteps<T> steps() const {
    Shape shape = g.y_shape();
    AxisSteps<T> result{{}, shape.elements().value_or(0), true};
    if (result.size == 0) {
      return result;
    }
    const std::vector<int> order = g.changing_axes();
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      result.steps.emplace_back(shape, g.tensor_axis(*axis), g.map(*axis), true);
    }
    return result;
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    steps<T>().run(in[0].data(), out);
  }
  template <KernelScalar T>
  std::unique_ptr<const graph::Kernel> prepare() const {
    return std::unique_ptr<const graph::Kernel>(new AxisStepsKernel<T>(steps<T>()));
  }
  std::string attributes() const { return to_string(g); }
  std::string layout() const { return std::string(layout_name(g.layout)); }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const {
    return apply(ResizePrimitive{{}, g}, y_bar);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return apply(*this, {*dots[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const ResizeAdjointPrimitive&, const ResizeAdjointPrimitive&) = default;
};

template <class V>
V ResizePrimitive::vjp(int, const Saved<V>&, const V& y_bar) const {
  return apply(ResizeAdjointPrimitive{{}, g}, y_bar);
}

inline namespace generic {

/// On a resolved geometry, for callers that keep one.
template <AnyValue V>
constexpr V resize(const V& x, const ResizeGeometry& g) {
  if (x.shape() != g.x_shape()) {
    throw Error("resize",
                {.code = ErrorCode::shape_mismatch, .argument = Argument::x},
                "resize: x = " + to_string(x.shape()) + ", the geometry is for " +
                    to_string(g.x_shape()) + "\n  fix: equal shapes");
  }
  return apply(ResizePrimitive{{}, g}, x);
}
template <AnyValue V>
constexpr V resize_adjoint(const V& y_bar, const ResizeGeometry& g) {
  if (y_bar.shape() != g.y_shape()) {
    throw Error("resize_adjoint",
                {.code = ErrorCode::shape_mismatch, .argument = Argument::y},
                "resize_adjoint: y_bar = " + to_string(y_bar.shape()) +
                    ", x = " + to_string(g.x_shape()) + " resized is " + to_string(g.y_shape()) +
                    "\n  fix: y_bar of that shape");
  }
  return apply(ResizeAdjointPrimitive{{}, g}, y_bar);
}

template <AnyValue V>
constexpr V resize(const V& x, const ResizeOptions& options) {
  return resize(x, resize_geometry(x.shape(), options));
}
template <AnyValue V>
constexpr V resize_adjoint(const V& y_bar, const Shape& shape, const ResizeOptions& options) {
  return resize_adjoint(y_bar, resize_geometry(shape, options));
}

}  // namespace generic

}  // namespace fenestra
