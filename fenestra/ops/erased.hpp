// Erased<T>: one type for tensors, tape variables, jets, batches and values of a graph under
// construction, nested in any way, for callers who do not know at compile time how deep they are
// (scripting languages).
//
// Nesting is a number instead of a type: every transform takes a level of its own from `new_level`,
// and a value remembers the level it belongs to. An operator looks at the highest level among its
// inputs; the others are constants there. Levels are never used twice, and later ones are further
// out, so nested transforms cannot be confused. Since a rule on any level is written with operators
// on Erased<T> again, every primitive is compiled once for each scalar, not once for each nesting.
//
// Operators on erased values run once `compile_erased` (erased_apply.hpp) was called for their
// primitives, so that each operator can be compiled in a unit of its own.
#pragma once

#include <fenestra/graph/value.hpp>
#include <fenestra/ops/apply.hpp>
#include <fenestra/ops/batch.hpp>
#include <fenestra/ops/value.hpp>

#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace fenestra {

using Level = std::uint64_t;

/// A level above all that were given out before.
inline Level new_level() {
  static std::atomic<Level> last{0};
  return ++last;
}

/// Integer data of an erased value: plain, one for each item of a batch on some level, or of a
/// graph that is being traced on some level.
class ErasedIndices {
 public:
  ErasedIndices() = default;
  ErasedIndices(Selection plain) : plain_(std::move(plain)) {}
  ErasedIndices(Tensor<Index> indices) : plain_(std::move(indices)) {}
  ErasedIndices(Level level, BatchIndices<ErasedIndices> items);
  ErasedIndices(Level level, graph::Data traced);

  /// 0 for plain data.
  Level level() const { return level_; }
  /// Only on level 0.
  const Selection& plain() const { return plain_; }
  /// What a graph calls it, or null.
  const graph::Data* traced() const { return traced_.get(); }
  /// The items on this level, or the same data for all of them.
  BatchIndices<ErasedIndices> items(Level level) const;

 private:
  Level level_ = 0;
  Selection plain_;
  std::shared_ptr<const BatchIndices<ErasedIndices>> items_;
  std::shared_ptr<const graph::Data> traced_;
};

inline ErasedIndices::ErasedIndices(Level level, BatchIndices<ErasedIndices> items) {
  if (items.count == 0) {
    *this = std::move(items.indices);
    return;
  }
  level_ = level;
  items_ = std::make_shared<const BatchIndices<ErasedIndices>>(std::move(items));
}

inline ErasedIndices::ErasedIndices(Level level, graph::Data traced) {
  if (traced.is_constant()) {
    plain_ = traced.constant();
    return;
  }
  level_ = level;
  traced_ = std::make_shared<const graph::Data>(std::move(traced));
}

inline BatchIndices<ErasedIndices> ErasedIndices::items(Level level) const {
  return level_ == level && items_ ? *items_ : BatchIndices<ErasedIndices>(*this);
}

/// The plain data below one level of items; operators that look inside cannot go deeper.
inline BatchIndices<Selection> plain_items(std::string_view op, const ErasedIndices& data) {
  const BatchIndices<ErasedIndices> items = data.items(data.level());
  if (items.indices.level() != 0) {
    throw Error(std::string(op),
                {.code = ErrorCode::rank_mismatch, .argument = Argument::indices},
                std::string(op) +
                    ": its integer data has two hidden axes\n  fix: one vmap, with "
                    "the axes folded into one");
  }
  return {items.indices.plain(), items.count};
}

/// Nothing happens around the evaluation of tensors.
struct NoScope {};

/// `Scope` is made before tensors are computed on, and destroyed after.
template <class T, class Scope = NoScope>
class Erased {
 public:
  using Scalar = T;

  Erased(Tensor<T> tensor) : form_(std::move(tensor)) {}
  /// A value of `level`, or what is inside where it is a constant there.
  Erased(Level level, Var<Erased> variable) {
    if (variable.requires_grad()) {
      level_ = level;
      form_ = std::make_shared<const Var<Erased>>(std::move(variable));
    } else {
      *this = variable.value();
    }
  }
  Erased(Level level, Jet<Erased> jet) {
    if (jet.tangent()) {
      level_ = level;
      form_ = std::make_shared<const Jet<Erased>>(std::move(jet));
    } else {
      *this = jet.primal();
    }
  }
  Erased(Level level, Batch<Erased> batch) {
    if (batch.is_stacked()) {
      level_ = level;
      form_ = std::make_shared<const Batch<Erased>>(std::move(batch));
    } else {
      *this = batch.value();
    }
  }
  Erased(Level level, graph::Value<T> traced) {
    if (traced.is_constant()) {
      form_ = traced.constant();
    } else {
      level_ = level;
      form_ = std::make_shared<const graph::Value<T>>(std::move(traced));
    }
  }

