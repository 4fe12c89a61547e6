// Value<T>: the one type for everything that can be computed with. It is a plain tensor, a variable
// of a tape, a jet of forward mode, a batch under vmap, or a node of a graph that is being traced,
// nested in any way; a model is an ordinary function of it.
//
// Nesting is a number: every transform takes a level of its own from `new_level`, and a value
// remembers the level it belongs to. An operator looks at the highest level among its inputs; the
// others are constants there. Levels are never used twice, and later ones are further out, so
// nested transforms cannot be confused. A rule on any level is written with operators on Value<T>
// again, so every rule is compiled once for each scalar, however deep the nesting: in the library
// for float and double (compile_rules.hpp), by including <fenestra/rules.hpp> for other scalars.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/base/level.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/value_traits.hpp>
#include <fenestra/graph/value.hpp>
#include <fenestra/tensor/print.hpp>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace fenestra {

/// Integer data with or without the hidden axis of a batch. Winners of pools are folded as their
/// pool's output is.
template <class I>
struct BatchIndices {
  I indices;
  Index count = 0;  ///< of items; 0: the same for all

  BatchIndices() = default;
  BatchIndices(I shared) : indices(std::move(shared)) {}
  BatchIndices(I stacked, Index items) : indices(std::move(stacked)), count(items) {}
};

/// Integer data that goes with values: plain, one for each item of a batch on some level, or of a
/// graph that is being traced on some level.
class Indices {
 public:
  Indices() = default;
  Indices(Selection plain) : plain_(std::move(plain)) {}
  Indices(Tensor<Index> indices) : plain_(std::move(indices)) {}
  Indices(Level level, BatchIndices<Indices> items);
  Indices(Level level, graph::Data traced);
  /// On the level of its graph.
  Indices(const graph::Data& traced)
      : Indices(traced.is_constant() ? 0 : traced.graph()->level(), traced) {}

  /// 0 for plain data.
  Level level() const { return level_; }
  /// Only on level 0.
  const Selection& plain() const { return plain_; }
  /// What a graph calls it, or null.
  const graph::Data* traced() const { return traced_.get(); }
  /// The items on this level, or the same data for all of them.
  BatchIndices<Indices> items(Level level) const;

 private:
  Level level_ = 0;
  Selection plain_;
  std::shared_ptr<const BatchIndices<Indices>> items_;
  std::shared_ptr<const graph::Data> traced_;
};

inline Indices::Indices(Level level, BatchIndices<Indices> items) {
  if (items.count == 0) {
    *this = std::move(items.indices);
    return;
  }
  level_ = level;
  items_ = std::make_shared<const BatchIndices<Indices>>(std::move(items));
}

inline Indices::Indices(Level level, graph::Data traced) {
  if (traced.is_constant()) {
    plain_ = traced.constant();
    return;
  }
  level_ = level;
  traced_ = std::make_shared<const graph::Data>(std::move(traced));
}

inline BatchIndices<Indices> Indices::items(Level level) const {
  return level_ == level && items_ ? *items_ : BatchIndices<Indices>(*this);
}

/// The plain data below one level of items; operators that look inside cannot go deeper.
FENESTRA_API BatchIndices<Selection> plain_items(std::string_view op, const Indices& data);

namespace detail {

template <class V>
class Variable;
template <class V>
class Jet;
template <class V>
class Batch;

/// "value: (2, 3) ", then why it is refused and what to do.
[[noreturn]] FENESTRA_API void throw_value_error(const Shape& shape, std::string_view why);

}  // namespace detail

template <class T>
class Value {
 public:
  using Scalar = T;
  using Variable = detail::Variable<Value>;
  using Jet = detail::Jet<Value>;
  using Batch = detail::Batch<Value>;
  using Traced = graph::Value<T>;

  /// As a tensor that was given nothing.
  Value() : plain_(std::in_place) {}
  Value(Tensor<T> tensor) : plain_(std::move(tensor)) {}
  // A value of `level`, or what is inside where it is a constant there.
  Value(Level level, Variable&& variable);
  Value(Level level, Jet&& jet);
  Value(Level level, Batch&& batch);
  Value(Level level, Traced traced);
  /// A handle of a graph, on the graph's level.
  Value(const Traced& traced) : Value(traced.is_constant() ? 0 : traced.graph()->level(), traced) {}

  /// 0 for a tensor.
  Level level() const { return level_; }
  const Shape& shape() const;
  int rank() const { return shape().rank(); }
  bool requires_grad() const { return as<Variable>() != nullptr; }

