// vmap: a function of one item applied to many at once; and per-sample gradients, which are vmap
// over grad.
//
//   auto ys = vmap([&](const auto& x) { return conv(x, w); }, over(xs));       // inputs differ
//   auto ys = vmap([&](const auto& w) { return conv(x, w); }, over(ws));       // weights differ
//   auto bars = per_sample_grad(loss, net, over(images), over(labels));        // no loop
//   auto bars = per_sample_grad(loss, Wrt<2>{}, over(images), over(labels), net);
//
// Arguments marked `over` are cut along their first axis, or along the one that is named beside
// them; others are the same for every item. Results are stacked along a new first axis, or along
// the one that OutAxis names: vmap(f, OutAxis{1}, over(xs, -1)).
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/engine/tree.hpp>
#include <fenestra/tensor/transform.hpp>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra {

/// An argument of vmap one axis of which counts items: a value, or integer data such as labels.
template <class A>
struct Over {
  A stacked;
  int axis = 0;
};
template <class A>
Over<A> over(const A& stacked, int axis = 0) {
  return {stacked, axis};
}

/// Where the axis of items stands in the results of vmap.
struct OutAxis {
  int axis = 0;
};

namespace detail {

/// `from` of `rank` axes moved to `to`: the order that transposes.
FENESTRA_API std::vector<int> moved_axis(std::string_view what, int rank, int from, int to);

/// The argument with its items along the first axis.
template <AnyValue V>
Over<V> items_first(const Over<V>& argument) {
  if (argument.axis == 0 || argument.stacked.shape().rank() == 0) {
    return {argument.stacked};
  }
  const auto order = moved_axis("an argument", argument.stacked.shape().rank(), argument.axis, 0);
  return {transpose(argument.stacked, std::span<const int>(order))};
}
inline Over<Tensor<Index>> items_first(const Over<Tensor<Index>>& argument) {
  if (argument.axis == 0 || argument.stacked.rank() == 0) {
    return {argument.stacked};
  }
  const auto order = moved_axis("an argument", argument.stacked.rank(), argument.axis, 0);
  return {permuted(argument.stacked, order)};
}
template <class A>
const A& items_first(const A& shared) {
  return shared;
}

template <AnyValue V>
Value<ScalarOf<V>> on_items(Level level, const Over<V>& argument) {
  using T = ScalarOf<V>;
  if (argument.stacked.shape().rank() < 1) {
    throw Error(ErrorCode::rank_mismatch,
                "vmap: a rank-0 value has no items\n  fix: at least one axis under over()");
  }
  return {level, Batch<Value<T>>::stacked(argument.stacked)};
}
inline Indices on_items(Level level, const Over<Tensor<Index>>& argument) {
  if (argument.stacked.rank() < 1) {
    throw Error(ErrorCode::rank_mismatch,
                "vmap: rank-0 data has no items\n  fix: at least one axis under over()");
  }
  return {level, BatchIndices<Indices>(argument.stacked, argument.stacked.shape()[0])};
}
/// The same for every item.
template <class A>
const A& on_items(Level, const A& shared) {
  return shared;
}

/// The result of a level with its hidden axis, repeated where it is the same for all items.
template <class T>
Value<T> stacked_value(Level level, const Value<T>& result, Index count) {
  const auto batch = result.template on<Batch<Value<T>>>(level);
  return batch.is_stacked() ? batch.value()
                            : broadcast_to(batch.value(), with_front(count, batch.shape()));
}

/// The type in which vmap was asked: that of its values, marked or not.
template <class A>
struct AskedIn {
  using type = void;
};
template <Tree A>
struct AskedIn<A> {
  using type = TreeValue<A>;
};
template <AnyValue V>
struct AskedIn<Over<V>> {
  using type = V;
};
template <>
struct AskedIn<Over<Tensor<Index>>> {
  using type = void;
};
template <>
struct AskedIn<Tensor<Index>> {
  using type = void;
};

template <class... Vs>
struct CommonAsked;
template <class V>
struct CommonAsked<V> {
  using type = V;
};
template <class A, class B, class... Rest>
struct CommonAsked<A, B, Rest...> {
  static constexpr auto pick() {
    if constexpr (std::is_void_v<A>) {
      return std::type_identity<B>{};
    } else if constexpr (std::is_void_v<B>) {
      return std::type_identity<A>{};
    } else {
      return std::type_identity<CommonValue<A, B>>{};
    }
  }
  using type = typename CommonAsked<typename decltype(pick())::type, Rest...>::type;
};

/// Items of the arguments; they must agree.
template <class... Args>
Index count_items(const Args&... args) {
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

namespace detail {

template <class F, class... Args>
auto vmap_along(const F& f, OutAxis out, const Args&... args) {
  using Asked = typename detail::CommonAsked<typename detail::AskedIn<Args>::type...>::type;
  using T = ScalarOf<Asked>;
  const Index count = detail::count_items(args...);
  const Level level = new_level();
  const auto result = f(detail::on_items(level, args)...);
  std::vector<Value<T>> stacked;
  for (const Value<T>& value : detail::values_of<T>(result)) {
    Value<T> all = detail::stacked_value(level, value, count);
    if (out.axis != 0) {
      const auto order = moved_axis("a result", all.shape().rank(), 0, out.axis);
      all = transpose(all, std::span<const int>(order));
    }
    stacked.push_back(std::move(all));
  }
  return detail::answer<Asked>("vmap", result, stacked);
}

}  // namespace detail

/// f on every item, results stacked along a new axis.
template <class F, class... Args>
auto vmap(const F& f, OutAxis out, const Args&... args) {
  return detail::vmap_along(f, out, detail::items_first(args)...);
}
template <class F, class... Args>
auto vmap(const F& f, const Args&... args) {
  return vmap(f, OutAxis{0}, args...);
}

namespace detail {

template <class A>
inline constexpr bool kIsOver = false;
template <class A>
inline constexpr bool kIsOver<Over<A>> = true;

/// Says what to do with something that is no tree of parameters.
template <class Params>
struct RequireParameters {
  static_assert(!kIsOver<Params>,
                "fenestra: per_sample_grad differentiates by parameters, which all samples share: "
                "not over(), or name other places by Wrt");
  static constexpr bool value = RequireTree<Params>::value;
};

/// per_sample_grad with the parameters apart, which stand at `places` among the arguments.
template <int... places, class F, class Params, class... Args>
auto per_sample_grad_by(const F& f, const Params& params, const Args&... args) {
  using Asked = TreeValue<Params>;
  using T = ScalarOf<Asked>;
  const Index count = count_items(items_first(args)...);
  const Level level = new_level();
  const auto items = std::tuple(on_items(level, items_first(args))...);
  const auto like = tree_map([](const Asked& value) { return Value<T>(value); }, params);
  const auto bars = std::apply(
      [&](const auto&... item) {
        const auto of_parameters = with_chosen<places...>(f, item...);
        return std::apply([&](const auto&... p) { return grad(of_parameters, p...); }, like);
      },
      items);
  std::vector<Value<T>> stacked;
  for (const Value<T>& bar : values_of<T>(bars)) {
    stacked.push_back(stacked_value(level, bar, count));
  }
  return unwrap_single(tree_unflatten(params, answers<Asked>("per_sample_grad", stacked)));
}

}  // namespace detail

/// The gradients of f by the parameters, which are the arguments at `places`, for every item: trees
/// like them with a new first axis; one alone, several as a tuple.
template <class F, int... places, class... Args>
auto per_sample_grad(const F& f, Wrt<places...>, const Args&... args) {
  static_assert(detail::RequirePlaces<sizeof...(Args), places...>::value);
  using All = std::tuple<Args...>;
  static_assert((detail::RequireParameters<std::tuple_element_t<places, All>>::value && ...));
  const std::tuple<const Args&...> all(args...);
  const std::tuple<std::tuple_element_t<places, All>...> params(std::get<places>(all)...);
  return detail::per_sample_grad_by<places...>(f, params, args...);
}
/// By the first argument.
template <class F, class Params, class... Args>
auto per_sample_grad(const F& f, const Params& params, const Args&... args) {
  return per_sample_grad(f, Wrt<0>{}, params, args...);
}

}  // namespace fenestra
