// The body of `make_kernel_entry`: only the generated unit of each operator includes this.
#pragma once

#include <fenestra/check/kernel_entry.hpp>
#include <fenestra/check/kernel_run.hpp>
#include <fenestra/tensor/transform.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace fenestra::check {

namespace detail {

/// A candidate to force, the type it runs in, and whether it needs Numerics::fast.
struct Choice {
  std::string name;  ///< empty: the default
  bool narrow = true;
  Numerics numerics = Numerics::strict;

  std::string shown() const { return name.empty() ? narrow ? "default f32" : "default f64" : name; }
};

/// Every candidate that can do the problem, each once; the default in both types where the operator
/// lists none.
template <class Op>
std::vector<Choice> able(const typename Op::Geometry& g) {
  std::vector<Choice> choices;
  if constexpr (requires { Op::kernels(g); }) {
    for (const Numerics numerics : {Numerics::strict, Numerics::fast}) {
      const kernels::ScopedNumerics scope(numerics);
      for (const std::string& name : able_kernels<Op>(g)) {
        if (std::none_of(choices.begin(), choices.end(), [&](const Choice& choice) {
              return choice.name == name;
            })) {
          choices.push_back({name, name.find("_f32_") != std::string::npos, numerics});
        }
      }
    }
  } else {
    choices = {{"", true, Numerics::strict}, {"", false, Numerics::strict}};
  }
  return choices;
}

/// Settings of one run, for as long as it lives.
class Setting {
 public:
  Setting(const Choice& choice, int threads)
      : forced_(choice.name, kernels::IfRefused::run_if_able),
        numerics_(choice.numerics),
        threads_(threads) {}

 private:
  kernels::ForcedKernel forced_;
  kernels::ScopedNumerics numerics_;
  ScopedThreads threads_;
};

/// Both laws of one operator on one problem.
template <class Op>
class KernelLaws {
 public:
  using Geometry = typename Op::Geometry;

  KernelLaws(const Geometry& g, std::uint64_t seed)
      : g_(g), random_(seed), isas_(kernels::supported_isas()) {}

  KernelReport integers(Coverage coverage) {
    const bool is_exact = is_exact_here();
    operands_ = is_exact ? Draw<Op>(g_, random_).integers() : Draw<Op>(g_, random_).reals();
    coverage_ = coverage;
    // The tangent of a product costs as much as all the rest.
    with_tangent_ = coverage == Coverage::full || operands_.dots.size() == 1 || random_.chance(4);
    if constexpr (kMayBeExact) {
      if (is_exact) {
        const AllOf<Exact> needed = specified<Op>(g_, operands_, with_tangent_);
        compare_all(needed);
        return report_;
      }
    }
    compare_all(bounded());
    return report_;
  }

  KernelReport bits() {
    operands_ = Draw<Op>(g_, random_).reals();
    // Of a product the tangent runs on the kernels of the value.
    with_tangent_ = operands_.dots.size() == 1;
    if (!chooses_by_sample()) {
      return report_;
    }
    std::vector<Choice> choices = able<Op>(g_);
    if (!choices.front().name.empty()) {
      choices.push_back({"", true, Numerics::strict});
      choices.push_back({"", false, Numerics::strict});
    }
    for (const Choice& choice : choices) {
      if (choice.name.ends_with("_spec") && work_of<Op>(g_) > kMostSpecified) {
        continue;
      }
      take(choice);
      for (const std::string_view isa : isas_) {
        const kernels::ScopedIsa scope(isa);
        choice.narrow ? bits_of<float>(choice, isa) : bits_of<double>(choice, isa);
        if (report_.failure) {
          return report_;
        }
      }
    }
    return report_;
  }

  /// Whether the law on integers holds every result to equality.
  bool is_exact_here() const {
    const Algebra algebra = Op::algebra(g_);
    return kMayBeExact && (algebra == Algebra::multilinear || algebra == Algebra::piecewise_linear);
  }

  std::uint64_t hash() {
    operands_ = Draw<Op>(g_, random_).reals();
    std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
    add_to(hash, run_engine<Op>(g_, lifted<float>(operands_), true));
    add_to(hash, run_engine<Op>(g_, lifted<double>(operands_), true));
    return hash;
  }

 private:
  static constexpr bool kMayBeExact =
      requires(const Geometry& g, const Inputs<Exact>& in) { Op::template forward<Exact>(g, in); };
  /// Multiply-adds up to which the slow oracle of transformed data is asked.
  static constexpr Index kMostTransformed = Index{1} << 21;
  /// The specification as a candidate is as slow as the oracle, and the same loops.
  static constexpr int kSpecificationOneIn = 16;

