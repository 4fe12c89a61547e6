// An explanation as a page: totals, the memory of the arena as a picture, costs by operation, and
// every step. One file without scripts that asks for nothing else; base/page.hpp and
// explain_style.hpp have its looks.
#include <fenestra/base/page.hpp>
#include <fenestra/graph/explain.hpp>
#include <fenestra/graph/explain_style.hpp>
#include <fenestra/graph/explain_words.hpp>

#include <algorithm>
#include <vector>

namespace fenestra::graph {

namespace {

using page::bar;
using page::cell;
using page::escaped;
using page::short_count;
using page::tile;

std::string anchor(NodeId node) { return "n" + std::to_string(node); }

std::string link(NodeId node, const std::string& text) {
  return "<a href=\"#" + anchor(node) + "\">" + escaped(text) + "</a>";
}

std::string small(const std::string& text) {
  return text.empty() ? "" : "<small>" + escaped(text) + "</small>";
}

// Totals.

std::string tiles(const Report& report) {
  std::size_t members = 0;
  for (const ReportGroup& group : report.groups) {
    members += group.end - group.first;
  }
  std::string text = "<dl class=\"tiles\">\n";
  if (report.is_profiled) {
    const std::string rate = rate_text(report.multiply_adds, report.seconds);
    text += tile("time of a run",
                 seconds_text(report.seconds),
                 rate.empty() ? "" : rate + " G multiply-adds/s");
  }
  text += tile("multiply-adds", short_count(report.multiply_adds), grouped(report.multiply_adds));
  text += tile("steps",
               grouped(static_cast<std::int64_t>(report.steps.size())),
               members == 0
                   ? "each on its own"
                   : counted(members, "step") + " in " + counted(report.groups.size(), "group"));
  text += tile("arena",
               bytes_text(report.arena_bytes),
               bytes_text(report.bytes_without_reuse) +
                   " without reuse: " + decimal(100 * saved_part(report), 0) + " % saved");
  text += tile("constants", bytes_text(report.constant_bytes), "part of the program");
  return text + "</dl>\n";
}

/// The least round number of which at most `parts` make up `all`; a thousand is `thousand`.
std::size_t round_step(std::size_t all, std::size_t parts, std::size_t thousand) {
  constexpr std::size_t kFactors[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};
  for (std::size_t unit = 1;; unit *= thousand) {
    for (const std::size_t factor : kFactors) {
      if (all <= parts * factor * unit) {
        return factor * unit;
      }
    }
  }
}

// The picture of the plan: time runs to the right, memory upward, costs hang below.

class Picture {
 public:
  explicit Picture(const Report& report)
      : report_(report),
        column_(kWidth / static_cast<double>(std::max<std::size_t>(report.steps.size(), 1))) {}

  std::string text() {
    text_ = "<div class=\"wide\"><svg viewBox=\"0 0 " + number(kLeft + kWidth + kRight) + " " +
            number(kBottom + kGap + kCosts + 24) +
            "\" role=\"img\" aria-label=\"what lies where in the arena, step by step\">\n";
    bands();
    grid();
    buffers();
    live();
    costs();
    steps_axis();
    return text_ + "</svg></div>\n";
  }

 private:
  static constexpr double kLeft = 66;
  static constexpr double kRight = 14;
  static constexpr double kTop = 14;
  static constexpr double kWidth = 1120;
  static constexpr double kHeight = 380;
  static constexpr double kBottom = kTop + kHeight;
  static constexpr double kGap = 14;
  static constexpr double kCosts = 64;

  static std::string number(double value) { return decimal(value, 2); }
  double x(std::size_t step) const { return kLeft + static_cast<double>(step) * column_; }
  double y(double bytes) const {
    const auto all = static_cast<double>(std::max<std::size_t>(report_.arena_bytes, 1));
    return kBottom - bytes / all * kHeight;
  }
  void rectangle(double left, double top, double width, double height, const std::string& style) {
    text_ += "<rect class=\"" + style + "\" x=\"" + number(left) + "\" y=\"" + number(top) +
             "\" width=\"" + number(width) + "\" height=\"" + number(height) + "\">";
  }
  void words(double left, double top, const std::string& anchor_at, const std::string& content) {
    text_ += "<text x=\"" + number(left) + "\" y=\"" + number(top) + "\" text-anchor=\"" +
             anchor_at + "\">" + escaped(content) + "</text>\n";
  }
  void line(double left, double top, double right) {
    text_ += "<path class=\"grid\" d=\"M" + number(left) + " " + number(top) + "H" + number(right) +
             "\"/>\n";
  }

