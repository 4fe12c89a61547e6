// vmap and per-sample gradients against a loop over the items, exactly where the arithmetic is.
#include <fenestra/engine/vmap.hpp>
#include <fenestra/ops/concat/concat.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv_transpose/conv_transpose.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/ops/transpose/transpose.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

namespace fenestra {
namespace {

using R = Tensor<Rational>;

R numbers(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  R result(shape);
  for (Rational& value : result.mutable_values()) {
    value = Rational(2 * random.between(-4, 3) + 1, 2);
  }
  return result;
}

template <class T>
Tensor<T> item(const Tensor<T>& stacked, Index i) {
  Shape shape;
  for (int axis = 1; axis < stacked.rank(); ++axis) {
    shape.push_back(stacked.shape()[axis]);
  }
  return sliced(stacked, 0, i, 1).reshaped(shape);
}

/// f over the items against one call per item.
template <class F>
void expect_vmap_is_a_loop(const F& f, const R& stacked) {
  const R together = vmap(f, over(stacked));
  for (Index i = 0; i < stacked.shape()[0]; ++i) {
    EXPECT_EQ(item(together, i), f(item(stacked, i))) << "item " << i;
  }
}

TEST(Vmap, OverInputsAndOverWeightsOfAConvolution) {
  for (const Layout layout : {Layout::channels_first, Layout::channels_last}) {
    const bool first = layout == Layout::channels_first;
    const ConvOptions options{
        .stride = 2, .padding = {{1, 0}, {0, 1}}, .groups = 2, .layout = layout};
    const R x = numbers(first ? Shape{2, 4, 5, 4} : Shape{2, 5, 4, 4}, 1);
    const R w = numbers(first ? Shape{6, 2, 3, 2} : Shape{3, 2, 2, 6}, 2);
    const R b = numbers(Shape{6}, 3);
    expect_vmap_is_a_loop([&](const auto& v) { return conv(v, w, b, options); },
                          numbers(with_front(3, x.shape()), 4));
    expect_vmap_is_a_loop([&](const auto& v) { return conv(x, v, b, options); },
                          numbers(with_front(3, w.shape()), 5));
    expect_vmap_is_a_loop([&](const auto& v) { return conv(x, w, v, options); },
                          numbers(with_front(3, b.shape()), 6));
  }
}

TEST(Vmap, OverSingleSamplesAndTransposedConvolutions) {
  const R w = numbers(Shape{3, 2, 2, 2}, 7);
  expect_vmap_is_a_loop([&](const auto& v) { return conv_transpose(v, w, {.stride = 2}); },
                        numbers(Shape{4, 3, 2, 3}, 8));
  const R x = numbers(Shape{3, 2, 3}, 9);
  expect_vmap_is_a_loop([&](const auto& v) { return conv_transpose(x, v, {.stride = 2}); },
                        numbers(with_front(4, w.shape()), 10));
}

TEST(Vmap, OverPoolsReductionsAndElementwiseFunctions) {
  const R other = numbers(Shape{3, 1}, 11);
  expect_vmap_is_a_loop(
      [&](const auto& v) {
        return sum(max_pool(v, {.kernel = 2, .stride = 1}) * other, {.axes = {0}});
      },
      numbers(Shape{4, 2, 2, 4, 3}, 12));
  expect_vmap_is_a_loop([&](const auto& v) { return avg_pool(relu(v) + v, {.kernel = {2}}); },
                        numbers(Shape{4, 2, 5}, 13));
}

template <class V>
struct Net {
  V conv, bias, linear;
  static constexpr auto fields = std::tuple{&Net::conv, &Net::bias, &Net::linear};
};

TEST(PerSampleGrad, EqualsTheGradientOfEachSampleAlone) {
  const Net<R> net{numbers(Shape{2, 1, 2, 2}, 14), numbers(Shape{2}, 15), numbers(Shape{3, 8}, 16)};
  const R images = numbers(Shape{5, 1, 3, 3}, 17);
  const R targets = numbers(Shape{5, 3}, 18);
  const auto loss = [](const auto& n, const auto& x, const auto& target) {
    const auto h = relu(conv(x, n.conv, n.bias));
    return mse_loss(linear(reshape(h, Shape{8}), n.linear), target);
  };
  const auto bars = per_sample_grad(loss, net, over(images), over(targets));
  EXPECT_EQ(bars.conv.shape(), (Shape{5, 2, 1, 2, 2}));
  for (Index i = 0; i < 5; ++i) {
    const auto alone =
        grad([&](const auto& n) { return loss(n, item(images, i), item(targets, i)); }, net);
    EXPECT_EQ(item(bars.conv, i), alone.conv);
    EXPECT_EQ(item(bars.bias, i), alone.bias);
    EXPECT_EQ(item(bars.linear, i), alone.linear);
  }
}

TEST(PerSampleGrad, TakesLabels) {
  const Tensor<double> w(Shape{3, 4},
                         {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.8, -0.9, 0.2, 0.3, 0.1});
  const Tensor<double> x(Shape{2, 4}, {1, 2, -1, 0.5, 0.25, -2, 1, 1});
  const Tensor<Index> labels(Shape{2}, {2, 0});
  const auto loss = [](const auto& weight, const auto& value, const auto& label) {
    return cross_entropy(linear(value, weight), label);
  };
  const auto bars = per_sample_grad(loss, w, over(x), over(labels));
  for (Index i = 0; i < 2; ++i) {
    const Tensor<Index> label(Shape{}, {labels[i]});
    const auto alone =
        grad([&](const auto& weight) { return loss(weight, item(x, i), Selection(label)); }, w);
    // The same sums in the same order: the rows of a product do not depend on their neighbours.
    EXPECT_EQ(item(bars, i), alone);
  }
}

// Transpose, slice and concat have no rule for batches and leave nothing behind: they run item by
// item, on a tape too.
TEST(PerSampleGrad, GoesThroughOperatorsWithoutARule) {
  const R w = numbers(Shape{3, 2}, 21);
  const R xs = numbers(Shape{4, 2, 3}, 22);
  const auto loss = [](const auto& weight, const auto& x) {
    const auto product = weight * transpose(x);
    const auto y = concat({product, slice(product, 0, 1, 2)}, 0);
    return sum(y * y);
  };
  const R bars = per_sample_grad(loss, w, over(xs));
  for (Index i = 0; i < 4; ++i) {
    EXPECT_EQ(item(bars, i), grad([&](const auto& v) { return loss(v, item(xs, i)); }, w));
  }
}

TEST(Vmap, ItemsThatDisagreeAreRefused) {
  const R a = numbers(Shape{2, 3}, 19);
  const R b = numbers(Shape{3, 3}, 20);
  try {
    vmap([](const auto& p, const auto& q) { return p * q; }, over(a), over(b));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::shape_mismatch);
  }
}

}  // namespace
}  // namespace fenestra
