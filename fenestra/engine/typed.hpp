// Operators on typed graph variables: the type of a result, and what a refused call says.
//
// An operator is written for any value type, so the shape of its result is found by calling the
// operator itself, while compiling, on abstract values: values that are a shape and nothing else.
// No operator states a rule for types; `<operator>/typed.hpp` only says which template argument its
// options are. Where an argument's shape is known at run time only, so is the result's.
#pragma once

#include <fenestra/engine/operation.hpp>
#include <fenestra/engine/tree.hpp>
#include <fenestra/graph/var.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace fenestra {

namespace graph {

// --- Abstract values ------------------------------

/// Integers of which only form and shape are known.
class AbstractData {
 public:
  constexpr AbstractData() = default;
  constexpr explicit AbstractData(const Shape& shape) : type_{SelectionForm::indices, shape} {}
  constexpr const Shape& shape() const { return type_.shape; }
  constexpr const SelectionType& type() const { return type_; }

 private:
  SelectionType type_;
};

/// A value of which only the shape is known.
template <class T>
class AbstractValue {
 public:
  constexpr explicit AbstractValue(const Shape& shape) : shape_(shape) {}
  constexpr const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
};

}  // namespace graph

template <class T>
struct ValueTraits<graph::AbstractValue<T>> {
  using Scalar = T;
  using Indices = graph::AbstractData;
  static constexpr int depth = 1;
  static constexpr bool has_elements = false;
  static constexpr bool is_compiled = false;
};

namespace graph {

template <class P, class T>
constexpr Applied<AbstractValue<T>> apply_all(const P& primitive,
                                              std::span<const AbstractValue<T>> in,
                                              std::span<const AbstractData>,
                                              bool) {
  return {AbstractValue<T>(primitive.result_shape(in[0].shape())), {}};
}

// --- Words that a compiler prints ------------------------------

/// A text in the making; what does not fit is cut off.
struct Words {
  char chars[96] = {};

  constexpr Words() = default;
  template <std::size_t n>
  constexpr Words(const char (&text)[n]) {
    append(std::string_view(text, n - 1));
  }
  constexpr std::size_t size() const { return view().size(); }
  constexpr Words& append(std::string_view text) {
    std::size_t end = size();
    for (const char c : text) {
      if (end + 1 < sizeof(chars)) {
        chars[end++] = c;
      }
    }
    return *this;
  }
  constexpr Words& append(Index number) {
    if (number < 0) {
      append("-");
    }
    char digits[20] = {};
    std::size_t count = 0;
    do {
      const Index digit = number % 10;
      digits[count++] = static_cast<char>('0' + (digit < 0 ? -digit : digit));
      number /= 10;
    } while (number != 0);
    while (count > 0) {
      append(std::string_view(&digits[--count], 1));
    }
    return *this;
  }
  constexpr std::string_view view() const { return chars; }
};

/// The same without room to spare: clang prints a text only where it ends with its array, and cuts
/// it after some thirty characters.
template <std::size_t n>
struct Text {
  char chars[n] = {};
};
template <Words words>
constexpr auto exact() {
  Text<words.size() + 1> text;
  for (std::size_t i = 0; i <= words.size(); ++i) {
    text.chars[i] = words.chars[i];
  }
  return text;
}

/// "w = (16, 3, 3, 3)"
constexpr Words shape_words(std::string_view name, const Shape& shape) {
  Words words;
  words.append(name).append(" = (");
  for (int axis = 0; axis < shape.rank(); ++axis) {
    words.append(axis > 0 ? ", " : "").append(shape[axis]);
  }
  return words.append(shape.rank() == 1 ? ",)" : ")");
}

/// "conv: w", or the operator alone where `argument` is empty.
constexpr Words place_words(std::string_view op, std::string_view argument) {
  return Words().append(op).append(argument.empty() ? "" : ": ").append(argument);
}

/// "channel-mismatch"; of a mistake of which nothing is known, what it concerns.
constexpr Words code_words(const Fault& fault, bool of_one_shape) {
  if (fault) {
    return Words().append(code_name(fault.code));
  }
  return Words().append(of_one_shape ? "this shape does not fit"
                                     : "these shapes do not fit together");
}

/// "spatial axis 1: got 3, needed 4"; nothing where no numbers are known.
constexpr Words number_words(const Fault& fault) {
  Words words;
  if (fault.got == fault.needed) {
    return words;
  }
  if (fault.axis >= 0) {
    words.append("spatial axis ").append(Index{fault.axis}).append(": ");
  }
  return words.append("got ").append(fault.got).append(", needed ").append(fault.needed);
}

/// Never true; the compiler quotes its arguments.
template <Text... message>
inline constexpr bool accepted = false;

template <Text... message>
constexpr void refuse() {
  static_assert(accepted<message...>, "fenestra: an operator refuses the shapes of its arguments");
}

// --- Operands ------------------------------

/// How an argument appears in an abstract call. Arguments that are neither values nor data
/// (slopes, bounds) decide no shape.
template <class In>
struct OperandTraits {
  static constexpr bool is_typed = false;
  static constexpr bool is_plain = false;
  static constexpr const In& untyped(const In& in) { return in; }
};
template <class In>
  requires std::is_arithmetic_v<In>
struct OperandTraits<In> {
  static constexpr bool is_typed = false;
  static constexpr bool is_plain = true;
  static constexpr In abstract() { return In{}; }
  static constexpr const In& untyped(const In& in) { return in; }
};
template <class T, Shape S>
struct OperandTraits<Var<T, S>> {
  static constexpr bool is_typed = true;
  static constexpr bool is_plain = false;
  static constexpr AbstractValue<T> abstract() { return AbstractValue<T>(S); }
  static const Value<T>& untyped(const Var<T, S>& in) { return in; }
};
template <Shape S>
struct OperandTraits<DataVar<S>> {
  static constexpr bool is_typed = true;
  static constexpr bool is_plain = false;
  static constexpr AbstractData abstract() { return AbstractData(S); }
  static const Data& untyped(const DataVar<S>& in) { return in; }
};

template <class In>
concept Typed = OperandTraits<In>::is_typed;

/// What an operator takes beside options: values of any kind, integers, plain numbers.
template <class In>
concept Operand = Typed<In> || OperandTraits<In>::is_plain || AnyValue<In> ||
                  std::same_as<In, Data> || std::same_as<In, Selection>;

/// A call that the overloads for untyped values do not take.
template <class... In>
concept SomeTyped = (Operand<In> && ...) && (Typed<In> || ...);

/// A call whose result has a type of its own.
template <class... In>
concept AllTyped = SomeTyped<In...> && ((Typed<In> || OperandTraits<In>::is_plain) && ...);

/// The shape of f(in...), found on abstract values.
template <class F, class... In>
constexpr Shape abstract_shape() {
  return F{}(OperandTraits<In>::abstract()...).shape();
}

template <class F, class... In>
concept Accepts =
    requires { typename std::integral_constant<int, abstract_shape<F, In...>().rank()>; };

/// Of the first typed value among the arguments.
template <class... In>
struct ScalarOfTyped;
template <class In, class... Rest>
struct ScalarOfTyped<In, Rest...> : ScalarOfTyped<Rest...> {};
template <class T, Shape S, class... Rest>
struct ScalarOfTyped<Var<T, S>, Rest...> {
  using type = T;
};

/// Says nothing of a mistake but the shapes.
struct NoFault {
  constexpr Fault operator()(const auto&...) const { return {}; }
};

template <Words op, Words... names>
struct TypedCall {
  /// Refuses, with the operator, the argument at fault and all shapes, what f does not take.
  template <class F, class Faulty, class... In>
  static constexpr bool check() {
    if constexpr (Accepts<F, In...>) {
      return true;
    } else {
      explain<fault_of<Faulty, In...>(), In...>(std::index_sequence_for<In...>{});
      return false;
    }
  }

