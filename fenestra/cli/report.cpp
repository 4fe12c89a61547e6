// The page of a training: what matters first, then how it got there, then what it is made of.
#include <fenestra/base/chart.hpp>
#include <fenestra/base/page.hpp>
#include <fenestra/cli/report.hpp>
#include <fenestra/cli/report_sections.hpp>
#include <fenestra/cli/report_style.hpp>
#include <fenestra/cli/units.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace fenestra::cli {

namespace {

using page::escaped;
using page::number_text;
using page::percent_text;
using page::tile;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += word.empty() ? "" : (text.empty() ? "" : ", ") + word;
  }
  return text;
}

std::string header(const TrainingReport& report) {
  std::string text = "<header>\n<h1>" +
                     escaped(report.title.empty() ? "Report of a training" : report.title) +
                     "</h1>\n";
  const std::string what =
      joined({report.model.empty() ? "" : "<b>" + escaped(report.model) + "</b>",
              report.data.empty() ? "" : "on <b>" + escaped(report.data) + "</b>"});
  return text + (what.empty() ? "" : "<p>" + what + "</p>\n") + "</header>\n";
}

/// What people look for, the last score that is known: of the test, else of an epoch.
std::string score_tile(const TrainingReport& report) {
  const std::string loss =
      std::isnan(report.test_loss) ? "" : "loss " + number_text(report.test_loss);
  if (!std::isnan(report.test_score)) {
    return tile(
        "test " + escaped(report.score_name), percent_text(report.test_score, 2), loss, true);
  }
  for (auto row = report.history.rbegin(); row != report.history.rend(); ++row) {
    if (!std::isnan(row->score)) {
      return tile("validation " + escaped(report.score_name),
                  percent_text(row->score, 2),
                  "after epoch " + std::to_string(row->epoch),
                  true);
    }
  }
  return std::isnan(report.test_loss) ? ""
                                      : tile("test loss", number_text(report.test_loss), "", true);
}

std::string tiles(const TrainingReport& report) {
  std::string text = score_tile(report);
  Index parameters = 0;
  Index work = 0;
  for (const LayerRow& row : report.layers) {
    parameters += row.parameters;
    work += row.multiply_adds;
  }
  double seconds = 0;
  double best = kUnknown;
  Index best_epoch = 0;
  for (const EpochRow& row : report.history) {
    seconds += std::isfinite(row.seconds) ? row.seconds : 0;
    if (std::isfinite(row.score) && !(row.score <= best)) {
      best = row.score;
      best_epoch = row.epoch;
    }
  }
  if (!report.history.empty()) {
    text += tile("epochs",
                 std::to_string(report.history.back().epoch),
                 std::isnan(best)
                     ? ""
                     : "best " + percent_text(best, 2) + " in epoch " + std::to_string(best_epoch));
  }
  if (seconds > 0) {
    text += tile("training took",
                 time_text(seconds),
                 time_text(seconds / static_cast<double>(report.history.size())) + " per epoch");
  }
  if (!report.layers.empty()) {
    text += tile("parameters", page::short_count(parameters), grouped(parameters));
    text += tile("multiply-adds", page::short_count(work), "for one sample");
  }
  if (report.peak_bytes > 0) {
    text += tile("memory", bytes_text(report.peak_bytes), "at most");
  }
  return text.empty() ? "" : "<dl class=\"tiles\">\n" + text + "</dl>\n";
}

/// Words stay whole where the line is broken: an option must not lose its dashes.
std::string command_markup(const std::string& command) {
  std::string text;
  for (std::size_t begin = 0; begin < command.size();) {
    const std::size_t end = std::min(command.find(' ', begin), command.size());
    text += (begin == 0 ? "" : " ");
    if (end > begin) {
      text += "<span>" + escaped(command.substr(begin, end - begin)) + "</span>";
    }
    begin = end + 1;
  }
  return "<pre><code>" + text + "</code></pre>\n";
}

std::string environment_section(const TrainingReport& report) {
  std::string facts;
  const auto add = [&](const std::string& name, const std::string& value) {
    facts += value.empty() ? "" : "<dt>" + name + "</dt><dd>" + escaped(value) + "</dd>\n";
  };
  const Environment& environment = report.environment;
  add("library", environment.version.empty() ? "" : "fenestra " + environment.version);
  add("instruction set", environment.isa);
  add("threads", environment.threads > 0 ? std::to_string(environment.threads) : "");
  add("seed", environment.seed ? std::to_string(*environment.seed) : "");
  return facts.empty()
             ? ""
             : "<h2 id=\"environment\">Made with</h2>\n<dl class=\"facts\">\n" + facts + "</dl>\n";
}

}  // namespace

std::string report_html(const TrainingReport& report) {
  const std::vector<page::Section> sections = {
      {"curves", "Curves", curves_section(report)},
      {"confusion", "Confusion", confusion_section(report)},
      {"mistakes", "Mistakes", mistakes_section(report)},
      {"segmentation", "Segmentation", segmentation_section(report)},
      {"reconstructions", "Reconstructions", reconstruction_section(report)},
      {"saliency", "Saliency", saliency_section(report)},
      {"filters", "Filters", filters_section(report)},
      {"features", "Feature maps", feature_maps_section(report)},
      {"layers", "Layers", layers_section(report)},
      {"costs", "Time and memory", costs_section(report)},
      {"environment", "Made with", environment_section(report)},
  };
  std::string body = header(report) + tiles(report);
  if (!report.command.empty()) {
    body += command_markup(report.command);
  }
  const std::string parts = page::with_contents(sections, "parts of this report");
  body += parts.empty() ? "<main>\n<p>There is nothing to show yet.</p>\n</main>\n" : parts;
  return page::whole(report.title.empty() ? "Report of a training" : report.title,
                     std::string(page::kChartStyle) + std::string(kReportStyle),
                     body);
}

}  // namespace fenestra::cli
