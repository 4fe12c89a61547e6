// An explanation as text in columns, and the choice between the forms.
#include <fenestra/graph/explain.hpp>
#include <fenestra/graph/explain_words.hpp>

#include <utility>
#include <vector>

namespace fenestra::graph {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string or_dash(std::string text) { return text.empty() ? "-" : std::move(text); }

std::string values_text(const Report& report) {
  Rows rows;
  for (const ReportValue& value : report.values) {
    rows.push_back({reference(value.node),
                    std::string(node_kind_name(value.kind)),
                    or_dash(value.name),
                    type_text(value.type, value.shape),
                    bytes_text(value.bytes)});
  }
  return "arguments and constants\n" +
         columns(rows, 2, {Align::left, Align::left, Align::left, Align::left, Align::right});
}

/// What a step needs besides its result.
std::string extra_text(const ReportStep& step) {
  std::string text;
  const auto add = [&](const char* what, const ReportMemory& memory) {
    if (memory.bytes > 0) {
      text += (text.empty() ? "" : ", ") + std::string(what) + " " + bytes_text(memory.bytes) +
              " " + place_text(memory.place);
    }
  };
  add("workspace", step.workspace);
  add("scratch", step.scratch);
  if (step.packed_bytes > 0) {
    text += (text.empty() ? "" : ", ") + std::string("packed ") + bytes_text(step.packed_bytes);
  }
  return text;
}

std::vector<std::string> step_cells(const Report& report, const ReportStep& step) {
  std::string reads;
  for (const ReportRead& read : step.reads) {
    reads += (reads.empty() ? "" : " ") + read.name;
  }
  std::vector<std::string> cells{(step.group ? "| " : "  ") + reference(step.node),
                                 step.operation,
                                 or_dash(std::move(reads)),
                                 type_text(step.type, step.shape),
                                 or_dash(step.layout),
                                 or_dash(step.kernel),
                                 bytes_text(step.result.bytes),
                                 place_text(step.result.place),
                                 step.multiply_adds > 0 ? grouped(step.multiply_adds) : "-"};
  if (report.is_profiled) {
    cells.insert(cells.end(),
                 {seconds_text(step.seconds),
                  percent_text(report.share(step)),
                  or_dash(rate_text(step.multiply_adds, step.seconds))});
  }
  cells.push_back(extra_text(step));
  return cells;
}

std::string steps_text(const Report& report) {
  std::vector<std::string> header{"  node",
                                  "operation",
                                  "reads",
                                  "result",
                                  "layout",
                                  "kernel",
                                  "bytes",
                                  "place",
                                  "multiply-adds"};
  std::vector<Align> align(6, Align::left);
  align.insert(align.end(), {Align::right, Align::left, Align::right});
  if (report.is_profiled) {
    header.insert(header.end(), {"time", "share", "G/s"});
    align.insert(align.end(), 3, Align::right);
  }
  Rows rows{std::move(header)};
  for (const ReportStep& step : report.steps) {
    rows.push_back(step_cells(report, step));
  }
  // A group's line stands between the rows and takes no part in their columns.
  const std::string table = columns(rows, 0, align);
  std::string text = "steps\n";
  std::size_t begin = table.find('\n') + 1;
  text += table.substr(0, begin);
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    const std::optional<std::size_t> group = report.steps[i].group;
    if (group && report.groups[*group].first == i) {
      text +=
          "+ " + group_text(report.groups[*group]) +
          (report.groups[*group].worker_bytes > 0 ? " " + place_text(report.groups[*group].memory)
                                                  : "") +
          "\n";
    }
    const std::size_t end = table.find('\n', begin) + 1;
    text += table.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

std::string outputs_text(const Report& report) {
  Rows rows;
  for (const ReportOutput& output : report.outputs) {
    std::string remark = output.is_copied ? "copied at the end" : "";
    if (output.overwrites != kNoNode) {
      remark = "over " + reference(output.overwrites) + (remark.empty() ? "" : ", " + remark);
    }
    rows.push_back(
        {output.name, reference(output.source), to_string(output.shape), std::move(remark)});
  }
  return "outputs\n" + columns(rows, 2);
}

std::string operations_text(const Report& report) {
  Rows rows;
  for (const ReportOperation& operation : report.operations) {
    std::vector<std::string> row{
        operation.name,
        std::to_string(operation.steps),
        operation.multiply_adds > 0 ? grouped(operation.multiply_adds) : "-"};
    if (report.is_profiled) {
      row.push_back(seconds_text(operation.seconds));
    }
    row.push_back(percent_text(report.share(operation)));
    if (report.is_profiled) {
      row.push_back(or_dash(rate_text(operation.multiply_adds, operation.seconds)));
    }
    rows.push_back(std::move(row));
  }
  std::vector<std::string> header{"operation", "steps", "multiply-adds"};
  if (report.is_profiled) {
    header.insert(header.end(), {"time", "share", "G/s"});
  } else {
    header.emplace_back("share");
  }
  rows.insert(rows.begin(), std::move(header));
  return columns(rows, 0, Align::right);
}

std::string totals_text(const Report& report) {
  Rows rows{{"steps",
             grouped(static_cast<std::int64_t>(report.steps.size())) + " (" +
                 counted(report.groups.size(), "group") + ")"},
            {"multiply-adds", grouped(report.multiply_adds)}};
  if (report.is_profiled) {
    const std::string rate = rate_text(report.multiply_adds, report.seconds);
    rows.push_back(
        {"time",
         seconds_text(report.seconds) + (rate.empty() ? "" : " (" + rate + " G multiply-adds/s)")});
  }
  const auto exact = [](std::size_t bytes) {
    return grouped(static_cast<std::int64_t>(bytes)) + " bytes";
  };
  rows.push_back({"arena",
                  exact(report.arena_bytes) + " (" + bytes_text(report.arena_bytes) + ", " +
                      bytes_text(report.bytes_without_reuse) + " without reuse)"});
  rows.push_back({"constants", exact(report.constant_bytes)});
  return columns(rows, 0);
}

}  // namespace

std::string detail::explain_as_text(const Report& report) {
  std::string text = report.title;
  if (!report.subtitle.empty()) {
    text += (text.empty() ? "" : ": ") + report.subtitle;
  }
  text += text.empty() ? "" : "\n\n";
  return text + values_text(report) + "\n" + steps_text(report) + "\n" + outputs_text(report) +
         "\n" + operations_text(report) + "\n" + totals_text(report);
}

std::string explain(const Report& report, ExplainFormat format) {
  switch (format) {
    case ExplainFormat::text: return detail::explain_as_text(report);
    case ExplainFormat::dot: return detail::explain_as_dot(report);
    case ExplainFormat::html: return detail::explain_as_html(report);
  }
  return "";
}

}  // namespace fenestra::graph
