// Calls from several threads at once give what they give alone. Built on its own, so that the
// thread sanitizer can watch it (`make tsan`).
#include <fenestra/base/child_test.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/nn/models/functional.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/reduce/reduce.hpp>

#include <gtest/gtest.h>

#include <atomic>
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
  std::vector<Value<T>> variables;
  for (const Tensor<T>& parameter : parameters) {
    variables.push_back(tape.parameter(parameter));
  }
  const auto y = nn::LeNet5::forward<Value<T>>(variables, Value<T>(x));
  const auto loss = cross_entropy(y, Tensor<Index>({2}, {1, 7}));
  const auto grads = tape.backward(loss);
  std::vector<Tensor<T>> results{loss.tensor()};
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

/// A convolution and its gradient by the weight, large enough for several threads.
std::vector<Tensor<float>> large_convolution() {
  Random random(5);
  const Tensor<float> x = nn::uniform<float>({4, 16, 64, 64}, random, 1.0);
  const Tensor<float> w = nn::uniform<float>({32, 16, 3, 3}, random, 1.0);
  Tape<float> tape;
  const auto weight = tape.parameter(w);
  const auto y = conv(x, weight, {.padding = 1});
  return {y.tensor(), tape.backward(sum(y))[weight]};
}

TEST(Threads, AChildComputesWhatItsParentDoes) {
  if (!kChildrenMayHaveThreads) {
    GTEST_SKIP() << "the thread sanitizer cannot follow";
  }
  const int before = threads();
  set_threads(3);
  const auto expected = large_convolution();
  const auto agrees = [&] { return large_convolution() == expected; };
  EXPECT_EQ(outcome_in_child(agrees), Outcome::held);
  EXPECT_TRUE(agrees()) << "in the parent";
  set_threads(before);
}

TEST(Threads, AChildThatIsForkedWhileOthersComputeComputesToo) {
  if (!kChildrenMayHaveThreads) {
    GTEST_SKIP() << "the thread sanitizer cannot follow";
  }
  const int before = threads();
  set_threads(3);
  const auto expected = large_convolution();
  const auto agrees = [&] { return large_convolution() == expected; };
  std::atomic<bool> may_end{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!may_end) {
        EXPECT_EQ(pools<float>().size(), 3U);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(outcome_in_child(agrees), Outcome::held) << "fork " << i;
  }
  may_end = true;
  for (std::thread& other : others) {
    other.join();
  }
  set_threads(before);
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
