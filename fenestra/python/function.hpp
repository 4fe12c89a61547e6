// Functions of the Python module, made from signatures: arguments are matched to names, tensors to
// one scalar, options to their structs; then the operator runs. Called by Python's vectorcall
// without a detour, since a small operator costs no more than its call.
#pragma once

#include <fenestra/engine/tree.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/signature.hpp>
#include <fenestra/python/convert.hpp>
#include <fenestra/python/value.hpp>

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra::python {

enum class Slot { value, mask, optional_value, values, other };

struct Parameter {
  std::string name = {};
  std::string alias = {};
  std::string help = {};       ///< for the docstring, where nothing else is said of the name
  std::string type = {};       ///< as an annotation
  std::string otherwise = {};  ///< its default, as Python writes it; empty where it must be given
  bool keyword_only = false;
  Slot slot = Slot::other;
  PyObject* key = nullptr;  ///< the name, interned
  PyObject* alias_key = nullptr;
};

/// The tensors of one call, in the order of the arguments.
class Tensors {
 public:
  void push_back(Incoming tensor) { list_.push_back(std::move(tensor)); }
  void reserve(std::size_t n) { list_.reserve(n); }
  std::size_t size() const { return list_.size(); }
  const Incoming& operator[](std::size_t i) const { return list_[i]; }
  bool is_double = true;
  /// Of the function's list of tensors, where it has one: counted once, since a sequence may answer
  /// otherwise the next time.
  std::size_t listed = 0;

  template <class T>
  Value<T> take() {
    Incoming& next = list_[at_++];
    if (AnyTensor* tensor = std::get_if<AnyTensor>(&next)) {
      return std::get<Value<T>>(std::move(tensor->value));
    }
    const Tensor<double>& numbers = std::get<Tensor<double>>(next);
    if constexpr (std::is_same_v<T, double>) {
      return numbers;
    } else {
      return numbers.map([](double x) { return static_cast<T>(x); });
    }
  }

 private:
  std::vector<Incoming> list_;
  std::size_t at_ = 0;
};

class Function {
 public:
  Function(const signature::About& about, int rank, std::vector<Parameter> parameters);
  virtual ~Function() = default;

  const std::string& name() const { return name_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::string& result() const { return result_; }
  int rank() const { return rank_; }
  /// name(parameters) with annotations, for stubs.
  std::string stub() const;

  /// The Python object; the function must outlive it.
  PyObject* object(PyObject* module_name);
  PyObject* call(PyObject* const* args, Py_ssize_t count, PyObject* names) const;

 protected:
  virtual PyObject* run(PyObject* const* slots, Tensors& tensors) const = 0;
  Where where(std::size_t slot) const { return {name_, parameters_[slot].name}; }

 private:
  void bind(PyObject* const* args, Py_ssize_t count, PyObject* names, PyObject** slots) const;
  void bind_keyword(PyObject* key, PyObject* argument, PyObject** slots) const;
  Tensors tensors_of(PyObject* const* slots) const;
  std::string signature_text() const;

  std::string name_;
  std::string doc_;
  std::string result_;
  int rank_;
  std::vector<Parameter> parameters_;
  std::size_t positional_ = 0;
  PyMethodDef method_ = {};
};

// --- From words to parameters ------------------------------

inline Parameter tensor_parameter(std::string_view name, Slot slot, std::string type) {
  return {.name = std::string(name), .type = std::move(type), .slot = slot};
}

inline void add_parameters(std::vector<Parameter>& list, const signature::Input& word) {
  list.push_back(tensor_parameter(word.name, Slot::value, "TensorLike"));
}
inline void add_parameters(std::vector<Parameter>& list, const signature::Mask& word) {
  list.push_back(tensor_parameter(word.name, Slot::mask, "TensorLike | BoolArray"));
}
inline void add_parameters(std::vector<Parameter>& list, const signature::OptionalInput& word) {
  list.push_back(tensor_parameter(word.name, Slot::optional_value, "TensorLike | None"));
  list.back().otherwise = "None";
}
inline void add_parameters(std::vector<Parameter>& list, const signature::InputList& word) {
  list.push_back(tensor_parameter(word.name, Slot::values, "Sequence[TensorLike]"));
}
inline void add_parameters(std::vector<Parameter>& list, const signature::Data& word) {
  list.push_back(tensor_parameter(word.name, Slot::other, "IntegerLike | Indices"));
}
template <class T>
void add_parameters(std::vector<Parameter>& list, const signature::Plain<T>& word) {
  Parameter parameter{.name = std::string(word.name), .type = std::string(Convert<T>::type)};
  parameter.keyword_only = word.keyword_only;
  if constexpr (requires { Convert<T>::show(*word.otherwise); }) {
    parameter.otherwise = word.otherwise ? Convert<T>::show(*word.otherwise) : "";
  }
  list.push_back(std::move(parameter));
}
/// Which argument each field of an options struct is, in the order of the list; -1: none.
struct FieldSlots {
  static constexpr std::size_t kMostFields = 16;
  std::array<int, kMostFields> slots = {};
  int count = 0;
};
template <class O>
constexpr FieldSlots field_slots() {
  FieldSlots result;
  result.slots.fill(-1);
  for (const Place place : {Place::first, Place::in_order, Place::last}) {
    std::size_t i = 0;
    O::fields([&](std::string_view, auto, const FieldInfo& info) {
      if ((info.place == Place::by_keyword ? Place::in_order : info.place) == place) {
        result.slots[i] = result.count++;
      }
      ++i;
    });
  }
  return result;
}

template <class O>
void add_parameters(std::vector<Parameter>& list, const signature::Options<O>&) {
  static constexpr FieldSlots kSlots = field_slots<O>();
  const O defaults{};
  const std::size_t first = list.size();
  list.resize(first + static_cast<std::size_t>(kSlots.count));
  std::size_t i = 0;
  O::fields([&]<class M>(std::string_view name, M O::*member, const FieldInfo& info) {
    const int slot = kSlots.slots[i++];
    if (slot < 0) {
      return;
    }
    Parameter& parameter = list[first + static_cast<std::size_t>(slot)];
    parameter.name = info.argument.empty() ? name : info.argument;
    parameter.alias = info.alias;
    parameter.help = info.help;
    parameter.type = Convert<M>::type;
    const bool required = info.required || info.place == Place::first;
    parameter.otherwise = required ? "" : Convert<M>::show(defaults.*member);
    if (parameter.otherwise == "None" && !parameter.type.ends_with("None")) {
      parameter.type += " | None";
    }
    parameter.keyword_only = info.place == Place::by_keyword;
  });
}

// --- From slots to arguments ------------------------------

struct Cursor {
  const Function* function;
  PyObject* const* slots;
  Tensors* tensors;
  std::size_t at = 0;

  /// The argument, or null where it is to be the default.
  PyObject* next() { return slots[at++]; }
  Where where() const { return {function->name(), function->parameters()[at - 1].name}; }
};

template <class T>
Value<T> read(const signature::Input&, Cursor& cursor) {
  cursor.next();
  return cursor.tensors->take<T>();
}
template <class T>
Value<T> read(const signature::Mask&, Cursor& cursor) {
  cursor.next();
  return cursor.tensors->take<T>();
}
template <class T>
std::optional<Value<T>> read(const signature::OptionalInput&, Cursor& cursor) {
  PyObject* object = cursor.next();
  if (object == nullptr || object == Py_None) {
    return std::nullopt;
  }
  return cursor.tensors->take<T>();
}
template <class T>
std::vector<Value<T>> read(const signature::InputList&, Cursor& cursor) {
  cursor.next();
  std::vector<Value<T>> values;
  values.reserve(cursor.tensors->listed);
  for (std::size_t i = 0; i < cursor.tensors->listed; ++i) {
    values.push_back(cursor.tensors->take<T>());
  }
  return values;
}
template <class T>
Indices read(const signature::Data&, Cursor& cursor) {
  PyObject* object = cursor.next();
  return to_indices(object, cursor.where());
}
template <class T, class U>
U read(const signature::Plain<U>& word, Cursor& cursor) {
  PyObject* object = cursor.next();
  return object != nullptr ? Convert<U>::get(object, cursor.where()) : *word.otherwise;
}
template <class T, class O>
O read(const signature::Options<O>&, Cursor& cursor) {
  static constexpr FieldSlots kSlots = field_slots<O>();
  O options{};
  const std::size_t first = cursor.at;
  std::size_t i = 0;
  O::fields([&]<class M>(std::string_view, M O::*member, const FieldInfo&) {
    const int slot = kSlots.slots[i++];
    if (slot < 0) {
      return;
    }
    cursor.at = first + static_cast<std::size_t>(slot);
    if (PyObject* object = cursor.next()) {
      options.*member = Convert<M>::get(object, cursor.where());
    }
  });
  cursor.at = first + static_cast<std::size_t>(kSlots.count);
  return options;
}

// --- From results to Python ------------------------------

template <class... Parts>
PyObject* tuple_of(Parts... parts) {
  Ref tuple = Ref::owned(PyTuple_New(sizeof...(Parts)));
  Py_ssize_t i = 0;
  (PyTuple_SET_ITEM(tuple.get(), i++, Ref::owned(to_python(std::move(parts))).release()), ...);
  return tuple.release();
}

template <class V>
PyObject* to_python(signature::WithIndices<V> result) {
  return result.indices ? tuple_of(std::move(result.y), std::move(*result.indices))
                        : to_python(std::move(result.y));
}
template <class T>
PyObject* to_python(std::vector<Value<T>> results) {
  Ref list = Ref::owned(PyList_New(static_cast<Py_ssize_t>(results.size())));
  for (std::size_t i = 0; i < results.size(); ++i) {
    PyList_SET_ITEM(list.get(),
                    static_cast<Py_ssize_t>(i),
                    Ref::owned(to_python(std::move(results[i]))).release());
  }
  return list.release();
}
/// A struct of values: a tuple, in the order of its members.
template <Tree R>
  requires(std::is_aggregate_v<R>)
PyObject* to_python(R result) {
  Ref tuple = Ref::owned(PyTuple_New(static_cast<Py_ssize_t>(tree_size(result))));
  Py_ssize_t i = 0;
  for_each_tensor(result, [&](auto& value) {
    PyTuple_SET_ITEM(tuple.get(), i++, Ref::owned(to_python(std::move(value))).release());
  });
  return tuple.release();
}

template <class F, class... Words>
class BoundFunction final : public Function {
 public:
  BoundFunction(const signature::About& about, int rank, F f, Words... words)
      : Function(about, rank, listed(words...)), f_(std::move(f)), words_(std::move(words)...) {}

 protected:
  PyObject* run(PyObject* const* slots, Tensors& tensors) const override {
    return tensors.is_double ? run_as<double>(slots, tensors) : run_as<float>(slots, tensors);
  }

 private:
  static std::vector<Parameter> listed(const Words&... words) {
    std::vector<Parameter> list;
    (add_parameters(list, words), ...);
    return list;
  }
  template <class T>
  PyObject* run_as(PyObject* const* slots, Tensors& tensors) const {
    Cursor cursor{this, slots, &tensors};
    return std::apply(
        [&](const auto&... word) {
          // Braces: arguments are read in order.
          std::tuple arguments{read<T>(word, cursor)...};
          return std::apply(
              [&](const auto&... argument) {
                if constexpr (std::is_invocable_v<const F&, decltype(argument)..., int>) {
                  return to_python(f_(argument..., rank()));
                } else {
                  return to_python(f_(argument...));
                }
              },
              arguments);
        },
        words_);
  }

  F f_;
  std::tuple<Words...> words_;
};

/// Collects the functions of all operators; what signatures call a declarer.
class Declarer {
 public:
  template <class F, class... Words>
  void function(const signature::About& about, const F& f, const Words&... words) {
    for (int rank = 0; rank <= (about.ranks ? 3 : 0); ++rank) {
      functions_.push_back(std::make_unique<BoundFunction<F, Words...>>(about, rank, f, words...));
    }
  }
  template <class Signature>
  void operator_of() {
    Signature::declare(*this);
  }
  std::vector<std::unique_ptr<Function>>& functions() { return functions_; }

 private:
  std::vector<std::unique_ptr<Function>> functions_;
};

}  // namespace fenestra::python
