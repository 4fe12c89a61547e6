// Trees of values: parameter sets of any shape, taken apart into a list and put together again.
//
// A tree is a value, a tuple, pair, array, vector, map or optional of trees, or a plain struct of
// them:
//
//   struct Net {
//     Value<float> w, b;
//   };
//
// An aggregate of at most 24 members needs nothing more, if it has neither bases nor C arrays;
// other classes list their members in the order of declaration:
//
//   static constexpr auto fields = std::tuple{&Net::w, &Net::b};
//
// Whatever in a tree is neither value nor tree (a flag, options) is carried along unchanged. All
// values of a tree have one type; `tree_unflatten` and `tree_map` may change it, so that
// Net<Tensor<float>> becomes Net<Value<float>>. A struct that is not of the form S<V> says what it
// becomes by `template <class W> using rebind = ...`.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/engine/value_traits.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra {

namespace detail {

template <class T>
concept HasFields = requires { std::tuple_size<std::remove_cvref_t<decltype(T::fields)>>::value; };

/// Stands for any member but a whole S, while members are counted.
template <class S>
struct AnyMember {
  template <class M>
    requires(!std::same_as<M, S>)
  operator M() const {
    std::abort();  // is only counted with
  }
};

inline constexpr std::size_t kMostMembers = 24;

template <class S, std::size_t i>
using AnyMemberAt = std::conditional_t<(i < i + 1), AnyMember<S>, void>;
template <class S, class... Members>
concept TakesMembers = requires { S{Members{}...}; };
template <class S, std::size_t... i>
constexpr bool takes(std::index_sequence<i...>) {
  return TakesMembers<S, AnyMemberAt<S, i>...>;
}

/// How many members an aggregate has: as many as can be initialised, counted from above, since the
/// last ones may have no default.
template <class S, std::size_t n = kMostMembers + 1>
constexpr std::size_t count_members() {
  if constexpr (n == 0 || takes<S>(std::make_index_sequence<n>{})) {
    return n;
  } else {
    return count_members<S, n - 1>();
  }
}

/// Stands for the bases of S, which come before its members.
template <class S>
struct AnyBase {
  template <class B>
    requires(std::derived_from<S, B> && !std::same_as<B, S>)
  operator B() const {
    std::abort();  // is only asked for
  }
};
struct NoBase {};
/// A first member that anything converts to is no base.
template <class S>
concept HasBase = requires { S{AnyBase<S>{}}; } && !requires { S{NoBase{}}; };

/// Whether S can be made of members, one that is left empty, and more members.
template <class S, std::size_t... i, std::size_t... j>
constexpr bool takes_around(std::index_sequence<i...>, std::index_sequence<j...>) {
  return requires { S{AnyMemberAt<S, i>{}..., {}, AnyMemberAt<S, j>{}...}; };
}
/// Whether one of the first members counted is a C array. Without braces it counts as all of its
/// elements; left empty, it leaves room for fewer members behind it than one member would.
template <class S, std::size_t count, std::size_t... i>
constexpr bool has_array(std::index_sequence<i...>) {
  [[maybe_unused]] const auto is_array =
      []<std::size_t at>(std::integral_constant<std::size_t, at>) {
        using Before = std::make_index_sequence<at>;
        if constexpr (takes_around<S>(Before(), std::make_index_sequence<count - 1 - at>())) {
          return false;
        } else {
          return []<std::size_t... behind>(std::index_sequence<behind...>) {
            return (takes_around<S>(Before(), std::make_index_sequence<behind>()) || ...);
          }(std::make_index_sequence<count - 1 - at>());
        }
      };
  return (is_array(std::integral_constant<std::size_t, i>()) || ...);
}
template <class S>
constexpr bool has_array() {
  constexpr std::size_t kCount = count_members<S>();
  return has_array<S, kCount>(std::make_index_sequence<(kCount > 1 ? kCount - 1 : 0)>());
}

template <class S>
concept PlainStruct = std::is_class_v<S> && std::is_aggregate_v<S> && !HasFields<S> &&
                      !std::is_empty_v<S> && count_members<S>() <= kMostMembers;

/// References to the members of an aggregate, in the order of declaration. The language has no
/// shorter list, and one name to a line would take pages.
// clang-format off
template <class S>
constexpr auto members_of(S& tree) {
  using Struct = std::remove_const_t<S>;
  constexpr bool kHasBase = HasBase<Struct>;
  constexpr bool kHasArray = !kHasBase && has_array<Struct>();
  static_assert(!kHasBase, "fenestra: a struct in a tree has a base: make the base its first member, or give the struct `static constexpr auto fields = std::tuple{&S::a, &S::b}`");
  static_assert(!kHasArray, "fenestra: a struct in a tree has a C array: make it a std::array");
  constexpr std::size_t kCount = kHasBase || kHasArray ? 0 : count_members<Struct>();
  if constexpr (kCount == 0) { return std::tuple(); }
  else if constexpr (kCount == 1) { auto& [m0] = tree; return std::tie(m0); }
  else if constexpr (kCount == 2) { auto& [m0, m1] = tree; return std::tie(m0, m1); }
  else if constexpr (kCount == 3) { auto& [m0, m1, m2] = tree; return std::tie(m0, m1, m2); }
  else if constexpr (kCount == 4) { auto& [m0, m1, m2, m3] = tree; return std::tie(m0, m1, m2, m3); }
  else if constexpr (kCount == 5) { auto& [m0, m1, m2, m3, m4] = tree; return std::tie(m0, m1, m2, m3, m4); }
  else if constexpr (kCount == 6) { auto& [m0, m1, m2, m3, m4, m5] = tree; return std::tie(m0, m1, m2, m3, m4, m5); }
  else if constexpr (kCount == 7) { auto& [m0, m1, m2, m3, m4, m5, m6] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6); }
  else if constexpr (kCount == 8) { auto& [m0, m1, m2, m3, m4, m5, m6, m7] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7); }
  else if constexpr (kCount == 9) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8); }
  else if constexpr (kCount == 10) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9); }
  else if constexpr (kCount == 11) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10); }
  else if constexpr (kCount == 12) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11); }
  else if constexpr (kCount == 13) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12); }
  else if constexpr (kCount == 14) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13); }
  else if constexpr (kCount == 15) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14); }
  else if constexpr (kCount == 16) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15); }
  else if constexpr (kCount == 17) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16); }
  else if constexpr (kCount == 18) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17); }
  else if constexpr (kCount == 19) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18); }
  else if constexpr (kCount == 20) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19); }
  else if constexpr (kCount == 21) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20); }
  else if constexpr (kCount == 22) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21); }
  else if constexpr (kCount == 23) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22); }
  else if constexpr (kCount == 24) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23] = tree; return std::tie(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23); }
}
// clang-format on

