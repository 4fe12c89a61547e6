// CustomPrimitive: the primitive behind custom_vjp. Compiled in the library for float and double;
// for other scalars <fenestra/rules.hpp> brings it.
#pragma once

#include <fenestra/engine/composed.hpp>
#include <fenestra/engine/custom_vjp.hpp>
#include <fenestra/engine/primitive.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/engine/vmap.hpp>

#include <algorithm>
#include <any>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::detail {

/// The result of `forward`, given as input 0, as a function of the arguments, which are the others.
template <class T>
class CustomPrimitive final : public Primitive<T> {
 public:
  using V = Value<T>;
  using Rule = CustomRule<T>;

  /// `residuals` are those of the arguments' numbers.
  CustomPrimitive(std::shared_ptr<const Rule> rule, std::any residuals)
      : rule_(std::move(rule)), residuals_(std::move(residuals)) {}

  std::shared_ptr<const Primitive<T>> shared() const override {
    return std::make_shared<const CustomPrimitive>(*this);
  }
  std::string_view name() const override { return "custom_vjp"; }
  std::string attributes() const override { return {}; }
  bool equals(const Primitive<T>& other) const override {
    const auto* alike = dynamic_cast<const CustomPrimitive*>(&other);
    return alike != nullptr && alike->rule_ == rule_;
  }
  Shape result_shape(const Shape& y) const override { return y; }
  SelectionType workspace() const override { return {}; }
  bool aliases_input() const override { return true; }
  bool may_overwrite(int) const override { return false; }
  bool needs(int i, int what) const override { return i > 0 && what > 0; }
  std::optional<Split> split(std::span<const Shape>) const override { return std::nullopt; }
  std::shared_ptr<const Primitive<T>> piece(Index) const override { return nullptr; }
  std::optional<TileOf<std::shared_ptr<const Primitive<T>>>> tile(std::span<const Shape>,
                                                                  const Box&) const override {
    return std::nullopt;
  }
  std::string layout() const override { return {}; }
  std::optional<Condition> condition(int) const override { return std::nullopt; }
  Index multiply_adds() const override { return 0; }

  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const override {
    std::copy_n(in[0].data(), in[0].size(), out);
  }
  std::unique_ptr<const graph::Kernel> prepare() const override { return nullptr; }

