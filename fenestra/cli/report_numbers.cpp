// The parts of a report that show numbers: curves and tables.
#include <fenestra/base/chart.hpp>
#include <fenestra/base/page.hpp>
#include <fenestra/cli/report_picture.hpp>
#include <fenestra/cli/report_sections.hpp>
#include <fenestra/cli/report_words.hpp>
#include <fenestra/cli/units.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace fenestra::cli {

namespace {

using page::cell;
using page::Chart;
using page::ChartPoint;
using page::ChartSeries;
using page::escaped;
using page::number_text;
using page::percent_text;

constexpr std::size_t kMostSteps = 400;  ///< points of the loss by steps
constexpr Index kMostInTable = 40;       ///< classes
constexpr std::size_t kMostPairs = 8;

// Curves.

/// Means of as many steps as it takes to leave `kMostSteps` points. A mean with something that is
/// not a number is not one.
std::vector<ChartPoint> step_points(const TrainingReport& report, double epochs) {
  const std::vector<double>& losses = report.step_losses;
  const std::size_t piece = (losses.size() + kMostSteps - 1) / kMostSteps;
  const double steps_per_epoch = report.steps_per_epoch > 0
                                     ? static_cast<double>(report.steps_per_epoch)
                                     : static_cast<double>(losses.size()) / epochs;
  std::vector<ChartPoint> points;
  for (std::size_t begin = 0; begin < losses.size(); begin += piece) {
    const std::size_t end = std::min(begin + piece, losses.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      sum += losses[i];
    }
    const double middle = static_cast<double>(begin + end) / 2;
    points.push_back({middle / steps_per_epoch, sum / static_cast<double>(end - begin)});
  }
  return points;
}

template <class Field>
ChartSeries series_of(const TrainingReport& report,
                      const std::string& name,
                      const std::string& style,
                      Field field) {
  ChartSeries series{name, style, {}};
  for (const EpochRow& row : report.history) {
    series.points.push_back({static_cast<double>(row.epoch), row.*field});
  }
  return series;
}

bool has_finite(const ChartSeries& series) {
  return std::any_of(series.points.begin(), series.points.end(), [](const ChartPoint& point) {
    return std::isfinite(point.y);
  });
}

std::string epoch_note(const TrainingReport& report, const EpochRow& row) {
  std::string text = "epoch " + std::to_string(row.epoch);
  const auto add = [&](const std::string& name, double value, const std::string& shown) {
    text += std::isnan(value) ? "" : "\n" + name + " " + shown;
  };
  add("training loss", row.training_loss, number_text(row.training_loss));
  add("validation loss", row.validation_loss, number_text(row.validation_loss));
  add(report.score_name, row.score, percent_text(row.score, 2));
  add("learning rate", row.learning_rate, number_text(row.learning_rate));
  add("took", row.seconds, time_text(row.seconds));
  return text;
}

std::string history_table(const TrainingReport& report) {
  std::string text =
      "<details class=\"numbers\"><summary>The numbers</summary>\n<div class=\"wide\"><table>"
      "<thead><tr><th class=\"number\">epoch</th><th class=\"number\">training loss</th>"
      "<th class=\"number\">validation loss</th><th class=\"number\">" +
      escaped(report.score_name) +
      "</th><th class=\"number\">learning rate</th><th class=\"number\">time</th></tr></thead>\n"
      "<tbody>\n";
  for (const EpochRow& row : report.history) {
    text += "<tr>" + cell(std::to_string(row.epoch), "number") +
            cell(number_text(row.training_loss), "number") +
            cell(number_text(row.validation_loss), "number") +
            cell(percent_text(row.score, 2), "number") +
            cell(number_text(row.learning_rate), "number") +
            cell(time_text(row.seconds), "number") + "</tr>\n";
  }
  return text + "</tbody></table></div></details>\n";
}

// The confusion matrix.

struct Pair {
  Index truth;
  Index predicted;
  Index count;
};

std::vector<Pair> most_confused(const Tensor<Index>& matrix) {
  std::vector<Pair> pairs;
  for (Index i = 0; i < matrix.shape()[0]; ++i) {
    for (Index j = 0; j < matrix.shape()[0]; ++j) {
      if (i != j && matrix.at(i, j) > 0) {
        pairs.push_back({i, j, matrix.at(i, j)});
      }
    }
  }
  std::stable_sort(
      pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  pairs.resize(std::min(pairs.size(), kMostPairs));
  return pairs;
}

std::string share_text(Index part, Index all) {
  return all > 0 ? decimal(100 * static_cast<double>(part) / static_cast<double>(all), 0) + "%"
                 : "–";
}

/// A cell of row `i`, shaded by its part of the row.
std::string matrix_cell(const Tensor<Index>& matrix, Index i, Index j, Index row_sum) {
  const Index count = matrix.at(i, j);
  if (count <= 0) {
    return "<td class=\"none\">·</td>";
  }
  const double part = static_cast<double>(count) / static_cast<double>(row_sum);
  // Few mistakes are to be seen too.
  const double shade = i == j ? 0.12 + 0.78 * part : 0.15 + 0.85 * std::sqrt(part);
  return "<td class=\"" + std::string(i == j ? "right" : "wrong") + (shade > 0.6 ? " strong" : "") +
         "\" style=\"--part:" + decimal(shade, 2) + "\">" + grouped(count) + "</td>";
}

std::string matrix_table(const TrainingReport& report) {
  const Tensor<Index>& matrix = report.confusion;
  const Index count = matrix.shape()[0];
  std::string text =
      "<div class=\"wide\"><table class=\"confusion\"><thead><tr><th scope=\"col\">true "
      "\\ found</th>";
  for (Index j = 0; j < count; ++j) {
    text += "<th scope=\"col\">" + class_text(report, j) + "</th>";
  }
  text += "<th scope=\"col\">recall</th></tr></thead>\n<tbody>\n";
  std::vector<Index> found(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) {
    Index sum = 0;
    for (Index j = 0; j < count; ++j) {
      sum += matrix.at(i, j);
      found[static_cast<std::size_t>(j)] += matrix.at(i, j);
    }
    text += "<tr><th scope=\"row\">" + class_text(report, i) + "</th>";
    for (Index j = 0; j < count; ++j) {
      text += matrix_cell(matrix, i, j, sum);
    }
    text += cell(share_text(matrix.at(i, i), sum), "sum") + "</tr>\n";
  }
  text += "<tr><th scope=\"row\">precision</th>";
  for (Index j = 0; j < count; ++j) {
    text += cell(share_text(matrix.at(j, j), found[static_cast<std::size_t>(j)]), "sum");
  }
  return text + "<td></td></tr>\n</tbody></table></div>\n";
}

}  // namespace

std::string curves_section(const TrainingReport& report) {
  double last = 0;
  for (const EpochRow& row : report.history) {
    last = std::max(last, static_cast<double>(row.epoch));
  }
  const bool has_steps = !report.step_losses.empty();
  const double steps = static_cast<double>(report.step_losses.size());
  const bool has_epochs = last > 0;
  const double end = has_epochs ? last : steps;
  // Steps run from the beginning; without them the first thing known is the end of an epoch.
  Chart loss{.title = "Loss",
             .x_name = has_epochs ? "epoch" : "step",
             .series = {},
             .notes = {},
             .x_low = has_steps || end <= 1 ? 0.0 : 1.0,
             .x_high = std::max(end, 1.0),
             .x_is_whole = has_epochs,
             .is_main = true};
  for (const EpochRow& row : report.history) {
    loss.notes.push_back({static_cast<double>(row.epoch), epoch_note(report, row)});
  }
  const auto chart_of = [&](const std::string& title, std::vector<ChartSeries> series) {
    Chart chart = loss;
    chart.title = title;
    chart.x_low = end <= 1 ? 0 : 1;
    chart.is_main = false;
    chart.may_be_log = false;
    chart.series = std::move(series);
    std::erase_if(chart.series, [](const ChartSeries& one) { return !has_finite(one); });
    return chart;
  };
  if (has_steps) {
    loss.series.push_back(
        {"training, step by step", "faint", step_points(report, has_epochs ? last : steps)});
  }
  ChartSeries training = series_of(
      report, has_steps ? "training, mean" : "training", "first", &EpochRow::training_loss);
  // A mean over an epoch belongs into its middle, beside the steps that it is the mean of.
  for (ChartPoint& point : training.points) {
    point.x -= has_steps ? 0.5 : 0;
  }
  loss.series.push_back(std::move(training));
  loss.series.push_back(series_of(report, "validation", "second", &EpochRow::validation_loss));
  std::erase_if(loss.series, [](const ChartSeries& one) { return !has_finite(one); });

  std::string charts = chart_markup(loss);
  std::string score_title = report.score_name;
  if (!score_title.empty() && score_title[0] >= 'a' && score_title[0] <= 'z') {
    score_title[0] = static_cast<char>(score_title[0] - 'a' + 'A');
  }
  Chart score =
      chart_of(score_title, {series_of(report, report.score_name, "third", &EpochRow::score)});
  score.is_percent = true;
  charts += chart_markup(score);
  charts += chart_markup(chart_of(
      "Learning rate", {series_of(report, "learning rate", "first", &EpochRow::learning_rate)}));
  Chart seconds =
      chart_of("Seconds per epoch", {series_of(report, "seconds", "first", &EpochRow::seconds)});
  seconds.has_zero = true;
  charts += chart_markup(seconds);
  if (charts.empty() && report.history.empty()) {
    return "";
  }
  return "<h2 id=\"curves\">How it learned</h2>\n" +
         (charts.empty() ? "" : "<div class=\"charts\">\n" + charts + "</div>\n") +
         (report.history.empty() ? "" : history_table(report));
}

bool has_confusion(const TrainingReport& report) {
  const Shape& shape = report.confusion.shape();
  return shape.rank() == 2 && shape[0] == shape[1] && shape[0] > 0;
}

std::string confusion_section(const TrainingReport& report) {
  if (!has_confusion(report)) {
    return "";
  }
  std::string text =
      "<h2 id=\"confusion\">Confusion matrix</h2>\n<p>A row for each true class, a "
      "column for each class that the network found.</p>\n<div class=\"beside\">\n";
  text += report.confusion.shape()[0] <= kMostInTable
              ? matrix_table(report)
              : "<div class=\"matrix\">" +
                    matrix_markup(report.confusion, "the confusion matrix, bright where often") +
                    "</div>\n";
  std::string pairs;
  for (const Pair& pair : most_confused(report.confusion)) {
    pairs += "<li><b>" + class_text(report, pair.truth) + "</b> taken for <b>" +
             class_text(report, pair.predicted) + "</b>: " + grouped(pair.count) +
             (pair.count == 1 ? " time" : " times") + "</li>\n";
  }
  return text +
         (pairs.empty() ? ""
                        : "<div><h3>Confused most often</h3>\n<ul>\n" + pairs + "</ul></div>\n") +
         "</div>\n";
}

std::string layers_section(const TrainingReport& report) {
  if (report.layers.empty()) {
    return "";
  }
  std::string text =
      "<h2 id=\"layers\">Layers</h2>\n<div class=\"wide\"><table><thead><tr><th>layer</th>"
      "<th>output</th><th class=\"number\">parameters</th><th class=\"number\">multiply-adds</th>"
      "<th>of all multiply-adds</th><th class=\"number\">receptive field</th></tr></thead>\n"
      "<tbody>\n";
  Index parameters = 0;
  Index work = 0;
  Index most = 0;
  for (const LayerRow& row : report.layers) {
    parameters += row.parameters;
    work += row.multiply_adds;
    most = std::max(most, row.multiply_adds);
  }
  for (const LayerRow& row : report.layers) {
    const auto share =
        work > 0 ? static_cast<double>(row.multiply_adds) / static_cast<double>(work) : 0;
    text +=
        "<tr>" +
        cell(escaped(row.layer) +
                 (row.kind.empty() ? "" : "<small>" + escaped(row.kind) + "</small>"),
             "layer") +
        cell(escaped(to_string(row.output))) +
        cell(row.parameters > 0 ? grouped(row.parameters) : "", "number") +
        cell(row.multiply_adds > 0 ? grouped(row.multiply_adds) : "", "number") +
        cell(share > 0 ? percent_text(share) +
                             page::bar(share, static_cast<double>(most) / static_cast<double>(work))
                       : "",
             "share") +
        cell(escaped(row.receptive_field), "number") + "</tr>\n";
  }
  return text + "</tbody><tfoot><tr>" + cell("all") + cell("") +
         cell(grouped(parameters), "number") + cell(grouped(work), "number") + cell("") + cell("") +
         "</tr></tfoot></table></div>\n";
}

}  // namespace fenestra::cli
