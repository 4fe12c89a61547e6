// Arithmetic element by element, comparisons and truth values, with broadcasting. Integers that are
// known are computed as integers, in the width of their type.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/where/where.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fenestra::onnx {

namespace {

template <class T>
Value<T> number(double n) {
  return scalar_constant<Value<T>>(static_cast<T>(n));
}

/// Whether a call is on integers that are there. Those of a comparison of data stay values.
template <class T>
bool on_integers(const Call<T>& c) {
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    if (!c.has(i) || c.at(i).is_real() || !c.at(i).is_known()) {
      return false;
    }
  }
  return true;
}

/// Before version 7 the second operand meets the axes of the first one from `axis` on, and the last
/// ones where it is not said. What both meet in is within the budget.
template <class T>
Datum<T> second_operand(const Call<T>& c) {
  const Datum<T>& b = c.at(1);
  Shape shape = b.shape();
  if (c.since < 7 && c.flag("broadcast") && c.given("axis")) {
    const int rank = c.at(0).rank();
    const int axis = resolve_axis(c.integer("axis"), rank);
    while (shape.rank() < rank - axis) {
      shape.push_back(1);
    }
  }
  require_broadcast_budget(c, c.shape(0), shape);
  return shape == b.shape() ? b : moved(b, [&](const auto& x) { return reshaped(x, shape); });
}

template <class T, class OnValues, class OnIntegers>
Results<T> binary_rule(Call<T>& c, OnValues on_values, OnIntegers on_known) {
  const Datum<T> b = second_operand(c);
  if (on_integers(c)) {
    const ElementType type = c.at(0).type();
    return c.same(combine(c.at(0).numbers(), b.numbers(), [&](Index x, Index y) {
      return wrapped(type, on_known(x, y));
    }));
  }
  return c.same(on_values(c.value(0), b.value()));
}

/// Arithmetic that wraps instead of overflowing.
using Unsigned = std::uint64_t;
Index wrap_add(Index a, Index b) {
  return static_cast<Index>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
}
Index wrap_sub(Index a, Index b) {
  return static_cast<Index>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b));
}
Index wrap_mul(Index a, Index b) {
  return static_cast<Index>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
}
Index divide(Index a, Index b) {
  if (b == 0) {
    throw Error(ErrorCode::division_by_zero,
                "an integer is divided by zero\n  fix: other inputs, or a model that does not");
  }
  return b == -1 ? wrap_sub(0, a) : a / b;
}
Index remainder(Index a, Index b, bool sign_of_a) {
  const Index rest = b == -1 ? 0 : a - wrap_mul(divide(a, b), b);
  return sign_of_a || rest == 0 || (rest < 0) == (b < 0) ? rest : rest + b;
}
Index to_power(Index base, Index exponent) {
  if (exponent < 0) {
    return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  Index result = 1;
  for (; exponent > 0; exponent /= 2) {
    result = exponent % 2 == 1 ? wrap_mul(result, base) : result;
    base = wrap_mul(base, base);
  }
  return result;
}

/// x of the type of the base: integers to a real power are rounded towards zero.
template <class T>
Results<T> pow_rule(Call<T>& c) {
  const Datum<T> exponent = second_operand(c);
  const ElementType type = c.at(0).type();
  if (on_integers(c)) {
    return c.same(combine(c.at(0).numbers(), exponent.numbers(), [&](Index x, Index y) {
      return wrapped(type, to_power(x, y));
    }));
  }
  const std::optional<double> known = c.is_constant(1) ? c.known_number(1) : std::nullopt;
  // One number that is known is a power, whose derivatives have no logarithm.
  const Value<T> y = known && exponent.shape().elements() == 1 && exponent.rank() <= c.at(0).rank()
                         ? power(c.value(0), *known)
                         : pow(c.value(0), exponent.value());
  if (!c.at(0).is_real()) {
    return c.same(Datum<T>(y).numbers());
  }
  return c.same(y);
}

template <class T>
Results<T> mod_rule(Call<T>& c) {
  const bool sign_of_a = c.flag("fmod");
  return binary_rule(
      c,
      [&](const Value<T>& a, const Value<T>& b) {
        return sign_of_a ? Value<T>(sign(a) * mod(abs(a), abs(b))) : Value<T>(mod(a, b));
      },
      [&](Index a, Index b) { return remainder(a, b, sign_of_a); });
}

/// f over any number of operands.
template <class T, class OnValues, class OnIntegers>
Results<T> variadic_rule(Call<T>& c, OnValues on_values, OnIntegers on_known) {
  if (on_integers(c)) {
    Tensor<Index> sum = c.at(0).numbers();
    for (std::size_t i = 1; i < c.inputs.size(); ++i) {
      require_broadcast_budget(c, sum.shape(), c.shape(i));
      sum = combine(sum, c.at(i).numbers(), on_known);
    }
    return c.same(sum);
  }
  Value<T> sum = c.value(0);
  for (std::size_t i = 1; i < c.inputs.size(); ++i) {
    require_broadcast_budget(c, sum.shape(), c.shape(i));
    sum = on_values(sum, c.value(i));
  }
  return c.same(sum);
}

template <class T, class OnValues, class OnIntegers>
Results<T> unary_rule(Call<T>& c, OnValues on_values, OnIntegers on_known) {
  if (on_integers(c)) {
    const ElementType type = c.at(0).type();
    return c.same(c.at(0).numbers().map([&](Index n) { return wrapped(type, on_known(n)); }));
  }
  return c.same(on_values(c.value(0)));
}

template <class T, class OnValues, class OnIntegers>
Results<T> comparison_rule(Call<T>& c, OnValues on_values, OnIntegers on_known) {
  const Datum<T> b = second_operand(c);
  if (on_integers(c)) {
    return {Datum<T>(combine(c.at(0).numbers(),
                             b.numbers(),
                             [&](Index x, Index y) -> Index { return on_known(x, y) ? 1 : 0; }),
                     ElementType::boolean)};
  }
  return {Datum<T>(Value<T>(on_values(c.value(0), b.value())), ElementType::boolean)};
}

}  // namespace

