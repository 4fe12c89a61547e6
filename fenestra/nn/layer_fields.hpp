// What the layers of a kind are told when they are made: the fields of their descriptions. For
// those who offer layers in another language, and for messages; a new layer is in the list by
// itself.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/description.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::nn {

struct LayerField {
  std::string name;
  /// "flag", "number", "whole", "optional whole", "axes" (one for each, or one for all), "padding",
  /// "extents", "word", "pad cells" or "part" (layers, or their names).
  std::string type;
  bool needed = false;
  /// What it is where it is not said; nothing where the layer finds it out by itself.
  std::optional<Description> standard = {};
};

/// In the order in which a layer's constructor takes them. Throws `unknown_model`.
FENESTRA_API std::vector<LayerField> layer_fields(std::string_view kind);

}  // namespace fenestra::nn
