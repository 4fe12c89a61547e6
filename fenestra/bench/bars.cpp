// Which bars hold.
#include <fenestra/bench/bars.hpp>

#include <cmath>

namespace fenestra::bench {

namespace {

void count(Bar& bar, double value, const std::string& label) {
  const bool meets = bar.at_least ? value >= bar.needed : value <= bar.needed;
  const bool is_worse = bar.at_least ? value < bar.worst : value > bar.worst;
  if (bar.cases == 0 || is_worse) {
    bar.worst = value;
    bar.worst_case = label;
  }
  ++bar.cases;
  bar.missed += meets ? 0 : 1;
}

/// The same case, batch and direction at another number of threads, or in another direction.
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

}  // namespace

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

std::vector<Bar> judge(const std::vector<Result>& results) {
  const auto bar = [](std::string text, double needed, bool at_least) {
    return Bar{std::move(text), needed, at_least, 0, {}, 0, 0};
  };
  Bar dense = bar("dense convolution: time / oneDNN on plain tensors", 1.10, false);
  Bar torch = bar("torch: times faster, every case", 1.0, true);
  Bar mean = bar("torch: times faster, geometric mean", 1.5, true);
  Bar weak = bar("weak spots: times faster than the best peer", 2.0, true);
  Bar transposed = bar("transposed: time / forward convolution of equal multiply-adds", 1.3, false);
  Bar pools = bar("pools: time / memory-traffic limit", 1.5, false);
  Bar share = bar("f64 dense: share of f64 peak", 0.70, true);
  Bar wide = bar("f64 dense: times faster than torch", 1.3, true);
  Bar call = bar("call overhead: microseconds", 1.0, false);
  Bar tape = bar("call overhead with a tape: microseconds", 2.0, false);
  Bar fast = bar("Numerics::fast: times faster than strict", 1.6, true);
  Bar scaling = bar("2 threads: times faster than 1, above 10 ms", 1.8, true);

  Bar compiled = bar("compiled: times faster than our eager", 1.0, true);
  Bar memory = bar("compiled training step: peak memory / torch's", 1.0, false);
  std::vector<Bar> models;

  for (const Result& r : results) {
    const std::string label = r.label();
    const auto model = [&](char direction, std::string_view tag, const std::string& text) {
      if (const auto needed = r.what.number(tag); needed && r.direction == direction && r.torch) {
        models.push_back(bar(text + ", times faster than torch: " + label, *needed, true));
        count(models.back(), *r.against_torch(), label);
      }
    };
    model('S', "step:", "training step");
    model('C', "compiled:", "compiled training step");
    model('P', "infer:", "compiled inference");
    if (r.memory && r.torch_memory) {
      count(memory, *r.memory / *r.torch_memory, label);
    }
    if (const auto ratio = r.against_eager()) {
      count(compiled, *ratio, label);
    }
    if (r.what.has("dense") && r.plain) {
      count(dense, r.ours / *r.plain, label);
    }
    if (const auto ratio = r.against_torch()) {
      count(torch, *ratio, label);
    }
    if (const auto ratio = r.against_best(); ratio && r.what.is_weak(r.direction)) {
      count(weak, *ratio, label);
    }
    if (r.what.has("transposed") && r.direction == 'F') {
      // The gradient of a transposed convolution is the forward convolution of the same sizes.
      if (const Result* forward = find(results, r, 'D', r.threads)) {
        count(transposed, r.ours / forward->ours, label);
      }
    }
    if (r.what.has("pool")) {
      count(pools, r.ours / r.limit, label);
    }
    if (r.what.is_double()) {
      count(share, r.limit / r.ours, label);
      if (const auto ratio = r.against_torch()) {
        count(wide, *ratio, label);
      }
    }
    if (const auto ratio = r.against_strict(); ratio && r.what.op == "conv") {
      count(fast, *ratio, label);
    }
    if (r.what.has("overhead")) {
      count(r.direction == 'T' ? tape : call, r.ours * 1e6, label);
    }
    if (r.threads == 1 && r.ours > 10e-3) {
      if (const Result* two = find(results, r, r.direction, 2)) {
        count(scaling, r.ours / two->ours, label);
      }
    }
  }
  if (const auto ratio = geometric_mean(results, &Result::against_torch)) {
    count(mean, *ratio, "all cases");
  }
  std::vector<Bar> bars{dense,
                        torch,
                        mean,
                        weak,
                        transposed,
                        pools,
                        share,
                        wide,
                        fast,
                        call,
                        tape,
                        scaling,
                        compiled,
                        memory};
  bars.insert(bars.end(), models.begin(), models.end());
  return bars;
}

}  // namespace fenestra::bench
