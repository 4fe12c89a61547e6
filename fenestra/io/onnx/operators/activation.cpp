// Activations: one value in, one of the same shape out.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/cumsum/cumsum.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/softmax/softmax.hpp>
#include <fenestra/ops/where/where.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fenestra::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
Value<T> constant_of(double number) {
  return scalar_constant<Value<T>>(static_cast<T>(number));
}

/// The exponential, logarithm or hard form of a maximum along an axis. Before version 13 the axes
/// from `axis` on count as one.
template <class T, class F>
Results<T> along_axis(Call<T>& c, F f) {
  const Value<T> x = c.value(0);
  const bool flattens = c.since < 13;
  const Index axis = c.integer("axis", flattens ? 1 : -1);
  if (!flattens) {
    return c.same(f(x, resolve_axis(axis, x.rank())));
  }
  const int at = axis == x.rank() ? x.rank() : resolve_axis(axis, x.rank());
  Index rows = 1;
  Index columns = 1;
  for (int i = 0; i < x.rank(); ++i) {
    (i < at ? rows : columns) *= x.shape()[i];
  }
  return c.same(reshape(f(reshape(x, Shape{rows, columns}), 1), x.shape()));
}

/// 1 at the first of the greatest elements of a line, else 0.
template <class T>
Value<T> hardmax(const Value<T>& x, int axis) {
  const Value<T> is_most = equal(x, max_over(x, {.axes = {axis}, .keep = true}));
  return is_most * less_equal(cumsum(is_most, axis), scalar_constant<Value<T>>(T(1)));
}

template <class T>
Results<T> clip_rule(Call<T>& c) {
  const bool by_inputs = c.since >= 11;
  if (!c.at(0).is_real() && c.at(0).is_known()) {
    Tensor<Index> x = c.at(0).numbers();
    const auto bounded = [&](std::size_t i, auto choose) {
      if (c.has(i)) {
        const Index bound = c.one(i);
        x = x.map([&](Index n) { return choose(n, bound); });
      }
    };
    bounded(1, [](Index a, Index b) { return std::max(a, b); });
    bounded(2, [](Index a, Index b) { return std::min(a, b); });
    return c.same(x);
  }
  double least = by_inputs ? -kInfinity : c.real("min", -kInfinity);
  double largest = by_inputs ? kInfinity : c.real("max", kInfinity);
  Value<T> x = c.value(0);
  bool known = true;
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (by_inputs && c.has(i)) {
      const std::optional<double> number = c.is_constant(i) ? c.known_number(i) : std::nullopt;
      known = known && number.has_value();
      (i == 1 ? least : largest) = number.value_or(0);
    }
  }
  if (known && least <= largest) {
    return c.same(clip(x, least, largest));
  }
  if (known) {  // the largest wins over the least
    return c.same(minimum(maximum(x, constant_of<T>(least)), constant_of<T>(largest)));
  }
  if (c.has(1)) {
    x = maximum(x, c.value(1));
  }
  if (c.has(2)) {
    x = minimum(x, c.value(2));
  }
  return c.same(x);
}

/// x, and slope * x below zero. Before version 7 a slope has one number for each channel.
template <class T>
Results<T> prelu_rule(Call<T>& c) {
  const Value<T> x = c.value(0);
  Value<T> slope = c.value(1);
  const Index count = slope.shape().elements().value_or(0);
  if (slope.rank() == 1 && x.rank() > 2 && count > 1 &&
      (c.since < 7 || count != x.shape()[x.rank() - 1])) {
    Shape shape{count};
    for (int i = 2; i < x.rank(); ++i) {
      shape.push_back(1);
    }
    slope = reshape(slope, shape);
  }
  require_broadcast_budget(c, x.shape(), slope.shape());
  return c.same(where(less(x, scalar_constant<Value<T>>(T(0))), slope * x, x));
}

/// In inference x; in training a share of elements is dropped. The mask is of truth values.
template <class T>
Results<T> dropout_rule(Call<T>& c) {
  double ratio = c.since >= 12 ? 0.5 : c.real("ratio", 0.5);
  bool trains = c.run.pass != nullptr && c.run.pass->is_training();
  if (c.since >= 12) {
    ratio = c.has(1) ? c.known_number(1).value_or(ratio) : ratio;
    trains = trains || (c.has(2) && c.one(2) != 0);
  }
  const Value<T> x = c.value(0);
  if (!trains || ratio == 0) {
    Results<T> results = c.same(x);
    if (c.wants(1)) {
      results.emplace_back(Tensor<Index>(x.shape(), 1),
                           c.since >= 10 ? ElementType::boolean : c.at(0).type());
    }
    return results;
  }
  const nn::MaskRequest request{0, x.shape(), 1 - ratio};
  const Value<T> mask = c.run.pass != nullptr && c.run.pass->is_training()
                            ? c.run.pass->keep_mask(x.shape(), 1 - ratio)
                            : Value<T>(nn::draw_mask<T>(
                                  Key(static_cast<std::uint64_t>(c.integer("seed", 0))), request));
  Results<T> results = c.same(x * mask);
  if (c.wants(1)) {
    results.emplace_back(greater(mask, scalar_constant<Value<T>>(T(0))), ElementType::boolean);
  }
  return results;
}

}  // namespace

