// Extreme numbers in every field of every operator, one at a time and two at a time: a fault or the
// right geometry, never an overflow, a division by zero or an allocation. Run under the sanitizers
// this is the proof of "never".
#include <fenestra/ops/conv/geometry.hpp>
#include <fenestra/ops/conv_transpose/geometry.hpp>
#include <fenestra/ops/max_unpool/geometry.hpp>
#include <fenestra/ops/pool/reduction.hpp>
#include <fenestra/spec/describe.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace fenestra {
namespace {

__extension__ typedef __int128 Wide;

constexpr Index kMin = std::numeric_limits<Index>::min();
constexpr Index kMax = std::numeric_limits<Index>::max();
constexpr Index kExtremes[] = {0, -1, kMin, kMax, Index{1} << 62, Index{1} << 32, kMax - 1, 1};

/// The numbers of one call, read in order by the builders below.
class Numbers {
 public:
  explicit Numbers(const std::vector<Index>& values) : values_(values) {}
  Index next() { return values_.at(at_++); }
  Shape shape(int rank) {
    Shape result;
    for (int i = 0; i < rank; ++i) {
      result.push_back(next());
    }
    return result;
  }
  PerAxis pair() {
    const Index first = next();
    return {first, next()};
  }
  Padding padding() {
    const Index a = next(), b = next(), c = next(), d = next();
    return {LowHigh(a, b), LowHigh(c, d)};
  }

