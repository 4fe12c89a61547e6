// Which bars hold.
#include <fenestra/base/text.hpp>
#include <fenestra/bench/bars.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra::bench {

namespace {

/// Operands of more bytes come from memory, or from a cache that cores share.
constexpr double kInCache = 4 << 20;
/// Shorter calls cannot keep two threads busy.
constexpr double kWorthSharing = 10e-3;

bool reaches(double value, double needed, bool at_least) {
  return at_least ? value >= needed : value <= needed;
}

/// The same case, batch and threads in another direction, or on another number of threads.
const Result* find(const std::vector<Result>& results,
                   const Result& like,
                   char direction,
                   int threads) {
  for (const Result& r : results) {
    if (r.what.name == like.what.name && r.batch == like.batch && r.direction == direction &&
        r.threads == threads) {
      return &r;
    }
  }
  return nullptr;
}

/// The case with full channels that a ragged one is held against.
const Result* find_full(const std::vector<Result>& results, const Result& ragged) {
  for (const Result& r : results) {
    if (r.what.word("full:") == ragged.what.word("ragged:") && r.batch == ragged.batch &&
        r.direction == ragged.direction && r.threads == ragged.threads &&
        r.what.is_channels_last() == ragged.what.is_channels_last()) {
      return &r;
    }
  }
  return nullptr;
}

class Judge {
 public:
  explicit Judge(const Record& record) : record_(record), results_(record.results) {}

  std::vector<Bar> bars() {
    for (const Result& r : results_) {
      if (!r.what.word("grows:").empty()) {
        continue;  // for plots
      }
      convolutions(r);
      others(r);
      models(r);
      threads(r);
    }
    std::vector<Bar> all{conv_[0],      conv_[1],      packed_,     peak_,  peak_weights_,
                         peak_f64_,     ragged_,       grouped_,    call_,  tape_,
                         program_call_, python_call_,  small_,      cheap_, costly_,
                         pools_,        cached_pools_, transposed_, fast_,  one_image_};
    all.insert(all.end(), models_.begin(), models_.end());
    all.insert(all.end(), {compiled_inference_, compiled_training_, memory_, scaling_});
    add_choices(all);
    add_bits(all);
    return all;
  }

 private:
  void convolutions(const Result& r) {
    if (!r.what.is_conv()) {
      return;
    }
    if (r.what.has("python")) {
      python_call_.count(*r.against_eager(), r);
      return;
    }
    if (r.what.has("overhead")) {
      (r.direction == 'T'   ? tape_
       : r.direction == 'P' ? program_call_
                            : call_)
          .count(r.ours.median * 1e6, r);
      return;
    }
    if (r.what.is_fast()) {
      if (const auto ratio = r.against_strict()) {
        fast_.count(*ratio, r);
      }
      const Result* two = find(results_, r, r.direction, 2);
      if (r.threads == 1 && r.batch == 1 && two != nullptr) {
        one_image_.count(r.ours.median / two->ours.median, r);
      }
      return;
    }
    const auto best = r.against_best();
    if (best && r.direction == 'P') {
      packed_.count(*best, r);
    } else if (best && !r.what.is_double()) {
      conv_[r.what.is_channels_last() ? 1 : 0].count(*best, r);
    }
    if (r.what.has("dense") && r.share()) {
      (r.what.is_double()   ? peak_f64_
       : r.direction == 'W' ? peak_weights_
                            : peak_)
          .count(*r.share(), r);
    }
    if (best && r.what.has("grouped")) {
      grouped_.count(*best, r);
    }
    if (best && r.what.has("small")) {
      small_.count(*best, r);
    }
    if (!r.what.word("ragged:").empty() && r.share()) {
      if (const Result* full = find_full(results_, r); full != nullptr && full->share()) {
        ragged_.count(*r.share() / *full->share(), r);
      }
    }
    if (r.what.op == "conv_transpose" && r.direction == 'F') {
      // The gradient of a transposed convolution is the forward convolution of the same sizes.
      if (const Result* forward = find(results_, r, 'D', r.threads)) {
        transposed_.count(r.ours.median / forward->ours.median, r);
      }
    }
  }

  void others(const Result& r) {
    if (r.what.has("pool")) {
      if (r.bytes > kInCache) {
        pools_.count(r.ours.median / r.limit, r);
      } else if (const auto best = r.against_best()) {
        cached_pools_.count(*best, r);
      }
    }
    if (r.what.has("cheap")) {
      cheap_.count(r.ours.median / r.limit, r);
    }
    if (const auto ratio = r.against_torch(); ratio && r.what.has("transcendental")) {
      costly_.count(*ratio, r);
    }
  }

  void models(const Result& r) {
    const auto model = [&](char direction, std::string_view tag, const std::string& text) {
      const auto needed = r.what.number(tag);
      if (needed && r.direction == direction && r.torch) {
        models_.push_back({text + ", x the best mode of torch: " + r.label(), needed});
        models_.back().count(*r.against_torch(), r);
      }
    };
    model('C', "compiled:", "training step");
    model('P', "infer:", "inference");
    if (r.memory && r.torch_memory) {
      memory_.count(*r.memory / *r.torch_memory, r);
    }
    if (const auto ratio = r.against_eager(); ratio && !r.what.is_conv()) {
      (r.direction == 'C' ? compiled_training_ : compiled_inference_).count(*ratio, r);
    }
  }

  void threads(const Result& r) {
    if (r.threads == 1 && r.ours.median > kWorthSharing) {
      if (const Result* two = find(results_, r, r.direction, 2)) {
        scaling_.count(r.ours.median / two->ours.median, r);
      }
    }
  }

