#include <fenestra/base/page.hpp>
#include <fenestra/base/text.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/network_drawing.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/text.hpp>

#include <algorithm>
#include <utility>

namespace fenestra::cli {

namespace {

// --- The tree ----------------------------------------------------------------------------------

/// Rows of a summary by name; each is taken once.
class Rows {
 public:
  explicit Rows(const nn::Summary& summary) : rows_(summary.rows), taken_(rows_.size(), false) {}

  const nn::SummaryRow* take(const std::string& name) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!taken_[i] && rows_[i].name == name) {
        taken_[i] = true;
        return &rows_[i];
      }
    }
    return nullptr;
  }
  const nn::SummaryRow* take_rest() {
    const auto next = std::find(taken_.begin(), taken_.end(), false);
    if (next == taken_.end()) {
      return nullptr;
    }
    *next = true;
    return &rows_[static_cast<std::size_t>(next - taken_.begin())];
  }

 private:
  const std::vector<nn::SummaryRow>& rows_;
  std::vector<bool> taken_;
};

void fill(LayerTree& tree, const nn::SummaryRow& row) {
  tree.output = extents(row.output);
  tree.parameters = row.parameters;
  tree.multiply_adds = row.multiply_adds;
}

/// The layers that a layer is made of, with their names.
std::vector<std::pair<std::string, const nn::Description*>> parts_of(const nn::Description& layer) {
  std::vector<std::pair<std::string, const nn::Description*>> parts;
  const nn::Description* list = layer.find("layers");
  const nn::Description* names = layer.find("names");
  if (list != nullptr && list->list() != nullptr) {
    for (const nn::Description& part : *list->list()) {
      const std::size_t i = parts.size();
      const bool is_named =
          names != nullptr && names->list() != nullptr && i < names->list()->size();
      const std::string* word = is_named ? (*names->list())[i].word() : nullptr;
      parts.emplace_back(word != nullptr ? *word : std::to_string(i), &part);
    }
  }
  for (const auto& [name, field] : *layer.fields()) {
    if (field.fields() != nullptr && field.find("layer") != nullptr) {
      parts.emplace_back(name, &field);
    }
  }
  return parts;
}

LayerTree tree_of(const std::string& name,
                  const std::string& path,
                  const nn::Description& layer,
                  Rows& rows) {
  LayerTree tree{.name = name, .kind = layer.kind(), .output = {}};
  for (const auto& [part, description] : parts_of(layer)) {
    tree.parts.push_back(
        tree_of(part, path.empty() ? part : path + "." + part, *description, rows));
    tree.parameters += tree.parts.back().parameters;
    tree.multiply_adds += tree.parts.back().multiply_adds;
  }
  if (tree.parts.empty()) {
    if (const nn::SummaryRow* row = rows.take(path)) {
      fill(tree, *row);
    }
  }
  return tree;
}

// --- Text --------------------------------------------------------------------------------------

struct Branch {
  const char* next;
  const char* last;
  const char* through;
  const char* blank;
};
constexpr Branch kDrawn{"├─ ", "└─ ", "│  ", "   "};
constexpr Branch kPlain{"|- ", "`- ", "|  ", "   "};

std::string count_text(Index count) { return count == 0 ? "-" : grouped(count); }

void add_rows(const LayerTree& tree,
              const std::string& head,
              const std::string& below,
              const Branch& branch,
              std::vector<std::vector<std::string>>& rows) {
  rows.push_back({head + tree.name,
                  tree.kind,
                  tree.output,
                  count_text(tree.parameters),
                  count_text(tree.multiply_adds)});
  for (std::size_t i = 0; i < tree.parts.size(); ++i) {
    const bool is_last = i + 1 == tree.parts.size();
    add_rows(tree.parts[i],
             below + (is_last ? branch.last : branch.next),
             below + (is_last ? branch.blank : branch.through),
             branch,
             rows);
  }
}

// --- SVG ---------------------------------------------------------------------------------------

constexpr double kGap = 16;   ///< between two layers: room for an arrow
constexpr double kBox = 40;   ///< height of a layer: two lines of text
constexpr double kSide = 12;  ///< between neighbours, and inside a frame
constexpr double kLabel = 18;
constexpr double kSum = 22;    ///< height of what joins branches
constexpr double kLetter = 7;  ///< width of a letter of 12 pixels, a little more than most

/// A piece of a drawing. Data enters at (middle, 0) and leaves at (middle, height).
struct Piece {
  double width = 0;
  double height = 0;
  double middle = 0;
  std::string markup;
};

std::string number(double value) { return decimal(value, 1); }

std::string moved(const Piece& piece, double x, double y) {
  return "<g transform=\"translate(" + number(x) + " " + number(y) + ")\">" + piece.markup +
         "</g>\n";
}

