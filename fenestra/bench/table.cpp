#include <fenestra/bench/table.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

namespace fenestra::bench {

namespace {

std::string number(std::optional<double> value, int width, int digits) {
  char text[64];
  if (value) {
    std::snprintf(text, sizeof text, "%*.*f", width, digits, *value);
  } else {
    std::snprintf(text, sizeof text, "%*s", width, "-");
  }
  return text;
}

std::optional<double> in_microseconds(const std::optional<Times>& times) {
  return times ? std::optional(times->median * 1e6) : std::nullopt;
}

std::string share_text(std::optional<double> share) {
  return share ? number(100 * *share, 4, 0) + "%" : "    -";
}

const char* or_missing(const std::string& version) {
  return version.empty() ? "(missing)" : version.c_str();
}

}  // namespace

void print_heading(const Record& record) {
  std::printf("oneDNN %s, torch %s%s\n",
              or_missing(record.onednn),
              or_missing(record.torch),
              record.has_xnnpack ? ", XNNPACK" : "");
  std::printf("limits (%s)     f32 peak   f64 peak   copy in L2   from memory\n",
              record.isa.c_str());
  for (const Limits& limits : record.limits) {
    std::printf("  %d thread%s      %7.0f    %7.0f GF/s   %6.0f      %6.0f GB/s\n",
                limits.threads,
                limits.threads == 1 ? " " : "s",
                limits.f32_flops / 1e9,
                limits.f64_flops / 1e9,
                limits.cached_copy / 1e9,
                limits.memory_copy / 1e9);
  }
  std::printf(
      "\nmicroseconds (medians); share: of the peak, or of copy speed; last three: times faster\n"
      "%-33s   %4s %2s %9s %5s %9s %9s %9s %6s %6s %6s  kernel\n",
      "case",
      "n",
      "t",
      "ours",
      "share",
      "plain",
      "any",
      "torch",
      "plain",
      "torch",
      "best");
}

void print(const Result& r) {
  // Small times need a digit after the point.
  const int digits = r.ours.median < 100e-6 ? 1 : 0;
  std::printf("%-33s %c %4s %2d %s %s %s %s %s %s %s %s  %s%s\n",
              r.what.name.c_str(),
              r.direction,
              r.batch > 0 ? std::to_string(r.batch).c_str() : "-",
              r.threads,
              number(r.ours.median * 1e6, 9, digits).c_str(),
              share_text(r.share()).c_str(),
              number(in_microseconds(r.plain), 9, digits).c_str(),
              number(in_microseconds(r.any), 9, digits).c_str(),
              number(in_microseconds(r.torch), 9, digits).c_str(),
              number(r.against_plain(), 6, 2).c_str(),
              number(r.against_torch(), 6, 2).c_str(),
              number(r.against_best(), 6, 2).c_str(),
              r.kernel.c_str(),
              (r.strict  ? ", " + number(r.against_strict(), 0, 2) + " x strict"
               : r.eager ? ", " + number(r.against_eager(), 0, 2) + " x eager"
                         : "")
                  .c_str());
  if (r.memory && r.torch_memory) {
    std::printf(
        "%-33s   peak memory %.1f MB, torch %.1f MB\n", "", *r.memory / 1e6, *r.torch_memory / 1e6);
  }
  std::fflush(stdout);
}

void print_choices(const Record& record) {
  constexpr std::size_t kMostShown = 12;
  std::vector<Choice> wrong;
  for (const Choice& choice : record.choices) {
    if (choice.ratio() > kRightChoice) {
      wrong.push_back(choice);
    }
  }
  std::stable_sort(
      wrong.begin(), wrong.end(), [](auto& a, auto& b) { return a.ratio() > b.ratio(); });
  std::printf("\nchoice of kernels: %zu cases, %zu not within 10 %% of the best candidate\n",
              record.choices.size(),
              wrong.size());
  wrong.resize(std::min(wrong.size(), kMostShown));
  for (const Choice& choice : wrong) {
    std::printf("  %5.2f x  %-8s %-11s %s %.1f us, %s %.1f us\n           %s%s\n",
                choice.ratio(),
                choice.isa.c_str(),
                choice.direction.c_str(),
                choice.chosen.c_str(),
                choice.chosen_seconds * 1e6,
                choice.best.c_str(),
                choice.best_seconds * 1e6,
                choice.problem.c_str(),
                choice.source.empty() ? "" : ("  (" + choice.source + ")").c_str());
  }
  std::fflush(stdout);
}

void print_bars(const Record& record) {
  std::printf("\ngeometric means: %s x oneDNN (plain), %s x torch, %s x the best peer\n\nbars\n",
              number(geometric_mean(record.results, &Result::against_plain), 0, 2).c_str(),
              number(geometric_mean(record.results, &Result::against_torch), 0, 2).c_str(),
              number(geometric_mean(record.results, &Result::against_best), 0, 2).c_str());
  for (const Bar& bar : judge(record)) {
    if (bar.cases == 0) {
      std::printf("  %-8s %s\n", "no case", bar.text.c_str());
      continue;
    }
    std::printf("  %-8s %s: %s\n           %s: %s, %s%s%s\n",
                bar.holds() ? "met" : "MISSED",
                bar.text.c_str(),
                bar.needed().c_str(),
                bar.found().c_str(),
                bar.worst_case.c_str(),
                bar.worst_kernel.c_str(),
                bar.worst_share
                    ? (", " + number(100 * *bar.worst_share, 0, 0) + " % of the limit").c_str()
                    : "",
                bar.missed > 0 && bar.cases > 1 ? ("; " + std::to_string(bar.missed) + " of " +
                                                   std::to_string(bar.cases) + " cases miss it")
                                                      .c_str()
                                                : "");
  }
}

}  // namespace fenestra::bench
