// `fenestra explain model --receptive-field`: what one cell of the output sees of every layer
// before it, computed by the windows themselves, as text, JSON or a drawing.
#include <fenestra/base/text.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/receptive_field.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/nn/tiles.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

namespace {

// A field is looked for on pictures up to this extent; only fields as large as that are cut off.
constexpr Index kMostExtent = 1 << 15;

struct Field {
  Shape picture;  ///< (1, channels, spatial...)
  Box cell;       ///< of the output
  std::vector<nn::LayerCells> layers;
  bool is_cut = false;  ///< it reaches the border of the largest picture that was tried
};

/// The cell in the middle of the output.
Box middle_cell(const Shape& output) {
  Box box(output);
  for (int axis = 2; axis < output.rank(); ++axis) {
    box.set(axis, {output[axis] / 2, output[axis] / 2 + 1});
  }
  return box;
}

bool touches_border(const Box& cells, const Shape& shape) {
  bool touches = false;
  for (int axis = 2; axis < shape.rank(); ++axis) {
    touches = touches || cells[axis].begin == 0 || cells[axis].end == shape[axis];
  }
  return touches;
}

/// On pictures twice as large each time, until the field lies inside.
Field field_of(const Network<float>& network) {
  Shape picture{1};
  Index longest = 1;
  for (int axis = 0; axis < network.input.rank(); ++axis) {
    picture.push_back(network.input[axis]);
    longest = axis > 0 ? std::max(longest, network.input[axis]) : longest;
  }
  while (true) {
    const nn::TracedNetwork traced = nn::trace_network<float>(network.model, picture);
    const Shape output = traced.graph.node(traced.graph.outputs()[0].node).shape;
    if (output.rank() < 3) {
      // Refused with the layer's name; where there is none, the output has no cells.
      const nn::TiledNetwork<float> refused(traced, {});
    }
    Field field{picture, middle_cell(output), {}, false};
    field.layers = nn::needed_layers<float>(traced, field.cell);
    field.is_cut = touches_border(field.layers[0].cells, picture);
    if (!field.is_cut || 2 * longest > kMostExtent) {
      return field;
    }
    longest *= 2;
    for (int axis = 2; axis < picture.rank(); ++axis) {
      picture[axis] *= 2;
    }
  }
}

std::string cells_text(const Box& cells) {
  std::string text;
  for (int axis = 2; axis < cells.rank(); ++axis) {
    text += (axis > 2 ? "x" : "") + std::to_string(cells[axis].count());
  }
  return text;
}

std::string place_text(const Box& cells) {
  std::string text;
  for (int axis = 2; axis < cells.rank(); ++axis) {
    text += (axis > 2 ? ", " : "") + std::to_string(cells[axis].begin) + ":" +
            std::to_string(cells[axis].end);
  }
  return text;
}

/// Where along the last axis of the picture cells of a layer lie, by the part of it that is drawn:
/// three times the field.
struct Stretch {
  double begin = 0;
  double end = 1;
};
Stretch stretch_of(const nn::LayerCells& layer, const Field& field) {
  const int axis = layer.output.rank() - 1;
  const auto width = static_cast<double>(field.picture[field.picture.rank() - 1]);
  const IndexRange seen = field.layers[0].cells[field.picture.rank() - 1];
  const auto half = static_cast<double>(seen.count());
  const double low = static_cast<double>(seen.begin) - half / 4;
  const double scale = width / static_cast<double>(layer.output[axis]);
  const auto part = [&](Index cell) {
    return std::clamp((static_cast<double>(cell) * scale - low) / (half * 1.5), 0.0, 1.0);
  };
  return {part(layer.cells[axis].begin), part(layer.cells[axis].end)};
}

std::string headline(const Network<float>& network, const Field& field) {
  return "receptive field of " + network.name + ": one cell of the output sees " +
         cells_text(field.layers[0].cells) + " cells of the picture" +
         (field.is_cut ? ", or more: it reaches the border of a picture of " +
                             extents(spatial(spatial(field.picture)))
                       : "");
}

std::string as_text(const Network<float>& network, const Field& field) {
  constexpr Index kColumns = 40;
  std::vector<std::vector<std::string>> table{{"layer", "sees", "cells", "along the last axis"}};
  for (const nn::LayerCells& layer : field.layers) {
    const Stretch stretch = stretch_of(layer, field);
    const auto begin = static_cast<Index>(stretch.begin * kColumns);
    const Index end = std::max(begin + 1, static_cast<Index>(stretch.end * kColumns));
    std::string bar(static_cast<std::size_t>(kColumns), '.');
    std::fill(bar.begin() + begin, bar.begin() + std::min(end, kColumns), '#');
    table.push_back({layer.layer, cells_text(layer.cells), place_text(layer.cells), bar});
  }
  return headline(network, field) + "\n\n" +
         columns(table, 0, {Align::left, Align::right, Align::left, Align::left});
}

std::string escaped_xml(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    result += letter == '<'   ? "&lt;"
              : letter == '&' ? "&amp;"
              : letter == '"' ? "&quot;"
                              : std::string(1, letter);
  }
  return result;
}

