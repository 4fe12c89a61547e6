// The body of `make_cases`: values, VJP, JVP and double backward of an operator in f64, in f32 and
// in `Rounded`, which bounds the differences. Only the generated unit of each operator includes it.
//
// Everything goes through `Op::call`, the operator as people call it, on tensors, and on values of
// tapes, of jets and of tapes over tapes.
#pragma once

#include <fenestra/check/rounded.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_inputs.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/random.hpp>
#include <tests/parity/cases.hpp>

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra::parity {

using check::Rounded;

namespace detail {

/// Inputs and directions, as doubles that float holds.
struct Draws {
  Inputs<double> in;
  std::vector<Tensor<double>> dots;
  std::vector<Tensor<double>> weights;  ///< v_i of sum <x_bar_i, v_i>
  Tensor<double> y_bar;
};

/// What is compared, in this order: y, the x_bar_i, y_dot, and the gradients of sum <x_bar_i, v_i>
/// by every input and by y_bar.
template <class T>
using Results = std::vector<Tensor<T>>;

/// Magnitudes from 1/64 to 2 + 1/64, all different, either sign: no ties, no kink within rounding.
inline Tensor<double> draw(Random& random, const Shape& shape) {
  Tensor<double> result(shape);
  double* out = result.mutable_data();
  const Index n = result.size();
  for (Index i = 0; i < n; ++i) {
    const double place =
        (static_cast<double>(i) + 0.5 + random.real() / 4) / static_cast<double>(n);
    const auto value = static_cast<double>(static_cast<float>(1.0 / 64 + 2 * place));
    out[i] = random.chance(2) ? value : -value;
  }
  for (Index i = n - 1; i > 0; --i) {
    std::swap(out[i], out[random.between(0, i)]);
  }
  return result;
}

template <Operator Op>
Draws draw_all(Random& random, const typename Op::Geometry& g) {
  Draws draws;
  const std::vector<TensorInfo> infos = Op::inputs(g);
  Index count = 0;
  for (const TensorInfo& info : infos) {
    count += info.shape.elements().value_or(0);
  }
  // Different between the inputs too: the maximum of two tensors has ties like any other.
  const Tensor<double> all = draw(random, Shape{count});
  Index used = 0;
  draws.in = random_inputs<Op>(
      g, random, [&](const Shape& shape) { return filled(shape, [&] { return all[used++]; }); });
  for (const TensorInfo& info : infos) {
    draws.dots.push_back(draw(random, info.shape));
    draws.weights.push_back(draw(random, info.shape));
  }
  draws.y_bar = draw(random, Op::output(g).shape);
  return draws;
}

template <class T>
Tensor<T> lift(const Tensor<double>& values) {
  return values.map([](double v) { return from_double<T>(v); });
}
template <class T>
std::vector<Tensor<T>> lift(const std::vector<Tensor<double>>& list) {
  std::vector<Tensor<T>> result;
  for (const Tensor<double>& values : list) {
    result.push_back(lift<T>(values));
  }
  return result;
}

/// The gradients of sum <x_bar_i, v_i>, a tape over a tape.
template <Operator Op, class T>
void append_double_backward(const typename Op::Geometry& g,
                            const Inputs<T>& in,
                            const Tensor<T>& y_bar,
                            const std::vector<Tensor<T>>& weights,
                            Results<T>& results) {
  Tape<T> outer_tape;
  Tape<T> inner_tape;  // the later one: its gradients are variables of the other
  std::vector<Value<T>> outer;
  std::vector<Value<T>> inner;
  for (const Tensor<T>& value : in.values) {
    outer.push_back(outer_tape.parameter(value));
    inner.push_back(inner_tape.parameter(outer.back()));
  }
  const Value<T> seed = outer_tape.parameter(y_bar);
  const Value<T> y = Op::template call<Value<T>>(g, inner, in.data);
  std::vector<Seed<T>> seeds;
  if (inner_tape.owns(y)) {
    const auto bars = inner_tape.backward(Seed<T>{y, seed});
    for (std::size_t i = 0; i < inner.size(); ++i) {
      const Value<T> bar = bars[inner[i]];
      if (outer_tape.owns(bar)) {
        seeds.push_back({bar, weights[i]});
      }
    }
  }
  outer.push_back(seed);
  if (seeds.empty()) {
    for (const Value<T>& variable : outer) {
      results.push_back(zeros_like(variable.tensor()));
    }
    return;
  }
  const auto grads = outer_tape.backward(std::span<const Seed<T>>(seeds));
  for (const Value<T>& variable : outer) {
    results.push_back(grads[variable]);
  }
}

template <Operator Op, class T>
Results<T> compute(const typename Op::Geometry& g, const Draws& draws) {
  const Inputs<T> in{lift<T>(draws.in.values), draws.in.data};
  const Tensor<T> y_bar = lift<T>(draws.y_bar);
  Results<T> results{Engine<Op>::template forward<T>(g, in)};
  for (Tensor<T>& bar : Engine<Op>::template vjp<T>(g, in, y_bar)) {
    results.push_back(std::move(bar));
  }
  results.push_back(Engine<Op>::template jvp<T>(g, in, lift<T>(draws.dots)));
  append_double_backward<Op, T>(g, in, y_bar, lift<T>(draws.weights), results);
  return results;
}

/// Collects arrays and their descriptions; written in one go at the end.
class Record {
 public:
  template <class T>
  void add(const std::string& name, const Tensor<T>& values) {
    describe(name, "f8", values.shape());
    for (const T& value : values.values()) {
      append(static_cast<double>(value));
    }
  }
  void add_data(const std::string& name, const Tensor<Index>& values) {
    describe(name, "i8", values.shape());
    for (const Index value : values.values()) {
      append(value);
    }
  }
  void write(std::string_view op, std::string_view problem, std::uint64_t seed, std::FILE* out) {
    const std::string header = "{\"op\":\"" + std::string(op) + "\",\"problem\":\"" +
                               std::string(problem) + "\",\"seed\":" + std::to_string(seed) +
                               ",\"arrays\":[" + arrays_ + "]}\n";
    std::fwrite(header.data(), 1, header.size(), out);
    std::fwrite(bytes_.data(), 1, bytes_.size(), out);
  }

 private:
  void describe(const std::string& name, const char* type, const Shape& shape) {
    std::string extents;
    for (const Index extent : shape) {
      extents += (extents.empty() ? "" : ",") + std::to_string(extent);
    }
    arrays_ +=
        (arrays_.empty() ? "" : ",") + ("[\"" + name + "\",\"") + type + "\",[" + extents + "]]";
  }
  template <class Word>
  void append(Word word) {
    const char* begin = reinterpret_cast<const char*>(&word);
    bytes_.insert(bytes_.end(), begin, begin + sizeof word);
  }

  std::string arrays_;
  std::vector<char> bytes_;
};

/// A random problem that the peer can answer: what it composes of a logarithm and a quotient
/// cancels or overflows where a parameter is far from 1. The laws hold ours to its bound there.
template <Operator Op>
typename Op::Geometry draw_problem(Random& random) {
  while (true) {
    const typename Op::Geometry g = Op::random(random);
    if constexpr (requires { Op::scalar_value(g); }) {
      const double size = std::fabs(Op::scalar_value(g));
      if (size < 0.5 || size > 8) {
        continue;
      }
    }
    return g;
  }
}

template <Operator Op>
void write_case(std::uint64_t seed, std::string_view problem, std::FILE* out) {
  Random random(seed);
  const typename Op::Geometry drawn = draw_problem<Op>(random);
  const typename Op::Geometry g = problem.empty() ? drawn : Op::parse(problem);
  const Draws draws = draw_all<Op>(random, g);
  const Results<double> wide = compute<Op, double>(g, draws);
  const Results<float> narrow = compute<Op, float>(g, draws);
  const Results<Rounded> bounds = compute<Op, Rounded>(g, draws);

  Record record;
  for (std::size_t i = 0; i < draws.in.values.size(); ++i) {
    record.add("x", draws.in.values[i]);
    record.add("x_dot", draws.dots[i]);
    record.add("v", draws.weights[i]);
  }
  for (const Tensor<Index>& data : draws.in.data) {
    record.add_data("data", data);
  }
  record.add("y_bar", draws.y_bar);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    record.add("f64", wide[i]);
    record.add("f32", narrow[i]);
    record.add("magnitude", bounds[i].map([](const Rounded& v) { return v.magnitude(); }));
    record.add("roundings",
               bounds[i].map([](const Rounded& v) { return static_cast<double>(v.roundings()); }));
  }
  record.write(Op::name, to_string(g), seed, out);
}

}  // namespace detail

template <Operator Op>
Cases make_cases() {
  return {Op::name, &detail::write_case<Op>};
}

}  // namespace fenestra::parity
