// vmap: a function of one item applied to many at once; and per-sample gradients, which are vmap
// over grad.
//
//   auto ys = vmap([&](const auto& x) { return conv(x, w); }, over(xs));           // inputs differ
//   auto ys = vmap([&](const auto& w) { return conv(x, w); }, over(ws));           // weights
//   differ auto bars = per_sample_grad(loss, net, over(images), over(labels));            // one
//   gradient per image, no loop
//
// Arguments marked `over` are cut along their first axis; others are the same for every item.
#pragma once

#include <fenestra/ops/batch.hpp>
#include <fenestra/ops/conv/batch.hpp>
#include <fenestra/ops/elementwise/batch.hpp>
#include <fenestra/ops/loss/batch.hpp>
#include <fenestra/ops/matmul/batch.hpp>
#include <fenestra/ops/pool_batch.hpp>
#include <fenestra/ops/transforms.hpp>
#include <fenestra/ops/tree.hpp>

#include <string>
#include <type_traits>
#include <utility>

namespace fenestra {

/// An argument of vmap whose first axis counts items: a value, or integer data such as labels.
template <class A>
struct Over {
  A stacked;
};
template <class A>
Over<A> over(const A& stacked) {
  return {stacked};
}

namespace detail {

template <Value V>
Batch<V> as_batch(const Over<V>& argument) {
  if (argument.stacked.shape().rank() < 1) {
    throw Error(ErrorCode::rank_mismatch,
                "vmap: a rank-0 value has no items\n  fix: at least one axis under over()");
  }
  return Batch<V>::stacked(argument.stacked);
}
inline BatchIndices<Selection> as_batch(const Over<Tensor<Index>>& argument) {
  if (argument.stacked.rank() < 1) {
    throw Error(ErrorCode::rank_mismatch,
                "vmap: rank-0 data has no items\n  fix: at least one axis under over()");
  }
  return {Selection(argument.stacked), argument.stacked.shape()[0]};
}
template <Value V>
Batch<V> as_batch(const V& shared) {
  return Batch<V>(shared);
}

template <Value V>
V stacked_value(const Batch<V>& result, Index count) {
  return result.is_stacked() ? result.value()
                             : broadcast_to(result.value(), with_front(count, result.shape()));
}

/// Items of the arguments; they must agree.
template <class... Args>
Index item_count(const Args&... args) {
  Index count = -1;
  const auto note = [&](const auto& arg) {
    if constexpr (requires { arg.stacked; }) {
      const Index items = arg.stacked.shape()[0];
      if (count >= 0 && items != count) {
        throw Error(ErrorCode::shape_mismatch,
                    "vmap: arguments of " + std::to_string(count) + " and " +
                        std::to_string(items) + " items\n  fix: equal first extents under over()");
      }
      count = items;
    }
  };
  (note(args), ...);
  if (count < 1) {
    throw Error(ErrorCode::shape_mismatch,
                "vmap: no items\n  fix: mark an argument with over(), of at least one item");
  }
  return count;
}

}  // namespace detail

/// f on every item, results stacked along a new first axis.
template <class F, class... Args>
auto vmap(const F& f, const Args&... args) {
  const Index count = detail::item_count(args...);
  return detail::stacked_value(f(detail::as_batch(args)...), count);
}

/// The gradients of f(params, item...) by the parameters, for every item: a tree like `params` with
/// a new first axis.
template <class F, class Params, class... Args>
auto per_sample_grad(const F& f, const Params& params, const Args&... args) {
  using V = TreeValue<Params>;
  const Index count = detail::item_count(args...);
  const auto batched = tree_map([](const V& value) { return Batch<V>(value); }, params);
  const auto items = std::tuple(detail::as_batch(args)...);
  const auto bars = grad(
      [&](const auto& p) {
        return std::apply([&](const auto&... item) { return f(p, item...); }, items);
      },
      batched);
  return tree_map([&](const Batch<V>& bar) { return detail::stacked_value(bar, count); }, bars);
}

}  // namespace fenestra
