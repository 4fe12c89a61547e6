// An explanation as a drawing for Graphviz: a box per step, a frame per group, an edge per read.
#include <fenestra/graph/explain.hpp>
#include <fenestra/graph/explain_words.hpp>

#include <algorithm>

namespace fenestra::graph {

namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result + "\"";
}

std::string id_text(NodeId node) { return "n" + std::to_string(node); }

/// An attribute of those lines that are not empty.
std::string label(std::initializer_list<std::string> lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (!line.empty()) {
      const std::string inside = quoted(line);
      text += (text.empty() ? "" : "\\n") + inside.substr(1, inside.size() - 2);
    }
  }
  return "label=\"" + text + "\"";
}

std::string value_style(NodeKind kind) {
  switch (kind) {
    case NodeKind::input: return "shape=oval, fillcolor=\"#cfe5ff\"";
    case NodeKind::data: return "shape=oval, fillcolor=\"#cfe5ff\", style=\"filled,dashed\"";
    case NodeKind::parameter: return "shape=cylinder, fillcolor=\"#ffe3b8\"";
    default: return "shape=plaintext, fillcolor=\"#ffffff\"";
  }
}

std::string step_line(const Report& report, const ReportStep& step) {
  const std::string cost = report.is_profiled ? seconds_text(step.seconds) : "";
  return id_text(step.node) + " [" +
         label({reference(step.node) + " " + step.operation, step.kernel, cost}) + "];\n";
}

std::string edge(NodeId from, const std::string& to, const std::string& attributes) {
  return "  " + id_text(from) + " -> " + to + " [" + attributes + "];\n";
}

}  // namespace

std::string detail::explain_as_dot(const Report& report) {
  const std::string subtitle = report.subtitle.empty() ? "" : ": " + report.subtitle;
  std::string text = "digraph plan {\n  " + label({report.title + subtitle}) +
                     "; labelloc=t; fontname=\"Helvetica\";\n"
                     "  node [shape=box, style=filled, fillcolor=\"#ffffff\", "
                     "fontname=\"Helvetica\", fontsize=11];\n"
                     "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#555555\"];\n";
  for (const ReportValue& value : report.values) {
    text += "  " + id_text(value.node) + " [" +
            label({value.name.empty() ? reference(value.node) : value.name,
                   type_text(value.type, value.shape)}) +
            ", " + value_style(value.kind) + "];\n";
  }
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    const std::optional<std::size_t> group = report.steps[i].group;
    if (group && report.groups[*group].first == i) {
      text += "  subgraph cluster_" + std::to_string(*group) + " {\n    " +
              label({group_text(report.groups[*group])}) +
              "; style=\"rounded,filled\"; color=\"#3a7d44\"; fillcolor=\"#e7f4e4\";\n";
    }
    text += (group ? "    " : "  ") + step_line(report, report.steps[i]);
    if (group && report.groups[*group].end == i + 1) {
      text += "  }\n";
    }
  }
  for (const ReportStep& step : report.steps) {
    for (const ReportRead& read : step.reads) {
      text += edge(read.source,
                   id_text(step.node),
                   label({to_string(read.shape)}) + (read.is_workspace ? ", style=dashed" : ""));
    }
  }
  for (std::size_t i = 0; i < report.outputs.size(); ++i) {
    const ReportOutput& output = report.outputs[i];
    if (output.overwrites != kNoNode) {
      text += edge(output.source,
                   id_text(output.overwrites),
                   label({"replaces"}) + ", style=dotted, constraint=false");
      continue;
    }
    const std::string id = "output" + std::to_string(i);
    text += "  " + id + " [" + label({output.name, to_string(output.shape)}) +
            ", shape=box, peripheries=2, fillcolor=\"#e2d8f3\"];\n" +
            edge(output.source, id, label({to_string(output.shape)}));
  }
  return text + "}\n";
}

}  // namespace fenestra::graph
