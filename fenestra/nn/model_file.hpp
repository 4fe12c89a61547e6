// A model as one file: safetensors, with the tensors under their dotted names and the rest as
// metadata: what the model is made of, its classes, how its input is prepared.
//
//   nn::save_model("net.safetensors", net, {.classes = {"cat", "dog"}});
//   auto [model, info] = nn::load_model<float>("net.safetensors");   // layers, built again
//   nn::load_weights("net.safetensors", net);                        // into a model that exists
//
// Any model can be saved and its weights loaded; one made of the layers of this library describes
// itself, and can be loaded by a program that does not know it.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/io/safetensors.hpp>
#include <fenestra/nn/data/preprocessing.hpp>
#include <fenestra/nn/description.hpp>
#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/slots.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::nn {

struct ModelInfo {
  std::string name = {};  ///< for people
  std::vector<std::string> classes = {};
  Preprocessing preprocessing = {};
  /// Anything else, under names of its own; those that begin with "fenestra." are the library's.
  io::Metadata more = {};

  friend bool operator==(const ModelInfo&, const ModelInfo&) = default;
};

template <class T>
struct LoadedModel {
  Layer<T> model;
  ModelInfo info;
};

/// Tensors that a file has beside those of the model (the state of an optimiser, averaged weights)
/// begin with these.
inline constexpr std::string_view kOptimiserPrefix = "optimiser.";
inline constexpr std::string_view kAveragePrefix = "average.";

namespace detail {

struct WantedTensor {
  std::string name;
  Shape shape;
};

/// Empty where the model has no description.
template <class Model>
std::optional<Description> described(const Model& model) {
  if constexpr (Describable<Model>) {
    try {
      return model.describe();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unknown_model) {
        throw;
      }
    }
  }
  return std::nullopt;
}

FENESTRA_API io::Metadata metadata_of(const std::optional<Description>& architecture,
                                      const ModelInfo& info);
FENESTRA_API void write_model(const std::filesystem::path& path,
                              const io::TensorMap& tensors,
                              const std::optional<Description>& architecture,
                              const ModelInfo& info);
FENESTRA_API ModelInfo read_info(const io::SafetensorsReader& reader, const std::string& file);
FENESTRA_API Description read_architecture(const io::SafetensorsReader& reader,
                                           const std::string& file);
/// Throws one `shape_mismatch` that lists all that is missing, that nobody asked for, and that has
/// another shape.
FENESTRA_API void require_tensors(const io::SafetensorsReader& reader,
                                  const std::vector<WantedTensor>& wanted,
                                  const std::string& file);

template <class T, class Model>
void fill_from(const io::SafetensorsReader& reader, Model& model, const std::string& file) {
  const std::vector<Slot<T>> all = slots<T>(model);
  std::vector<WantedTensor> wanted;
  for (const Slot<T>& slot : all) {
    wanted.push_back({slot.name, slot.value->shape()});
  }
  require_tensors(reader, wanted, file);
  // All are read before one is changed: a file that breaks off leaves the model as it was.
  std::vector<Tensor<T>> tensors;
  for (const Slot<T>& slot : all) {
    tensors.push_back(reader.read<T>(slot.name));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    *all[i].value = std::move(tensors[i]);
  }
}

}  // namespace detail

/// The numbers of a model by name, as files store them.
template <class Model>
io::TensorMap model_tensors(const Model& model) {
  io::TensorMap tensors;
  for_each_slot(model, [&](const std::string& name, const auto& slot) {
    tensors.emplace(name, slot.value.tensor());
  });
  return tensors;
}

/// What a file says about a model beside its numbers; for checkpoints, `Trainer::metadata`.
template <class Model>
io::Metadata model_metadata(const Model& model, const ModelInfo& info = {}) {
  return detail::metadata_of(detail::described(model), info);
}

/// Writes the file whole or not at all. `more` are tensors beside the model's own, under names that
/// begin with "optimiser.".
template <class Model>
void save_model(const std::filesystem::path& path,
                const Model& model,
                const ModelInfo& info = {},
                const io::TensorMap& more = {}) {
  io::TensorMap tensors = model_tensors(model);
  tensors.insert(more.begin(), more.end());
  detail::write_model(path, tensors, detail::described(model), info);
}

/// The names, classes and preparation that a file states, without reading its tensors.
FENESTRA_API ModelInfo load_info(const std::filesystem::path& path);

/// The model that the file describes, with its numbers. Throws `bad_file` where it describes none.
template <class T>
LoadedModel<T> load_model(const std::filesystem::path& path) {
  const io::SafetensorsReader reader(path);
  const std::string file = path.string();
  LoadedModel<T> result{build_layer<T>(detail::read_architecture(reader, file)),
                        detail::read_info(reader, file)};
  detail::fill_from<T>(reader, result.model, file);
  return result;
}

/// The numbers of a file into a model with the same names and shapes, all or none of them.
template <class Model>
ModelInfo load_weights(const std::filesystem::path& path, Model& model) {
  const io::SafetensorsReader reader(path);
  const std::string file = path.string();
  ModelInfo info = detail::read_info(reader, file);
  detail::fill_from<ScalarOf<TreeValue<Model>>>(reader, model, file);
  return info;
}

}  // namespace fenestra::nn
