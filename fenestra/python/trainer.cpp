// The trainer for Python (python/fenestra/training.py).
#include <fenestra/nn/trainer.hpp>
#include <fenestra/python/loader.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/network.hpp>
#include <fenestra/ranks/mpi.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

py::object confusion_object(const std::optional<nn::ConfusionMatrix>& confusion) {
  return confusion ? py::cast(*confusion) : py::none();
}

py::dict evaluation_dict(const nn::Evaluation& evaluation) {
  py::dict result;
  result["loss"] = evaluation.loss;
  result["samples"] = evaluation.samples;
  result["confusion"] = confusion_object(evaluation.confusion);
  result["per_cell"] = evaluation.per_cell;
  result["seconds"] = evaluation.seconds;
  result["score"] = evaluation.score();
  return result;
}
py::object evaluation_object(const std::optional<nn::Evaluation>& evaluation) {
  return evaluation ? py::object(evaluation_dict(*evaluation)) : py::none();
}

py::dict step_dict(const nn::StepResult& step) {
  py::dict result;
  result["step"] = step.step;
  result["loss"] = step.loss;
  result["samples"] = step.samples;
  result["labels"] = step.labels;
  result["correct"] = step.correct;
  result["rate"] = step.rate;
  result["gradient_norm"] = step.gradient_norm;
  result["seconds"] = step.seconds;
  result["traced"] = step.traced;
  return result;
}

py::dict epoch_dict(const nn::EpochResult& epoch) {
  py::dict result;
  result["epoch"] = epoch.epoch;
  result["loss"] = epoch.loss;
  result["samples"] = epoch.samples;
  result["labels"] = epoch.labels;
  result["correct"] = epoch.correct;
  result["validation"] = evaluation_object(epoch.validation);
  result["score"] = epoch.score;
  result["is_best"] = epoch.is_best;
  result["seconds"] = epoch.seconds;
  return result;
}

py::dict profile_dict(const nn::StepProfile& profile) {
  const auto known = [](const std::optional<std::size_t>& bytes) -> py::object {
    return bytes ? py::object(py::int_(*bytes)) : py::none();
  };
  py::dict memory;
  memory["parameters"] = profile.memory.parameters;
  memory["buffers"] = profile.memory.buffers;
  memory["gradients"] = profile.memory.gradients;
  memory["optimiser"] = profile.memory.optimiser;
  memory["average"] = profile.memory.average;
  memory["batch"] = profile.memory.batch;
  memory["activations"] = known(profile.memory.activations);
  memory["arena"] = known(profile.memory.arena);
  py::list parts;
  for (const nn::PartTime& part : profile.parts) {
    parts.append(py::make_tuple(
        part.name,
        part.forward,
        profile.has_backward_parts ? py::object(py::float_(part.backward)) : py::none()));
  }
  py::dict result;
  result["samples"] = profile.samples;
  result["parts"] = parts;
  result["forward"] = profile.forward;
  result["backward"] = profile.backward;
  result["memory"] = memory;
  return result;
}

std::string end_name(nn::FitEnd end) {
  switch (end) {
    case nn::FitEnd::finished: return "finished";
    case nn::FitEnd::stopped: return "stopped";
    case nn::FitEnd::patience: return "patience";
    case nn::FitEnd::diverged: return "diverged";
  }
  return "";
}

// --- The trainer ---------------------------------------------------------------------------------

/// A loss of the program, called as f(scores, labels or targets).
template <class T>
nn::LossFunction<T> loss_function(const py::object& f) {
  if (f.is_none()) {
    return {};
  }
  return [f = kept(f)](const Value<T>& scores, const nn::Target<T>& target) {
    const py::gil_scoped_acquire lock;
    const py::object goal = stolen(target.labels ? to_python(Indices(*target.labels))
                                                 : to_python(Value<T>(*target.values)));
    const py::object loss = py::handle(f.get())(stolen(to_python(Value<T>(scores))), goal);
    return value_in<T>(loss.ptr(), {"loss", "the result"}, "the network is");
  };
}

struct FitArguments {
  Index epochs = 0;
  AnyLoader* validation = nullptr;
  Index patience = 0;
  std::filesystem::path checkpoint = {};
  Index checkpoint_every = 0;
  py::object on_step = py::none();
  py::object on_epoch = py::none();
};

