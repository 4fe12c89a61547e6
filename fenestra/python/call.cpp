// The arguments of compiled functions: taken apart into arrays and what a program depends on beside
// their numbers, and results put together again. In C++, since it happens in every call.
#include <fenestra/engine/variable.hpp>
#include <fenestra/python/call.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/network.hpp>
#include <fenestra/python/object.hpp>
#include <fenestra/python/value.hpp>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

/// Counts the nesting of trees as Python counts calls: a list that contains itself ends in its
/// RecursionError.
class Deeper {
 public:
  Deeper() {
    if (Py_EnterRecursiveCall(" in the arguments of a compiled function") != 0) {
      throw PythonError();
    }
  }
  ~Deeper() { Py_LeaveRecursiveCall(); }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

/// One call: a key that is equal for calls that one program serves, and the arrays in order.
class Signature {
 public:
  explicit Signature(bool strict) : strict_(strict) {
    text_.reserve(128);  // some tensors
    text_ += detail::no_grad_depth > 0 ? 'n' : 'g';
  }

  void add(PyObject* object) {
    if (object == Py_None) {
      text_ += 'N';
    } else if (const AnyTensor* tensor = tensor_of(object)) {
      is_tracked_ = is_tracked_ || tensor->level() != 0;
      add_array(tensor->is_double() ? 'd' : 'f', tensor->shape(), object);
    } else if (PyDict_Check(object)) {
      add_dict(object);
    } else if (PyTuple_Check(object) || PyList_Check(object)) {
      add_list(object);
    } else if (py::isinstance<py::array>(object)) {
      add_numpy(object);
    } else if (py::isinstance<Indices>(object)) {
      is_tracked_ = true;
    } else if (!add_number(object)) {
      add_other(object);
    }
  }

  bool is_tracked() const { return is_tracked_; }
  py::list& arguments() { return arguments_; }
  bool has_key(const py::handle& key) const {
    if (!constants_.empty() || PyBytes_CheckExact(key.ptr()) == 0) {
      return this->key().equal(key);
    }
    const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(key.ptr()));
    return text_ == std::string_view(PyBytes_AS_STRING(key.ptr()), size);
  }
  /// Bytes, with whatever needs Python's own comparison behind them.
  py::object key() const {
    py::object text = py::bytes(text_);
    if (constants_.empty()) {
      return text;
    }
    py::tuple constants(constants_.size());
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      constants[i] = constants_[i];
    }
    return py::make_tuple(std::move(text), std::move(constants));
  }

 private:
  template <class T>
  void add_bytes(const T& value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    text_.append(bytes, sizeof(T));
  }
  void add_array(char kind, const Shape& shape, py::handle object) {
    text_ += kind;
    add_bytes(shape.rank());
    for (const Index extent : shape) {
      add_bytes(extent);
    }
    arguments_.append(object);
  }
  /// `mark` where the type is the plain one, else the type as well.
  void add_kind(char mark, bool is_plain, PyObject* object, Py_ssize_t size) {
    text_ += mark;
    add_bytes(size);
    if (!is_plain) {
      text_ += '<';
      add_type(object);
    }
  }
  void add_text(PyObject* object) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(object, &size);
    if (bytes == nullptr) {
      PyErr_Clear();
      add_constant(object);
      return;
    }
    text_ += 's';
    add_bytes(size);
    text_.append(bytes, static_cast<std::size_t>(size));
  }
  void add_type(PyObject* object) { constants_.push_back(py::type::of(object)); }
  /// Its type too: 1, 1.0 and True are equal and mean different programs.
  void add_constant(py::handle object) {
    text_ += 'o';
    add_type(object.ptr());
    constants_.push_back(py::reinterpret_borrow<py::object>(object));
  }

  void add_dict(PyObject* object) {
    const Deeper deeper;
    add_kind('{', PyDict_CheckExact(object) != 0, object, PyDict_GET_SIZE(object));
    Py_ssize_t at = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(object, &at, &key, &value) != 0) {
      // Held: an argument's own methods may take it out of the dict.
      const py::object part = py::reinterpret_borrow<py::object>(value);
      if (PyUnicode_CheckExact(key)) {
        add_text(key);
      } else {
        add_constant(key);
      }
      add(part.ptr());
    }
  }
  void add_list(PyObject* object) {
    const Deeper deeper;
    const bool is_tuple = PyTuple_Check(object) != 0;
    add_kind(is_tuple ? '(' : '[',
             PyTuple_CheckExact(object) != 0 || PyList_CheckExact(object) != 0,
             object,
             PySequence_Fast_GET_SIZE(object));
    // The size again and again: an argument's own methods may run in between.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      const py::object part =
          py::reinterpret_borrow<py::object>(PySequence_Fast_GET_ITEM(object, i));
      add(part.ptr());
    }
  }
  void add_numpy(PyObject* object) {
    const auto array = py::reinterpret_borrow<py::array>(object);
    const char kind = array.dtype().kind();
    const bool is_float = kind == 'f' && (array.itemsize() == 4 || array.itemsize() == 8);
    if (array.ndim() > kMaxRank || !(is_float || kind == 'i' || kind == 'u')) {
      // The trace says what is wrong with it.
      text_ += 'x';
      arguments_.append(array);
      return;
    }
    Shape shape;
    for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) {
      shape.push_back(array.shape(axis));
    }
    add_array(!is_float ? 'i' : array.itemsize() == 4 ? 'f' : 'd', shape, array);
  }
  bool add_number(PyObject* object) {
    if (PyFloat_CheckExact(object)) {
      // Bits: zeros have signs, and no NaN equals itself.
      text_ += 'r';
      add_bytes(PyFloat_AS_DOUBLE(object));
      return true;
    }
    if (PyBool_Check(object)) {
      text_ += object == Py_True ? '1' : '0';
      return true;
    }
    if (PyUnicode_CheckExact(object)) {
      add_text(object);
      return true;
    }
    if (PyLong_CheckExact(object)) {
      int overflow = 0;
      const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
      if (overflow == 0) {
        text_ += 'l';
        add_bytes(value);
        return true;
      }
      add_constant(object);
      return true;
    }
    return false;
  }
  void add_other(PyObject* object) {
    const py::handle handle(object);
    static const py::handle numpy = py::module_::import("numpy").release();
    static const py::handle generic = numpy.attr("generic").cast<py::object>().release();
    if (py::isinstance(handle, generic)) {
      text_ += 'g';
      add_type(object);
      constants_.push_back(handle.attr("tobytes")());
      return;
    }
    // The tensors of other libraries.
    for (const auto& [offer, take] :
         {std::pair{"__array__", "asarray"}, {"__dlpack__", "from_dlpack"}}) {
      if (py::hasattr(handle, offer)) {
        const py::object array = numpy.attr(take)(handle);
        add_numpy(array.ptr());
        return;
      }
    }
    if (add_network(handle)) {
      return;
    }
    if (PySlice_Check(object)) {
      text_ += ':';
      for (const char* const part : {"start", "stop", "step"}) {
        add(handle.attr(part).cast<py::object>().ptr());
      }
      return;
    }
    if (strict_) {
      require_constant(object);
    }
    add_constant(handle);
  }
  /// A layer of fenestra.nn: its structure, and its numbers as arrays, buffers too.
  bool add_network(const py::handle& object) {
    if (!py::hasattr(object, "_layer")) {
      return false;
    }
    const py::object held = object.attr("_layer");
    if (!py::isinstance<AnyLayer>(held) || !is_initialised(held.ptr())) {
      return false;
    }
    const auto& network = held.cast<const AnyLayer&>();
    text_ += network.is_double() ? 'D' : 'F';
    add_bytes(network.structure().size());
    text_ += network.structure();
    network.read_slots([&]<class T>(const auto&, const std::vector<nn::Slot<T>>& slots) {
      for (const nn::Slot<T>& slot : slots) {
        const py::object value = stolen(to_python(Value<T>(*slot.value)));
        add(value.ptr());
      }
    });
    return true;
  }
  /// Objects that are equal only to themselves may change, and the program would not.
  static void require_constant(PyObject* object) {
    const PyTypeObject* type = Py_TYPE(object);
    if (PyType_Check(object) || PyFunction_Check(object) || PyCFunction_Check(object) ||
        PyModule_Check(object) || object == Py_Ellipsis ||
        (type->tp_hash != PyBaseObject_Type.tp_hash && type->tp_hash != nullptr &&
         type->tp_hash != &PyObject_HashNotImplemented)) {
      return;
    }
    throw Error(ErrorCode::dtype_mismatch,
                "compile: an argument is " + std::string(type->tp_name) +
                    ", which may change without its program\n  fix: pass the arrays in it (lists, "
                    "tuples and dicts are taken apart), or let the function take it from around "
                    "it");
  }

  bool strict_;
  bool is_tracked_ = false;
  std::string text_;
  std::vector<py::object> constants_;
  py::list arguments_;
};

