// Between Python's own objects, which value.hpp speaks of, and pybind11's.
#pragma once

#include <fenestra/python/value.hpp>

#include <pybind11/pybind11.h>

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

inline pybind11::tuple shape_tuple(const Shape& shape) {
  pybind11::tuple result(static_cast<std::size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    result[static_cast<std::size_t>(axis)] = shape[axis];
  }
  return result;
}

}  // namespace fenestra::python
