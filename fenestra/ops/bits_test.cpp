// The same bits, always: results and gradients depend neither on the number of threads nor on the
// batch a sample sits in, eager and compiled. Problems are large enough that work is divided.
#include <fenestra/fenestra.hpp>
#include <fenestra/nn/initialise.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace fenestra {
namespace {

constexpr int kThreads[] = {2, 3, 7, 16};
constexpr Index kBatch = 5;

class Bits : public ::testing::Test {
 protected:
  void TearDown() override { set_threads(before_); }

 private:
  int before_ = threads();
};

template <class T>
Tensor<T> random_tensor(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  return nn::uniform<T>(shape, random, 1.0);
}

template <class T>
::testing::AssertionResult same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  if (a.shape() != b.shape()) {
    return ::testing::AssertionFailure() << to_string(a.shape()) << " and " << to_string(b.shape());
  }
  Index differing = 0;
  for (Index i = 0; i < a.size(); ++i) {
    differing += std::memcmp(a.data() + i, b.data() + i, sizeof(T)) != 0 ? 1 : 0;
  }
  if (differing == 0) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << differing << " of " << a.size() << " elements differ";
}

template <class T>
void expect_same(const std::vector<Tensor<T>>& a, const std::vector<Tensor<T>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(same_bits(a[i], b[i])) << "result " << i;
  }
}

template <class T>
std::vector<Tensor<T>> samples(const std::vector<Tensor<T>>& results, Index begin, Index end) {
  std::vector<Tensor<T>> some;
  for (const Tensor<T>& result : results) {
    Shape shape = result.shape();
    const Index step = shape[0] == 0 ? 0 : result.size() / shape[0];
    shape[0] = end - begin;
    some.emplace_back(
        shape,
        std::span(result.data() + begin * step, static_cast<std::size_t>((end - begin) * step)));
  }
  return some;
}

/// y and x_bar, by the tape and by a program.
template <class T, class F>
std::vector<Tensor<T>> eager(const F& f, const Tensor<T>& x, const Tensor<T>& y_bar) {
  const auto [y, pullback] = vjp(f, x);
  return {y, pullback(y_bar)};
}
template <class T, class F>
std::vector<Tensor<T>> compiled(const F& f, const Tensor<T>& x, const Tensor<T>& y_bar) {
  const Program<T> program = compile<T>(f, x.shape(), CompileOptions{.run = false, .vjp = true});
  Context<T> context(program);
  return program.vjp(context, x, y_bar);
}

/// f treats samples one by one.
template <class T, class F>
void expect_bits_of_samples(const char* name, const Shape& sample, const F& f) {
  SCOPED_TRACE(std::string(name) + (sizeof(T) == sizeof(float) ? " f32" : " f64"));
  Shape shape{kBatch};
  for (int axis = 0; axis < sample.rank(); ++axis) {
    shape.push_back(sample[axis]);
  }
  const Tensor<T> x = random_tensor<T>(shape, 1);
  const Tensor<T> y_bar = random_tensor<T>(f(x).shape(), 2);
  for (const bool is_eager : {true, false}) {
    SCOPED_TRACE(is_eager ? "eager" : "compiled");
    const auto run = [&](const Tensor<T>& at, const Tensor<T>& bar) {
      return is_eager ? eager<T>(f, at, bar) : compiled<T>(f, at, bar);
    };
    set_threads(1);
    const auto whole = run(x, y_bar);
    for (const int count : kThreads) {
      SCOPED_TRACE(std::to_string(count) + " threads");
      set_threads(count);
      expect_same(run(x, y_bar), whole);
    }
    for (const auto& [begin, end] : {std::pair<Index, Index>{0, 2}, {2, 5}, {4, 5}}) {
      SCOPED_TRACE("samples " + std::to_string(begin) + " to " + std::to_string(end));
      set_threads(end == 2 ? 3 : 1);
      const auto inputs = samples<T>({x, y_bar}, begin, end);
      expect_same(run(inputs[0], inputs[1]), samples(whole, begin, end));
    }
  }
}

template <class F>
void expect_bits_of_samples(const char* name, const Shape& sample, const F& f) {
  expect_bits_of_samples<float>(name, sample, f);
  expect_bits_of_samples<double>(name, sample, f);
}