std::string line(double x1, double y1, double x2, double y2, bool has_head) {
  std::string text = "<path class=\"net-line\" d=\"M" + number(x1) + " " + number(y1) + "L" +
                     number(x2) + " " + number(y2) + "\"/>\n";
  if (has_head) {
    text += "<path class=\"net-head\" d=\"M" + number(x2 - 3.5) + " " + number(y2 - 6) +
            "h7l-3.5 6z\"/>\n";
  }
  return text;
}

std::string words(double x, double y, const char* style, const std::string& text) {
  return "<text class=\"" + std::string(style) + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
         "\">" + page::escaped(text) + "</text>\n";
}

double text_width(const std::string& text) {
  return kLetter * static_cast<double>(display_width(text));
}

Piece box(const LayerTree& tree) {
  const std::string title =
      tree.name.empty() || tree.name == tree.kind ? tree.kind : tree.name + "  " + tree.kind;
  std::string facts = tree.output;
  if (tree.parameters > 0) {
    facts += (facts.empty() ? "" : ", ") + grouped(tree.parameters) +
             (tree.parameters == 1 ? " parameter" : " parameters");
  }
  Piece piece;
  piece.width = 2 * kSide + std::max(text_width(title), text_width(facts));
  piece.height = kBox;
  piece.middle = piece.width / 2;
  piece.markup =
      "<rect class=\"" + std::string(tree.parameters > 0 ? "net-layer net-trained" : "net-layer") +
      "\" width=\"" + number(piece.width) + "\" height=\"" + number(kBox) + "\" rx=\"6\"/>\n" +
      words(piece.middle, 17, "net-name", title) + words(piece.middle, 32, "net-fact", facts);
  return piece;
}

enum class Arrows { drawn, none };

/// One under the other, middles in one line.
Piece stacked(const std::vector<Piece>& pieces, Arrows arrows = Arrows::drawn) {
  Piece all;
  double right = 0;
  for (const Piece& piece : pieces) {
    all.middle = std::max(all.middle, piece.middle);
    right = std::max(right, piece.width - piece.middle);
  }
  all.width = all.middle + right;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) {
      if (arrows == Arrows::drawn) {
        all.markup += line(all.middle, all.height, all.middle, all.height + kGap, true);
      }
      all.height += kGap;
    }
    all.markup += moved(pieces[i], all.middle - pieces[i].middle, all.height);
    all.height += pieces[i].height;
  }
  return all;
}

/// A short cut that does nothing.
Piece wire() { return {.width = 2 * kSide, .height = 0, .middle = kSide, .markup = {}}; }

/// All from one place, side by side, to a circle with what joins them.
Piece joined(const std::vector<Piece>& pieces, const std::string& sign) {
  Piece all;
  double height = 0;
  for (const Piece& piece : pieces) {
    all.width += (all.width > 0 ? kSide : 0) + piece.width;
    height = std::max(height, piece.height);
  }
  all.middle = pieces.front().middle;
  const double bottom = kGap + height + kGap;
  double x = 0;
  double last = 0;
  for (const Piece& piece : pieces) {
    const double at = x + piece.middle;
    all.markup += moved(piece, x, kGap);
    all.markup += line(at, 0, at, kGap, piece.height > 0);
    all.markup += line(at, kGap + piece.height, at, bottom + (x > 0 ? kSum / 2 : 0), x == 0);
    last = at;
    x += piece.width + kSide;
  }
  const double round = std::max(kSum, text_width(sign) + kSide);
  all.markup += line(all.middle, 0.75, last, 0.75, false);
  all.markup += line(last, bottom + kSum / 2, all.middle + round / 2, bottom + kSum / 2, false);
  all.markup += "<rect class=\"net-sum\" x=\"" + number(all.middle - round / 2) + "\" y=\"" +
                number(bottom) + "\" width=\"" + number(round) + "\" height=\"" + number(kSum) +
                "\" rx=\"11\"/>\n" + words(all.middle, bottom + 15, "net-fact", sign);
  all.height = bottom + kSum;
  return all;
}

Piece framed(const Piece& inside, const LayerTree& tree) {
  const std::string label =
      tree.name + "  " + tree.kind +
      (tree.parameters > 0 ? "  " + grouped(tree.parameters) + " parameters" : "");
  Piece piece;
  const double content = std::max(inside.width, text_width(label));
  piece.width = content + 2 * kSide;
  piece.middle = kSide + inside.middle + (content - inside.width) / 2;
  piece.height = kLabel + kGap + inside.height + kGap;
  piece.markup = "<rect class=\"net-frame\" width=\"" + number(piece.width) + "\" height=\"" +
                 number(piece.height) + "\" rx=\"8\"/>\n" +
                 words(piece.width / 2, 15, "net-fact", label) +
                 line(piece.middle, kLabel, piece.middle, kLabel + kGap, true) +
                 moved(inside, piece.middle - inside.middle, kLabel + kGap) +
                 line(piece.middle, piece.height - kGap, piece.middle, piece.height, false);
  return piece;
}

