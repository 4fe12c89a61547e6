// Between Python's own objects, which value.hpp speaks of, and pybind11's.
#pragma once

#include <fenestra/python/value.hpp>

#include <pybind11/pybind11.h>

namespace fenestra::python {

/// Takes over a new reference; null is Python's error, which is thrown.
inline pybind11::object stolen(PyObject* object) {
  return pybind11::reinterpret_steal<pybind11::object>(Ref::owned(object).release());
}

inline pybind11::tuple shape_tuple(const Shape& shape) {
  pybind11::tuple result(static_cast<std::size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    result[static_cast<std::size_t>(axis)] = shape[axis];
  }
  return result;
}

}  // namespace fenestra::python
