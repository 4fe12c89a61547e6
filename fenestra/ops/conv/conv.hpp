// Convolution on any value type, and the derivative rules of the family.
//
// Forward, input gradient and weight gradient are one primitive in three directions: each is
// bilinear, and each one's derivatives are the other two, so derivatives of every order are made of
// these three.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/engine/tensor_kernel.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/conv/call.hpp>
#include <fenestra/ops/conv/epilogue.hpp>
#include <fenestra/ops/conv/geometry.hpp>
#include <fenestra/ops/conv/spec.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/split.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace fenestra {

/// Every candidate of every direction, for float and double.
FENESTRA_API std::vector<KernelChoice> conv_kernels(const ConvGeometry& g);

struct ConvProblem;
template <class T>
struct ConvArguments;
template <class T>
using ConvKernel = kernels::Candidate<ConvProblem, ConvArguments<T>>;
template <KernelScalar T>
class PreparedConv;

/// Chooses a candidate, and runs one; compiled for float and double. `bias` may be null. `out` is
/// overwritten whole.
template <KernelScalar T>
FENESTRA_API const ConvKernel<T>& choose_conv(ConvDirection direction, const ConvGeometry& g);
template <KernelScalar T>
FENESTRA_API void run_conv(const ConvKernel<T>& kernel,
                           ConvDirection direction,
                           const ConvGeometry& g,
                           const T* lhs,
                           const T* rhs,
                           const T* bias,
                           T* out);

/// The shape a per-channel vector has when it is added to an activation of `rank` spatial axes.
constexpr Shape channel_shape(Index channels, int rank, Layout layout) {
  Shape shape{channels};
  for (int axis = 0; layout == Layout::channels_first && axis < rank; ++axis) {
    shape.push_back(1);
  }
  return shape;
}

/// The shape in which a vector is broadcast along axis 0 of a tensor.
constexpr Shape leading_shape(Index extent, const Shape& tensor) {
  Shape shape{extent};
  for (int axis = 1; axis < tensor.rank(); ++axis) {
    shape.push_back(1);
  }
  return shape;
}

/// Sum over batch and space: the gradient of a bias.
template <AnyValue V>
constexpr V sum_to_channels(const V& y, Index channels, int rank, Layout layout) {
  return reshape(sum_to(y, channel_shape(channels, rank, layout)), Shape{channels});
}

template <AnyValue V>
constexpr V conv_input_grad(const V& y_bar, const V& w, const ConvGeometry& g);
template <AnyValue V>
constexpr V conv_weight_grad(const V& x, const V& y_bar, const ConvGeometry& g);

/// How a convolution in a direction treats samples; null where it sums over them. Kernels pack the
/// weights in every call: a piece has twice as many cells of activations as of weights, and enough
/// cells to fill their tiles, or enough samples to fill vectors.
FENESTRA_API std::optional<Split> conv_split(ConvDirection direction,
                                             const ConvGeometry& g,
                                             std::size_t inputs);

struct ConvPrimitive : PrimitiveBase<ConvPrimitive> {
  static constexpr std::string_view name = "conv";
  ConvDirection direction = ConvDirection::forward;
  ConvGeometry g;
  bool has_bias = false;  ///< a third input, one value per channel of the result

