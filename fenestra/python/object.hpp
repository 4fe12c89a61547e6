// Between Python's own objects, which value.hpp speaks of, and pybind11's.
#pragma once

#include <fenestra/python/value.hpp>

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace fenestra::python {

/// Takes over a new reference; null is Python's error, which is thrown.
inline pybind11::object stolen(PyObject* object) {
  return pybind11::reinterpret_steal<pybind11::object>(Ref::owned(object).release());
}

/// False for an object of a class of pybind11's that __new__ made and nobody initialised: pybind11
/// would hand out memory without contents.
inline bool is_initialised(PyObject* object) {
  const auto* metaclass = pybind11::detail::get_internals().default_metaclass;
  if (PyObject_TypeCheck(reinterpret_cast<PyObject*>(Py_TYPE(object)),
                         const_cast<PyTypeObject*>(metaclass)) == 0) {
    return true;
  }
  const auto* instance = reinterpret_cast<const pybind11::detail::instance*>(object);
  return !instance->simple_layout || instance->simple_value_holder[0] != nullptr;
}

/// A Python object that may be let go of where the interpreter's lock is not held.
inline std::shared_ptr<PyObject> kept(const pybind11::object& object) {
  return {pybind11::object(object).release().ptr(), [](PyObject* held) {
            if (Py_IsInitialized() != 0) {
              const pybind11::gil_scoped_acquire lock;
              Py_XDECREF(held);
            }
          }};
}

/// What is incoming, in one scalar; numbers take it. `owner` says in the message whose it is: "the
/// network is".
template <class T>
Value<T> value_in(PyObject* object, const Where& where, std::string_view owner) {
  Incoming given = incoming(object, where);
  if (auto* numbers = std::get_if<Tensor<double>>(&given)) {
    return numbers->map([](double x) { return static_cast<T>(x); });
  }
  auto* value = std::get_if<Value<T>>(&std::get<AnyTensor>(given).value);
  if (value == nullptr) {
    constexpr bool kIsSingle = std::is_same_v<T, float>;
    const std::string needed = kIsSingle ? "float32" : "float64";
    throw Error(ErrorCode::dtype_mismatch,
                where.text() + " is " + (kIsSingle ? "float64" : "float32") + ", " +
                    std::string(owner) + " " + needed + "\n  fix: .astype('" + needed + "')");
  }
  return std::move(*value);
}

inline pybind11::tuple shape_tuple(const Shape& shape) {
  pybind11::tuple result(static_cast<std::size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    result[static_cast<std::size_t>(axis)] = shape[axis];
  }
  return result;
}

}  // namespace fenestra::python
