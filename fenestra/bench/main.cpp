// fenestra_bench: times the cases of cases.txt against oneDNN and torch in the same run.
//
//   make bench              everything: tens of minutes
//   make bench QUICK=1      the cases tagged `quick` at batch 4: less than two minutes
//   fenestra_bench --only "3x3 64" --threads 1 --json FILE
//
// Everybody who is compared takes turns within a case, the machine's limit among them, so that a
// machine that slows down slows all of them; figures are medians.
#include <fenestra/base/file.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/bench/bars.hpp>
#include <fenestra/bench/case.hpp>
#include <fenestra/bench/limits.hpp>
#include <fenestra/bench/sample.hpp>
#include <fenestra/bench/torch_peer.hpp>
#include <fenestra/bench/work.hpp>
#include <fenestra/kernels/isa.hpp>

#include <cstdio>
#include <map>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace fenestra::bench {
namespace {

struct Options {
  std::string cases = "fenestra/bench/cases.txt";
  std::string torch = "fenestra/bench/torch_peer.py";
  std::string json;
  std::string only;
  bool quick = false;
  bool no_torch = false;
  bool no_onednn = false;
  std::vector<int> threads = {1, 2};
  std::vector<Index> batches;  ///< 1 and 16 where empty; 4 for a quick run
};

struct Machine {
  std::map<int, double> f32;
  std::map<int, double> f64;
};

/// Seconds that the machine needs at least, measured now; 0 where neither operations nor bytes are
/// known, as of whole models.
double limit_of(const Work& work, bool is_double, int threads) {
  if (work.flops > 0) {
    return work.flops / (is_double ? peak_flops<double>(threads) : peak_flops<float>(threads));
  }
  return work.bytes > 0 ? work.bytes / copy_speed(static_cast<std::size_t>(work.bytes), threads)
                        : 0;
}

Machine measure_machine(const Options& options) {
  Machine machine;
  std::printf("limits (%s)     f32 peak   f64 peak   copy in L2   from memory\n",
              std::string(kernels::isa_name()).c_str());
  for (const int threads : options.threads) {
    machine.f32[threads] = peak_flops<float>(threads);
    machine.f64[threads] = peak_flops<double>(threads);
    const auto part = static_cast<std::size_t>(threads);
    std::printf("  %d thread%s      %7.0f    %7.0f GF/s   %6.0f      %6.0f GB/s\n",
                threads,
                threads == 1 ? " " : "s",
                machine.f32[threads] / 1e9,
                machine.f64[threads] / 1e9,
                copy_speed(part * (std::size_t{1} << 18), threads) / 1e9,
                copy_speed(std::size_t{1} << 28, threads) / 1e9);
  }
  return machine;
}

Result measure(const Case& what,
               char direction,
               Index batch,
               int threads,
               const Options& options,
               TorchPeer& torch) {
  // What a turn of the others leaves in the caches does not matter to a long run.
  const auto effort = [&](const std::vector<double>& times) {
    return Effort{.seconds = options.quick ? 0.005 : 0.02,
                  .runs = 1,
                  .warm_up = times.empty() || times.back() < 0.02};
  };
  set_threads(threads);
  Result r;
  r.what = what;
  r.direction = direction;
  r.batch = what.has_batch() ? batch : 0;
  r.threads = threads;
  r.problem = what.with_batch(batch);

  const Work ours =
      make_ours(what, direction, r.problem, what.is_fast() ? Numerics::fast : Numerics::strict);
  // What ours is held against of our own.
  const Work strict =
      what.is_fast() ? make_ours(what, direction, r.problem, Numerics::strict) : Work{};
  const Work eager =
      is_compiled(direction) && !what.is_fast()
          ? make_ours(what, direction == 'C' ? 'S' : 'I', r.problem, Numerics::strict)
          : Work{};
  const OnednnWork onednn =
      options.no_onednn ? OnednnWork{} : make_onednn(what, direction, r.problem, threads);
  std::vector<double> ours_times, strict_times, eager_times, torch_times, limits;
  std::vector<double> onednn_times[3];
  const std::pair<const std::function<void()>*, std::vector<double>*> contestants[] = {
      {&ours.run, &ours_times},
      {&strict.run, &strict_times},
      {&eager.run, &eager_times},
      {&onednn.plain, &onednn_times[0]},
      {&onednn.with_reorders, &onednn_times[1]},
      {&onednn.own_layout, &onednn_times[2]}};
  constexpr int kTurns = 5;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (const auto& [run, times] : contestants) {
      if (*run) {
        sample(*run, effort(*times), *times);
      }
    }
    torch.sample(what, direction, r.problem, threads, effort(torch_times), torch_times);
    limits.push_back(limit_of(ours, what.is_double(), threads));
  }
  if (ours.memory) {
    r.memory = ours.memory;
    r.torch_memory = torch.peak_memory(what, direction, r.problem, threads);
  }