/// A parameter beside x, of the same kind.
template <class V>
V parameter(const V&, const Shape& shape, std::uint64_t seed) {
  return V(random_tensor<ScalarOf<V>>(shape, seed));
}

TEST_F(Bits, PoolsTreatASampleAlikeInEveryBatchAndOnAnyThreads) {
  const Shape image{12, 33, 41};
  const Shape small{40, 7, 7};
  const Shape last{33, 21, 12};
  expect_bits_of_samples("max_pool", image, [](const auto& x) {
    return max_pool(x, {.kernel = 3, .stride = 2, .padding = 1});
  });
  expect_bits_of_samples(
      "max_pool 2x2", small, [](const auto& x) { return max_pool(x, {.kernel = 2}); });
  expect_bits_of_samples("max_pool 19x18", image, [](const auto& x) {
    return max_pool(x, {.kernel = {19, 18}, .stride = 1});
  });
  expect_bits_of_samples("max_pool last", last, [](const auto& x) {
    return max_pool(x, {.kernel = 3, .stride = 2, .layout = Layout::channels_last});
  });
  expect_bits_of_samples("avg_pool", image, [](const auto& x) {
    return avg_pool(x, {.kernel = 3, .stride = 2, .padding = 1});
  });
  expect_bits_of_samples("avg_pool 5x5", small, [](const auto& x) {
    return avg_pool(x, {.kernel = 5, .stride = 1, .padding = 2, .count_include_pad = false});
  });
  expect_bits_of_samples("avg_pool 19x18", image, [](const auto& x) {
    return avg_pool(x, {.kernel = {19, 18}, .stride = 1});
  });
  expect_bits_of_samples("avg_pool last", last, [](const auto& x) {
    return avg_pool(x, {.kernel = 3, .stride = 1, .layout = Layout::channels_last});
  });
  expect_bits_of_samples("smooth_max_pool", image, [](const auto& x) {
    return smooth_max_pool(x, {.kernel = 3, .stride = 2, .padding = 1, .beta = 2.0});
  });
  expect_bits_of_samples("smooth_max_pool last", last, [](const auto& x) {
    return smooth_max_pool(x, {.kernel = 2, .layout = Layout::channels_last});
  });
  expect_bits_of_samples("lp_pool", image, [](const auto& x) {
    return lp_pool(x, {.kernel = 3, .stride = 2, .p = 2.0});
  });
  expect_bits_of_samples(
      "lp_pool 3", small, [](const auto& x) { return lp_pool(x, {.kernel = 2, .p = 3.0}); });
  expect_bits_of_samples("adaptive_avg_pool", image, [](const auto& x) {
    return adaptive_avg_pool(x, {.output_size = {5, 7}});
  });
  expect_bits_of_samples("adaptive_max_pool", image, [](const auto& x) {
    return adaptive_max_pool(x, {.output_size = {5, 7}});
  });
  expect_bits_of_samples(
      "global_avg_pool", image, [](const auto& x) { return global_avg_pool(x); });
}

