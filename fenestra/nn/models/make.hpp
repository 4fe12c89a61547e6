// The ready models by name.
#pragma once

#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/models/options.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra::nn {

struct ModelEntry {
  std::string name;
  std::string text;    ///< one line for people
  Shape input;         ///< of one sample that it is made for, with its channels
  std::string output;  ///< "classes", "mask" (a score for each cell) or "picture"
};

/// Sorted by name.
FENESTRA_API const std::vector<ModelEntry>& model_entries();
FENESTRA_API std::vector<std::string> model_names();
/// Throws `unknown_model` with the names that exist.
FENESTRA_API const ModelEntry& model_entry(std::string_view name);

/// A model whose weights are zero: `initialise` draws them, or a file gives them.
template <class T>
FENESTRA_API Layer<T> make_model(std::string_view name, const ModelOptions& options = {});

}  // namespace fenestra::nn
