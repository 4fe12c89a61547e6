// Slots: where a model keeps its numbers, each with a name.
//
// A slot is a `Parameter<T>`, which is trained, or a `Buffer<T>`, state that training changes and
// nobody differentiates (running statistics). A model is a slot, or a struct, vector, array, map,
// tuple, optional or smart pointer of models:
//
//   struct Net {
//     nn::Conv conv;
//     std::vector<Block> stages;
//   };
//   for (nn::Slot<float>& slot : nn::slots<float>(net)) ...   // "conv.weight", "stages.0...."
//
// The members of an aggregate (at most 24) are named by the compiler. Another class says what it
// holds, and of which scalar:
//
//   using Scalar = float;
//   template <class F> void slots(F&& f) { f("conv", conv_); f("head", head_); }
//
// Slots come in the order of declaration. For transforms and `compile` a model is a tree of its
// parameters: `value_and_grad(loss, model)` gives a model of gradients, and carries buffers along.
#pragma once

#include <fenestra/base/level.hpp>
#include <fenestra/engine/tree.hpp>
#include <fenestra/engine/value.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra::nn {

/// How a parameter begins, for `initialise`.
struct Initial {
  enum class Draw {
    none,      ///< as it is
    constant,  ///< `scale` everywhere
    uniform,   ///< on [-scale, scale)
    normal,    ///< with standard deviation `scale`
  };
  Draw draw = Draw::none;
  double scale = 0;
};

/// Numbers that are trained.
template <class T>
struct Parameter {
  using Scalar = T;
  Value<T> value;
  Initial initial = {};
};

/// Numbers that are kept, and that training may replace (see Pass::update), but that have no
/// gradient.
template <class T>
struct Buffer {
  using Scalar = T;
  Value<T> value;
  /// Tells buffers of a model apart. A copy keeps it, so that what a copy of a model found out can
  /// be written into the model.
  std::uint64_t id = new_level();
};

/// A place in a model.
template <class T>
struct Slot {
  std::string name;          ///< dotted: "stage2.0.conv.weight"
  Value<T>* value;           ///< in the model
  bool trained;              ///< a parameter; otherwise a buffer
  std::uint64_t buffer = 0;  ///< `Buffer::id` of a buffer
};

