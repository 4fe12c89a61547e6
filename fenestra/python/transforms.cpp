// What the transforms of the Python module are made of: tapes, jets and batches on levels. How they
// are put together is written in Python (python/fenestra/transforms.py).
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/custom_vjp.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/engine/vmap.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/transpose/transpose.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/object.hpp>
#include <fenestra/python/value.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <any>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

/// The object as a tensor that lies below `level`.
AnyTensor below(Level level, const py::handle& object, std::string_view function) {
  AnyTensor tensor = to_tensor(object.ptr(), {function, "value"});
  if (tensor.level() >= level) {
    throw Error(ErrorCode::foreign_variable,
                std::string(function) +
                    ": the value belongs to a transform or a tape that began later\n  fix: make "
                    "the tape inside, or .detach() the value");
  }
  return tensor;
}

/// A tape for each scalar.
class AnyTape {
 public:
  py::object parameter(const py::object& value) {
    const Level level = std::min(float_tape_.level(), double_tape_.level());
    return std::visit(
        [&]<class T>(const Value<T>& v) { return stolen(to_python(of<T>().parameter(v))); },
        below(level, value, "parameter").value);
  }
  Index size() const { return float_tape_.size() + double_tape_.size(); }
  void reset() {
    float_tape_.reset();
    double_tape_.reset();
  }
  bool owns(const py::handle& object) const {
    const AnyTensor* tensor = tensor_of(object.ptr());
    return tensor != nullptr &&
           std::visit([&]<class T>(const Value<T>& v) { return of<T>().owns(v); }, tensor->value);
  }
  /// What is inside a variable of this tape; anything else is its own value.
  py::object value(const py::object& object) const {
    if (!owns(object)) {
      return object;
    }
    return std::visit(
        [&]<class T>(const Value<T>& v) { return stolen(to_python(of<T>().around(v))); },
        tensor_of(object.ptr())->value);
  }

  /// The gradients of sum <bar, output> by the leaves; an output that depends on no parameter of
  /// this tape counts for nothing, an absent bar is ones.
  py::list gradients(const py::sequence& outputs,
                     const py::sequence& bars,
                     const py::sequence& leaves,
                     bool retain) {
    if (outputs.size() != bars.size()) {
      throw Error(ErrorCode::shape_mismatch,
                  "backward: " + std::to_string(bars.size()) + " cotangents for " +
                      std::to_string(outputs.size()) +
                      " results\n  fix: one for each tensor of the result");
    }
    py::list result(leaves.size());
    gradients_of<float>(outputs, bars, leaves, retain, result);
    gradients_of<double>(outputs, bars, leaves, retain, result);
    return result;
  }

 private:
  template <class T>
  Tape<T>& of() {
    if constexpr (std::is_same_v<T, float>) {
      return float_tape_;
    } else {
      return double_tape_;
    }
  }
  template <class T>
  const Tape<T>& of() const {
    return const_cast<AnyTape*>(this)->of<T>();
  }

  template <class T>
  void gradients_of(const py::sequence& outputs,
                    const py::sequence& bars,
                    const py::sequence& leaves,
                    bool retain,
                    py::list& result) {
    using V = Value<T>;
    std::vector<Seed<T>> seeds;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const py::object output = outputs[i];
      const V* value = value_on_tape<T>(output);
      if (value != nullptr) {
        seeds.push_back({*value, bar_of<T>(bars[i], *value)});
      }
    }
    std::vector<std::size_t> places;
    BackwardOptions<T> options{.retain = retain, .wrt = {}};
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const py::object leaf = leaves[i];
      if (const V* value = value_on_tape<T>(leaf)) {
        places.push_back(i);
        options.wrt.push_back(*value);
      } else if (!owns(leaf)) {
        throw Error(ErrorCode::foreign_variable,
                    "backward: argument " + std::to_string(i) +
                        " is not on this tape\n  fix: ask for what parameter() returned");
      }
    }
    if (places.empty()) {
      return;
    }
    if (seeds.empty()) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        result[places[i]] = stolen(to_python(zeros_like(of<T>().around(options.wrt[i]))));
      }
      return;
    }
    const auto found = of<T>().backward(std::span<const Seed<T>>(seeds), options);
    for (std::size_t i = 0; i < places.size(); ++i) {
      result[places[i]] = stolen(to_python(found[options.wrt[i]]));
    }
  }

  template <class T>
  const Value<T>* value_on_tape(const py::handle& object) const {
    const AnyTensor* tensor = tensor_of(object.ptr());
    const auto* value = tensor != nullptr ? std::get_if<Value<T>>(&tensor->value) : nullptr;
    return value != nullptr && of<T>().owns(*value) ? value : nullptr;
  }

  template <class T>
  Value<T> bar_of(const py::handle& object, const Value<T>& output) const {
    if (object.is_none()) {
      return ones_like(output);
    }
    Incoming given = incoming(object.ptr(), {"backward", "cotangent"});
    if (auto* numbers = std::get_if<Tensor<double>>(&given)) {
      return numbers->map([](double x) { return static_cast<T>(x); });
    }
    auto* value = std::get_if<Value<T>>(&std::get<AnyTensor>(given).value);
    if (value == nullptr) {
      throw Error(ErrorCode::dtype_mismatch,
                  "backward: the cotangent has another dtype than the result\n  fix: .astype()");
    }
    return std::move(*value);
  }

  Tape<float> float_tape_;
  Tape<double> double_tape_;
};

