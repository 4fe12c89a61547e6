// The fast candidates of smooth max pooling against the exact result, within bounds derived from
// the error of the vector exp and log, at every instruction set of this machine.
#include <fenestra/ops/pool/candidates.hpp>
#include <fenestra/ops/pool/kernels_test.hpp>
#include <fenestra/ops/pool/smooth_max/op.hpp>

namespace fenestra {
namespace {

using namespace testing_pools;

template <class T>
struct Data {
  Tensor<T> x, v, u;
  T beta;
};

template <class T>
std::vector<T> run(const PoolKernel<T, SmoothMaxReduction>& candidate,
                   PoolDirection direction,
                   const SmoothMaxPoolGeometry& g,
                   const Data<T>& data) {
  const bool spread = direction == PoolDirection::spread;
  std::vector<T> out(
      static_cast<std::size_t>(*(spread ? g.pool.x_shape() : g.pool.y_shape()).elements()), T(77));
  const T* v = spread ? data.u.data() : data.v.data();
  candidate.run({direction, g},
                {.in = data.x.data(), .v = v, .beta = data.beta, .out = out.data()});
  return out;
}

/// The exact maps, by the specification in a wider type.
struct Exact {
  Tensor<long double> y, mix, mix_size, spread, spread_size;
};

template <class T>
Exact exact(const SmoothMaxPoolGeometry& g, const Data<T>& data) {
  const auto x = widen(data.x);
  const auto v = widen(data.v);
  const auto u = widen(data.u);
  const auto beta = static_cast<long double>(data.beta);
  Exact e{Tensor<long double>(g.pool.y_shape()),
          Tensor<long double>(g.pool.y_shape()),
          Tensor<long double>(g.pool.y_shape()),
          Tensor<long double>(g.pool.x_shape()),
          Tensor<long double>(g.pool.x_shape())};
  spec::for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const auto window = spec::smooth_window(x, beta, g, n, c, o);
    const Index at = g.pool.y_map().at(n, c, o);
    e.y.mutable_data()[at] = window.value();
    e.mix.mutable_data()[at] = spec::weighted_sum(window, v);
    for (const auto& cell : window.cells()) {
      if (cell.offset >= 0) {
        e.mix_size.mutable_data()[at] += cell.weight * std::fabs(v[cell.offset]);
        e.spread.mutable_data()[cell.offset] += cell.weight * u[at];
        e.spread_size.mutable_data()[cell.offset] += cell.weight * std::fabs(u[at]);
      }
    }
  });
  return e;
}

/// With d = x - m, M = max |beta*d| of cells that weigh anything in T, n cells and E the error of
/// exp in ulps (2u each): beta*d carries 2uM, so a weight e carries (2M + 2E)u, its sum (2M + 2E +
/// n)u, the quotient and the product u each; the sum over the window (or over the windows of a
/// cell, no more than taps) another n*u. First order; the factor 2 covers the rest.
template <class T>
long double weight_error(const SmoothMaxPoolGeometry& g, const Data<T>& data) {
  long double largest = 0;
  for (const T x : data.x.values()) {
    if (std::isfinite(x)) {
      largest = std::max(largest, 2 * std::fabs(static_cast<long double>(data.beta) * x));
    }
  }
  largest =
      std::min(largest, -std::log(static_cast<long double>(std::numeric_limits<T>::denorm_min())));
  const auto n = static_cast<long double>(g.pool.windows.taps());
  const long double u = std::numeric_limits<T>::epsilon() / 2.0L;
  return 2 * u * (2 * (2 * largest + 2 * SmoothMaxPool::kExpUlps) + 2 * n + 2);
}