Piece inside_of(const LayerTree& tree);

Piece piece_of(const LayerTree& tree) {
  return tree.parts.empty() ? box(tree) : framed(inside_of(tree), tree);
}

Piece inside_of(const LayerTree& tree) {
  std::vector<Piece> pieces;
  if (tree.kind == "residual") {
    std::vector<Piece> ways{wire()};
    for (const LayerTree& part : tree.parts) {
      if (part.name == "body") {
        ways.insert(ways.begin(), piece_of(part));
      } else if (part.name == "projection") {
        ways.back() = piece_of(part);
      }
    }
    pieces.push_back(joined(ways, "+"));
    for (const LayerTree& part : tree.parts) {
      if (part.name == "after") {
        pieces.push_back(piece_of(part));
      }
    }
    return stacked(pieces);
  }
  for (const LayerTree& part : tree.parts) {
    pieces.push_back(piece_of(part));
  }
  if (tree.kind == kListOfNodes) {
    return stacked(pieces, Arrows::none);
  }
  return tree.kind == "branches" ? joined(pieces, "concat") : stacked(pieces);
}

constexpr std::string_view kDrawingStyle = R"css(
.net-name, .net-fact { font: 12px system-ui, "Segoe UI", Roboto, sans-serif; text-anchor: middle; }
.net-name { fill: #1d2327; } .net-fact { fill: #5d6870; font-size: 11px; }
.net-layer, .net-sum { fill: #fff; stroke: #b9c2c9; } .net-trained { fill: #e7f0fa; stroke: #6f9fd1; }
.net-frame { fill: #7f8c95; fill-opacity: .07; stroke: #dfe3e6; }
.net-line { fill: none; stroke: #7f8c95; stroke-width: 1.5; } .net-head { fill: #7f8c95; }
@media (prefers-color-scheme: dark) {
  .net-name { fill: #e6eaed; } .net-fact { fill: #98a4ad; }
  .net-layer, .net-sum { fill: #1b2125; stroke: #46525a; } .net-trained { fill: #1d2f42; stroke: #375f8c; }
  .net-frame { stroke: #2d363c; }
}
)css";

}  // namespace

LayerTree layer_tree(const std::string& name,
                     const nn::Description& model,
                     const nn::Summary& summary) {
  Rows rows(summary);
  LayerTree tree = tree_of(name, "", model, rows);
  while (const nn::SummaryRow* row = rows.take_rest()) {
    LayerTree part{.name = row->name, .kind = row->kind, .output = {}};
    fill(part, *row);
    tree.parameters += part.parameters;
    tree.multiply_adds += part.multiply_adds;
    tree.parts.push_back(std::move(part));
  }
  return tree;
}

Json layers_json(const nn::Summary& summary) {
  Json rows = Json::array();
  for (const nn::SummaryRow& row : summary.rows) {
    rows.push_back({{"name", row.name},
                    {"layer", row.kind},
                    {"output", shape_json(row.output)},
                    {"parameters", row.parameters},
                    {"multiply_adds", row.multiply_adds},
                    {"receptive_field",
                     row.receptive_field.empty() ? Json(nullptr) : Json(row.receptive_field)}});
  }
  return rows;
}

std::string tree_text(const LayerTree& tree, const Terminal& terminal) {
  std::vector<std::vector<std::string>> rows{
      {"name", "layer", "output", "parameters", "multiply-adds"}};
  add_rows(tree, "", "", terminal.has_unicode ? kDrawn : kPlain, rows);
  return table_text(rows,
                    {.align = {Align::left, Align::left, Align::left, Align::right, Align::right},
                     .has_header = true},
                    terminal);
}

std::string tree_svg(const LayerTree& tree, SvgPlace place) {
  const Piece piece = piece_of(tree);
  constexpr double kMargin = 8;
  const std::string width = number(piece.width + 2 * kMargin);
  const std::string height = number(piece.height + 2 * kMargin);
  const std::string_view name_space =
      place == SvgPlace::file ? " xmlns=\"http://www.w3.org/2000/svg\"" : "";
  return "<svg" + std::string(name_space) + " role=\"img\" aria-label=\"the layers of " +
         page::escaped(tree.name) + "\" viewBox=\"0 0 " + width + " " + height + "\" width=\"" +
         width + "\" height=\"" + height + "\" style=\"max-width:" + width + "px\">\n<style>" +
         std::string(kDrawingStyle) + "</style>\n" + moved(piece, kMargin, kMargin) + "</svg>\n";
}

}  // namespace fenestra::cli
