// ONNX models for Python: a network behind the type of our own layers, so that whatever takes a
// layer takes it. The class that people see is written in Python (python/fenestra/onnx.py).
#include <fenestra/io/onnx.hpp>
#include <fenestra/nn/summary.hpp>
#include <fenestra/python/module.hpp>
#include <fenestra/python/network.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::python {

namespace py = pybind11;

namespace {

/// What a network is made with beside its file.
struct Choices {
  bool is_double = false;
  bool batch_norm = false;  ///< by the batch in training
  std::vector<std::string> outputs = {};
  std::uint64_t budget = onnx::NetworkOptions{}.budget;

  onnx::NetworkOptions options() const {
    return {.budget = budget,
            .batch_norm = batch_norm ? onnx::BatchNormMode::batch : onnx::BatchNormMode::frozen,
            .outputs = outputs};
  }
};

template <class T>
AnyLayer layer_of(onnx::Network<T> network) {
  return AnyLayer{nn::Layer<T>(std::move(network))};
}

AnyLayer made(onnx::Model model, const Choices& choices) {
  return choices.is_double ? layer_of(onnx::Network<double>(std::move(model), choices.options()))
                           : layer_of(onnx::Network<float>(std::move(model), choices.options()));
}

/// f(network)
template <class F>
auto with_network(const AnyLayer& layer, const F& f) {
  return layer.read([&]<class T>(const nn::Layer<T>& held) {
    const auto* network = held.template as<onnx::Network<T>>();
    if (network == nullptr) {
      throw Error(ErrorCode::unsupported, "onnx: the layer is none of a file\n  fix: onnx.load");
    }
    return f(*network);
  });
}

/// A new last layer, or a head after a value; `sample` is the shape of one sample.
onnx::Model with_other_head(const onnx::Model& model,
                            const Choices& choices,
                            const std::optional<std::string>& cut,
                            const Shape& sample,
                            Index classes,
                            std::uint64_t seed) {
  if (!cut) {
    return onnx::with_classes(model, classes, seed);
  }
  Shape batch{1};
  for (const Index extent : sample) {
    batch.push_back(extent);
  }
  const onnx::Network<float> until(model, {.budget = choices.budget, .outputs = {*cut}});
  return onnx::with_head_at(model, *cut, nn::summary(until, batch).output, classes, seed);
}

AnyLayer load(const std::filesystem::path& path,
              const Choices& choices,
              const std::optional<Index>& classes,
              const std::optional<std::string>& cut,
              const py::object& sample,
              std::uint64_t seed) {
  const Shape shape = sample.is_none() ? Shape{} : shape_in(sample, {"load", "sample"});
  const WithoutGil released;
  onnx::Model model = onnx::read_model(path);
  if (classes) {
    model = with_other_head(model, choices, cut, shape, *classes, seed);
  }
  return made(std::move(model), choices);
}

AnyLayer from_bytes(const py::bytes& bytes, std::string name, const Choices& choices) {
  const std::string_view text = bytes;
  return made(onnx::read_model(std::as_bytes(std::span(text)), std::move(name)), choices);
}

py::bytes bytes_of(const AnyLayer& layer) {
  return with_network(
      layer, [](const auto& network) { return py::bytes(onnx::patched(network.model(), {})); });
}

/// (name, type, extents, labels and None for each axis; None where the rank is open)
py::list infos_of(const std::vector<onnx::ValueInfo>& infos) {
  py::list result;
  for (const onnx::ValueInfo& info : infos) {
    py::object shape = py::none();
    if (info.dims) {
      py::list extents;
      for (const onnx::Dimension& dim : *info.dims) {
        if (dim.extent) {
          extents.append(*dim.extent);
        } else if (!dim.label.empty()) {
          extents.append(dim.label);
        } else {
          extents.append(py::none());
        }
      }
      shape = py::tuple(extents);
    }
    result.append(py::make_tuple(info.name, onnx::type_name(info.type), shape));
  }
  return result;
}

py::dict about(const AnyLayer& layer) {
  return with_network(layer, [](const auto& network) {
    const onnx::Model& model = network.model();
    py::dict metadata;
    for (const auto& [key, value] : model.metadata) {
      metadata[py::str(key)] = value;
    }
    py::dict result;
    result["file"] = model.file_name();
    result["opset"] = model.opset();
    result["metadata"] = metadata;
    result["inputs"] = infos_of(network.inputs());
    result["outputs"] = infos_of(network.outputs());
    result["batch_norm"] = network.options().batch_norm == onnx::BatchNormMode::batch;
    result["chosen"] = network.options().outputs;
    result["budget"] = network.options().budget;
    return result;
  });
}

// --- Running -------------------------------------------------------------------------------------

template <class T>
onnx::Datum<T> datum_in(const py::handle& object, const onnx::ValueInfo* info, const Where& where) {
  if (info != nullptr && info->type != onnx::ElementType::undefined &&
      !onnx::is_floating(info->type)) {
    return onnx::Datum<T>(to_indices(object.ptr(), where), info->type);
  }
  return onnx::Datum<T>(value_in<T>(object.ptr(), where, "the network is"));
}

template <class T>
py::object datum_out(const onnx::Datum<T>& datum) {
  if (datum.is_real() || (!datum.is_known() && datum.as_indices() == nullptr)) {
    return stolen(to_python(datum.value()));
  }
  if (!datum.is_known()) {
    return stolen(to_python(Indices(*datum.as_indices())));
  }
  const py::object numbers = stolen(to_python(datum.numbers()));
  // What came out, whatever the model says about it: many say nothing.
  return datum.type() == onnx::ElementType::boolean ? numbers.attr("astype")("bool") : numbers;
}

py::dict run(const AnyLayer& layer, const py::dict& inputs, AnyPass& pass) {
  const InUse::Hold hold(pass.use(), "pass");
  return with_network(layer, [&]<class T>(const onnx::Network<T>& network) {
    typename onnx::Network<T>::Data data;
    for (const auto& [key, given] : inputs) {
      const std::string name = utf8(py::str(key).ptr());
      const onnx::ValueInfo* info = nullptr;
      for (const onnx::ValueInfo& known : network.inputs()) {
        info = known.name == name ? &known : info;
      }
      data.emplace(name, datum_in<T>(given, info, {"run", name}));
    }
    py::dict results;
    const auto outputs = network.run(data, pass.on<T>());
    for (const onnx::ValueInfo& info : network.outputs()) {
      results[py::str(info.name)] = datum_out(outputs.find(info.name)->second);
    }
    return results;
  });
}

// --- Changing, asking, writing -------------------------------------------------------------------

/// Another layer: what is differentiated by is part of what a layer is.
AnyLayer with_trained(const AnyLayer& layer, const std::vector<std::string>& names, bool trained) {
  return with_network(layer, [&]<class T>(onnx::Network<T> network) {
    for (const std::string& name : names) {
      network.set_trained(name, trained);
    }
    return layer_of(std::move(network));
  });
}

std::vector<std::string> statistics(const AnyLayer& layer) {
  return with_network(layer, [](const auto& network) {
    std::vector<std::string> names;
    for (const auto& weight : network.weights()) {
      if (weight.is_statistic) {
        names.push_back(weight.name);
      }
    }
    return names;
  });
}

std::vector<std::string> texts(const std::vector<onnx::Problem>& problems) {
  std::vector<std::string> result;
  for (const onnx::Problem& problem : problems) {
    result.push_back(to_string(problem));
  }
  return result;
}

std::vector<std::string> check(const AnyLayer& layer, const py::dict& shapes) {
  std::map<std::string, Shape> given;
  for (const auto& [key, shape] : shapes) {
    const std::string name = utf8(py::str(key).ptr());
    given.emplace(name, shape_in(shape, {"check", name}));
  }
  return with_network(layer, [&](const auto& network) { return texts(network.check(given)); });
}

void save(const AnyLayer& layer, const std::filesystem::path& path, const py::dict& metadata) {
  io::Metadata more;
  for (const auto& [key, value] : metadata) {
    more.emplace(utf8(py::str(key).ptr()), utf8(py::str(value).ptr()));
  }
  with_network(layer, [&](const auto& network) {
    for (const auto& weight : network.weights()) {
      if (weight.value().level() != 0) {
        throw Error(ErrorCode::foreign_variable,
                    "save: " + weight.name +
                        " belongs to a transform, a tape or a compiled function\n  fix: outside "
                        "of it");
      }
    }
    const WithoutGil released;
    onnx::save(path, network, more);
  });
}

void export_model(const AnyLayer& layer,
                  const std::filesystem::path& path,
                  const py::object& sample,
                  const py::dict& info) {
  const Shape shape = shape_in(sample, {"export_model", "sample"});
  const nn::ModelInfo said = info_from(info);
  layer.read([&](const auto& typed) {
    const WithoutGil released;
    onnx::export_model(path, typed, shape, said);
  });
}

}  // namespace

