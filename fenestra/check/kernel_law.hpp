// The law of the kernels: every candidate that can do a problem computes what the specification
// computes, values and both derivatives, within the rounding bound, on every instruction set of the
// machine; and the bits of our own do not depend on the number of threads. A candidate that needs
// Numerics::fast is held to the bound of its own expression, which the descriptor gives; all others
// to that of the definition.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/check/rounded.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/rules.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace fenestra::check {

namespace detail {

/// Value, tangent and cotangents, in this order.
template <class T>
using AllOf = std::vector<Tensor<T>>;

/// The operands of the law in another scalar.
template <class T>
struct Lifted {
  Inputs<T> in;
  std::vector<Tensor<T>> dots;
  Tensor<T> y_bar;

  Lifted(const Inputs<double>& in_double,
         const std::vector<Tensor<double>>& dots_double,
         const Tensor<double>& y_bar_double)
      : y_bar(lift(y_bar_double)) {
    for (const Tensor<double>& value : in_double.values) {
      in.values.push_back(lift(value));
    }
    in.data = in_double.data;
    for (const Tensor<double>& dot : dots_double) {
      dots.push_back(lift(dot));
    }
  }

 private:
  static Tensor<T> lift(const Tensor<double>& values) {
    return values.map([](double v) { return from_double<T>(v); });
  }
};

template <class Op, class T>
AllOf<T> compute_all(const typename Op::Geometry& g,
                     const Inputs<double>& in,
                     const std::vector<Tensor<double>>& dots,
                     const Tensor<double>& y_bar) {
  const Lifted<T> lifted(in, dots, y_bar);
  AllOf<T> all{Engine<Op>::template forward<T>(g, lifted.in),
               Engine<Op>::template jvp<T>(g, lifted.in, lifted.dots)};
  for (Tensor<T>& bar : Engine<Op>::template vjp<T>(g, lifted.in, lifted.y_bar)) {
    all.push_back(std::move(bar));
  }
  return all;
}

inline std::string quantity_name(std::size_t i) {
  return i == 0 ? "value" : i == 1 ? "jvp" : "vjp of input " + std::to_string(i - 2);
}

/// Both sides round: the kernel in T, the reference in double.
template <class T>
std::string outside_bound(const Tensor<T>& got, const Tensor<Rounded>& needed) {
  const double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const double own = std::numeric_limits<double>::epsilon() / 2;
  const auto tiny = static_cast<double>(std::numeric_limits<T>::denorm_min());
  for (Index i = 0; i < got.size(); ++i) {
    const Rounded& exact = needed[i];
    const auto n = static_cast<double>(exact.roundings());
    const double rounding = (n * u / (1 - n * u) + n * own / (1 - n * own)) * exact.magnitude();
    const double bound =
        rounding + (std::isfinite(exact.underflow()) ? tiny * exact.underflow() : 0);
    const double error = std::fabs(static_cast<double>(got[i]) - exact.value());
    if (!(error <= bound)) {
      return "element " + std::to_string(i) + ": error " + std::to_string(error) + ", bound " +
             std::to_string(bound);
    }
  }
  return {};
}

template <class T>
std::string outside_bound(const AllOf<T>& got, const AllOf<Rounded>& needed) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (const std::string complaint = outside_bound(got[k], needed[k]); !complaint.empty()) {
      return quantity_name(k) + " " + complaint;
    }
  }
  return {};
}

template <class T>
std::string different_bits(const AllOf<T>& a, const AllOf<T>& b) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    const auto bytes = static_cast<std::size_t>(a[k].size()) * sizeof(T);
    if (bytes > 0 && std::memcmp(a[k].data(), b[k].data(), bytes) != 0) {
      return quantity_name(k) + " depends on the number of threads";
    }
  }
  return {};
}

class ScopedThreads {
 public:
  explicit ScopedThreads(int n) : previous_(threads()) { set_threads(n); }
  ~ScopedThreads() { set_threads(previous_); }
  ScopedThreads(const ScopedThreads&) = delete;
  ScopedThreads& operator=(const ScopedThreads&) = delete;

 private:
  int previous_;
};

