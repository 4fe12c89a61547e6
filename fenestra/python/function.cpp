// Matching of arguments to parameters, and the texts that go with a function: see function.hpp.
#include <fenestra/python/arguments.hpp>
#include <fenestra/python/function.hpp>

#include <algorithm>
#include <array>

namespace fenestra::python {

namespace {

constexpr std::size_t kMostParameters = 16;
constexpr const char* kCapsuleName = "fenestra.function";
/// Tensors in one list. Far above what anybody joins, and quickly refused all the same.
constexpr Py_ssize_t kMostListed = 1 << 16;

PyObject* interned(const std::string& text) {
  return text.empty() ? nullptr : PyUnicode_InternFromString(text.c_str());
}

/// A text after a word, in lines of at most 96 characters, broken at spaces; `indent` before each
/// line but the first.
std::string wrapped(std::string_view first, std::string_view text, std::string_view indent = {}) {
  std::string result(first);
  std::size_t column = first.size();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column + 1 + word.size() > 96) {
      result += '\n';
      result += indent;
      column = indent.size();
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

/// An example for a name with a number of spatial axes: see signature::About.
std::string with_rank(std::string_view example, const std::string& name, const std::string& ranks) {
  std::string text;
  for (std::size_t i = 0; i < example.size(); ++i) {
    const std::string_view rest = example.substr(i);
    if (rest[0] != '%') {
      text += rest[0];
    } else if (rest.starts_with("%name")) {
      text += name;
      i += 4;
    } else if (rest.starts_with("%nd")) {
      text += ranks;
      i += 2;
    } else {
      for (char axis = '1'; axis <= ranks[0]; ++axis) {
        text += axis > '1' ? ", " : "";
        text += rest[1];
      }
      i += 1;
    }
  }
  return text;
}

PyObject* call_function(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const auto* function = static_cast<const Function*>(PyCapsule_GetPointer(self, kCapsuleName));
  if (function == nullptr) {
    return nullptr;
  }
  try {
    return function->call(args, count, names);
  } catch (...) {
    set_python_error(function->name());
    return nullptr;
  }
}

[[noreturn]] void throw_type_error(const std::string& text) {
  set_text(PyExc_TypeError, text);
  throw PythonError();
}

}  // namespace

Function::Function(const signature::About& about, int rank, std::vector<Parameter> parameters)
    : name_(std::string(about.name) + (rank > 0 ? std::to_string(rank) + "d" : "")),
      result_(about.result),
      rank_(rank),
      parameters_(std::move(parameters)) {
  for (Parameter& parameter : parameters_) {
    parameter.key = interned(parameter.name);
    parameter.alias_key = interned(parameter.alias);
  }
  positional_ = static_cast<std::size_t>(
      std::count_if(parameters_.begin(), parameters_.end(), [](const Parameter& parameter) {
        return !parameter.keyword_only;
      }));
  // Keyword-only parameters follow the others, whatever the order of declaration.
  std::string text = name_ + signature_text() + "\n--\n\n" + wrapped("", about.text);
  if (rank > 0) {
    text += "\n\n" + std::string(about.name) + " with " + std::to_string(rank) +
            (rank == 1 ? " spatial axis." : " spatial axes.");
  }
  text += "\n\n" + wrapped("Shapes:", about.shapes) + "\n\nArguments:\n";
  for (const Parameter& parameter : parameters_) {
    const std::string head = "    " + parameter.name +
                             (parameter.alias.empty() ? "" : " (or " + parameter.alias + ")") + ":";
    std::string said(argument_text(about.arguments, parameter.name));
    if (said.empty()) {
      said = common_argument_text(parameter.name);
    }
    if (said.empty() && !parameter.help.empty()) {
      said = parameter.help + ".";
    }
    text += wrapped(head, said, "        ") + "\n";
  }
  text += "\n" +
          (rank == 0 ? std::string(about.example)
                     : with_rank(about.ranked_example, name_, std::to_string(rank) + "d")) +
          "\n";
  doc_ = text;
}

std::string Function::signature_text() const {
  std::string text = "(";
  const auto add = [&](const std::string& part) { text += (text == "(" ? "" : ", ") + part; };
  for (const bool keyword_only : {false, true}) {
    if (keyword_only && positional_ < parameters_.size()) {
      add("*");
    }
    for (const Parameter& parameter : parameters_) {
      if (parameter.keyword_only == keyword_only) {
        add(parameter.name + (parameter.otherwise.empty() ? "" : "=" + parameter.otherwise));
      }
    }
  }
  return text + ")";
}

std::string Function::stub() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const bool keyword_only : {false, true}) {
    if (keyword_only && positional_ < parameters_.size()) {
      add("*");
    }
    for (const Parameter& parameter : parameters_) {
      if (parameter.keyword_only == keyword_only) {
        add(parameter.name + ": " + parameter.type + (parameter.otherwise.empty() ? "" : " = ..."));
      }
    }
  }
  return "def " + name_ + "(" + text + ") -> " + result_ + ": ...";
}

