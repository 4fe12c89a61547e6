// What the parts of the Python module tell each other.
#pragma once

#include <Python.h>

#include <fenestra/python/value.hpp>

namespace pybind11 {
class module_;
}

namespace fenestra::python {

class Declarer;

/// Python's class Tensor; set by define_tensor.
PyTypeObject* tensor_type();
/// The memory of a tensor as a NumPy array, shared.
PyObject* numpy_view(AnyTensor& tensor);

void define_tensor(pybind11::module_& module);
void define_transforms(pybind11::module_& module);
void define_compile(pybind11::module_& module);

/// Every operator of the list; the definition is written by CMake.
void declare_operators(Declarer& declarer);

}  // namespace fenestra::python
