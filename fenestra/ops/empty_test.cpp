// Operators on tensors without elements: legal, and no kernel may divide by a count of nothing.
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/all.hpp>

#include <gtest/gtest.h>

namespace fenestra {
namespace {

template <class T>
void run_on_nothing(Layout layout, const Shape& x_shape, Index channels) {
  const bool last = layout == Layout::channels_last;
  const auto weight = [&](Index out, Index in) {
    return Tensor<T>(last ? Shape{2, in, out} : Shape{out, in, 2}, T(1));
  };
  const auto run = [&](auto&& f) {
    Tape<T> tape;
    const auto x = tape.parameter(Tensor<T>(x_shape, T(1)));
    const auto y = f(x);
    EXPECT_EQ(tape.backward(Seed<T>{y, Tensor<T>(y.shape(), T(1))})[x].shape(), x_shape);
    return y.tensor();
  };
  run([&](const auto& x) { return conv(x, weight(4, channels), ConvOptions{.layout = layout}); });
  run([&](const auto& x) { return max_pool(x, {.kernel = {2}, .layout = layout}); });
  run([&](const auto& x) { return avg_pool(x, {.kernel = {2}, .layout = layout}); });
  run([&](const auto& x) { return smooth_max_pool(x, {.kernel = {2}, .layout = layout}); });
  run([&](const auto& x) { return lp_pool(x, {.kernel = {2}, .layout = layout}); });
  run([&](const auto& x) { return adaptive_avg_pool(x, {.output_size = {2}, .layout = layout}); });
  run([&](const auto& x) { return adaptive_max_pool(x, {.output_size = {2}, .layout = layout}); });
}

TEST(Empty, EmptyBatchesAndChannelsRunForwardAndBackward) {
  run_on_nothing<float>(Layout::channels_first, {0, 3, 5}, 3);
  run_on_nothing<float>(Layout::channels_first, {2, 0, 5}, 0);
  run_on_nothing<float>(Layout::channels_last, {0, 5, 3}, 3);
  run_on_nothing<float>(Layout::channels_last, {2, 5, 0}, 0);
  run_on_nothing<double>(Layout::channels_first, {2, 0, 5}, 0);
  run_on_nothing<double>(Layout::channels_last, {2, 5, 0}, 0);
}

TEST(Empty, AConvolutionOverNoChannelsIsItsBias) {
  const Tensor<float> y = conv(
      Tensor<float>(Shape{1, 0, 4}), Tensor<float>(Shape{2, 0, 3}), Tensor<float>({2}, {3, 4}));
  EXPECT_EQ(y, Tensor<float>(Shape{1, 2, 2}, {3, 3, 4, 4}));
}

}  // namespace
}  // namespace fenestra
