// A network as people draw it: layers in layers, with names, shapes and parameters; as a tree of
// text, and as a drawing in SVG.
#pragma once

#include <fenestra/cli/command.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/nn/description.hpp>
#include <fenestra/nn/summary.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

/// The kind of what is known as a list of nodes only, each of which may read any before it.
inline constexpr std::string_view kListOfNodes = "onnx";

/// A layer with the layers that it is made of.
struct LayerTree {
  std::string name;  ///< among its neighbours: "conv1", "0", "body"
  std::string kind;
  std::string output;  ///< "1x6x28x28"; empty for what is made of others
  Index parameters = 0;
  Index multiply_adds = 0;
  std::vector<LayerTree> parts = {};
};

/// `name` is the model's. Rows of the summary that no layer of the description made, which only
/// foreign layers have, are parts at the end.
LayerTree layer_tree(const std::string& name,
                     const nn::Description& model,
                     const nn::Summary& summary);

/// The rows of a summary for programs.
Json layers_json(const nn::Summary& summary);

/// A line for each layer, within the terminal's width.
std::string tree_text(const LayerTree& tree, const Terminal& terminal);

enum class SvgPlace { file, page };

/// One SVG element, light or dark: data goes down; short cuts and branches go beside each other.
std::string tree_svg(const LayerTree& tree, SvgPlace place);

}  // namespace fenestra::cli