py::object make_jet(Level level, const py::object& primal, const py::object& tangent) {
  const AnyTensor at = below(level, primal, "jvp");
  return std::visit(
      [&]<class T>(const Value<T>& value) {
        Incoming given = incoming(tangent.ptr(), {"jvp", "tangent"});
        Value<T> direction = value;
        if (auto* numbers = std::get_if<Tensor<double>>(&given)) {
          direction = numbers->map([](double x) { return static_cast<T>(x); });
        } else if (auto* same = std::get_if<Value<T>>(&std::get<AnyTensor>(given).value)) {
          direction = *same;
        } else {
          throw Error(ErrorCode::dtype_mismatch,
                      "jvp: the tangent has another dtype than its primal\n  fix: .astype()");
        }
        if (direction.shape() != value.shape()) {
          throw Error(ErrorCode::shape_mismatch,
                      "jvp: primal " + to_string(value.shape()) + ", tangent " +
                          to_string(direction.shape()) + "\n  fix: equal shapes");
        }
        return stolen(to_python(Value<T>(level, typename Value<T>::Jet(value, direction))));
      },
      at.value);
}

/// Value and tangent of a result on `level`.
py::tuple split_jet(Level level, const py::object& y) {
  return std::visit(
      [&]<class T>(const Value<T>& value) {
        const auto jet = value.template on<typename Value<T>::Jet>(level);
        return py::make_tuple(stolen(to_python(Value<T>(jet.primal()))),
                              stolen(to_python(Value<T>(jet.tangent_or_zeros()))));
      },
      to_tensor(y.ptr(), {"jvp", "result"}).value);
}

void require_items(const Shape& shape) {
  if (shape.rank() < 1) {
    throw Error(
        ErrorCode::rank_mismatch,
        "vmap: a tensor of rank 0 has no items\n  fix: at least one axis, or do not map it");
  }
}

py::object make_batch(Level level, const py::object& x) {
  const AnyTensor tensor = below(level, x, "vmap");
  require_items(tensor.shape());
  return std::visit(
      [&]<class T>(const Value<T>& value) {
        return stolen(to_python(Value<T>(level, Value<T>::Batch::stacked(value))));
      },
      tensor.value);
}

/// As a function sees them: without hidden axes.
Shape visible_shape(const Indices& indices) {
  if (indices.level() == 0) {
    return indices.plain().type().shape;
  }
  if (indices.traced() != nullptr) {
    return indices.traced()->shape();
  }
  const Shape all = visible_shape(indices.items(indices.level()).indices);
  Shape item;
  for (int axis = 1; axis < all.rank(); ++axis) {
    item.push_back(all[axis]);
  }
  return item;
}

Indices make_batch_indices(Level level, const py::object& data) {
  const Indices indices = to_indices(data.ptr(), {"vmap", "data"});
  if (indices.level() != 0 && indices.traced() == nullptr) {
    throw Error(ErrorCode::unsupported,
                "vmap: integer data with two hidden axes\n  fix: one vmap over integers");
  }
  const Shape shape = visible_shape(indices);
  require_items(shape);
  return {level, BatchIndices<Indices>(indices, shape[0])};
}

/// A result of `level` with its hidden axis in front, repeated where it is the same for all.
py::object unbatch(Level level, const py::object& y, Index count) {
  return std::visit(
      [&]<class T>(const Value<T>& value) {
        return stolen(to_python(detail::stacked_value(level, value, count)));
      },
      to_tensor(y.ptr(), {"vmap", "result"}).value);
}

// --- Pullbacks of one's own ------------------------------

template <class T>
Value<T> custom_value(const py::handle& object, std::string_view what) {
  AnyTensor tensor = to_tensor(object.ptr(), {"custom_vjp", what});
  auto* value = std::get_if<Value<T>>(&tensor.value);
  if (value == nullptr) {
    throw Error(ErrorCode::dtype_mismatch,
                "custom_vjp: " + std::string(what) + " is " +
                    (tensor.is_double() ? "float64" : "float32") +
                    ", the arguments are not\n  fix: one dtype for all, .astype() the others");
  }
  return std::move(*value);
}

