// The extension module fenestra._core: class Tensor, the functions of all operators, and what
// transforms are made of. The package around it is in python/fenestra.
#include <fenestra/base/version.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/python/function.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/object.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>

namespace fenestra::python {

namespace py = pybind11;

namespace {

const Function& find(Declarer& declarer, std::string_view name) {
  const auto& list = declarer.functions();
  const auto found = std::find_if(
      list.begin(), list.end(), [&](const auto& function) { return function->name() == name; });
  assert(found != list.end());
  return **found;
}

py::object call(const Function& function, const py::object& a, const py::object& b) {
  PyObject* const args[] = {a.ptr(), b.ptr()};
  return stolen(function.call(args, b ? 2 : 1, nullptr));
}

/// What comparisons give, as zeros and ones of the tensor's type; anything else as it is. For
/// x * (x > 0) and the like: functions take no truth values.
py::object beside(const py::object& tensor, const py::object& other) {
  if (tensor_of(other.ptr()) == nullptr && is_truth(other.ptr())) {
    return py::float_(PyObject_IsTrue(other.ptr()) == 1 ? 1.0 : 0.0);
  }
  return is_truth_array(other.ptr()) ? other.attr("astype")(tensor.attr("dtype")) : other;
}

/// Python's operators are the functions of the same meaning.
void define_operators(py::object tensor, Declarer& declarer) {
  const auto define = [&](const char* name, const auto& f) {
    tensor.attr(name) = py::cpp_function(f, py::name(name), py::is_method(tensor));
  };
  for (const auto& [operation, name] : {std::pair{"add", "add"},
                                        {"sub", "sub"},
                                        {"mul", "mul"},
                                        {"truediv", "div"},
                                        {"mod", "mod"},
                                        {"floordiv", "floor_divide"},
                                        {"matmul", "matmul"}}) {
    const Function& function = find(declarer, name);
    define(("__" + std::string(operation) + "__").c_str(),
           [&function](const py::object& a, const py::object& b) {
             return call(function, a, beside(a, b));
           });
    define(("__r" + std::string(operation) + "__").c_str(),
           [&function](const py::object& a, const py::object& b) {
             return call(function, beside(a, b), a);
           });
  }
  const Function& pow = find(declarer, "pow");
  const Function& power = find(declarer, "power");
  define("__pow__", [&](const py::object& a, const py::object& other) {
    const py::object b = beside(a, other);
    const bool constant = PyFloat_Check(b.ptr()) || PyLong_Check(b.ptr());
    return call(constant ? power : pow, a, b);
  });
  define("__rpow__",
         [&](const py::object& a, const py::object& b) { return call(pow, beside(a, b), a); });
  const Function& neg = find(declarer, "neg");
  const Function& abs = find(declarer, "abs");
  define("__neg__", [&](const py::object& a) { return call(neg, a, {}); });
  define("__pos__", [](const py::object& a) { return a; });
  define("__abs__", [&](const py::object& a) { return call(abs, a, {}); });
}

void define_files(py::module_& module) {
  module.def(
      "load_npy",
      [](const std::filesystem::path& path, const py::object& dtype) {
        const std::string name = utf8(py::str(numpy_dtype_of(dtype, "load_npy")).ptr());
        if (name == "float32") {
          const WithoutGil released;
          return AnyTensor{Value<float>(io::load_npy<float>(path))};
        }
        if (name != "float64") {
          throw Error(ErrorCode::dtype_mismatch,
                      "load_npy: dtype = " + name + "\n  fix: float32 or float64");
        }
        const WithoutGil released;
        return AnyTensor{Value<double>(io::load_npy<double>(path))};
      },
      py::arg("path"),
      py::arg("dtype") = "float64",
      "A tensor from a .npy file, a regular one; numbers that the type cannot hold are refused.\n\n"
      "Arguments:\n"
      "    path: the name of the file.\n"
      "    dtype: 'float32' or 'float64', what the tensor is to hold.\n\n"
      ">>> import os, tempfile\n"
      ">>> path = os.path.join(tempfile.mkdtemp(), 'x.npy')\n"
      ">>> np.save(path, np.arange(3))\n"
      ">>> fn.load_npy(path)\n"
      "Tensor([0., 1., 2.], dtype=float64)");
  module.def(
      "save_npy",
      [](const std::filesystem::path& path, const py::object& tensor) {
        const AnyTensor value = to_tensor(tensor.ptr(), {"save_npy", "tensor"});
        if (value.level() != 0) {
          throw Error(ErrorCode::dtype_mismatch,
                      "save_npy: the tensor is being differentiated\n  fix: .detach()");
        }
        const WithoutGil released;
        std::visit([&](const auto& v) { io::save_npy(path, v.tensor()); }, value.value);
      },
      py::arg("path"),
      py::arg("tensor"),
      "Writes a tensor as a .npy file, whole or not at all: an existing regular file is replaced "
      "and its\npermissions are kept; links and devices are refused.\n\n"
      "Arguments:\n"
      "    path: the name of the file.\n"
      "    tensor: a tensor or an array.\n\n"
      ">>> import os, tempfile\n"
      ">>> path = os.path.join(tempfile.mkdtemp(), 'x.npy')\n"
      ">>> fn.save_npy(path, fn.ones(2))\n"
      ">>> np.load(path)\n"
      "array([1., 1.])");
}

// --- What pybind11 does not catch ------------------------------

PyCFunctionWithKeywords unguarded = nullptr;

/// pybind11 lets an exception escape into the interpreter, which is the end of the process, where
/// it cannot spell a keyword or an argument in its own message.
template <bool kInitialises>
PyObject* guarded(PyObject* self, PyObject* args, PyObject* keywords) {
  try {
    if (!kInitialises && PyTuple_GET_SIZE(args) > 0 && !is_initialised(PyTuple_GET_ITEM(args, 0))) {
      set_text(PyExc_TypeError, "the object was never initialised\n  fix: call its class");
      return nullptr;
    }
    Py_ssize_t at = 0;
    PyObject* key = nullptr;
    while (keywords != nullptr && PyDict_Next(keywords, &at, &key, nullptr) != 0) {
      if (PyUnicode_AsUTF8AndSize(key, nullptr) == nullptr) {
        PyErr_Clear();
        set_text(PyExc_TypeError, "there is no argument " + utf8(key));
        return nullptr;
      }
    }
    PyObject* const result = unguarded(self, args, keywords);
    if (result == nullptr) {
      complete_python_error();
    }
    return result;
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

/// Puts `guarded` before every function of pybind11 in a module or class.
void guard(const py::dict& members) {
  for (const auto& [name, member] : members) {
    py::object held = py::reinterpret_borrow<py::object>(member);
    if (py::isinstance(held, reinterpret_cast<PyObject*>(&PyProperty_Type))) {
      held = held.attr("fget");
    }
    PyObject* object = held.ptr();
    if (PyType_Check(object) && py::hasattr(member, "__module__") &&
        py::str(member.attr("__module__")).equal(py::str("fenestra._core"))) {
      guard(py::dict(member.attr("__dict__")));
    }
    if (PyInstanceMethod_Check(object)) {
      object = PyInstanceMethod_GET_FUNCTION(object);
    }
    if (!PyCFunction_Check(object) ||
        PyCFunction_GET_FLAGS(object) != (METH_VARARGS | METH_KEYWORDS)) {
      continue;
    }
    PyMethodDef* const method = reinterpret_cast<PyCFunctionObject*>(object)->m_ml;
    // All of them share one entry, which finds the function by its first argument.
    const auto entry =
        reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(method->ml_meth));
    if (entry == &guarded<false> || entry == &guarded<true>) {
      continue;
    }
    unguarded = entry;
    const auto own =
        std::string_view(method->ml_name) == "__init__" ? &guarded<true> : &guarded<false>;
    method->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(own));
  }
}

}  // namespace

}  // namespace fenestra::python