  void bands() {
    for (const ReportGroup& group : report_.groups) {
      rectangle(
          x(group.first), kTop, x(group.end) - x(group.first), kHeight + kGap + kCosts, "band");
      text_ += "<title>group: " + escaped(group_text(group)) + "</title></rect>\n";
    }
  }

  void grid() {
    const auto tick = [&](std::size_t bytes) {
      line(kLeft, y(static_cast<double>(bytes)), kLeft + kWidth);
      words(kLeft - 8, y(static_cast<double>(bytes)) + 4, "end", bytes_text(bytes));
    };
    tick(0);
    const std::size_t apart = round_step(report_.arena_bytes, 5, 1024);
    // The uppermost line is the size itself; a round number just below it would be in its way.
    for (std::size_t bytes = apart; bytes + apart / 3 < report_.arena_bytes; bytes += apart) {
      tick(bytes);
    }
    if (report_.arena_bytes > 0) {
      tick(report_.arena_bytes);
    }
  }

  std::string buffer_name(const Buffer& buffer) const {
    const ReportStep* step = report_.find_step(buffer.node);
    if (buffer.role == Buffer::Role::workers) {
      return "workers of a group";
    }
    return reference(buffer.node) + " " + (step != nullptr ? step->operation : "");
  }

  void buffers() {
    for (const ReportBuffer& placed : report_.buffers) {
      const Buffer& buffer = placed.buffer;
      const auto low = static_cast<double>(buffer.offset);
      const double top = y(low + static_cast<double>(buffer.bytes));
      const double height = std::max(y(low) - top, 0.6);
      const double width = x(placed.last + 1) - x(placed.first);
      const std::string name = buffer_name(buffer);
      text_ += "<a href=\"#" + anchor(buffer.node) + "\">";
      rectangle(
          x(placed.first), top, width, height, "buffer " + std::string(role_name(buffer.role)));
      const ReportStep* step = report_.find_step(buffer.node);
      text_ += "<title>" + escaped(name) + "\n" +
               (buffer.role == Buffer::Role::result && step != nullptr
                    ? escaped(type_text(step->type, step->shape)) + "\n"
                    : "") +
               std::string(role_name(buffer.role)) + ", " + bytes_text(buffer.bytes) + " @" +
               std::to_string(buffer.offset) + "\nsteps " + std::to_string(placed.first) + " to " +
               std::to_string(placed.last) + "</title></rect>";
      // About six units a letter.
      if (height >= 12 && width >= 6.0 * static_cast<double>(name.size()) + 8) {
        text_ += "<text class=\"name\" x=\"" + number(x(placed.first) + 4) + "\" y=\"" +
                 number(top + height / 2 + 3.5) + "\">" + escaped(name) + "</text>";
      }
      text_ += "</a>\n";
    }
  }

  /// Bytes in use; where it is below the upper edge of the buffers, there are gaps.
  void live() {
    std::vector<std::size_t> bytes(report_.steps.size());
    for (const ReportBuffer& placed : report_.buffers) {
      for (std::size_t step = placed.first; step <= placed.last; ++step) {
        bytes[step] += placed.buffer.bytes;
      }
    }
    text_ += "<path class=\"live\" d=\"";
    for (std::size_t step = 0; step < bytes.size(); ++step) {
      const std::string height = number(y(static_cast<double>(bytes[step])));
      text_ += (step == 0 ? "M" + number(x(0)) + " " + height : "V" + height) + "H" +
               number(x(step + 1));
    }
    text_ += "\"/>\n";
  }

  void costs() {
    const double base = kBottom + kGap + kCosts;
    double most = 0;
    for (const ReportStep& step : report_.steps) {
      most = std::max(most, report_.share(step));
    }
    line(kLeft, base, kLeft + kWidth);
    words(kLeft - 8, kBottom + kGap + 10, "end", report_.is_profiled ? "time" : "multiply-");
    words(kLeft - 8, kBottom + kGap + 23, "end", report_.is_profiled ? "per step" : "adds");
    for (std::size_t i = 0; i < report_.steps.size() && most > 0; ++i) {
      const ReportStep& step = report_.steps[i];
      const double height = report_.share(step) / most * kCosts;
      if (height < 0.05) {
        continue;
      }
      text_ += "<a href=\"#" + anchor(step.node) + "\">";
      rectangle(x(i), base - height, std::max(column_ * 0.85, 0.5), height, "cost");
      text_ += "<title>" + escaped(reference(step.node) + " " + step.operation) + "\n" +
               (report_.is_profiled ? seconds_text(step.seconds)
                                    : grouped(step.multiply_adds) + " multiply-adds") +
               ", " + percent_text(report_.share(step)) + "</title></rect></a>\n";
    }
  }

