// The fast candidates of max pooling against its specification: bit by bit, at every instruction
// set of this machine, with any number of threads.
#include <fenestra/ops/pool/adaptive_max/op.hpp>
#include <fenestra/ops/pool/candidates.hpp>
#include <fenestra/ops/pool/kernels_test.hpp>
#include <fenestra/ops/pool/max/op.hpp>

namespace fenestra {
namespace {

using namespace testing_pools;

/// Numbers with many ties, both zeros, and now and then an infinity or a NaN.
template <class T>
std::vector<T> hard_numbers(Random& random, Index count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& v : values) {
    v = static_cast<T>(random.between(-3, 3));
    if (random.chance(8)) {
      v = -T(0);
    }
    if (random.chance(16)) {
      const T infinity = std::numeric_limits<T>::infinity();
      const T choice[] = {infinity,
                          -infinity,
                          std::numeric_limits<T>::quiet_NaN(),
                          -std::numeric_limits<T>::quiet_NaN()};
      v = choice[random.between(0, 3)];
    }
  }
  return values;
}

/// The four results on one x, x_dot and y_bar.
template <class T>
struct Results {
  std::vector<T> y, y_alone, y_dot, x_bar;
  std::vector<WinnerTap> winners;
};

/// A sum of several NaNs may be either of them.
template <class T>
bool same_sums(const std::vector<T>& a, const std::vector<T>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) {
    same = std::memcmp(&a[i], &b[i], sizeof(T)) == 0 || (a[i] != a[i] && b[i] != b[i]);
  }
  return same;
}

template <class T>
struct Data {
  std::vector<T> x, x_dot, y_bar;
};

template <class T>
Data<T> random_data(Random& random, const MaxPoolGeometry& g) {
  const Index in = *g.pool.x_shape().elements();
  return {hard_numbers<T>(random, in),
          hard_numbers<T>(random, in),
          hard_numbers<T>(random, *g.pool.y_shape().elements())};
}

template <class T>
Results<T> run(const PoolKernel<T, MaxReduction>& candidate,
               const MaxPoolGeometry& g,
               const Data<T>& data,
               const std::vector<WinnerTap>* winners) {
  const T garbage = T(77);
  const std::size_t in = data.x.size();
  const std::size_t out = data.y_bar.size();
  Results<T> r{std::vector<T>(out, garbage),
               std::vector<T>(out, garbage),
               std::vector<T>(out, garbage),
               std::vector<T>(in, garbage),
               std::vector<WinnerTap>(out, 77)};
  const auto call = [&](PoolDirection direction, const PoolArguments<T>& arguments) {
    const PoolProblem<MaxReduction> problem{direction, g};
    if (candidate.refuse(problem) == nullptr) {
      candidate.run(problem, arguments);
      return true;
    }
    return false;
  };
  if (!call(PoolDirection::forward,
            {.in = data.x.data(), .out = r.y.data(), .winners_out = r.winners.data()})) {
    r.y.clear();
    r.winners.clear();
  }
  if (!call(PoolDirection::forward, {.in = data.x.data(), .out = r.y_alone.data()})) {
    r.y_alone.clear();
  }
  const WinnerTap* given = winners != nullptr ? winners->data() : r.winners.data();
  if (!call(PoolDirection::mix,
            {.in = data.x_dot.data(), .winners_in = given, .out = r.y_dot.data()})) {
    r.y_dot.clear();
  }
  if (!call(PoolDirection::spread,
            {.in = data.y_bar.data(), .winners_in = given, .out = r.x_bar.data()})) {
    r.x_bar.clear();
  }
  return r;
}