  /// One for every instruction set that was tried.
  void add_choices(std::vector<Bar>& all) const {
    std::vector<std::string> isas;
    for (const Choice& choice : record_.choices) {
      if (std::find(isas.begin(), isas.end(), choice.isa) == isas.end()) {
        isas.push_back(choice.isa);
      }
    }
    for (const std::string& isa : isas.empty() ? std::vector{record_.isa} : isas) {
      Bar bar{"choice of kernel, " + isa + ": part of the choices within 10 % of the best", 0.95};
      const Choice* worst = nullptr;
      for (const Choice& choice : record_.choices) {
        if (choice.isa == isa && (worst == nullptr || choice.ratio() > worst->ratio())) {
          worst = &choice;
        }
      }
      if (worst != nullptr) {
        bar.count(right_share(record_.choices, isa),
                  worst->problem + " " + worst->direction + " takes " + decimal(worst->ratio(), 2) +
                      " x the time of " + worst->best,
                  worst->chosen,
                  std::nullopt);
      }
      all.push_back(std::move(bar));
    }
  }

  void add_bits(std::vector<Bar>& all) const {
    Bar bar{"same bits on any number of threads and in any batch: part of the problems", 1.0};
    if (record_.bits.problems > 0) {
      const bool holds = record_.bits.failure.empty();
      bar.count(holds ? 1 : 0,
                holds ? std::to_string(record_.bits.problems) + " problems" : record_.bits.failure,
                "all candidates",
                std::nullopt);
    }
    all.push_back(std::move(bar));
  }

  static Bar at_most(std::string text, double each) {
    return {.text = std::move(text), .each = each, .at_least = false};
  }

  const Record& record_;
  const std::vector<Result>& results_;
  Bar conv_[2] = {{"conv f32, channels first: x the best peer", 0.90, 1.10},
                  {"conv f32, channels last: x the best peer", 0.90, 1.10}};
  Bar packed_{"conv f32, compiled, constant weights: x the best peer", {}, 1.20};
  Bar peak_{"dense F and D: share of f32 peak", 0.88};
  Bar peak_weights_{"dense W: share of f32 peak", 0.80};
  Bar peak_f64_{"dense f64: share of f64 peak", 0.80};
  Bar ragged_{"ragged channels: speed per multiply-add / full ones", 0.75};
  Bar grouped_{"depthwise and grouped: x the best peer", 1.20};
  Bar call_ = at_most("3x3 on 8x8: microseconds", 0.8);
  Bar tape_ = at_most("3x3 on 8x8 with a tape: microseconds", 1.5);
  Bar program_call_ = at_most("3x3 on 8x8 as a program: microseconds", 0.4);
  Bar python_call_{"3x3 on 8x8 as a program, from Python: x our eager call", 1.0};
  Bar small_{"LeNet's layers: x the best peer", 1.10};
  Bar cheap_ = at_most("cheap elementwise functions: time / copy", 1.5);
  Bar costly_{"transcendental functions: x torch", 1.20};
  Bar pools_ = at_most("pools, more than 4 MiB: time / copy", 1.5);
  Bar cached_pools_{"pools, up to 4 MiB: x the best peer", 1.10};
  Bar transposed_ = at_most("transposed: time / forward conv of equal multiply-adds", 1.2);
  Bar fast_{"3x3 fast: x strict", 1.80};
  Bar one_image_{"3x3 fast, one image: 2 threads x 1", 1.85};
  std::vector<Bar> models_;
  Bar compiled_inference_{"compiled inference: x our eager", 1.20};
  Bar compiled_training_{"compiled training: x our eager", 1.10};
  Bar memory_ = at_most("compiled training step: peak memory / torch's", 0.6);
  Bar scaling_{"2 threads x 1, above 10 ms", 1.85};
};

}  // namespace

void Bar::count(double value, const Result& result) {
  count(value, result.label(), result.kernel, result.share());
}

void Bar::count(double value,
                const std::string& label,
                const std::string& kernel,
                std::optional<double> share) {
  if (cases == 0 || !reaches(value, worst, at_least)) {
    worst = value;
    worst_case = label;
    worst_kernel = kernel;
    worst_share = share;
  }
  ++cases;
  log_sum += std::log(value);
  missed += !each || reaches(value, *each, at_least) ? 0 : 1;
}

double Bar::geometric_mean() const { return cases == 0 ? 0 : std::exp(log_sum / cases); }

bool Bar::holds() const {
  return cases > 0 && missed == 0 && (!mean || reaches(geometric_mean(), *mean, at_least));
}

std::string Bar::needed() const {
  const std::string sign = at_least ? ">= " : "<= ";
  std::string said = each ? sign + decimal(*each, 2) : "";
  if (mean) {
    said += (said.empty() ? "mean " : ", mean ") + sign + decimal(*mean, 2);
  }
  return said;
}

std::string Bar::found() const {
  return cases == 1 ? decimal(worst, 2)
                    : "mean " + decimal(geometric_mean(), 2) + ", worst " + decimal(worst, 2);
}

std::optional<double> geometric_mean(const std::vector<Result>& results,
                                     std::optional<double> (Result::*ratio)() const) {
  double sum = 0;
  int count = 0;
  for (const Result& r : results) {
    if (const auto value = (r.*ratio)()) {
      sum += std::log(*value);
      ++count;
    }
  }
  return count == 0 ? std::nullopt : std::optional(std::exp(sum / count));
}

double right_share(const std::vector<Choice>& choices, const std::string& isa) {
  double all = 0;
  double right = 0;
  for (const Choice& choice : choices) {
    if (choice.isa == isa) {
      ++all;
      right += choice.ratio() <= kRightChoice ? 1 : 0;
    }
  }
  return all > 0 ? right / all : 0;
}

std::vector<Bar> judge(const Record& record) { return Judge(record).bars(); }

}  // namespace fenestra::bench