namespace detail {

using fenestra::detail::HasFields;
using fenestra::detail::members_of;
using fenestra::detail::PlainStruct;

// --- The names of members ----------------------------------------------------------------------

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
/// Never defined: only addresses of its members are taken, while compiling.
template <class S>
struct Imagined {
  S object;
  static const Imagined instance;
};
/// A pointer that may be a template argument where it points into an object (clang 16 allows that
/// only within a class).
template <class P>
struct Address {
  P pointer;
};

/// Not a string_view: g++ would explain the alias behind the address.
template <auto address>
consteval const char* address_text() {
  return __PRETTY_FUNCTION__;
}

/// The identifier that a compiler's text of an address ends with.
consteval std::string_view last_identifier(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::size_t end = text.rfind(']');
  while (end > 0 && !is_letter(text[end - 1])) {
    --end;
  }
  std::size_t begin = end;
  while (begin > 0 && is_letter(text[begin - 1])) {
    --begin;
  }
  return text.substr(begin, end - begin);
}

/// The name of member i of an aggregate.
template <class S, std::size_t i>
consteval std::string_view member_name() {
  constexpr auto pointer = &std::get<i>(members_of(Imagined<S>::instance.object));
  return last_identifier(address_text<Address<decltype(pointer)>{pointer}>());
}
/// The name of field i of a class that lists its fields.
template <class S, std::size_t i>
consteval std::string_view field_name() {
  return last_identifier(address_text<std::get<i>(S::fields)>());
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

// --- Walking -----------------------------------------------------------------------------------

/// Stands for the function that `slots` is given.
struct AnyVisitor {
  template <class Part>
  void operator()(std::string_view, Part&) const {}
};

/// A class that says what it holds.
template <class S>
concept ListsSlots = std::is_class_v<S> && !PlainStruct<S> && !HasFields<S> &&
                     requires(S& model, AnyVisitor f) { model.slots(f); };

template <class S>
inline constexpr bool kIsSlot = false;
template <class T>
inline constexpr bool kIsSlot<Parameter<T>> = true;
template <class T>
inline constexpr bool kIsSlot<Buffer<T>> = true;

inline void append_name(std::string& name, std::string_view part) {
  if (!name.empty() && !part.empty()) {
    name += '.';
  }
  name += part;
}

inline std::string key_name(const std::string& key) { return key; }
template <std::integral K>
std::string key_name(K key) {
  return std::to_string(key);
}

/// f(name, slot) on every slot of `model`, whose own name is `name`. Anything that is not known
/// holds none.
template <class M, class F>
void visit_slots(M& model, std::string& name, F& f);

template <class M, class F>
void visit_part(M& part, std::string_view part_name, std::string& name, F& f) {
  const std::size_t before = name.size();
  append_name(name, part_name);
  visit_slots(part, name, f);
  name.resize(before);
}

template <class S>
struct SlotWalk {
  template <class M, class F>
  static void walk(M& model, std::string& name, F& f) {
    if constexpr (kIsSlot<S>) {
      f(std::as_const(name), model);
    } else if constexpr (PlainStruct<S>) {
      [&]<std::size_t... i>(std::index_sequence<i...>) {
        auto members = members_of(model);
        (walk_member(
             std::get<i>(members), [] { return member_name<S, i>(); }, name, f),
         ...);
      }(std::make_index_sequence<fenestra::detail::count_members<S>()>{});
    } else if constexpr (HasFields<S>) {
      [&]<std::size_t... i>(std::index_sequence<i...>) {
        (visit_part(model.*std::get<i>(S::fields), field_name<S, i>(), name, f), ...);
      }(std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(S::fields)>>>{});
    } else if constexpr (ListsSlots<S>) {
      static_assert(
          requires { typename S::Scalar; },
          "fenestra: a class with slots() says of which scalar they are: `using Scalar = "
          "float;`");
      // slots() need not be const: through a const model, f gets const slots.
      const_cast<S&>(model).slots([&](std::string_view part_name, auto& part) {
        using Part = std::remove_reference_t<decltype(part)>;
        if constexpr (std::is_const_v<M>) {
          visit_part(static_cast<const Part&>(part), part_name, name, f);
        } else {
          visit_part(part, part_name, name, f);
        }
      });
    } else {
      static_assert(
          !std::is_aggregate_v<S> || std::is_empty_v<S> || std::is_array_v<S> || std::is_union_v<S>,
          "fenestra: an aggregate of more than 24 members cannot be walked: group some, "
          "or give it slots()");
    }
  }

 private:
  /// A member's name is asked for only where it may hold something.
  template <class Part, class Name, class F>
  static void walk_member(Part& part, const Name& part_name, std::string& name, F& f) {
    if constexpr (std::is_class_v<std::remove_const_t<Part>>) {
      visit_part(part, part_name(), name, f);
    }
  }
};

template <class T, class F>
void walk_items(T& items, std::string& name, F& f) {
  std::size_t i = 0;
  for (auto& item : items) {
    visit_part(item, std::to_string(i++), name, f);
  }
}

template <class T, class Alloc>
struct SlotWalk<std::vector<T, Alloc>> {
  template <class M, class F>
  static void walk(M& model, std::string& name, F& f) {
    if constexpr (std::is_class_v<T>) {
      walk_items(model, name, f);
    }
  }
};
template <class T, std::size_t n>
struct SlotWalk<std::array<T, n>> {
  template <class M, class F>
  static void walk(M& model, std::string& name, F& f) {
    if constexpr (std::is_class_v<T>) {
      walk_items(model, name, f);
    }
  }
};
template <class K, class T, class Compare, class Alloc>
struct SlotWalk<std::map<K, T, Compare, Alloc>> {
  template <class M, class F>
  static void walk(M& model, std::string& name, F& f) {
    if constexpr (requires(const K& key) { key_name(key); }) {
      for (auto& [key, part] : model) {
        visit_part(part, key_name(key), name, f);
      }
    }
  }
};
template <class... Parts>
struct SlotWalk<std::tuple<Parts...>> {
  template <class M, class F>
  static void walk(M& model, std::string& name, F& f) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (visit_part(std::get<i>(model), std::to_string(i), name, f), ...);
    }(std::index_sequence_for<Parts...>{});
  }
};
template <class A, class B>
struct SlotWalk<std::pair<A, B>> {
  template <class M, class F>
  static void walk(M& model, std::string& name, F& f) {
    visit_part(model.first, "first", name, f);
    visit_part(model.second, "second", name, f);
  }
};

// What is there or not has the name of its place.
template <class Pointer, class F>
void walk_pointed(Pointer& pointer, std::string& name, F& f) {
  if (!pointer) {
    return;
  }
  if constexpr (std::is_const_v<Pointer>) {
    visit_slots(std::as_const(*pointer), name, f);
  } else {
    visit_slots(*pointer, name, f);
  }
}
template <class T>
struct SlotWalk<std::optional<T>> {
  template <class M, class F>
  static void walk(M& model, std::string& name, F& f) {
    walk_pointed(model, name, f);
  }
};
template <class T, class Deleter>
struct SlotWalk<std::unique_ptr<T, Deleter>> {
  template <class M, class F>
  static void walk(M& model, std::string& name, F& f) {
    walk_pointed(model, name, f);
  }
};
template <class T>
struct SlotWalk<std::shared_ptr<T>> {
  template <class M, class F>
  static void walk(M& model, std::string& name, F& f) {
    walk_pointed(model, name, f);
  }
};