  /// Its numbers, without derivatives: those below the variables and tangents of every level.
  /// Throws `foreign_variable` for a batch, whose shape hides an axis, and for a node of a graph,
  /// which has none yet.
  const Tensor<T>& tensor() const&;
  Tensor<T> tensor() && { return std::as_const(*this).tensor(); }
  /// A plain value as a tensor. Throws `foreign_variable` where that would lose derivatives: inside
  /// a transform, `tensor()` says that this is meant.
  operator Tensor<T>() const;
  // What a tensor answers, of `tensor()`.
  Index size() const { return tensor().size(); }
  const T* data() const { return tensor().data(); }
  const T& operator[](Index i) const { return tensor()[i]; }

  /// The tensor of a plain value.
  const Tensor<T>& plain() const { return plain_.value(); }
  Tensor<T>& plain() { return plain_.value(); }
  /// The variable, jet, batch or node this is, or null.
  template <class W>
  const W* as() const {
    return kind_ == kKindOf<W> ? static_cast<const W*>(form_.get()) : nullptr;
  }
  /// Its form on `level`: a constant there where it belongs to another.
  template <class W>
  W on(Level level) const {
    return level_ == level && level != 0 ? *as<W>() : W(*this);
  }

 private:
  enum class Kind : unsigned char { plain, variable, jet, batch, traced };
  template <class W>
  static constexpr Kind kKindOf = std::is_same_v<W, Variable> ? Kind::variable
                                  : std::is_same_v<W, Jet>    ? Kind::jet
                                  : std::is_same_v<W, Batch>  ? Kind::batch
                                                              : Kind::traced;

  template <class W>
  void become(Level level, W&& form) {
    form_ = std::make_shared<const W>(std::move(form));
    kind_ = kKindOf<W>;
    level_ = level;
  }

  // Not a std::variant: values are copied in every call, and its copies are calls through a table.
  Level level_ = 0;
  Kind kind_ = Kind::plain;
  std::optional<Tensor<T>> plain_;    ///< of a plain value only
  std::shared_ptr<const void> form_;  ///< of another: what its kind says
};

template <KernelScalar T>
struct ValueTraits<graph::Value<T>> {
  using Scalar = T;
  using Indices = graph::Data;
  static constexpr int depth = 1;
  static constexpr bool has_elements = false;
  static constexpr bool is_compiled = true;
};

template <class T>
struct ValueTraits<Value<T>> {
  using Scalar = T;
  using Indices = fenestra::Indices;
  static constexpr bool has_elements = true;
  static constexpr bool is_compiled = KernelScalar<T>;
  static constexpr int depth = 2;
  static const Tensor<T>& bottom(const Value<T>& value);
};

namespace detail {

/// A value and its tangent. An absent tangent is zero, and costs nothing.
template <class V>
class Jet {
 public:
  Jet(V primal) : primal_(std::move(primal)) {}
  Jet(V primal, std::optional<V> tangent)
      : primal_(std::move(primal)), tangent_(std::move(tangent)) {}

  const V& primal() const { return primal_; }
  /// Empty where it is zero.
  const std::optional<V>& tangent() const { return tangent_; }
  V tangent_or_zeros() const { return tangent_ ? *tangent_ : zeros_like(primal_); }
  const Shape& shape() const { return primal_.shape(); }

 private:
  V primal_;
  std::optional<V> tangent_;
};

/// A value with one more axis in front that the function it is given to does not see; or the same
/// value for every item.
template <class V>
class Batch {
 public:
  Batch(V shared) : value_(std::move(shared)), shape_(value_.shape()) {}
  /// One value per item, along the first axis.
  static Batch stacked(V values) {
    Batch result(std::move(values));
    result.count_ = result.shape_[0];
    Shape item;
    for (int axis = 1; axis < result.shape_.rank(); ++axis) {
      item.push_back(result.shape_[axis]);
    }
    result.shape_ = item;
    result.is_stacked_ = true;
    return result;
  }

  const V& value() const { return value_; }
  /// Of one item.
  const Shape& shape() const { return shape_; }
  bool is_stacked() const { return is_stacked_; }
  Index count() const { return count_; }

 private:
  V value_;
  Shape shape_;
  bool is_stacked_ = false;
  Index count_ = 0;
};

}  // namespace detail

}  // namespace fenestra

#include <fenestra/engine/variable.hpp>

