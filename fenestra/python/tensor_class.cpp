// Python's class Tensor: what a NumPy user expects of an array, on every level.
#include <fenestra/ops/reduce/select.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/python/convert.hpp>
#include <fenestra/python/dlpack.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/object.hpp>
#include <fenestra/python/value.hpp>
#include <fenestra/tensor/transform.hpp>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

PyTypeObject* the_tensor_type = nullptr;

/// Throws while the numbers are not known.
void require_numbers(const AnyTensor& tensor, std::string_view what) {
  if (!std::visit([](const auto& value) { return has_elements(value); }, tensor.value)) {
    throw Error(
        ErrorCode::dtype_mismatch,
        std::string(what) +
            ": the numbers of the tensor are not known while a function is compiled\n  fix: "
            "decide by shapes, or do it outside compile");
  }
}

/// False while a function is compiled, and below a batch, where one tensor stands for many.
bool is_visible(const AnyTensor& tensor) {
  return std::visit(
      [](const auto& value) { return has_elements(value) && detached(value).level() == 0; },
      tensor.value);
}

/// Throws where there is no single value to look at: below a batch there are many.
void require_visible(const AnyTensor& tensor, std::string_view what) {
  require_numbers(tensor, what);
  std::visit(
      [&]<class E>(const E& value) {
        const E plain = detached(value);
        if (plain.level() != 0) {
          throw Error(ErrorCode::dtype_mismatch,
                      std::string(what) +
                          ": the tensor stands for all samples at once\n  fix: do it outside vmap "
                          "and per_sample_grad");
        }
      },
      tensor.value);
}

/// The numbers, whatever the level; a copy where it is not a plain tensor.
py::object visible_array(const AnyTensor& tensor, std::string_view what) {
  require_visible(tensor, what);
  return std::visit(
      [](const auto& value) {
        AnyTensor plain{detached(value)};
        return stolen(numpy_view(plain));
      },
      tensor.value);
}

void require_plain(const AnyTensor& tensor, std::string_view what) {
  require_numbers(tensor, what);
  if (tensor.level() != 0) {
    throw Error(ErrorCode::dtype_mismatch,
                std::string(what) +
                    ": the tensor is being differentiated or stands for many samples\n  fix: "
                    ".detach() first, or do it outside the transform");
  }
}

// --- Indexing ------------------------------

bool is_basic(py::handle key) {
  return PySlice_Check(key.ptr()) || key.is(py::ellipsis()) || key.is_none() ||
         (PyIndex_Check(key.ptr()) && !is_truth(key.ptr()) && !py::isinstance<py::array>(key));
}

/// What int, slice, Ellipsis and None cut out of a shape.
struct BasicIndex {
  std::vector<AxisRange> ranges;
  Shape shape;
};

BasicIndex basic_index(const Shape& x, const py::tuple& key) {
  int named = 0;
  bool has_ellipsis = false;
  for (const py::handle part : key) {
    if (part.is(py::ellipsis())) {
      if (has_ellipsis) {
        throw py::index_error("index: more than one Ellipsis");
      }
      has_ellipsis = true;
    } else if (!part.is_none()) {
      ++named;
    }
  }
  if (named > x.rank()) {
    throw py::index_error("index: " + std::to_string(named) + " indices for the shape " +
                          to_string(x));
  }
  BasicIndex result;
  int axis = 0;
  const auto keep = [&](int count) {
    for (int i = 0; i < count; ++i) {
      result.shape.push_back(x[axis++]);
    }
  };
  for (const py::handle part : key) {
    if (part.is_none()) {
      result.shape.push_back(1);
    } else if (part.is(py::ellipsis())) {
      keep(x.rank() - named);
    } else if (PySlice_Check(part.ptr())) {
      Py_ssize_t begin = 0;
      Py_ssize_t end = 0;
      Py_ssize_t step = 0;
      if (PySlice_Unpack(part.ptr(), &begin, &end, &step) != 0) {
        throw PythonError();
      }
      const Py_ssize_t count = PySlice_AdjustIndices(x[axis], &begin, &end, step);
      result.ranges.push_back({axis, count == 0 ? 0 : begin, count, step});
      result.shape.push_back(count);
      ++axis;
    } else {
      const Py_ssize_t given = PyNumber_AsSsize_t(part.ptr(), PyExc_IndexError);
      if (given == -1 && PyErr_Occurred() != nullptr) {
        throw PythonError();
      }
      const Index at = given < 0 ? given + x[axis] : given;
      if (at < 0 || at >= x[axis]) {
        throw py::index_error("index: " + std::to_string(given) + " on axis " +
                              std::to_string(axis) + " of " + to_string(x) +
                              "\n  fix: an index from " + std::to_string(-x[axis]) + " to " +
                              std::to_string(x[axis] - 1));
      }
      result.ranges.push_back({axis, at, 1, 1});
      ++axis;
    }
  }
  keep(x.rank() - axis);
  return result;
}

