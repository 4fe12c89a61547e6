// Arguments that are not tensors, from Python and back: numbers, per-axis options, padding, names
// of enumerators, shapes. Each type also says how stubs and docstrings spell it.
#pragma once

#include <fenestra/ops/signature.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/python/value.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/shape.hpp>

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra::python {

Index integer(PyObject* object, const Where& where);
double number(PyObject* object, const Where& where);
bool truth(PyObject* object, const Where& where);
/// One integer, as against a sequence of them; arrays can claim to be both.
bool is_integer(PyObject* object);
/// The elements of a tuple, list or other sequence that is no text, `most` of them at most;
/// `needed` for the message.
std::vector<Ref> elements(PyObject* object,
                          const Where& where,
                          std::string_view needed,
                          Py_ssize_t most = kMaxRank);
/// A str; characters that are none in UTF-8 are written as escapes.
std::string text(PyObject* object, const Where& where, std::string_view needed);
std::string number_text(double value);

/// get(object, where); type: as an annotation; show(value): as a default.
template <class T>
struct Convert;

template <std::signed_integral T>
struct Convert<T> {
  static constexpr std::string_view type = "int";
  static T get(PyObject* object, const Where& where) {
    const Index value = integer(object, where);
    if (!std::in_range<T>(value)) {
      where.refuse_number(object, "fit " + std::to_string(8 * sizeof(T)) + " bits");
    }
    return static_cast<T>(value);
  }
  static std::string show(T value) { return std::to_string(value); }
};

template <>
struct Convert<double> {
  static constexpr std::string_view type = "float";
  static double get(PyObject* object, const Where& where) { return number(object, where); }
  static std::string show(double value) { return number_text(value); }
};

template <>
struct Convert<std::string> {
  static constexpr std::string_view type = "str";
  static std::string get(PyObject* object, const Where& where) {
    return text(object, where, "a text");
  }
  static std::string show(const std::string& value) { return "'" + value + "'"; }
};

template <>
struct Convert<bool> {
  static constexpr std::string_view type = "bool";
  static bool get(PyObject* object, const Where& where) { return truth(object, where); }
  static std::string show(bool value) { return value ? "True" : "False"; }
};

template <class E>
  requires std::is_enum_v<E>
struct Convert<E> {
  static std::string names() {
    std::string list;
    for (const std::string_view name : enum_names<E>) {
      list += (list.empty() ? "'" : ", '") + std::string(name) + "'";
    }
    return list;
  }
  static inline const std::string type = "Literal[" + names() + "]";
  static E get(PyObject* object, const Where& where) {
    const std::string given = text(object, where, "one of " + names());
    for (std::size_t i = 0; i < enum_names<E>.size(); ++i) {
      if (given == enum_names<E>[i]) {
        return static_cast<E>(i);
      }
    }
    throw Error(ErrorCode::unknown_choice,
                where.text() + " = '" + given + "' is not known\n  fix: one of " + names());
  }
  static std::string show(E shown) {
    return "'" + std::string(enum_names<E>[static_cast<std::size_t>(shown)]) + "'";
  }
};

template <>
struct Convert<PerAxis> {
  static constexpr std::string_view type = "int | Sequence[int]";
  static PerAxis get(PyObject* object, const Where& where);
  static std::string show(const PerAxis& value);
};

template <>
struct Convert<Padding> {
  static constexpr std::string_view type =
      "int | Sequence[int] | Sequence[tuple[int, int]] | Literal['same', 'valid']";
  static Padding get(PyObject* object, const Where& where);
  static std::string show(const Padding&) { return "0"; }
};

template <>
struct Convert<OptionalIndex> {
  static constexpr std::string_view type = "int | None";
  static OptionalIndex get(PyObject* object, const Where& where) {
    return object == Py_None ? OptionalIndex() : OptionalIndex(integer(object, where));
  }
  static std::string show(const OptionalIndex&) { return "None"; }
};

template <class T>
struct Convert<std::optional<T>> {
  static inline const std::string type = std::string(Convert<T>::type) + " | None";
  static std::optional<T> get(PyObject* object, const Where& where) {
    return object == Py_None ? std::nullopt : std::optional<T>(Convert<T>::get(object, where));
  }
  static std::string show(const std::optional<T>& value) {
    return value ? Convert<T>::show(*value) : "None";
  }
};

template <>
struct Convert<Shape> {
  static constexpr std::string_view type = "int | Sequence[int]";
  static Shape get(PyObject* object, const Where& where);
  static std::string show(const Shape& value) { return to_string(value); }
};

/// Axes: one, several, or None for none in particular.
template <>
struct Convert<std::vector<int>> {
  static constexpr std::string_view type = "int | Sequence[int] | None";
  static std::vector<int> get(PyObject* object, const Where& where);
  static std::string show(const std::vector<int>&) { return "None"; }
};
template <>
struct Convert<AxisList> {
  static constexpr std::string_view type = Convert<std::vector<int>>::type;
  static AxisList get(PyObject* object, const Where& where) {
    return AxisList(Convert<std::vector<int>>::get(object, where));
  }
  static std::string show(const AxisList&) { return "None"; }
};

/// How many parts, or their sizes.
template <>
struct Convert<SplitParts> {
  static constexpr std::string_view type = "int | Sequence[int]";
  static SplitParts get(PyObject* object, const Where& where);
};

template <>
struct Convert<std::vector<LowHigh>> {
  static constexpr std::string_view type = "Sequence[tuple[int, int]]";
  static std::vector<LowHigh> get(PyObject* object, const Where& where);
};

/// Factors of a resize, for instance: a type that is made of numbers.
template <class T>
  requires requires(T t) {
    t.values;
    t.listed();
  }
struct Convert<T> {
  static constexpr std::string_view type = "float | Sequence[float] | None";
  static T get(PyObject* object, const Where& where) {
    T result;
    if (object == Py_None) {
      return result;
    }
    if (PyFloat_Check(object) || PyLong_Check(object)) {
      return T(number(object, where));
    }
    for (const Ref& element : elements(object, where, "a number or a list of numbers")) {
      result.push_back(number(element.get(), where));
    }
    return result;
  }
  static std::string show(const T&) { return "None"; }
};

}  // namespace fenestra::python
