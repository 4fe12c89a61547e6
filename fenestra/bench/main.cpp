// fenestra_bench: times the cases of cases.txt against oneDNN, torch and XNNPACK in the same run.
//
//   make bench              everything: a quarter of an hour
//   make bench QUICK=1      the cases tagged `quick` at batch 4: less than two minutes
//   fenestra_bench --only "3x3 64" --threads 1 --json FILE --page FILE
//   fenestra_bench --choice               the choice of kernels and the law on bits alone
//   fenestra_bench --from FILE --page FILE    the page of what was measured before
//
// Everybody who is compared takes turns within a case, the machine's limit among them, so that a
// machine that slows down slows all of them; figures are medians, and the least beside them in
// JSON and on the page. The time for the whole run is given: what is left of it is shared by the
// measurements to come.
#include <fenestra/base/file.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/bench/case.hpp>
#include <fenestra/bench/choice.hpp>
#include <fenestra/bench/limits.hpp>
#include <fenestra/bench/page.hpp>
#include <fenestra/bench/python_calls.hpp>
#include <fenestra/bench/record.hpp>
#include <fenestra/bench/sample.hpp>
#include <fenestra/bench/table.hpp>
#include <fenestra/bench/torch_peer.hpp>
#include <fenestra/bench/work.hpp>
#include <fenestra/kernels/isa.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <thread>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace fenestra::bench {
namespace {

struct Options {
  std::string cases = "fenestra/bench/cases.txt";
  std::string torch = "fenestra/bench/torch_peer.py";
  std::string python_calls = "fenestra/bench/python_calls.py";
  std::string python;
  std::string json;
  std::string page;
  std::string from;
  std::string only;
  double seconds = 0;  ///< for the whole run
  bool quick = false;
  bool choice = false;
  bool no_torch = false;
  bool no_onednn = false;
  bool no_xnnpack = false;
  std::vector<int> threads = {1, 2};
  std::vector<Index> batches;  ///< 1 and 16 where empty; 4 for a quick run
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

std::vector<Limits> measure_limits(const std::vector<int>& threads) {
  std::vector<Limits> all;
  for (const int count : threads) {
    const auto part = static_cast<std::size_t>(count);
    all.push_back({count,
                   peak_flops<float>(count),
                   peak_flops<double>(count),
                   copy_speed(part * (std::size_t{1} << 18), count),
                   copy_speed(std::size_t{1} << 28, count)});
  }
  return all;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::optional<Times> times_of(const std::vector<double>& times) {
  if (times.empty()) {
    return std::nullopt;
  }
  return Times{median(times), *std::min_element(times.begin(), times.end())};
}

/// What is done uncompiled instead of a compiled direction.
char eager_direction(const Case& what, char direction) {
  return direction == 'C' ? 'S' : is_model(what) ? 'I' : 'F';
}

/// `allowance`: seconds that the measurement should take.
Result measure(const Case& what,
               char direction,
               Index batch,
               int threads,
               double allowance,
               const Options& options,
               TorchPeer& torch) {
  // What a turn of the others leaves in the caches does not matter to a long run.
  constexpr double kLong = 0.02;
  const auto effort = [&](const std::vector<double>& times) {
    return Effort{.seconds = options.quick ? 0.005 : 0.02,
                  .runs = 1,
                  .warm_up = times.empty() || times.back() < kLong};
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
          ? make_ours(what, eager_direction(what, direction), r.problem, Numerics::strict)
          : Work{};
  const OnednnWork onednn =
      options.no_onednn ? OnednnWork{} : make_onednn(what, direction, r.problem, threads);
  const std::function<void()> xnnpack = options.no_xnnpack
                                            ? std::function<void()>()
                                            : make_xnnpack(what, direction, r.problem, threads);
  std::vector<double> ours_times, strict_times, eager_times, torch_times, xnnpack_times, limits;
  std::vector<double> onednn_times[4];
  struct Contestant {
    const std::function<void()>* run;
    std::vector<double>* times;
    bool is_form = false;   ///< one of several forms of a peer, of which the best is compared
    bool is_shown = false;  ///< not compared: one turn is enough where it takes long
  };
  std::vector<Contestant> contestants = {{&ours.run, &ours_times},
                                         {&strict.run, &strict_times},
                                         {&eager.run, &eager_times},
                                         {&onednn.plain, &onednn_times[0], true},
                                         {&onednn.packed_weights, &onednn_times[1], true},
                                         {&onednn.with_reorders, &onednn_times[2], true},
                                         {&onednn.own_layout, &onednn_times[3], false, true},
                                         {&xnnpack, &xnnpack_times}};
  std::erase_if(contestants, [](const Contestant& one) { return !*one.run; });
  // After the first turn a form that is far behind the best one need not be timed again.
  const auto leave_out_hopeless = [&] {
    constexpr double kHopeless = 1.3;
    const auto least = [](const Contestant& one) {
      return *std::min_element(one.times->begin(), one.times->end());
    };
    double best = std::numeric_limits<double>::infinity();
    for (const Contestant& one : contestants) {
      best = one.is_form ? std::min(best, least(one)) : best;
    }
    std::erase_if(contestants, [&](const Contestant& one) {
      return one.is_form    ? least(one) > kHopeless * best
             : one.is_shown ? least(one) > kLong
                            : false;
    });
  };
  // Everybody has the same number of turns: two, and more as long as the time allows it; one where
  // even that takes far longer than it should.
  constexpr int kLeastTurns = 2;
  constexpr int kMostTurns = 5;
  constexpr double kFarTooLong = 3;
  // Threads of libgomp, which peers run on, go on waiting busily for most of a millisecond.
  const auto let_others_sleep = [threads] {
    if (threads > 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  };
  const auto begin = Clock::now();
  for (int turn = 0; turn < kMostTurns; ++turn) {
    // A turn takes as long as those before it.
    const double used = seconds_since(begin);
    if ((turn >= kLeastTurns && used + used / turn > allowance) ||
        (turn > 0 && used > kFarTooLong * allowance)) {
      break;
    }
    for (const Contestant& one : contestants) {
      let_others_sleep();
      sample(*one.run, effort(*one.times), *one.times);
    }
    if (turn == 0) {
      leave_out_hopeless();
    }
    let_others_sleep();
    torch.sample(what, direction, r.problem, threads, effort(torch_times), torch_times);
    let_others_sleep();
    limits.push_back(limit_of(ours, what.is_double(), threads));
  }
  if (ours.memory) {
    r.memory = ours.memory;
    r.torch_memory = torch.peak_memory(what, direction, r.problem, threads);
  }

  r.kernel = ours.kernel;
  r.bytes = ours.bytes;
  r.ours = *times_of(ours_times);
  // Whatever else the machine does can only make it seem slower than it is.
  r.limit = *std::min_element(limits.begin(), limits.end());
  for (int i = 0; i < 3; ++i) {
    const auto times = times_of(onednn_times[i]);
    if (times && (!r.plain || times->median < r.plain->median)) {
      r.plain = times;
    }
  }
  r.any = times_of(onednn_times[3]);
  r.strict = times_of(strict_times);
  r.eager = times_of(eager_times);
  r.torch = times_of(torch_times);
  r.xnnpack = times_of(xnnpack_times);
  return r;
}

struct Measurement {
  Case what;
  char direction;
  Index batch;
  int threads;

  /// How much of the time it gets, beside others.
  double weight() const { return what.has("long") ? 10 : 1; }
};

std::vector<Measurement> planned(const Options& options) {
  std::vector<Measurement> plan;
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
          if (threads == 1 || what.word("grows:").empty()) {
            plan.push_back({what, direction, batch, threads});
          }
        }
      }
    }
  }
  // What is for plots alone comes last: it is what may be left out.
  std::stable_partition(plan.begin(), plan.end(), [](const Measurement& one) {
    return one.what.word("grows:").empty();
  });
  return plan;
}

/// Seconds of a run that the choice of kernels gets for each instruction set, and the law on bits.
constexpr double kChoicePart = 0.03;
constexpr double kBitsPart = 0.03;

void measure_cases(const Options& options, TorchPeer& torch, double seconds, Record& record) {
  const std::vector<Measurement> plan = planned(options);
  double weights = 0;
  for (const Measurement& one : plan) {
    weights += one.weight();
  }
  const auto begin = Clock::now();
  for (const Measurement& one : plan) {
    const double left = seconds - seconds_since(begin);
    if (left < 0) {
      break;
    }
    const double allowance = left * one.weight() / weights;
    weights -= one.weight();
    record.results.push_back(
        measure(one.what, one.direction, one.batch, one.threads, allowance, options, torch));
    print(record.results.back());
  }
  record.left_out = plan.size() - record.results.size();
  if (record.left_out > 0) {
    std::printf("the time was up: %zu of %zu measurements\n", record.results.size(), plan.size());
  }
}

Record measured(const Options& options) {
  const auto begin = Clock::now();
  TorchPeer torch(options.no_torch || options.choice ? "" : options.torch);
  Record record;
  record.isa = kernels::isa_name();
  record.onednn = options.no_onednn ? "" : onednn_version();
  record.torch = torch.version();
  record.has_xnnpack = !options.no_xnnpack && has_xnnpack();
  record.is_quick = options.quick;
  record.limits = measure_limits(options.threads);
  print_heading(record);
  // The rest of a run for everything goes to the cases.
  const bool has_choice = options.choice || options.only.empty();
  const double choice_seconds = options.seconds * (options.choice ? 0.4 : kChoicePart);
  const double bits_seconds = options.seconds * (options.choice ? 0.1 : kBitsPart);
  if (!options.choice) {
    const auto isas = static_cast<double>(kernels::supported_isas().size() - 1);
    const double kept = has_choice ? isas * choice_seconds + bits_seconds : 0;
    measure_cases(options, torch, options.seconds - kept - seconds_since(begin), record);
  }
  if (has_choice && !options.choice) {
    if (const auto calls = measure_python_calls(options.python_calls, options.python)) {
      record.results.push_back(*calls);
      print(*calls);
    }
  }
  if (has_choice) {
    record.choices = measure_choices({.seconds = choice_seconds});
    record.bits = check_bits(bits_seconds, 1);
    print_choices(record);
  }
  record.seconds = seconds_since(begin);
  return record;
}

Record read_record(const std::string& path) {
  std::ifstream file(path);
  return record_from_json(nlohmann::json::parse(file, nullptr, false));
}

void run(const Options& options) {
  const Record record = options.from.empty() ? measured(options) : read_record(options.from);
  print_bars(record);
  if (!options.json.empty()) {
    replace_file(options.json, {to_json(record).dump(1), "\n"});
  }
  if (!options.page.empty()) {
    replace_file(options.page, {page_html(record)});
    std::printf("\npage: %s\n", options.page.c_str());
  }
}

}  // namespace
}  // namespace fenestra::bench

