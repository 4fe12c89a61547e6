// The fast candidates of average pooling against the exact result, within the a-priori bound of a
// sum and one division, at every instruction set of this machine.
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/pool/adaptive_avg/op.hpp>
#include <fenestra/ops/pool/avg/op.hpp>
#include <fenestra/ops/pool/candidates.hpp>
#include <fenestra/ops/pool/kernels_test.hpp>

namespace fenestra {
namespace {

using namespace testing_pools;

template <class T>
std::vector<T> run(const PoolKernel<T, AverageReduction>& candidate,
                   const PoolProblem<AverageReduction>& problem,
                   const Tensor<T>& in) {
  const bool forward = problem.direction == PoolDirection::forward;
  const PoolGeometry& g = problem.geometry.pool;
  std::vector<T> out(static_cast<std::size_t>(*(forward ? g.y_shape() : g.x_shape()).elements()),
                     T(77));
  candidate.run(problem, {.in = in.data(), .out = out.data()});
  return out;
}

/// Windows that see one cell, at the most.
Index most_windows(const PoolGeometry& g) {
  Index most = 1;
  for (int axis = 0; axis < g.rank(); ++axis) {
    const WindowAxis& a = g.windows[axis];
    most *=
        a.rule == ExtentRule::adaptive ? ceil_div(a.out, a.in) + 1 : (a.span() - 1) / a.stride + 1;
  }
  return most;
}

/// Every candidate that accepts lies within the bound, in both directions.
template <class T>
void compare_all(const AvgPoolGeometry& g, const Tensor<T>& x, const Tensor<T>& y_bar) {
  const auto size = [](long double v) { return std::fabs(v); };
  const Tensor<long double> y = spec::avg_pool(widen(x), g);
  const Tensor<long double> y_size = spec::avg_pool(widen(x).map(size), g);
  const Tensor<long double> x_bar = spec::avg_pool_vjp(widen(y_bar), g);
  const Tensor<long double> x_size = spec::avg_pool_vjp(widen(y_bar).map(size), g);
  // The terms and one division; shares are divided one by one or together.
  const long double forward = gamma<T>(MeanOverWindows::terms(g) + 1);
  const long double adjoint = gamma<T>(most_windows(g.pool) + 2);
  at_every_target([&] {
    for (const auto& candidate : pool_candidates<T, AverageReduction>()) {
      const PoolProblem<AverageReduction> down{PoolDirection::forward, g};
      const PoolProblem<AverageReduction> up{PoolDirection::spread, g};
      if (candidate.refuse(down) == nullptr) {
        EXPECT_EQ(first_outside(run(candidate, down, x).data(),
                                y,
                                [&](Index i) { return forward * std::fabs(y_size[i]); }),
                  "")
            << candidate.name << " forward " << to_string(g);
      }
      if (candidate.refuse(up) == nullptr) {
        EXPECT_EQ(first_outside(run(candidate, up, y_bar).data(),
                                x_bar,
                                [&](Index i) { return adjoint * std::fabs(x_size[i]); }),
                  "")
            << candidate.name << " adjoint " << to_string(g);
      }
    }
  });
}

template <class T>
void compare_random(Random& random, const AvgPoolGeometry& g) {
  const auto x = random_tensor<T>(random, g.pool.x_shape());
  compare_all(g, x, random_tensor<T>(random, g.pool.y_shape()));
}

template <class T>
class AvgPoolKernels : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AvgPoolKernels, Numbers);

TYPED_TEST(AvgPoolKernels, StayWithinTheBoundOnRandomProblems) {
  Random random(21);
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
    compare_random<TypeParam>(
        random, random.chance(4) ? AdaptiveAvgPool::random(random) : AvgPool::random(random));
  }
}

TYPED_TEST(AvgPoolKernels, StayWithinTheBoundAtEveryWidthAndChannelCount) {
  Random random(22);
  for (const Index width : widths()) {
    for (const std::string& text : tails(width)) {
      compare_random<TypeParam>(random, AvgPool::parse(text));
      compare_random<TypeParam>(random, AvgPool::parse(text + " count_include_pad=false"));
    }
    for (const char* size : {"1", "3"}) {
      compare_random<TypeParam>(
          random,
          AdaptiveAvgPool::parse("x=3x2x7x" + std::to_string(width) + " output_size=" + size));
    }
  }
}

TYPED_TEST(AvgPoolKernels, StayWithinTheBoundWherePlanesAreCutOrTakenTogether) {
  Random random(25);
  for (const std::string& text : planes()) {
    compare_random<TypeParam>(random, AvgPool::parse(text));
    compare_random<TypeParam>(random, AvgPool::parse(text + " count_include_pad=false"));
  }
}

