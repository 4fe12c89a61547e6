// PrimitiveOf<P, T>: a struct that keeps the contract of PrimitiveBase, as a Primitive<T>.
#pragma once

#include <fenestra/engine/primitive.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/engine/tensor_kernel.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fenestra {

/// A primitive's run as a kernel.
template <class P, class T>
class KernelOf final : public TensorKernel<T> {
 public:
  explicit KernelOf(const P& primitive) : primitive_(primitive) {}

  void compute(std::span<const Tensor<T>> in,
               std::span<const Selection> data,
               T* out,
               const SelectionBuffer& workspace,
               void*,
               const T*) const override {
    primitive_.template run<T>(in, data, out, workspace);
  }

 private:
  P primitive_;
};

template <class P>
template <class T>
std::unique_ptr<const graph::Kernel> PrimitiveBase<P>::prepare() const {
  return std::unique_ptr<const graph::Kernel>(new KernelOf<P, T>(self()));
}

template <class P, class T>
class PrimitiveOf final : public Primitive<T> {
  static_assert(DeclaredPrimitive<P>,
                "a primitive's functions have the types that PrimitiveBase declares");

 public:
  using V = Value<T>;

  explicit PrimitiveOf(const P& primitive) : primitive_(primitive) {}

  const P& primitive() const { return primitive_; }
  std::shared_ptr<const Primitive<T>> shared() const override { return kept(primitive_); }
  std::string_view name() const override { return primitive_.display_name(); }
  std::string attributes() const override { return primitive_.attributes(); }
  bool equals(const Primitive<T>& other) const override {
    const auto* alike = dynamic_cast<const PrimitiveOf*>(&other);
    return alike != nullptr && alike->primitive_ == primitive_;
  }
  Shape result_shape(const Shape& x) const override { return primitive_.result_shape(x); }
  SelectionType workspace() const override { return primitive_.template workspace<T>(); }
  bool aliases_input() const override { return P::aliases_input; }
  bool may_overwrite(int i) const override { return primitive_.may_overwrite(i); }
  bool needs(int i, int what) const override { return primitive_.needs(i, what); }
  std::optional<Split> split(std::span<const Shape> in) const override {
    return primitive_.split(in);
  }
  std::shared_ptr<const Primitive<T>> piece(Index count) const override {
    const std::optional<P> some = primitive_.piece(count);
    return some ? kept(*some) : nullptr;
  }
  std::optional<TileOf<std::shared_ptr<const Primitive<T>>>> tile(
      std::span<const Shape> in, const Box& result) const override {
    if (auto tile = primitive_.tile(in, result)) {
      return {{tile->result, std::move(tile->in), kept(tile->part), tile->axes}};
    }
    return std::nullopt;
  }
  std::string layout() const override { return primitive_.layout(); }
  std::optional<Condition> condition(int i) const override { return primitive_.condition(i); }
  Index multiply_adds() const override { return primitive_.multiply_adds(); }

  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer& workspace) const override {
    primitive_.template run<T>(in, data, out, workspace);
  }
  std::unique_ptr<const graph::Kernel> prepare() const override {
    if constexpr (!KernelScalar<T> || P::aliases_input) {
      return nullptr;
    } else {
      return primitive_.template prepare<T>();
    }
  }

  void vjp(const Saved<V>& saved,
           const V& y_bar,
           const std::vector<bool>& needed,
           std::vector<std::optional<V>>& bars) const override {
    primitive_.template vjp_all<V>(saved, y_bar, needed, bars);
  }
  std::optional<V> jvp(const Saved<V>& saved,
                       std::span<const std::optional<V>> dots) const override {
    return primitive_.template jvp<V>(saved, dots);
  }
  Applied<V> batched(const BatchCall<V>& call) const override {
    return primitive_.template batched<V>(call);
  }
  std::optional<ChannelMap<V>> channel_map(const Saved<V>& saved) const override {
    return primitive_.template channel_map<V>(saved);
  }
  std::optional<V> scaled(const Saved<V>& saved, const V& scale, const V& shift) const override {
    return primitive_.template scaled<V>(saved, scale, shift);
  }
  std::shared_ptr<const Primitive<T>> with_epilogue(const Primitive<T>& reader,
                                                    std::size_t input) const override {
    if constexpr (KernelScalar<T>) {
      return primitive_.template with_epilogue<T>(reader, input);
    } else {
      return nullptr;
    }
  }

 private:
  /// Owned through the base class, so that no code of the owner is compiled for each primitive.
  static std::shared_ptr<const Primitive<T>> kept(const P& primitive) {
    const Primitive<T>* const made = new PrimitiveOf(primitive);
    return std::shared_ptr<const Primitive<T>>(made);
  }

  P primitive_;
};

/// The same for a struct, in rules for batches.
template <class P, class T>
Applied<Value<T>> apply_item_by_item(const P& primitive, const BatchCall<Value<T>>& call) {
  const PrimitiveOf<P, T> wrapped(primitive);
  return apply_item_by_item(static_cast<const Primitive<T>&>(wrapped), call);
}

}  // namespace fenestra
