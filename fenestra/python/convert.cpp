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

Index integer(PyObject* object, const Where& where) {
  if (!PyIndex_Check(object) || PyBool_Check(object)) {
    where.refuse(object, "an int");
  }
  const Ref number = Ref::owned(PyNumber_Index(object));
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (overflow != 0) {
    throw Error(ErrorCode::overflow,
                where.text() + " does not fit 64 bits\n  fix: a smaller number");
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

std::vector<Ref> elements(PyObject* object, const Where& where, std::string_view needed) {
  if (!is_sequence(object)) {
    where.refuse(object, needed);
  }
  const Py_ssize_t n = PySequence_Size(object);
  std::vector<Ref> list;
  for (Py_ssize_t i = 0; i < n; ++i) {
    list.push_back(Ref::owned(PySequence_GetItem(object, i)));
  }
  return list;
}

std::string text(PyObject* object, const Where& where, std::string_view needed) {
  if (!PyUnicode_Check(object)) {
    where.refuse(object, needed);
  }
  return PyUnicode_AsUTF8(object);
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
  if (PyIndex_Check(object)) {
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
  if (PyIndex_Check(object)) {
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
  if (PyIndex_Check(object)) {
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
                  where.text() + ": there is no axis " + std::to_string(axis));
    }
    axes.push_back(static_cast<int>(axis));
  };
  if (object == Py_None) {
    return axes;
  }
  if (PyIndex_Check(object)) {
    add(object);
    return axes;
  }
  for (const Ref& element : elements(object, where, "an int, a sequence of ints or None")) {
    add(element.get());
  }
  return axes;
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
