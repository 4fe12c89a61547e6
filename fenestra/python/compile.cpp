// What fenestra.compile is made of: a trace, in which a Python function is called with values of a
// graph, and the program that comes of it. Which argument is what is written in Python
// (python/fenestra/compiling.py).
#include <fenestra/engine/program.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/python/call.hpp>
#include <fenestra/python/convert.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/object.hpp>
#include <fenestra/python/value.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

/// An argument or a result in the program's scalar.
template <class T>
Value<T> value_in_program(const py::handle& object, std::string_view name) {
  return value_in<T>(object.ptr(), {"compile", name}, "compiled for");
}

/// An argument's numbers; most are tensors as they are.
template <class T>
Tensor<T> tensor_in_program(const py::handle& object, std::string_view name) {
  if (const AnyTensor* tensor = tensor_of(object.ptr())) {
    const auto* value = std::get_if<Value<T>>(&tensor->value);
    if (value != nullptr && value->level() == 0) {
      return value->plain();
    }
  }
  return value_in_program<T>(object, name).tensor();
}

/// A program and the contexts that its callers run in: as many as ever ran at once.
template <class T>
class Runner {
 public:
  /// Where nothing is folded, the bits in double are those of the function.
  Runner(const graph::Graph& graph, bool fold) : program_(graph, CompileOptions{.fold = fold}) {}

  const Program<T>& program() const { return program_; }

  /// Runs without the interpreter's lock.
  std::vector<Tensor<T>> run(std::span<const RunArgument> arguments) {
    const WithoutGil released;
    std::unique_ptr<Context<T>> context = take();
    std::vector<Tensor<T>> results = program_.execute_new(ProgramForm::run, *context, arguments);
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(context));
    return results;
  }

 private:
  std::unique_ptr<Context<T>> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!free_.empty()) {
        auto context = std::move(free_.back());
        free_.pop_back();
        return context;
      }
    }
    return std::make_unique<Context<T>>(program_);
  }

  Program<T> program_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context<T>>> free_;
};

class AnyProgram {
 public:
  template <class T>
  explicit AnyProgram(std::unique_ptr<Runner<T>> runner) : runner_(std::move(runner)) {}

  /// Arguments in the order in which the trace made them; the results in a tree like another.
  py::object run(const py::list& arguments, const py::handle& like) {
    return put_together(
        like, std::visit([&](auto& runner) { return run_on(*runner, arguments); }, runner_));
  }
  /// The same for arguments whose signature has the key `key`; NotImplemented for others.
  py::object call(const py::tuple& args,
                  const py::dict& keywords,
                  const py::handle& key,
                  const py::handle& like) {
    const std::optional<py::list> arguments = arguments_of(args, keywords, key);
    return arguments ? run(*arguments, like)
                     : py::reinterpret_borrow<py::object>(Py_NotImplemented);
  }
  std::string explain() const {
    return std::visit([](const auto& runner) { return runner->program().explain(); }, runner_);
  }
  std::size_t peak_bytes() const {
    return std::visit([](const auto& runner) { return runner->program().peak_bytes(); }, runner_);
  }

 private:
  template <class T>
  static py::list run_on(Runner<T>& runner, const py::list& arguments) {
    const graph::Plan& plan = runner.program().plan();
    const std::size_t count = plan.arguments().size();
    // Reserved: what is given points into them.
    std::vector<Tensor<T>> tensors;
    std::vector<Tensor<Index>> integers;
    std::vector<RunArgument> run_arguments;
    tensors.reserve(count);
    run_arguments.reserve(count);
    for (const graph::NodeId id : plan.arguments()) {
      const graph::Node& node = plan.graph().node(id);
      const py::object argument = arguments[run_arguments.size()];
      if (node.kind == graph::NodeKind::data) {
        integers.reserve(count);
        integers.push_back(to_integers(argument.ptr(), {"compile", node.name}));
        run_arguments.emplace_back(std::as_const(integers.back()));
      } else {
        tensors.push_back(tensor_in_program<T>(argument, node.name));
        run_arguments.emplace_back(std::as_const(tensors.back()));
      }
    }
    std::vector<Tensor<T>> values = runner.run(run_arguments);
    py::list results(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      PyObject* const result = stolen(to_python(Value<T>(std::move(values[i])))).release().ptr();
      PyList_SET_ITEM(results.ptr(), static_cast<Py_ssize_t>(i), result);
    }
    return results;
  }