// Carried whole.
template <class Char, class Traits, class Alloc>
struct SlotWalk<std::basic_string<Char, Traits, Alloc>> {
  template <class M, class F>
  static void walk(M&, std::string&, F&) {}
};
template <class T>
struct SlotWalk<Value<T>> {
  template <class M, class F>
  static void walk(M&, std::string&, F&) {}
};
template <class T>
struct SlotWalk<Tensor<T>> {
  template <class M, class F>
  static void walk(M&, std::string&, F&) {}
};

template <class M, class F>
void visit_slots(M& model, std::string& name, F& f) {
  SlotWalk<std::remove_const_t<M>>::walk(model, name, f);
}

}  // namespace detail

/// f(name, slot) on every slot, which is a `Parameter<T>&` or a `Buffer<T>&` (const in a const
/// model).
template <class Model, class F>
void for_each_slot(Model& model, F&& f) {
  std::string name;
  detail::visit_slots(model, name, f);
}

/// Every slot of the model. Where a layer was copied within a model, its buffers get identities of
/// their own.
template <class T, class Model>
std::vector<Slot<T>> slots(Model& model) {
  std::vector<Slot<T>> result;
  std::map<std::uint64_t, bool> seen;
  for_each_slot(model, [&](const std::string& name, auto& slot) {
    using S = std::remove_cvref_t<decltype(slot)>;
    static_assert(std::is_same_v<typename S::Scalar, T>,
                  "fenestra: the model holds slots of another scalar than the one asked for");
    if constexpr (std::is_same_v<S, Buffer<T>>) {
      if (!seen.emplace(slot.id, true).second) {
        slot.id = new_level();
      }
      result.push_back({name, &slot.value, false, slot.id});
    } else {
      result.push_back({name, &slot.value, true});
    }
  });
  return result;
}

/// How many numbers a model trains.
template <class Model>
Index parameter_count(const Model& model) {
  Index count = 0;
  for_each_slot(model, [&]<class S>(const std::string&, const S& slot) {
    if constexpr (std::is_same_v<S, Parameter<typename S::Scalar>>) {
      count += slot.value.shape().elements().value_or(0);
    }
  });
  return count;
}

}  // namespace fenestra::nn

namespace fenestra::detail {

/// Carried along: a buffer has no gradient.
template <class T>
struct TreeTraits<nn::Buffer<T>> {
  using Value = void;
  template <class W>
  using Rebind = nn::Buffer<T>;
  template <class Tree, class F>
  static void visit(Tree&, F&) {}
  template <class W, class Next>
  static nn::Buffer<T> build(const nn::Buffer<T>& like, Next&) {
    return like;
  }
};

/// A class that says what it holds: a tree of its parameters, built by copying it.
template <nn::detail::ListsSlots S>
struct TreeTraits<S> {
  using Value = fenestra::Value<typename S::Scalar>;
  template <class W>
  using Rebind = S;
  template <class Tree, class F>
  static void visit(Tree& tree, F& f) {
    nn::for_each_slot(tree, [&](const std::string&, auto& slot) { visit_tree(slot, f); });
  }
  template <class W, class Next>
  static S build(const S& like, Next& next) {
    static_assert(std::is_same_v<W, Value>,
                  "fenestra: a layer holds values, and no other type in their places");
    S result = like;
    auto replace = [&](Value& value) { value = next(); };
    visit(result, replace);
    return result;
  }
};

template <class S, class W>
  requires(nn::detail::ListsSlots<S> && !std::is_same_v<TreeValueOf<S>, W>)
inline constexpr bool kCanRebind<S, W> = false;

/// What pointers to trees share; a tree that is built points to an object of its own.
template <class T, template <class...> class Pointer>
struct PointerTraits {
  using Value = TreeValueOf<T>;
  template <class W>
  using Rebind = Pointer<TreeRebindOf<T, W>>;
  template <class Tree, class F>
  static void visit(Tree& tree, F& f) {
    if constexpr (!std::is_void_v<Value>) {
      if (tree) {
        visit_tree(*tree, f);
      }
    }
  }
};
template <class T>
struct TreeTraits<std::shared_ptr<T>> : PointerTraits<T, std::shared_ptr> {
  template <class W, class Next>
  static std::shared_ptr<TreeRebindOf<T, W>> build(const std::shared_ptr<T>& like, Next& next) {
    if constexpr (std::is_void_v<TreeValueOf<T>>) {
      return like;
    } else {
      return like ? std::make_shared<TreeRebindOf<T, W>>(build_tree<W>(*like, next)) : nullptr;
    }
  }
};

}  // namespace fenestra::detail
