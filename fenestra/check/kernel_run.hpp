// One operator on one problem through the engine, as a caller would run it: data for the laws on
// kernels, the results of a candidate, and what the specification says they are.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/check/exact.hpp>
#include <fenestra/check/kernel_entry.hpp>
#include <fenestra/check/kernel_law.hpp>
#include <fenestra/check/law_data.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_inputs.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::check::detail {

/// Operands of one problem; every scalar here holds them.
struct Operands {
  Inputs<double> in;
  std::vector<Tensor<double>> dots;
  Tensor<double> y_bar;
};

/// Whether the operator offers its specification with the window map written down.
template <class Op>
inline constexpr bool kListed =
    requires(const typename Op::Geometry& g, const Inputs<Exact>& in, const Tensor<Exact>& y_bar) {
      Op::template listed<Exact>(g, in, in.values, y_bar, true);
    };

/// Whether the operator copies cells and computes nothing: any number may then stand in a cell.
template <class Op>
bool only_copies(const typename Op::Geometry& g) {
  if constexpr (requires { Op::terms(g); }) {
    return Op::algebra(g) == Algebra::piecewise_linear && Op::terms(g) == 0;
  }
  return false;
}

/// Draws operands: integers for what is exact, reals for the rest.
template <class Op>
class Draw {
 public:
  Draw(const typename Op::Geometry& g, Random& random) : g_(g), random_(random) {}

  /// Integers so small that every sum of the problem is exact in float: twice the work (a tangent
  /// has two terms) times the largest product stays below 2^24.
  Operands integers() {
    const Index work = work_of<Op>(g_);
    if (work >= kExactFloat / 2) {
      throw Error(ErrorCode::overflow,
                  "check: " + std::to_string(work) +
                      " terms leave the integers that float holds\n  fix: a problem of at most " +
                      std::to_string(kExactFloat / 2 - 1));
    }
    const bool multiplies = Op::inputs(g_).size() > 1;
    Index largest = multiplies ? 3 : 9;
    while (largest > 1 && 2 * work * largest * (multiplies ? largest : 1) >= kExactFloat) {
      --largest;
    }
    const auto small = [&](const Shape& shape) {
      return filled(shape, [&] {
        return random_.chance(8) ? 0.0
                                 : static_cast<double>(random_.between(1, largest)) *
                                       (random_.chance(2) ? 1 : -1);
      });
    };
    Operands operands = all(small);
    if (only_copies<Op>(g_)) {
      operands.in = random_inputs<Op>(g_, random_, [&](const Shape& shape) { return ties(shape); });
      for (Tensor<double>& dot : operands.dots) {
        dot = places(dot.shape());
      }
    }
    if constexpr (requires { Op::cotangent_unit(g_); }) {
      const Tensor<double> unit = Op::cotangent_unit(g_);
      double* out = operands.y_bar.mutable_data();
      for (Index i = 0; i < unit.size(); ++i) {
        out[i] *= unit[i];
      }
    }
    return operands;
  }
  Operands reals() {
    return all([&](const Shape& shape) { return random_reals(shape, random_); });
  }

 private:
  static constexpr Index kExactFloat = Index{1} << 24;

  template <class F>
  Operands all(F&& draw) {
    Operands operands{random_inputs<Op>(g_, random_, draw), {}, draw(Op::output(g_).shape)};
    for (const TensorInfo& info : Op::inputs(g_)) {
      operands.dots.push_back(draw(info.shape));
    }
    return operands;
  }
  /// Few different numbers, zeros of both signs, and in every fourth problem NaN and infinities.
  Tensor<double> ties(const Shape& shape) {
    const bool is_special = random_.chance(4);
    const Index distinct = random_.between(1, 4);
    return filled(shape, [&] {
      if (is_special && random_.chance(6)) {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        const double kinds[] = {
            std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, -kInfinity};
        return kinds[random_.between(0, 3)];
      }
      const auto value = static_cast<double>(random_.between(-distinct, distinct));
      return value == 0 && random_.chance(2) ? -0.0 : value;
    });
  }
  /// Each cell holds its own number: what is read from it tells where it was read.
  static Tensor<double> places(const Shape& shape) {
    Index place = 0;
    return filled(shape, [&] { return static_cast<double>(place++ % kExactFloat); });
  }

  const typename Op::Geometry& g_;
  Random& random_;
};