  /// As `conv_kernels` lists it.
  static constexpr std::string_view direction_name(ConvDirection direction) {
    switch (direction) {
      case ConvDirection::forward: return "forward";
      case ConvDirection::input_grad: return "input_grad";
      case ConvDirection::weight_grad: return "weight_grad";
    }
    return {};
  }
  std::string_view display_name() const {
    switch (direction) {
      case ConvDirection::forward: return "conv";
      case ConvDirection::input_grad: return "conv_input_grad";
      case ConvDirection::weight_grad: return "conv_weight_grad";
    }
    return name;
  }
  constexpr Shape shape() const {
    switch (direction) {
      case ConvDirection::forward: return g.y_shape();
      case ConvDirection::input_grad: return g.x_shape();
      case ConvDirection::weight_grad: return g.w_shape();
    }
    return {};
  }
  constexpr Shape result_shape(const Shape&) const { return shape(); }
  Index bias_channels() const {
    return direction == ConvDirection::forward ? g.out_channels : g.in_channels;
  }

  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    if constexpr (KernelScalar<T>) {
      const T* b = has_bias ? in[2].data() : nullptr;
      run_conv(choose_conv<T>(direction, g), direction, g, in[0].data(), in[1].data(), b, out);
    } else {
      const Tensor<T>* b = has_bias ? &in[2] : nullptr;
      switch (direction) {
        case ConvDirection::forward: return store(spec::conv(in[0], in[1], b, g), out);
        case ConvDirection::input_grad: {
          Tensor<T> x = spec::conv_input_grad(in[0], in[1], g);
          if (b != nullptr) {
            spec::add_channel(x, *b, g.x_map());
          }
          return store(std::move(x), out);
        }
        case ConvDirection::weight_grad: return store(spec::conv_weight_grad(in[0], in[1], g), out);
      }
    }
  }
  template <KernelScalar T>
  std::unique_ptr<const graph::Kernel> prepare() const {
    return std::unique_ptr<const graph::Kernel>(new PreparedConv<T>(*this));
  }
  std::string layout() const { return std::string(layout_name(g.layout)); }
  Index multiply_adds() const { return g.multiply_adds(); }
  std::optional<Split> split(std::span<const Shape> in) const {
    return conv_split(direction, g, in.size());
  }
  ConvPrimitive piece(Index count) const {
    ConvPrimitive some = *this;
    some.g.batch = count;
    return some;
  }
  std::optional<TileOf<ConvPrimitive>> tile(std::span<const Shape> in, const Box& box) const {
    const bool transposed = direction == ConvDirection::input_grad;
    const auto part = direction == ConvDirection::weight_grad
                          ? std::nullopt
                          : tile_windows(g.windows, transposed, in[0], shape(), box, g.layout);
    if (!part) {
      return std::nullopt;
    }
    TileOf<ConvPrimitive> tile{part->outputs, {part->inputs}, *this};
    tile.part.g.windows = part->windows;
    for (const Shape& parameter : in.subspan(1)) {
      tile.in.emplace_back(parameter);
    }
    return tile;
  }
  std::string attributes() const { return to_string(g); }
  /// scale * y + shift per channel, by other weights and another bias.
  template <class V>
  std::optional<V> scaled(const Saved<V>& s, const V& scale, const V& shift) const {
    if (direction != ConvDirection::forward) {
      return std::nullopt;
    }
    const bool first = g.layout == Layout::channels_first;
    const V w =
        mul(s[1], first ? reshape(scale, leading_shape(g.out_channels, g.w_shape())) : scale);
    const V b = has_bias ? V(add(mul(s[2], scale), shift)) : shift;
    return apply(ConvPrimitive{{}, direction, g, true}, {s[0], w, b});
  }
  template <class V>
  V vjp(int i, const Saved<V>& s, const V& bar) const {
    if (i == 2) {
      return sum_to_channels(bar, bias_channels(), g.rank(), g.layout);
    }
    switch (direction) {
      case ConvDirection::forward:
        return i == 0 ? conv_input_grad(bar, s[1], g) : conv_weight_grad(s[0], bar, g);
      case ConvDirection::input_grad:
        return i == 0 ? forward(bar, s[1]) : conv_weight_grad(bar, s[0], g);
      case ConvDirection::weight_grad:
        return i == 0 ? conv_input_grad(s[1], bar, g) : forward(s[0], bar);
    }
    return bar;
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& s, std::span<const std::optional<V>> dots) const {
    const ConvPrimitive plain{{}, direction, g, false};
    OptionalSum<V> sum;
    if (dots[0]) {
      sum.add_term(apply(plain, {*dots[0], s[1]}));
    }
    if (dots[1]) {
      sum.add_term(apply(plain, {s[0], *dots[1]}));
    }
    if (has_bias && dots[2]) {
      sum.add_term(broadcast_to(
          reshape(*dots[2], channel_shape(bias_channels(), g.rank(), g.layout)), shape()));
    }
    return sum.take();
  }
  /// With a sum or an activation that reads its result; see fused.hpp.
  template <KernelScalar T>
  std::shared_ptr<const Primitive<T>> with_epilogue(const Primitive<T>& reader,
                                                    std::size_t input) const;
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int i, int what) { return i < 2 && what == 1 - i; }
  friend bool operator==(const ConvPrimitive&, const ConvPrimitive&) = default;

 private:
  template <class V>
  V forward(const V& x, const V& w) const {
    return apply(ConvPrimitive{{}, ConvDirection::forward, g, false}, {x, w});
  }
};

/// A convolution with its kernel chosen. Its weights can be packed ahead; the packed form is passed
/// over where another instruction set is in use by then.
template <KernelScalar T>
class FENESTRA_API PreparedConv final : public TensorKernel<T> {
 public:
  explicit PreparedConv(const ConvPrimitive& conv, const ConvEpilogue& epilogue = {});

  std::string_view name() const override { return kernel_->name; }
  graph::Packing packing() const override { return {1, packed_elements_ * sizeof(T)}; }
  void pack_elements(const T* w, T* packed) const override;
  void compute(std::span<const Tensor<T>> in,
               std::span<const Selection>,
               T* out,
               const SelectionBuffer&,
               void*,
               const T* packed) const override;

 private:
  bool is_packed_here() const;

  ConvPrimitive conv_;
  ConvEpilogue epilogue_;
  const ConvKernel<T>* kernel_;
  std::string_view isa_;
  std::size_t packed_elements_ = 0;
};
extern template class PreparedConv<float>;
extern template class PreparedConv<double>;

namespace detail {

/// Gradients carry the geometry without the bias, so that equal convolutions compare equal.
constexpr ConvGeometry without_bias(ConvGeometry g) {
  g.has_bias = false;
  return g;
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
constexpr V conv_values(const V& x, const V& w, const V* b, const ConvOptions& options) {
  if (b == nullptr) {
    const ConvGeometry g = conv_geometry(x.shape(), w.shape(), std::nullopt, options);
    return apply(ConvPrimitive{{}, ConvDirection::forward, g, false}, {x, w});
  }
  const ConvGeometry g = conv_geometry(x.shape(), w.shape(), b->shape(), options);
  return apply(ConvPrimitive{{}, ConvDirection::forward, detail::without_bias(g), true},
               {x, w, *b});
}

}  // namespace generic

/// The input gradient of the convolution `g`; linear in both arguments.
template <AnyValue V>
constexpr V conv_input_grad(const V& y_bar, const V& w, const ConvGeometry& g) {
  require_shape("conv_input_grad", "y_bar", y_bar, g.y_shape());
  require_shape("conv_input_grad", "w", w, g.w_shape());
  return apply(ConvPrimitive{{}, ConvDirection::input_grad, detail::without_bias(g), false},
               {y_bar, w});
}

/// The weight gradient of the convolution `g`; linear in both arguments.
template <AnyValue V>
constexpr V conv_weight_grad(const V& x, const V& y_bar, const ConvGeometry& g) {
  require_shape("conv_weight_grad", "x", x, g.x_shape());
  require_shape("conv_weight_grad", "y_bar", y_bar, g.y_shape());
  return apply(ConvPrimitive{{}, ConvDirection::weight_grad, detail::without_bias(g), false},
               {x, y_bar});
}

}  // namespace fenestra