/// The one value type among the parts of a tree; void where there is none.
template <class... Ts>
struct OneValue {
  using type = void;
};
template <class T, class... Rest>
struct OneValue<T, Rest...> {
  using rest = typename OneValue<Rest...>::type;
  static_assert(std::is_void_v<T> || std::is_void_v<rest> || std::is_same_v<T, rest>,
                "fenestra: a tree holds values of two types");
  using type = std::conditional_t<std::is_void_v<T>, rest, T>;
};

/// Anything else: carried along. Every TreeTraits has
///   Value              the type of the values inside, void where there is none
///   Rebind<W>          the tree with values of type W
///   visit(tree, f)     f on every value, in order
///   build<W>(like, n)  a tree like `like`, its values taken from n() in order
template <class T>
struct TreeTraits {
  using Value = void;
  template <class W>
  using Rebind = T;
  template <class Tree, class F>
  static void visit(Tree&, F&) {}
  template <class W, class Next>
  static T build(const T& like, Next&) {
    return like;
  }
};

template <class T>
using TreeValueOf = typename TreeTraits<std::remove_cvref_t<T>>::Value;

template <class T, class W>
struct TreeRebindImpl {
  using type = typename TreeTraits<std::remove_cvref_t<T>>::template Rebind<W>;
};
/// A part without values is carried along.
template <class T, class W>
  requires std::is_void_v<TreeValueOf<T>>
struct TreeRebindImpl<T, W> {
  using type = std::remove_cvref_t<T>;
};
template <class T, class W>
using TreeRebindOf = typename TreeRebindImpl<T, W>::type;

template <class T, class F>
void visit_tree(T& tree, F& f) {
  TreeTraits<std::remove_const_t<T>>::visit(tree, f);
}

