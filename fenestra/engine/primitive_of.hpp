// PrimitiveOf<P, T>: a struct as apply.hpp describes it, as a Primitive<T>.
//
// A struct may offer, beside what apply.hpp asks for,
// - attributes(): what distinguishes it, for people
// - may_overwrite(i): the result may be written over input i
// - multiply_adds()
// - condition(i): what the numbers of input i must fulfil
// - channel_map(saved): a scale and a shift per channel, where it does no more than that to input 0
// - scaled(saved, scale, shift): scale * y + shift in one operation, where it can take them in
// - split(shapes of the inputs) and piece(count): itself on a few samples of axis 0
// - tile(shapes of the inputs, box): itself on a part of its result, a TileOf<P>
// - prepare<T>(): itself with the kernel chosen and tables made; has run(in, data, out, workspace,
//   scratch), and may have kernel_name() and scratch_bytes(). One that packs an input has
//   packing(), pack(data, packed) and run(..., scratch, packed)
// and beside it the functions
// - apply_batched(primitive, call): its rule for batches
// - take_in(primitive, reader, input): itself and what another one makes of its result, as one
#pragma once

#include <fenestra/engine/primitive.hpp>
#include <fenestra/tensor/layout.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fenestra {

/// A primitive's run as a kernel.
template <class P, class T>
class KernelOf final : public graph::Kernel {
 public:
  explicit KernelOf(const P& primitive) : prepared_(prepared(primitive)) {}

  std::string_view name() const override {
    if constexpr (requires { prepared_.kernel_name(); }) {
      return prepared_.kernel_name();
    } else {
      return {};
    }
  }
  std::size_t scratch_bytes() const override {
    if constexpr (requires { prepared_.scratch_bytes(); }) {
      return prepared_.scratch_bytes();
    } else {
      return 0;
    }
  }
  graph::Packing packing() const override {
    if constexpr (requires { prepared_.packing(); }) {
      return prepared_.packing();
    } else {
      return {};
    }
  }
  void pack(const void* data, void* packed) const override {
    if constexpr (requires { prepared_.packing(); }) {
      prepared_.pack(static_cast<const T*>(data), static_cast<T*>(packed));
    }
  }
  void run(const graph::Call& call) const override {
    const std::span<const Tensor<T>> in(static_cast<const Tensor<T>*>(call.in), call.count);
    T* out = static_cast<T*>(call.out);
    if constexpr (requires { prepared_.packing(); }) {
      const T* packed = static_cast<const T*>(call.packed);
      prepared_.run(in, call.data, out, call.workspace, call.scratch, packed);
    } else if constexpr (kPrepares) {
      prepared_.run(in, call.data, out, call.workspace, call.scratch);
    } else if constexpr (leaves_workspace<P, T>()) {
      prepared_.template run<T>(in, call.data, out, call.workspace);
    } else {
      prepared_.template run<T>(in, call.data, out);
    }
  }

 private:
  static constexpr bool kPrepares = requires(const P& p) { p.template prepare<T>(); };

  static auto prepared(const P& primitive) {
    if constexpr (kPrepares) {
      return primitive.template prepare<T>();
    } else {
      return primitive;
    }
  }

  decltype(prepared(std::declval<const P&>())) prepared_;
};

template <class P, class T>
class PrimitiveOf final : public Primitive<T> {
 public:
  using V = Value<T>;

  explicit PrimitiveOf(const P& primitive) : primitive_(primitive) {}

