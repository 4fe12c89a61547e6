// Reductions over axes: sums, products, norms, extremes and where they are.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/softmax/softmax.hpp>

#include <algorithm>
#include <limits>

namespace fenestra::onnx {

namespace {

/// Which axes a call reduces, in every version; nothing where it leaves x as it is.
template <class T>
std::optional<ReduceOptions> reduce_options(const Call<T>& c) {
  const std::optional<std::vector<Index>> axes = c.list_or(1, "axes");
  ReduceOptions options{.keep = c.flag("keepdims", true)};
  if (!axes || axes->empty()) {
    if (c.flag("noop_with_empty_axes")) {
      return std::nullopt;
    }
    for (int axis = 0; axis < c.at(0).rank(); ++axis) {
      options.axes.push_back(axis);
    }
    return options;
  }
  options.axes = axis_list(resolve_axes(*axes, c.at(0).rank()));
  return options;
}

/// f over the numbers that meet.
template <class F>
Tensor<Index> reduced(const Tensor<Index>& x, const ReduceOptions& options, Index first, F f) {
  const ReducedShape to = reduced_shape("reduce", x.shape(), options.axes);
  Tensor<Index> result(to.kept, first);
  if (x.size() > 0) {
    const BroadcastLoop<1> loop(x.shape(), {to.kept});
    Index* out = result.mutable_data();
    for (Index run = 0; run < loop.outer(); ++run) {
      for (Index i = 0; i < loop.inner(); ++i) {
        Index& sum = out[loop.offset(0, run) + i * loop.inner_step(0)];
        sum = f(sum, x[run * loop.inner() + i]);
      }
    }
  }
  return options.keep ? result : result.reshaped(to.removed);
}

/// Over all axes of space, wherever the channels are.
template <class T>
bool is_over_space(const Call<T>& c, const std::optional<ReduceOptions>& options) {
  const int axes = options ? static_cast<int>(options->axes.size()) : 0;
  const int rank = c.at(0).rank();
  return rank > 2 && axes >= rank - 2 && (rank > 3 || axes > 1 || options->axes[0] == 2);
}

/// A reduction that integers have too, from `first` on.
template <class T, class OnValues, class OnIntegers>
Results<T> reduce_rule(Call<T>& c, OnValues on_values, Index first, OnIntegers on_known) {
  const std::optional<ReduceOptions> options = reduce_options(c);
  if (!c.at(0).is_real() && c.at(0).is_known()) {
    const ElementType type = c.at(0).type();
    const Tensor<Index> x = c.at(0).numbers();
    return c.same(options ? reduced(x,
                                    *options,
                                    first,
                                    [&](Index a, Index b) { return wrapped(type, on_known(a, b)); })
                          : x);
  }
  const Value<T> x = c.value(0);
  if (x.rank() == 0 || (options && options->axes.empty())) {
    return c.same(on_values(reshape(x, Shape{1}), ReduceOptions{.axes = {0}}));
  }
  c.reach.whole = is_over_space(c, options);
  return c.same(options ? on_values(x, *options) : x);
}
/// One of real numbers only; without axes it is applied to each element alone.
template <class T, class F>
Results<T> real_rule(Call<T>& c, F f) {
  const std::optional<ReduceOptions> options = reduce_options(c);
  const Value<T> x = c.value(0);
  if (!options || x.rank() == 0) {
    return c.same(reshape(f(reshape(x, Shape{1, -1}), ReduceOptions{.axes = {0}}), x.shape()));
  }
  return c.same(f(x, *options));
}

/// Halves are multiplied until one is left, so that no derivative divides by an element.
template <class T>
Value<T> product(Value<T> x, const ReduceOptions& options) {
  const ReducedShape to = reduced_shape("prod", x.shape(), options.axes);
  for (const int axis : options.axes) {
    while (x.shape()[axis] > 1) {
      const Index extent = x.shape()[axis];
      const Index half = extent / 2;
      Value<T> y = slice(x, axis, 0, half) * slice(x, axis, half, half);
      if (extent % 2 == 1) {
        y = concat({y, slice(x, axis, extent - 1, 1)}, axis);
      }
      x = y;
    }
    if (x.shape()[axis] == 0) {
      x = Value<T>(Tensor<T>(to.kept, T(1)));
      break;
    }
  }
  return options.keep ? x : reshape(x, to.removed);
}

/// The reduced axes as one, the last.
template <class T>
Value<T> log_sum_exp(const Value<T>& x, const ReduceOptions& options) {
  const ReducedShape to = reduced_shape("logsumexp", x.shape(), options.axes);
  std::vector<int> order;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (std::find(options.axes.begin(), options.axes.end(), axis) == options.axes.end()) {
      order.push_back(axis);
    }
  }
  order.insert(order.end(), options.axes.begin(), options.axes.end());
  Shape lines = to.removed;
  lines.push_back(to.count);
  const Value<T> y = logsumexp(reshape(transpose(x, order), lines), -1);
  return options.keep ? reshape(y, to.kept) : y;
}

template <class T>
Results<T> arg_rule(Call<T>& c, bool greatest) {
  const int axis = resolve_axis(c.integer("axis", 0), c.at(0).rank());
  const bool keep = c.flag("keepdims", true);
  const bool last = c.flag("select_last_index");
  Value<T> x = c.value(0);
  const Index extent = x.shape()[axis];
  if (last && extent > 0) {
    x = slice(x, axis, extent - 1, extent, -1);
  }
  const ArgOptions options{.axis = axis, .keep = keep};
  Datum<T> found(greatest ? argmax(x, options) : argmin(x, options));
  if (last) {
    found = Datum<T>(found.numbers().map([&](Index n) { return extent - 1 - n; }));
  }
  return {found};
}

}  // namespace