PYBIND11_MODULE(_core, module) {
  using namespace fenestra::python;
  namespace py = pybind11;
  py::register_exception_translator([](std::exception_ptr pointer) {
    // What pybind11 throws itself it also translates.
    try {
      if (pointer) {
        std::rethrow_exception(pointer);
      }
    } catch (const fenestra::Error&) {
      set_python_error();
    } catch (const PythonError&) {
      set_python_error();
    } catch (const std::bad_alloc&) {
      set_python_error();
    } catch (const std::length_error&) {
      set_python_error();
    }
  });
  module.doc() = "The compiled part of fenestra; import fenestra instead.";
  module.attr("__version__") = fenestra::version;
  static Gil gil;
  fenestra::set_host_lock(&gil);
  define_tensor(module);
  define_transforms(module);
  define_compile(module);
  define_call(module);
  define_networks(module);
  define_onnx(module);
  define_datasets(module);
  define_training(module);
  define_trainer(module);
  define_files(module);

  // Lives as long as the process: Python keeps pointers into it.
  static auto* const declarer = new Declarer;
  declare_operators(*declarer);
  const py::object module_name = py::str("fenestra");
  py::dict stubs;
  for (const auto& function : declarer->functions()) {
    const py::str name(function->name());
    module.attr(name) = py::reinterpret_steal<py::object>(function->object(module_name.ptr()));
    stubs[name] = function->stub();
  }
  module.attr("_stubs") = stubs;
  define_operators(module.attr("Tensor"), *declarer);
  guard(module.attr("__dict__"));
}
