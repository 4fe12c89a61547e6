// Pad and its adjoint on any value type: more cells at the ends of axes, and what their values are.
//
//   pad(x, padding, options)                      x with low and high cells added per axis
//   pad_adjoint(y_bar, shape, padding, options)   every added cell given back to the cell it
//   repeats
//
// The two are a linear pair; a constant other than zero makes pad affine, its derivatives are those
// of zero padding.
#pragma once

#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/engine/tensor_kernel.hpp>
#include <fenestra/ops/pad/call.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/resize/axis_map.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/spec/problem.hpp>
#include <fenestra/spec/window.hpp>
#include <fenestra/tensor/box.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra {

/// A validated padding of a tensor of shape x.
struct PadGeometry {
  Shape x;
  Shape low;
  Shape high;
  PadMode mode = PadMode::zero;
  double value = 0;

  constexpr Shape y() const {
    Shape shape = x;
    for (int axis = 0; axis < x.rank(); ++axis) {
      shape[axis] = low[axis] + x[axis] + high[axis];
    }
    return shape;
  }
  constexpr bool adds_constants() const {
    return mode == PadMode::zero || mode == PadMode::constant;
  }
  /// Its derivative as a function of x.
  PadGeometry linear() const {
    PadGeometry g = *this;
    g.mode = mode == PadMode::constant ? PadMode::zero : mode;
    g.value = 0;
    return g;
  }
  /// Where x lies in y.
  Region interior() const {
    Region region = whole_region(x);
    region.begin = low;
    return region;
  }
  bool pads(int axis) const { return low[axis] > 0 || high[axis] > 0; }
  /// Which cell of x each cell of y repeats along an axis; for modes that repeat.
  AxisMap map(int axis) const {
    AxisMap result;
    const Index n = x[axis];
    result.in = n;
    for (Index o = -low[axis]; o < n + high[axis]; ++o) {
      Index cell = o;
      if (mode == PadMode::reflect) {
        cell = o < 0 ? -o : o < n ? o : 2 * (n - 1) - o;
      } else if (mode == PadMode::replicate) {
        cell = o < 0 ? 0 : o < n ? o : n - 1;
      } else {
        cell = o < 0 ? o + n : o < n ? o : o - n;
      }
      result.first.push_back(cell);
    }
    return result;
  }
  friend bool operator==(const PadGeometry&, const PadGeometry&) = default;
};

/// "reflect low (0, 1) high (0, 2)", what the shapes do not say.
inline std::string to_string(const PadGeometry& g) {
  return field_text(g.mode) + (g.mode == PadMode::constant ? " " + problem_text(g.value) : "") +
         " low " + to_string(g.low) + " high " + to_string(g.high);
}

namespace detail {

/// Throws what is wrong with the padding of one axis, if anything is.
constexpr void check_pad_side(const PadGeometry& g, int axis, std::string_view side, Index amount) {
  const Index extent = g.x[axis];
  const auto fail =
      [&](ErrorCode code, Index needed, const std::string& why, const std::string& fix) {
        throw Error("pad",
                    {.code = code,
                     .argument = Argument::padding,
                     .axis = axis,
                     .got = amount,
                     .needed = needed},
                    "pad: x = " + to_string(g.x) + ", mode " + field_text(g.mode) + "\n  axis " +
                        std::to_string(axis) + ": " + std::string(side) + " padding " +
                        std::to_string(amount) + ", " + why + "\n  fix: " + fix);
      };
  if (amount < 0) {
    fail(ErrorCode::invalid_padding, 0, "needed >= 0", "slice takes cells away; pad adds them");
  }
  if (g.adds_constants() || amount == 0) {
    return;
  }
  if (extent == 0) {
    fail(ErrorCode::invalid_padding,
         0,
         "the axis has no cell to repeat",
         "mode zero, or at least one cell");
  }
  const Index most = g.mode == PadMode::reflect ? extent - 1 : extent;
  if (g.mode != PadMode::replicate && amount > most) {
    fail(ErrorCode::invalid_padding,
         most,
         "the extent " + std::to_string(extent) + " has " + std::to_string(most) +
             " cells to repeat",
         "padding <= " + std::to_string(most) + ", or mode replicate");
  }
}

}  // namespace detail

