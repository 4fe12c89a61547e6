// What fenestra.compile is made of: a trace, in which a Python function is called with values of a
// graph, and the program that comes of it. When to trace and when to run is written in Python
// (python/fenestra/compiling.py).
#include <fenestra/graph/program.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/object.hpp>
#include <fenestra/python/value.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

/// A program and the contexts its callers run in: as many as ever ran at once.
template <class T>
class Runner {
 public:
  explicit Runner(const graph::Graph& graph) : program_(graph) {}

  const Program<T>& program() const { return program_; }

  /// Runs without the interpreter's lock.
  std::vector<Tensor<T>> run(std::span<const Given> given) {
    const WithoutGil released;
    std::vector<Tensor<T>> results;
    for (const Shape& shape : program_.result_shapes()) {
      results.push_back(Tensor<T>::uninitialised(shape));
    }
    std::unique_ptr<Context<T>> context = take();
    program_.run(*context, given, std::span<Tensor<T>>(results));
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

  /// Arguments in the order in which the trace made them: tensors of its dtype, and integers.
  py::list run(const py::sequence& arguments) {
    return std::visit(
        [&]<class T>(std::unique_ptr<Runner<T>>& runner) {
          // Reserved: what is given points into these.
          std::vector<Tensor<T>> tensors;
          std::vector<Tensor<Index>> integers;
          tensors.reserve(arguments.size());
          integers.reserve(arguments.size());
          std::vector<Given> given;
          const auto kinds = runner->program().plan().graph().given();
          for (std::size_t i = 0; i < arguments.size(); ++i) {
            const py::object argument = arguments[i];
            if (i < kinds.size() &&
                runner->program().plan().graph().node(kinds[i]).kind == graph::NodeKind::data) {
              integers.push_back(to_integers(argument.ptr(), {"compile", "argument"}));
              given.emplace_back(std::as_const(integers.back()));
            } else {
              tensors.push_back(tensor_argument<T>(argument));
              given.emplace_back(std::as_const(tensors.back()));
            }
          }
          py::list results;
          for (Tensor<T>& result : runner->run(given)) {
            results.append(stolen(to_python(ValueOf<T>(std::move(result)))));
          }
          return results;
        },
        runner_);
  }
  std::string explain() const {
    return std::visit([](const auto& runner) { return runner->program().explain(); }, runner_);
  }
  std::size_t peak_bytes() const {
    return std::visit([](const auto& runner) { return runner->program().peak_bytes(); }, runner_);
  }

 private:
  template <class T>
  static Tensor<T> tensor_argument(const py::handle& object) {
    Incoming given = incoming(object.ptr(), {"compile", "argument"});
    if (auto* numbers = std::get_if<Tensor<double>>(&given)) {
      return numbers->map([](double x) { return static_cast<T>(x); });
    }
    const auto* value = std::get_if<ValueOf<T>>(&std::get<AnyTensor>(given).value);
    if (value == nullptr || value->level() != 0) {
      throw Error(ErrorCode::dtype_mismatch,
                  "compile: an argument has another dtype than it was compiled for\n  fix: "
                  ".astype()");
    }
    return value->tensor();
  }

  std::variant<std::unique_ptr<Runner<float>>, std::unique_ptr<Runner<double>>> runner_;
};

/// A graph under construction, on a level of its own.
class AnyTrace {
 public:
  explicit AnyTrace(bool is_double) {
    if (is_double) {
      builder_.emplace<graph::Builder<double>>();
    }
  }

  py::object input(const std::vector<Index>& extents) {
    return std::visit(
        [&]<class T>(graph::Builder<T>& builder) {
          auto value = builder.input(shape_of(extents), "x" + std::to_string(count_++));
          return stolen(to_python(ValueOf<T>(level_, std::move(value))));
        },
        builder_);
  }
  ErasedIndices data(const std::vector<Index>& extents) {
    return std::visit(
        [&](auto& builder) {
          return ErasedIndices(level_,
                               builder.data(shape_of(extents), "data" + std::to_string(count_++)));
        },
        builder_);
  }
  /// The program that computes the outputs, tensors of this trace or constants.
  AnyProgram finish(const py::sequence& outputs) {
    return std::visit(
        [&]<class T>(graph::Builder<T>& builder) {
          for (std::size_t i = 0; i < outputs.size(); ++i) {
            const py::object output = outputs[i];
            builder.output(value_of<T>(output), "y" + std::to_string(i));
          }
          return AnyProgram(std::make_unique<Runner<T>>(builder.graph()));
        },
        builder_);
  }

 private:
  static Shape shape_of(const std::vector<Index>& extents) {
    Shape shape;
    for (const Index extent : extents) {
      shape.push_back(extent);
    }
    return shape;
  }

  template <class T>
  graph::Value<T> value_of(const py::handle& output) const {
    Incoming given = incoming(output.ptr(), {"compile", "result"});
    if (auto* numbers = std::get_if<Tensor<double>>(&given)) {
      return numbers->map([](double x) { return static_cast<T>(x); });
    }
    const auto* value = std::get_if<ValueOf<T>>(&std::get<AnyTensor>(given).value);
    if (value == nullptr) {
      throw Error(ErrorCode::dtype_mismatch,
                  "compile: a result has another dtype than the arguments\n  fix: .astype()");
    }
    if (value->level() == 0) {
      return value->tensor();
    }
    if (value->level() != level_) {
      throw Error(ErrorCode::foreign_variable,
                  "compile: a result belongs to a transform or a tape around the function\n  fix: "
                  ".detach() it");
    }
    return *value->template as<graph::Value<T>>();
  }

  Level level_ = new_level();
  int count_ = 0;
  std::variant<graph::Builder<float>, graph::Builder<double>> builder_;
};

bool is_plain(const py::handle& object) {
  const AnyTensor* tensor = tensor_of(object.ptr());
  return (tensor == nullptr || tensor->level() == 0) && !py::isinstance<ErasedIndices>(object);
}

}  // namespace

void define_compile(py::module_& module) {
  py::class_<AnyProgram>(module, "_Program", "A traced function, planned.")
      .def("run", &AnyProgram::run, py::arg("arguments"))
      .def("explain", &AnyProgram::explain)
      .def_property_readonly("peak_bytes", &AnyProgram::peak_bytes);
  py::class_<AnyTrace>(module, "_Trace", "A graph under construction, on a level of its own.")
      .def(py::init<bool>(), py::arg("double"))
      .def("input", &AnyTrace::input, py::arg("shape"))
      .def("data", &AnyTrace::data, py::arg("shape"))
      .def("finish", &AnyTrace::finish, py::arg("outputs"));
  module.def("_is_plain", &is_plain, py::arg("object"));
}

}  // namespace fenestra::python
