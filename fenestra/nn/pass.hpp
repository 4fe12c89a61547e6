// Pass<T>: one run of a model. It says whether the model is trained or used, draws the masks,
// collects what buffers become, and may watch every layer.
//
//   auto pass = nn::Pass<float>::training(key.fold(step));
//   auto [loss, gradients] = value_and_grad(
//       [&](const Net& net) { return cross_entropy(net(x, pass), labels); }, net);
//   nn::apply_updates(net, pass);
//
// A pass belongs to one call of a model: masks are numbered in the order in which layers ask.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/key.hpp>
#include <fenestra/nn/slots.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::nn {

/// A mask that a layer asks for.
struct MaskRequest {
  std::uint64_t number = 0;  ///< of the mask within its pass
  Shape shape;
  double keep = 1;  ///< the share of elements that are kept

  friend bool operator==(const MaskRequest&, const MaskRequest&) = default;
};

/// 1/keep with probability `keep`, otherwise 0: the mean of an element is 1. The same key, number
/// and shape give the same mask everywhere.
template <class T>
Tensor<T> draw_mask(const Key& key, const MaskRequest& request) {
  const Key own = key.fold(request.number);
  Tensor<T> mask = Tensor<T>::uninitialised(request.shape);
  const T kept = static_cast<T>(1 / request.keep);
  std::uint64_t position = 0;
  for (T& value : mask.mutable_values()) {
    value = own.uniform(position++) < request.keep ? kept : T(0);
  }
  return mask;
}

/// What a buffer becomes after a pass.
template <class T>
struct BufferUpdate {
  std::uint64_t buffer;  ///< Buffer::id
  Value<T> value;        ///< without derivatives
};

/// What a layer sees of its input at each cell of its output, along one spatial axis.
struct AxisReach {
  double extent = 1;  ///< cells, from the first to the last
  double step = 1;  ///< from one output cell to the next, in input cells; below 1 where it enlarges
};
struct LayerReach {
  std::vector<AxisReach> axes = {};  ///< none: the same cell
  bool whole = false;                ///< everything
};

/// A layer that was called.
template <class T>
struct LayerCall {
  std::string name;  ///< dotted; empty where nobody entered a scope
  std::string_view kind;
  const Value<T>& input;
  const Value<T>& output;
  LayerReach reach = {};
  bool has_parts = false;  ///< it called other layers, which were observed before it
};

template <class T>
class Pass {
 public:
  using MaskSource = std::function<Value<T>(const MaskRequest&)>;
  using Observer = std::function<void(const LayerCall<T>&)>;
  /// A part of a layer; keeps the shape of x.
  using LeafFunction = std::function<Value<T>(const Value<T>& x, Pass& pass)>;
  using LeafSource = std::function<Value<T>(const Value<T>& x, const LeafFunction& f)>;

  static Pass inference() { return Pass(std::nullopt); }
  /// Masks are drawn from `key`: one for each step.
  static Pass training(const Key& key) { return Pass(key); }

  bool is_training() const { return key_.has_value(); }

  /// Whether somebody watches.
  bool is_observed() const { return static_cast<bool>(observer_); }

  // --- Masks -----------------------------------------------------------------------------------

  /// 0 or 1/keep, see `draw_mask`; or what the source of masks gives.
  Value<T> keep_mask(const Shape& shape, double keep) {
    if (!key_) {
      throw Error(ErrorCode::wrong_context,
                  "pass: a mask was asked for in inference\n  fix: Pass::training(key), or ask "
                  "is_training() first");
    }
    const MaskRequest request{masks_++, shape, keep};
    return mask_source_ ? mask_source_(request) : Value<T>(draw_mask<T>(*key_, request));
  }
  /// Where masks come from instead: whoever traces the model into a graph makes them inputs, and
  /// fills these by `draw_mask`.
  void set_mask_source(MaskSource source) { mask_source_ = std::move(source); }

