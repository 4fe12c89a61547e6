// The parts of a report that show samples, filters and feature maps.
#include <fenestra/base/page.hpp>
#include <fenestra/cli/report_picture.hpp>
#include <fenestra/cli/report_sections.hpp>
#include <fenestra/cli/report_words.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace fenestra::cli {

namespace {

using page::escaped;
using page::number_text;
using page::percent_text;

constexpr Index kMostFilters = 64;
constexpr Index kMostMaps = 32;

/// The class for what is shown as lines and needs more width.
std::string with_kind(const std::string& style, const Tensor<float>& sample) {
  return style + (sample.rank() == 2 ? " signals" : "");
}

/// A part of a row of pictures that belong together.
std::string part(const std::string& name, const std::string& markup) {
  return "<div><small>" + name + "</small>" + markup + "</div>";
}

std::string shown_of_all(Index shown, Index all) {
  return shown < all ? " The first " + std::to_string(shown) + " of " + grouped(all) + "." : "";
}

/// Over the classes that occur in either; cells without a true class do not count.
double mean_iou(const Tensor<Index>& mask, const Tensor<Index>& prediction) {
  std::map<Index, std::pair<Index, Index>> counts;  // both, either
  for (Index i = 0; i < mask.size(); ++i) {
    if (mask[i] < 0) {
      continue;
    }
    ++counts[mask[i]].second;
    if (mask[i] == prediction[i]) {
      ++counts[mask[i]].first;
    } else {
      ++counts[prediction[i]].second;
    }
  }
  double sum = 0;
  for (const auto& [number, count] : counts) {
    sum += static_cast<double>(count.first) / static_cast<double>(count.second);
  }
  return counts.empty() ? kUnknown : sum / static_cast<double>(counts.size());
}

double mean_square(const Tensor<float>& a, const Tensor<float>& b) {
  double sum = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const double distance = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += distance * distance;
  }
  return sum / static_cast<double>(a.size());
}

bool is_mask(const Tensor<Index>& mask) {
  return mask.rank() >= 1 && mask.rank() <= 3 && mask.size() > 0;
}

}  // namespace

std::string mistakes_section(const TrainingReport& report) {
  std::string items;
  const Tensor<float>* first = nullptr;
  for (const Mistake& mistake : report.mistakes) {
    if (!is_sample(mistake.sample)) {
      continue;
    }
    first = first == nullptr ? &mistake.sample : first;
    const std::string truth = class_name(report, mistake.truth);
    const std::string predicted = class_name(report, mistake.predicted);
    items += "<li><figure class=\"card\">" +
             sample_markup(mistake.sample, truth + ", taken for " + predicted) + "<figcaption><b>" +
             escaped(truth) + "</b> taken for <b>" + escaped(predicted) + "</b>";
    if (mistake.probability >= 0 && mistake.probability <= 1) {
      items += "<span class=\"share\"><i style=\"width:" + decimal(100 * mistake.probability, 1) +
               "%\"></i></span>" + percent_text(mistake.probability) + " sure";
    }
    items += "</figcaption></figure></li>\n";
  }
  return first == nullptr ? ""
                          : "<h2 id=\"mistakes\">Worst mistakes</h2>\n<p>The samples about which "
                            "the network was "
                            "wrong with the most confidence.</p>\n<ul class=\"" +
                                with_kind("gallery", *first) + "\">\n" + items + "</ul>\n";
}

std::string segmentation_section(const TrainingReport& report) {
  std::string rows;
  Index most = 0;
  for (const Segmentation& one : report.segmentations) {
    if (!is_sample(one.sample) || !is_mask(one.mask) ||
        one.mask.shape() != one.prediction.shape()) {
      continue;
    }
    most = std::max(
        {most,
         *std::max_element(one.mask.values().begin(), one.mask.values().end()),
         *std::max_element(one.prediction.values().begin(), one.prediction.values().end())});
    const double iou = mean_iou(one.mask, one.prediction);
    rows += "<figure class=\"card\"><div class=\"" + with_kind("row", one.sample) + "\">" +
            part("sample", sample_markup(one.sample, "the sample")) +
            part("truth", mask_markup(one.mask, "the true classes")) +
            part("network", mask_markup(one.prediction, "the classes that the network found")) +
            part("differences", difference_markup(one.mask, one.prediction, "where they differ")) +
            "</div><figcaption>mean IoU <b>" + percent_text(iou) + "</b></figcaption></figure>\n";
  }
  if (rows.empty()) {
    return "";
  }
  std::string legend = "<ul class=\"legend\">\n";
  constexpr Index kMostNamed = 24;
  for (Index number = 0; number <= std::min(most, kMostNamed - 1); ++number) {
    legend += "<li><i style=\"background:" + class_colour(number) + "\"></i>" +
              class_text(report, number) + "</li>\n";
  }
  return "<h2 id=\"segmentation\">Segmentation</h2>\n" + legend + "</ul>\n<div class=\"rows\">\n" +
         rows + "</div>\n";
}