  void vjp(const Saved<V>& saved,
           const V& y_bar,
           const std::vector<bool>& needed,
           std::vector<std::optional<V>>& bars) const override {
    const std::vector<V> args = arguments(saved);
    std::vector<V> found = pulled_back(args, y_bar);
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (needed[i + 1]) {
        bars[i + 1] = std::move(found[i]);
      }
    }
  }
  /// The pullback is linear in y_bar; its own pullback is the derivative.
  std::optional<V> jvp(const Saved<V>& saved,
                       std::span<const std::optional<V>> dots) const override {
    const Recording recording;
    const std::vector<V> args = arguments(saved);
    Tape<T> tape;
    const V y_bar = tape.parameter(zeros_like(*saved.y));
    const std::vector<V> found = pulled_back(args, y_bar);
    std::vector<Seed<T>> seeds;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (dots[i + 1] && tape.owns(found[i])) {
        seeds.push_back({found[i], *dots[i + 1]});
      }
    }
    if (seeds.empty()) {
      return std::nullopt;
    }
    return tape.backward(std::span<const Seed<T>>(seeds))[y_bar];
  }
  /// The same functions on all items at once, as a rule for what is inside the batches.
  Applied<V> batched(const BatchCall<V>& call) const override {
    const Level level = call.level;
    const Index count = call.count;
    std::vector<bool> stacked;
    std::vector<V> in{call.stacked(0)};
    for (std::size_t i = 1; i < call.in.size(); ++i) {
      stacked.push_back(call.is_stacked(i));
      in.push_back(call.in[i].value());
    }
    auto rule = std::make_shared<Rule>();
    rule->forward = [level, count, stacked, inner = rule_](std::span<const V> args) {
      std::vector<V> items;
      for (std::size_t i = 0; i < args.size(); ++i) {
        items.push_back(stacked[i] ? V(level, Batch<V>::stacked(args[i])) : args[i]);
      }
      auto [y, residuals] = inner->forward(items);
      return std::pair(stacked_value(level, y, count), std::move(residuals));
    };
    rule->backward = [level, count, stacked, inner = rule_](const std::any& residuals,
                                                            const V& y_bar) {
      std::vector<V> bars = inner->backward(residuals, V(level, Batch<V>::stacked(y_bar)));
      for (std::size_t i = 0; i < bars.size() && i < stacked.size(); ++i) {
        bars[i] = stacked_value(level, bars[i], count);
        if (!stacked[i]) {  // one argument for all items receives what all of them send
          Shape item;
          for (int axis = 1; axis < bars[i].shape().rank(); ++axis) {
            item.push_back(bars[i].shape()[axis]);
          }
          bars[i] = reshape(sum_to(bars[i], with_front(1, item)), item);
        }
      }
      return bars;
    };
    return apply_primitive(
        CustomPrimitive(std::move(rule), residuals_), std::span<const V>(in), {}, call.keep);
  }
  std::optional<ChannelMap<V>> channel_map(const Saved<V>&) const override { return std::nullopt; }
  std::optional<V> scaled(const Saved<V>&, const V&, const V&) const override {
    return std::nullopt;
  }

 private:
  static std::vector<V> arguments(const Saved<V>& saved) {
    std::vector<V> args;
    for (std::size_t i = 1; i < saved.in.size(); ++i) {
      args.push_back(*saved.in[i]);
    }
    return args;
  }
  /// The residuals that were kept are right where the arguments are the same numbers and no more;
  /// elsewhere they depend on them, and are computed again.
  std::vector<V> pulled_back(const std::vector<V>& args, const V& y_bar) const {
    bool settled = residuals_.has_value();
    for (const V& arg : args) {
      settled = settled && is_settled(arg);
    }
    const std::vector<V> bars =
        rule_->backward(settled ? residuals_ : rule_->forward(args).second, y_bar);
    if (bars.size() != args.size()) {
      throw Error(ErrorCode::shape_mismatch,
                  "custom_vjp: backward returned " + std::to_string(bars.size()) +
                      " cotangents for " + std::to_string(args.size()) +
                      " arguments\n  fix: one for each argument");
    }
    for (std::size_t i = 0; i < bars.size(); ++i) {
      if (bars[i].shape() != args[i].shape()) {
        throw Error(ErrorCode::shape_mismatch,
                    "custom_vjp: argument " + std::to_string(i) + " is " +
                        to_string(args[i].shape()) + ", its cotangent " +
                        to_string(bars[i].shape()) + "\n  fix: equal shapes");
      }
    }
    return bars;
  }

  std::shared_ptr<const Rule> rule_;
  std::any residuals_;
};

template <class T>
Value<T> apply_custom(std::shared_ptr<const CustomRule<T>> rule,
                      const std::vector<Value<T>>& args) {
  using V = Value<T>;
  std::vector<V> plain;
  bool settled = true;
  for (const V& arg : args) {
    plain.push_back(detached(arg));
    settled = settled && is_settled(plain.back());
  }
  auto [y, residuals] = rule->forward(plain);
  std::vector<V> in{detached(y)};
  in.insert(in.end(), args.begin(), args.end());
  const CustomPrimitive<T> primitive(std::move(rule), settled ? std::move(residuals) : std::any());
  return apply_primitive(
             static_cast<const Primitive<T>&>(primitive), std::span<const V>(in), {}, false)
      .y;
}

extern template FENESTRA_API Value<float> apply_custom(std::shared_ptr<const CustomRule<float>>,
                                                       const std::vector<Value<float>>&);
extern template FENESTRA_API Value<double> apply_custom(std::shared_ptr<const CustomRule<double>>,
                                                        const std::vector<Value<double>>&);

}  // namespace fenestra::detail