  // --- Leaves ----------------------------------------------------------------------------------

  /// f(x, pass), for what a layer does in training that is more than cell by cell: statistics and
  /// masks, which are those of the leaf that is computed.
  Value<T> of_leaf(const Value<T>& x, const LeafFunction& f) {
    return leaf_source_ ? leaf_source_(x, f) : f(x, *this);
  }
  /// What is done instead: whoever traces a whole picture, to train on tiles of it, calls f on what
  /// a tile has of x.
  void set_leaf_source(LeafSource source) { leaf_source_ = std::move(source); }

  // --- Buffers ---------------------------------------------------------------------------------

  /// What the buffer is now: the last update in this pass, or its own value.
  const Value<T>& current(const Buffer<T>& buffer) const {
    for (const BufferUpdate<T>& update : updates_) {
      if (update.buffer == buffer.id) {
        return update.value;
      }
    }
    return buffer.value;
  }
  /// What the buffer is to become; the model is not changed before `apply_updates`.
  void update(const Buffer<T>& buffer, const Value<T>& value) {
    Value<T> plain = detached(value);
    for (BufferUpdate<T>& known : updates_) {
      if (known.buffer == buffer.id) {
        known.value = std::move(plain);
        return;
      }
    }
    updates_.push_back({buffer.id, std::move(plain)});
  }
  /// One for each buffer, in the order in which layers were first called.
  const std::vector<BufferUpdate<T>>& updates() const { return updates_; }

  // --- Observing -------------------------------------------------------------------------------

  /// Called after each layer that is called with this pass, containers included.
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  /// A part of the dotted name of what is called while it lives.
  class Scope {
   public:
    Scope(Pass& pass, std::string_view name) : pass_(pass), before_(pass.scope_.size()) {
      detail::append_name(pass.scope_, name);
    }
    ~Scope() { pass_.scope_.resize(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Pass& pass_;
    std::size_t before_;
  };
  /// The dotted name so far.
  const std::string& scope() const { return scope_; }
  [[nodiscard]] Scope enter(std::string_view name) { return Scope(*this, name); }

  /// For layers: says that one was called, and gives its output back.
  Value<T> observed(std::string_view kind,
                    const Value<T>& input,
                    Value<T> output,
                    const LayerReach& reach = {}) const {
    if (observer_) {
      observer_({scope_, kind, input, output, reach, false});
    }
    return output;
  }
  /// The same of a layer that is made of others.
  Value<T> observed_whole(std::string_view kind, const Value<T>& input, Value<T> output) const {
    if (observer_) {
      observer_({scope_, kind, input, output, {}, true});
    }
    return output;
  }

 private:
  explicit Pass(std::optional<Key> key) : key_(key) {}

  std::optional<Key> key_;
  std::uint64_t masks_ = 0;
  MaskSource mask_source_;
  LeafSource leaf_source_;
  std::vector<BufferUpdate<T>> updates_;
  Observer observer_;
  std::string scope_;
};

/// Writes what a pass found into the buffers of the model, or of the model that it was a copy of.
/// Values of a transform that is still going on lose their derivatives; a batch or a node of a
/// graph stays one.
template <class T, class Model>
void apply_updates(Model& model, const Pass<T>& pass) {
  const std::vector<Slot<T>> all = slots<T>(model);
  for (const BufferUpdate<T>& update : pass.updates()) {
    bool found = false;
    for (const Slot<T>& slot : all) {
      if (!slot.trained && slot.buffer == update.buffer) {
        *slot.value = update.value;
        found = true;
      }
    }
    if (!found) {
      throw Error(ErrorCode::foreign_variable,
                  "apply_updates: the pass has a new value " + to_string(update.value.shape()) +
                      " for a buffer that this model does not have\n  fix: the model the pass was "
                      "given to, or the one that it was copied from");
    }
  }
}

}  // namespace fenestra::nn