class AnyTrainer {
  // Before those who call it: what it gives must be known.
  template <class F>
  static auto released(const F& f) {
    const WithoutGil without;
    return f();
  }
  template <class F>
  auto using_it(const F& f) {
    const InUse::Hold hold(use_, "trainer");
    return std::visit([&](auto& trainer) { return f(*trainer); }, trainer_);
  }
  /// Not from inside a callback of `fit`, which goes on afterwards.
  template <class F>
  auto changing(const F& f) {
    const InUse::Hold hold(use_, "trainer");
    if (use_.is_nested()) {
      set_text(PyExc_RuntimeError,
               "trainer: it is in the middle of a fit\n  fix: read from callbacks, save or "
               "evaluate, and change it afterwards");
      throw PythonError();
    }
    return std::visit([&](auto& trainer) { return f(*trainer); }, trainer_);
  }

 public:
  AnyTrainer(const AnyLayer& layer, const py::object& loss, const nn::TrainerOptions& options) {
    layer.read([&]<class T>(const nn::Layer<T>& typed) {
      trainer_ = std::make_unique<nn::Trainer<nn::Layer<T>>>(
          plain(typed), loss_function<T>(loss), options);
    });
  }
  ~AnyTrainer() = default;
  AnyTrainer(const AnyTrainer&) = delete;
  AnyTrainer& operator=(const AnyTrainer&) = delete;

  py::dict step(const py::object& inputs, const py::object& labels, const py::object& targets) {
    return changing([&]<class T>(nn::Trainer<nn::Layer<T>>& trainer) {
      const nn::Batch<T> batch = batch_of<T>("step", inputs, labels, targets);
      return step_dict(released([&] { return trainer.step(batch); }));
    });
  }
  py::dict profile(const py::object& inputs, const py::object& labels, const py::object& targets) {
    return changing([&]<class T>(nn::Trainer<nn::Layer<T>>& trainer) {
      const nn::Batch<T> batch = batch_of<T>("profile", inputs, labels, targets);
      return profile_dict(released([&] { return trainer.profile(batch); }));
    });
  }
  py::object predict(const py::object& x) {
    return using_it([&]<class T>(nn::Trainer<nn::Layer<T>>& trainer) {
      const Tensor<T> inputs = numbers_of<T>(x, {"predict", "x"}, "the network is");
      return stolen(to_python(Value<T>(released([&] { return trainer.predict(inputs); }))));
    });
  }
  py::dict evaluate(AnyLoader& loader) {
    return using_it([&]<class T>(nn::Trainer<nn::Layer<T>>& trainer) {
      const InUse::Hold hold(loader.use(), "loader");
      nn::Loader<T>& typed = loader_in<T>(loader, "evaluate");
      bool is_whole = true;
      const nn::Evaluation evaluation = released([&] {
        return trainer.evaluate(typed, [&] {
          const py::gil_scoped_acquire lock;
          return is_whole = PyErr_CheckSignals() == 0;
        });
      });
      if (!is_whole) {
        throw py::error_already_set();
      }
      return evaluation_dict(evaluation);
    });
  }
  py::dict fit(AnyLoader& loader, const FitArguments& arguments) {
    return changing([&]<class T>(nn::Trainer<nn::Layer<T>>& trainer) {
      return fit_on<T>(trainer, loader, arguments);
    });
  }

  void save(const std::filesystem::path& path) {
    using_it([&](auto& trainer) { released([&] { return trainer.save(path), 0; }); });
  }
  std::string resume(const std::filesystem::path& path) {
    return changing(
        [&](auto& trainer) { return released([&] { return trainer.resume(path).string(); }); });
  }
  AnyLayer model(bool averaged) {
    return using_it([&](auto& trainer) {
      return AnyLayer{averaged ? trainer.trained() : std::as_const(trainer).model()};
    });
  }
  void set_model(const AnyLayer& layer) {
    changing([&]<class T>(nn::Trainer<nn::Layer<T>>& trainer) {
      const std::shared_ptr<const nn::Layer<T>> typed = layer.as<T>();
      if (typed == nullptr || names(*typed) != names(std::as_const(trainer).model())) {
        throw Error(ErrorCode::shape_mismatch,
                    "trainer: the model has other parameters, or another dtype\n  fix: another "
                    "nn.Trainer for it");
      }
      trainer.model() = plain(*typed);
    });
  }
  py::dict metadata() {
    return using_it([&](auto& trainer) {
      py::dict result;
      for (const auto& [key, value] : trainer.metadata()) {
        result[py::str(key)] = value;
      }
      return result;
    });
  }
  void set_info(const py::dict& info) {
    const nn::ModelInfo said = info_from(info);
    using_it([&](auto& trainer) {
      trainer.metadata() = nn::model_metadata(std::as_const(trainer).model(), said);
    });
  }
  void set_metadata(const std::string& key, const std::string& value) {
    using_it([&](auto& trainer) { trainer.metadata()[key] = value; });
  }
  py::dict state() {
    return using_it([&](auto& trainer) {
      py::dict result;
      const nn::TrainerOptions& options = trainer.options();
      result["loss"] = options.loss;
      result["optimiser"] = options.optimiser;
      result["schedule"] = options.schedule;
      result["clip_norm"] = options.clip_norm;
      result["clip_value"] = options.clip_value;
      result["average"] = options.average;
      result["seed"] = options.seed;
      result["compiled"] = options.compiled;
      result["leaf"] = options.leaf;
      result["tile"] =
          py::tuple(py::cast(std::vector<Index>(options.tile.begin(), options.tile.end())));
      result["steps"] = trainer.steps();
      result["cursor"] = py::make_tuple(trainer.cursor().epoch, trainer.cursor().next);
      result["best_score"] = trainer.best_score();
      return result;
    });
  }
  void set_cursor(Index epoch, Index next) {
    using_it([&](auto& trainer) { trainer.set_cursor({epoch, next}); });
  }

