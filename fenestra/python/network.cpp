// Layers, passes, ready models and model files for Python; the classes that people see are written
// in Python (python/fenestra/layers.py).
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layer_fields.hpp>
#include <fenestra/nn/layers/combine.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/summary.hpp>
#include <fenestra/python/convert.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/network.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

// --- Passes ------------------------------------------------------------------------------------

/// Masks of a key. A program would keep the one that it was traced with.
template <class T>
std::unique_ptr<nn::Pass<T>> own_pass(const std::optional<Key>& key) {
  auto pass =
      std::make_unique<nn::Pass<T>>(key ? nn::Pass<T>::training(*key) : nn::Pass<T>::inference());
  if (key) {
    pass->set_mask_source([key = *key](const nn::MaskRequest& request) {
      if (is_tracing()) {
        throw Error(ErrorCode::unsupported,
                    "dropout: in a compiled function every call would have the same mask\n  fix: "
                    "nn.Trainer, whose compiled steps draw new ones, or an inference pass");
      }
      return Value<T>(nn::draw_mask<T>(key, request));
    });
  }
  return pass;
}

/// observer(name, kind, input, output)
template <class T>
typename nn::Pass<T>::Observer observer_of(const std::shared_ptr<PyObject>& observer) {
  return [observer](const nn::LayerCall<T>& call) {
    const py::gil_scoped_acquire lock;
    py::handle(observer.get())(call.name,
                               std::string(call.kind),
                               stolen(to_python(Value<T>(call.input))),
                               stolen(to_python(Value<T>(call.output))));
  };
}

// --- Functions of the program as layers ----------------------------------------------------------

struct EndsPass {
  AnyPass& pass;
  ~EndsPass() { pass.end(); }
};

/// A Python function with what it is made of: parameters and layers, each with a name. It is
/// called as f(parts, x, pass), parts being a list of (name, tensor or layer).
template <class T>
class FunctionLayer {
 public:
  using Scalar = T;
  using Part = std::variant<nn::Parameter<T>, nn::Layer<T>>;
  static constexpr std::string_view kind = "function";

  FunctionLayer(std::shared_ptr<PyObject> f, std::vector<std::pair<std::string, Part>> parts)
      : f_(std::move(f)), parts_(std::move(parts)) {}

  Value<T> operator()(const Value<T>& x, nn::Pass<T>& pass) const {
    const py::gil_scoped_acquire lock;
    // Python may keep it; it is of no use to anybody after the call.
    const py::object lent = py::cast(AnyPass(&pass));
    py::list parts;
    for (const auto& [name, part] : parts_) {
      parts.append(py::make_tuple(name, std::visit([](const auto& p) { return shown(p); }, part)));
    }
    const EndsPass ends{lent.cast<AnyPass&>()};
    const py::object y = py::handle(f_.get())(parts, stolen(to_python(Value<T>(x))), lent);
    return pass.observed_whole(
        kind, x, value_in<T>(y.ptr(), {"function", "the result"}, "the network is"));
  }

  template <class F>
  void slots(F&& f) {
    for (auto& [name, part] : parts_) {
      std::visit([&, &own = name](auto& p) { f(std::string_view(own), p); }, part);
    }
  }

 private:
  static py::object shown(const nn::Parameter<T>& parameter) {
    return stolen(to_python(Value<T>(parameter.value)));
  }
  static py::object shown(const nn::Layer<T>& layer) { return py::cast(AnyLayer{layer}); }

  std::shared_ptr<PyObject> f_;
  std::vector<std::pair<std::string, Part>> parts_;
};

// --- Making layers -------------------------------------------------------------------------------

/// What a file would be blamed for is what the caller wrote.
template <class Make>
AnyLayer made_by_hand(const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_file) {
      throw Error(ErrorCode::invalid_option, error.what());
    }
    throw;
  }
}

/// f(type) with `float` or `double`, as a value of that type.
template <class F>
AnyLayer in_scalar(bool is_double, const F& f) {
  return is_double ? AnyLayer{f(double{})} : AnyLayer{f(float{})};
}

AnyLayer build(const std::string& text, bool is_double) {
  return made_by_hand([&] {
    const nn::Description description = nn::Description::parse(text);
    return in_scalar(is_double, [&]<class T>(T) { return nn::build_layer<T>(description); });
  });
}