int main(int argc, char** argv) {
  fenestra::bench::Options options;
  CLI::App app("Times the cases of cases.txt against oneDNN, torch and XNNPACK in the same run.");
  app.add_option("--cases", options.cases, "the list of cases")->capture_default_str();
  app.add_option("--torch", options.torch, "the script that times torch")->capture_default_str();
  app.add_option("--python", options.python, "the folder of the Python package, to time its calls");
  app.add_option("--python-calls", options.python_calls, "the script that times them")
      ->capture_default_str();
  app.add_option("--json", options.json, "also write the results to this file");
  app.add_option("--page", options.page, "also write a page with plots to this file");
  app.add_option("--from", options.from, "measure nothing, take the results from this JSON");
  app.add_option("--only", options.only, "cases whose name contains this");
  app.add_option("--threads", options.threads, "numbers of threads")->capture_default_str();
  app.add_option("--batches", options.batches, "batches, 1 and 16 by default (4 with --quick)");
  app.add_flag("--quick", options.quick, "the cases tagged quick, shorter measurements");
  app.add_flag("--choice", options.choice, "the choice of kernels and the law on bits alone");
  app.add_flag("--no-torch", options.no_torch, "leave torch out");
  app.add_flag("--no-onednn", options.no_onednn, "leave oneDNN out");
  app.add_flag("--no-xnnpack", options.no_xnnpack, "leave XNNPACK out");
  app.add_option("--seconds", options.seconds, "time to spend, 850 by default (90 with --quick)");
  CLI11_PARSE(app, argc, argv);
  if (options.seconds <= 0) {
    options.seconds = options.quick ? 90 : 850;
  }
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
