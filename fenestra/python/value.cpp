// Tensors from and to Python: see value.hpp.
#include <fenestra/base/checked.hpp>
#include <fenestra/python/dlpack.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/object.hpp>
#include <fenestra/python/value.hpp>
#include <fenestra/tensor/transform.hpp>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>

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

/// An array of T that NumPy makes of any object, aligned too; its own error where it cannot.
template <class T>
auto converted(PyObject* object) {
  constexpr int kWanted = py::array::c_style | py::array::forcecast |
                          static_cast<int>(py::detail::npy_api::NPY_ARRAY_ALIGNED_);
  return py::array_t<T, kWanted>(py::reinterpret_borrow<py::object>(object));
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
  return borrowed<T>(converted<T>(array).ptr());
}

bool is_array(PyObject* object) { return py::isinstance<py::array>(object); }

std::string dtype_name(PyObject* array) {
  return utf8(py::str(py::handle(array).attr("dtype")).ptr());
}

std::optional<AnyTensor> from_array(PyObject* array) {
  if (holds<float>(array)) {
    return AnyTensor{Value<float>(dense<float>(array))};
  }
  if (holds<double>(array)) {
    return AnyTensor{Value<double>(dense<double>(array))};
  }
  return std::nullopt;
}

/// A tensor of another library, looked over before anything of it is believed.
struct Offered {
  const DlTensor* given;
  Shape shape;
  Index size = 0;
  std::vector<Index> strides;  ///< in elements

  Offered(const DlTensor& tensor, PyObject* object, const Where& where) : given(&tensor) {
    if (tensor.device.type != kDlMainMemory) {
      where.refuse(object, "a tensor in main memory", ".cpu()");
    }
    if (tensor.type.code != kDlFloat || tensor.type.lanes != 1 ||
        (tensor.type.bits != 32 && tensor.type.bits != 64)) {
      where.refuse(object, "float32 or float64", "convert it to float32");
    }
    const auto require = [&](bool is_so, const std::string& found) {
      if (!is_so) {
        throw Error(std::string(where.function),
                    {.code = ErrorCode::shape_mismatch},
                    where.text() + ": __dlpack__ of " + Py_TYPE(object)->tp_name + " gives " +
                        found + "\n  fix: hand over a NumPy array of it");
      }
    };
    require(tensor.rank >= 0 && tensor.rank <= kMaxRank,
            std::to_string(tensor.rank) + " axes, needed 0 to " + std::to_string(kMaxRank));
    require(tensor.rank == 0 || tensor.shape != nullptr, "axes without extents");
    for (int axis = 0; axis < tensor.rank; ++axis) {
      shape.push_back(tensor.shape[axis]);
    }
    const auto elements = shape.elements();
    require(elements.has_value(), "the shape " + to_string(shape) + ", which no memory holds");
    size = *elements;
    require(size == 0 || tensor.data != nullptr, to_string(shape) + " without memory");
    strides = dense_strides(shape);
    Checked reach = 0;
    for (int axis = 0; tensor.strides != nullptr && axis < tensor.rank; ++axis) {
      strides[static_cast<std::size_t>(axis)] = tensor.strides[axis];
      reach = reach + Checked(std::max<Index>(shape[axis] - 1, 0)) * tensor.strides[axis] *
                          Index{tensor.type.bits / 8};
      require(reach.ok(), "strides that leave the memory");
    }
  }

  bool is_dense() const {
    const std::vector<Index> needed = dense_strides(shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (shape[axis] > 1 && strides[a] != needed[a]) {
        return false;
      }
    }
    return true;
  }

  template <class T>
  Tensor<T> tensor(const std::shared_ptr<DlManagedTensor>& owner) const {
    if (size == 0) {
      return Tensor<T>(shape);
    }
    char* data = static_cast<char*>(given->data) + given->byte_offset;
    if (is_dense() && reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0) {
      return Tensor<T>::borrowed(
          shape, std::shared_ptr<T[]>(owner, reinterpret_cast<T*>(data)), true);
    }
    return copied<T>(data);
  }

  /// By bytes: what is not aligned cannot be read as a T.
  template <class T>
  Tensor<T> copied(const char* data) const {
    Tensor<T> result = Tensor<T>::uninitialised(shape);
    T* out = result.mutable_data();
    Index position[kMaxRank] = {};
    Index offset = 0;
    for (Index i = 0; i < size; ++i) {
      std::memcpy(out + i, data + offset, sizeof(T));
      for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        const Index step = strides[static_cast<std::size_t>(axis)] * Index{sizeof(T)};
        if (++position[axis] < shape[axis]) {
          offset += step;
          break;
        }
        offset -= step * (shape[axis] - 1);
        position[axis] = 0;
      }
    }
    return result;
  }
};