template <class T>
nn::Layer<T> layer_in(const AnyLayer& layer, std::string_view kind) {
  const std::shared_ptr<const nn::Layer<T>> found = layer.as<T>();
  if (found == nullptr) {
    constexpr bool kIsSingle = std::is_same_v<T, float>;
    throw Error(ErrorCode::dtype_mismatch,
                std::string(kind) + ": layers of float32 and float64 in one\n  fix: dtype='" +
                    (kIsSingle ? "float32" : "float64") + "' for all of them");
  }
  return *found;
}

using NamedLayers = std::vector<std::pair<std::string, const AnyLayer*>>;

AnyLayer sequential(const NamedLayers& layers, bool is_double) {
  return in_scalar(is_double, [&]<class T>(T) {
    nn::BasicSequential<T> result;
    for (const auto& [name, layer] : layers) {
      result.add(name, layer_in<T>(*layer, "Sequential"));
    }
    return nn::Layer<T>(std::move(result));
  });
}

AnyLayer branches(const NamedLayers& layers, bool is_double) {
  return in_scalar(is_double, [&]<class T>(T) {
    std::vector<nn::Layer<T>> list;
    for (const auto& [name, layer] : layers) {
      list.push_back(layer_in<T>(*layer, "Branches"));
    }
    return nn::Layer<T>(nn::BasicBranches<T>(std::move(list)));
  });
}

AnyLayer residual(const AnyLayer& body, const AnyLayer* projection, const AnyLayer* after) {
  return in_scalar(body.is_double(), [&]<class T>(T) {
    nn::ResidualSettings<T> settings;
    if (projection != nullptr) {
      settings.projection = layer_in<T>(*projection, "Residual");
    }
    if (after != nullptr) {
      settings.after = layer_in<T>(*after, "Residual");
    }
    return nn::Layer<T>(nn::BasicResidual<T>(layer_in<T>(body, "Residual"), std::move(settings)));
  });
}

AnyLayer function(const py::object& f, const py::list& parts, bool is_double) {
  return in_scalar(is_double, [&]<class T>(T) {
    std::vector<std::pair<std::string, typename FunctionLayer<T>::Part>> list;
    for (const py::handle item : parts) {
      const auto pair = py::reinterpret_borrow<py::tuple>(item);
      const std::string name = utf8(py::str(pair[0]).ptr());
      const py::object part = pair[1];
      if (py::isinstance<AnyLayer>(part)) {
        list.emplace_back(name, layer_in<T>(part.cast<const AnyLayer&>(), "Function"));
      } else {
        list.emplace_back(
            name, nn::Parameter<T>{value_in<T>(part.ptr(), {"Function", name}, "the network is")});
      }
    }
    return nn::Layer<T>(FunctionLayer<T>(kept(f), std::move(list)));
  });
}

AnyLayer ready_model(
    const std::string& name, Index classes, Index channels, double width, bool is_double) {
  const nn::ModelOptions options{.classes = classes, .channels = channels, .width = width};
  return in_scalar(is_double, [&]<class T>(T) { return nn::make_model<T>(name, options); });
}

py::list fields_of(const std::string& kind) {
  py::list result;
  for (const nn::LayerField& field : nn::layer_fields(kind)) {
    result.append(py::make_tuple(
        field.name,
        field.type,
        field.needed,
        field.standard ? py::object(py::str(field.standard->text())) : py::object(py::none())));
  }
  return result;
}

// --- What layers do ------------------------------------------------------------------------------

/// Outside Python's transforms: a copy of numbers that a file or a trainer can have.
template <class T>
void require_numbers(const std::vector<nn::Slot<T>>& slots, std::string_view function) {
  for (const nn::Slot<T>& slot : slots) {
    if (slot.value->level() != 0) {
      throw Error(ErrorCode::foreign_variable,
                  std::string(function) + ": " + slot.name +
                      " belongs to a transform, a tape or a compiled function\n  fix: outside of "
                      "it");
    }
  }
}

py::object call(const AnyLayer& layer, const py::object& x, AnyPass& pass) {
  const InUse::Hold hold(pass.use(), "pass");
  return layer.read([&]<class T>(const nn::Layer<T>& typed) {
    const Value<T> given = value_in<T>(x.ptr(), {typed.kind(), "x"}, "the network is");
    return stolen(to_python(typed(given, pass.on<T>())));
  });
}

/// (name, trained, value) of every slot.
py::list slots_of(const AnyLayer& layer) {
  return layer.read_slots([]<class T>(const auto&, const std::vector<nn::Slot<T>>& slots) {
    py::list result;
    for (const nn::Slot<T>& slot : slots) {
      result.append(
          py::make_tuple(slot.name, slot.trained, stolen(to_python(Value<T>(*slot.value)))));
    }
    return result;
  });
}