  /// 0 for a tensor.
  Level level() const { return level_; }
  const Shape& shape() const {
    switch (form_.index()) {
      case 1: return (*as<Var<Erased>>()).shape();
      case 2: return (*as<Jet<Erased>>()).shape();
      case 3: return (*as<Batch<Erased>>()).shape();
      case 4: return (*as<graph::Value<T>>()).shape();
      default: return tensor().shape();
    }
  }
  /// Only on level 0.
  const Tensor<T>& tensor() const { return std::get<Tensor<T>>(form_); }
  Tensor<T>& tensor() { return std::get<Tensor<T>>(form_); }
  /// The variable, jet, batch or value of a graph this is, or null.
  template <class W>
  const W* as() const {
    const auto* pointer = std::get_if<std::shared_ptr<const W>>(&form_);
    return pointer != nullptr ? pointer->get() : nullptr;
  }
  /// Its value on `level`: a constant there where it belongs to another.
  template <class W>
  W on(Level level) const {
    return level_ == level && level != 0 ? *as<W>() : W(*this);
  }

 private:
  Level level_ = 0;
  std::variant<Tensor<T>,
               std::shared_ptr<const Var<Erased>>,
               std::shared_ptr<const Jet<Erased>>,
               std::shared_ptr<const Batch<Erased>>,
               std::shared_ptr<const graph::Value<T>>>
      form_;
};

template <class T, class Scope>
struct ValueTraits<Erased<T, Scope>> {
  using Scalar = T;
  using Indices = ErasedIndices;
  static constexpr bool has_elements = true;
  static constexpr int depth = 1;
  static const Tensor<T>& bottom(const Erased<T, Scope>& value) {
    return innermost(value).tensor();
  }
};

/// What is below all variables, jets and batches: a tensor, or a value of a graph.
template <class T, class Scope>
const Erased<T, Scope>& innermost(const Erased<T, Scope>& value) {
  using E = Erased<T, Scope>;
  if (const auto* variable = value.template as<Var<E>>()) {
    return innermost(variable->value());
  }
  if (const auto* jet = value.template as<Jet<E>>()) {
    return innermost(jet->primal());
  }
  if (const auto* batch = value.template as<Batch<E>>()) {
    return innermost(batch->value());
  }
  return value;
}

template <class T, class Scope>
bool has_elements(const Erased<T, Scope>& value) {
  return innermost(value).level() == 0;
}

/// In a graph a repeated scalar: a constant of its size would take memory for as long as the
/// program lives.
template <class T, class Scope>
Erased<T, Scope> filled_like(const Erased<T, Scope>& value, T fill) {
  const Erased<T, Scope>& inner = innermost(value);
  if (const auto* traced = inner.template as<graph::Value<T>>()) {
    const graph::NodeId scalar = traced->graph()->add_constant(Tensor<T>(Shape{}, fill));
    return broadcast_to(Erased<T, Scope>(inner.level(), graph::Value<T>(traced->graph(), scalar)),
                        value.shape());
  }
  return Tensor<T>(value.shape(), fill);
}
template <class T, class Scope>
Erased<T, Scope> zeros_like(const Erased<T, Scope>& value) {
  return filled_like(value, T(0));
}
template <class T, class Scope>
Erased<T, Scope> ones_like(const Erased<T, Scope>& value) {
  return filled_like(value, T(1));
}
template <class T, class Scope>
void accumulate(Erased<T, Scope>& sum, const Erased<T, Scope>& term) {
  if (sum.level() == 0 && term.level() == 0) {
    accumulate(sum.tensor(), term.tensor());
  } else {
    sum = add(sum, term);
  }
}

/// The value without derivatives: variables and jets are opened, batches stay batches, and values
/// of a graph are what they are.
template <class T, class Scope>
Erased<T, Scope> detached(const Erased<T, Scope>& value) {
  using E = Erased<T, Scope>;
  if (const auto* variable = value.template as<Var<E>>()) {
    return detached(variable->value());
  }
  if (const auto* jet = value.template as<Jet<E>>()) {
    return detached(jet->primal());
  }
  if (const auto* batch = value.template as<Batch<E>>()) {
    return E(value.level(), Batch<E>::stacked(detached(batch->value())));
  }
  return value;
}

/// How a primitive runs on erased values; null until `compile_erased` was called for it. A pointer,
/// so that a unit that calls an operator does not compile it, nor what its rules are made of.
template <class P, class E>
using ErasedEntry = Applied<E> (*)(const P& primitive,
                                   std::span<const E> in,
                                   std::span<const ErasedIndices> data,
                                   bool keep);
template <class P, class E>
inline ErasedEntry<P, E> erased_entry = nullptr;

template <class P, class T, class Scope>
Applied<Erased<T, Scope>> apply_all(const P& primitive,
                                    std::span<const Erased<T, Scope>> in,
                                    std::span<const ErasedIndices> data,
                                    bool keep) {
  const auto entry = erased_entry<P, Erased<T, Scope>>;
  assert(entry != nullptr && "the operator's signature does not list this primitive");
  return entry(primitive, in, data, keep);
}

}  // namespace fenestra
