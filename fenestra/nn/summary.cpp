// The table of a model.
#include <fenestra/base/text.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/nn/summary.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fenestra::nn {

namespace {

std::string extents_text(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += (axis > 0 ? "x" : "") + std::to_string(shape[axis]);
  }
  return text.empty() ? "1" : text;
}

std::string field_text(const std::vector<Index>& field) {
  std::string text;
  for (const Index extent : field) {
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  }
  return text.empty() ? "all" : text;
}

std::string count_text(Index count) { return count == 0 ? "-" : grouped(count); }

}  // namespace

std::string Summary::text() const {
  std::vector<std::vector<std::string>> table{
      {"name", "layer", "output", "parameters", "multiply-adds", "sees"}};
  for (const SummaryRow& row : rows) {
    table.push_back({row.name.empty() ? "-" : row.name,
                     row.kind,
                     extents_text(row.output),
                     count_text(row.parameters),
                     count_text(row.multiply_adds),
                     field_text(row.receptive_field)});
  }
  table.push_back(
      {"total", "", extents_text(output), grouped(parameters), grouped(multiply_adds), ""});
  std::string text = columns(
      table, 0, {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right});
  text += "input " + extents_text(input) + ", " + grouped(parameters) + " parameters";
  text += buffers > 0 ? ", " + grouped(buffers) + " numbers in buffers\n" : "\n";
  return text;
}

std::ostream& operator<<(std::ostream& out, const Summary& summary) {
  return out << summary.text();
}

namespace detail {

SummaryMaker::SummaryMaker(const graph::Graph& graph, const Shape& input)
    : graph_(graph), rank_(std::max(0, input.rank() - 2)) {
  summary_.input = input;
}

/// Whether a node reads an input as one number for each channel: a gate, or statistics.
bool is_gate(const Shape& input, const Shape& result) {
  bool is_one = input.rank() == result.rank() && input.rank() > 2;
  bool is_wider = false;
  for (int axis = 2; is_one && axis < input.rank(); ++axis) {
    is_one = input[axis] == 1;
    is_wider = is_wider || result[axis] > 1;
  }
  return is_one && is_wider;
}

/// Gives every new node what its inputs see: what no layer says more about works cell by cell.
void SummaryMaker::follow() {
  while (static_cast<graph::NodeId>(fields_.size()) < graph_.size()) {
    const graph::Node& node = graph_.node(static_cast<graph::NodeId>(fields_.size()));
    std::optional<Field> field;
    if (node.kind == graph::NodeKind::input) {
      field = Field{std::vector<AxisReach>(static_cast<std::size_t>(rank_)), false};
    }
    const bool has_maps = std::any_of(node.in.begin(), node.in.end(), [&](graph::NodeId in) {
      return fields_[static_cast<std::size_t>(in)] && !is_gate(graph_.node(in).shape, node.shape);
    });
    for (const graph::NodeId in : node.in) {
      const std::optional<Field>& seen = fields_[static_cast<std::size_t>(in)];
      if (!seen || (has_maps && is_gate(graph_.node(in).shape, node.shape))) {
        continue;
      }
      if (!field) {
        field = seen;
        continue;
      }
      field->whole = field->whole || seen->whole;
      for (std::size_t axis = 0; axis < std::min(field->axes.size(), seen->axes.size()); ++axis) {
        field->axes[axis].extent = std::max(field->axes[axis].extent, seen->axes[axis].extent);
        field->axes[axis].step = std::max(field->axes[axis].step, seen->axes[axis].step);
      }
    }
    fields_.push_back(std::move(field));
  }
}

std::optional<SummaryMaker::Field> SummaryMaker::field_of(graph::NodeId node) const {
  return node == graph::kNoNode ? std::nullopt : fields_[static_cast<std::size_t>(node)];
}

/// What the nodes since the last row do, and the parameters they are the first to read. The row has
/// the name that these begin with.
SummaryRow SummaryMaker::taken_row() {
  SummaryRow row;
  for (; counted_ < graph_.size(); ++counted_) {
    const graph::Node& node = graph_.node(counted_);
    if (node.kind != graph::NodeKind::operation) {
      continue;
    }
    row.multiply_adds += node.operation->multiply_adds();
    for (const graph::NodeId in : node.in) {
      const graph::Node& read = graph_.node(in);
      if (read.kind == graph::NodeKind::parameter && owned_.insert(in).second) {
        row.parameters += read.elements();
        if (row.name.empty()) {
          row.name = read.name.substr(0, std::min(read.name.rfind('.'), read.name.size()));
        }
      }
    }
  }
  summary_.parameters += row.parameters;
  summary_.multiply_adds += row.multiply_adds;
  return row;
}

void SummaryMaker::layer(const std::string& name,
                         std::string_view kind,
                         const LayerReach& reach,
                         graph::NodeId input,
                         graph::NodeId output,
                         const Shape& shape) {
  follow();
  SummaryRow row = taken_row();
  if (!name.empty()) {
    row.name = name;
  }
  row.kind = kind;
  row.output = shape;
  // A layer without windows sees what the nodes it is made of see, of all their inputs.
  const bool has_windows = reach.whole || !reach.axes.empty();
  std::optional<Field> field = field_of(has_windows || output == graph::kNoNode ? input : output);
  if (field) {
    field->whole = field->whole || reach.whole;
    for (std::size_t axis = 0; axis < std::min(field->axes.size(), reach.axes.size()); ++axis) {
      AxisReach& at = field->axes[axis];
      at.extent += (reach.axes[axis].extent - 1) * at.step;
      at.step *= reach.axes[axis].step;
    }
    if (output != graph::kNoNode) {
      fields_[static_cast<std::size_t>(output)] = field;
    }
    for (const AxisReach& at : field->axes) {
      if (!field->whole) {
        row.receptive_field.push_back(static_cast<Index>(std::ceil(at.extent)));
      }
    }
  }
  summary_.rows.push_back(std::move(row));
}

Summary SummaryMaker::finish(const Shape& output, Index buffers) {
  follow();
  // What the model does outside of layers after the last one.
  SummaryRow rest = taken_row();
  if (rest.parameters > 0 || rest.multiply_adds > 0) {
    rest.kind = "custom";
    rest.output = output;
    summary_.rows.push_back(std::move(rest));
  }
  summary_.output = output;
  summary_.buffers = buffers;
  return std::move(summary_);
}

}  // namespace detail

}  // namespace fenestra::nn