PyObject* Function::object(PyObject* module_name) {
  method_.ml_name = name_.c_str();
  method_.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call_function));
  method_.ml_flags = METH_FASTCALL | METH_KEYWORDS;
  method_.ml_doc = doc_.c_str();
  const Ref capsule = Ref::owned(PyCapsule_New(this, kCapsuleName, nullptr));
  return Ref::owned(PyCFunction_NewEx(&method_, capsule.get(), module_name)).release();
}

void Function::bind_keyword(PyObject* key, PyObject* argument, PyObject** slots) const {
  const auto matches = [&](PyObject* name) {
    return name != nullptr && (name == key || PyUnicode_Compare(name, key) == 0);
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (matches(parameters_[i].key) || matches(parameters_[i].alias_key)) {
      if (slots[i] != nullptr) {
        throw_type_error(name_ + ": " + parameters_[i].name + " is given twice");
      }
      slots[i] = argument;
      return;
    }
  }
  throw_type_error(name_ + ": there is no argument " + utf8(key) + "\n  fix: " + name_ +
                   signature_text());
}

void Function::bind(PyObject* const* args,
                    Py_ssize_t count,
                    PyObject* names,
                    PyObject** slots) const {
  if (static_cast<std::size_t>(count) > positional_) {
    throw_type_error(name_ + ": " + std::to_string(count) + " arguments by position, at most " +
                     std::to_string(positional_) + "\n  fix: " + name_ + signature_text());
  }
  std::size_t slot = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    while (parameters_[slot].keyword_only) {
      ++slot;
    }
    slots[slot++] = args[i];
  }
  const Py_ssize_t keywords = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    bind_keyword(PyTuple_GET_ITEM(names, i), args[count + i], slots);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (slots[i] == nullptr && parameters_[i].otherwise.empty()) {
      throw_type_error(name_ + ": " + parameters_[i].name + " is missing\n  fix: " + name_ +
                       signature_text());
    }
  }
}

Tensors Function::tensors_of(PyObject* const* slots) const {
  Tensors tensors;
  tensors.reserve(4);
  std::string first_name;
  const auto check = [&](const std::string& name, const Incoming& given) {
    const AnyTensor* tensor = std::get_if<AnyTensor>(&given);
    if (tensor == nullptr) {
      return;
    }
    if (first_name.empty()) {
      tensors.is_double = tensor->is_double();
      first_name = name;
      return;
    }
    if (tensor->is_double() != tensors.is_double) {
      const auto text = [](bool is_double) { return is_double ? "float64" : "float32"; };
      throw Error(name_,
                  {.code = ErrorCode::dtype_mismatch},
                  name_ + ": " + first_name + " is " + text(tensors.is_double) + ", " + name +
                      " is " + text(tensor->is_double()) + "\n  fix: " + name + ".astype('" +
                      text(tensors.is_double) + "'), or the other way round");
    }
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (parameter.slot == Slot::other || slots[i] == nullptr ||
        (parameter.slot == Slot::optional_value && slots[i] == Py_None)) {
      continue;
    }
    if (parameter.slot == Slot::values) {
      for (const Ref& element :
           elements(slots[i], where(i), "a sequence of tensors", kMostListed)) {
        tensors.push_back(incoming(element.get(), where(i)));
        check(parameter.name, tensors[tensors.size() - 1]);
        ++tensors.listed;
      }
      continue;
    }
    tensors.push_back(parameter.slot == Slot::mask ? incoming_mask(slots[i], where(i))
                                                   : incoming(slots[i], where(i)));
    check(parameter.name, tensors[tensors.size() - 1]);
  }
  return tensors;
}

PyObject* Function::call(PyObject* const* args, Py_ssize_t count, PyObject* names) const {
  std::array<PyObject*, kMostParameters> slots{};
  bind(args, count, names, slots.data());
  Tensors tensors = tensors_of(slots.data());
  return run(slots.data(), tensors);
}

}  // namespace fenestra::python
