// Calls from several threads at once give what they give alone. Built on its own, so that the
// thread sanitizer can watch it (`make tsan`).
#include <fenestra/base/parallel.hpp>
#include <fenestra/nn/models.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/ops/smooth_max_pool/smooth_max_pool.hpp>
#include <fenestra/ops/transforms.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace fenestra {
namespace {

/// A loss and all its gradients: the tape, convolutions, pools, products and the memory they share.
template <class T>
std::vector<Tensor<T>> lenet_gradients() {
  Random random(3);
  const auto parameters = nn::LeNet5::initial<T>(random);
  const Tensor<T> x = nn::uniform<T>(nn::LeNet5::input(2), random, 1.0);
  Tape<T> tape;
  std::vector<Var<Tensor<T>>> variables;
  for (const Tensor<T>& parameter : parameters) {
    variables.push_back(tape.parameter(parameter));
  }
  const auto y = nn::LeNet5::forward<Var<Tensor<T>>>(variables, Var<Tensor<T>>(x));
  const auto loss = cross_entropy(y, Tensor<Index>({2}, {1, 7}));
  const auto grads = tape.backward(loss);
  std::vector<Tensor<T>> results{loss.value()};
  for (const auto& variable : variables) {
    results.push_back(grads[variable]);
  }
  return results;
}

template <class T>
std::vector<Tensor<T>> pools() {
  Random random(4);
  const Tensor<T> x = nn::uniform<T>({2, 5, 33, 31}, random, 1.0);
  return {max_pool(x, {.kernel = 3, .stride = 2, .padding = 1}),
          smooth_max_pool(x, {.kernel = 2}),
          global_avg_pool(x)};
}

template <class F>
void expect_the_same_from_many_threads(const F& f) {
  const auto alone = f();
  constexpr int kThreads = 4;
  std::vector<decltype(f())> results(kThreads);
  std::vector<std::thread> callers;
  for (auto& result : results) {
    callers.emplace_back([&result, &f] {
      for (int i = 0; i < 3; ++i) {
        result = f();
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  for (const auto& result : results) {
    EXPECT_EQ(result, alone);
  }
}

TEST(Threads, CallersAtOnceGetTheGradientsTheyGetAlone) {
  expect_the_same_from_many_threads(lenet_gradients<float>);
  expect_the_same_from_many_threads(lenet_gradients<double>);
}

TEST(Threads, CallersAtOnceGetThePoolsTheyGetAlone) {
  expect_the_same_from_many_threads(pools<float>);
  expect_the_same_from_many_threads(pools<double>);
}

TEST(Threads, ResultsDoNotDependOnTheirNumber) {
  const int before = threads();
  set_threads(1);
  const auto one = lenet_gradients<float>();
  for (const int count : {2, 7}) {
    set_threads(count);
    EXPECT_EQ(lenet_gradients<float>(), one) << count << " threads";
  }
  set_threads(before);
}

}  // namespace
}  // namespace fenestra
