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

/// Python's operators are the functions of the same meaning.
void define_operators(py::object tensor, Declarer& declarer) {
  const auto define = [&](const char* name, const auto& f) {
    tensor.attr(name) = py::cpp_function(f, py::name(name), py::is_method(tensor));
  };
  for (const auto& [operation, name] : {std::pair{"add", "add"},
                                        {"sub", "sub"},
                                        {"mul", "mul"},
                                        {"truediv", "div"},
                                        {"matmul", "matmul"}}) {
    const Function& function = find(declarer, name);
    define(("__" + std::string(operation) + "__").c_str(),
           [&function](const py::object& a, const py::object& b) { return call(function, a, b); });
    define(("__r" + std::string(operation) + "__").c_str(),
           [&function](const py::object& a, const py::object& b) { return call(function, b, a); });
  }
  const Function& pow = find(declarer, "pow");
  const Function& power = find(declarer, "power");
  define("__pow__", [&](const py::object& a, const py::object& b) {
    const bool constant = PyFloat_Check(b.ptr()) || PyLong_Check(b.ptr());
    return call(constant ? power : pow, a, b);
  });
  define("__rpow__", [&](const py::object& a, const py::object& b) { return call(pow, b, a); });
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
        const std::string name = py::str(py::module_::import("numpy").attr("dtype")(dtype));
        if (name == "float32") {
          return AnyTensor{ValueOf<float>(io::load_npy<float>(path))};
        }
        if (name != "float64") {
          throw Error(ErrorCode::dtype_mismatch,
                      "load_npy: dtype = " + name + "\n  fix: float32 or float64");
        }
        return AnyTensor{ValueOf<double>(io::load_npy<double>(path))};
      },
      py::arg("path"),
      py::arg("dtype") = "float64",
      "A tensor from a .npy file; numbers that the type cannot hold are refused.");
  module.def(
      "save_npy",
      [](const std::filesystem::path& path, const py::object& tensor) {
        const AnyTensor value = to_tensor(tensor.ptr(), {"save_npy", "tensor"});
        if (value.level() != 0) {
          throw Error(ErrorCode::dtype_mismatch,
                      "save_npy: the tensor is being differentiated\n  fix: .detach()");
        }
        std::visit([&](const auto& v) { io::save_npy(path, v.tensor()); }, value.value);
      },
      py::arg("path"),
      py::arg("tensor"),
      "Writes a tensor as a .npy file: to a temporary name, then renamed.");
}

}  // namespace

}  // namespace fenestra::python

PYBIND11_MODULE(_core, module) {
  using namespace fenestra::python;
  namespace py = pybind11;
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) {
        std::rethrow_exception(pointer);
      }
    } catch (const fenestra::Error&) {
      set_python_error();
    } catch (const PythonError&) {
    }
  });
  module.doc() = "The compiled part of fenestra; import fenestra instead.";
  module.attr("__version__") = fenestra::version;
  define_tensor(module);
  define_transforms(module);
  define_compile(module);
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
}