/// Every candidate that accepts agrees with the last one.
template <class T>
void compare_all(const MaxPoolGeometry& g, const Data<T>& data) {
  const auto candidates = pool_candidates<T, MaxReduction>();
  const Results<T> needed = run(candidates.back(), g, data, nullptr);
  at_every_target([&] {
    for (const auto& candidate : candidates.first(candidates.size() - 1)) {
      const Results<T> got = run(candidate, g, data, &needed.winners);
      const auto check = [&](const auto& a, const auto& b, const char* what) {
        EXPECT_TRUE(a.empty() || same_bits(a, b))
            << candidate.name << " " << what << ": " << to_string(g);
      };
      check(got.y, needed.y, "values");
      check(got.y_alone, needed.y, "values without winners");
      check(got.winners, needed.winners, "winners");
      check(got.y_dot, needed.y_dot, "gather");
      EXPECT_TRUE(got.x_bar.empty() || same_sums(got.x_bar, needed.x_bar))
          << candidate.name << " scatter: " << to_string(g);
    }
  });
}

template <class T>
class MaxPoolKernels : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(MaxPoolKernels, Numbers);

TYPED_TEST(MaxPoolKernels, AgreeWithTheSpecificationBitByBitOnRandomProblems) {
  Random random(11);
  for (int i = 0; i < 400 && !::testing::Test::HasFailure(); ++i) {
    const MaxPoolGeometry g =
        random.chance(4) ? AdaptiveMaxPool::random(random) : MaxPool::random(random);
    if (has_compact_winners(g.pool)) {
      compare_all(g, random_data<TypeParam>(random, g));
    }
  }
}

TYPED_TEST(MaxPoolKernels, AgreeWithTheSpecificationAtEveryWidthAndChannelCount) {
  Random random(12);
  for (const Index width : widths()) {
    for (const char* options :
         {" kernel=3,3 stride=1,1 padding=1",
          " kernel=3,3 stride=2,2 padding=1",
          " kernel=2,2 stride=2,2 padding=1 pad_cells=zero",
          " kernel=1,2 stride=1,3 padding=0,1",
          " kernel=2,3 stride=1,2 dilation=2,3 padding=2,6 ceil_mode=true",
          " kernel=4,5 stride=3,4 padding=3,4 pad_cells=zero ceil_mode=true"}) {
      const std::string extent = std::to_string(width);
      for (const std::string& x :
           {"x=2x3x4x" + extent + options,
            "x=2x3x4x" + extent + options + " layout=channels_last",
            "x=2x4x5x" + std::to_string(width + 30) + options + " layout=channels_last"}) {
        const MaxPoolGeometry g = MaxPool::parse(x);
        compare_all(g, random_data<TypeParam>(random, g));
      }
    }
    for (const std::string& x : {"x=3x2x7x" + std::to_string(width) + " output_size=1",
                                 "x=3x2x7x" + std::to_string(width) + " output_size=3"}) {
      const MaxPoolGeometry g = AdaptiveMaxPool::parse(x);
      if (has_compact_winners(g.pool)) {
        compare_all(g, random_data<TypeParam>(random, g));
      }
    }
  }
}

TYPED_TEST(MaxPoolKernels, AgreeWithTheSpecificationWherePlanesAreCutOrTakenTogether) {
  Random random(15);
  for (const std::string& text : planes()) {
    const MaxPoolGeometry g = MaxPool::parse(text);
    Data<TypeParam> data = random_data<TypeParam>(random, g);
    compare_all(g, data);
    for (TypeParam& v : data.x) {  // among finite numbers other code runs
      v = std::isfinite(v) ? v : TypeParam(0);
    }
    compare_all(g, data);
  }
}

TYPED_TEST(MaxPoolKernels, TreatNanAndInfinitiesAlikeInEveryLaneAndTail) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity();
  for (const Index width : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 35}) {
    for (const char* options : {" kernel=3 stride=1 padding=1",
                                " kernel=2 stride=2 padding=1",
                                " kernel=3 stride=2 padding=1 pad_cells=zero"}) {
      const MaxPoolGeometry g =
          MaxPool::parse("x=1x1x" + std::to_string(width) + options + " batched=true");
      for (const T special : {std::numeric_limits<T>::quiet_NaN(), infinity, -infinity}) {
        for (const T rest : {T(1), -infinity, std::numeric_limits<T>::quiet_NaN()}) {
          for (Index place = 0; place < width; ++place) {
            Random random(static_cast<std::uint64_t>(place));
            Data<T> data = random_data<T>(random, g);
            std::fill(data.x.begin(), data.x.end(), rest);
            data.x[static_cast<std::size_t>(place)] = special;
            compare_all(g, data);
          }
        }
      }
    }
  }
}

