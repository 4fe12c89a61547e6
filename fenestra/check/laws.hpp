// The law harness: what must be true of any operator in the list, on any problem.
//
// Exact laws run in rationals and compare with ==. Operators that leave the rationals are checked
// in intervals, where "equal" means that two rigorous enclosures of the same number meet, or in
// floating point against a derived bound. Nothing here has a tolerance of its own, and nothing
// knows an operator by name.
#pragma once

#include <fenestra/check/answers.hpp>
#include <fenestra/check/graph_law.hpp>
#include <fenestra/check/kernel_law.hpp>
#include <fenestra/check/law.hpp>
#include <fenestra/check/law_data.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/transform.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fenestra::check {

/// All laws of one operator on one problem. Construct, then `run`.
template <Operator Op>
class Laws {
 public:
  using Geometry = typename Op::Geometry;

  Laws(const Geometry& geometry, std::uint64_t seed) : g_(geometry), data_(geometry, seed) {}

  std::vector<LawOutcome> run() {
    std::vector<LawOutcome> outcomes;
    for (const Law law : kLaws) {
      LawOutcome outcome{law, Verdict::holds, {}};
      try {
        const std::optional<std::string> failure = test(law);
        outcome.verdict = !failure           ? Verdict::not_applicable
                          : failure->empty() ? Verdict::holds
                                             : Verdict::broken;
        if (failure) {
          outcome.detail = *failure;
        }
      } catch (const Error& error) {
        outcome.verdict = Verdict::broken;
        outcome.detail =
            std::string("threw ") + std::string(code_name(error.code())) + ": " + error.what();
      }
      outcomes.push_back(std::move(outcome));
    }
    return outcomes;
  }

 private:
  /// The complaint of a law, empty where it holds, nothing where it does not apply.
  using Complaint = std::optional<std::string>;

  /// Whether the operator runs on rationals at all, and whether it ever leaves them: operators that
  /// only sum and copy count their `terms`, the others bring an `error_bound` or are measured in
  /// intervals. Laws are compiled only where they can apply.
  static constexpr bool kMayBeExact = requires(const Geometry& g, const Inputs<Rational>& in) {
    Op::template forward<Rational>(g, in);
  };
  static constexpr bool kOnActivations =
      requires(const Geometry& g) { Op::with_layout(g, Layout{}); };
  static constexpr bool kMayLeave = !requires(const Geometry& g) { Op::terms(g); };
  static constexpr bool kMeasuredInIntervals =
      kMayLeave && !requires(const Geometry& g, const Inputs<double>& in) {
        Op::template error_bound<double>(g, in);
      };

  bool is_exact() const { return Op::algebra(g_) != Algebra::transcendental; }

  Complaint test(Law law) {
    switch (law) {
      case Law::answers: return answers_complaint<Op>();
      case Law::problem_string: return problem_string();
      case Law::layouts:
        if constexpr (kOnActivations) {
          return layouts();
        }
        return {};
      case Law::batch:
        if constexpr (kOnActivations) {
          return batch();
        }
        return {};
      case Law::groups: return groups();
      case Law::sizes: return sizes();
      case Law::graph: return compiled();
      case Law::rounding: return rounding();
      case Law::kernels:
        if constexpr (requires { Op::kernels(g_); }) {
          return kernels_complaint<Op>(
              g_,
              data_.inputs([&](const Shape& shape) { return data_.reals(shape); }),
              data_.template directions<double>(),
              data_.small(Op::output(g_).shape));
        }
        return {};
      case Law::finite_differences:
        if constexpr (requires { Op::jumps(g_); }) {  // a quotient across a jump says nothing
          if (Op::jumps(g_)) {
            return {};
          }
        }
        break;
      default: break;
    }
    if constexpr (kMayBeExact) {
      if (is_exact()) {
        return test_exactly(law);
      }
    }
    if constexpr (kMayLeave) {
      if (!is_exact()) {
        return test_in_enclosures(law);
      }
    }
    return "the algebra contradicts what the operator offers";
  }