template <class W, class T, class Next>
TreeRebindOf<T, W> build_tree(const T& like, Next& next) {
  return TreeTraits<T>::template build<W>(like, next);
}

template <AnyValue V>
struct TreeTraits<V> {
  using Value = V;
  template <class W>
  using Rebind = W;
  template <class Tree, class F>
  static void visit(Tree& value, F& f) {
    f(value);
  }
  template <class W, class Next>
  static W build(const V&, Next& next) {
    return next();
  }
};

/// No function returns a C array, so no tree can be built with one.
template <class T, std::size_t n>
struct TreeTraits<T[n]> {
  static_assert(n == 0, "fenestra: a struct in a tree has a C array: make it a std::array");
  using Value = void;
};

template <class T, class Alloc>
struct TreeTraits<std::vector<T, Alloc>> {
  using Value = TreeValueOf<T>;
  template <class W>
  using Rebind = std::
      conditional_t<std::is_void_v<Value>, std::vector<T, Alloc>, std::vector<TreeRebindOf<T, W>>>;
  template <class Tree, class F>
  static void visit(Tree& tree, F& f) {
    if constexpr (!std::is_void_v<Value>) {
      for (auto& part : tree) {
        visit_tree(part, f);
      }
    }
  }
  template <class W, class Next>
  static Rebind<W> build(const std::vector<T, Alloc>& like, Next& next) {
    if constexpr (std::is_void_v<Value>) {
      return like;
    } else {
      Rebind<W> result;
      result.reserve(like.size());
      for (const T& part : like) {
        result.push_back(build_tree<W>(part, next));
      }
      return result;
    }
  }
};

/// What tuples, pairs and arrays share; `Result<W>` is braced from the parts, which fixes the order
/// of evaluation.
template <class Whole, class... Parts>
struct TupleTraits {
  using Value = typename OneValue<TreeValueOf<Parts>...>::type;
  template <class Tree, class F>
  static void visit(Tree& tree, F& f) {
    std::apply([&](auto&... part) { (visit_tree(part, f), ...); }, tree);
  }

 protected:
  template <class Result, class W, class Next>
  static Result build_as(const Whole& like, Next& next) {
    return std::apply([&](const auto&... part) { return Result{build_tree<W>(part, next)...}; },
                      like);
  }
};

template <class... Parts>
struct TreeTraits<std::tuple<Parts...>> : TupleTraits<std::tuple<Parts...>, Parts...> {
  template <class W>
  using Rebind = std::tuple<TreeRebindOf<Parts, W>...>;
  template <class W, class Next>
  static Rebind<W> build(const std::tuple<Parts...>& like, Next& next) {
    return TreeTraits::template build_as<Rebind<W>, W>(like, next);
  }
};

template <class A, class B>
struct TreeTraits<std::pair<A, B>> : TupleTraits<std::pair<A, B>, A, B> {
  template <class W>
  using Rebind = std::pair<TreeRebindOf<A, W>, TreeRebindOf<B, W>>;
  template <class W, class Next>
  static Rebind<W> build(const std::pair<A, B>& like, Next& next) {
    return TreeTraits::template build_as<Rebind<W>, W>(like, next);
  }
};

template <class T, std::size_t n>
struct TreeTraits<std::array<T, n>> : TupleTraits<std::array<T, n>, T> {
  template <class W>
  using Rebind = std::array<TreeRebindOf<T, W>, n>;
  template <class W, class Next>
  static Rebind<W> build(const std::array<T, n>& like, Next& next) {
    return TreeTraits::template build_as<Rebind<W>, W>(like, next);
  }
};

template <class T>
struct TreeTraits<std::optional<T>> {
  using Value = TreeValueOf<T>;
  template <class W>
  using Rebind = std::optional<TreeRebindOf<T, W>>;
  template <class Tree, class F>
  static void visit(Tree& tree, F& f) {
    if (tree) {
      visit_tree(*tree, f);
    }
  }
  template <class W, class Next>
  static Rebind<W> build(const std::optional<T>& like, Next& next) {
    return like ? Rebind<W>(build_tree<W>(*like, next)) : std::nullopt;
  }
};