TEST_F(Bits, LayersTreatASampleAlikeInEveryBatchAndOnAnyThreads) {
  const Shape image{24, 19, 23};
  expect_bits_of_samples("linear", {512}, [](const auto& x) {
    return linear(x, parameter(x, {300, 512}, 3), parameter(x, {300}, 4));
  });
  expect_bits_of_samples("linear, few", {30}, [](const auto& x) {
    return linear(x, parameter(x, {3, 30}, 3));
  });
  expect_bits_of_samples("linear, rows", {40, 64}, [](const auto& x) {
    return linear(x, parameter(x, {48, 64}, 3));
  });
  expect_bits_of_samples(
      "matmul", {30, 330}, [](const auto& x) { return matmul(x, x, {.transpose_b = true}); });
  expect_bits_of_samples("functions", image, [](const auto& x) {
    return add(gelu(x), mul(tanh(x), sub(exp(x), sigmoid(x))));
  });
  expect_bits_of_samples("softmax", image, [](const auto& x) { return softmax(x, 1); });
  expect_bits_of_samples("log_softmax", {1000}, [](const auto& x) { return log_softmax(x); });
  expect_bits_of_samples("layer_norm", {7, 333}, [](const auto& x) {
    return layer_norm(x, parameter(x, {333}, 3), parameter(x, {333}, 4));
  });
  expect_bits_of_samples("group_norm", image, [](const auto& x) {
    return group_norm(x, 6, parameter(x, {24}, 3), parameter(x, {24}, 4));
  });
  expect_bits_of_samples("batch_norm_inference", image, [](const auto& x) {
    return batch_norm_inference(x,
                                parameter(x, {24}, 3),
                                exp(parameter(x, {24}, 4)),
                                parameter(x, {24}, 5),
                                parameter(x, {24}, 6));
  });
  expect_bits_of_samples("batch_norm_inference of vectors", {300}, [](const auto& x) {
    return batch_norm_inference(x, parameter(x, {300}, 3), exp(parameter(x, {300}, 4)));
  });
  expect_bits_of_samples("sums", image, [](const auto& x) {
    return add(mean(x, {.axes = {2, 3}, .keep = true}), sum(x, {.axes = {1}, .keep = true}));
  });
  expect_bits_of_samples("resize", image, [](const auto& x) {
    return resize(x, {.scale = 2, .mode = ResizeMode::bilinear});
  });
  expect_bits_of_samples("layers in a row", {3, 40, 40}, [](const auto& x) {
    const auto h = relu(conv(x, parameter(x, {16, 3, 3, 3}, 3), {.padding = 1}));
    const auto narrow = conv(h, parameter(x, {16, 1, 5, 5}, 4), {.stride = 2, .groups = 16});
    const auto up = conv_transpose(narrow, parameter(x, {16, 4, 4, 4}, 5), {.stride = 2});
    return global_avg_pool(max_pool(up, {.kernel = 3, .stride = 2}));
  });
}

/// The loss of a batch and its gradients by every parameter and x: they add up samples, in an order
/// that threads do not change.
template <class T>
void expect_gradients_on_any_threads() {
  SCOPED_TRACE(sizeof(T) == sizeof(float) ? "f32" : "f64");
  const auto loss = [](const auto& x, const auto& w, const auto& narrow, const auto& gamma) {
    const auto h = conv(x, w, {.stride = 2, .padding = 2});
    const auto normal = batch_norm(h, gamma, gamma).y;
    const auto y = conv(relu(normal), narrow, {.padding = 1, .groups = 24});
    const auto pooled = reshape(global_avg_pool(max_pool(y, {.kernel = 2})), Shape{9, 24});
    const auto scores = layer_norm(pooled, gamma, gamma);
    return cross_entropy(scores, Tensor<Index>({9}, {0, 5, 23, 1, 1, 2, 7, 9, 11}));
  };
  const Tensor<T> x = random_tensor<T>({9, 3, 45, 47}, 1);
  const Tensor<T> w = random_tensor<T>({24, 3, 5, 5}, 2);
  const Tensor<T> narrow = random_tensor<T>({24, 1, 3, 3}, 3);
  const Tensor<T> gamma = random_tensor<T>({24}, 4);
  const auto run = [&](bool is_eager) -> std::vector<Tensor<T>> {
    if (is_eager) {
      const auto [value, grads] = value_and_grad(loss, x, w, narrow, gamma);
      return {
          value, std::get<0>(grads), std::get<1>(grads), std::get<2>(grads), std::get<3>(grads)};
    }
    const Program<T> program = compile<T>(loss,
                                          x.shape(),
                                          w.shape(),
                                          narrow.shape(),
                                          gamma.shape(),
                                          CompileOptions{.run = false, .value_and_grad = true});
    Context<T> context(program);
    return program.value_and_grad(context, x, w, narrow, gamma);
  };
  for (const bool is_eager : {true, false}) {
    SCOPED_TRACE(is_eager ? "eager" : "compiled");
    set_threads(1);
    const auto alone = run(is_eager);
    for (const int count : kThreads) {
      SCOPED_TRACE(std::to_string(count) + " threads");
      set_threads(count);
      expect_same(run(is_eager), alone);
    }
  }
}

TEST_F(Bits, GradientsOfABatchAreTheSameOnAnyThreads) {
  expect_gradients_on_any_threads<float>();
  expect_gradients_on_any_threads<double>();
}

}  // namespace
}  // namespace fenestra