  const P& primitive() const { return primitive_; }
  std::shared_ptr<const Primitive<T>> shared() const override { return kept(primitive_); }
  std::string_view name() const override { return name_of(primitive_); }
  std::string attributes() const override {
    if constexpr (requires { primitive_.attributes(); }) {
      return primitive_.attributes();
    } else {
      return {};
    }
  }
  bool equals(const Primitive<T>& other) const override {
    const auto* alike = dynamic_cast<const PrimitiveOf*>(&other);
    return alike != nullptr && alike->primitive_ == primitive_;
  }
  Shape result_shape(const Shape& x) const override { return primitive_.result_shape(x); }
  SelectionType workspace() const override {
    if constexpr (leaves_workspace<P, T>()) {
      return primitive_.template workspace<T>();
    } else {
      return {};
    }
  }
  bool aliases_input() const override { return fenestra::aliases_input<P>(); }
  bool may_overwrite(int i) const override {
    if constexpr (requires { primitive_.may_overwrite(i); }) {
      return primitive_.may_overwrite(i);
    } else {
      return false;
    }
  }
  bool needs(int i, int what) const override { return primitive_.needs(i, what); }
  std::optional<Split> split(std::span<const Shape> in) const override {
    if constexpr (requires { primitive_.split(in); }) {
      return primitive_.split(in);
    } else {
      return std::nullopt;
    }
  }
  std::shared_ptr<const Primitive<T>> piece(Index count) const override {
    if constexpr (requires { primitive_.piece(count); }) {
      return kept(primitive_.piece(count));
    } else {
      return nullptr;
    }
  }
  std::optional<TileOf<std::shared_ptr<const Primitive<T>>>> tile(
      std::span<const Shape> in, const Box& result) const override {
    if constexpr (requires { primitive_.tile(in, result); }) {
      if (auto tile = primitive_.tile(in, result)) {
        return {{tile->result, std::move(tile->in), kept(tile->part), tile->axes}};
      }
    }
    return std::nullopt;
  }
  std::string layout() const override {
    if constexpr (requires { primitive_.g.layout; }) {
      return std::string(layout_name(primitive_.g.layout));
    } else if constexpr (requires { primitive_.g.pool.layout; }) {
      return std::string(layout_name(primitive_.g.pool.layout));
    } else {
      return {};
    }
  }
  std::optional<Condition> condition(int i) const override {
    if constexpr (requires { primitive_.condition(i); }) {
      return primitive_.condition(i);
    } else {
      return std::nullopt;
    }
  }
  Index multiply_adds() const override {
    if constexpr (requires { primitive_.multiply_adds(); }) {
      return primitive_.multiply_adds();
    } else {
      return 0;
    }
  }

  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer& workspace) const override {
    if constexpr (fenestra::aliases_input<P>()) {
      std::copy_n(in[0].data(), in[0].size(), out);
    } else if constexpr (leaves_workspace<P, T>()) {
      primitive_.template run<T>(in, data, out, workspace);
    } else {
      primitive_.template run<T>(in, data, out);
    }
  }
  std::unique_ptr<const graph::Kernel> prepare() const override {
    if constexpr (!KernelScalar<T> || fenestra::aliases_input<P>()) {
      return nullptr;
    } else {
      return std::unique_ptr<const graph::Kernel>(new KernelOf<P, T>(primitive_));
    }
  }

  void vjp(const Saved<V>& saved,
           const V& y_bar,
           const std::vector<bool>& needed,
           std::vector<std::optional<V>>& bars) const override {
    if constexpr (requires { primitive_.template vjp_all<V>(saved, y_bar, needed, bars); }) {
      primitive_.template vjp_all<V>(saved, y_bar, needed, bars);
    } else {
      for (std::size_t i = 0; i < needed.size(); ++i) {
        if (needed[i]) {
          bars[i] = primitive_.template vjp<V>(static_cast<int>(i), saved, y_bar);
        }
      }
    }
  }
  std::optional<V> jvp(const Saved<V>& saved,
                       std::span<const std::optional<V>> dots) const override {
    return primitive_.template jvp<V>(saved, dots);
  }
  Applied<V> batched(const BatchCall<V>& call) const override {
    if constexpr (requires { apply_batched(primitive_, call); }) {
      return apply_batched(primitive_, call);
    } else {
      return apply_item_by_item(static_cast<const Primitive<T>&>(*this), call);
    }
  }
  std::optional<ChannelMap<V>> channel_map(const Saved<V>& saved) const override {
    if constexpr (requires { primitive_.template channel_map<V>(saved); }) {
      return primitive_.template channel_map<V>(saved);
    } else {
      return std::nullopt;
    }
  }
  std::optional<V> scaled(const Saved<V>& saved, const V& scale, const V& shift) const override {
    if constexpr (requires { primitive_.template scaled<V>(saved, scale, shift); }) {
      return primitive_.template scaled<V>(saved, scale, shift);
    } else {
      return std::nullopt;
    }
  }
  std::shared_ptr<const Primitive<T>> with_epilogue(const Primitive<T>& reader,
                                                    std::size_t input) const override {
    if constexpr (requires { take_in(primitive_, reader, input); }) {
      return take_in(primitive_, reader, input);
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