/// A copy with other values in its slots, in their order; where `all` is not said, in those that
/// are trained. Shapes may differ: gradients of many samples are a layer, too.
AnyLayer with_values(const AnyLayer& layer, const py::list& values, bool all) {
  AnyLayer result = layer;
  result.change([&]<class T>(nn::Layer<T>& copy) {
    std::size_t next = 0;
    for (const nn::Slot<T>& slot : nn::slots<T>(copy)) {
      if ((all || slot.trained) && next < values.size()) {
        const py::object value = values[next++];
        *slot.value = value_in<T>(value.ptr(), {"layer", slot.name}, "the network is");
      }
    }
  });
  return result;
}

/// Other numbers of the same shapes, all or none of them; copies, since Python may go on writing
/// into its own.
void set_values(AnyLayer& layer, const py::dict& values) {
  layer.change([&]<class T>(nn::Layer<T>& copy) {
    for (const nn::Slot<T>& slot : nn::slots<T>(copy)) {
      if (!values.contains(slot.name)) {
        continue;
      }
      const py::object given = values[py::str(slot.name)];
      Value<T> value = value_in<T>(given.ptr(), {"update", slot.name}, "the network is");
      if (value.shape() != slot.value->shape()) {
        throw Error(ErrorCode::shape_mismatch,
                    "update: " + slot.name + " is " + to_string(value.shape()) +
                        ", the network has " + to_string(slot.value->shape()) +
                        "\n  fix: an array of that shape");
      }
      *slot.value = value.level() == 0
                        ? Value<T>(value.tensor().map([](T number) { return number; }))
                        : std::move(value);
    }
  });
}

void initialise(AnyLayer& layer, std::uint64_t seed) {
  layer.change([&](auto& copy) { nn::initialise(copy, Key(seed)); });
}

void apply_updates(AnyLayer& layer, AnyPass& pass) {
  const InUse::Hold hold(pass.use(), "pass");
  layer.change([&]<class T>(nn::Layer<T>& copy) { nn::apply_updates(copy, pass.on<T>()); });
}

/// None where it cannot say.
py::object describe(const AnyLayer& layer) {
  return layer.read([](const auto& typed) -> py::object {
    const auto description = nn::detail::described(typed);
    return description ? py::object(py::str(description->text())) : py::none();
  });
}

py::dict summary_of(const AnyLayer& layer, const py::object& shape) {
  const Shape input = shape_in(shape, {"summary", "shape"});
  return layer.read_slots(
      [&]<class T>(const nn::Layer<T>& typed, const std::vector<nn::Slot<T>>& slots) {
        require_numbers(slots, "summary");
        const nn::Summary summary = nn::summary(typed, input);
        py::list rows;
        for (const nn::SummaryRow& row : summary.rows) {
          rows.append(py::make_tuple(row.name,
                                     row.kind,
                                     shape_tuple(row.output),
                                     row.parameters,
                                     row.multiply_adds,
                                     py::tuple(py::cast(row.receptive_field))));
        }
        py::dict result;
        result["input"] = shape_tuple(summary.input);
        result["output"] = shape_tuple(summary.output);
        result["rows"] = rows;
        result["parameters"] = summary.parameters;
        result["buffers"] = summary.buffers;
        result["multiply_adds"] = summary.multiply_adds;
        result["text"] = summary.text();
        return result;
      });
}

void save(const AnyLayer& layer, const std::filesystem::path& path, const py::dict& info) {
  const nn::ModelInfo said = info_from(info);
  layer.read_slots([&]<class T>(const nn::Layer<T>& typed, const std::vector<nn::Slot<T>>& slots) {
    require_numbers(slots, "save");
    const WithoutGil released;
    nn::save_model(path, typed, said);
  });
}

py::tuple load(const std::filesystem::path& path, bool is_double) {
  nn::ModelInfo info;
  const AnyLayer layer = in_scalar(is_double, [&]<class T>(T) {
    const WithoutGil released;
    nn::LoadedModel<T> loaded = nn::load_model<T>(path);
    info = std::move(loaded.info);
    return std::move(loaded.model);
  });
  return py::make_tuple(layer, info_dict(info));
}

py::dict load_weights(AnyLayer& layer, const std::filesystem::path& path) {
  nn::ModelInfo info;
  layer.change([&](auto& copy) {
    const WithoutGil released;
    info = nn::load_weights(path, copy);
  });
  return info_dict(info);
}

}  // namespace

AnyPass::AnyPass(const std::optional<Key>& key)
    : own_single_(own_pass<float>(key)),
      own_double_(own_pass<double>(key)),
      single_(own_single_.get()),
      double_(own_double_.get()) {}