/// Values in the order of their keys.
template <class K, class T, class Compare>
struct TreeTraits<std::map<K, T, Compare>> {
  using Value = TreeValueOf<T>;
  template <class W>
  using Rebind = std::map<K, TreeRebindOf<T, W>, Compare>;
  template <class Tree, class F>
  static void visit(Tree& tree, F& f) {
    for (auto& [key, part] : tree) {
      visit_tree(part, f);
    }
  }
  template <class W, class Next>
  static Rebind<W> build(const std::map<K, T, Compare>& like, Next& next) {
    Rebind<W> result;
    for (const auto& [key, part] : like) {
      result.emplace_hint(result.end(), key, build_tree<W>(part, next));
    }
    return result;
  }
};

/// What a struct becomes when its values become of type W.
template <class S, class From, class W>
struct RebindStruct {
  static_assert(
      std::is_same_v<From, W>,
      "fenestra: this struct holds tensors where a transform must put values: declare its "
      "members as Value<T>, or write it as a template <class V> of the value type, or "
      "give it `template <class W> using rebind = ...`");
  using type = S;
};
template <class S, class From, class W>
  requires(!std::is_same_v<From, W> && requires { typename S::template rebind<W>; })
struct RebindStruct<S, From, W> {
  using type = typename S::template rebind<W>;
};
template <template <class> class S, class From, class W>
  requires(!std::is_same_v<From, W> && !requires { typename S<From>::template rebind<W>; })
struct RebindStruct<S<From>, From, W> {
  using type = S<W>;
};

template <class S, class Fields = std::remove_cvref_t<decltype(S::fields)>>
struct FieldsValue;
template <class S, class... Members>
struct FieldsValue<S, std::tuple<Members...>> {
  using type = typename OneValue<
      TreeValueOf<decltype(std::declval<S&>().*std::declval<Members>())>...>::type;
};

template <HasFields S>
  requires(!AnyValue<S>)
struct TreeTraits<S> {
  using Value = typename FieldsValue<S>::type;
  template <class W>
  using Rebind = typename RebindStruct<S, Value, W>::type;
  template <class Tree, class F>
  static void visit(Tree& tree, F& f) {
    std::apply([&](auto... member) { (visit_tree(tree.*member, f), ...); }, S::fields);
  }
  template <class W, class Next>
  static Rebind<W> build(const S& like, Next& next) {
    return std::apply(
        [&](auto... member) { return Rebind<W>{build_tree<W>(like.*member, next)...}; }, S::fields);
  }
};

template <class Tuple>
struct MembersValue;
template <class... Members>
struct MembersValue<std::tuple<Members...>> {
  using type = typename OneValue<TreeValueOf<Members>...>::type;
};

template <PlainStruct S>
  requires(!AnyValue<S>)
struct TreeTraits<S> {
  using Value = typename MembersValue<decltype(members_of(std::declval<S&>()))>::type;
  template <class W>
  using Rebind = typename RebindStruct<S, Value, W>::type;
  template <class Tree, class F>
  static void visit(Tree& tree, F& f) {
    if constexpr (!std::is_void_v<Value>) {
      std::apply([&](auto&... member) { (visit_tree(member, f), ...); }, members_of(tree));
    }
  }
  template <class W, class Next>
  static auto build(const S& like, Next& next) {
    if constexpr (std::is_void_v<Value>) {
      return like;
    } else {
      return std::apply(
          [&](const auto&... member) { return Rebind<W>{build_tree<W>(member, next)...}; },
          members_of(like));
    }
  }
};

}  // namespace detail

/// Something with values inside.
template <class T>
concept Tree = !std::is_void_v<detail::TreeValueOf<T>>;

