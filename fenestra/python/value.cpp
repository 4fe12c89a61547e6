// Tensors from and to Python: see value.hpp.
#include <fenestra/python/dlpack.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/value.hpp>
#include <fenestra/tensor/transform.hpp>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <new>
#include <optional>

namespace fenestra::python {

namespace py = pybind11;

namespace {

/// Lets go of a Python object from any thread.
struct ReleaseObject {
  PyObject* object;
  void operator()(const void*) const {
    if (Py_IsInitialized() == 0) {
      return;
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(object);
    PyGILState_Release(state);
  }
};

template <class T>
std::shared_ptr<T[]> kept_alive(void* data, PyObject* owner) {
  Py_INCREF(owner);
  return std::shared_ptr<T[]>(static_cast<T*>(data), ReleaseObject{owner});
}

Shape shape_of(const Py_intptr_t* extents, int rank) {
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    shape.push_back(extents[axis]);
  }
  return shape;
}

/// The array's own memory as a tensor.
template <class T>
Tensor<T> borrowed(PyObject* array) {
  const auto* proxy = py::detail::array_proxy(array);
  const bool writable = (proxy->flags & py::detail::npy_api::NPY_ARRAY_WRITEABLE_) != 0;
  return Tensor<T>::borrowed(
      shape_of(proxy->dimensions, proxy->nd), kept_alive<T>(proxy->data, array), writable);
}

template <class T>
bool holds(PyObject* array) {
  const auto* descriptor =
      py::detail::array_descriptor_proxy(py::detail::array_proxy(array)->descr);
  return descriptor->type_num == py::detail::npy_format_descriptor<T>::value;
}

/// An array of T, borrowed where it is dense, aligned and in our byte order, else copied by NumPy
/// first.
template <class T>
Tensor<T> dense(PyObject* array) {
  const auto* proxy = py::detail::array_proxy(array);
  constexpr int kDense =
      py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  const auto* descriptor = py::detail::array_descriptor_proxy(proxy->descr);
  if ((proxy->flags & kDense) == kDense && descriptor->byteorder != '>') {
    return borrowed<T>(array);
  }
  const auto copy = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(array);
  if (!copy) {
    throw PythonError();
  }
  return borrowed<T>(copy.ptr());
}

bool is_array(PyObject* object) { return py::isinstance<py::array>(object); }

std::string dtype_name(PyObject* array) {
  return py::str(py::handle(array).attr("dtype")).cast<std::string>();
}

std::optional<AnyTensor> from_array(PyObject* array) {
  if (holds<float>(array)) {
    return AnyTensor{ValueOf<float>(dense<float>(array))};
  }
  if (holds<double>(array)) {
    return AnyTensor{ValueOf<double>(dense<double>(array))};
  }
  return std::nullopt;
}

/// Calls the capsule's deleter once nobody reads the memory.
template <class T>
Tensor<T> from_managed(DlManagedTensor* managed, const Where& where) {
  const std::shared_ptr<DlManagedTensor> owner(managed, [](DlManagedTensor* done) {
    if (Py_IsInitialized() == 0 || done->deleter == nullptr) {
      return;
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    done->deleter(done);
    PyGILState_Release(state);
  });
  const DlTensor& given = managed->tensor;
  T* data = reinterpret_cast<T*>(static_cast<char*>(given.data) + given.byte_offset);
  Shape shape;
  for (int axis = 0; axis < given.rank; ++axis) {
    shape.push_back(given.shape[axis]);
  }
  const Index size = shape.elements().value_or(-1);
  if (size < 0) {
    throw Error(ErrorCode::overflow, where.text() + ": no memory holds " + to_string(shape));
  }
  const std::vector<Index> needed = dense_strides(shape);
  bool is_dense = true;
  for (int axis = 0; given.strides != nullptr && axis < given.rank; ++axis) {
    is_dense = is_dense &&
               (shape[axis] <= 1 || given.strides[axis] == needed[static_cast<std::size_t>(axis)]);
  }
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0;
  if ((is_dense && aligned) || size == 0) {
    return Tensor<T>::borrowed(shape, std::shared_ptr<T[]>(owner, data), true);
  }
  return copy_strided(data, shape, {given.strides, static_cast<std::size_t>(given.rank)});
}

AnyTensor from_dlpack(PyObject* object, const Where& where) {
  const Ref capsule = Ref::owned(PyObject_CallMethod(object, "__dlpack__", nullptr));
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  if (managed == nullptr) {
    throw PythonError();
  }
  const DlTensor& given = managed->tensor;
  if (given.device.type != kDlMainMemory) {
    where.refuse(object, "a tensor in main memory", ".cpu()");
  }
  if (given.type.code != kDlFloat || given.type.lanes != 1 ||
      (given.type.bits != 32 && given.type.bits != 64)) {
    where.refuse(object, "float32 or float64", "convert it to float32");
  }
  // From here on the memory is ours to release.
  PyCapsule_SetName(capsule.get(), "used_dltensor");
  if (given.type.bits == 32) {
    return {ValueOf<float>(from_managed<float>(managed, where))};
  }
  return {ValueOf<double>(from_managed<double>(managed, where))};
}

/// Numbers without a type of their own.
std::optional<Tensor<double>> loose_numbers(PyObject* object, const Where& where) {
  if (PyFloat_Check(object)) {
    return Tensor<double>(Shape{}, PyFloat_AS_DOUBLE(object));
  }
  if (PyLong_Check(object) && !PyBool_Check(object)) {
    const double value = PyLong_AsDouble(object);
    if (value == -1 && PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    return Tensor<double>(Shape{}, value);
  }
  if (!PyList_Check(object) && !PyTuple_Check(object)) {
    return std::nullopt;
  }
  const auto array = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(object);
  if (!array) {
    PyErr_Clear();
    where.refuse(object, "a tensor, an array or numbers");
  }
  return borrowed<double>(array.ptr());
}

template <class T>
py::array array_over(const Shape& shape, const std::shared_ptr<T[]>& storage) {
  auto keeper = std::make_unique<std::shared_ptr<T[]>>(storage);
  const py::capsule owner(keeper.get(),
                          [](void* p) { delete static_cast<std::shared_ptr<T[]>*>(p); });
  (void)keeper.release();
  return py::array_t<T>(std::vector<py::ssize_t>(shape.begin(), shape.end()), storage.get(), owner);
}

}  // namespace

Ref Ref::owned(PyObject* object) {
  if (object == nullptr) {
    throw PythonError();
  }
  Ref result;
  result.object_ = object;
  return result;
}

void Where::refuse(PyObject* object, std::string_view needed, std::string_view fix) const {
  std::string got = Py_TYPE(object)->tp_name;
  if (is_array(object)) {
    got += " of " + dtype_name(object);
  }
  throw Error(std::string(function),
              {.code = ErrorCode::dtype_mismatch},
              text() + " is " + got + ", needed " + std::string(needed) +
                  (fix.empty() ? "" : "\n  fix: " + std::string(fix)));
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const Error& error) {
    PyObject* type = PyExc_ValueError;
    if (error.code() == ErrorCode::dtype_mismatch) {
      type = PyExc_TypeError;
    } else if (error.code() == ErrorCode::bad_file) {
      type = PyExc_OSError;
    }
    PyObject* exception = PyObject_CallFunction(type, "s", error.what());
    if (exception == nullptr) {
      return;
    }
    const std::string code(code_name(error.code()));
    PyObject* name = PyUnicode_FromStringAndSize(code.data(), static_cast<Py_ssize_t>(code.size()));
    if (name != nullptr) {
      PyObject_SetAttrString(exception, "code", name);
      Py_DECREF(name);
    }
    PyErr_SetObject(type, exception);
    Py_DECREF(exception);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "fenestra: an unknown exception");
  }
}

AnyTensor* tensor_of(PyObject* object) {
  if (Py_TYPE(object) == tensor_type()) {
    const auto* instance = reinterpret_cast<py::detail::instance*>(object);
    return static_cast<AnyTensor*>(instance->simple_value_holder[0]);
  }
  return nullptr;
}

Incoming incoming(PyObject* object, const Where& where) {
  if (const AnyTensor* tensor = tensor_of(object)) {
    return *tensor;
  }
  if (is_array(object)) {
    if (auto tensor = from_array(object)) {
      return std::move(*tensor);
    }
    where.refuse(object, "float32 or float64", ".astype('float32')");
  }
  if (auto numbers = loose_numbers(object, where)) {
    return std::move(*numbers);
  }
  static PyObject* const kDlpack = PyUnicode_InternFromString("__dlpack__");
  if (PyObject_HasAttr(object, kDlpack) != 0) {
    return from_dlpack(object, where);
  }
  static PyObject* const kArray = PyUnicode_InternFromString("__array__");
  if (PyObject_HasAttr(object, kArray) == 0 && PyObject_CheckBuffer(object) == 0) {
    where.refuse(object, "a tensor, an array or numbers");
  }
  const py::array array = py::array::ensure(object);
  if (!array) {
    throw PythonError();
  }
  auto tensor = from_array(array.ptr());
  // NumPy's scalars mix like Python's.
  if (array.ndim() == 0 &&
      std::string_view("fiu").find(array.dtype().kind()) != std::string::npos) {
    return Tensor<double>(Shape{}, py::float_(py::reinterpret_borrow<py::object>(object)));
  }
  if (!tensor) {
    where.refuse(array.ptr(), "float32 or float64", "convert it to float32");
  }
  return std::move(*tensor);
}

bool is_truth(PyObject* object) {
  // NumPy's own are no subclass of bool; their type was renamed in NumPy 2.
  const std::string_view type = Py_TYPE(object)->tp_name;
  return PyBool_Check(object) || type == "numpy.bool_" || type == "numpy.bool";
}

Incoming operand(PyObject* object, const Where& where) {
  if (is_array(object) && holds<bool>(object)) {
    const auto numbers =
        py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(object);
    if (!numbers) {
      throw PythonError();
    }
    return borrowed<double>(numbers.ptr());
  }
  if (tensor_of(object) == nullptr && is_truth(object)) {
    return Tensor<double>(Shape{}, PyObject_IsTrue(object));
  }
  return incoming(object, where);
}

AnyTensor to_tensor(PyObject* object, const Where& where) {
  Incoming given = incoming(object, where);
  if (auto* numbers = std::get_if<Tensor<double>>(&given)) {
    return {ValueOf<double>(std::move(*numbers))};
  }
  return std::get<AnyTensor>(std::move(given));
}

Tensor<Index> to_integers(PyObject* object, const Where& where) {
  const py::array array = py::array::ensure(object);
  if (!array) {
    PyErr_Clear();
    where.refuse(object, "integers");
  }
  const char kind = array.dtype().kind();
  if (kind != 'i' && kind != 'u') {
    where.refuse(array.ptr(), "integers", ".astype('int64')");
  }
  if (holds<Index>(array.ptr())) {
    return dense<Index>(array.ptr());
  }
  const auto copy = py::array_t<Index, py::array::c_style | py::array::forcecast>::ensure(array);
  if (!copy) {
    throw PythonError();
  }
  return borrowed<Index>(copy.ptr());
}

ErasedIndices to_indices(PyObject* object, const Where& where) {
  if (py::isinstance<ErasedIndices>(object)) {
    return py::cast<const ErasedIndices&>(py::handle(object));
  }
  return ErasedIndices(to_integers(object, where));
}

PyObject* to_python(AnyTensor tensor) { return py::cast(std::move(tensor)).release().ptr(); }

PyObject* to_python(Tensor<Index> integers) {
  const Shape shape = integers.shape();
  return array_over(shape, integers.lend()).release().ptr();
}

PyObject* to_python(ErasedIndices indices) {
  return indices.level() == 0 ? to_python(indices.plain().indices())
                              : py::cast(std::move(indices)).release().ptr();
}

PyObject* numpy_view(AnyTensor& tensor) {
  return std::visit(
      [](auto& value) {
        const Shape shape = value.shape();
        return array_over(shape, value.tensor().lend()).release().ptr();
      },
      tensor.value);
}

}  // namespace fenestra::python