  Complaint test_exactly(Law law) {
    switch (law) {
      case Law::adjoint: return adjoint<Rational>();
      case Law::duals: return duals<Rational>();
      case Law::nested_duals: return nested_duals<Rational>();
      case Law::finite_differences:
        if constexpr (kMayLeave) {  // a curved function has no exact difference quotient
          if (Op::algebra(g_) == Algebra::rational) {
            return enclosed_differences();
          }
        }
        return exact_differences();
      case Law::intervals: return intervals_enclose_rationals();
      case Law::engine: return engine<Rational>();
      default: return {};
    }
  }

  Complaint test_in_enclosures(Law law) {
    switch (law) {
      case Law::adjoint: return adjoint<detail::Real>();
      case Law::duals: return duals<detail::Real>();
      case Law::nested_duals: return nested_duals<detail::Real>();
      case Law::finite_differences: return enclosed_differences();
      case Law::intervals: return intervals_enclose_reals();
      case Law::engine: return engine<detail::Real>();
      default: return {};
    }
  }

  // The laws.

  Complaint problem_string() const {
    const std::string text = to_string(g_);
    const Geometry again = Op::parse(text);
    if (!(again == g_)) {
      return "\"" + text + "\" parses to \"" + to_string(again) + "\"";
    }
    if (hash_value(again) != hash_value(g_)) {
      return "equal geometries, different hashes";
    }
    return "";
  }

  template <class T>
  Complaint adjoint() {
    const Inputs<T> in = detail::convert_doubles<T>(data_.sample());
    const std::vector<Tensor<T>> dots = data_.template directions<T>();
    const Tensor<T> y_bar = detail::lift<T>(data_.small(Op::output(g_).shape));
    const T left = detail::dot(y_bar, Op::template jvp<T>(g_, in, dots));
    const std::vector<Tensor<T>> bars = Op::template vjp<T>(g_, in, y_bar);
    T right(0);
    for (std::size_t i = 0; i < bars.size(); ++i) {
      if (bars[i].shape() != dots[i].shape()) {
        return "vjp of input " + std::to_string(i) + " has shape " + to_string(bars[i].shape());
      }
      right = right + detail::dot(bars[i], dots[i]);
    }
    if (detail::agree(left, right)) {
      return "";
    }
    return "<y_bar, J x_dot> = " + detail::show(left) +
           ", <J' y_bar, x_dot> = " + detail::show(right);
  }

  template <class T>
  Complaint duals() {
    const Inputs<T> in = detail::convert_doubles<T>(data_.sample());
    const std::vector<Tensor<T>> dots = data_.template directions<T>();
    const Tensor<Dual<T>> y = Op::template forward<Dual<T>>(g_, detail::dual(in, dots));
    const auto complaint = detail::compare(y.map([](const Dual<T>& v) { return v.tangent; }),
                                           Op::template jvp<T>(g_, in, dots));
    if (!complaint.empty()) {
      return "tangent " + complaint;
    }
    return detail::compare(y.map([](const Dual<T>& v) { return v.value; }),
                           Op::template forward<T>(g_, in));
  }

  template <class T>
  Complaint nested_duals() {
    const Inputs<T> in = detail::convert_doubles<T>(data_.sample());
    const std::vector<Tensor<T>> u = data_.template directions<T>();
    const std::vector<Tensor<T>> v = data_.template directions<T>();
    const Inputs<Dual<T>> inner = detail::dual(in, u);
    std::vector<Tensor<Dual<T>>> outer;
    for (const Tensor<T>& t : v) {
      outer.push_back(t.map([](const T& value) { return Dual<T>(value); }));
    }
    const auto whole = Op::template forward<Dual<Dual<T>>>(g_, detail::dual(inner, outer));
    const auto derived = Op::template jvp<Dual<T>>(g_, inner, outer);
    return detail::compare(whole.map([](const Dual<Dual<T>>& y) { return y.tangent.tangent; }),
                           derived.map([](const Dual<T>& y) { return y.tangent; }));
  }

