// Arguments that are not tensors, from Python: see convert.hpp.
#include <fenestra/python/convert.hpp>

#include <cstdio>
#include <limits>

namespace fenestra::python {

namespace {

bool is_sequence(PyObject* object) {
  return PySequence_Check(object) != 0 && !PyUnicode_Check(object) && !PyBytes_Check(object);
}

}  // namespace

bool is_integer(PyObject* object) {
  if (PyIndex_Check(object) == 0) {
    return false;
  }
  if (!is_sequence(object)) {
    return true;
  }
  // An array: one number where it has no length.
  if (PySequence_Size(object) >= 0) {
    return false;
  }
  PyErr_Clear();
  return true;
}

Index integer(PyObject* object, const Where& where) {
  if (!PyIndex_Check(object) || PyBool_Check(object)) {
    where.refuse(object, "an int");
  }
  const Ref number = Ref::owned(PyNumber_Index(object));
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (overflow != 0) {
    where.refuse_number(number.get(), "fit 64 bits");
  }
  if (value == -1 && PyErr_Occurred() != nullptr) {
    throw PythonError();
  }
  return value;
}

double number(PyObject* object, const Where& where) {
  if (PyFloat_Check(object)) {
    return PyFloat_AS_DOUBLE(object);
  }
  if (PyUnicode_Check(object) || PyNumber_Check(object) == 0) {
    where.refuse(object, "a number");
  }
  const double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
      PyErr_Clear();
      where.refuse_number(object, "fit a float");
    }
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0 &&
        PyErr_ExceptionMatches(PyExc_ValueError) == 0) {
      throw PythonError();
    }
    PyErr_Clear();
    where.refuse(object, "a number");
  }
  return value;
}

bool truth(PyObject* object, const Where& where) {
  if (is_truth(object)) {
    return PyObject_IsTrue(object) == 1;
  }
  where.refuse(object, "True or False");
}

std::vector<Ref> elements(PyObject* object,
                          const Where& where,
                          std::string_view needed,
                          Py_ssize_t most) {
  if (!is_sequence(object)) {
    where.refuse(object, needed);
  }
  const Py_ssize_t n = PySequence_Size(object);
  if (n < 0) {
    throw PythonError();
  }
  if (n > most) {
    throw Error(std::string(where.function),
                {.code = ErrorCode::rank_mismatch},
                where.text() + " has " + std::to_string(n) + " entries, needed at most " +
                    std::to_string(most) + "\n  fix: " + std::string(needed));
  }
  std::vector<Ref> list;
  list.reserve(static_cast<std::size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* const element = PySequence_GetItem(object, i);
    if (element == nullptr && PyErr_ExceptionMatches(PyExc_NotImplementedError) != 0) {
      // A memoryview of several axes is a sequence that has no elements.
      PyErr_Clear();
      where.refuse(object, needed);
    }
    list.push_back(Ref::owned(element));
  }
  return list;
}

std::string text(PyObject* object, const Where& where, std::string_view needed) {
  if (!PyUnicode_Check(object)) {
    where.refuse(object, needed);
  }
  return utf8(object);
}

std::string number_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  for (int digits = 1; digits < 17; ++digits) {
    char shorter[32];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    double back = 0;
    if (std::sscanf(shorter, "%lf", &back) == 1 && back == value) {
      std::snprintf(buffer, sizeof buffer, "%s", shorter);
      break;
    }
  }
  const std::string result = buffer;
  return result.find_first_of(".e") == std::string::npos ? result + ".0" : result;
}

PerAxis Convert<PerAxis>::get(PyObject* object, const Where& where) {
  if (object == Py_None) {
    return {};
  }
  if (is_integer(object)) {
    return integer(object, where);
  }
  PerAxis result;
  for (const Ref& element : elements(object, where, "an int or a sequence of ints")) {
    result.push_back(integer(element.get(), where));
  }
  if (!result.is_given()) {
    throw Error(ErrorCode::rank_mismatch,
                where.text() + " is empty\n  fix: an int, or one for each spatial axis");
  }
  return result;
}

std::string Convert<PerAxis>::show(const PerAxis& value) {
  if (!value.is_given()) {
    return "None";
  }
  return std::to_string(value[0]);
}

Padding Convert<Padding>::get(PyObject* object, const Where& where) {
  constexpr std::string_view kNeeded =
      "an int, one int per axis, one (low, high) pair per axis, 'same' or 'valid'";
  if (PyUnicode_Check(object)) {
    const std::string name = text(object, where, kNeeded);
    if (name == "same") {
      return same;
    }
    if (name == "valid") {
      return valid;
    }
    throw Error(ErrorCode::invalid_padding,
                where.text() + " = '" + name + "'\n  fix: " + std::string(kNeeded));
  }
  if (is_integer(object)) {
    return integer(object, where);
  }
  const std::vector<Ref> list = elements(object, where, kNeeded);
  if (!list.empty() && is_sequence(list[0].get())) {
    Padding padding;
    padding.low = padding.high = PerAxis();
    for (const LowHigh& pair : Convert<std::vector<LowHigh>>::get(object, where)) {
      padding.push_back(pair);
    }
    return padding;
  }
  return Convert<PerAxis>::get(object, where);
}

Shape Convert<Shape>::get(PyObject* object, const Where& where) {
  if (is_integer(object)) {
    return Shape{integer(object, where)};
  }
  Shape shape;
  for (const Ref& element : elements(object, where, "an int or a sequence of ints")) {
    shape.push_back(integer(element.get(), where));
  }
  return shape;
}

std::vector<int> Convert<std::vector<int>>::get(PyObject* object, const Where& where) {
  std::vector<int> axes;
  const auto add = [&](PyObject* element) {
    const Index axis = integer(element, where);
    if (axis < std::numeric_limits<int>::min() || axis > std::numeric_limits<int>::max()) {
      throw Error(ErrorCode::rank_mismatch,
                  where.text() + ": there is no axis " + std::to_string(axis) +
                      "\n  fix: an axis of the tensor");
    }
    axes.push_back(static_cast<int>(axis));
  };
  if (object == Py_None) {
    return axes;
  }
  if (is_integer(object)) {
    add(object);
    return axes;
  }
  for (const Ref& element : elements(object, where, "an int, a sequence of ints or None")) {
    add(element.get());
  }
  return axes;
}

SplitParts Convert<SplitParts>::get(PyObject* object, const Where& where) {
  if (is_integer(object)) {
    return integer(object, where);
  }
  std::vector<Index> sizes;
  for (const Ref& element :
       elements(object, where, "an int or a sequence of ints", Py_ssize_t{1} << 16)) {
    sizes.push_back(integer(element.get(), where));
  }
  return sizes;
}

std::vector<LowHigh> Convert<std::vector<LowHigh>>::get(PyObject* object, const Where& where) {
  constexpr std::string_view kNeeded = "a sequence of (low, high) pairs";
  std::vector<LowHigh> pairs;
  for (const Ref& element : elements(object, where, kNeeded)) {
    const std::vector<Ref> pair = elements(element.get(), where, kNeeded);
    if (pair.size() != 2) {
      where.refuse(element.get(), "a (low, high) pair");
    }
    pairs.emplace_back(integer(pair[0].get(), where), integer(pair[1].get(), where));
  }
  return pairs;
}

}  // namespace fenestra::python
