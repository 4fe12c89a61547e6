// Optimisers, schedules, losses and metrics for Python (python/fenestra/training.py).
#include <fenestra/nn/any_optimiser.hpp>
#include <fenestra/nn/gradients.hpp>
#include <fenestra/nn/losses.hpp>
#include <fenestra/nn/metrics.hpp>
#include <fenestra/nn/schedule.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/network.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

template <class T>
py::list tensor_list(std::vector<Tensor<T>>& tensors) {
  py::list result;
  for (Tensor<T>& tensor : tensors) {
    result.append(stolen(to_python(Value<T>(std::move(tensor)))));
  }
  return result;
}

// --- Optimisers ----------------------------------------------------------------------------------

/// An optimiser of the scalar of what it first moves.
class AnyOptimiser {
 public:
  explicit AnyOptimiser(const std::string& text) : optimiser_(nn::Optimiser<float>::make(text)) {}

  std::string text() const {
    return std::visit([](const auto& one) { return one.text(); }, optimiser_);
  }
  double rate() const {
    return std::visit([](const auto& one) { return one.rate(); }, optimiser_);
  }
  void set_rate(double rate) {
    std::visit([&](auto& one) { one.set_rate(rate); }, optimiser_);
  }

  /// The parameters after a step.
  py::list update(const py::list& parameters, const py::list& gradients, bool is_double) {
    become(is_double);
    return std::visit(
        [&]<class T>(nn::Optimiser<T>& one) {
          std::vector<Tensor<T>> moved = tensors<T>(parameters, "parameters");
          const std::vector<Tensor<T>> bars = tensors<T>(gradients, "gradients");
          std::vector<Tensor<T>*> places;
          for (Tensor<T>& tensor : moved) {
            places.push_back(&tensor);
          }
          const InUse::Hold hold(use_, "optimiser");
          {
            const WithoutGil released;
            one.step(std::span<Tensor<T>* const>(places), std::span<const Tensor<T>>(bars));
          }
          is_used_ = true;
          return tensor_list(moved);
        },
        optimiser_);
  }

  py::dict state(const std::vector<std::string>& names) const {
    py::dict result;
    const io::TensorMap map =
        std::visit([&](const auto& one) { return one.state(names); }, optimiser_);
    for (const auto& [name, tensor] : map) {
      result[py::str(name)] = std::visit(
          []<class T>(const Tensor<T>& numbers) {
            if constexpr (std::is_same_v<T, Index>) {
              return stolen(to_python(numbers));
            } else {
              return stolen(to_python(Value<T>(numbers)));
            }
          },
          tensor);
    }
    return result;
  }
  void set_state(const std::vector<std::string>& names,
                 const std::vector<py::object>& extents,
                 const py::dict& state,
                 bool is_double) {
    std::vector<Shape> shapes;
    for (const py::object& shape : extents) {
      shapes.push_back(shape_in(shape, {"set_state", "shape"}));
    }
    AnyOptimiser next(text());
    next.become(is_double);
    std::visit(
        [&]<class T>(nn::Optimiser<T>& one) {
          io::TensorMap map;
          for (const auto& [key, value] : state) {
            const std::string name = utf8(py::str(key).ptr());
            const Where where{"set_state", name};
            const bool is_count =
                py::hasattr(value, "dtype") && py::str(value.attr("dtype")).equal(py::str("int64"));
            if (is_count) {
              map.emplace(name, to_integers(value.ptr(), where));
            } else {
              map.emplace(name, numbers_of<T>(value, where, "the parameters are"));
            }
          }
          one.set_state(names, shapes, map);
        },
        next.optimiser_);
    optimiser_ = std::move(next.optimiser_);
    is_used_ = true;
  }

 private:
  void become(bool is_double) {
    if (is_double == (optimiser_.index() == 1)) {
      return;
    }
    if (is_used_) {
      throw Error(ErrorCode::dtype_mismatch,
                  std::string("update: the parameters are ") +
                      (is_double ? "float64, those" : "float32, those") +
                      " of the steps before were not\n  fix: one optimiser for each dtype");
    }
    const std::string said = text();
    if (is_double) {
      optimiser_ = nn::Optimiser<double>::make(said);
    } else {
      optimiser_ = nn::Optimiser<float>::make(said);
    }
  }
  template <class T>
  static std::vector<Tensor<T>> tensors(const py::list& list, std::string_view argument) {
    std::vector<Tensor<T>> result;
    for (const py::handle item : list) {
      result.push_back(numbers_of<T>(item, {"update", argument}, "the others are"));
    }
    return result;
  }

  std::variant<nn::Optimiser<float>, nn::Optimiser<double>> optimiser_;
  bool is_used_ = false;
  InUse use_;
};

/// (gradients, norm before), clipped by "norm", by "value", or as they are.
template <class T>
py::tuple clipped_in(const py::list& gradients, double limit, std::string_view by) {
  std::vector<Tensor<T>> tensors;
  for (const py::handle item : gradients) {
    tensors.push_back(numbers_of<T>(item, {"clip", "gradients"}, "the others are"));
  }
  double norm = 0;
  {
    const WithoutGil released;
    norm = nn::global_norm<T>(std::span<const Tensor<T>>(tensors));
    if (by == "norm") {
      nn::clip_by_norm<T>(std::span<Tensor<T>>(tensors), limit);
    } else if (by == "value") {
      nn::clip_by_value<T>(std::span<Tensor<T>>(tensors), limit);
    }
  }
  return py::make_tuple(tensor_list(tensors), norm);
}