namespace detail {

/// Whether a tree can hold values of type W in the places of its own.
template <class T, class W>
inline constexpr bool kCanRebind = true;
template <class S, class W>
  requires((HasFields<S> || PlainStruct<S>) && !AnyValue<S> && !std::is_same_v<TreeValueOf<S>, W> &&
           !requires { typename S::template rebind<W>; })
inline constexpr bool kCanRebind<S, W> = false;
template <template <class> class S, class From, class W>
  requires((HasFields<S<From>> || PlainStruct<S<From>>) && !AnyValue<S<From>> &&
           !std::is_same_v<From, W> && std::is_same_v<TreeValueOf<S<From>>, From> &&
           !requires { typename S<From>::template rebind<W>; })
inline constexpr bool kCanRebind<S<From>, W> = true;

template <class T, class W>
concept CanRebind = kCanRebind<T, W>;

template <class S>
concept TooWide =
    std::is_class_v<S> && std::is_aggregate_v<S> && !std::is_empty_v<S> && !Tree<S> &&
    !HasFields<S> && !requires { std::tuple_size<S>::value; } && count_members<S>() > kMostMembers;

/// Says what to do with an argument that is no tree.
template <class A>
struct RequireTree {
  static_assert(
      !TooWide<A>,
      "fenestra: a struct of more than 24 members (C arrays count as all their elements) is "
      "no tree by itself: put members together in structs of their own, or give it `static "
      "constexpr auto fields = "
      "std::tuple{&S::a, &S::b}`");
  static_assert(Tree<A> || TooWide<A>,
                "fenestra: an argument holds no values that a transform can find: make it a struct "
                "without constructors and private members, or give it `static constexpr auto "
                "fields = std::tuple{&S::a, &S::b}`");
  static constexpr bool value = true;
};

}  // namespace detail

/// The type of the values in a tree.
template <Tree T>
using TreeValue = detail::TreeValueOf<T>;

/// The tree type with values of type W in the places of the old ones.
template <Tree T, AnyValue W>
using TreeRebind = detail::TreeRebindOf<T, W>;

/// f on every value of the tree, in order. The values can be changed through a tree that is not
/// const.
template <class T, class F>
  requires Tree<std::remove_const_t<T>>
void for_each_tensor(T& tree, F&& f) {
  detail::visit_tree(tree, f);
}

/// How many values a tree holds.
template <Tree T>
Index tree_size(const T& tree) {
  Index count = 0;
  for_each_tensor(tree, [&](const auto&) { ++count; });
  return count;
}

/// The values in order.
template <Tree T>
std::vector<TreeValue<T>> tree_flatten(const T& tree) {
  std::vector<TreeValue<T>> values;
  for_each_tensor(tree, [&](const TreeValue<T>& value) { values.push_back(value); });
  return values;
}

/// A tree like `like` with other values, perhaps of another type; the inverse of `tree_flatten`.
/// Shapes are free.
template <AnyValue W, Tree T>
TreeRebind<T, W> tree_unflatten(const T& like, std::span<const W> values) {
  const Index needed = tree_size(like);
  if (static_cast<Index>(values.size()) != needed) {
    throw Error("tree_unflatten",
                {.code = ErrorCode::shape_mismatch,
                 .got = static_cast<Index>(values.size()),
                 .needed = needed},
                "tree_unflatten: " + std::to_string(values.size()) + " values for a tree of " +
                    std::to_string(needed) + "\n  fix: as many values as tree_flatten gives");
  }
  std::size_t at = 0;
  auto next = [&]() -> const W& { return values[at++]; };
  return detail::build_tree<W>(like, next);
}
template <Tree T, AnyValue W>
TreeRebind<T, W> tree_unflatten(const T& like, const std::vector<W>& values) {
  return tree_unflatten<W>(like, std::span<const W>(values));
}

/// f applied to the values in equal places of one or more trees; the result has the structure of
/// the first.
template <class F, Tree T, Tree... More>
auto tree_map(F&& f, const T& tree, const More&... more) {
  using W =
      std::remove_cvref_t<std::invoke_result_t<F&, const TreeValue<T>&, const TreeValue<More>&...>>;
  const std::vector<TreeValue<T>> first = tree_flatten(tree);
  const auto rest = std::tuple<std::vector<TreeValue<More>>...>{tree_flatten(more)...};
  std::vector<W> results;
  results.reserve(first.size());
  std::apply(
      [&](const auto&... lists) {
        for (const std::size_t size : {first.size(), lists.size()...}) {
          if (size != first.size()) {
            throw Error("tree_map",
                        {.code = ErrorCode::shape_mismatch,
                         .got = static_cast<Index>(size),
                         .needed = static_cast<Index>(first.size())},
                        "tree_map: trees of " + std::to_string(first.size()) + " and of " +
                            std::to_string(size) + " values\n  fix: trees of one structure");
          }
        }
        for (std::size_t i = 0; i < first.size(); ++i) {
          results.push_back(f(first[i], lists[i]...));
        }
      },
      rest);
  return tree_unflatten(tree, results);
}

}  // namespace fenestra
