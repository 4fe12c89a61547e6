// PrimitiveBase<P>: the contract of an operator's primitive: everything that one may say, with what
// holds where it says nothing.
//
// A primitive P is a small comparable struct (geometry, options) that inherits this base with
// itself as P; since it is an aggregate, {} for the base comes first: ConvPrimitive{{}, direction,
// g}. It must have
// - name: what tapes, plans and messages call it
// - result_shape(x): the shape of the result, x being that of the first input
// - run<T>(in, data, out, workspace), unless the result is the first input under another shape
// - vjp<V>(i, saved, y_bar): cotangent of input i, written with operators on V; may be a
//   std::optional<V>, empty for zero. Or vjp_all, where the cotangents share work
// - jvp<V>(saved, dots): tangent of the result, written with operators on V; an empty dot is zero
// - needs(i, what): whether the cotangent of input i reads input `what` (or kOutput)
// - operator==
// and hides here what it says otherwise. `DeclaredPrimitive` checks the signatures of all of it.
//
// V is Value<T>. Since vjp and jvp are made of operators on the same type, every order and mixture
// of derivatives follows. PrimitiveOf (primitive_of.hpp) makes a Primitive<T> of P.
#pragma once

#include <fenestra/engine/apply.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/condition.hpp>
#include <fenestra/tensor/selection.hpp>
#include <fenestra/tensor/split.hpp>

#include <algorithm>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

template <AnyValue V>
struct BatchCall;
template <class T>
class Primitive;

template <class P>
struct PrimitiveBase {
  /// So that the base is not empty: GCC clears an aggregate with an empty base before it fills it,
  /// which takes longer than filling it.
  bool is_filled = true;

  // --- Facts ------------------------------

  /// The result is the first input's elements under another shape: in programs nothing runs.
  static constexpr bool aliases_input = false;

  /// Its name for people, where that depends on its attributes.
  constexpr std::string_view display_name() const { return P::name; }
  /// What distinguishes it from others of its name and input shapes, for people.
  std::string attributes() const { return {}; }
  /// Where the channels of its activations stand, for people; empty where it does not ask.
  std::string layout() const { return {}; }
  /// The result may be written over input i, where that has the result's shape.
  static constexpr bool may_overwrite(int) { return false; }
  /// Multiplications with an addition; 0 where it does not count them.
  Index multiply_adds() const { return 0; }
  /// What the numbers of input i must fulfil; none where all will do.
  std::optional<Condition> condition(int) const { return std::nullopt; }

  // --- Values ------------------------------

  /// Form and shape of what a run can leave for derivatives that must know what it chose.
  template <class T>
  SelectionType workspace() const {
    return {};
  }
  /// Values on tensors, into memory that it overwrites whole; `workspace` is empty where nobody
  /// asked for it.
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    static_assert(P::aliases_input, "a primitive has run<T>(in, data, out, workspace)");
    std::copy_n(in[0].data(), in[0].size(), out);
  }
  /// Itself with the kernel chosen and tables made, for programs: see TensorKernel.
  template <class T>
  std::unique_ptr<const graph::Kernel> prepare() const;

  // --- Parts ------------------------------

  /// How it treats the samples along axis 0, from inputs of these shapes; none where it does not
  /// treat them one by one.
  std::optional<Split> split(std::span<const Shape>) const { return std::nullopt; }
  /// Itself on `count` samples; of primitives that have a split.
  std::optional<P> piece(Index) const { return std::nullopt; }
  /// Itself on a part of its result, from inputs of these shapes; see graph::Operation.
  std::optional<TileOf<P>> tile(std::span<const Shape>, const Box&) const { return std::nullopt; }

  // --- Rules ------------------------------

  /// Fills `bars[i]` for every i with `needed[i]`; an empty one is zero.
  template <class V>
  void vjp_all(const Saved<V>& saved,
               const V& y_bar,
               const std::vector<bool>& needed,
               std::vector<std::optional<V>>& bars) const {
    for (std::size_t i = 0; i < needed.size(); ++i) {
      if (needed[i]) {
        bars[i] = self().template vjp<V>(static_cast<int>(i), saved, y_bar);
      }
    }
  }
  /// Itself on batches; without a rule every item for itself.
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const {
    return apply_item_by_item(self(), call);
  }
  /// A scale and a shift per channel, where it does no more than that to input 0.
  template <class V>
  std::optional<ChannelMap<V>> channel_map(const Saved<V>&) const {
    return std::nullopt;
  }
  /// scale * y + shift in one operation, where it can take them in.
  template <class V>
  std::optional<V> scaled(const Saved<V>&, const V&, const V&) const {
    return std::nullopt;
  }
  /// Itself and what `reader` makes of its result, input `input` of the reader, as one; null where
  /// it cannot take that in. For float and double, the scalars of programs.
  template <class T>
  std::shared_ptr<const Primitive<T>> with_epilogue(const Primitive<T>&, std::size_t) const {
    return nullptr;
  }

  friend constexpr bool operator==(const PrimitiveBase&, const PrimitiveBase&) = default;

 private:
  constexpr const P& self() const { return static_cast<const P&>(*this); }
};

/// What does not depend on a scalar, with its types: a function that hides one of the base with
/// another signature is found here and not by a wrong result.
template <class P>
concept DeclaredPrimitive =
    std::derived_from<P, PrimitiveBase<P>> && std::equality_comparable<P> &&
    requires(
        const P& p, int i, Index n, const Shape& x, std::span<const Shape> in, const Box& box) {
      { P::name } -> std::convertible_to<std::string_view>;
      { P::aliases_input } -> std::convertible_to<bool>;
      { p.result_shape(x) } -> std::same_as<Shape>;
      { p.needs(i, i) } -> std::same_as<bool>;
      { p.display_name() } -> std::same_as<std::string_view>;
      { p.attributes() } -> std::same_as<std::string>;
      { p.layout() } -> std::same_as<std::string>;
      { p.may_overwrite(i) } -> std::same_as<bool>;
      { p.multiply_adds() } -> std::same_as<Index>;
      { p.condition(i) } -> std::same_as<std::optional<Condition>>;
      { p.template workspace<double>() } -> std::same_as<SelectionType>;
      { p.split(in) } -> std::same_as<std::optional<Split>>;
      { p.piece(n) } -> std::convertible_to<std::optional<P>>;
      { p.tile(in, box) } -> std::same_as<std::optional<TileOf<P>>>;
    };

}  // namespace fenestra