py::object get_item(const AnyTensor& tensor, const py::object& key) {
  const py::tuple parts =
      py::isinstance<py::tuple>(key) ? key.cast<py::tuple>() : py::make_tuple(key);
  bool basic = true;
  for (const py::handle part : parts) {
    basic = basic && is_basic(part);
  }
  if (basic) {
    const BasicIndex index = basic_index(tensor.shape(), parts);
    return std::visit(
        [&](const auto& value) {
          return stolen(to_python(
              reshape(slice(value, std::span<const AxisRange>(index.ranges)), index.shape)));
        },
        tensor.value);
  }
  // NumPy itself says which cells any other key means.
  const py::module_ numpy = py::module_::import("numpy");
  const Index size = tensor.shape().elements().value_or(0);
  const py::object cells =
      numpy.attr("arange")(size).attr("reshape")(shape_tuple(tensor.shape()))[key];
  const Tensor<Index> chosen = to_integers(cells.ptr(), {"index", "key"});
  return std::visit(
      [&](const auto& value) {
        return stolen(to_python(take(value, Indices(chosen), chosen.shape())));
      },
      tensor.value);
}

/// What C asks for with PySequence_GetItem; `t[i]` of Python is get_item. The numbers of one axis
/// are NumPy's here: torch.as_tensor before torch 2 knows nested sequences of such numbers, and
/// neither
/// __dlpack__ nor __array__.
PyObject* sequence_item(PyObject* self, Py_ssize_t at) {
  try {
    const AnyTensor* tensor = tensor_of(self);
    if (tensor == nullptr || tensor->shape().rank() != 1 || tensor->level() != 0) {
      return PyObject_GetItem(self, py::int_(at).ptr());
    }
    return PySequence_GetItem(visible_array(*tensor, "item").ptr(), at);
  } catch (...) {
    set_python_error("item");
    return nullptr;
  }
}

// --- Exchange ------------------------------

struct Exported {
  DlManagedTensor managed = {};
  std::shared_ptr<void> storage;
  Shape shape;
  std::vector<Index> strides;
};

py::object to_dlpack(AnyTensor& tensor) {
  require_plain(tensor, "__dlpack__");
  auto exported = std::make_unique<Exported>();
  exported->shape = tensor.shape();
  exported->strides = dense_strides(exported->shape);
  DlTensor& out = exported->managed.tensor;
  std::visit(
      [&]<class T>(Value<T>& value) {
        const auto storage = value.plain().lend();
        out.data = storage.get();
        exported->storage = storage;
        out.type = {kDlFloat, 8 * sizeof(T), 1};
      },
      tensor.value);
  out.device = {kDlMainMemory, 0};
  out.rank = exported->shape.rank();
  out.shape = exported->shape.extents;
  out.strides = exported->strides.data();
  exported->managed.context = exported.get();
  exported->managed.deleter = [](DlManagedTensor* managed) {
    delete static_cast<Exported*>(managed->context);
  };
  PyObject* capsule = PyCapsule_New(&exported->managed, "dltensor", [](PyObject* self) {
    // Whoever takes the memory renames the capsule and calls the deleter.
    if (PyCapsule_IsValid(self, "dltensor") != 0) {
      auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(self, "dltensor"));
      managed->deleter(managed);
    }
  });
  py::object result = stolen(capsule);
  (void)exported.release();
  return result;
}

py::object numpy_dtype(bool is_double) {
  return py::module_::import("numpy").attr("dtype")(is_double ? "float64" : "float32");
}