void define_onnx(py::module_& module) {
  py::class_<Choices>(module, "_OnnxChoices", "How a network is made of an ONNX file.")
      .def(py::init([](bool is_double,
                       bool batch_norm,
                       std::vector<std::string> outputs,
                       std::uint64_t budget) {
             return Choices{is_double, batch_norm, std::move(outputs), budget};
           }),
           py::arg("double"),
           py::arg("batch_norm"),
           py::arg("outputs"),
           py::arg("budget"));
  module.def("_onnx_load",
             &load,
             py::arg("path"),
             py::arg("choices"),
             py::arg("classes"),
             py::arg("cut"),
             py::arg("sample"),
             py::arg("seed"));
  module.def(
      "_onnx_from_bytes", &from_bytes, py::arg("bytes"), py::arg("name"), py::arg("choices"));
  module.def("_onnx_bytes", &bytes_of, py::arg("layer"));
  module.def("_onnx_about", &about, py::arg("layer"));
  module.def("_onnx_run", &run, py::arg("layer"), py::arg("inputs"), py::arg("pass_"));
  module.def(
      "_onnx_with_trained", &with_trained, py::arg("layer"), py::arg("names"), py::arg("trained"));
  module.def("_onnx_statistics", &statistics, py::arg("layer"));
  module.def("_onnx_check", &check, py::arg("layer"), py::arg("shapes"));
  module.def(
      "_onnx_cut_off",
      [](const AnyLayer& layer) {
        return with_network(layer, [](const auto& network) { return texts(network.cut_off()); });
      },
      py::arg("layer"));
  module.def(
      "_onnx_scores_value",
      [](const AnyLayer& layer) {
        return with_network(
            layer, [](const auto& network) { return onnx::scores_value(network.model()); });
      },
      py::arg("layer"));
  module.def(
      "_onnx_problems",
      [](const std::filesystem::path& path) {
        const WithoutGil released;
        return texts(onnx::problems(onnx::read_model(path)));
      },
      py::arg("path"));
  module.def("_onnx_save", &save, py::arg("layer"), py::arg("path"), py::arg("metadata"));
  module.def("_onnx_export",
             &export_model,
             py::arg("layer"),
             py::arg("path"),
             py::arg("sample"),
             py::arg("info"));
}

}  // namespace fenestra::python