bool AnyPass::is_training() const {
  return single_ != nullptr ? single_->is_training() : double_ != nullptr && double_->is_training();
}

void AnyPass::observe(const py::object& observer) {
  if (single_ != nullptr) {
    single_->set_observer(observer_of<float>(kept(observer)));
  }
  if (double_ != nullptr) {
    double_->set_observer(observer_of<double>(kept(observer)));
  }
}

Shape shape_in(const py::handle& object, const Where& where) {
  return Convert<Shape>::get(object.ptr(), where);
}

py::dict info_dict(const nn::ModelInfo& info) {
  py::dict result;
  result["name"] = info.name;
  result["classes"] = py::cast(info.classes);
  result["preprocessing"] = nn::to_json(info.preprocessing);
  py::dict more;
  for (const auto& [key, value] : info.more) {
    more[py::str(key)] = value;
  }
  result["more"] = more;
  return result;
}

nn::ModelInfo info_from(const py::dict& info) {
  nn::ModelInfo result;
  result.name = info["name"].cast<std::string>();
  result.classes = info["classes"].cast<std::vector<std::string>>();
  const auto preprocessing = info["preprocessing"].cast<std::string>();
  if (!preprocessing.empty()) {
    result.preprocessing = nn::preprocessing_from_json(preprocessing, "preprocessing");
  }
  for (const auto& [key, value] : info["more"].cast<py::dict>()) {
    result.more.emplace(key.cast<std::string>(), value.cast<std::string>());
  }
  return result;
}

void define_networks(py::module_& module) {
  py::class_<AnyPass>(module, "_Pass", "One run of a model.")
      .def(py::init([](const std::optional<std::uint64_t>& seed) {
             return AnyPass(seed ? std::optional<Key>(Key(*seed)) : std::nullopt);
           }),
           py::arg("seed"))
      .def_property_readonly("is_training", &AnyPass::is_training)
      .def("observe", &AnyPass::observe, py::arg("observer"));
  py::class_<AnyLayer>(module, "_Layer", "A layer of the library.")
      .def_property_readonly("double", &AnyLayer::is_double)
      .def_property_readonly(
          "kind",
          [](const AnyLayer& layer) {
            return layer.read([](const auto& typed) { return std::string(typed.kind()); });
          })
      .def_property_readonly("structure", &AnyLayer::structure)
      .def("call", &call, py::arg("x"), py::arg("pass_"))
      .def("slots", &slots_of)
      .def("with_values", &with_values, py::arg("values"), py::arg("all"))
      .def("set_values", &set_values, py::arg("values"))
      .def("initialise", &initialise, py::arg("seed"))
      .def("apply_updates", &apply_updates, py::arg("pass_"))
      .def("describe", &describe)
      .def("summary", &summary_of, py::arg("shape"))
      .def("save", &save, py::arg("path"), py::arg("info"))
      .def("load_weights", &load_weights, py::arg("path"));
  module.def("_build_layer", &build, py::arg("description"), py::arg("double"));
  module.def("_sequential", &sequential, py::arg("layers"), py::arg("double"));
  module.def("_branches", &branches, py::arg("layers"), py::arg("double"));
  module.def("_residual", &residual, py::arg("body"), py::arg("projection"), py::arg("after"));
  module.def("_function", &function, py::arg("f"), py::arg("parts"), py::arg("double"));
  module.def("_ready_model",
             &ready_model,
             py::arg("name"),
             py::arg("classes"),
             py::arg("channels"),
             py::arg("width"),
             py::arg("double"));
  module.def("_ready_models", [] {
    py::list result;
    for (const nn::ModelEntry& entry : nn::model_entries()) {
      result.append(py::make_tuple(entry.name, entry.text, shape_tuple(entry.input), entry.output));
    }
    return result;
  });
  module.def("_layer_kinds", &nn::layer_kinds);
  module.def("_layer_fields", &fields_of, py::arg("kind"));
  module.def("_load_model", &load, py::arg("path"), py::arg("double"));
  module.def(
      "_load_info",
      [](const std::filesystem::path& path) { return info_dict(nn::load_info(path)); },
      py::arg("path"));
  module.def(
      "_fold_key",
      [](std::uint64_t seed, const std::variant<std::uint64_t, std::string>& part) {
        return std::visit([&](const auto& p) { return Key(seed).fold(p).seed(); }, part);
      },
      py::arg("seed"),
      py::arg("part"));
}

}  // namespace fenestra::python