/// Validates a padding; one pair per axis in `options.axes`, or per axis of x.
constexpr PadGeometry resolve_pad(const Shape& x,
                                  std::span<const LowHigh> padding,
                                  const PadOptions& options) {
  require_elements("pad", "x", Argument::x, x);
  PadGeometry g;
  g.x = x;
  g.mode = options.mode;
  g.value = options.mode == PadMode::constant ? options.value : 0;
  const Index pairs = static_cast<Index>(padding.size());
  const Index needed = options.axes.empty() ? x.rank() : static_cast<Index>(options.axes.size());
  if (pairs != needed) {
    throw Error("pad",
                {.code = ErrorCode::rank_mismatch,
                 .argument = Argument::padding,
                 .got = pairs,
                 .needed = needed},
                "pad: x = " + to_string(x) + ", " + std::to_string(pairs) +
                    " (low, high) pairs for " + std::to_string(needed) +
                    " axes\n  fix: one pair per axis, or name the axes in .axes");
  }
  if (std::isnan(g.value)) {
    throw Error("pad",
                {.code = ErrorCode::invalid_padding, .argument = Argument::padding},
                "pad: the constant is not a number\n  fix: a number or an infinity");
  }
  g.low = g.high = Shape();
  for (int axis = 0; axis < x.rank(); ++axis) {
    g.low.push_back(0);
    g.high.push_back(0);
  }
  unsigned seen = 0;
  for (std::size_t i = 0; i < padding.size(); ++i) {
    const int axis =
        options.axes.empty() ? static_cast<int>(i) : checked_axis("pad", x, options.axes[i]);
    if ((seen >> axis & 1u) != 0) {
      throw Error("pad",
                  {.code = ErrorCode::rank_mismatch,
                   .argument = Argument::padding,
                   .axis = axis,
                   .got = 2,
                   .needed = 1},
                  "pad: x = " + to_string(x) + ", axis " + std::to_string(axis) +
                      " is named twice\n  fix: one pair per axis");
    }
    seen |= 1u << axis;
    detail::check_pad_side(g, axis, "low", padding[i].low);
    detail::check_pad_side(g, axis, "high", padding[i].high);
    const Checked extent = Checked(padding[i].low) + x[axis] + padding[i].high;
    g.low[axis] = padding[i].low;
    g.high[axis] = padding[i].high;
    if (!extent.ok() || !g.y().elements()) {
      throw Error("pad",
                  {.code = ErrorCode::overflow, .argument = Argument::padding, .axis = axis},
                  "pad: x = " + to_string(x) + " with padding " + std::to_string(padding[i].low) +
                      " and " + std::to_string(padding[i].high) + " on axis " +
                      std::to_string(axis) + " passes the largest size\n  fix: less padding");
    }
  }
  return g;
}

struct PadAdjointPrimitive;

struct PadPrimitive : PrimitiveBase<PadPrimitive> {
  static constexpr std::string_view name = "pad";
  PadGeometry g;