void add_reductions(OperatorList& list) {
  list.family("reduction");
  list.add("ReduceSum", {1, 11, 13}, []<class T>(Call<T>& c) -> Results<T> {
    return reduce_rule(
        c,
        [](const Value<T>& x, const ReduceOptions& options) { return sum(x, options); },
        0,
        [](Index a, Index b) { return a + b; });
  });
  list.add("ReduceMean", {1, 11, 13, 18}, []<class T>(Call<T>& c) -> Results<T> {
    const Results<T> sums = reduce_rule(
        c,
        [](const Value<T>& x, const ReduceOptions& options) { return mean(x, options); },
        0,
        [](Index a, Index b) { return a + b; });
    const Tensor<Index>* integers = sums[0].as_numbers();
    if (integers == nullptr || integers->size() == 0) {
      return sums;
    }
    const Index count = c.shape(0).elements().value_or(0) / integers->size();
    return c.same(integers->map([&](Index n) { return n / std::max<Index>(count, 1); }));
  });
  list.add("ReduceMax", {1, 11, 12, 13, 18, 20}, []<class T>(Call<T>& c) -> Results<T> {
    return reduce_rule(
        c,
        [](const Value<T>& x, const ReduceOptions& options) { return max_over(x, options); },
        std::numeric_limits<Index>::min(),
        [](Index a, Index b) { return std::max(a, b); });
  });
  list.add("ReduceMin", {1, 11, 12, 13, 18, 20}, []<class T>(Call<T>& c) -> Results<T> {
    return reduce_rule(
        c,
        [](const Value<T>& x, const ReduceOptions& options) { return min_over(x, options); },
        std::numeric_limits<Index>::max(),
        [](Index a, Index b) { return std::min(a, b); });
  });
  list.add("ReduceProd", {1, 11, 13, 18}, []<class T>(Call<T>& c) -> Results<T> {
    return reduce_rule(
        c,
        [](const Value<T>& x, const ReduceOptions& options) { return product(x, options); },
        1,
        [](Index a, Index b) {
          return static_cast<Index>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
        });
  });
  list.add("ReduceL1", {1, 11, 13, 18}, []<class T>(Call<T>& c) -> Results<T> {
    return real_rule(
        c, [](const Value<T>& x, const ReduceOptions& options) { return sum(abs(x), options); });
  });
  list.add("ReduceL2", {1, 11, 13, 18}, []<class T>(Call<T>& c) -> Results<T> {
    return real_rule(c, [](const Value<T>& x, const ReduceOptions& options) {
      return sqrt(sum(x * x, options));
    });
  });
  list.add("ReduceSumSquare", {1, 11, 13, 18}, []<class T>(Call<T>& c) -> Results<T> {
    return real_rule(
        c, [](const Value<T>& x, const ReduceOptions& options) { return sum(x * x, options); });
  });
  list.add("ReduceLogSum", {1, 11, 13, 18}, []<class T>(Call<T>& c) -> Results<T> {
    return real_rule(
        c, [](const Value<T>& x, const ReduceOptions& options) { return log(sum(x, options)); });
  });
  list.add("ReduceLogSumExp", {1, 11, 13, 18}, []<class T>(Call<T>& c) -> Results<T> {
    return real_rule(
        c, [](const Value<T>& x, const ReduceOptions& options) { return log_sum_exp(x, options); });
  });
  list.add(
      "ArgMax",
      {1, 11, 12, 13},
      []<class T>(Call<T>& c) -> Results<T> { return arg_rule(c, true); },
      Derivative::none);
  list.add(
      "ArgMin",
      {1, 11, 12, 13},
      []<class T>(Call<T>& c) -> Results<T> { return arg_rule(c, false); },
      Derivative::none);
}

}  // namespace fenestra::onnx