 private:
  template <class T>
  static nn::Layer<T> plain(const nn::Layer<T>& layer) {
    nn::Layer<T> copy = layer;
    for (const nn::Slot<T>& slot : nn::slots<T>(copy)) {
      if (slot.value->level() != 0) {
        throw Error(ErrorCode::foreign_variable,
                    "trainer: " + slot.name +
                        " belongs to a transform, a tape or a compiled function\n  fix: outside "
                        "of it");
      }
    }
    return copy;
  }
  template <class T>
  static std::vector<std::string> names(const nn::Layer<T>& layer) {
    std::vector<std::string> result;
    nn::Layer<T> copy = layer;
    for (const nn::Slot<T>& slot : nn::slots<T>(copy)) {
      result.push_back(slot.name + to_string(slot.value->shape()));
    }
    return result;
  }
  template <class T>
  static nn::Batch<T> batch_of(std::string_view function,
                               const py::object& inputs,
                               const py::object& labels,
                               const py::object& targets) {
    nn::Batch<T> batch{.inputs = numbers_of<T>(inputs, {function, "inputs"}, "the network is")};
    if (!labels.is_none()) {
      batch.labels = to_integers(labels.ptr(), {function, "labels"});
    }
    if (!targets.is_none()) {
      batch.targets = numbers_of<T>(targets, {function, "targets"}, "the network is");
    }
    return batch;
  }
  template <class T>
  static nn::Loader<T>& loader_in(AnyLoader& loader, std::string_view function) {
    nn::Loader<T>* typed = loader.as<T>();
    if (typed == nullptr) {
      constexpr bool kIsSingle = std::is_same_v<T, float>;
      throw Error(ErrorCode::dtype_mismatch,
                  std::string(function) + ": the loader is " + (kIsSingle ? "float64" : "float32") +
                      ", the network " + (kIsSingle ? "float32" : "float64") +
                      "\n  fix: Loader(..., dtype='" + (kIsSingle ? "float32" : "float64") + "')");
    }
    return *typed;
  }

  template <class T>
  static py::dict fit_on(nn::Trainer<nn::Layer<T>>& trainer,
                         AnyLoader& loader,
                         const FitArguments& arguments) {
    const InUse::Hold hold(loader.use(), "loader");
    std::optional<InUse::Hold> hold_validation;
    nn::Loader<T>& typed = loader_in<T>(loader, "fit");
    std::atomic<bool> stop = false;
    std::optional<py::error_already_set> error;
    nn::FitOptions<T> options{.patience = arguments.patience,
                              .checkpoint = arguments.checkpoint,
                              .checkpoint_every = arguments.checkpoint_every,
                              .stop = &stop};
    if (arguments.validation != nullptr) {
      hold_validation.emplace(arguments.validation->use(), "loader");
      options.validation = &loader_in<T>(*arguments.validation, "fit");
    }
    // What Python raises ends the run after the step, with a checkpoint where one is kept.
    const auto asked = [&](const py::object& callback, const auto& dict_of) {
      const py::gil_scoped_acquire lock;
      try {
        if (PyErr_CheckSignals() != 0) {
          throw py::error_already_set();
        }
        if (!callback.is_none()) {
          callback(dict_of());
        }
      } catch (py::error_already_set& raised) {
        if (!raised.matches(PyExc_StopIteration)) {
          error.emplace(raised);
        }
        stop = true;
      }
    };
    options.on_step = [&](const nn::StepResult& step) {
      asked(arguments.on_step, [&] { return step_dict(step); });
    };
    options.on_validation_batch = [&] {
      if (!stop) {
        asked(py::none(), [] { return py::dict(); });
      }
    };
    Index stopped_after = -1;
    options.on_epoch = [&](const nn::EpochResult& epoch) {
      asked(arguments.on_epoch, [&] { return epoch_dict(epoch); });
      if (stop) {
        stopped_after = epoch.epoch + 1;
        throw EndOfFit();
      }
    };
    nn::FitResult result;
    try {
      result = released([&] { return trainer.fit(typed, arguments.epochs, options); });
    } catch (const EndOfFit&) {
      // The epoch is whole, and so is its checkpoint.
      result.end = nn::FitEnd::stopped;
      result.epochs = stopped_after;
      result.best_score = trainer.best_score();
    }
    if (error) {
      throw py::error_already_set(*error);
    }
    py::dict found;
    found["end"] = end_name(result.end);
    found["epochs"] = result.epochs;
    found["best_score"] = result.best_score;
    found["validation"] = evaluation_object(result.validation);
    return found;
  }
  struct EndOfFit {};

