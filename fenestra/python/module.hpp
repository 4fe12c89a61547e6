// What the parts of the Python module tell each other.
#pragma once

#include <Python.h>

#include <fenestra/python/value.hpp>

#include <string_view>

namespace pybind11 {
class module_;
class object;
}  // namespace pybind11

namespace fenestra::python {

class Declarer;

/// Python's class Tensor; set by define_tensor.
PyTypeObject* tensor_type();
/// The memory of a tensor as a NumPy array, shared.
PyObject* numpy_view(AnyTensor& tensor);

/// What NumPy takes for a dtype; anything else is refused in the name of `function`.
pybind11::object numpy_dtype_of(const pybind11::object& dtype, std::string_view function);

void define_tensor(pybind11::module_& module);
void define_transforms(pybind11::module_& module);
void define_compile(pybind11::module_& module);
void define_call(pybind11::module_& module);
void define_networks(pybind11::module_& module);
void define_onnx(pybind11::module_& module);
void define_training(pybind11::module_& module);
void define_trainer(pybind11::module_& module);
void define_datasets(pybind11::module_& module);

/// Whether a function is being compiled in this thread: what is drawn now would be a constant.
bool is_tracing();

/// Every operator of the list; the definition is written by CMake.
void declare_operators(Declarer& declarer);

}  // namespace fenestra::python