/// Leaves memory behind that the results will be written into, and in this thread's scratch: what a
/// kernel forgets to write shows.
template <class Op, class T>
void spoil_memory(const typename Op::Geometry& g) {
  constexpr int kCopies = 3;
  std::vector<Tensor<T>> tensors;
  std::vector<Tensor<std::uint8_t>> bytes;
  const auto spoil = [&](const Shape& shape) {
    for (int copy = 0; copy < kCopies; ++copy) {
      tensors.emplace_back(shape, std::numeric_limits<T>::quiet_NaN());
    }
  };
  for (const TensorInfo& info : Op::inputs(g)) {
    spoil(info.shape);
  }
  spoil(Op::output(g).shape);
  bytes.emplace_back(Op::output(g).shape, std::uint8_t{255});
  kernels::spoil_scratch();
}

/// Value, tangent (an empty tensor where it is not asked for) and cotangents, by tape and jets.
template <class Op, class T>
AllOf<T> run_engine(const typename Op::Geometry& g, const Lifted<T>& operands, bool with_tangent) {
  spoil_memory<Op, T>(g);
  AllOf<T> all;
  Tape<T> tape;
  std::vector<Value<T>> values;
  for (const Tensor<T>& value : operands.in.values) {
    values.push_back(tape.parameter(value));
  }
  const Value<T> y = Op::template call<Value<T>>(g, values, operands.in.data);
  all.push_back(y.tensor());
  all.push_back(with_tangent ? Engine<Op>::template jvp<T>(g, operands.in, operands.dots)
                             : Tensor<T>(Shape{0}));
  if (!y.requires_grad()) {
    for (const Tensor<T>& value : operands.in.values) {
      all.push_back(zeros_like(value));
    }
    return all;
  }
  const auto grads = tape.backward(Seed<T>{y, operands.y_bar});
  for (const auto& value : values) {
    all.push_back(grads[value]);
  }
  return all;
}

/// The same by the loops of the specification.
template <class Op>
AllOf<Exact> specified(const typename Op::Geometry& g,
                       const Operands& operands,
                       bool with_tangent) {
  const Lifted<Exact> lifted(operands.in, operands.dots, operands.y_bar);
  if constexpr (kListed<Op>) {
    return Op::template listed<Exact>(g, lifted.in, lifted.dots, lifted.y_bar, with_tangent);
  } else {
    AllOf<Exact> all{Op::template forward<Exact>(g, lifted.in),
                     with_tangent ? Op::template jvp<Exact>(g, lifted.in, lifted.dots)
                                  : Tensor<Exact>(Shape{0})};
    for (Tensor<Exact>& bar : Op::template vjp<Exact>(g, lifted.in, lifted.y_bar)) {
      all.push_back(std::move(bar));
    }
    return all;
  }
}

template <class Op>
std::string quantity_of(const typename Op::Geometry& g, std::size_t k) {
  return k == 0 ? "value" : k == 1 ? "jvp" : "vjp of " + std::string(Op::inputs(g)[k - 2].name);
}

struct Difference {
  std::size_t quantity = 0;
  std::string detail;  ///< empty: none
};

template <class T>
Difference first_difference(const AllOf<T>& got, const AllOf<Exact>& needed) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    const T* g = got[k].data();
    const Exact* n = needed[k].data();
    for (Index i = 0; i < got[k].size(); ++i) {
      const T exact = static_cast<T>(n[i].value);
      if (!(g[i] == exact) && !(std::isnan(g[i]) && std::isnan(exact))) {
        std::ostringstream text;
        text.precision(std::numeric_limits<T>::max_digits10);
        text << "element " << i << " of " << to_string(got[k].shape()) << ": " << g[i]
             << ", needed " << exact;
        return {k, text.str()};
      }
    }
  }
  return {};
}

template <class T>
Difference first_difference(const AllOf<T>& got, const AllOf<Rounded>& needed) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    const std::string complaint = outside_bound(got[k], needed[k]);
    if (!complaint.empty()) {
      return {k, complaint};
    }
  }
  return {};
}

template <class T>
Difference first_other_bits(const AllOf<T>& a, const AllOf<T>& b) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    for (Index i = 0; i < a[k].size(); ++i) {
      if (std::memcmp(a[k].data() + i, b[k].data() + i, sizeof(T)) != 0) {
        std::ostringstream text;
        text.precision(std::numeric_limits<T>::max_digits10);
        text << "element " << i << " of " << to_string(a[k].shape()) << ": " << b[k][i]
             << ", needed " << a[k][i];
        return {k, text.str()};
      }
    }
  }
  return {};
}

}  // namespace fenestra::check::detail
