// The values of the Python module and how they cross its border: tensors of float or double on any
// level, integer data, borrowed memory. Python's own interface and nothing of pybind11, so that
// units that bind operators compile quickly.
#pragma once

#include <Python.h>

#include <fenestra/engine/host_lock.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fenestra::python {

/// Lets other Python threads run while tensors are computed on.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// The same for computations inside the library, which may also be called without it.
class Gil final : public HostLock {
 public:
  void* release() override { return PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr; }
  void take(void* state) override { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); }
};

/// What Python's class Tensor holds.
struct AnyTensor {
  std::variant<Value<float>, Value<double>> value;

  bool is_double() const { return value.index() == 1; }
  Level level() const {
    return std::visit([](const auto& v) { return v.level(); }, value);
  }
  const Shape& shape() const {
    return std::visit([](const auto& v) -> const Shape& { return v.shape(); }, value);
  }
};

/// A new reference to a Python object.
class Ref {
 public:
  Ref() = default;
  /// Takes over a reference; null where Python has set an error, which is thrown.
  static Ref owned(PyObject* object);
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_ = nullptr;
};

/// Python's error is set already.
struct PythonError {};

/// Sets Python's error from the exception that is being handled; `function` is what was called, for
/// errors that do not say it themselves.
void set_python_error(std::string_view function = {}) noexcept;
/// Gives Python's error a text where it has none: NumPy says nothing when memory ends.
void complete_python_error(std::string_view function = {}) noexcept;
/// Sets Python's error with a text of any bytes: what is no UTF-8 is written as escapes.
void set_text(PyObject* type, std::string_view text) noexcept;

/// A str as UTF-8; what has no place there (lone surrogates) is written as escapes.
std::string utf8(PyObject* text);

/// Where a value came from, for messages.
struct Where {
  std::string_view function;
  std::string_view argument;

  /// "conv: stride"
  std::string text() const { return std::string(function) + ": " + std::string(argument); }
  /// Throws a dtype_mismatch, Python's TypeError.
  [[noreturn]] void refuse(PyObject* object,
                           std::string_view needed,
                           std::string_view fix = {}) const;
  /// Throws an overflow, Python's ValueError: the number does not `what`.
  [[noreturn]] void refuse_number(PyObject* number, std::string_view what) const;
};

/// A tensor, or a number or list of numbers that takes the type of the tensors it meets.
using Incoming = std::variant<AnyTensor, Tensor<double>>;

/// Tensors, arrays, whatever offers DLPack, a buffer or `__array__`, numbers and lists of numbers.
/// Contiguous memory is borrowed, not copied.
Incoming incoming(PyObject* object, const Where& where);

/// The same, or truth values, as zeros and ones of the type of the tensors they meet.
Incoming incoming_mask(PyObject* object, const Where& where);

/// True and False, Python's or NumPy's.
bool is_truth(PyObject* object);
/// An array of them.
bool is_truth_array(PyObject* object);

/// What is incoming as a tensor; numbers become double.
AnyTensor to_tensor(PyObject* object, const Where& where);

/// Integers from arrays and lists; int64 memory is borrowed.
Tensor<Index> to_integers(PyObject* object, const Where& where);
/// Integers, or those of a batch or a program.
Indices to_indices(PyObject* object, const Where& where);

PyObject* to_python(AnyTensor tensor);
inline PyObject* to_python(Value<float> value) { return to_python(AnyTensor{std::move(value)}); }
inline PyObject* to_python(Value<double> value) { return to_python(AnyTensor{std::move(value)}); }
/// A NumPy array of int64.
PyObject* to_python(Tensor<Index> integers);
/// The same, or class Indices where the integers are not known or those of many samples.
PyObject* to_python(Indices indices);

/// The object's tensor where it is one of ours, else null.
AnyTensor* tensor_of(PyObject* object);

}  // namespace fenestra::python