AnyTensor tensor_from(const py::object& data, const py::object& dtype) {
  const Where where{"Tensor", "data"};
  if (dtype.is_none()) {
    return to_tensor(data.ptr(), where);
  }
  const py::object wanted = numpy_dtype_of(dtype, "Tensor");
  const AnyTensor* tensor = tensor_of(data.ptr());
  if (tensor != nullptr && numpy_dtype(tensor->is_double()).equal(wanted)) {
    return *tensor;
  }
  const py::object array =
      py::module_::import("numpy").attr("asarray")(data, py::arg("dtype") = wanted);
  return to_tensor(array.ptr(), where);
}

double item_of_one(const AnyTensor& tensor) {
  if (tensor.shape().elements() != 1) {
    throw Error(ErrorCode::shape_mismatch,
                "item: the tensor " + to_string(tensor.shape()) +
                    " is not a single element\n  fix: index it first");
  }
  require_visible(tensor, "item");
  return std::visit([](const auto& value) { return static_cast<double>(bottom(value)[0]); },
                    tensor.value);
}

/// What a tensor is beside its numbers, inside a transform: ", on a tape".
std::string level_text(const AnyTensor& tensor) {
  return std::visit(
      []<class T>(const Value<T>& value) -> std::string {
        if (value.requires_grad()) {
          return ", on a tape";
        }
        if (value.template as<typename Value<T>::Jet>() != nullptr) {
          return ", with a tangent";
        }
        if (const auto* batch = value.template as<typename Value<T>::Batch>()) {
          return ", each of " + std::to_string(batch->count()) + " samples";
        }
        return value.level() != 0 ? ", being compiled" : "";
      },
      tensor.value);
}

/// Numbers as NumPy abbreviates them; the shape where they do not show it.
py::object shown(const AnyTensor& tensor) {
  py::object numbers;
  try {
    numbers = visible_array(tensor, "repr");
  } catch (const Error&) {
  }
  py::str text("<numbers not known here>");
  const Shape& shape = tensor.shape();
  bool shows_shape = false;
  if (numbers) {
    const py::module_ numpy = py::module_::import("numpy");
    text = numpy.attr("array2string")(
        numbers, py::arg("separator") = ", ", py::arg("prefix") = "Tensor(");
    const auto threshold =
        numpy.attr("get_printoptions")()["threshold"].cast<py::object>().attr("__float__")();
    const Index size = shape.elements().value_or(0);
    shows_shape =
        (size > 0 || shape.rank() == 1) && static_cast<double>(size) <= threshold.cast<double>();
  }
  return py::str("Tensor(") + text +
         py::str((shows_shape ? "" : ", shape=" + utf8(py::str(shape_tuple(shape)).ptr())) +
                 ", dtype=" + (tensor.is_double() ? "float64" : "float32") + level_text(tensor) +
                 ")");
}

constexpr std::string_view function_of_comparison(int operation) {
  switch (operation) {
    case Py_EQ: return "equal";
    case Py_NE: return "not_equal";
    case Py_LT: return "less";
    case Py_LE: return "less_equal";
    case Py_GT: return "greater";
    default: return "greater_equal";
  }
}

/// A comparison gives NumPy truth values: there is nothing to differentiate. While a function is
/// compiled or runs on all samples there are none to give, but the functions give zeros and ones.
template <int kOperation>
py::object compared(const AnyTensor& a, const py::object& b) {
  const AnyTensor* other = tensor_of(b.ptr());
  for (const AnyTensor* tensor : {&a, other}) {
    if (tensor != nullptr && !is_visible(*tensor)) {
      throw Error(ErrorCode::dtype_mismatch,
                  "comparison: operators give truth values, which are not known while a function "
                  "is compiled or runs on all samples at once\n  fix: fn." +
                      std::string(function_of_comparison(kOperation)) +
                      " gives zeros and ones there, which fn.where takes");
    }
  }
  const py::object left = visible_array(a, "comparison");
  const py::object right = other != nullptr ? visible_array(*other, "comparison") : b;
  return stolen(PyObject_RichCompare(left.ptr(), right.ptr(), kOperation));
}

}  // namespace