  /// The type of f(in...), which `check` has accepted.
  template <class F, class... In>
  using Result = Var<typename ScalarOfTyped<In...>::type, abstract_shape<F, In...>()>;

  /// f(in...), typed where every argument is. F is a lambda without captures on any values;
  /// Faulty, likewise, gives the fault of a call from the shapes.
  template <class F, class Faulty, class... In>
  static auto run(F f, Faulty, const In&... in) {
    if constexpr (!AllTyped<In...>) {
      return f(OperandTraits<In>::untyped(in)...);
    } else if constexpr (check<F, Faulty, In...>()) {
      return Result<F, In...>(f(OperandTraits<In>::untyped(in)...));
    } else {
      // Dynamic from here on, so that one mistake is reported once.
      return f(OperandTraits<In>::untyped(in)...);
    }
  }

 private:
  template <class Faulty, class... In>
  static constexpr Fault fault_of() {
    return std::apply([](const auto&... shape) { return Faulty{}(shape...); },
                      std::tuple_cat(shape_of<In>()...));
  }
  template <Fault fault, class... In, std::size_t... i>
  static constexpr void explain(std::index_sequence<i...>) {
    constexpr bool one = sizeof...(In) == 1;
    refuse<exact<place_words(op.view(),
                             one && !fault ? name_of<0>() : argument_name(fault.argument))>(),
           exact<code_words(fault, one)>(),
           exact<number_words(fault)>(),
           exact<argument_words<In, i>()>()...>();
  }
  template <class In>
  static constexpr auto shape_of() {
    if constexpr (Typed<In>) {
      return std::tuple<Shape>(In::static_shape);
    } else {
      return std::tuple<>();
    }
  }
  template <std::size_t i>
  static constexpr std::string_view name_of() {
    constexpr std::string_view given[] = {names.view()..., ""};
    return i < sizeof...(names) ? given[i] : "and";
  }
  template <class In, std::size_t i>
  static constexpr Words argument_words() {
    if constexpr (Typed<In>) {
      return shape_words(name_of<i>(), In::static_shape);
    } else {
      return Words().append(name_of<i>()).append(" is a number");
    }
  }
};

/// The call of one operator, for the declarations in `<operator>/typed.hpp`: its name, its
/// arguments' names, how it runs, and, where the geometry can tell, what is wrong.
template <Words op, Words... names, class F, class Faulty, class... In>
  requires(!Operand<Faulty>)
auto typed(F f, Faulty faulty, const In&... in) {
  return TypedCall<op, names...>::run(f, faulty, in...);
}
template <Words op, Words... names, class F, Operand... In>
auto typed(F f, const In&... in) {
  return TypedCall<op, names...>::run(f, NoFault{}, in...);
}

}  // namespace graph

/// In trees, a typed variable is its value; a tree put together again holds untyped ones.
template <class T, Shape S>
struct detail::TreeTraits<graph::Var<T, S>> {
  using Value = graph::Value<T>;
  template <class W>
  using Rebind = W;
  template <class Tree, class F>
  static void visit(Tree& value, F& f) {
    f(static_cast<std::conditional_t<std::is_const_v<Tree>, const Value, Value>&>(value));
  }
  template <class W, class Next>
  static W build(const graph::Var<T, S>&, Next& next) {
    return next();
  }
};

}  // namespace fenestra