std::string reconstruction_section(const TrainingReport& report) {
  std::string rows;
  for (const Reconstruction& one : report.reconstructions) {
    if (!is_sample(one.input) || one.input.shape() != one.output.shape()) {
      continue;
    }
    rows += "<figure class=\"card\"><div class=\"" + with_kind("row", one.input) + "\">" +
            part("input", sample_markup(one.input, "the input")) +
            part("output", sample_markup(one.output, "what came out")) +
            part("distance", difference_markup(one.input, one.output, "how far they are apart")) +
            "</div><figcaption>mean squared error <b>" +
            number_text(mean_square(one.input, one.output), 3) + "</b></figcaption></figure>\n";
  }
  return rows.empty() ? ""
                      : "<h2 id=\"reconstructions\">Reconstructions</h2>\n<div class=\"rows\">\n" +
                            rows + "</div>\n";
}

std::string filters_section(const TrainingReport& report) {
  const Tensor<float>& filters = report.filters;
  if (filters.rank() < 3 || filters.rank() > 5 || filters.size() == 0) {
    return "";
  }
  const bool has_colours = has_colour_filters(filters);
  const Index in = has_colours ? 1 : filters.shape()[1];
  const Index all = filters.shape()[0] * in;
  const Index shown = std::min(all, kMostFilters);
  std::string items;
  for (Index i = 0; i < shown; ++i) {
    items +=
        "<li>" + filter_markup(filters, i / in, i % in, "filter " + std::to_string(i)) + "</li>\n";
  }
  return "<h2 id=\"filters\">Filters of the first convolution</h2>\n<p>" +
         std::string(has_colours
                         ? "What each filter looks for, in the colours of its three inputs, "
                           "from the least weight to the greatest."
                         : "Red is positive, blue negative, white zero.") +
         shown_of_all(shown, all) + "</p>\n<ul class=\"small\">\n" + items + "</ul>\n";
}

std::string feature_maps_section(const TrainingReport& report) {
  std::string text;
  for (const FeatureMaps& layer : report.feature_maps) {
    if (!is_sample(layer.maps)) {
      continue;
    }
    const Index all = layer.maps.shape()[0];
    const Index shown = std::min(all, kMostMaps);
    std::string items;
    for (Index c = 0; c < shown; ++c) {
      items +=
          "<li>" +
          channel_markup(layer.maps, c, "channel " + std::to_string(c) + " of " + layer.layer) +
          "</li>\n";
    }
    text += "<h3>" + escaped(layer.layer) + "</h3>\n<p>" + escaped(to_string(layer.maps.shape())) +
            "." + shown_of_all(shown, all) + "</p>\n<ul class=\"" + with_kind("small", layer.maps) +
            "\">\n" + items + "</ul>\n";
  }
  if (text.empty()) {
    return "";
  }
  const std::string sample =
      is_sample(report.sample)
          ? "<div class=\"sample\"><div class=\"" + with_kind("shown", report.sample) + "\">" +
                sample_markup(report.sample, "the sample") + "</div>" +
                "<p>What the layers make of this sample; each map is stretched over all colours, "
                "bright where it is large.</p></div>\n"
          : "<p>Each map is stretched over all colours, bright where it is large.</p>\n";
  return "<h2 id=\"features\">Feature maps</h2>\n" + sample + text;
}

std::string saliency_section(const TrainingReport& report) {
  std::string rows;
  for (const Saliency& one : report.saliency) {
    const Shape& sample = one.sample.shape();
    const Shape& gradient = one.gradient.shape();
    const bool has_cells =
        sample.rank() > gradient.rank() &&
        std::equal(sample.begin() + 1, sample.end(), gradient.begin(), gradient.end());
    if (!is_sample(one.sample) || !(gradient == sample || has_cells)) {
      continue;
    }
    rows += "<figure class=\"card\"><div class=\"" + with_kind("row", one.sample) + "\">" +
            part("sample", sample_markup(one.sample, "the sample")) +
            part("gradient", gradient_markup(one, "the size of the gradient"));
    if (one.sample.rank() > 2) {
      rows += part("both", overlay_markup(one, "the gradient over the sample"));
    }
    rows += "</div>" +
            (one.caption.empty() ? "" : "<figcaption>" + escaped(one.caption) + "</figcaption>") +
            "</figure>\n";
  }
  return rows.empty()
             ? ""
             : "<h2 id=\"saliency\">Saliency</h2>\n<p>The gradient of the class's score by "
               "the input: bright cells are those on which the decision turns.</p>\n"
               "<div class=\"rows\">\n" +
                   rows + "</div>\n";
}

}  // namespace fenestra::cli
