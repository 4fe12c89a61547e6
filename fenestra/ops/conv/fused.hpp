// A convolution and what follows it, in one operation: what compiled programs make of
// activation(conv(x, w, b) + residual) where nobody reads what is in between. Nobody calls it: the
// pass in graph/epilogue.hpp asks convolutions to take in their readers.
//
// Every element has the bits that the operators one by one give it: the epilogue rounds as they do,
// and the convolution runs on the same kernel.
#pragma once

#include <fenestra/ops/conv/conv.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

/// Of x, w, the bias where the convolution has one, and the residual where the epilogue has a sum.
struct FusedConvPrimitive : PrimitiveBase<FusedConvPrimitive> {
  static constexpr std::string_view name = "fused_conv";
  ConvGeometry g;
  bool has_bias = false;
  ConvEpilogue epilogue;
  std::string title;  ///< "conv+add+relu", for people

  ConvPrimitive conv() const { return {{}, ConvDirection::forward, g, has_bias}; }

  std::string_view display_name() const { return title; }
  Shape result_shape(const Shape&) const { return conv().shape(); }
  std::string attributes() const {
    const std::string more =
        epilogue.activation ? UnaryPrimitive{{}, *epilogue.activation}.attributes() : "";
    return conv().attributes() + (more.empty() ? "" : ", " + more);
  }
  template <KernelScalar T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer&) const {
    PreparedConv<T>(conv(), epilogue).compute(in, data, out, {}, nullptr, nullptr);
  }
  template <KernelScalar T>
  std::unique_ptr<const graph::Kernel> prepare() const {
    return std::unique_ptr<const graph::Kernel>(new PreparedConv<T>(conv(), epilogue));
  }
  std::string layout() const { return conv().layout(); }
  Index multiply_adds() const { return conv().multiply_adds(); }
  std::optional<Split> split(std::span<const Shape> in) const {
    std::optional<Split> split = conv().split(in);
    if (split && epilogue.has_sum()) {
      split->in.back() = true;
    }
    return split;
  }
  FusedConvPrimitive piece(Index count) const {
    return {{}, conv().piece(count).g, has_bias, epilogue, title};
  }

  // Programs are differentiated before they are fused, so that derivatives read what they need; of
  // what was fused they compute the sums again.

  template <class V>
  void vjp_all(const Saved<V>& s,
               const V& y_bar,
               const std::vector<bool>& needed,
               std::vector<std::optional<V>>& bars) const {
    const std::optional<V> z_bar = times_slope(s, y_bar);
    for (std::size_t i = 0; i < needed.size() && z_bar; ++i) {
      if (needed[i]) {
        bars[i] = i < conv_inputs() ? conv().vjp(static_cast<int>(i), s, *z_bar) : *z_bar;
      }
    }
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& s, std::span<const std::optional<V>> dots) const {
    OptionalSum<V> sum;
    if (std::optional<V> dot = conv().jvp(s, dots.first(conv_inputs()))) {
      sum.add_term(std::move(*dot));
    }
    if (epilogue.has_sum() && dots.back()) {
      sum.add_term(*dots.back());
    }
    const std::optional<V> z_dot = sum.take();
    return z_dot ? times_slope(s, *z_dot) : std::nullopt;
  }
  template <KernelScalar T>
  std::shared_ptr<const Primitive<T>> with_epilogue(const Primitive<T>& reader,
                                                    std::size_t input) const;
  static constexpr bool needs(int, int) { return true; }
  friend bool operator==(const FusedConvPrimitive&, const FusedConvPrimitive&) = default;

 private:
  std::size_t conv_inputs() const { return has_bias ? 3 : 2; }

  /// u times the derivative of the activation.
  template <class V>
  std::optional<V> times_slope(const Saved<V>& s, const V& u) const {
    if (!epilogue.activation) {
      return u;
    }
    V z = has_bias ? apply(conv(), {s[0], s[1], s[2]}) : apply(conv(), {s[0], s[1]});
    if (epilogue.has_sum()) {
      z = add(z, *s.in.back());
    }
    Saved<V> of_activation;
    of_activation.in.emplace_back(std::move(z));
    of_activation.y = s.y;
    return UnaryPrimitive{{}, *epilogue.activation}.times_slope(of_activation, u);
  }
};

}  // namespace fenestra
