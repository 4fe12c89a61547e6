// Primitive<T>: what the engine and the passes of a graph ask of an operator's primitive, on values
// of one scalar.
//
// Everything that treats primitives alike (tape, forward mode, batches, graphs) is written against
// this class and compiled once for each scalar. Structs that keep the contract of
// PrimitiveBase become primitives by `PrimitiveOf` (primitive_of.hpp).
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/batch.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/condition.hpp>
#include <fenestra/tensor/split.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

template <class T>
class Primitive {
 public:
  using V = Value<T>;

  virtual ~Primitive() = default;
  /// Itself, to be kept.
  virtual std::shared_ptr<const Primitive> shared() const = 0;

  // --- Facts ------------------------------

  virtual std::string_view name() const = 0;
  /// Everything that distinguishes it from others of its name and input shapes, in words.
  virtual std::string attributes() const = 0;
  /// Whether both compute the same of the same inputs.
  virtual bool equals(const Primitive& other) const = 0;
  /// Of the result, `x` being the shape of the first input.
  virtual Shape result_shape(const Shape& x) const = 0;
  /// What a run can leave for derivatives.
  virtual SelectionType workspace() const = 0;
  /// The result is the first input's elements under another shape: nothing runs.
  virtual bool aliases_input() const = 0;
  /// The result may be written over input i, where that has the result's shape.
  virtual bool may_overwrite(int i) const = 0;
  /// Whether the cotangent of input i reads input `what` (or kOutput).
  virtual bool needs(int i, int what) const = 0;
  /// How it treats the samples along axis 0; see graph::Operation.
  virtual std::optional<Split> split(std::span<const Shape> in) const = 0;
  virtual std::shared_ptr<const Primitive> piece(Index count) const = 0;
  /// Itself on a part of its result; see graph::Operation.
  virtual std::optional<TileOf<std::shared_ptr<const Primitive>>> tile(std::span<const Shape> in,
                                                                       const Box& result) const = 0;
  /// Where the channels of its activations stand, for people; empty where it does not ask.
  virtual std::string layout() const = 0;
  /// What the numbers of input i must fulfil, where they are given; none where all will do.
  virtual std::optional<Condition> condition(int i) const = 0;
  /// Multiplications with an addition, 0 where it does not count them.
  virtual Index multiply_adds() const = 0;

  // --- Values ------------------------------

  /// Overwrites `out` whole, and leaves in `workspace` what derivatives ask for, unless it is
  /// empty.
  virtual void run(std::span<const Tensor<T>> in,
                   std::span<const Selection> data,
                   T* out,
                   const SelectionBuffer& workspace) const = 0;
  /// Itself with everything decided.
  virtual std::unique_ptr<const graph::Kernel> prepare() const = 0;

  // --- Rules ------------------------------

  /// Fills `bars[i]` for every i with `needed[i]`; an empty one is zero.
  virtual void vjp(const Saved<V>& saved,
                   const V& y_bar,
                   const std::vector<bool>& needed,
                   std::vector<std::optional<V>>& bars) const = 0;
  /// The tangent of the result; an empty one is zero.
  virtual std::optional<V> jvp(const Saved<V>& saved,
                               std::span<const std::optional<V>> dots) const = 0;
  virtual Applied<V> batched(const BatchCall<V>& call) const = 0;
  /// A scale and a shift per channel, where it does no more than that to input 0.
  virtual std::optional<ChannelMap<V>> channel_map(const Saved<V>& saved) const = 0;
  /// scale * y + shift in one operation, where it can take them in.
  virtual std::optional<V> scaled(const Saved<V>& saved, const V& scale, const V& shift) const = 0;
  /// Itself and what `reader` makes of its result, input `input` of the reader: one primitive of
  /// its own inputs and then the others of the reader; null where it cannot take that in.
  virtual std::shared_ptr<const Primitive> with_epilogue(const Primitive&, std::size_t) const {
    return nullptr;
  }
};

// How a primitive runs; defined in rules.hpp, compiled in the library for float and double.

template <class T>
FENESTRA_API Applied<Tensor<T>> apply_primitive(const Primitive<T>& primitive,
                                                std::span<const Tensor<T>> in,
                                                std::span<const Selection> data,
                                                bool keep);
template <class T>
FENESTRA_API Applied<Value<T>> apply_primitive(const Primitive<T>& primitive,
                                               std::span<const Value<T>> in,
                                               std::span<const Indices> data,
                                               bool keep);
template <KernelScalar T>
FENESTRA_API Applied<graph::Value<T>> apply_primitive(const Primitive<T>& primitive,
                                                      std::span<const graph::Value<T>> in,
                                                      std::span<const graph::Data> data,
                                                      bool keep);
/// Without a rule for batches: every item for itself. What the items leave for their derivatives
/// cannot be stacked without knowing what it means.
template <class T>
FENESTRA_API Applied<Value<T>> apply_item_by_item(const Primitive<T>& primitive,
                                                  const BatchCall<Value<T>>& call);

}  // namespace fenestra