PyTypeObject* tensor_type() { return the_tensor_type; }

py::object numpy_dtype_of(const py::object& dtype, std::string_view function) {
  try {
    return py::module_::import("numpy").attr("dtype")(dtype);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) {
      throw;
    }
  }
  Where{function, "dtype"}.refuse(dtype.ptr(), "'float32' or 'float64'");
}

void define_tensor(py::module_& module) {
  py::class_<AnyTensor> tensor(
      module,
      "Tensor",
      "A dense, row-major tensor of float32 or float64. Shares memory with the array it was made "
      "of and with\nwhat numpy() returns; operators never change it.\n\n"
      ">>> x = fn.Tensor(np.array([1., 2.]))\n"
      ">>> x * 2\n"
      "Tensor([2., 4.], dtype=float64)");
  the_tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());

  tensor.def(py::init(&tensor_from), py::arg("data"), py::arg("dtype") = py::none());
  tensor.def_property_readonly("shape", [](const AnyTensor& t) { return shape_tuple(t.shape()); });
  tensor.def_property_readonly("ndim", [](const AnyTensor& t) { return t.shape().rank(); });
  tensor.def_property_readonly("size",
                               [](const AnyTensor& t) { return t.shape().elements().value_or(0); });
  tensor.def_property_readonly("dtype",
                               [](const AnyTensor& t) { return numpy_dtype(t.is_double()); });
  tensor.def_property_readonly(
      "is_tracked",
      [](const AnyTensor& t) { return t.level() != 0; },
      "True inside a transform or on a tape: the tensor is more than its numbers.");

  tensor.def("__len__", [](const AnyTensor& t) {
    if (t.shape().rank() == 0) {
      // torch.as_tensor before torch 2 asks for it, and has no other way to one number.
      throw py::type_error(
          "len: a tensor of rank 0 has no length\n  fix: .item() is its number; for torch, "
          "torch.from_dlpack(t)");
    }
    return t.shape()[0];
  });
  tensor.def("__getitem__", &get_item, py::arg("key"));
  the_tensor_type->tp_as_sequence->sq_item = &sequence_item;
  tensor.def(
      "__setitem__",
      [](AnyTensor& t, const py::object& key, const py::object& value) {
        require_plain(t, "assignment");
        const py::object view = stolen(numpy_view(t));
        if (PyObject_SetItem(view.ptr(), key.ptr(), value.ptr()) != 0) {
          throw PythonError();
        }
      },
      py::arg("key"),
      py::arg("value"));
  tensor.def("item",
             &item_of_one,
             "The number of a tensor of one element.\n\n"
             ">>> fn.tensor([[2.5]]).item()\n"
             "2.5");
  tensor.def("__float__", &item_of_one);
  tensor.def("__int__", [](const AnyTensor& t) { return py::int_(py::float_(item_of_one(t))); });
  tensor.def("__bool__", [](const AnyTensor& t) { return item_of_one(t) != 0; });
  tensor.def("__hash__", [](const py::object& self) {
    return static_cast<py::ssize_t>(reinterpret_cast<std::uintptr_t>(self.ptr()) >> 4);
  });
  tensor.def("__repr__", &shown);
  tensor.def(
      "tolist",
      [](const AnyTensor& t) { return visible_array(t, "tolist").attr("tolist")(); },
      "The numbers as nested lists; a number alone where there are no axes.\n\n"
      ">>> fn.tensor([[1., 2.], [3., 4.]]).tolist()\n"
      "[[1.0, 2.0], [3.0, 4.0]]");

  tensor.def(
      "numpy",
      [](AnyTensor& t) {
        require_plain(t, "numpy");
        return stolen(numpy_view(t));
      },
      "The memory of the tensor as an array: each sees what is written to the other.\n\n"
      ">>> x = fn.tensor([1., 2.])\n"
      ">>> x.numpy()[0] = 5\n"
      ">>> x\n"
      "Tensor([5., 2.], dtype=float64)");
  tensor.def(
      "__array__",
      [](AnyTensor& t, const py::object& dtype) -> py::object {
        require_plain(t, "__array__");
        const py::object view = stolen(numpy_view(t));
        return dtype.is_none() ? view
                               : view.attr("astype")(numpy_dtype_of(dtype, "__array__"),
                                                     py::arg("copy") = false);
      },
      py::arg("dtype") = py::none());
  tensor.def(
      "__dlpack__",
      [](AnyTensor& t,
         const py::object&,
         const py::object&,
         const py::object& device,
         const py::object& copy) {
        if (!device.is_none() && !device.equal(py::make_tuple(kDlMainMemory, 0))) {
          throw py::buffer_error("__dlpack__: the tensor is in main memory\n  fix: copy it there");
        }
        if (!copy.is_none() && truth(copy.ptr(), {"__dlpack__", "copy"})) {
          require_plain(t, "__dlpack__");
          AnyTensor own = to_tensor(stolen(numpy_view(t)).attr("copy")().ptr(), {"copy", "self"});
          return to_dlpack(own);
        }
        return to_dlpack(t);
      },
      py::kw_only(),
      py::arg("stream") = py::none(),
      py::arg("max_version") = py::none(),
      py::arg("dl_device") = py::none(),
      py::arg("copy") = py::none());
  tensor.def("__dlpack_device__",
             [](const AnyTensor&) { return py::make_tuple(kDlMainMemory, 0); });
  tensor.def(
      "detach",
      [](const AnyTensor& t) {
        return std::visit([](const auto& value) { return stolen(to_python(detached(value))); },
                          t.value);
      },
      "The value alone: no derivative passes through.\n\n"
      ">>> fn.grad(lambda x: x * x.detach())(fn.tensor(3.))\n"
      "Tensor(3., dtype=float64)");
  tensor.def(
      "copy",
      [](const AnyTensor& t) {
        const py::object view = visible_array(t, "copy");
        require_plain(t, "copy");
        return stolen(to_python(to_tensor(view.attr("copy")().ptr(), {"copy", "self"})));
      },
      "A tensor with memory of its own.\n\n"
      ">>> x = fn.tensor([1., 2.])\n"
      ">>> x.copy().numpy()[0] = 5\n"
      ">>> x\n"
      "Tensor([1., 2.], dtype=float64)");
  tensor.def(
      "astype",
      [](const py::object& self, const py::object& dtype) -> py::object {
        const AnyTensor& t = self.cast<const AnyTensor&>();
        const py::object wanted = numpy_dtype_of(dtype, "astype");
        if (numpy_dtype(t.is_double()).equal(wanted)) {
          return self;
        }
        require_plain(t, "astype");
        return stolen(to_python(tensor_from(self, wanted)));
      },
      py::arg("dtype"),
      "The numbers in another precision; the tensor itself where it has it already.\n\n"
      "Arguments:\n"
      "    dtype: 'float32' or 'float64'.\n\n"
      ">>> fn.tensor([1., 2.]).astype('float32')\n"
      "Tensor([1., 2.], dtype=float32)");

  tensor.def("__eq__", &compared<Py_EQ>);
  tensor.def("__ne__", &compared<Py_NE>);
  tensor.def("__lt__", &compared<Py_LT>);
  tensor.def("__le__", &compared<Py_LE>);
  tensor.def("__gt__", &compared<Py_GT>);
  tensor.def("__ge__", &compared<Py_GE>);
  tensor.def("__contains__", [](const AnyTensor& t, const py::object& value) {
    return py::module_::import("numpy").attr("any")(compared<Py_EQ>(t, value)).cast<bool>();
  });

  module.def(
      "_shape",
      [](const py::object& shape, const std::string& function) {
        return shape_tuple(Convert<Shape>::get(shape.ptr(), {function, "shape"}));
      },
      py::arg("shape"),
      py::arg("function"));
  module.def("asarray",
             &tensor_from,
             py::arg("data"),
             py::arg("dtype") = py::none(),
             "The data as a tensor, without a copy where its memory will do.\n\n"
             "Arguments:\n"
             "    data: numbers, nested lists of them, an array or a tensor of any library.\n"
             "    dtype: 'float32' or 'float64'; that of the data unless given.\n\n"
             ">>> fn.asarray(np.array([1., 2.], dtype='float32'))\n"
             "Tensor([1., 2.], dtype=float32)");
}

}  // namespace fenestra::python