py::tuple clipped(const py::list& gradients, double limit, const std::string& by, bool is_double) {
  return is_double ? clipped_in<double>(gradients, limit, by)
                   : clipped_in<float>(gradients, limit, by);
}

// --- Losses and metrics --------------------------------------------------------------------------

py::object loss_of(const std::string& text,
                   const py::object& x,
                   const py::object& labels,
                   const py::object& values) {
  return std::visit(
      [&]<class T>(const Value<T>& scores) {
        nn::Target<T> target;
        if (!labels.is_none()) {
          target.labels = to_indices(labels.ptr(), {"loss", "target"});
        }
        if (!values.is_none()) {
          target.values = value_in<T>(values.ptr(), {"loss", "target"}, "the scores are");
        }
        return stolen(to_python(nn::Loss<T>::make(text)(scores, target)));
      },
      to_tensor(x.ptr(), {"loss", "x"}).value);
}

/// f(tensor of scores)
template <class F>
auto with_scores(const py::object& scores, std::string_view function, const F& f) {
  const Where where{function, "scores"};
  return to_tensor(scores.ptr(), where).is_double()
             ? f(numbers_of<double>(scores, where, "the scores are"))
             : f(numbers_of<float>(scores, where, "the scores are"));
}

void define_metrics(py::module_& module) {
  py::class_<nn::ConfusionMatrix>(
      module, "_ConfusionMatrix", "How often each class was taken for each.")
      .def(py::init<Index>(), py::arg("classes"))
      .def(
          "add",
          [](nn::ConfusionMatrix& matrix, const py::object& scores, const py::object& labels) {
            const Tensor<Index> right = to_integers(labels.ptr(), {"add", "labels"});
            with_scores(scores, "add", [&](const auto& numbers) { matrix.add(numbers, right); });
          },
          py::arg("scores"),
          py::arg("labels"))
      .def("counts", [](const nn::ConfusionMatrix& m) { return stolen(to_python(m.counts())); })
      .def("total", &nn::ConfusionMatrix::total)
      .def("correct", &nn::ConfusionMatrix::correct)
      .def("accuracy", &nn::ConfusionMatrix::accuracy)
      .def("iou", &nn::ConfusionMatrix::iou)
      .def("mean_iou", &nn::ConfusionMatrix::mean_iou)
      .def(
          "text",
          [](const nn::ConfusionMatrix& m, const std::vector<std::string>& classes) {
            return nn::to_string(m, classes);
          },
          py::arg("classes"));
  module.def(
      "_predicted_classes",
      [](const py::object& scores) {
        return with_scores(scores, "predicted_classes", [](const auto& numbers) {
          return stolen(to_python(nn::predicted_classes(numbers)));
        });
      },
      py::arg("scores"));
  module.def(
      "_top_k_correct",
      [](const py::object& scores, const py::object& labels, Index k) {
        const Tensor<Index> right = to_integers(labels.ptr(), {"top_k_correct", "labels"});
        return with_scores(scores, "top_k_correct", [&](const auto& numbers) {
          return nn::top_k_correct(numbers, right, k);
        });
      },
      py::arg("scores"),
      py::arg("labels"),
      py::arg("k"));
}

}  // namespace

void define_training(py::module_& module) {
  py::class_<AnyOptimiser>(module, "_Optimiser", "An optimiser with its state.")
      .def(py::init<const std::string&>(), py::arg("text"))
      .def_property_readonly("text", &AnyOptimiser::text)
      .def_property_readonly("rate", &AnyOptimiser::rate)
      .def("set_rate", &AnyOptimiser::set_rate, py::arg("rate"))
      .def("update",
           &AnyOptimiser::update,
           py::arg("parameters"),
           py::arg("gradients"),
           py::arg("double"))
      .def("state", &AnyOptimiser::state, py::arg("names"))
      .def("set_state",
           &AnyOptimiser::set_state,
           py::arg("names"),
           py::arg("shapes"),
           py::arg("state"),
           py::arg("double"));
  py::class_<nn::Schedule>(module, "_Schedule", "A factor of the rate for each step.")
      .def(py::init(&nn::Schedule::parse), py::arg("text"))
      .def_property_readonly("text", &nn::Schedule::text)
      .def_property_readonly("is_resolved", &nn::Schedule::is_resolved)
      .def("of_run", &nn::Schedule::of_run, py::arg("steps"), py::arg("steps_per_epoch"))
      .def("at", &nn::Schedule::operator(), py::arg("step"));
  module.def("_clipped",
             &clipped,
             py::arg("gradients"),
             py::arg("limit"),
             py::arg("by"),
             py::arg("double"));
  module.def(
      "_loss", &loss_of, py::arg("text"), py::arg("x"), py::arg("labels"), py::arg("values"));
  module.def(
      "_loss_text",
      [](const std::string& text) { return nn::Loss<float>::make(text).text(); },
      py::arg("text"));
  module.def("_optimiser_names", &nn::optimiser_names);
  module.def("_loss_names", &nn::loss_names);
  define_metrics(module);
}

}  // namespace fenestra::python
