// What matters first: which bars hold; then where we stand beside the others, how near to the
// machine's limit, how speed grows with sizes, and the choice of kernels.
#include <fenestra/base/chart.hpp>
#include <fenestra/base/page.hpp>
#include <fenestra/bench/bars.hpp>
#include <fenestra/bench/page.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fenestra::bench {

namespace {

using page::cell;
using page::escaped;
using page::number_text;
using page::percent_text;
using page::tile;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

constexpr std::string_view kBenchStyle = R"css(
td.met { color: var(--third); font-weight: 600; }
td.missed { color: var(--second); font-weight: 600; }
td.case { white-space: normal; min-width: 14rem; overflow-wrap: anywhere; }
td.none { color: var(--soft); }
td.text { white-space: normal; min-width: clamp(11rem, 24vw, 26rem); }
figure.chart { margin-top: 1rem; }
.charts figure.chart { margin-top: 0; }
)css";

std::string microseconds(const std::optional<Times>& times) {
  return times ? number_text(times->median * 1e6, times->median < 1e-4 ? 3 : 4) : "–";
}

std::string_view style_of(char direction) {
  switch (direction) {
    case 'F': return "first";
    case 'D': return "second";
    case 'W': return "third";
    default: return "fourth";
  }
}

std::vector<std::pair<std::string, std::string>> direction_legend(bool of_models) {
  if (of_models) {
    return {{"fourth", "training and inference, eager and compiled"}};
  }
  return {{"first", "forward"},
          {"second", "gradient of the input"},
          {"third", "gradient of the weight"},
          {"fourth", "compiled, or on a tape"}};
}

/// What a dot says.
std::string note_of(const Result& r) {
  std::string text = r.label() + "\nours " + microseconds(r.ours) + " µs, " + r.kernel;
  const auto add = [&](std::string_view name, const std::optional<Times>& times) {
    text += times ? "\n" + std::string(name) + " " + microseconds(times) + " µs" : "";
  };
  add("oneDNN", r.plain);
  add("oneDNN in its own layout", r.any);
  add("torch", r.torch);
  add("XNNPACK", r.xnnpack);
  if (const auto share = r.share()) {
    text += "\n" + percent_text(*share, 0) + " of the limit";
  }
  return text;
}

bool grows(const Result& r) { return !r.what.word("grows:").empty(); }

bool is_peak_case(const Result& r) {
  return r.what.is_conv() && r.limit > 0 && !r.what.has("overhead") && !grows(r);
}

/// A row for each case that `wanted` takes, with a dot for each measurement of it.
template <class Wanted, class Value>
std::vector<page::ChartRow> rows_of(const Record& record, Wanted&& wanted, Value&& value) {
  std::vector<page::ChartRow> rows;
  for (const Result& r : record.results) {
    const std::optional<double> x = wanted(r) ? value(r) : std::nullopt;
    if (!x) {
      continue;
    }
    if (rows.empty() || rows.back().name != r.what.name) {
      rows.push_back({r.what.name, {}});
    }
    rows.back().dots.push_back({*x, std::string(style_of(r.direction)), note_of(r)});
  }
  return rows;
}

std::string header(const Record& record) {
  std::string peers;
  const auto add = [&](const std::string& peer) { peers += (peers.empty() ? "" : ", ") + peer; };
  if (!record.onednn.empty()) {
    add("oneDNN <b>" + escaped(record.onednn) + "</b>");
  }
  if (!record.torch.empty()) {
    add("torch <b>" + escaped(record.torch) + "</b>");
  }
  if (record.has_xnnpack) {
    add("<b>XNNPACK</b>");
  }
  return "<header>\n<h1>How fast we are</h1>\n<p>" +
         std::string(record.is_quick ? "A quick run" : "A full run") + " of the bench on <b>" +
         escaped(record.isa) + "</b>, " + (peers.empty() ? "without peers" : "beside " + peers) +
         ", in " + decimal(record.seconds / 60, 1) + " minutes.</p>\n</header>\n";
}