template <class Op, class T>
std::string kernel_complaint(const std::string& name,
                             const typename Op::Geometry& g,
                             const Inputs<double>& in,
                             const std::vector<Tensor<double>>& dots,
                             const Tensor<double>& y_bar,
                             const AllOf<Rounded>& needed) {
  const kernels::ForcedKernel forced(name, kernels::IfRefused::run_if_able);
  AllOf<T> best;  // by the first instruction set, which is the one that runs unless forced
  for (const std::string_view isa : kernels::supported_isas()) {
    const kernels::ScopedIsa scope(isa);
    const ScopedThreads one(1);
    const auto computed = compute_all<Op, T>(g, in, dots, y_bar);
    if (const std::string complaint = outside_bound<T>(computed, needed); !complaint.empty()) {
      return name + " (" + std::string(isa) + ") " + complaint;
    }
    if (best.empty()) {
      best = computed;
    }
  }
  if (name.find("onednn") == std::string::npos) {
    const ScopedThreads two(2);
    const auto again = compute_all<Op, T>(g, in, dots, y_bar);
    if (const std::string complaint = different_bits(best, again); !complaint.empty()) {
      return name + " " + complaint;
    }
  }
  return {};
}

}  // namespace detail

namespace detail {

/// The candidates that can do the problem as things stand, each once.
template <class Op>
std::vector<std::string> able_kernels(const typename Op::Geometry& g) {
  std::vector<std::string> names;
  for (const KernelChoice& choice : Op::kernels(g)) {
    if (choice.able && std::find(names.begin(), names.end(), choice.name) == names.end()) {
      names.push_back(choice.name);
    }
  }
  return names;
}

template <class Op>
std::string kernel_complaint_in_its_type(const std::string& name,
                                         const typename Op::Geometry& g,
                                         const Inputs<double>& in,
                                         const std::vector<Tensor<double>>& dots,
                                         const Tensor<double>& y_bar,
                                         const AllOf<Rounded>& needed) {
  const bool narrow = name.find("_f32_") != std::string::npos;
  return narrow ? kernel_complaint<Op, float>(name, g, in, dots, y_bar, needed)
                : kernel_complaint<Op, double>(name, g, in, dots, y_bar, needed);
}

/// What a candidate that transforms its data is held against; nothing where the descriptor does not
/// say.
template <class Op>
std::optional<AllOf<Rounded>> transformed(const std::string& name,
                                          const typename Op::Geometry& g,
                                          const Inputs<double>& in,
                                          const std::vector<Tensor<double>>& dots,
                                          const Tensor<double>& y_bar) {
  const Lifted<Rounded> lifted(in, dots, y_bar);
  if constexpr (requires {
                  Op::template transformed<Rounded>(name, g, lifted.in, lifted.dots, lifted.y_bar);
                }) {
    return Op::template transformed<Rounded>(name, g, lifted.in, lifted.dots, lifted.y_bar);
  } else {
    return std::nullopt;
  }
}

}  // namespace detail

/// Empty where every candidate of `Op` that can do this problem agrees with the specification.
template <class Op>
std::string kernels_complaint(const typename Op::Geometry& g,
                              const Inputs<double>& in,
                              const std::vector<Tensor<double>>& dots,
                              const Tensor<double>& y_bar) {
  const kernels::ScopedNumerics strict(Numerics::strict);
  const auto needed = detail::compute_all<Op, Rounded>(g, in, dots, y_bar);
  const std::vector<std::string> names = detail::able_kernels<Op>(g);
  for (const std::string& name : names) {
    const std::string complaint =
        detail::kernel_complaint_in_its_type<Op>(name, g, in, dots, y_bar, needed);
    if (!complaint.empty()) {
      return complaint;
    }
  }
  const kernels::ScopedNumerics fast(Numerics::fast);
  for (const std::string& name : detail::able_kernels<Op>(g)) {
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      continue;
    }
    const auto own = detail::transformed<Op>(name, g, in, dots, y_bar);
    if (!own) {
      return name + " needs Numerics::fast and states no bound";
    }
    const std::string complaint =
        detail::kernel_complaint_in_its_type<Op>(name, g, in, dots, y_bar, *own);
    if (!complaint.empty()) {
      return complaint;
    }
  }
  return {};
}

}  // namespace fenestra::check