  r.kernel = ours.kernel;
  r.ours = median(ours_times);
  r.limit = median(limits);
  for (int i = 0; i < 2; ++i) {
    if (!onednn_times[i].empty()) {
      const double seconds = median(onednn_times[i]);
      r.plain = r.plain ? std::min(*r.plain, seconds) : seconds;
    }
  }
  if (!onednn_times[2].empty()) {
    r.any = median(onednn_times[2]);
  }
  if (!strict_times.empty()) {
    r.strict = median(strict_times);
  }
  if (!eager_times.empty()) {
    r.eager = median(eager_times);
  }
  if (!torch_times.empty()) {
    r.torch = median(torch_times);
  }
  return r;
}

std::string number(std::optional<double> value, int width, int digits) {
  char text[64];
  if (value) {
    std::snprintf(text, sizeof text, "%*.*f", width, digits, *value);
  } else {
    std::snprintf(text, sizeof text, "%*s", width, "-");
  }
  return text;
}

std::optional<double> in_microseconds(std::optional<double> seconds) {
  return seconds ? std::optional(*seconds * 1e6) : std::nullopt;
}

std::string share_of(const Result& r) {
  return r.limit > 0 ? number(100 * r.limit / r.ours, 4, 0) + "%" : "    -";
}

void print(const Result& r) {
  // Small times need a digit after the point.
  const int digits = r.ours < 100e-6 ? 1 : 0;
  std::printf("%-33s %c %4s %2d %s %s %s %s %s %s %s  %s%s\n",
              r.what.name.c_str(),
              r.direction,
              r.batch > 0 ? std::to_string(r.batch).c_str() : "-",
              r.threads,
              number(r.ours * 1e6, 9, digits).c_str(),
              share_of(r).c_str(),
              number(in_microseconds(r.plain), 9, digits).c_str(),
              number(in_microseconds(r.any), 9, digits).c_str(),
              number(in_microseconds(r.torch), 9, digits).c_str(),
              number(r.against_plain(), 6, 2).c_str(),
              number(r.against_torch(), 6, 2).c_str(),
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

void print_summary(const std::vector<Result>& results, const std::vector<Bar>& bars) {
  std::printf("\ngeometric means: %s x oneDNN (plain), %s x torch\n\nbars\n",
              number(geometric_mean(results, &Result::against_plain), 0, 2).c_str(),
              number(geometric_mean(results, &Result::against_torch), 0, 2).c_str());
  for (const Bar& bar : bars) {
    if (bar.cases == 0) {
      std::printf("  %-10s %-62s\n", "no case", bar.text.c_str());
      continue;
    }
    std::printf("  %-10s %-62s %s %.2f, worst %.2f (%s)%s\n",
                bar.holds() ? "holds" : "MISSED",
                bar.text.c_str(),
                bar.at_least ? ">=" : "<=",
                bar.needed,
                bar.worst,
                bar.worst_case.c_str(),
                bar.missed > 0 ? (", " + std::to_string(bar.missed) + " of " +
                                  std::to_string(bar.cases) + " missed")
                                     .c_str()
                               : "");
  }
}

nlohmann::json to_json(const std::vector<Result>& results,
                       const std::vector<Bar>& bars,
                       const Machine& machine,
                       const TorchPeer& torch) {
  const auto optional = [](std::optional<double> value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  nlohmann::json all;
  all["isa"] = kernels::isa_name();
  all["onednn"] = onednn_version();
  all["torch"] = torch.version();
  for (const auto& [threads, flops] : machine.f32) {
    all["limits"].push_back({{"threads", threads},
                             {"f32_flops", flops},
                             {"f64_flops", machine.f64.at(threads)},
                             {"copy_from_memory", copy_speed(std::size_t{1} << 28, threads)}});
  }
  for (const Result& r : results) {
    all["results"].push_back({{"case", r.what.name},
                              {"operator", r.what.op},
                              {"problem", r.problem},
                              {"type", r.what.is_double() ? "f64" : "f32"},
                              {"direction", std::string(1, r.direction)},
                              {"threads", r.threads},
                              {"kernel", r.kernel},
                              {"seconds", r.ours},
                              {"limit", r.limit},
                              {"onednn_plain", optional(r.plain)},
                              {"onednn_any", optional(r.any)},
                              {"torch", optional(r.torch)},
                              {"strict", optional(r.strict)},
                              {"eager", optional(r.eager)},
                              {"memory", optional(r.memory)},
                              {"torch_memory", optional(r.torch_memory)}});
  }
  for (const Bar& bar : bars) {
    all["bars"].push_back({{"bar", bar.text},
                           {"needed", bar.needed},
                           {"at_least", bar.at_least},
                           {"worst", bar.worst},
                           {"worst_case", bar.worst_case},
                           {"cases", bar.cases},
                           {"missed", bar.missed}});
  }
  return all;
}

void run(const Options& options) {
  TorchPeer torch(options.no_torch ? "" : options.torch);
  std::printf("oneDNN %s, torch %s\n",
              onednn_version().empty() ? "(not built in)" : onednn_version().c_str(),
              torch.version().empty() ? "(not found)" : torch.version().c_str());
  const Machine machine = measure_machine(options);
  std::printf(
      "\nmicroseconds (medians); share: of the peak, or of copy speed; last two: times faster\n"
      "%-33s   %4s %2s %9s %5s %9s %9s %9s %6s %6s  kernel\n",
      "case",
      "n",
      "t",
      "ours",
      "share",
      "plain",
      "any",
      "torch",
      "plain",
      "torch");
  std::vector<Result> results;
  for (const Case& what : read_cases(options.cases)) {
    if ((options.quick && !what.has("quick")) ||
        what.name.find(options.only) == std::string::npos) {
      continue;
    }
    for (const Index batch : options.batches) {
      if (!what.has_batch() && batch != options.batches.front()) {
        continue;
      }
      for (const char direction : what.directions) {
        for (const int threads : options.threads) {
          results.push_back(measure(what, direction, batch, threads, options, torch));
          print(results.back());
        }
      }
    }
  }
  const std::vector<Bar> bars = judge(results);
  print_summary(results, bars);
  if (!options.json.empty()) {
    replace_file(options.json, {to_json(results, bars, machine, torch).dump(1), "\n"});
  }
}

}  // namespace
}  // namespace fenestra::bench

int main(int argc, char** argv) {
  fenestra::bench::Options options;
  CLI::App app("Times the cases of cases.txt against oneDNN and torch in the same run.");
  app.add_option("--cases", options.cases, "the list of cases")->capture_default_str();
  app.add_option("--torch", options.torch, "the script that times torch")->capture_default_str();
  app.add_option("--json", options.json, "also write the results to this file");
  app.add_option("--only", options.only, "cases whose name contains this");
  app.add_option("--threads", options.threads, "numbers of threads")->capture_default_str();
  app.add_option("--batches", options.batches, "batches, 1 and 16 by default (4 with --quick)");
  app.add_flag("--quick", options.quick, "the cases tagged quick, shorter measurements");
  app.add_flag("--no-torch", options.no_torch, "leave torch out");
  app.add_flag("--no-onednn", options.no_onednn, "leave oneDNN out");
  CLI11_PARSE(app, argc, argv);
  if (options.batches.empty()) {
    options.batches =
        options.quick ? std::vector<fenestra::Index>{4} : std::vector<fenestra::Index>{1, 16};
  }
  try {
    fenestra::bench::run(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