std::string tiles(const Record& record, const std::vector<Bar>& bars) {
  const auto met = std::count_if(bars.begin(), bars.end(), [](auto& bar) { return bar.holds(); });
  const auto judged =
      std::count_if(bars.begin(), bars.end(), [](auto& bar) { return bar.cases > 0; });
  std::string text = tile(
      "bars met",
      std::to_string(met) + " of " + std::to_string(judged),
      judged < static_cast<std::ptrdiff_t>(bars.size())
          ? std::to_string(static_cast<std::ptrdiff_t>(bars.size()) - judged) + " without a case"
          : "",
      true);
  text += tile(
      "measurements",
      grouped(static_cast<std::int64_t>(record.results.size())),
      record.left_out > 0 ? grouped(static_cast<std::int64_t>(record.left_out)) + " left out" : "");
  const auto mean_tile = [&](const std::string& name, auto ratio) {
    if (const auto mean = geometric_mean(record.results, ratio)) {
      text += tile(name, decimal(*mean, 2) + " ×", "geometric mean");
    }
  };
  mean_tile("faster than the best peer", &Result::against_best);
  mean_tile("faster than oneDNN", &Result::against_plain);
  mean_tile("faster than torch", &Result::against_torch);
  for (const Limits& limits : record.limits) {
    text += tile(
        "peak, " + std::to_string(limits.threads) + (limits.threads == 1 ? " thread" : " threads"),
        decimal(limits.f32_flops / 1e9, 0) + " GFLOP/s",
        "f64 " + decimal(limits.f64_flops / 1e9, 0) + ", copy " +
            decimal(limits.cached_copy / 1e9, 0) + " and " + decimal(limits.memory_copy / 1e9, 0) +
            " GB/s");
  }
  return "<dl class=\"tiles\">\n" + text + "</dl>\n";
}