  template <class T>
  static Lifted<T> lifted(const Operands& operands) {
    return Lifted<T>(operands.in, operands.dots, operands.y_bar);
  }
  /// By the engine's own rules, since the roundings counted are theirs.
  AllOf<Rounded> bounded() const {
    return run_engine<Op, Rounded>(g_, lifted<Rounded>(operands_), with_tangent_);
  }
  void take(const Choice& choice) { report_.taken.push_back(choice.shown()); }
  void fail(const Choice& choice, std::string_view isa, int threads, const Difference& difference) {
    report_.failure = KernelFailure{choice.shown(),
                                    std::string(isa),
                                    threads,
                                    quantity_of<Op>(g_, difference.quantity),
                                    difference.detail};
  }

  // The law on integers.

  /// `needed` is what the strict candidates are held against.
  template <class Needed>
  void compare_all(const Needed& needed) {
    for (const Choice& choice : able<Op>(g_)) {
      if (report_.failure) {
        return;
      }
      if (choice.numerics == Numerics::fast) {
        compare_transformed(choice);
        continue;
      }
      const bool is_specification = choice.name.ends_with("_spec");
      if (coverage_ == Coverage::full || !is_specification || random_.chance(kSpecificationOneIn)) {
        compare_in_its_type(choice, needed);
      }
    }
  }
  void compare_transformed(const Choice& choice) {
    if (work_of<Op>(g_) > kMostTransformed ||
        (coverage_ == Coverage::sampled && !random_.chance(4))) {
      return;
    }
    const kernels::ScopedNumerics scope(Numerics::fast);
    const auto own =
        transformed<Op>(choice.name, g_, operands_.in, operands_.dots, operands_.y_bar);
    if (!own) {
      fail(choice, "", 0, {0, "needs Numerics::fast and states no bound"});
      return;
    }
    const bool before = std::exchange(with_tangent_, true);
    compare_in_its_type(choice, *own);
    with_tangent_ = before;
  }
  template <class Needed>
  void compare_in_its_type(const Choice& choice, const Needed& needed) {
    take(choice);
    choice.narrow ? compare<float>(choice, needed) : compare<double>(choice, needed);
  }
  template <class T, class Needed>
  void compare(const Choice& choice, const Needed& needed) {
    const Lifted<T> operands = lifted<T>(operands_);
    const auto count = static_cast<Index>(isas_.size());
    if (coverage_ == Coverage::sampled) {
      const auto isa = static_cast<std::size_t>(random_.between(0, count - 1));
      const auto threads = static_cast<std::size_t>(
          random_.between(0, static_cast<Index>(std::size(kThreadCounts)) - 1));
      compare_once(choice, isas_[isa], kThreadCounts[threads], operands, needed);
      return;
    }
    for (const std::string_view isa : isas_) {
      for (const int threads : kThreadCounts) {
        compare_once(choice, isa, threads, operands, needed);
      }
    }
  }
  template <class T, class Needed>
  void compare_once(const Choice& choice,
                    std::string_view isa,
                    int threads,
                    const Lifted<T>& operands,
                    const Needed& needed) {
    if (report_.failure) {
      return;
    }
    const kernels::ScopedIsa scope(isa);
    const Setting setting(choice, threads);
    const Difference difference =
        first_difference(run_engine<Op>(g_, operands, with_tangent_), needed);
    if (!difference.detail.empty()) {
      fail(choice, isa, threads, difference);
    }
  }

  // The law on bits.

  /// The candidates that accept are those for any other number of the same samples: two that add in
  /// the same order would hide a choice that asks for the batch.
  bool chooses_by_sample() {
    if constexpr (requires {
                    Op::with_batch(g_, 1);
                    Op::kernels(g_);
                  }) {
      if (!Op::batched(g_) || Op::output(g_).shape[0] == 0) {
        return true;
      }
      const std::vector<KernelChoice> here = Op::kernels(g_);
      for (const Index batch : {1, 2, 64}) {
        const std::vector<KernelChoice> there = Op::kernels(Op::with_batch(g_, batch));
        for (std::size_t i = 0; i < here.size(); ++i) {
          if (here[i].refusal.empty() != there[i].refusal.empty()) {
            report_.failure = KernelFailure{here[i].name,
                                            std::string(isas_.front()),
                                            threads(),
                                            "choice for " + here[i].direction,
                                            "differs for a batch of " + std::to_string(batch)};
            return false;
          }
        }
      }
    }
    return true;
  }

  template <class T>
  void bits_of(const Choice& choice, std::string_view isa) {
    const Lifted<T> operands = lifted<T>(operands_);
    const auto run = [&](const Geometry& g, const Lifted<T>& in, int threads) {
      const Setting setting(choice, threads);
      return run_engine<Op>(g, in, with_tangent_);
    };
    const AllOf<T> one = run(g_, operands, 1);
    for (const int threads : kThreadCounts) {
      // How work is split does not depend on the instruction set: one of them takes every number.
      if (threads == 1 || (isa != isas_.front() && threads != 3)) {
        continue;
      }
      const Difference difference = first_other_bits(one, run(g_, operands, threads));
      if (!difference.detail.empty()) {
        fail(choice, isa, threads, {difference.quantity, "on 1 thread, " + difference.detail});
        return;
      }
    }
    if constexpr (requires { Op::with_batch(g_, 1); }) {
      if (!Op::batched(g_)) {
        return;
      }
      const Index batch = Op::output(g_).shape[0];
      for (const auto& [begin, count] : parts(batch)) {
        if (count < batch && !same_in_part(choice, isa, one, begin, count, run)) {
          return;
        }
      }
    }
  }

