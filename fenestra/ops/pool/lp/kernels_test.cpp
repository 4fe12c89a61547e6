// The fast candidates of Lp pooling against the exact result, within the operator's a-priori bound,
// at every instruction set of this machine.
#include <fenestra/ops/pool/candidates.hpp>
#include <fenestra/ops/pool/kernels_test.hpp>
#include <fenestra/ops/pool/lp/op.hpp>

namespace fenestra {
namespace {

using namespace testing_pools;

template <class T>
std::vector<T> run(const PoolKernel<T, LpReduction>& candidate,
                   const LpPoolGeometry& g,
                   const Tensor<T>& x) {
  std::vector<T> y(static_cast<std::size_t>(*g.pool.y_shape().elements()), T(77));
  candidate.run({PoolDirection::forward, g}, {.in = x.data(), .out = y.data()});
  return y;
}

template <class T>
void compare_all(const LpPoolGeometry& g, const Tensor<T>& x) {
  const Tensor<long double> y = spec::lp_pool(widen(x), g);
  const Tensor<long double> bound = LpPool::error_bound<T>(g, {{x}, {}});
  at_every_target([&] {
    for (const auto& candidate : pool_candidates<T, LpReduction>()) {
      if (candidate.refuse({PoolDirection::forward, g}) == nullptr) {
        EXPECT_EQ(first_outside(run(candidate, g, x).data(), y, [&](Index i) { return bound[i]; }),
                  "")
            << candidate.name << " " << to_string(g);
      }
    }
  });
}

template <class T>
class LpPoolKernels : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LpPoolKernels, Numbers);

TYPED_TEST(LpPoolKernels, StayWithinTheBoundOnRandomProblems) {
  Random random(31);
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
    const LpPoolGeometry g = LpPool::random(random);
    compare_all(g, random_tensor<TypeParam>(random, g.pool.x_shape()));
  }
}

TYPED_TEST(LpPoolKernels, StayWithinTheBoundAtEveryWidthAndChannelCount) {
  Random random(32);
  for (const Index width : widths()) {
    for (const std::string& text : tails(width)) {
      for (const char* p : {" p=1", " p=2", " p=3"}) {
        const LpPoolGeometry g = LpPool::parse(text + p);
        compare_all(g, random_tensor<TypeParam>(random, g.pool.x_shape()));
      }
    }
  }
}

TYPED_TEST(LpPoolKernels, PassOnNanAndInfinitiesFromEveryLaneAndTail) {
  using T = TypeParam;
  Random random(33);
  special_places<T>([&](const std::string& text, Index place, T special) {
    for (const char* p : {" p=1", " p=2", " p=1.5"}) {
      const LpPoolGeometry g = LpPool::parse(text + p);
      auto x = random_tensor<T>(random, g.pool.x_shape());
      x.mutable_data()[place] = special;
      compare_all(g, x);
    }
  });
}

TYPED_TEST(LpPoolKernels, GiveZeroForWindowsOfZeros) {
  for (const char* p : {" p=0.5", " p=1", " p=2", " p=3"}) {
    for (const char* text : {"x=2x3x5x19 kernel=3 stride=1 padding=1", "x=2x3x4x4 kernel=4"}) {
      const LpPoolGeometry g = LpPool::parse(text + std::string(p));
      compare_all(g, Tensor<TypeParam>(g.pool.x_shape()));
    }
  }
}

TYPED_TEST(LpPoolKernels, GiveTheSameBitsWithAnyNumberOfThreads) {
  using T = TypeParam;
  Random random(34);
  for (const char* text : {"x=3x6x40x70 kernel=3 stride=2 padding=1 p=2",
                           "x=3x30x30x40 kernel=2 layout=channels_last",
                           "x=3x200x7x7 kernel=7 p=3",
                           "x=3x2x9000 kernel=5 stride=3 padding=2 p=1"}) {
    const LpPoolGeometry g = LpPool::parse(text);
    const auto x = random_tensor<T>(random, g.pool.x_shape());
    for (const auto& candidate : pool_candidates<T, LpReduction>()) {
      if (candidate.refuse({PoolDirection::forward, g}) == nullptr) {
        expect_thread_invariance([&] { return run(candidate, g, x); },
                                 std::string(candidate.name) + " " + text);
      }
    }
  }
}

}  // namespace
}  // namespace fenestra