void add_arithmetic(OperatorList& list) {
  list.family("arithmetic");
  list.add("Add", {1, 6, 7, 13, 14}, []<class T>(Call<T>& c) -> Results<T> {
    return binary_rule(
        c, [](const auto& a, const auto& b) { return add(a, b); }, wrap_add);
  });
  list.add("Sub", {1, 6, 7, 13, 14}, []<class T>(Call<T>& c) -> Results<T> {
    return binary_rule(
        c, [](const auto& a, const auto& b) { return sub(a, b); }, wrap_sub);
  });
  list.add("Mul", {1, 6, 7, 13, 14}, []<class T>(Call<T>& c) -> Results<T> {
    return binary_rule(
        c, [](const auto& a, const auto& b) { return mul(a, b); }, wrap_mul);
  });
  list.add("Div", {1, 6, 7, 13, 14}, []<class T>(Call<T>& c) -> Results<T> {
    return binary_rule(
        c, [](const auto& a, const auto& b) { return div(a, b); }, divide);
  });
  list.add(
      "Pow", {1, 7, 12, 13, 15}, []<class T>(Call<T>& c) -> Results<T> { return pow_rule(c); });
  list.add("Mod", {10, 13}, []<class T>(Call<T>& c) -> Results<T> { return mod_rule(c); });
  list.add("Max", {1, 6, 8, 12, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return variadic_rule(
        c,
        [](const Value<T>& a, const Value<T>& b) { return maximum(a, b); },
        [](Index a, Index b) { return std::max(a, b); });
  });
  list.add("Min", {1, 6, 8, 12, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return variadic_rule(
        c,
        [](const Value<T>& a, const Value<T>& b) { return minimum(a, b); },
        [](Index a, Index b) { return std::min(a, b); });
  });
  list.add("Sum", {1, 6, 8, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return variadic_rule(
        c, [](const Value<T>& a, const Value<T>& b) { return add(a, b); }, wrap_add);
  });
  list.add("Mean", {1, 6, 8, 13}, []<class T>(Call<T>& c) -> Results<T> {
    const Results<T> sum = variadic_rule(
        c, [](const Value<T>& a, const Value<T>& b) { return add(a, b); }, wrap_add);
    return c.same(divide_by_count(sum[0].value(), static_cast<Index>(c.inputs.size())));
  });

  list.add("Neg", {1, 6, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return unary_rule(
        c, [](const Value<T>& x) { return neg(x); }, [](Index n) { return wrap_sub(0, n); });
  });
  list.add("Abs", {1, 6, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return unary_rule(
        c,
        [](const Value<T>& x) { return abs(x); },
        [](Index n) { return n < 0 ? wrap_sub(0, n) : n; });
  });
  list.add(
      "Sign",
      {9, 13},
      []<class T>(Call<T>& c) -> Results<T> {
        return unary_rule(
            c,
            [](const Value<T>& x) { return sign(x); },
            [](Index n) { return Index{n > 0} - Index{n < 0}; });
      },
      Derivative::flat);
  list.add("Sqrt", {1, 6, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(sqrt(c.value(0)));
  });
  list.add(
      "Exp", {1, 6, 13}, []<class T>(Call<T>& c) -> Results<T> { return c.same(exp(c.value(0))); });
  list.add(
      "Log", {1, 6, 13}, []<class T>(Call<T>& c) -> Results<T> { return c.same(log(c.value(0))); });
  list.add("Reciprocal", {1, 6, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(div(number<T>(1), c.value(0)));
  });
  list.add(
      "Sin", {7, 22}, []<class T>(Call<T>& c) -> Results<T> { return c.same(sin(c.value(0))); });
  list.add(
      "Cos", {7, 22}, []<class T>(Call<T>& c) -> Results<T> { return c.same(cos(c.value(0))); });
  list.add("Tan", {7, 22}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    return c.same(sin(x) / cos(x));
  });
  list.add("Sinh", {9, 22}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    return c.same((exp(x) - exp(neg(x))) * 0.5);
  });
  list.add("Cosh", {9, 22}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    return c.same((exp(x) + exp(neg(x))) * 0.5);
  });
  list.add(
      "Floor",
      {1, 6, 13},
      []<class T>(Call<T>& c) -> Results<T> { return c.same(floor(c.value(0))); },
      Derivative::flat);
  list.add(
      "Ceil",
      {1, 6, 13},
      []<class T>(Call<T>& c) -> Results<T> { return c.same(ceil(c.value(0))); },
      Derivative::flat);
  list.add(
      "Round",
      {11, 22},
      []<class T>(Call<T>& c) -> Results<T> { return c.same(round(c.value(0))); },
      Derivative::flat);

  list.add(
      "Equal",
      {1, 7, 11, 13, 19},
      []<class T>(Call<T>& c) -> Results<T> {
        return comparison_rule(
            c,
            [](const Value<T>& a, const Value<T>& b) { return equal(a, b); },
            [](Index a, Index b) { return a == b; });
      },
      Derivative::none);
  list.add(
      "Less",
      {1, 7, 9, 13},
      []<class T>(Call<T>& c) -> Results<T> {
        return comparison_rule(
            c,
            [](const Value<T>& a, const Value<T>& b) { return less(a, b); },
            [](Index a, Index b) { return a < b; });
      },
      Derivative::none);
  list.add(
      "LessOrEqual",
      {12, 16},
      []<class T>(Call<T>& c) -> Results<T> {
        return comparison_rule(
            c,
            [](const Value<T>& a, const Value<T>& b) { return less_equal(a, b); },
            [](Index a, Index b) { return a <= b; });
      },
      Derivative::none);
  list.add(
      "Greater",
      {1, 7, 9, 13},
      []<class T>(Call<T>& c) -> Results<T> {
        return comparison_rule(
            c,
            [](const Value<T>& a, const Value<T>& b) { return greater(a, b); },
            [](Index a, Index b) { return a > b; });
      },
      Derivative::none);
  list.add(
      "GreaterOrEqual",
      {12, 16},
      []<class T>(Call<T>& c) -> Results<T> {
        return comparison_rule(
            c,
            [](const Value<T>& a, const Value<T>& b) { return greater_equal(a, b); },
            [](Index a, Index b) { return a >= b; });
      },
      Derivative::none);
  // Truth values are 0 and 1, as numbers and as values.
  list.add(
      "And",
      {1, 7},
      []<class T>(Call<T>& c) -> Results<T> {
        return comparison_rule(
            c,
            [](const Value<T>& a, const Value<T>& b) { return mul(a, b); },
            [](Index a, Index b) { return a != 0 && b != 0; });
      },
      Derivative::none);
  list.add(
      "Or",
      {1, 7},
      []<class T>(Call<T>& c) -> Results<T> {
        return comparison_rule(
            c,
            [](const Value<T>& a, const Value<T>& b) { return maximum(a, b); },
            [](Index a, Index b) { return a != 0 || b != 0; });
      },
      Derivative::none);
  list.add(
      "Xor",
      {1, 7},
      []<class T>(Call<T>& c) -> Results<T> {
        return comparison_rule(
            c,
            [](const Value<T>& a, const Value<T>& b) { return not_equal(a, b); },
            [](Index a, Index b) { return (a != 0) != (b != 0); });
      },
      Derivative::none);
  list.add(
      "Not",
      {1},
      []<class T>(Call<T>& c) -> Results<T> {
        return unary_rule(
            c, [](const Value<T>& x) { return 1 - x; }, [](Index n) { return Index{n == 0}; });
      },
      Derivative::none);
  list.add(
      "IsNaN",
      {9, 13, 20},
      []<class T>(Call<T>& c) -> Results<T> {
        const Value<T> x = c.value(0);
        return {Datum<T>(1 - equal(x, x), ElementType::boolean)};
      },
      Derivative::none);
}

}  // namespace fenestra::onnx