template <class T>
void compare_all(const SmoothMaxPoolGeometry& g, const Data<T>& data) {
  const Exact e = exact(g, data);
  const Tensor<T> beta(Shape{}, data.beta);
  const Tensor<long double> bound = SmoothMaxPool::error_bound<T>(g, {{data.x, beta}, {}});
  const long double weight = weight_error(g, data);
  // A weight may be below the normal numbers; v and u are at most 2 in size.
  const long double underflow =
      4.0L * static_cast<long double>(g.pool.windows.taps()) * std::numeric_limits<T>::denorm_min();
  at_every_target([&] {
    for (const auto& candidate : pool_candidates<T, SmoothMaxReduction>()) {
      const auto text = std::string(candidate.name) + " " + to_string(g);
      EXPECT_EQ(first_outside(run(candidate, PoolDirection::forward, g, data).data(),
                              e.y,
                              [&](Index i) { return bound[i]; }),
                "")
          << text << " forward";
      EXPECT_EQ(first_outside(run(candidate, PoolDirection::mix, g, data).data(),
                              e.mix,
                              [&](Index i) { return weight * e.mix_size[i] + underflow; }),
                "")
          << text << " mix";
      EXPECT_EQ(first_outside(run(candidate, PoolDirection::spread, g, data).data(),
                              e.spread,
                              [&](Index i) { return weight * e.spread_size[i] + underflow; }),
                "")
          << text << " spread";
    }
  });
}

template <class T>
Data<T> random_data(Random& random, const SmoothMaxPoolGeometry& g) {
  auto x = random_tensor<T>(random, g.pool.x_shape());
  auto v = random_tensor<T>(random, g.pool.x_shape());
  return {x, v, random_tensor<T>(random, g.pool.y_shape()), static_cast<T>(g.beta)};
}

template <class T>
class SmoothMaxPoolKernels : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SmoothMaxPoolKernels, Numbers);

TYPED_TEST(SmoothMaxPoolKernels, StayWithinTheBoundOnRandomProblems) {
  Random random(41);
  for (int i = 0; i < 200 && !::testing::Test::HasFailure(); ++i) {
    const SmoothMaxPoolGeometry g = SmoothMaxPool::random(random);
    compare_all(g, random_data<TypeParam>(random, g));
  }
}

TYPED_TEST(SmoothMaxPoolKernels, StayWithinTheBoundAtEveryWidthAndChannelCount) {
  Random random(42);
  for (const Index width : widths()) {
    for (const std::string& text : tails(width)) {
      for (const char* more : {" beta=2", " beta=-0.5 normalised=true pad_cells=zero"}) {
        const SmoothMaxPoolGeometry g = SmoothMaxPool::parse(text + more);
        compare_all(g, random_data<TypeParam>(random, g));
      }
    }
  }
}

TYPED_TEST(SmoothMaxPoolKernels, TreatNanAndInfinitiesAlikeInEveryLaneAndTail) {
  using T = TypeParam;
  Random random(43);
  special_places<T>([&](const std::string& text, Index place, T special) {
    for (const char* more : {" beta=1", " beta=-2", " beta=1 pad_cells=zero normalised=true"}) {
      const SmoothMaxPoolGeometry g = SmoothMaxPool::parse(text + more);
      Data<T> data = random_data<T>(random, g);
      data.x.mutable_data()[place] = special;
      if (place % 3 == 0) {  // all at one end of the line
        data.x = Tensor<T>(g.pool.x_shape(), special);
      }
      compare_all(g, data);
    }
  });
}

TYPED_TEST(SmoothMaxPoolKernels, GiveTheSameBitsWithAnyNumberOfThreads) {
  using T = TypeParam;
  Random random(44);
  for (const char* text : {"x=3x6x40x70 kernel=3 stride=2 padding=1 beta=2",
                           "x=3x20x30x40 kernel=2 layout=channels_last",
                           "x=3x2x9000 kernel=5 stride=3 padding=2 beta=-1"}) {
    const SmoothMaxPoolGeometry g = SmoothMaxPool::parse(text);
    const Data<T> data = random_data<T>(random, g);
    for (const auto& candidate : pool_candidates<T, SmoothMaxReduction>()) {
      for (const auto direction :
           {PoolDirection::forward, PoolDirection::mix, PoolDirection::spread}) {
        expect_thread_invariance([&] { return run(candidate, direction, g, data); },
                                 std::string(candidate.name) + " " + text);
      }
    }
  }
}

}  // namespace
}  // namespace fenestra