std::string bars_section(const std::vector<Bar>& bars) {
  std::string text =
      "<h2 id=\"bars\">Bars</h2>\n<p>What was to be reached, and the case that is farthest from "
      "it.</p>\n<div class=\"wide\"><table><thead><tr><th></th><th>bar</th><th>found</th>"
      "<th>needed</th><th class=\"number\">cases</th><th>worst case</th><th>kernel</th>"
      "<th class=\"number\">of the limit</th></tr></thead>\n<tbody>\n";
  for (const Bar& bar : bars) {
    const bool is_judged = bar.cases > 0;
    const std::string count =
        bar.missed > 0 && bar.cases > 1
            ? std::to_string(bar.missed) + " of " + std::to_string(bar.cases) + " miss it"
            : std::to_string(bar.cases);
    const std::string verdict = !is_judged    ? cell("no case", "none")
                                : bar.holds() ? cell("met", "met")
                                              : cell("missed", "missed");
    text += "<tr>" + verdict + cell(escaped(bar.text), "text") +
            cell(is_judged ? bar.found() : "–") + cell(escaped(bar.needed())) +
            cell(is_judged ? count : "", "number") + cell(escaped(bar.worst_case), "case") +
            cell(escaped(bar.worst_kernel)) +
            cell(bar.worst_share ? percent_text(*bar.worst_share, 0) : "", "number") + "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string peers_section(const Record& record) {
  const auto chart = [&](const std::string& title, bool of_models, auto wanted) {
    return chart_markup(
        page::RowChart{.title = title,
                       .x_name = "the best peer's time / ours; right of 1 we are faster",
                       .rows = rows_of(
                           record,
                           [&](const Result& r) { return !grows(r) && wanted(r); },
                           [](const Result& r) { return r.against_best(); }),
                       .legend = direction_legend(of_models),
                       .marks = {1},
                       .least = 0.1,
                       .most = 20,
                       .is_log = true});
  };
  const auto is_pool = [](const Result& r) { return r.what.op.find("pool") != std::string::npos; };
  const std::string charts =
      chart("Convolutions, channels first",
            false,
            [](const Result& r) { return r.what.is_conv() && !r.what.is_channels_last(); }) +
      chart("Convolutions, channels last",
            false,
            [](const Result& r) { return r.what.is_conv() && r.what.is_channels_last(); }) +
      chart("Pools", false, is_pool) +
      chart("Elementwise functions",
            false,
            [](const Result& r) { return r.what.op == "elementwise"; }) +
      chart("Models", true, [&](const Result& r) {
        return !r.what.is_conv() && !is_pool(r) && r.what.op != "elementwise";
      });
  return charts.empty()
             ? ""
             : "<h2 id=\"peers\">Beside the best peer</h2>\n<p>A dot for every batch, number of "
               "threads and direction of a case; what is beyond the axis lies on its edge.</p>\n" +
                   charts;
}

std::string peak_section(const Record& record) {
  const auto chart = [&](const std::string& title, auto wanted) {
    return chart_markup(page::RowChart{
        .title = title,
        .x_name = "of the multiply-adds that the machine can do, measured beside each case",
        .rows = rows_of(
            record,
            [&](const Result& r) { return is_peak_case(r) && wanted(r); },
            [](const Result& r) { return r.share(); }),
        .legend = direction_legend(false),
        .marks = {0, 1},
        .most = 2,
        .is_percent = true});
  };
  const std::string charts =
      chart("Single precision, channels first",
            [](const Result& r) { return !r.what.is_double() && !r.what.is_channels_last(); }) +
      chart("Single precision, channels last",
            [](const Result& r) { return !r.what.is_double() && r.what.is_channels_last(); }) +
      chart("Double precision", [](const Result& r) { return r.what.is_double(); });
  return charts.empty() ? ""
                        : "<h2 id=\"peak\">Share of the peak</h2>\n<p>Transforms (fast) do less "
                          "than the arithmetic that is counted, and may be beyond it.</p>\n" +
                              charts;
}

/// One chart of a family `grows:WHAT` in one direction and layout.
std::string growth_chart(const Record& record,
                         const std::string& what,
                         char direction,
                         bool channels_last) {
  page::Chart chart{
      .title = "",
      .x_name = what,
      .series = {{"ours", "first", {}}, {"oneDNN", "second", {}}, {"torch", "third", {}}},
      .notes = {},
      .x_is_log = true,
      .is_percent = true,
      .may_be_log = false,
      .has_zero = true};
  for (const Result& r : record.results) {
    const auto at = r.what.number("at:");
    if (r.what.word("grows:") != what || r.direction != direction || !at ||
        r.what.is_channels_last() != channels_last || r.limit <= 0) {
      continue;
    }
    const auto add = [&](std::size_t series, const std::optional<Times>& times) {
      chart.series[series].points.push_back({*at, times ? r.limit / times->median : kNothing});
    };
    add(0, r.ours);
    add(1, r.plain);
    add(2, r.torch);
    chart.x_ticks.push_back(*at);
    chart.notes.push_back({*at, note_of(r)});
  }
  if (chart.x_ticks.size() < 2) {
    return "";
  }
  chart.x_low = chart.x_ticks.front();
  chart.x_high = chart.x_ticks.back();
  std::erase_if(chart.series, [](const page::ChartSeries& series) {
    return std::none_of(
        series.points.begin(), series.points.end(), [](auto& p) { return std::isfinite(p.y); });
  });
  const std::string directions = direction == 'F'   ? "forward"
                                 : direction == 'D' ? "gradient of the input"
                                                    : "gradient of the weight";
  chart.title = what + ", " + directions + (channels_last ? ", channels last" : "");
  chart.title[0] = static_cast<char>(chart.title[0] - 'a' + 'A');
  return chart_markup(chart);
}

std::string growth_section(const Record& record) {
  std::string charts;
  for (const char* what : {"batch", "channels", "space", "kernel"}) {
    for (const bool channels_last : {false, true}) {
      for (const char direction : {'F', 'D', 'W'}) {
        charts += growth_chart(record, what, direction, channels_last);
      }
    }
  }
  return charts.empty() ? ""
                        : "<h2 id=\"growth\">How it grows</h2>\n<p>Share of the peak with the size "
                          "of one thing, on one thread.</p>\n<div class=\"charts\">\n" +
                              charts + "</div>\n";
}

std::string choice_section(const Record& record) {
  if (record.choices.empty()) {
    return "";
  }
  constexpr std::size_t kMostShown = 40;
  std::vector<std::string> isas;
  for (const Choice& choice : record.choices) {
    if (std::find(isas.begin(), isas.end(), choice.isa) == isas.end()) {
      isas.push_back(choice.isa);
    }
  }
  std::string text =
      "<h2 id=\"choice\">Choice of kernels</h2>\n<p>The time of the kernel that was chosen beside "
      "that of the best candidate that accepts the problem, on layers of networks and on random "
      "problems that leave a choice.</p>\n";
  for (const std::string& isa : isas) {
    std::vector<Choice> of_isa;
    for (const Choice& choice : record.choices) {
      if (choice.isa == isa) {
        of_isa.push_back(choice);
      }
    }
    std::stable_sort(
        of_isa.begin(), of_isa.end(), [](auto& a, auto& b) { return a.ratio() > b.ratio(); });
    text += "<h3>" + escaped(isa) + ": " + percent_text(right_share(record.choices, isa)) + " of " +
            grouped(static_cast<std::int64_t>(of_isa.size())) +
            " choices are within 10\u00a0% of the best</h3>\n";
    const auto right = std::find_if(
        of_isa.begin(), of_isa.end(), [](auto& choice) { return choice.ratio() <= kRightChoice; });
    of_isa.resize(std::min(static_cast<std::size_t>(right - of_isa.begin()), kMostShown));
    std::string rows;
    for (const Choice& choice : of_isa) {
      rows +=
          "<tr>" + cell(decimal(choice.ratio(), 2) + " ×", "number") +
          cell(escaped(choice.problem) +
                   (choice.source.empty() ? "" : "<small>" + escaped(choice.source) + "</small>"),
               "case") +
          cell(escaped(choice.direction)) + cell(escaped(choice.chosen)) +
          cell(number_text(choice.chosen_seconds * 1e6, 3), "number") + cell(escaped(choice.best)) +
          cell(number_text(choice.best_seconds * 1e6, 3), "number") + "</tr>\n";
    }
    if (!rows.empty()) {
      text +=
          "<div class=\"wide\"><table><thead><tr><th class=\"number\">longer</th><th>problem</th>"
          "<th>direction</th><th>chosen</th><th class=\"number\">µs</th><th>best</th>"
          "<th class=\"number\">µs</th></tr></thead>\n<tbody>\n" +
          rows + "</tbody></table></div>\n";
    }
  }
  return text;
}

std::string numbers_section(const Record& record) {
  if (record.results.empty()) {
    return "";
  }
  std::string text =
      "<h2 id=\"numbers\">All numbers</h2>\n<details class=\"numbers\"><summary>Medians in "
      "microseconds, the least in brackets</summary>\n<div class=\"wide\"><table><thead><tr>"
      "<th>case</th><th></th><th class=\"number\">batch</th><th class=\"number\">threads</th>"
      "<th class=\"number\">ours</th><th class=\"number\">of the limit</th>"
      "<th class=\"number\">oneDNN</th><th class=\"number\">own layout</th>"
      "<th class=\"number\">torch</th><th class=\"number\">XNNPACK</th>"
      "<th class=\"number\">best peer / ours</th><th>kernel</th></tr></thead>\n<tbody>\n";
  const auto times_cell = [](const std::optional<Times>& times) {
    return cell(times ? microseconds(times) + " (" + number_text(times->least * 1e6, 4) + ")" : "",
                "number");
  };
  for (const Result& r : record.results) {
    text += "<tr>" + cell(escaped(r.what.name)) + cell(std::string(1, r.direction)) +
            cell(r.batch > 0 ? std::to_string(r.batch) : "", "number") +
            cell(std::to_string(r.threads), "number") + times_cell(r.ours) +
            cell(r.share() ? percent_text(*r.share(), 0) : "", "number") + times_cell(r.plain) +
            times_cell(r.any) + times_cell(r.torch) + times_cell(r.xnnpack) +
            cell(r.against_best() ? decimal(*r.against_best(), 2) : "", "number") +
            cell(escaped(r.kernel)) + "</tr>\n";
  }
  return text + "</tbody></table></div></details>\n";
}

}  // namespace

std::string page_html(const Record& record) {
  const std::vector<Bar> bars = judge(record);
  return page::whole(
      "How fast we are",
      std::string(page::kChartStyle) + std::string(kBenchStyle),
      header(record) + tiles(record, bars) +
          page::with_contents({{"bars", "Bars", bars_section(bars)},
                               {"peers", "Beside the best peer", peers_section(record)},
                               {"peak", "Share of the peak", peak_section(record)},
                               {"growth", "How it grows", growth_section(record)},
                               {"choice", "Choice of kernels", choice_section(record)},
                               {"numbers", "All numbers", numbers_section(record)}},
                              "parts of this page"));
}

}  // namespace fenestra::bench