  std::variant<std::unique_ptr<nn::Trainer<nn::Layer<float>>>,
               std::unique_ptr<nn::Trainer<nn::Layer<double>>>>
      trainer_;
  InUse use_;
};

}  // namespace

void define_trainer(py::module_& module) {
  py::class_<ranks::Communicator, ranks::CommunicatorPtr>(
      module, "_Communicator", "Processes that train together.")
      .def_property_readonly("rank", &ranks::Communicator::rank)
      .def_property_readonly("size", &ranks::Communicator::size);
  module.def("_mpi_communicator", &ranks::mpi_communicator);
  py::class_<AnyTrainer>(module, "_Trainer", "A model and all that trains it.")
      .def(py::init([](const AnyLayer& layer,
                       const py::object& loss_function,
                       std::string loss,
                       std::string optimiser,
                       std::string schedule,
                       double clip_norm,
                       double clip_value,
                       double average,
                       std::uint64_t seed,
                       bool compiled,
                       Index leaf,
                       const py::object& tile,
                       ranks::CommunicatorPtr communicator) {
             return std::make_unique<AnyTrainer>(
                 layer,
                 loss_function,
                 nn::TrainerOptions{.loss = std::move(loss),
                                    .optimiser = std::move(optimiser),
                                    .schedule = std::move(schedule),
                                    .clip_norm = clip_norm,
                                    .clip_value = clip_value,
                                    .average = average,
                                    .seed = seed,
                                    .compiled = compiled,
                                    .leaf = leaf,
                                    .tile = shape_in(tile, {"Trainer", "tile"}),
                                    .communicator = std::move(communicator)});
           }),
           py::arg("layer"),
           py::arg("loss_function"),
           py::arg("loss"),
           py::arg("optimiser"),
           py::arg("schedule"),
           py::arg("clip_norm"),
           py::arg("clip_value"),
           py::arg("average"),
           py::arg("seed"),
           py::arg("compiled"),
           py::arg("leaf"),
           py::arg("tile"),
           py::arg("communicator").none(true))
      .def("step", &AnyTrainer::step, py::arg("inputs"), py::arg("labels"), py::arg("targets"))
      .def("predict", &AnyTrainer::predict, py::arg("x"))
      .def(
          "profile", &AnyTrainer::profile, py::arg("inputs"), py::arg("labels"), py::arg("targets"))
      .def("evaluate", &AnyTrainer::evaluate, py::arg("loader"))
      .def(
          "fit",
          [](AnyTrainer& trainer,
             AnyLoader& loader,
             Index epochs,
             AnyLoader* validation,
             Index patience,
             const std::filesystem::path& checkpoint,
             Index checkpoint_every,
             const py::object& on_step,
             const py::object& on_epoch) {
            return trainer.fit(loader,
                               {.epochs = epochs,
                                .validation = validation,
                                .patience = patience,
                                .checkpoint = checkpoint,
                                .checkpoint_every = checkpoint_every,
                                .on_step = on_step,
                                .on_epoch = on_epoch});
          },
          py::arg("loader"),
          py::arg("epochs"),
          py::arg("validation"),
          py::arg("patience"),
          py::arg("checkpoint"),
          py::arg("checkpoint_every"),
          py::arg("on_step"),
          py::arg("on_epoch"))
      .def("save", &AnyTrainer::save, py::arg("path"))
      .def("resume", &AnyTrainer::resume, py::arg("path"))
      .def("model", &AnyTrainer::model, py::arg("averaged"))
      .def("set_model", &AnyTrainer::set_model, py::arg("layer"))
      .def("metadata", &AnyTrainer::metadata)
      .def("set_info", &AnyTrainer::set_info, py::arg("info"))
      .def("set_metadata", &AnyTrainer::set_metadata, py::arg("key"), py::arg("value"))
      .def("state", &AnyTrainer::state)
      .def("set_cursor", &AnyTrainer::set_cursor, py::arg("epoch"), py::arg("next"));
}

}  // namespace fenestra::python
