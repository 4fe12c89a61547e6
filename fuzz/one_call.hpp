// One call of one operator from an input: a problem, and numbers for its tensors. Every candidate
// that accepts runs forward, VJP and JVP; sums of small integers are exact in any order, so where
// an operator is linear or linear between ties a candidate is held to the specification within the
// bound of its divisions, and everywhere the sanitizers watch.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/check/rounded.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/ops/rules.hpp>

#include <fuzz/calls.hpp>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::fuzz {

namespace detail {

/// Elements of all tensors of a call together: small, so that the fuzzer makes many.
constexpr Index kMostElements = 1500;
/// Visits of a cell by a window that the specification, in numbers that bound their rounding, can
/// take.
constexpr Index kMostVisits = 200'000;

template <Operator Op>
bool is_small(const typename Op::Geometry& g) {
  std::vector<TensorInfo> tensors = Op::inputs(g);
  tensors.push_back(Op::output(g));
  if constexpr (requires { Op::data(g); }) {
    for (const TensorInfo& info : Op::data(g)) {
      tensors.push_back(info);
    }
  }
  Index elements = 0;
  for (const TensorInfo& info : tensors) {
    elements += info.shape.elements().value_or(kMostElements + 1);
    if (elements > kMostElements) {
      return false;
    }
  }
  return true;
}

inline Tensor<double> small_integers(const Shape& shape, Bytes& bytes) {
  Tensor<double> tensor(shape);
  for (double& value : tensor.mutable_values()) {
    value = static_cast<double>(bytes.between(-4, 4));
  }
  return tensor;
}

template <class T>
Tensor<T> convert(const Tensor<double>& values) {
  return values.map([](double value) { return from_double<T>(value); });
}

/// The operands of value, tangent and cotangents.
template <Operator Op>
struct Operands {
  Inputs<double> in;
  std::vector<Tensor<double>> dots;
  Tensor<double> y_bar;

  Operands(const typename Op::Geometry& g, Bytes& bytes) {
    for (const TensorInfo& info : Op::inputs(g)) {
      in.values.push_back(small_integers(info.shape, bytes));
      dots.push_back(small_integers(info.shape, bytes));
      if constexpr (requires { Op::scalar_value(g); }) {
        if (info.role == Role::scalar) {
          in.values.back() = Tensor<double>(Shape{}, Op::scalar_value(g));
        }
      }
    }
    if constexpr (requires { Op::data(g); }) {
      Index least = -1;
      if constexpr (requires { Op::data_least(g); }) {
        least = Op::data_least(g);
      }
      for (const TensorInfo& info : Op::data(g)) {
        Tensor<Index> data(info.shape);
        for (Index& value : data.mutable_values()) {
          value =
              bytes.between(least, std::max(least, std::min<Index>(Op::data_limit(g) - 1, 255)));
        }
        in.data.push_back(std::move(data));
      }
    }
    y_bar = small_integers(Op::output(g).shape, bytes);
  }

  /// Value, tangent, then the cotangents.
  template <class T>
  std::vector<Tensor<T>> compute(const typename Op::Geometry& g) const {
    Inputs<T> values;
    std::vector<Tensor<T>> tangents;
    for (std::size_t i = 0; i < in.values.size(); ++i) {
      values.values.push_back(convert<T>(in.values[i]));
      tangents.push_back(convert<T>(dots[i]));
    }
    values.data = in.data;
    std::vector<Tensor<T>> all{Engine<Op>::template forward<T>(g, values),
                               Engine<Op>::template jvp<T>(g, values, tangents)};
    for (Tensor<T>& bar : Engine<Op>::template vjp<T>(g, values, convert<T>(y_bar))) {
      all.push_back(std::move(bar));
    }
    return all;
  }
};

/// `needed` bounds its rounding, whatever the order of sums; both sides round.
template <class T>
void compare(const std::string& who,
             const std::vector<Tensor<T>>& got,
             const std::vector<Tensor<check::Rounded>>& needed) {
  const double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const double own = std::numeric_limits<double>::epsilon() / 2;
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (got[k].shape() != needed[k].shape()) {
      complain(who + ": shape " + to_string(got[k].shape()) + " of result " + std::to_string(k));
    }
    for (Index i = 0; i < got[k].size(); ++i) {
      const check::Rounded& exact = needed[k][i];
      const auto n = static_cast<double>(exact.roundings());
      const double bound = (n * u / (1 - n * u) + n * own / (1 - n * own)) * exact.magnitude();
      if (!(std::fabs(static_cast<double>(got[k][i]) - exact.value()) <= bound)) {
        complain(who + ": element " + std::to_string(i) + " of result " + std::to_string(k) +
                 " is " + std::to_string(got[k][i]) + ", needed " + std::to_string(exact.value()));
      }
    }
  }
}

template <Operator Op>
std::optional<std::vector<Tensor<check::Rounded>>> reference(const Operands<Op>& operands,
                                                             const typename Op::Geometry& g) {
  const Algebra algebra = Op::algebra(g);
  if (algebra != Algebra::multilinear && algebra != Algebra::piecewise_linear) {
    return std::nullopt;
  }
  if constexpr (requires { Op::costs(g); }) {
    if (Op::costs(g).multiply_adds > kMostVisits) {
      return std::nullopt;
    }
  }
  return operands.template compute<check::Rounded>(g);
}

}  // namespace detail

template <Operator Op>
void call(std::string_view problem, Bytes bytes) {
  const typename Op::Geometry g = Op::parse(problem);
  if (!detail::is_small<Op>(g)) {
    return;
  }
  const std::vector<std::string_view> isas = kernels::supported_isas();
  const kernels::ScopedIsa isa(isas[bytes.byte() % isas.size()]);
  set_threads(static_cast<int>(bytes.between(1, 3)));
  const detail::Operands<Op> operands(g, bytes);
  if constexpr (requires { Op::kernels(g); }) {
    const auto needed = detail::reference(operands, g);
    for (const KernelChoice& choice : Op::kernels(g)) {
      if (!choice.refusal.empty()) {
        continue;
      }
      const kernels::ForcedKernel forced(choice.name, kernels::IfRefused::choose_freely);
      if (choice.name.find("_f32_") != std::string::npos) {
        const auto got = operands.template compute<float>(g);
        needed ? detail::compare(choice.name, got, *needed) : void();
      } else {
        const auto got = operands.template compute<double>(g);
        needed ? detail::compare(choice.name, got, *needed) : void();
      }
    }
  }
  operands.template compute<float>(g);
  operands.template compute<double>(g);
}

template <Operator Op>
Call make_call() {
  return {Op::name, &call<Op>};
}

}  // namespace fenestra::fuzz