TYPED_TEST(MaxPoolKernels, GiveTheSameBitsWithAnyNumberOfThreadsAndInAnyBatch) {
  using T = TypeParam;
  const int before = threads();
  for (const char* text : {"x=5x6x40x70 kernel=3 stride=2 padding=1",
                           "x=5x40x30x6 kernel=3 stride=2 padding=1 layout=channels_last",
                           "x=5x20x30x40 kernel=3 stride=2 padding=1 layout=channels_last",
                           "x=5x200x7x7 kernel=7",
                           "x=3x2x9000 kernel=5 stride=3 padding=2",
                           "x=2x2x3x9000 kernel=2 stride=1 padding=1"}) {
    const MaxPoolGeometry g = MaxPool::parse(text);
    Random random(13);
    const Data<T> data = random_data<T>(random, g);
    for (const auto& candidate : pool_candidates<T, MaxReduction>()) {
      set_threads(1);
      Results<T> winners = run(pool_candidates<T, MaxReduction>().back(), g, data, nullptr);
      const Results<T> alone = run(candidate, g, data, &winners.winners);
      for (const int n : {2, 7}) {
        set_threads(n);
        const Results<T> many = run(candidate, g, data, &winners.winners);
        EXPECT_TRUE(same_bits(alone.y, many.y) && same_bits(alone.winners, many.winners) &&
                    same_bits(alone.y_dot, many.y_dot) && same_bits(alone.x_bar, many.x_bar))
            << candidate.name << " " << text;
      }
      // The last sample on its own.
      MaxPoolGeometry single = g;
      single.pool.batch = 1;
      const auto in = static_cast<std::ptrdiff_t>(*single.pool.x_shape().elements());
      const auto out = static_cast<std::ptrdiff_t>(*single.pool.y_shape().elements());
      const Data<T> last{{data.x.end() - in, data.x.end()},
                         {data.x_dot.end() - in, data.x_dot.end()},
                         {data.y_bar.end() - out, data.y_bar.end()}};
      const std::vector<WinnerTap> last_winners(winners.winners.end() - out, winners.winners.end());
      const Results<T> part = run(candidate, single, last, &last_winners);
      EXPECT_TRUE(part.y.empty() ||
                  std::equal(part.winners.begin(), part.winners.end(), alone.winners.end() - out));
      EXPECT_TRUE(part.x_bar.empty() ||
                  std::memcmp(part.x_bar.data(),
                              alone.x_bar.data() + (alone.x_bar.size() - part.x_bar.size()),
                              part.x_bar.size() * sizeof(T)) == 0);
    }
  }
  set_threads(before);
}

TYPED_TEST(MaxPoolKernels, NeverReadOrWriteOutsideTheirTensors) {
  // Guarded by the sanitisers in their builds; here, by a border that must survive.
  using T = TypeParam;
  Random random(14);
  const MaxPoolGeometry g = MaxPool::parse("x=1x2x5x9 kernel=3 stride=2 padding=1");
  const auto out = static_cast<std::size_t>(*g.pool.y_shape().elements());
  const std::vector<T> x = hard_numbers<T>(random, *g.pool.x_shape().elements());
  for (const auto& candidate : pool_candidates<T, MaxReduction>()) {
    const PoolProblem<MaxReduction> problem{PoolDirection::forward, g};
    if (candidate.refuse(problem) != nullptr) {
      continue;
    }
    std::vector<T> y(out + 64, T(55));
    std::vector<WinnerTap> winners(out + 64, 55);
    candidate.run(problem,
                  {.in = x.data(), .out = y.data() + 32, .winners_out = winners.data() + 32});
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(y[i], T(55));
      EXPECT_EQ(y[out + 32 + i], T(55));
      EXPECT_EQ(winners[i], 55);
      EXPECT_EQ(winners[out + 32 + i], 55);
    }
  }
}

}  // namespace
}  // namespace fenestra