  void steps_axis() {
    const std::size_t count = report_.steps.size();
    const std::size_t apart = round_step(count, 12, 1000);
    for (std::size_t step = 0; step < count; step += apart) {
      words(x(step) + column_ / 2,
            kBottom + kGap + kCosts + 16,
            "middle",
            (step == 0 ? "step " : "") + std::to_string(step));
    }
  }

  const Report& report_;
  const double column_;
  std::string text_;
};

std::string legend(const Report& report) {
  const auto has = [&](Buffer::Role role) {
    return std::any_of(report.buffers.begin(),
                       report.buffers.end(),
                       [&](const ReportBuffer& placed) { return placed.buffer.role == role; });
  };
  std::string text = "<ul class=\"legend\">\n";
  const auto item = [&](const std::string& style, const std::string& words) {
    text += "<li><i class=\"" + style + "\"></i>" + words + "</li>\n";
  };
  if (has(Buffer::Role::result)) {
    item("result", "result of a step");
  }
  if (has(Buffer::Role::workspace)) {
    item("workspace", "what a step leaves for derivatives");
  }
  if (has(Buffer::Role::scratch)) {
    item("scratch", "scratch of a kernel");
  }
  if (has(Buffer::Role::workers)) {
    item("workers", "pieces of results that only a group sees");
  }
  if (!report.groups.empty()) {
    item("band", "steps of a group");
  }
  item("line", "bytes in use");
  return text + "</ul>\n";
}

// Tables.

std::string work_cell(Index multiply_adds) {
  return cell(multiply_adds > 0 ? grouped(multiply_adds) : "", "number");
}

/// Time, share and rate where there was a run, else the share of the multiply-adds; then a bar.
template <class Line>
std::string cost_cells(const Report& report, const Line& one, double most) {
  const double share = report.share(one);
  std::string text = work_cell(one.multiply_adds);
  if (report.is_profiled) {
    text += cell(seconds_text(one.seconds), "number") +
            cell(rate_text(one.multiply_adds, one.seconds), "number");
  }
  return text + cell(share > 0 ? percent_text(share) + bar(share, most) : "", "share");
}

std::string cost_heads(const Report& report) {
  std::string text = "<th class=\"number\">multiply-adds</th>";
  if (report.is_profiled) {
    text +=
        "<th class=\"number\">time</th><th class=\"number\" "
        "title=\"thousand million multiply-adds per second\">G/s</th>";
  }
  return text + "<th>" + (report.is_profiled ? "of the time" : "of all multiply-adds") + "</th>";
}

std::string operations_table(const Report& report) {
  double most = 0;
  for (const ReportOperation& operation : report.operations) {
    most = std::max(most, report.share(operation));
  }
  std::string text =
      "<div class=\"wide\"><table><thead><tr><th>operation</th><th class=\"number\">steps</th>" +
      cost_heads(report) + "</tr></thead>\n<tbody>\n";
  std::string rest;
  for (const ReportOperation& operation : report.operations) {
    const std::string count = std::to_string(operation.steps);
    if (report.share(operation) > 0) {
      text += "<tr>" + cell(escaped(operation.name)) + cell(count, "number") +
              cost_cells(report, operation, most) + "</tr>\n";
    } else {
      rest += (rest.empty() ? "" : ", ") + count + " " + escaped(operation.name);
    }
  }
  if (!rest.empty()) {
    text += "<tr><td class=\"rest\" colspan=\"" + std::to_string(report.is_profiled ? 6 : 4) +
            "\">and, without multiply-adds: " + rest + "</td></tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string memory_cell(const ReportStep& step) {
  std::string text = bytes_text(step.result.bytes) + small(place_text(step.result.place));
  if (step.workspace.bytes > 0) {
    text += small("workspace " + bytes_text(step.workspace.bytes) + " " +
                  place_text(step.workspace.place));
  }
  if (step.packed_bytes > 0) {
    text += small("packed " + bytes_text(step.packed_bytes));
  }
  if (step.scratch.bytes > 0) {
    text +=
        small("scratch " + bytes_text(step.scratch.bytes) + " " + place_text(step.scratch.place));
  }
  return cell(text);
}

std::string step_row(const Report& report, std::size_t i, double most) {
  const ReportStep& step = report.steps[i];
  std::string reads;
  for (const ReportRead& read : step.reads) {
    reads += (reads.empty() ? "" : ", ") + link(read.source, read.name);
  }
  return "<tr class=\"step" + std::string(step.group ? " member" : "") + "\" id=\"" +
         anchor(step.node) + "\">" +
         cell(reference(step.node) + small("step " + std::to_string(i))) +
         cell("<b>" + escaped(step.operation) + "</b>" + small(step.attributes), "operation") +
         cell(reads, "reads") +
         cell(escaped(to_string(step.shape)) + small(std::string(data_type_name(step.type)))) +
         cell(escaped(step.kernel) + small(step.layout)) + memory_cell(step) +
         cost_cells(report, step, most) + "</tr>\n";
}

std::string steps_table(const Report& report) {
  double most = 0;
  for (const ReportStep& step : report.steps) {
    most = std::max(most, report.share(step));
  }
  const int count = report.is_profiled ? 10 : 8;
  std::string text =
      "<div class=\"wide\"><table><thead><tr><th>node</th><th>operation</th><th>reads</th>"
      "<th>result</th><th>kernel, layout</th><th>memory</th>" +
      cost_heads(report) + "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    const std::optional<std::size_t> group = report.steps[i].group;
    if (group && report.groups[*group].first == i) {
      const ReportGroup& loop = report.groups[*group];
      text += "<tr class=\"group\"><td colspan=\"" + std::to_string(count) +
              "\"><span>group: " + escaped(group_text(loop)) +
              (loop.worker_bytes > 0 ? " " + place_text(loop.memory) : "") + "</span></td></tr>\n";
    }
    text += step_row(report, i, most);
  }
  return text + "</tbody></table></div>\n";
}

std::string values_table(const Report& report) {
  std::string text =
      "<div class=\"wide\"><table><thead><tr><th>node</th><th>kind</th><th>name</th><th>shape</th>"
      "<th>type</th><th class=\"number\">bytes</th></tr></thead>\n<tbody>\n";
  for (const ReportValue& value : report.values) {
    text += "<tr id=\"" + anchor(value.node) + "\">" + cell(reference(value.node)) +
            cell(std::string(node_kind_name(value.kind))) + cell(escaped(value.name)) +
            cell(escaped(to_string(value.shape))) + cell(std::string(data_type_name(value.type))) +
            cell(bytes_text(value.bytes), "number") + "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string outputs_table(const Report& report) {
  std::string text =
      "<div class=\"wide\"><table><thead><tr><th>name</th><th>from</th><th>shape</th><th></th></tr>"
      "</thead>\n<tbody>\n";
  for (const ReportOutput& output : report.outputs) {
    std::string remark;
    if (output.overwrites != kNoNode) {
      remark = "replaces " + link(output.overwrites, reference(output.overwrites));
    }
    if (output.is_copied) {
      remark += std::string(remark.empty() ? "" : ", ") + "copied at the end";
    }
    text += "<tr>" + cell(escaped(output.name)) +
            cell(link(output.source, reference(output.source))) +
            cell(escaped(to_string(output.shape))) + cell(remark) + "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace

std::string detail::explain_as_html(const Report& report) {
  std::string text = "<h1>" + escaped(report.title) + "</h1>\n";
  if (!report.subtitle.empty()) {
    text += "<p>" + escaped(report.subtitle) + "</p>\n";
  }
  text += tiles(report);
  text +=
      "<h2>Memory</h2>\n<p>Each rectangle is a buffer of the arena: its place in memory upward, "
      "the steps that need it to the right. Point at one to see what it holds; follow it to its "
      "step.</p>\n" +
      Picture(report).text() + legend(report);
  text += "<h2>Operations</h2>\n" + operations_table(report);
  text +=
      "<h2>Steps</h2>\n<p>In the order in which they run. Steps of a group run for one piece of "
      "the samples or channels after another, so that what they hand on stays in a cache.</p>\n" +
      steps_table(report);
  text += "<details open><summary>Outputs</summary>\n" + outputs_table(report) + "</details>\n";
  text += "<details open><summary>Arguments and constants</summary>\n" + values_table(report) +
          "</details>\n";
  return page::whole(report.title, kExplainStyle, text);
}

}  // namespace fenestra::graph