namespace fenestra {

template <class T>
Value<T>::Value(Level level, Variable&& variable) {
  if (variable.requires_grad()) {
    become(level, std::move(variable));
  } else {
    *this = variable.value();
  }
}
template <class T>
Value<T>::Value(Level level, Jet&& jet) {
  if (jet.tangent()) {
    become(level, std::move(jet));
  } else {
    *this = jet.primal();
  }
}
template <class T>
Value<T>::Value(Level level, Batch&& batch) {
  if (batch.is_stacked()) {
    become(level, std::move(batch));
  } else {
    *this = batch.value();
  }
}
template <class T>
Value<T>::Value(Level level, Traced traced) {
  if (traced.is_constant()) {
    plain_ = traced.constant();
  } else {
    become(level, std::move(traced));
  }
}

template <class T>
const Shape& Value<T>::shape() const {
  switch (kind_) {
    case Kind::variable: return as<Variable>()->shape();
    case Kind::jet: return as<Jet>()->shape();
    case Kind::batch: return as<Batch>()->shape();
    case Kind::traced: return as<Traced>()->shape();
    default: return plain().shape();
  }
}

/// `extent` in front of `shape`.
constexpr Shape with_front(Index extent, const Shape& shape) {
  Shape result{extent};
  for (const Index e : shape) {
    result.push_back(e);
  }
  return result;
}

/// What is below all variables, jets and batches: a tensor, or a node of a graph.
template <class T>
const Value<T>& innermost(const Value<T>& value) {
  if (const auto* variable = value.template as<typename Value<T>::Variable>()) {
    return innermost(variable->value());
  }
  if (const auto* jet = value.template as<typename Value<T>::Jet>()) {
    return innermost(jet->primal());
  }
  if (const auto* batch = value.template as<typename Value<T>::Batch>()) {
    return innermost(batch->value());
  }
  return value;
}

template <class T>
const Tensor<T>& ValueTraits<Value<T>>::bottom(const Value<T>& value) {
  return innermost(value).plain();
}

template <class T>
bool has_elements(const Value<T>& value) {
  return innermost(value).level() == 0;
}

/// The value without derivatives: variables and jets are opened, batches stay batches, and nodes of
/// a graph are what they are.
template <class T>
Value<T> detached(const Value<T>& value) {
  if (const auto* variable = value.template as<typename Value<T>::Variable>()) {
    return detached(variable->value());
  }
  if (const auto* jet = value.template as<typename Value<T>::Jet>()) {
    return detached(jet->primal());
  }
  if (const auto* batch = value.template as<typename Value<T>::Batch>()) {
    return {value.level(), Value<T>::Batch::stacked(detached(batch->value()))};
  }
  return value;
}

template <class T>
const Tensor<T>& Value<T>::tensor() const& {
  const Value* inner = this;
  for (;;) {
    if (const Variable* variable = inner->template as<Variable>()) {
      inner = &variable->value();
    } else if (const Jet* jet = inner->template as<Jet>()) {
      inner = &jet->primal();
    } else if (inner->level_ == 0) {
      return inner->plain();
    } else if (inner->template as<Batch>() != nullptr) {
      detail::throw_value_error(shape(),
                                "has no numbers here: it stands for all items of a vmap\n  fix: "
                                "return it from the function, or look at it outside");
    } else {
      detail::throw_value_error(
          shape(),
          "has no numbers here: it is a node of a graph that is being traced\n  fix: return it "
          "from the function, or look at it outside compile");
    }
  }
}

template <class T>
Value<T>::operator Tensor<T>() const {
  if (level_ != 0 && (as<Variable>() != nullptr || as<Jet>() != nullptr)) {
    detail::throw_value_error(
        shape(),
        "belongs to a tape or transform, and a tensor would lose its derivatives\n  fix: keep it "
        "as a Value, or say .tensor() where that is meant");
  }
  return tensor();
}

/// Its numbers, where it has some, or what it is.
template <class T>
std::string to_string(const Value<T>& value) {
  if (has_elements(value) && innermost(value).shape() == value.shape()) {
    return to_string(innermost(value).plain());
  }
  return "Value " + to_string(value.shape()) +
         (has_elements(value) ? " for each item of a vmap" : " of a graph that is being traced");
}
template <class T>
std::ostream& operator<<(std::ostream& out, const Value<T>& value) {
  return out << to_string(value);
}

// What rules ask of a value; compiled with them.

/// In a graph a repeated scalar: a constant of its size would take memory for as long as the
/// program lives.
template <class T>
FENESTRA_API Value<T> filled_like(const Value<T>& value, T fill);
template <class T>
Value<T> zeros_like(const Value<T>& value) {
  return filled_like(value, T(0));
}
template <class T>
Value<T> ones_like(const Value<T>& value) {
  return filled_like(value, T(1));
}
/// sum += term
template <class T>
FENESTRA_API void accumulate(Value<T>& sum, const Value<T>& term);

}  // namespace fenestra