// A window of one number and zeros has an exact sum, so every kernel must give the quotient itself.
TYPED_TEST(AvgPoolKernels, DivideAsADivisionDoes) {
  using T = TypeParam;
  constexpr Index kMost = (Index{1} << std::numeric_limits<T>::digits) - 1;
  Random random(27);
  for (const Index size : {3, 5, 6, 7, 10, 11, 49, 100}) {
    for (const char* layout : {"channels_first", "channels_last"}) {
      const bool last = std::string(layout) == "channels_last";
      const std::string cells = std::to_string(size) + "x7";
      const AvgPoolGeometry g =
          AvgPool::parse((last ? "x=1x" + cells + "x40" : "x=1x40x" + cells) +
                         " kernel=" + std::to_string(size) + ",1 layout=" + layout);
      Tensor<T> x(g.pool.x_shape());
      std::vector<T> expected(static_cast<std::size_t>(*g.pool.y_shape().elements()));
      for (Index channel = 0; channel < 40; ++channel) {
        for (Index column = 0; column < 7; ++column) {
          const T number = column == 0 && channel == 0
                               ? std::numeric_limits<T>::infinity()
                               : std::ldexp(static_cast<T>(random.between(-kMost, kMost)),
                                            static_cast<int>(random.between(-60, 60)));
          const Index row = random.between(0, size - 1);
          x.mutable_data()[last ? (row * 7 + column) * 40 + channel
                                : (channel * size + row) * 7 + column] = number;
          expected[static_cast<std::size_t>(last ? column * 40 + channel : channel * 7 + column)] =
              number / static_cast<T>(size);
        }
      }
      at_every_target([&] {
        for (const auto& candidate : pool_candidates<T, AverageReduction>()) {
          const PoolProblem<AverageReduction> down{PoolDirection::forward, g};
          if (candidate.can_run(down)) {
            EXPECT_TRUE(run(candidate, down, x) == expected)
                << candidate.name << " by " << size << ", " << layout;
          }
        }
      });
    }
  }
}

TYPED_TEST(AvgPoolKernels, StayWithinTheBoundWhereNoWindowOfARowSeesACell) {
  Random random(26);
  const AvgPoolGeometry g = AvgPool::parse(
      "x=1x33x13x2 kernel=1,1 stride=4,4 padding=2:1,2:1 ceil_mode=true count_include_pad=false");
  compare_random<TypeParam>(random, AvgPool::parse("x=1x33x13x9 kernel=3 count_include_pad=false"));
  kernels::spoil_scratch();
  compare_random<TypeParam>(random, g);
}

TYPED_TEST(AvgPoolKernels, PassOnNanAndInfinitiesFromEveryLaneAndTail) {
  using T = TypeParam;
  Random random(23);
  special_places<T>([&](const std::string& text, Index place, T special) {
    const AvgPoolGeometry g = AvgPool::parse(text);
    auto x = random_tensor<T>(random, g.pool.x_shape());
    x.mutable_data()[place] = special;
    auto y_bar = random_tensor<T>(random, g.pool.y_shape());
    y_bar.mutable_data()[place % y_bar.size()] = special;
    compare_all(g, x, y_bar);
  });
}

TYPED_TEST(AvgPoolKernels, GiveTheSameBitsWithAnyNumberOfThreadsAndInAnyBatch) {
  using T = TypeParam;
  for (const char* text : {"x=3x6x40x70 kernel=3 stride=2 padding=1 count_include_pad=false",
                           "x=3x40x30x6 kernel=3 stride=1 padding=1 layout=channels_last",
                           "x=3x20x30x40 kernel=3 stride=2 padding=1 layout=channels_last",
                           "x=3x200x7x7 kernel=7",
                           "x=3x2x9000 kernel=5 stride=3 padding=2",
                           "x=2x2x3x9000 kernel=2 stride=1 padding=1"}) {
    const AvgPoolGeometry g = AvgPool::parse(text);
    Random random(24);
    for (const auto direction : {PoolDirection::forward, PoolDirection::spread}) {
      const PoolProblem<AverageReduction> problem{direction, g};
      const bool forward = direction == PoolDirection::forward;
      const auto in = random_tensor<T>(random, forward ? g.pool.x_shape() : g.pool.y_shape());
      for (const auto& candidate : pool_candidates<T, AverageReduction>()) {
        if (candidate.refuse(problem) != nullptr) {
          continue;
        }
        expect_thread_invariance([&] { return run(candidate, problem, in); },
                                 std::string(candidate.name) + " " + text);
        // The last sample on its own.
        PoolProblem<AverageReduction> single = problem;
        single.geometry.pool.batch = 1;
        const Shape shape =
            forward ? single.geometry.pool.x_shape() : single.geometry.pool.y_shape();
        const Tensor<T> last(shape, in.values().last(static_cast<std::size_t>(*shape.elements())));
        const std::vector<T> all = run(candidate, problem, in);
        const std::vector<T> part = run(candidate, single, last);
        EXPECT_TRUE(
            same_bits(part, {all.end() - static_cast<std::ptrdiff_t>(part.size()), all.end()}))
            << candidate.name << " " << text;
      }
    }
  }
}

}  // namespace
}  // namespace fenestra