AnyTensor from_dlpack(PyObject* object, const Where& where) {
  const Ref capsule = Ref::owned(PyObject_CallMethod(object, "__dlpack__", nullptr));
  if (PyCapsule_IsValid(capsule.get(), "dltensor") == 0) {
    const bool used = PyCapsule_IsValid(capsule.get(), "used_dltensor") != 0;
    throw Error(std::string(where.function),
                {.code = ErrorCode::dtype_mismatch},
                where.text() + ": __dlpack__ of " + Py_TYPE(object)->tp_name + " gives " +
                    (used ? "a capsule that was used already" : "no capsule named dltensor") +
                    "\n  fix: a new capsule for each call");
  }
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  const Offered offered(managed->tensor, object, where);
  // From here on the memory is ours to release: once nobody reads it, by its own deleter.
  PyCapsule_SetName(capsule.get(), "used_dltensor");
  const std::shared_ptr<DlManagedTensor> owner(managed, [](DlManagedTensor* done) {
    if (Py_IsInitialized() == 0 || done->deleter == nullptr) {
      return;
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    done->deleter(done);
    PyGILState_Release(state);
  });
  if (managed->tensor.type.bits == 32) {
    return {Value<float>(offered.tensor<float>(owner))};
  }
  return {Value<double>(offered.tensor<double>(owner))};
}

/// What NumPy makes of an object; what it cannot is refused, and an error of the caller's own comes
/// through.
py::array any_array(PyObject* object, const Where& where, std::string_view needed) {
  PyObject* const array =
      py::detail::npy_api::get().PyArray_FromAny_(object, nullptr, 0, 0, 0, nullptr);
  if (array == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0 &&
        PyErr_ExceptionMatches(PyExc_ValueError) == 0) {
      throw PythonError();
    }
    PyErr_Clear();
    where.refuse(object, needed);
  }
  return py::reinterpret_steal<py::array>(array);
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
  // Without a type first: told to make doubles, NumPy would read texts and take None for a NaN.
  const py::array array = any_array(object, where, "a tensor, an array or numbers");
  if (array.size() > 0 && std::string_view("fiu").find(array.dtype().kind()) == std::string::npos) {
    where.refuse(object, "a tensor, an array or numbers", "floats in lists of equal lengths");
  }
  return borrowed<double>(converted<double>(array.ptr()).ptr());
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

void Where::refuse_number(PyObject* number, std::string_view what) const {
  // Python itself refuses to write integers of thousands of digits.
  PyObject* const written = PyObject_Str(number);
  std::string digits = "the number";
  if (written != nullptr) {
    digits = utf8(Ref::owned(written).get());
  }
  PyErr_Clear();
  constexpr std::size_t kMost = 40;
  if (digits.size() > kMost) {
    digits = digits.substr(0, kMost / 2) + "...";
  }
  throw Error(
      std::string(function),
      {.code = ErrorCode::overflow},
      text() + " = " + digits + " does not " + std::string(what) + "\n  fix: a smaller number");
}

std::string utf8(PyObject* text) {
  const Ref bytes = Ref::owned(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  return {PyBytes_AS_STRING(bytes.get()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.get()))};
}

namespace {

/// A str of any bytes, or null with Python's error set.
PyObject* decoded(std::string_view text) noexcept {
  return PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
}

/// An error of the library, with its code.
void set_library_error(const Error& error) noexcept {
  PyObject* type = PyExc_ValueError;
  if (error.code() == ErrorCode::dtype_mismatch) {
    type = PyExc_TypeError;
  } else if (error.code() == ErrorCode::bad_file) {
    type = PyExc_OSError;
  }
  std::string words;
  try {
    words = error.text(Language::python);
  } catch (const std::bad_alloc&) {
    words.clear();  // Those of C++ are there already.
  }
  PyObject* const text = decoded(words.empty() ? std::string_view(error.what()) : words);
  PyObject* const exception =
      text != nullptr ? PyObject_CallFunctionObjArgs(type, text, nullptr) : nullptr;
  PyObject* const code = decoded(code_name(error.code()));
  if (exception != nullptr && code != nullptr) {
    PyObject_SetAttrString(exception, "code", code);
    PyErr_SetObject(type, exception);
  }
  Py_XDECREF(text);
  Py_XDECREF(exception);
  Py_XDECREF(code);
}

/// Without an allocation of ours, for there may be no more.
void set_memory_error(std::string_view function, const char* what) noexcept {
  // What the language's own exceptions say is a name of theirs.
  const bool says_more = what != nullptr && std::strncmp(what, "std::", 5) != 0;
  char text[320];
  std::snprintf(text,
                sizeof text,
                "%.*s%s%.200s\n  fix: smaller tensors, or fewer of them at once",
                static_cast<int>(std::min<std::size_t>(function.size(), 64)),
                function.data(),
                function.empty() ? "" : ": ",
                says_more ? what : "not enough memory");
  set_text(PyExc_MemoryError, text);
}

}  // namespace

void set_text(PyObject* type, std::string_view text) noexcept {
  PyObject* const decoded_text = decoded(text);
  if (decoded_text != nullptr) {
    PyErr_SetObject(type, decoded_text);
    Py_DECREF(decoded_text);
  }
}

void complete_python_error(std::string_view function) noexcept {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const bool no_memory =
      type != nullptr && PyErr_GivenExceptionMatches(type, PyExc_MemoryError) != 0;
  PyObject* const text = no_memory && value != nullptr ? PyObject_Str(value) : nullptr;
  PyErr_Clear();
  if (no_memory && (text == nullptr || PyUnicode_GetLength(text) == 0)) {
    Py_XDECREF(value);
    Py_XDECREF(trace);
    Py_DECREF(type);
    set_memory_error(function, nullptr);
  } else {
    PyErr_Restore(type, value, trace);
  }
  Py_XDECREF(text);
}

void set_python_error(std::string_view function) noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_RuntimeError, "fenestra: an error was announced and none was set");
    }
    complete_python_error(function);
  } catch (py::error_already_set& error) {
    error.restore();
    complete_python_error(function);
  } catch (const Error& error) {
    set_library_error(error);
  } catch (const std::bad_alloc& error) {
    set_memory_error(function, error.what());
  } catch (const std::length_error&) {
    // A container of the library was asked to be larger than memory.
    set_memory_error(function, nullptr);
  } catch (const std::exception& error) {
    set_text(PyExc_RuntimeError, error.what());
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
  const py::array array = any_array(object, where, "a tensor, an array or numbers");
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

bool is_truth_array(PyObject* object) { return is_array(object) && holds<bool>(object); }

Incoming incoming_mask(PyObject* object, const Where& where) {
  if (tensor_of(object) != nullptr) {
    return incoming(object, where);
  }
  if (is_truth(object)) {
    return Tensor<double>(Shape{}, PyObject_IsTrue(object) == 1 ? 1.0 : 0.0);
  }
  py::object array = py::reinterpret_borrow<py::object>(object);
  if (PyList_Check(object) || PyTuple_Check(object)) {
    array = any_array(object, where, "truth values or numbers");
  }
  if (!is_truth_array(array.ptr())) {
    return incoming(object, where);
  }
  // Numbers without a type of their own: they take that of the tensors beside them.
  const Ref numbers = Ref::owned(PyObject_CallMethod(array.ptr(), "astype", "s", "float64"));
  Incoming given = incoming(numbers.get(), where);
  return std::get<Value<double>>(std::get<AnyTensor>(given).value).tensor();
}

AnyTensor to_tensor(PyObject* object, const Where& where) {
  Incoming given = incoming(object, where);
  if (auto* numbers = std::get_if<Tensor<double>>(&given)) {
    return {Value<double>(std::move(*numbers))};
  }
  return std::get<AnyTensor>(std::move(given));
}

Tensor<Index> to_integers(PyObject* object, const Where& where) {
  const py::array array = any_array(object, where, "integers");
  const char kind = array.dtype().kind();
  if (kind != 'i' && kind != 'u') {
    where.refuse(is_array(object) ? array.ptr() : object, "integers", ".astype('int64')");
  }
  if (holds<Index>(array.ptr())) {
    return dense<Index>(array.ptr());
  }
  Tensor<Index> integers = borrowed<Index>(converted<Index>(array.ptr()).ptr());
  // Numbers from 2^63 on come out as negative ones.
  if (kind == 'u' && array.itemsize() == sizeof(Index) &&
      std::any_of(
          integers.values().begin(), integers.values().end(), [](Index i) { return i < 0; })) {
    throw Error(std::string(where.function),
                {.code = ErrorCode::overflow},
                where.text() + " has numbers that do not fit 63 bits\n  fix: smaller numbers");
  }
  return integers;
}

Indices to_indices(PyObject* object, const Where& where) {
  if (py::isinstance<Indices>(object) && is_initialised(object)) {
    return py::cast<const Indices&>(py::handle(object));
  }
  return Indices(to_integers(object, where));
}

PyObject* to_python(AnyTensor tensor) { return py::cast(std::move(tensor)).release().ptr(); }

PyObject* to_python(Tensor<Index> integers) {
  const Shape shape = integers.shape();
  return array_over(shape, integers.lend()).release().ptr();
}

PyObject* to_python(Indices indices) {
  return indices.level() == 0 ? to_python(indices.plain().indices())
                              : py::cast(std::move(indices)).release().ptr();
}

PyObject* numpy_view(AnyTensor& tensor) {
  return std::visit(
      [](auto& value) {
        const Shape shape = value.shape();
        return array_over(shape, value.plain().lend()).release().ptr();
      },
      tensor.value);
}

}  // namespace fenestra::python
