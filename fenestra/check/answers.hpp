// The known answers of an operator, computed again: exactly in rationals where it stays there, else
// by an enclosure that must meet the printed digits. What is wrong in value and derivatives alike,
// no other law can see.
#pragma once

#include <fenestra/ops/operator.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/spec/scalar.hpp>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace fenestra::check {

namespace detail {

inline bool matches(const Rational& got, double needed, double) {
  return got == Rational::from_double(needed);
}

inline bool matches(const Interval<double>& got, double needed, double half_unit) {
  return intersects(got, Interval<double>(needed - half_unit, needed + half_unit));
}

/// "" where the elements of `got` are those of `needed`.
template <class T>
std::string mismatch(const Tensor<T>& got, const std::vector<double>& needed, double half_unit) {
  if (got.size() != static_cast<Index>(needed.size())) {
    return std::to_string(got.size()) + " elements, needed " + std::to_string(needed.size());
  }
  for (Index i = 0; i < got.size(); ++i) {
    const double value = needed[static_cast<std::size_t>(i)];
    if (!matches(got[i], value, half_unit)) {
      std::ostringstream text;
      text << "element " << i << ": " << got[i] << ", needed " << value;
      return text.str();
    }
  }
  return {};
}

template <class T>
Tensor<T> known_tensor(const Shape& shape, const std::vector<double>& values) {
  return Tensor<double>(shape, values).map([](double v) { return from_double<T>(v); });
}

template <class T, class Op>
std::string answer_complaint(const KnownAnswer& answer, const typename Op::Geometry& g) {
  Inputs<T> in;
  const std::vector<TensorInfo> infos = Op::inputs(g);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    in.values.push_back(known_tensor<T>(infos[i].shape, answer.inputs.at(i)));
  }
  if constexpr (requires { Op::data(g); }) {
    const std::vector<TensorInfo> data = Op::data(g);
    for (std::size_t i = 0; i < data.size(); ++i) {
      in.data.emplace_back(data[i].shape, answer.data.at(i));
    }
  }
  const std::string complaint =
      mismatch(Op::template forward<T>(g, in), answer.y, answer.half_unit);
  if (!complaint.empty() || answer.y_bar.empty()) {
    return complaint;
  }
  const auto bars = Op::template vjp<T>(g, in, known_tensor<T>(Op::output(g).shape, answer.y_bar));
  for (std::size_t i = 0; i < answer.bars.size(); ++i) {
    const std::string wrong = mismatch(bars[i], answer.bars[i], answer.half_unit);
    if (!wrong.empty()) {
      return "gradient to " + std::string(infos[i].name) + ", " + wrong;
    }
  }
  return {};
}

}  // namespace detail

/// The first known answer of `Op` that does not come out, "" where all do, nothing where it names
/// none.
template <Operator Op>
std::optional<std::string> answers_complaint() {
  if constexpr (requires { Op::answers(); }) {
    for (const KnownAnswer& answer : Op::answers()) {
      const auto g = Op::parse(answer.problem);
      std::string complaint;
      if (Op::algebra(g) == Algebra::transcendental) {
        complaint = detail::answer_complaint<Interval<double>, Op>(answer, g);
      } else if constexpr (requires(const Inputs<Rational>& in) {
                             Op::template forward<Rational>(g, in);
                           }) {
        complaint = detail::answer_complaint<Rational, Op>(answer, g);
      }
      if (!complaint.empty()) {
        return "\"" + std::string(answer.problem) + "\" " + complaint;
      }
    }
    return "";
  } else {
    return std::nullopt;
  }
}

}  // namespace fenestra::check