  std::variant<std::unique_ptr<Runner<float>>, std::unique_ptr<Runner<double>>> runner_;
};

/// Functions that are being traced in this thread.
thread_local int traces = 0;

/// A graph under construction, on a level of its own.
class AnyTrace {
 public:
  explicit AnyTrace(bool is_double) {
    if (is_double) {
      builder_.emplace<graph::Builder<double>>();
    }
  }

  py::object input(const py::object& extents, const std::string& name) {
    const Shape shape = Convert<Shape>::get(extents.ptr(), {"compile", name});
    return std::visit(
        [&]<class T>(graph::Builder<T>& builder) {
          return stolen(to_python(Value<T>(level_, builder.input(shape, name))));
        },
        builder_);
  }
  py::object data(const py::object& extents, const std::string& name) {
    const Shape shape = Convert<Shape>::get(extents.ptr(), {"compile", name});
    return std::visit(
        [&](auto& builder) {
          return stolen(to_python(Indices(level_, builder.data(shape, name))));
        },
        builder_);
  }
  /// The program that computes the outputs: tensors of this trace, or constants.
  AnyProgram finish(const py::sequence& outputs, const std::vector<std::string>& names, bool fold) {
    return std::visit(
        [&]<class T>(graph::Builder<T>& builder) {
          for (std::size_t i = 0; i < names.size(); ++i) {
            const py::object output = outputs[i];
            builder.output(output_value<T>(output, names[i]), names[i]);
          }
          const WithoutGil released;
          return AnyProgram(std::make_unique<Runner<T>>(builder.graph(), fold));
        },
        builder_);
  }

 private:
  template <class T>
  graph::Value<T> output_value(const py::handle& output, std::string_view name) const {
    if (py::isinstance<Indices>(output)) {
      Where{"compile", name}.refuse(
          output.ptr(), "a tensor, an array or numbers", "use the integers inside the function");
    }
    const Value<T> value = value_in_program<T>(output, name);
    if (value.level() == 0) {
      return value.tensor();
    }
    if (value.level() != level_) {
      throw Error(ErrorCode::foreign_variable,
                  Where{"compile", name}.text() +
                      " belongs to a transform or a tape, not to the compiled function\n  fix: "
                      ".detach() it, or return the gradients");
    }
    return *value.template as<graph::Value<T>>();
  }

  Level level_ = new_level();
  std::variant<graph::Builder<float>, graph::Builder<double>> builder_;
};

}  // namespace

bool is_tracing() { return traces > 0; }

void define_compile(py::module_& module) {
  py::class_<AnyProgram>(module, "_Program", "A traced function, planned.")
      .def("run", &AnyProgram::run, py::arg("arguments"), py::arg("like"))
      .def("call",
           &AnyProgram::call,
           py::arg("args"),
           py::arg("keywords"),
           py::arg("key"),
           py::arg("like"))
      .def("explain", &AnyProgram::explain)
      .def_property_readonly("peak_bytes", &AnyProgram::peak_bytes);
  py::class_<AnyTrace>(module, "_Trace", "A graph under construction, on a level of its own.")
      .def(py::init<bool>(), py::arg("double"))
      .def("input", &AnyTrace::input, py::arg("shape"), py::arg("name"))
      .def("data", &AnyTrace::data, py::arg("shape"), py::arg("name"))
      .def("__enter__", [](AnyTrace&) { ++traces; })
      .def("__exit__", [](AnyTrace&, const py::args&) { traces -= traces > 0 ? 1 : 0; })
      .def("finish", &AnyTrace::finish, py::arg("outputs"), py::arg("names"), py::arg("fold"));
}

}  // namespace fenestra::python