 private:
  const std::vector<Index>& values_;
  std::size_t at_ = 0;
};

/// What a resolution says and what the throwing function does, for the same numbers.
struct Outcome {
  Fault fault;
  Windows windows;
  std::vector<Shape> shapes;
  std::optional<Error> error;
};

template <class F>
std::optional<Error> error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// The extent formulas of SEMANTICS.md in 128 bits.
bool extent_is_right(const WindowAxis& a) {
  const Wide span = Wide{a.dilation} * (Wide{a.kernel} - 1) + 1;
  const Wide padded = Wide{a.in} + a.pad_low + a.pad_high;
  switch (a.rule) {
    case ExtentRule::floor: return a.out == (padded - span) / a.stride + 1;
    case ExtentRule::ceil: {
      const Wide out = (padded - span + a.stride - 1) / a.stride + 1;
      return a.out == ((out - 1) * a.stride >= Wide{a.in} + a.pad_low ? out - 1 : out);
    }
    case ExtentRule::transposed: {
      const Wide extra = a.in - ((Wide{a.out} - 1) * a.stride - a.pad_low - a.pad_high + span);
      return extra >= 0 && (extra < a.stride || extra < a.dilation);
    }
    case ExtentRule::adaptive: return true;
  }
  return false;
}

using Run = Outcome (*)(const std::vector<Index>&);

/// Checks one call; true where it was legal.
bool check(std::string_view op, Run run, const std::vector<Index>& numbers) {
  const Outcome outcome = run(numbers);
  const auto trace = [&] {
    std::string text(op);
    for (const Index n : numbers) {
      text += " " + std::to_string(n);
    }
    return text;
  };
  if (outcome.fault) {
    if (!outcome.error) {
      ADD_FAILURE() << "a fault that does not throw: " << trace();
      return false;
    }
    const std::string text = outcome.error->what();
    EXPECT_EQ(outcome.error->fault(), outcome.fault) << trace();
    EXPECT_EQ(text.substr(0, op.size() + 1), std::string(op) + ":") << trace();
    EXPECT_NE(text.find("\n  fix: "), std::string::npos) << text;
    EXPECT_NE(text.find("x"), std::string::npos) << text;
    return false;
  }
  EXPECT_FALSE(outcome.error) << trace() << ": " << outcome.error->what();
  for (const Shape& shape : outcome.shapes) {
    EXPECT_TRUE(shape.elements()) << trace() << ": " << to_string(shape);
  }
  for (int axis = 0; axis < outcome.windows.rank(); ++axis) {
    const WindowAxis& a = outcome.windows[axis];
    EXPECT_TRUE(extent_is_right(a)) << trace() << ": " << extent_formula(a);
    const Window last = a.window(a.out - 1);  // no index on the way overflows
    EXPECT_LE(last.cell(0), last.cell(last.taps - 1));
  }
  return true;
}

/// Every extreme in every field, alone and with every other; returns how many calls were legal and
/// how many not.
struct Counts {
  int legal = 0;
  int refused = 0;
};

Counts check_extremes(std::string_view op, Run run, const std::vector<Index>& base) {
  Counts counts;
  const auto one = [&](const std::vector<Index>& numbers) {
    (check(op, run, numbers) ? counts.legal : counts.refused) += 1;
  };
  EXPECT_TRUE(check(op, run, base)) << op << ": the problem that the extremes vary is itself legal";
  for (std::size_t i = 0; i < base.size(); ++i) {
    for (const Index first : kExtremes) {
      std::vector<Index> numbers = base;
      numbers[i] = first;
      one(numbers);
      for (std::size_t j = i + 1; j < base.size(); ++j) {
        for (const Index second : kExtremes) {
          numbers[j] = second;
          one(numbers);
        }
        numbers[j] = base[j];
      }
    }
  }
  EXPECT_GT(counts.refused, 0) << op;
  EXPECT_GT(counts.legal, 0) << op;
  return counts;
}

template <bool kSame, bool kBias, Layout kLayout>
Outcome run_conv(const std::vector<Index>& numbers) {
  Numbers n(numbers);
  const Shape x = n.shape(4);
  const Shape w = n.shape(4);
  const ConvOptions options{.stride = n.pair(),
                            .padding = kSame ? Padding(same) : n.padding(),
                            .dilation = n.pair(),
                            .groups = n.next(),
                            .layout = kLayout};
  const auto b = kBias ? std::optional(n.shape(1)) : std::nullopt;
  const auto [g, fault] = resolve_conv(x, w, b, options);
  return {fault,
          g.windows,
          fault ? std::vector<Shape>{} : std::vector<Shape>{g.x_shape(), g.w_shape(), g.y_shape()},
          error_of([&] { conv_geometry(x, w, b, options); })};
}

TEST(Extremes, OfAConvolutionAreFaultsOrRightGeometries) {
  const std::vector<Index> padded = {2, 4, 9, 8, 6, 2, 3, 2, 2, 1, 1, 0, 0, 1, 1, 2, 2, 6};
  check_extremes("conv", run_conv<false, true, Layout::channels_first>, padded);
  check_extremes("conv",
                 run_conv<true, false, Layout::channels_first>,
                 {2, 4, 9, 8, 6, 2, 3, 2, 2, 1, 1, 2, 2});
  check_extremes("conv",
                 run_conv<false, false, Layout::channels_last>,
                 {2, 9, 8, 4, 3, 2, 2, 6, 2, 1, 1, 0, 0, 1, 1, 2, 2});
}

template <bool kSame, bool kBySize>
Outcome run_conv_transpose(const std::vector<Index>& numbers) {
  Numbers n(numbers);
  const Shape x = n.shape(4);
  const Shape w = n.shape(4);
  ConvTransposeOptions options{.stride = n.pair(),
                               .padding = kSame ? Padding(same) : n.padding(),
                               .dilation = n.pair(),
                               .groups = n.next()};
  (kBySize ? options.output_size : options.output_padding) = n.pair();
  const std::optional<Shape> b = n.shape(1);
  const auto [g, fault] = resolve_conv_transpose(x, w, b, options);
  return {fault,
          g.conv.windows,
          fault ? std::vector<Shape>{} : std::vector<Shape>{g.x_shape(), g.w_shape(), g.y_shape()},
          error_of([&] { conv_transpose_geometry(x, w, b, options); })};
}

TEST(Extremes, OfATransposedConvolutionAreFaultsOrRightGeometries) {
  check_extremes("conv_transpose",
                 run_conv_transpose<false, false>,
                 {2, 4, 5, 6, 4, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1, 2, 2, 1, 1, 6});
  check_extremes("conv_transpose",
                 run_conv_transpose<false, true>,
                 {2, 4, 5, 6, 4, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1, 2, 2, 11, 8, 6});
  check_extremes("conv_transpose",
                 run_conv_transpose<true, false>,
                 {2, 4, 5, 6, 4, 3, 3, 2, 2, 1, 1, 2, 2, 1, 1, 6});
}

/// Everything that the fixed-window pools share; `more` sets the rest of the options.
template <bool kSame, bool kCeil, class Options>
Options pool_options(Numbers& n) {
  Options options;
  options.kernel = n.pair();
  options.stride = n.pair();
  options.padding = kSame ? Padding(same) : n.padding();
  options.dilation = n.pair();
  options.ceil_mode = kCeil;
  return options;
}

template <class Resolve, class Make, class Options>
Outcome run_pool(Resolve resolve, Make make, const Shape& x, const Options& options) {
  const auto [g, fault] = resolve(x, options, 0);
  return {fault,
          g.pool.windows,
          fault ? std::vector<Shape>{} : std::vector<Shape>{g.pool.x_shape(), g.pool.y_shape()},
          error_of([&] { make(x, options, 0); })};
}

template <int kRank, bool kSame, bool kCeil>
Outcome run_max_pool(const std::vector<Index>& numbers) {
  Numbers n(numbers);
  const Shape x = n.shape(kRank);
  return run_pool(
      resolve_max_pool, max_pool_geometry, x, pool_options<kSame, kCeil, MaxPoolOptions>(n));
}

const std::vector<Index>& pool_numbers() {
  static const std::vector<Index> numbers = {2, 3, 9, 8, 3, 2, 2, 1, 1, 0, 0, 1, 1, 2};
  return numbers;
}

TEST(Extremes, OfAMaxPoolAreFaultsOrRightGeometries) {
  check_extremes("max_pool", run_max_pool<4, false, false>, pool_numbers());
  check_extremes("max_pool", run_max_pool<4, false, true>, pool_numbers());
  check_extremes("max_pool", run_max_pool<3, false, true>, {3, 9, 8, 3, 2, 2, 1, 1, 0, 0, 1, 1, 2});
  check_extremes("max_pool", run_max_pool<4, true, true>, {2, 3, 9, 8, 3, 2, 2, 1, 1, 2});
}

Outcome run_avg_pool(const std::vector<Index>& numbers) {
  Numbers n(numbers);
  const Shape x = n.shape(4);
  AvgPoolOptions options = pool_options<false, true, AvgPoolOptions>(n);
  options.divisor_override = n.next();
  return run_pool(resolve_avg_pool, avg_pool_geometry, x, options);
}

TEST(Extremes, OfAnAveragePoolAreFaultsOrRightGeometries) {
  std::vector<Index> numbers = pool_numbers();
  numbers.push_back(5);
  check_extremes("avg_pool", run_avg_pool, numbers);
  for (const Index divisor : kExtremes) {
    const auto [g, fault] = resolve_avg_pool({1, 1, 4}, {.kernel = 2, .divisor_override = divisor});
    EXPECT_EQ(fault.code, divisor == 0 ? ErrorCode::invalid_divisor : ErrorCode::none);
    EXPECT_EQ(g.divisor(0), divisor);
  }
}

Outcome run_smooth_max_pool(const std::vector<Index>& numbers) {
  Numbers n(numbers);
  const Shape x = n.shape(4);
  return run_pool(resolve_smooth_max_pool,
                  smooth_max_pool_geometry,
                  x,
                  pool_options<false, false, SmoothMaxPoolOptions>(n));
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Extremes, OfASmoothMaxPoolAreFaultsOrRightGeometries) {
  check_extremes("smooth_max_pool", run_smooth_max_pool, pool_numbers());
  for (const double beta : {0.0, -0.0, kInfinity, -kInfinity, kNan}) {
    const auto error = error_of([&] {
      smooth_max_pool_geometry({1, 1, 4}, {.kernel = 2, .beta = beta});
    });
    ASSERT_TRUE(error) << beta;
    EXPECT_EQ(error->code(), ErrorCode::invalid_beta);
    EXPECT_EQ(error->argument(), "beta");
  }
  for (const double beta : {5e-324, -5e-324, 1.7e308, -1.7e308}) {
    EXPECT_FALSE(resolve_smooth_max_pool({1, 1, 4}, {.kernel = 2, .beta = beta}).fault) << beta;
  }
}

Outcome run_lp_pool(const std::vector<Index>& numbers) {
  Numbers n(numbers);
  const Shape x = n.shape(4);
  return run_pool(
      resolve_lp_pool, lp_pool_geometry, x, pool_options<false, false, LpPoolOptions>(n));
}

TEST(Extremes, OfAnLpPoolAreFaultsOrRightGeometries) {
  check_extremes("lp_pool", run_lp_pool, pool_numbers());
  for (const double p : {0.0, -0.0, -1.0, kInfinity, -kInfinity, kNan}) {
    const auto error = error_of([&] { lp_pool_geometry({1, 1, 4}, {.kernel = 2, .p = p}); });
    ASSERT_TRUE(error) << p;
    EXPECT_EQ(error->code(), ErrorCode::invalid_exponent);
    EXPECT_EQ(error->argument(), "p");
  }
}

template <bool kMax>
Outcome run_adaptive(const std::vector<Index>& numbers) {
  Numbers n(numbers);
  const Shape x = n.shape(4);
  const AdaptivePoolOptions options{.output_size = n.pair()};
  const auto [g, fault] = resolve_adaptive_pool(x, options);
  return {fault,
          g.windows,
          fault ? std::vector<Shape>{} : std::vector<Shape>{g.x_shape(), g.y_shape()},
          error_of([&] {
            if constexpr (kMax) {
              adaptive_max_pool_geometry(x, options);
            } else {
              adaptive_avg_pool_geometry(x, options);
            }
          })};
}

TEST(Extremes, OfAdaptivePoolsAreFaultsOrRightGeometries) {
  check_extremes("adaptive_max_pool", run_adaptive<true>, {2, 3, 10, 7, 3, 9});
  check_extremes("adaptive_avg_pool", run_adaptive<false>, {2, 3, 10, 7, 3, 9});
}

template <bool kBySize>
Outcome run_max_unpool(const std::vector<Index>& numbers) {
  Numbers n(numbers);
  const Shape x = n.shape(4);
  MaxUnpoolOptions options;
  if (kBySize) {
    options.output_size = n.pair();
  } else {
    options.kernel = n.pair();
    options.stride = n.pair();
    options.padding = n.padding();
  }
  const auto resolved = resolve_max_unpool(x, options);
  return {resolved.fault,
          {},
          resolved.fault
              ? std::vector<Shape>{}
              : std::vector<Shape>{resolved.geometry.x_shape(), resolved.geometry.y_shape()},
          error_of([&] { max_unpool_geometry(x, options); })};
}

TEST(Extremes, OfAnUnpoolAreFaultsOrRightGeometries) {
  check_extremes("max_unpool", run_max_unpool<true>, {2, 3, 4, 5, 9, 10});
  check_extremes("max_unpool", run_max_unpool<false>, {2, 3, 4, 5, 3, 2, 2, 1, 1, 0, 0, 1});
}

TEST(Extremes, EmptyBatchesAndChannelsAreLegalEverywhere) {
  EXPECT_FALSE(resolve_conv({0, 3, 5}, {4, 3, 2}, Shape{4}, {}).fault);
  EXPECT_FALSE(resolve_conv({2, 0, 5}, {4, 0, 2}, Shape{4}, {}).fault);
  EXPECT_FALSE(resolve_conv({2, 3, 5}, {0, 3, 2}, Shape{0}, {}).fault);
  EXPECT_FALSE(resolve_conv_transpose({0, 3, 5}, {3, 4, 2}, Shape{4}, {}).fault);
  EXPECT_FALSE(resolve_conv_transpose({2, 0, 5}, {0, 4, 2}, Shape{4}, {}).fault);
  EXPECT_FALSE(resolve_conv_transpose({2, 3, 5}, {3, 0, 2}, Shape{0}, {}).fault);
  for (const Shape& x : {Shape{0, 3, 5}, Shape{2, 0, 5}, Shape{0, 0, 5}}) {
    EXPECT_FALSE(resolve_max_pool(x, {.kernel = 2}).fault);
    EXPECT_FALSE(resolve_avg_pool(x, {.kernel = 2}).fault);
    EXPECT_FALSE(resolve_smooth_max_pool(x, {.kernel = 2}).fault);
    EXPECT_FALSE(resolve_lp_pool(x, {.kernel = 2}).fault);
    EXPECT_FALSE(resolve_adaptive_pool(x, AdaptivePoolOptions{.output_size = 2}).fault);
    EXPECT_FALSE(resolve_max_unpool(x, {.kernel = 2}).fault);
  }
}

}  // namespace
}  // namespace fenestra