void add_activations(OperatorList& list) {
  list.family("activation");
  list.add("Relu", {1, 6, 13, 14}, []<class T>(Call<T>& c) -> Results<T> {
    if (!c.at(0).is_real() && c.at(0).is_known()) {
      return c.same(c.at(0).numbers().map([](Index n) { return std::max<Index>(n, 0); }));
    }
    return c.same(relu(c.value(0)));
  });
  list.add("LeakyRelu", {1, 6, 16}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(leaky_relu(c.value(0), c.real("alpha", 0.01)));
  });
  list.add(
      "PRelu", {1, 6, 7, 9, 16}, []<class T>(Call<T>& c) -> Results<T> { return prelu_rule(c); });
  list.add(
      "Clip", {1, 6, 11, 12, 13}, []<class T>(Call<T>& c) -> Results<T> { return clip_rule(c); });
  list.add("Sigmoid", {1, 6, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(sigmoid(c.value(0)));
  });
  list.add("HardSigmoid", {1, 6, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(
        clip(c.value(0) * c.real("alpha", static_cast<double>(0.2F)) + c.real("beta", 0.5), 0, 1));
  });
  list.add("HardSwish", {14, 22}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    return c.same(x * hard_sigmoid(x));
  });
  list.add("Tanh", {1, 6, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(tanh(c.value(0)));
  });
  list.add(
      "Erf", {9, 13}, []<class T>(Call<T>& c) -> Results<T> { return c.same(erf(c.value(0))); });
  list.add("Softmax", {1, 11, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return along_axis(c, [](const Value<T>& x, int axis) { return softmax(x, axis); });
  });
  list.add("LogSoftmax", {1, 11, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return along_axis(c, [](const Value<T>& x, int axis) { return log_softmax(x, axis); });
  });
  list.add(
      "Hardmax",
      {1, 11, 13},
      []<class T>(Call<T>& c) -> Results<T> {
        return along_axis(c, [](const Value<T>& x, int axis) { return hardmax(x, axis); });
      },
      Derivative::flat);
  list.add("Elu", {1, 6, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(elu(c.value(0), c.real("alpha", 1)));
  });
  list.add("Selu", {1, 6, 22}, []<class T>(Call<T>& c) -> Results<T> {
    const double alpha = c.real("alpha", c.since < 6 ? 1.6732 : 1.67326319217681884765625);
    const double gamma = c.real("gamma", c.since < 6 ? 1.0507 : 1.05070102214813232421875);
    return c.same(scale(elu(c.value(0), alpha), gamma));
  });
  list.add("Celu", {12}, []<class T>(Call<T>& c) -> Results<T> {
    const double alpha = c.real("alpha", 1);
    return c.same(scale(elu(scale(c.value(0), 1 / alpha), 1), alpha));
  });
  list.add("ThresholdedRelu", {1, 10, 22}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    return c.same(where(greater(x, constant_of<T>(c.real("alpha", 1))), x, constant_of<T>(0)));
  });
  list.add("Softplus", {1, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(softplus(c.value(0)));
  });
  list.add("Softsign", {1, 22}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    return c.same(x / (abs(x) + 1));
  });
  list.add("Mish", {18, 22}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    return c.same(x * tanh(softplus(x)));
  });
  list.add("Gelu", {20}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    const std::string form = c.text("approximate", "none");
    if (form == "none") {
      return c.same(gelu(x));
    }
    if (form != "tanh") {
      c.refuse_attribute("approximate", form);
    }
    const Value<T> inner = (x + power(x, 3) * 0.044715) * std::sqrt(2 / 3.14159265358979323846);
    return c.same(x * (tanh(inner) + 1) * 0.5);
  });
  list.add("Swish", {24}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    return c.same(x * sigmoid(x * c.real("alpha", 1)));
  });
  list.add("Shrink", {9}, []<class T>(Call<T>& c) -> Results<T> {
    const Value<T> x = c.value(0);
    const double lambd = c.real("lambd", 0.5);
    const double bias = c.real("bias", 0);
    const Value<T> above = where(greater(x, constant_of<T>(lambd)), x - bias, constant_of<T>(0));
    return c.same(where(less(x, constant_of<T>(-lambd)), x + bias, above));
  });
  list.add("Dropout", {1, 6, 7, 10, 12, 13, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return dropout_rule(c);
  });
}

}  // namespace fenestra::onnx
