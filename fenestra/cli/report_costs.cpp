// The part of a report that says where time and memory went.
#include <fenestra/base/page.hpp>
#include <fenestra/cli/report_sections.hpp>
#include <fenestra/cli/units.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra::cli {

namespace {

using page::cell;
using page::escaped;
using page::percent_text;

/// Milliseconds, or a dash.
std::string milliseconds_text(double time) {
  return !std::isfinite(time)        ? "–"
         : time > 0 && time < 0.0005 ? "&lt;\u00a01 us"
                                     : time_text(time / 1e3);
}

double or_nothing(double time) { return std::isfinite(time) ? time : 0; }

std::string share_cell(double share, double most) {
  return cell(std::isfinite(share) ? percent_text(share) + page::bar(share, most) : "", "share");
}

std::string run_table(const TrainingReport& report) {
  if (report.costs.empty()) {
    return "";
  }
  double sum = 0;
  for (const CostRow& row : report.costs) {
    sum += or_nothing(row.milliseconds);
  }
  const auto share_of = [&](const CostRow& row) {
    return std::isfinite(row.share) ? row.share : sum > 0 ? row.milliseconds / sum : kUnknown;
  };
  double most = 0;
  for (const CostRow& row : report.costs) {
    const double share = share_of(row);
    most = std::isfinite(share) ? std::max(most, share) : most;
  }
  std::string text =
      "<div class=\"wide\"><table><thead><tr><th>what</th><th class=\"number\">time</th>"
      "<th>of all</th></tr></thead>\n<tbody>\n";
  for (const CostRow& row : report.costs) {
    text += "<tr>" + cell(escaped(row.name), "words") +
            cell(milliseconds_text(row.milliseconds), "number") + share_cell(share_of(row), most) +
            "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

/// A dotted name that may be broken behind its dots.
std::string name_markup(const std::string& name) {
  std::string text;
  for (const char c : escaped(name)) {
    text += c;
    text += c == '.' ? "<wbr>" : "";
  }
  return text;
}

/// The name of a row, and below it what it is and its multiply-adds.
std::string layer_cell(const std::string& name, const std::string& kind, Index multiply_adds) {
  std::string small = escaped(kind);
  if (multiply_adds > 0) {
    small += (small.empty() ? "" : ", ") + grouped(multiply_adds) + " multiply-adds";
  }
  return cell(name_markup(name) + (small.empty() ? "" : "<small>" + small + "</small>"), "layer");
}

std::string step_table(const StepReport& step) {
  if (step.rows.empty() && step.note.empty()) {
    return "";
  }
  std::string text = "<h3 id=\"step\">One step, layer by layer</h3>\n" +
                     (step.note.empty() ? "" : "<p>" + escaped(step.note) + "</p>\n");
  if (step.rows.empty()) {
    return text;
  }
  const double all = or_nothing(step.forward) + or_nothing(step.backward);
  const auto share_of = [&](const StepRow& row) {
    const bool is_known = std::isfinite(row.forward) || std::isfinite(row.backward);
    return is_known && all > 0 ? (or_nothing(row.forward) + or_nothing(row.backward)) / all
                               : kUnknown;
  };
  double most = 0;
  Index work = 0;
  for (const StepRow& row : step.rows) {
    most = std::max(most, or_nothing(share_of(row)));
    work += row.multiply_adds;
  }
  text +=
      "<div class=\"wide\"><table class=\"step\"><thead><tr><th>layer</th><th>of all</th>"
      "<th class=\"number\">forward</th><th class=\"number\">backward</th></tr></thead>\n<tbody>\n";
  for (const StepRow& row : step.rows) {
    text += "<tr>" + layer_cell(row.layer, row.kind, row.multiply_adds) +
            share_cell(share_of(row), most) + cell(milliseconds_text(row.forward), "number") +
            cell(milliseconds_text(row.backward), "number") + "</tr>\n";
  }
  return text + "</tbody><tfoot><tr>" + layer_cell("all", "", work) + cell("") +
         cell(milliseconds_text(step.forward), "number") +
         cell(milliseconds_text(step.backward), "number") + "</tr></tfoot></table></div>\n";
}

std::string memory_table(const TrainingReport& report) {
  if (report.memory.empty() && report.peak_bytes == 0) {
    return "";
  }
  std::size_t most = report.peak_bytes;
  for (const MemoryRow& row : report.memory) {
    most = std::max(most, row.bytes.value_or(0));
  }
  const auto cells = [&](const std::string& name,
                         const std::string& note,
                         const std::optional<std::size_t>& bytes) {
    const double share =
        bytes && most > 0 ? static_cast<double>(*bytes) / static_cast<double>(most) : 0;
    return "<tr>" +
           cell(escaped(name) + (note.empty() ? "" : "<small>" + escaped(note) + "</small>"),
                "words") +
           cell((bytes ? bytes_text(*bytes) : "–") + page::bar(share, 1), "share") + "</tr>\n";
  };
  std::string text =
      "<h3 id=\"memory\">Memory</h3>\n<div class=\"wide\"><table><thead><tr><th>what</th>"
      "<th>bytes</th></tr></thead>\n<tbody>\n";
  for (const MemoryRow& row : report.memory) {
    text += cells(row.name, row.note, row.bytes);
  }
  text += "</tbody>";
  if (report.peak_bytes > 0) {
    text += "<tfoot>" +
            cells("the process at its peak",
                  "all of this, the samples that are held, programs and the library",
                  report.peak_bytes) +
            "</tfoot>";
  }
  return text + "</table></div>\n";
}

}  // namespace

std::string costs_section(const TrainingReport& report) {
  const std::string text = run_table(report) + step_table(report.step) + memory_table(report);
  return text.empty() ? "" : "<h2 id=\"costs\">Where time and memory went</h2>\n" + text;
}

}  // namespace fenestra::cli