std::string as_svg(const Network<float>& network, const Field& field) {
  constexpr Index kRow = 18;
  constexpr double kWidth = 560;
  constexpr std::size_t kLetter = 7;  // of 12 pixels: what most letters take
  const auto rows = static_cast<Index>(field.layers.size());
  std::vector<std::string> labels;
  std::size_t longest = 0;
  for (const nn::LayerCells& layer : field.layers) {
    labels.push_back(layer.layer + "  " + cells_text(layer.cells));
    longest = std::max(longest, labels.back().size());
  }
  const auto left = static_cast<Index>(16 + longest * kLetter);
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                     std::to_string(left + static_cast<Index>(kWidth) + 20) + "\" height=\"" +
                     std::to_string((rows + 2) * kRow) +
                     "\" font-family=\"sans-serif\" font-size=\"12\" style=\"background: white\">\n"
                     "<text x=\"8\" y=\"15\" font-weight=\"bold\">" +
                     escaped_xml(headline(network, field)) + "</text>\n";
  Index y = kRow + 6;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Stretch stretch = stretch_of(field.layers[i], field);
    const auto rectangle = [&](double from, double to, std::string_view colour) {
      return "<rect x=\"" + decimal(static_cast<double>(left) + from * kWidth, 1) + "\" y=\"" +
             std::to_string(y + 3) + "\" width=\"" +
             decimal(std::max((to - from) * kWidth, 1.0), 1) + "\" height=\"" +
             std::to_string(kRow - 6) + "\" fill=\"" + std::string(colour) + "\"/>\n";
    };
    text += "<text x=\"8\" y=\"" + std::to_string(y + 13) + "\">" + escaped_xml(labels[i]) +
            "</text>\n" + rectangle(0, 1, "#e6e8ec") +
            rectangle(stretch.begin, stretch.end, "#3b6fb6");
    y += kRow;
  }
  return text + "</svg>\n";
}

std::string as_json(const Network<float>& network, const Field& field) {
  Json layers = Json::array();
  for (const nn::LayerCells& layer : field.layers) {
    Json ranges = Json::array();
    for (int axis = 2; axis < layer.cells.rank(); ++axis) {
      ranges.push_back({layer.cells[axis].begin, layer.cells[axis].end});
    }
    layers.push_back(
        {{"layer", layer.layer}, {"output", shape_json(layer.output)}, {"cells", ranges}});
  }
  return json_text({{"model", network.name},
                    {"picture", shape_json(field.picture)},
                    {"is_cut", field.is_cut},
                    {"layers", std::move(layers)}});
}

}  // namespace

std::string receptive_field(const ExplainModelOptions& options) {
  const Network<float> network =
      load_or_make_network<float>(options.model, options.input, Weights::zero);
  const Field field = field_of(network);
  if (options.format == ModelFormat::json) {
    return as_json(network, field);
  }
  if (options.format == ModelFormat::text) {
    return as_text(network, field);
  }
  if (options.format == ModelFormat::html) {
    return as_svg(network, field);
  }
  throw UsageError("--format: a receptive field is drawn as text, json, svg or html");
}

}  // namespace fenestra::cli