  struct Part {
    Index begin = 0;
    Index count = 0;
  };
  /// Two halves, the first sample, and the last.
  static std::vector<Part> parts(Index batch) {
    if (batch < 2) {
      return {};
    }
    return {{0, batch / 2}, {batch / 2, batch - batch / 2}, {0, 1}, {batch - 1, 1}};
  }
  template <class T, class Run>
  bool same_in_part(const Choice& choice,
                    std::string_view isa,
                    const AllOf<T>& whole,
                    Index begin,
                    Index count,
                    const Run& run) {
    const std::vector<TensorInfo> infos = Op::inputs(g_);
    const auto part_of = [&](const Tensor<double>& tensor, bool splits) {
      return splits ? sliced(tensor, 0, begin, count) : tensor;
    };
    Operands part{{}, {}, part_of(operands_.y_bar, true)};
    for (std::size_t i = 0; i < infos.size(); ++i) {
      const bool splits = infos[i].role == Role::activation;
      part.in.values.push_back(part_of(operands_.in.values[i], splits));
      part.dots.push_back(part_of(operands_.dots[i], splits));
    }
    // On more threads than the whole: the two laws meet.
    constexpr int kThreads = 3;
    const AllOf<T> got = run(Op::with_batch(g_, count), lifted<T>(part), kThreads);
    AllOf<T> needed;
    AllOf<T> alone;
    std::vector<std::size_t> quantities;
    for (std::size_t k = 0; k < got.size(); ++k) {
      if (k == 0 || (k == 1 && with_tangent_) || (k > 1 && infos[k - 2].role == Role::activation)) {
        needed.push_back(sliced(whole[k], 0, begin, count));
        alone.push_back(got[k]);
        quantities.push_back(k);
      }
    }
    const Difference difference = first_other_bits(needed, alone);
    if (difference.detail.empty()) {
      return true;
    }
    fail(choice,
         isa,
         kThreads,
         {quantities[difference.quantity],
          "samples " + std::to_string(begin) + " to " + std::to_string(begin + count - 1) +
              " alone, against the whole batch: " + difference.detail});
    return false;
  }

  template <class T>
  static void add_to(std::uint64_t& hash, const AllOf<T>& all) {
    for (const Tensor<T>& tensor : all) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(tensor.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.size()) * sizeof(T); ++i) {
        hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
      }
    }
  }

  Geometry g_;
  Random random_;
  std::vector<std::string_view> isas_;
  Operands operands_;
  Coverage coverage_ = Coverage::sampled;
  bool with_tangent_ = true;
  KernelReport report_;
};

}  // namespace detail

template <class Op>
std::optional<KernelEntry> make_kernel_entry() {
  if constexpr (HasKernelLaws<Op>) {
    using Laws = detail::KernelLaws<Op>;
    static constexpr Index kLeastWork = 64;
    return KernelEntry{
        .name = Op::name,
        .share = detail::kListed<Op> ? 4 : 1,
        .random_problem =
            [](Random& random, Index work) {
              for (;;) {
                const auto g = Op::random(random, Reach::networks);
                const bool is_exact = Laws(g, 0).is_exact_here();
                const Index most = work / (!is_exact ? 64 : detail::kListed<Op> ? 1 : 16);
                if (work_of<Op>(g) <= std::max(most, kLeastWork)) {
                  return to_string(g);
                }
              }
            },
        .work = [](std::string_view problem) { return work_of<Op>(Op::parse(problem)); },
        .integers =
            [](std::string_view problem, std::uint64_t seed, Coverage coverage) {
              return Laws(Op::parse(problem), seed).integers(coverage);
            },
        .bits = [](std::string_view problem,
                   std::uint64_t seed) { return Laws(Op::parse(problem), seed).bits(); },
        .hash = [](std::string_view problem,
                   std::uint64_t seed) { return Laws(Op::parse(problem), seed).hash(); },
        .candidates =
            [] {
              std::vector<std::string> names;
              if constexpr (requires(const typename Op::Geometry& g) { Op::kernels(g); }) {
                for (const KernelChoice& choice : Op::kernels(Op::parse(Op::example))) {
                  if (std::find(names.begin(), names.end(), choice.name) == names.end()) {
                    names.push_back(choice.name);
                  }
                }
              }
              return names;
            },
        .other_layout =
            [](std::string_view problem) {
              const auto g = Op::parse(problem);
              if constexpr (requires { Op::with_layout(g, Layout::channels_first); }) {
                const bool is_first = Op::layout(g) == Layout::channels_first;
                return to_string(
                    Op::with_layout(g, is_first ? Layout::channels_last : Layout::channels_first));
              } else {
                return std::string();
              }
            }};
  } else {
    return std::nullopt;
  }
}

}  // namespace fenestra::check