  constexpr Shape result_shape(const Shape&) const { return g.y(); }
  /// Of the modes that repeat cells.
  template <class T>
  AxisSteps<T> steps() const {
    Shape shape = g.x;
    AxisSteps<T> result{{}, shape.elements().value_or(0), false};
    if (result.size == 0) {
      return result;
    }
    for (int axis = g.x.rank() - 1; axis >= 0; --axis) {
      if (g.pads(axis)) {
        result.steps.emplace_back(shape, axis, g.map(axis), false);
      }
    }
    return result;
  }
  template <class T>
  void add_constants(const T* x, T* out) const {
    const Shape y = g.y();
    std::fill_n(out, y.elements().value_or(0), from_double<T>(g.value));
    const StridedRegion to = strided(y, g.interior());
    if (g.x.elements().value_or(0) > 0) {
      copy_region(x, strided(g.x, whole_region(g.x)).strides, out + to.offset, to.strides, g.x);
    }
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    if (g.adds_constants()) {
      add_constants(in[0].data(), out);
    } else {
      steps<T>().run(in[0].data(), out);
    }
  }
  std::string attributes() const { return to_string(g); }
  /// Of the modes that add constants: along each axis it is a window of one tap.
  std::optional<TileOf<PadPrimitive>> tile(std::span<const Shape>, const Box& box) const {
    if (!g.adds_constants()) {
      return std::nullopt;
    }
    TileOf<PadPrimitive> tile{box, {box}, *this};
    for (int axis = 0; axis < box.rank(); ++axis) {
      const WindowAxis whole{.in = g.x[axis],
                             .pad_low = g.low[axis],
                             .pad_high = g.high[axis],
                             .out = g.low[axis] + g.x[axis] + g.high[axis]};
      const AxisTile part = whole.needed(box[axis]);
      tile.result.set(axis, part.outputs);
      tile.in[0].set(axis, part.inputs);
      tile.part.g.x[axis] = part.axis.in;
      tile.part.g.low[axis] = part.axis.pad_low;
      tile.part.g.high[axis] = part.axis.pad_high;
    }
    return tile;
  }
  template <KernelScalar T>
  std::unique_ptr<const graph::Kernel> prepare() const;
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const;
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return apply(PadPrimitive{{}, g.linear()}, {*dots[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const PadPrimitive&, const PadPrimitive&) = default;
};

struct PadAdjointPrimitive : PrimitiveBase<PadAdjointPrimitive> {
  static constexpr std::string_view name = "pad_adjoint";
  PadGeometry g;

  constexpr Shape result_shape(const Shape&) const { return g.x; }
  /// Of the modes that repeat cells.
  template <class T>
  AxisSteps<T> steps() const {
    Shape shape = g.y();
    AxisSteps<T> result{{}, shape.elements().value_or(0), true};
    if (result.size == 0) {
      return result;
    }
    for (int axis = 0; axis < g.x.rank(); ++axis) {
      if (g.pads(axis)) {
        result.steps.emplace_back(shape, axis, g.map(axis), true);
      }
    }
    return result;
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer&) const {
    if (g.adds_constants()) {
      SlicePrimitive{{}, g.y(), g.interior()}.run(in, data, out, {});
    } else {
      steps<T>().run(in[0].data(), out);
    }
  }
  std::string attributes() const { return to_string(g); }
  template <KernelScalar T>
  std::unique_ptr<const graph::Kernel> prepare() const;
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const {
    return apply(PadPrimitive{{}, g.linear()}, y_bar);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return apply(*this, {*dots[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const PadAdjointPrimitive&, const PadAdjointPrimitive&) = default;
};

/// With the maps of repeated cells made once.
template <class P, class T>
class PreparedPad final : public TensorKernel<T> {
 public:
  explicit PreparedPad(const P& primitive)
      : primitive_(primitive),
        steps_(primitive.g.adds_constants() ? AxisSteps<T>{} : primitive.template steps<T>()) {}

  std::size_t scratch_bytes() const override { return steps_.scratch_bytes(); }
  void compute(std::span<const Tensor<T>> in,
               std::span<const Selection> data,
               T* out,
               const SelectionBuffer& workspace,
               void* scratch,
               const T*) const override {
    if (primitive_.g.adds_constants()) {
      primitive_.run(in, data, out, workspace);
    } else {
      steps_.run(in[0].data(), out, static_cast<T*>(scratch));
    }
  }

 private:
  P primitive_;
  AxisSteps<T> steps_;
};

template <KernelScalar T>
std::unique_ptr<const graph::Kernel> PadPrimitive::prepare() const {
  return std::unique_ptr<const graph::Kernel>(new PreparedPad<PadPrimitive, T>(*this));
}
template <KernelScalar T>
std::unique_ptr<const graph::Kernel> PadAdjointPrimitive::prepare() const {
  return std::unique_ptr<const graph::Kernel>(new PreparedPad<PadAdjointPrimitive, T>(*this));
}

template <class V>
V PadPrimitive::vjp(int, const Saved<V>&, const V& y_bar) const {
  return apply(PadAdjointPrimitive{{}, g.linear()}, y_bar);
}

inline namespace generic {

template <AnyValue V>
constexpr V pad(const V& x, const std::vector<LowHigh>& padding, const PadOptions& options = {}) {
  const PadGeometry g = resolve_pad(x.shape(), padding, options);
  if (g.y() == g.x) {
    return x;
  }
  return apply(PadPrimitive{{}, g}, x);
}

template <AnyValue V>
constexpr V pad_adjoint(const V& y_bar,
                        const Shape& shape,
                        const std::vector<LowHigh>& padding,
                        const PadOptions& options = {}) {
  const PadGeometry g = resolve_pad(shape, padding, options).linear();
  if (y_bar.shape() != g.y()) {
    throw Error(
        "pad_adjoint",
        {.code = ErrorCode::shape_mismatch, .got = y_bar.shape().rank(), .needed = g.x.rank()},
        "pad_adjoint: y_bar = " + to_string(y_bar.shape()) + ", x = " + to_string(shape) +
            " padded is " + to_string(g.y()) + "\n  fix: y_bar of shape " + to_string(g.y()));
  }
  if (g.y() == g.x) {
    return y_bar;
  }
  return apply(PadAdjointPrimitive{{}, g}, y_bar);
}

}  // namespace generic

}  // namespace fenestra