template <class T>
py::list as_list(std::span<const Value<T>> values) {
  py::list list;
  for (const Value<T>& value : values) {
    list.append(stolen(to_python(Value<T>(value))));
  }
  return list;
}

template <class T>
py::object custom_call(const std::vector<AnyTensor>& arguments,
                       const py::object& forward,
                       const py::object& backward) {
  std::vector<Value<T>> args;
  for (const AnyTensor& argument : arguments) {
    args.push_back(custom_value<T>(stolen(to_python(AnyTensor(argument))), "an argument"));
  }
  auto rule = std::make_shared<detail::CustomRule<T>>();
  rule->forward = [f = kept(forward)](std::span<const Value<T>> in) {
    const py::gil_scoped_acquire lock;
    const py::tuple both = py::handle(f.get())(as_list<T>(in));
    return std::pair<Value<T>, std::any>(custom_value<T>(both[0], "the result"),
                                         kept(py::object(both[1])));
  };
  rule->backward = [f = kept(backward)](const std::any& residuals, const Value<T>& y_bar) {
    const py::gil_scoped_acquire lock;
    const auto held = std::any_cast<std::shared_ptr<PyObject>>(residuals);
    const py::list bars =
        py::handle(f.get())(py::handle(held.get()), stolen(to_python(Value<T>(y_bar))));
    std::vector<Value<T>> result;
    for (const py::handle bar : bars) {
      result.push_back(custom_value<T>(bar, "a cotangent"));
    }
    return result;
  };
  return stolen(to_python(detail::apply_custom<T>(std::move(rule), args)));
}

/// forward(list of tensors) -> (result, residuals); backward(residuals, cotangent) -> list.
py::object custom_vjp_of(const py::sequence& arguments,
                         const py::object& forward,
                         const py::object& backward) {
  std::vector<AnyTensor> args;
  for (const py::handle argument : arguments) {
    args.push_back(to_tensor(argument.ptr(), {"custom_vjp", "an argument"}));
  }
  return !args.empty() && args[0].is_double() ? custom_call<double>(args, forward, backward)
                                              : custom_call<float>(args, forward, backward);
}

}  // namespace

void define_transforms(py::module_& module) {
  py::class_<AnyTape>(module, "_Tape", "A tape for both scalars, on one level.")
      .def(py::init<>())
      .def("parameter", &AnyTape::parameter, py::arg("value"))
      .def("gradients",
           &AnyTape::gradients,
           py::arg("outputs"),
           py::arg("cotangents"),
           py::arg("leaves"),
           py::arg("retain"))
      .def("owns", &AnyTape::owns, py::arg("tensor"))
      .def("value", &AnyTape::value, py::arg("tensor"))
      .def("reset", &AnyTape::reset)
      .def("__len__", &AnyTape::size);
  py::class_<Indices>(module,
                      "Indices",
                      "Integers as functions under vmap and compile see them: of all samples "
                      "at once, or not known yet.")
      .def_property_readonly("shape",
                             [](const Indices& i) { return shape_tuple(visible_shape(i)); });

  module.def("_new_level", &new_level);
  module.def("_make_jet", &make_jet, py::arg("level"), py::arg("primal"), py::arg("tangent"));
  module.def("_split_jet", &split_jet, py::arg("level"), py::arg("result"));
  module.def("_make_batch", &make_batch, py::arg("level"), py::arg("tensor"));
  module.def("_make_batch_indices", &make_batch_indices, py::arg("level"), py::arg("data"));
  module.def("_unbatch", &unbatch, py::arg("level"), py::arg("result"), py::arg("count"));
  module.def(
      "_custom_vjp", &custom_vjp_of, py::arg("arguments"), py::arg("forward"), py::arg("backward"));
  module.def("_enter_no_grad", [] { ++detail::no_grad_depth; });
  module.def("_exit_no_grad", [] { detail::no_grad_depth -= detail::no_grad_depth > 0 ? 1 : 0; });
  module.def("threads",
             &threads,
             "Threads that kernels may use, the calling one included.\n\n"
             ">>> fn.threads() >= 1\n"
             "True");
  module.def("set_threads",
             &set_threads,
             py::arg("count"),
             "Sets how many threads kernels may use.\n\n"
             "Arguments:\n"
             "    count: the calling thread included.\n\n"
             ">>> fn.set_threads(fn.threads())");
}

}  // namespace fenestra::python