  /// (f(x + v) - f(x - v))/2 for v in one input at a time: exact for a linear input with any step,
  /// and for a piecewise linear one as long as no tie lies between, which `distinct` and steps of
  /// 1/4 ensure.
  Complaint exact_differences() {
    using T = Rational;
    const bool linear = Op::algebra(g_) == Algebra::multilinear;
    const Inputs<T> in =
        detail::convert_doubles<T>(linear ? data_.sample() : data_.distinct_inputs());
    const T step = linear ? T(1) : T(1, 16);
    for (std::size_t i = 0; i < in.values.size(); ++i) {
      std::vector<Tensor<T>> dots;
      for (const Tensor<T>& value : in.values) {
        dots.emplace_back(value.shape());
      }
      dots[i] = detail::lift<T>(data_.small(in.values[i].shape())).map([&](const T& d) {
        return d * step;
      });
      Inputs<T> above = in;
      Inputs<T> below = in;
      detail::shift(above.values[i], dots[i], T(1));
      detail::shift(below.values[i], dots[i], T(-1));
      const Tensor<T> high = Op::template forward<T>(g_, above);
      const Tensor<T> low = Op::template forward<T>(g_, below);
      Tensor<T> quotient(high.shape());
      T* out = quotient.mutable_data();
      for (Index j = 0; j < high.size(); ++j) {
        out[j] = (high[j] - low[j]) / T(2);
      }
      const auto complaint = detail::compare(Op::template jvp<T>(g_, in, dots), quotient);
      if (!complaint.empty()) {
        return "input " + std::to_string(i) + ", " + complaint;
      }
    }
    return "";
  }

  /// Taylor: (f(x+hv) - f(x-hv))/2h = f'(x)v + h^2/6 f'''(xi)v^3 with xi on the segment. Every part
  /// is an enclosure: the third derivative comes from three levels of duals over the whole segment,
  /// so the two sides must meet.
  Complaint enclosed_differences() {
    using T = detail::Real;
    using D1 = Dual<T>;
    using D2 = Dual<D1>;
    using D3 = Dual<D2>;
    const double h = 0x1p-16;
    const Inputs<T> in = detail::convert_doubles<T>(data_.sample());
    std::vector<Tensor<T>> dots = data_.template directions<T>();
    if constexpr (requires { Op::scalar_value(g_); }) {
      // A step that takes a small scalar (a sharpness) through zero would leave its domain.
      const std::vector<TensorInfo> infos = Op::inputs(g_);
      for (std::size_t i = 0; i < infos.size(); ++i) {
        if (infos[i].role == Role::scalar) {
          const T size(std::min(1.0, std::fabs(Op::scalar_value(g_))));
          dots[i] = dots[i].map([&](const T& v) { return v * size; });
        }
      }
    }
    Inputs<T> above = in;
    Inputs<T> below = in;
    Inputs<D3> segment;
    segment.data = in.data;
    for (std::size_t i = 0; i < in.values.size(); ++i) {
      detail::shift(above.values[i], dots[i], T(h));
      detail::shift(below.values[i], dots[i], T(-h));
      Tensor<D3> seeds(in.values[i].shape());
      D3* out = seeds.mutable_data();
      for (Index j = 0; j < seeds.size(); ++j) {
        const T range = hull(above.values[i][j], below.values[i][j]);
        const T v = dots[i][j];
        out[j] = D3{D2{D1{range, v}, D1(v)}, D2(D1(v))};
      }
      segment.values.push_back(std::move(seeds));
    }
    const Tensor<T> high = Op::template forward<T>(g_, above);
    const Tensor<T> low = Op::template forward<T>(g_, below);
    const Tensor<D3> third = Op::template forward<D3>(g_, segment);
    const Tensor<T> derivative = Op::template jvp<T>(g_, in, dots);
    for (Index j = 0; j < high.size(); ++j) {
      const T quotient = (high[j] - low[j]) / T(2 * h);
      const T remainder = third[j].tangent.tangent.tangent * T(h * h) / T(6);
      if (!intersects(derivative[j], quotient - remainder)) {
        return "element " + std::to_string(j) + ": jvp " + detail::show(derivative[j]) +
               ", difference " + detail::show(quotient) + ", remainder " + detail::show(remainder);
      }
    }
    return "";
  }