void add_call(Signature& signature, const py::tuple& args, const py::dict& keywords) {
  signature.add(args.ptr());
  if (!keywords.empty()) {
    signature.add(keywords.ptr());
  }
}

/// (key, arrays), or None where an argument belongs to a transform or a tape.
py::object call_signature(const py::tuple& args, const py::dict& keywords, bool strict) {
  Signature signature(strict);
  add_call(signature, args, keywords);
  if (signature.is_tracked()) {
    return py::none();
  }
  return py::make_tuple(signature.key(), signature.arguments());
}

}  // namespace

std::optional<py::list> arguments_of(const py::tuple& args,
                                     const py::dict& keywords,
                                     const py::handle& key) {
  Signature signature(false);
  add_call(signature, args, keywords);
  if (signature.is_tracked() || !signature.has_key(key)) {
    return std::nullopt;
  }
  return std::move(signature.arguments());
}

py::object put_together(const py::handle& like, const py::list& values) {
  const Deeper deeper;
  PyObject* const tree = like.ptr();
  if (PyLong_CheckExact(tree)) {
    return values[static_cast<std::size_t>(PyLong_AsSsize_t(tree))];
  }
  if (PyDict_Check(tree)) {
    py::dict parts;
    for (const auto& [key, part] : py::reinterpret_borrow<py::dict>(like)) {
      parts[key] = put_together(part, values);
    }
    return PyDict_CheckExact(tree) ? std::move(parts) : py::type::of(like)(parts.attr("items")());
  }
  if (PyTuple_Check(tree) || PyList_Check(tree)) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(tree);
    py::tuple parts(size);
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyTuple_SET_ITEM(
          parts.ptr(), i, put_together(PySequence_Fast_GET_ITEM(tree, i), values).release().ptr());
    }
    if (PyTuple_CheckExact(tree)) {
      return parts;
    }
    if (PyList_CheckExact(tree)) {
      return stolen(PySequence_List(parts.ptr()));
    }
    const py::type type = py::type::of(like);
    return py::hasattr(like, "_fields") ? type(*parts) : type(parts);
  }
  return py::none();
}

void define_call(py::module_& module) {
  module.def(
      "_call_signature", &call_signature, py::arg("args"), py::arg("keywords"), py::arg("strict"));
}

}  // namespace fenestra::python
