// Normalisations.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/normalise/normalise.hpp>
#include <fenestra/ops/pool/pool.hpp>

#include <cmath>

namespace fenestra::onnx {

namespace {

/// running * momentum + now * (1 - momentum)
template <class T>
Value<T> followed(const Value<T>& running, const Value<T>& now, double momentum) {
  return scale(running, momentum) + scale(now, 1 - momentum);
}

/// Statistics of its own per activation, as versions before 9 may ask for.
template <class T>
Value<T> normalised_each(const Call<T>& c, double eps) {
  const Value<T> y = (c.value(0) - c.value(3)) / sqrt(c.value(4) + eps);
  return y * c.value(1) + c.value(2);
}

template <class T>
Results<T> batch_norm_rule(Call<T>& c) {
  const double eps = c.real("epsilon", static_cast<double>(1e-5F));
  const double momentum = c.real("momentum", static_cast<double>(0.9F));
  if (c.since < 9 && !c.flag("spatial", true)) {
    return c.same(normalised_each(c, eps));
  }
  Value<T> x = c.value(0);
  const Shape shape = x.shape();
  if (shape.rank() == 1) {
    x = reshape(x, Shape{shape[0], 1});
  }
  const bool by_node = c.since >= 14 && c.flag("training_mode");
  const bool by_pass = c.run.batch_statistics && c.run.pass != nullptr && c.run.pass->is_training();
  if (!by_node && !by_pass) {
    return c.same(
        reshape(batch_norm_inference(
                    x, c.value(3), c.value(4), c.value(1), c.value(2), NormOptions{.eps = eps}),
                shape));
  }
  const Normalised<Value<T>> found = batch_norm(x, c.value(1), c.value(2), NormOptions{.eps = eps});
  Results<T> results = c.same(reshape(found.y, shape));
  const Value<T>* now[] = {&found.mean, &found.var};
  for (const std::size_t i : {std::size_t{3}, std::size_t{4}}) {
    Value<T> next = followed(c.value(i), *now[i - 3], momentum);
    const nn::Buffer<T>* buffer = by_pass ? c.run.buffer(c.values[i]) : nullptr;
    if (buffer != nullptr) {
      next = followed(c.run.pass->current(*buffer), *now[i - 3], momentum);
      c.run.pass->update(*buffer, next);
    }
    results.emplace_back(next, c.at(i).type());
  }
  return results;
}

template <class T>
Results<T> instance_norm_rule(Call<T>& c) {
  const Value<T> x = c.value(0);
  const double eps = c.real("epsilon", static_cast<double>(1e-5F));
  return c.same(group_norm(x, x.shape()[1], c.value(1), c.value(2), NormOptions{.eps = eps}));
}

/// Scale and bias belong to groups before version 21, to channels from then on.
template <class T>
Results<T> group_norm_rule(Call<T>& c) {
  const Value<T> x = c.value(0);
  const double eps = c.real("epsilon", static_cast<double>(1e-5F));
  const Index groups = c.integer("num_groups");
  const auto per_channel = [&](std::size_t i) {
    const Value<T> given = c.value(i);
    if (c.since >= 21 || groups < 1 || x.shape()[1] % groups != 0) {
      return given;
    }
    return reshape(
        broadcast_to(reshape(given, Shape{groups, 1}), Shape{groups, x.shape()[1] / groups}),
        Shape{x.shape()[1]});
  };
  return c.same(group_norm(x, groups, per_channel(1), per_channel(2), NormOptions{.eps = eps}));
}

template <class T>
Results<T> layer_norm_rule(Call<T>& c) {
  const Value<T> x = c.value(0);
  const double eps = c.real("epsilon", static_cast<double>(1e-5F));
  const int axis = resolve_axis(c.integer("axis", -1), x.rank());
  const int count = x.rank() - axis;
  Value<T> y = layer_norm(x, count, eps);
  Shape tail;
  for (int i = axis; i < x.rank(); ++i) {
    tail.push_back(x.shape()[i]);
  }
  if (c.shape(1) == tail && c.has(2) && c.shape(2) == tail) {
    y = layer_norm(x, c.value(1), c.value(2), eps);
  } else {
    y = y * c.value(1);
    y = c.has(2) ? y + c.value(2) : y;
  }
  Results<T> results = c.same(y);
  if (c.wants(1) || c.wants(2)) {
    AxisList axes;
    for (int i = axis; i < x.rank(); ++i) {
      axes.push_back(i);
    }
    results.emplace_back(mean(x, {.axes = axes, .keep = true}));
    const Value<T> var = var_over(x, {.axes = axes, .keep = true});
    results.emplace_back(scalar_constant<Value<T>>(T(1)) / sqrt(var + eps));
  }
  return results;
}

template <class T>
Results<T> rms_norm_rule(Call<T>& c) {
  const Value<T> x = c.value(0);
  const double eps = c.real("epsilon", static_cast<double>(1e-5F));
  AxisList axes;
  for (int i = resolve_axis(c.integer("axis", -1), x.rank()); i < x.rank(); ++i) {
    axes.push_back(i);
  }
  return c.same(x / sqrt(mean(x * x, {.axes = axes, .keep = true}) + eps) * c.value(1));
}

template <class T>
Results<T> lp_norm_rule(Call<T>& c) {
  const Value<T> x = c.value(0);
  const Index p = c.integer("p", 2);
  const ReduceOptions options{.axes = {resolve_axis(c.integer("axis", -1), x.rank())},
                              .keep = true};
  if (p != 1 && p != 2) {
    c.refuse_attribute("p", std::to_string(p));
  }
  return c.same(x / (p == 1 ? sum(abs(x), options) : sqrt(sum(x * x, options))));
}

/// (x - E x) / (sqrt(E x^2 - (E x)^2) + 1e-9), the variance with the mean taken off first.
template <class T>
Results<T> mean_variance_rule(Call<T>& c) {
  const Value<T> x = c.value(0);
  const std::vector<Index> given =
      c.given("axes") ? c.integers("axes") : std::vector<Index>{0, 2, 3};
  const AxisList axes = axis_list(resolve_axes(given, x.rank()));
  const Value<T> difference = x - mean(x, {.axes = axes, .keep = true});
  const Value<T> var = mean(difference * difference, {.axes = axes, .keep = true});
  return c.same(difference / (sqrt(var) + 1e-9));
}

/// x / (bias + alpha/size * sum of squares of near channels)^beta.
template <class T>
Results<T> lrn_rule(Call<T>& c) {
  const Value<T> x = c.value(0);
  const Shape shape = x.shape();
  const Index size = c.integer("size");
  if (shape.rank() < 2 || size < 1 || size > kMaxElements) {
    c.refuse("x = " + to_string(shape) + ", size " + std::to_string(size),
             "channels, and at least one of them");
  }
  Index cells = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) {
    cells *= shape[axis];
  }
  const Value<T> planes = reshape(x * x, Shape{shape[0], 1, shape[1], cells});
  AvgPoolOptions options{.kernel = {size, 1}, .stride = 1};
  options.padding = {{(size - 1) / 2, size / 2}, {0, 0}};
  options.divisor_override = size;
  const Value<T> near = reshape(avg_pool(planes, options, 2), shape);
  return c.same(x /
                power(scale(near, c.real("alpha", static_cast<double>(1e-4F))) + c.real("bias", 1),
                      c.real("beta", 0.75)));
}

}  // namespace

void add_norms(OperatorList& list) {
  list.family("norm");
  list.add("BatchNormalization", {1, 6, 7, 9, 14, 15}, []<class T>(Call<T>& c) -> Results<T> {
    return batch_norm_rule(c);
  });
  list.add("InstanceNormalization", {1, 6, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return instance_norm_rule(c);
  });
  list.add("LayerNormalization", {17}, []<class T>(Call<T>& c) -> Results<T> {
    return layer_norm_rule(c);
  });
  list.add(
      "RMSNormalization", {23}, []<class T>(Call<T>& c) -> Results<T> { return rms_norm_rule(c); });
  list.add("GroupNormalization", {18, 21}, []<class T>(Call<T>& c) -> Results<T> {
    return group_norm_rule(c);
  });
  list.add("LpNormalization", {1, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return lp_norm_rule(c);
  });
  list.add("MeanVarianceNormalization", {9, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return mean_variance_rule(c);
  });
  list.add("LRN", {1, 13}, []<class T>(Call<T>& c) -> Results<T> { return lrn_rule(c); });
}

}  // namespace fenestra::onnx