  Complaint intervals_enclose_rationals() {
    using T = detail::Real;
    const Inputs<double> in = data_.sample();
    const auto exact = detail::convert_doubles<Rational>(in);
    const auto rounded = detail::convert_doubles<T>(in);
    const Tensor<double> y_bar = data_.small(Op::output(g_).shape);
    std::vector<Tensor<double>> dots = data_.template directions<double>();
    std::vector<Tensor<Rational>> exact_dots;
    std::vector<Tensor<T>> rounded_dots;
    for (const auto& d : dots) {
      exact_dots.push_back(detail::lift<Rational>(d));
      rounded_dots.push_back(detail::lift<T>(d));
    }
    std::string complaint =
        enclose(Op::template forward<T>(g_, rounded), Op::template forward<Rational>(g_, exact));
    if (!complaint.empty()) {
      return "value " + complaint;
    }
    complaint = enclose(Op::template jvp<T>(g_, rounded, rounded_dots),
                        Op::template jvp<Rational>(g_, exact, exact_dots));
    if (!complaint.empty()) {
      return "jvp " + complaint;
    }
    const auto bars = Op::template vjp<T>(g_, rounded, detail::lift<T>(y_bar));
    const auto exact_bars = Op::template vjp<Rational>(g_, exact, detail::lift<Rational>(y_bar));
    for (std::size_t i = 0; i < bars.size(); ++i) {
      complaint = enclose(bars[i], exact_bars[i]);
      if (!complaint.empty()) {
        return "vjp of input " + std::to_string(i) + " " + complaint;
      }
    }
    return "";
  }

  static std::string enclose(const Tensor<detail::Real>& intervals, const Tensor<Rational>& exact) {
    for (Index i = 0; i < exact.size(); ++i) {
      if (!intervals[i].contains(exact[i])) {
        return "element " + std::to_string(i) + ": " + detail::show(intervals[i]) +
               " does not enclose " + detail::show(exact[i]);
      }
    }
    return {};
  }

  /// Beyond the rationals the exact value is known to lie within the bound around the long double
  /// one.
  Complaint intervals_enclose_reals() {
    const Inputs<double> in = data_.sample();
    if constexpr (kMeasuredInIntervals) {
      // No bound is known: two rigorous enclosures of the same number must meet.
      using Wide = Interval<long double>;
      const auto narrow =
          Op::template forward<detail::Real>(g_, detail::convert_doubles<detail::Real>(in));
      const auto wide = Op::template forward<Wide>(g_, detail::convert_doubles<Wide>(in));
      return detail::compare(narrow.map([](const detail::Real& v) { return Wide(v.lo(), v.hi()); }),
                             wide);
    } else {
      return enclose_within_bound(in);
    }
  }

  Complaint enclose_within_bound(const Inputs<double>& in) {
    const auto wide = detail::convert_doubles<long double>(in);
    const auto y = Op::template forward<long double>(g_, wide);
    const auto bound = Op::template error_bound<long double>(g_, wide);
    const auto enclosure =
        Op::template forward<detail::Real>(g_, detail::convert_doubles<detail::Real>(in));
    for (Index i = 0; i < y.size(); ++i) {
      if (static_cast<long double>(enclosure[i].lo()) > y[i] + bound[i] ||
          static_cast<long double>(enclosure[i].hi()) < y[i] - bound[i]) {
        return "element " + std::to_string(i) + ": " + detail::show(enclosure[i]) +
               " does not meet " + detail::show(y[i]) + " +- " + detail::show(bound[i]);
      }
    }
    return "";
  }

  template <class T>
  Tensor<T> relayout(const Tensor<T>& tensor, Role role, Layout to) const {
    switch (role) {
      case Role::activation:
        return activation_to_layout(tensor, Op::batched(g_), Op::layout(g_), to);
      case Role::weight: return weight_to_layout(tensor, Op::layout(g_), to);
      case Role::channels:
      case Role::scalar: return tensor;
    }
    return tensor;
  }

