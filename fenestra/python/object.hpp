// Between Python's own objects, which value.hpp speaks of, and pybind11's.
#pragma once

#include <fenestra/python/value.hpp>

#include <pybind11/pybind11.h>

namespace fenestra::python {

/// Takes over a new reference; null is Python's error, which is thrown.
inline pybind11::object stolen(PyObject* object) {
  return pybind11::reinterpret_steal<pybind11::object>(Ref::owned(object).release());
}

}  // namespace fenestra::python