  Complaint layouts() {
    const Layout to =
        Op::layout(g_) == Layout::channels_first ? Layout::channels_last : Layout::channels_first;
    const Geometry other = Op::with_layout(g_, to);
    const Inputs<double> in = data_.sample();
    const std::vector<TensorInfo> infos = Op::inputs(g_);
    Inputs<double> moved;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      moved.values.push_back(relayout(in.values[i], infos[i].role, to));
    }
    for (const Tensor<Index>& data : in.data) {
      moved.data.push_back(relayout(data, Role::activation, to));
    }
    const auto y = Op::template forward<double>(g_, in);
    std::string complaint = detail::compare(Op::template forward<double>(other, moved),
                                            relayout(y, Op::output(g_).role, to));
    if (!complaint.empty()) {
      return "value " + complaint;
    }
    const Tensor<double> y_bar = data_.small(y.shape());
    const auto bars = Op::template vjp<double>(g_, in, y_bar);
    const auto moved_bars =
        Op::template vjp<double>(other, moved, relayout(y_bar, Op::output(g_).role, to));
    for (std::size_t i = 0; i < bars.size(); ++i) {
      complaint = detail::compare(moved_bars[i], relayout(bars[i], infos[i].role, to));
      if (!complaint.empty()) {
        return "vjp of input " + std::to_string(i) + " " + complaint;
      }
    }
    return "";
  }

  template <class T>
  static Tensor<T> sample_of(const Tensor<T>& batch, Index n) {
    Shape shape;
    for (int axis = 1; axis < batch.rank(); ++axis) {
      shape.push_back(batch.shape()[axis]);
    }
    return sliced(batch, 0, n, 1).reshaped(shape);
  }

  Complaint batch() {
    if (!Op::batched(g_)) {
      return {};
    }
    const Geometry one = Op::single_sample(g_);
    const Inputs<double> in = data_.sample();
    const std::vector<TensorInfo> infos = Op::inputs(g_);
    const auto y = Op::template forward<double>(g_, in);
    const Tensor<double> y_bar = data_.small(y.shape());
    const auto bars = Op::template vjp<double>(g_, in, y_bar);
    for (Index n = 0; n < y.shape()[0]; ++n) {
      Inputs<double> slice;
      for (std::size_t i = 0; i < infos.size(); ++i) {
        slice.values.push_back(infos[i].role == Role::activation ? sample_of(in.values[i], n)
                                                                 : in.values[i]);
      }
      for (const Tensor<Index>& data : in.data) {
        slice.data.push_back(sample_of(data, n));
      }
      std::string complaint =
          detail::compare(Op::template forward<double>(one, slice), sample_of(y, n));
      if (!complaint.empty()) {
        return "sample " + std::to_string(n) + ", value " + complaint;
      }
      const auto slice_bars = Op::template vjp<double>(one, slice, sample_of(y_bar, n));
      for (std::size_t i = 0; i < infos.size(); ++i) {
        if (infos[i].role != Role::activation) {
          continue;
        }
        complaint = detail::compare(slice_bars[i], sample_of(bars[i], n));
        if (!complaint.empty()) {
          return "sample " + std::to_string(n) + ", vjp " + complaint;
        }
      }
    }
    return "";
  }

  /// Part `j` of `parts` of a tensor, along the axis that groups divide.
  template <class T>
  Tensor<T> group_of(const Tensor<T>& tensor, Role role, Index j, Index parts) const {
    const bool first = Op::layout(g_) == Layout::channels_first;
    int axis = 0;
    if (role == Role::activation) {
      axis = first ? (Op::batched(g_) ? 1 : 0) : tensor.rank() - 1;
    }
    if (role == Role::weight) {
      axis = first ? 0 : tensor.rank() - 1;
    }
    const Index count = tensor.shape()[axis] / parts;
    return sliced(tensor, axis, j * count, count);
  }

  Complaint groups() {
    if constexpr (requires { Op::groups(g_); }) {
      const Index parts = Op::groups(g_);
      if (parts == 1) {
        return {};
      }
      const Geometry one = Op::one_group(g_);
      const Inputs<double> in = data_.sample();
      const std::vector<TensorInfo> infos = Op::inputs(g_);
      const auto y = Op::template forward<double>(g_, in);
      for (Index j = 0; j < parts; ++j) {
        Inputs<double> slice;
        for (std::size_t i = 0; i < infos.size(); ++i) {
          slice.values.push_back(group_of(in.values[i], infos[i].role, j, parts));
        }
        const auto complaint = detail::compare(Op::template forward<double>(one, slice),
                                               group_of(y, Op::output(g_).role, j, parts));
        if (!complaint.empty()) {
          return "group " + std::to_string(j) + ", " + complaint;
        }
      }
      return "";
    }
    return {};
  }

  /// Value, cotangents and tangent of `Op::call` by tape and by jets against the specification's
  /// own loops.
  template <class T>
  Complaint engine() {
    if constexpr (requires(const std::vector<Tensor<T>>& in,
                           const std::vector<Tensor<Index>>& data) {
                    Op::template call<Tensor<T>>(g_, in, data);
                  } &&
                  !std::derived_from<Op, EngineOperator<Op>>) {
      const Inputs<T> in = detail::convert_doubles<T>(data_.sample());
      const std::vector<Tensor<T>> dots = data_.template directions<T>();
      const Tensor<T> y_bar = detail::lift<T>(data_.small(Op::output(g_).shape));
      std::string complaint =
          detail::compare(Engine<Op>::template forward<T>(g_, in), Op::template forward<T>(g_, in));
      if (!complaint.empty()) {
        return "value " + complaint;
      }
      complaint = detail::compare(Engine<Op>::template jvp<T>(g_, in, dots),
                                  Op::template jvp<T>(g_, in, dots));
      if (!complaint.empty()) {
        return "jet " + complaint;
      }
      const auto by_tape = Engine<Op>::template vjp<T>(g_, in, y_bar);
      const auto by_spec = Op::template vjp<T>(g_, in, y_bar);
      for (std::size_t i = 0; i < by_spec.size(); ++i) {
        complaint = detail::compare(by_tape[i], by_spec[i]);
        if (!complaint.empty()) {
          return "tape, input " + std::to_string(i) + " " + complaint;
        }
      }
      return "";
    }
    return {};
  }

  Complaint compiled() {
    if constexpr (requires(const std::vector<Tensor<double>>& in,
                           const std::vector<Tensor<Index>>& data) {
                    Op::template call<Tensor<double>>(g_, in, data);
                  }) {
      const Inputs<double> in =
          data_.inputs([&](const Shape& shape) { return data_.reals(shape); });
      const auto call = [&]<class V>(const std::vector<V>& values) {
        return Op::template call<V>(g_, values, in.data);
      };
      return graph_complaint(
          call, in.values, data_.template directions<double>(), data_.small(Op::output(g_).shape));
    }
    return {};
  }

  Complaint sizes() const {
    if constexpr (requires { Op::size_complaint(g_); }) {
      return Op::size_complaint(g_);
    }
    return {};
  }

  /// |computed - exact| <= bound, the exact value replaced by a wider computation with a bound of
  /// its own.
  template <class Narrow, class Wide>
  std::string within_bound(const Inputs<double>& in) {
    const auto narrow = detail::convert_doubles<Narrow>(in);
    const auto wide = detail::convert_doubles<Wide>(in);
    const auto computed = Op::template forward<Narrow>(g_, narrow);
    const auto reference = Op::template forward<Wide>(g_, wide);
    const auto bound = error_bound(narrow);
    const auto reference_bound = error_bound(wide);
    for (Index i = 0; i < computed.size(); ++i) {
      const long double error =
          std::fabs(static_cast<long double>(computed[i]) - static_cast<long double>(reference[i]));
      const long double allowed = bound[i] + reference_bound[i];
      if (!(error <= allowed)) {
        return "element " + std::to_string(i) + ": error " + detail::show(error) + ", bound " +
               detail::show(allowed);
      }
    }
    return {};
  }

  /// The operator's own bound, or gamma(n) * f(|x|, |w|, ...) for sums of n terms.
  template <class T>
  Tensor<long double> error_bound(const Inputs<T>& in) {
    if constexpr (requires { Op::terms(g_); }) {
      const long double u = std::numeric_limits<T>::epsilon() / 2.0L;
      const auto n = static_cast<long double>(Op::terms(g_));
      const long double gamma = n * u / (1 - n * u);
      const auto magnitudes = detail::convert<long double>(
          in, [](const T& v) { return std::fabs(static_cast<long double>(v)); });
      return Op::template forward<long double>(g_, magnitudes).map([&](long double m) {
        return gamma * std::fabs(m);
      });
    } else {
      return Op::template error_bound<T>(g_, in);
    }
  }

  /// Without a bound of its own, an operator is measured by its definition in Interval<T>. What T
  /// computes rounds where the interval widens, so it lies inside when both take the same steps; a
  /// kernel adds in another order, which costs at most as much again, hence one width on each side.
  template <class T>
  static std::string beside(const Tensor<T>& computed, const Tensor<Interval<T>>& enclosure) {
    for (Index i = 0; i < computed.size(); ++i) {
      const T width = enclosure[i].width();
      if (!(computed[i] >= enclosure[i].lo() - width && computed[i] <= enclosure[i].hi() + width)) {
        return "element " + std::to_string(i) + ": " + detail::show(computed[i]) +
               " is more than one width away from " + detail::show(enclosure[i]);
      }
    }
    return {};
  }

  template <class T>
  std::string measured_in_intervals(const Inputs<double>& in) {
    using I = Interval<T>;
    const auto plain = detail::convert_doubles<T>(in);
    const auto enclosed = detail::convert_doubles<I>(in);
    std::string complaint =
        beside(Op::template forward<T>(g_, plain), Op::template forward<I>(g_, enclosed));
    if (!complaint.empty()) {
      return "value " + complaint;
    }
    std::vector<Tensor<T>> dots = data_.template directions<T>();
    std::vector<Tensor<I>> enclosed_dots;
    for (const Tensor<T>& dot : dots) {
      enclosed_dots.push_back(dot.map([](const T& v) { return I(v); }));
    }
    complaint = beside(Op::template jvp<T>(g_, plain, dots),
                       Op::template jvp<I>(g_, enclosed, enclosed_dots));
    if (!complaint.empty()) {
      return "jvp " + complaint;
    }
    const Tensor<T> y_bar = detail::lift<T>(data_.small(Op::output(g_).shape));
    const auto bars = Op::template vjp<T>(g_, plain, y_bar);
    const auto enclosed_bars =
        Op::template vjp<I>(g_, enclosed, y_bar.map([](const T& v) { return I(v); }));
    for (std::size_t i = 0; i < bars.size(); ++i) {
      complaint = beside(bars[i], enclosed_bars[i]);
      if (!complaint.empty()) {
        return "vjp of input " + std::to_string(i) + " " + complaint;
      }
    }
    return {};
  }

  Complaint rounding() {
    const Inputs<double> in = data_.inputs([&](const Shape& shape) { return data_.reals(shape); });
    if constexpr (kMeasuredInIntervals) {
      std::string complaint = measured_in_intervals<float>(in);
      if (!complaint.empty()) {
        return "f32 " + complaint;
      }
      complaint = measured_in_intervals<double>(in);
      return complaint.empty() ? "" : "f64 " + complaint;
    } else {
      return rounding_within_bound(in);
    }
  }

  Complaint rounding_within_bound(const Inputs<double>& in) {
    std::string complaint = within_bound<float, double>(in);
    if (!complaint.empty()) {
      return "f32 " + complaint;
    }
    complaint = within_bound<double, long double>(in);
    if (!complaint.empty()) {
      return "f64 " + complaint;
    }
    return "";
  }

  Geometry g_;
  LawData<Op> data_;
};

}  // namespace fenestra::check
