// Sizes, statistics and the text of a model file.
#include <fenestra/nn/data/preprocessing.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace fenestra::nn {
namespace {

template <class Act>
ErrorCode code_of(Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

TEST(Preprocessing, ResizingToTwiceTheSizeIsLinearBetweenCentres) {
  const Tensor<float> x(Shape{1, 2}, {0, 4});
  const auto y = resized(x, Shape{4});
  // New centres lie at -0.25, 0.25, 0.75 and 1.25 of the old ones; outside, the border goes on.
  const float expected[] = {0, 1, 3, 4};
  for (Index i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(y[i], expected[i]);
  }
}

TEST(Preprocessing, ResizingToHalfAveragesAsWideAsANewCell) {
  // Centre between the cells 1 and 2 of 0 .. 3, reach 2: weights 1/4, 3/4, 3/4, 1/4 of 2; and the
  // same cut off at the border: 3/4, 3/4, 1/4 of 7/4.
  const Tensor<float> x(Shape{1, 4}, {7, 0, 0, 0});
  const auto y = resized(x, Shape{2});
  EXPECT_FLOAT_EQ(y[0], 3);
  EXPECT_FLOAT_EQ(y[1], 0);
  const Tensor<float> middle(Shape{1, 6}, {0, 0, 8, 0, 0, 0});
  EXPECT_FLOAT_EQ(resized(middle, Shape{3})[1], 3);
}

TEST(Preprocessing, ResizingKeepsConstantsAndSizesThatFit) {
  const Tensor<float> flat(Shape{3, 7, 5}, 0.25F);
  for (const Shape& size : {Shape{2, 2}, Shape{1, 1}, Shape{7, 9}, Shape{20, 3}}) {
    const auto y = resized(flat, size);
    ASSERT_EQ(y.shape(), (Shape{3, size[0], size[1]}));
    for (const float v : y.values()) {
      // At most 7 taps on each axis, with weights that sum up to 1 by as many roundings: products,
      // sums and weights, 2 * 3 * 7.
      EXPECT_NEAR(static_cast<double>(v), 0.25, 42 * 0x1p-24 * 0.25);
    }
  }
  EXPECT_EQ(resized(flat, Shape{7, 5}).data(), flat.data());
}

TEST(Preprocessing, MasksTakeTheNearestCell) {
  const Tensor<Index> mask(Shape{2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(resized_mask(mask, Shape{4, 4}),
            Tensor<Index>(Shape{4, 4}, {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
  EXPECT_EQ(resized_mask(Tensor<Index>(Shape{6}, {0, 1, 2, 3, 4, 5}), Shape{2}),
            Tensor<Index>(Shape{2}, {1, 4}));
}

TEST(Preprocessing, NormalisesEachChannel) {
  const Tensor<float> x(Shape{2, 2}, {1, 2, 3, 4});
  const auto y = preprocess<double>({.mean = {1, 2}, .scale = {0.5, 4}}, x);
  EXPECT_EQ(y, Tensor<double>(Shape{2, 2}, {0, 2, 0.25, 0.5}));
  EXPECT_EQ(preprocess<float>({}, x), x);
}

TEST(Preprocessing, StatisticsAreThoseOfAllValues) {
  // Far from 0, where sums of squares in one go would lose the deviation.
  const Index samples = 7, cells = 6;
  Tensor<float> x(Shape{samples, 2, 2, 3});
  double sum = 0;
  for (Index i = 0; i < samples; ++i) {
    for (Index cell = 0; cell < cells; ++cell) {
      x.mutable_data()[(2 * i) * cells + cell] =
          10'000 + static_cast<float>((i * 31 + cell * 17) % 11);
      x.mutable_data()[(2 * i + 1) * cells + cell] = 3;
      sum += 10'000 + static_cast<double>((i * 31 + cell * 17) % 11);
    }
  }
  const double mean = sum / static_cast<double>(samples * cells);
  double squares = 0;
  for (Index i = 0; i < samples; ++i) {
    for (Index cell = 0; cell < cells; ++cell) {
      const double away = 10'000 + static_cast<double>((i * 31 + cell * 17) % 11) - mean;
      squares += away * away;
    }
  }
  const auto data = array_dataset(x, Tensor<Index>(Shape{samples}));
  const Preprocessing found = normalisation_of(*data);
  // Sums of 42 numbers of about 10,000, on both sides; deviations are from such a mean.
  const double bound = 2 * 42 * 0x1p-53 * 10'010;
  EXPECT_NEAR(found.mean[0], mean, bound);
  EXPECT_NEAR(found.scale[0], std::sqrt(squares / static_cast<double>(samples * cells)), 2 * bound);
  EXPECT_EQ(found.mean[1], 3);
  EXPECT_EQ(found.scale[1], 1e-6);
  EXPECT_EQ(normalisation_of(*data, 1).mean[1], 3);

  x.mutable_data()[7 * cells] = std::numeric_limits<float>::quiet_NaN();
  try {
    normalisation_of(*array_dataset(x, Tensor<Index>(Shape{samples})));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("sample 3 of"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("channel 1"), std::string::npos) << error.what();
  }
  EXPECT_EQ(code_of([&] { normalisation_of(*data, 0); }), ErrorCode::invalid_option);
}

TEST(Preprocessing, ComesBackFromJsonToTheLastBit) {
  const Preprocessing some{
      .size = {28, 32}, .mean = {1.0 / 3, -1e-300, 1e22}, .scale = {0.1, 2, 3}};
  EXPECT_EQ(preprocessing_from_json(to_json(some), "text"), some);
  EXPECT_EQ(to_json(Preprocessing{.size = {8}, .mean = {0.5}, .scale = {0.25}}),
            R"({"size":[8],"mean":[0.5],"scale":[0.25]})");
  EXPECT_EQ(preprocessing_from_json(to_json({}), "text"), Preprocessing{});
  EXPECT_EQ(preprocessing_from_json(" { \"mean\" : [ 1 , 2.5e-1 ] } ", "text"),
            (Preprocessing{.mean = {1, 0.25}}));
}

TEST(Preprocessing, RefusesTextThatIsNone) {
  for (const char* text : {"",
                           "{",
                           "[]",
                           R"({"size":[8.5]})",
                           R"({"size":[-8]})",
                           R"({"size":[0]})",
                           R"({"size":[99999999999999999]})",
                           R"({"size":[1,1,1,1,1,1,1,1,1]})",
                           R"({"mean":["1"]})",
                           R"({"mean":[nan]})",
                           R"({"mean":[inf]})",
                           R"({"mean":[1e999]})",
                           R"({"mean":[1.]})",
                           R"({"mean":[.5]})",
                           R"({"mean":[1)",
                           R"({"mean":[1,2],"scale":[1]})",
                           R"({"scale":[0]})",
                           R"({"median":[1]})",
                           R"({"mean":[1],"mean":[2]})",
                           "{\"mean\":[1]} x",
                           "{\"\xff\":[1]}"}) {
    EXPECT_EQ(code_of([&] { preprocessing_from_json(text, "text"); }), ErrorCode::bad_file) << text;
  }
}

TEST(Preprocessing, RefusesWhatDoesNotFit) {
  const Tensor<float> x(Shape{3, 4, 4});
  EXPECT_EQ(code_of([&] { preprocess<float>({.mean = {1}}, x); }), ErrorCode::channel_mismatch);
  EXPECT_EQ(code_of([&] {
              preprocess<float>({.scale = {1, 0, 1}}, x);
            }),
            ErrorCode::invalid_option);
  EXPECT_EQ(code_of([&] { preprocess<float>({.size = {8}}, x); }), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([&] { preprocess<float>({.size = {8, 0}}, x); }), ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([&] {
              preprocess<float>({.size = {1 << 20, 1 << 20}}, x);
            }),
            ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([&] { preprocess<float>({}, Tensor<float>()); }), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([&] {
              resized(Tensor<float>(Shape{1, 0, 3}), Shape{2, 2});
            }),
            ErrorCode::invalid_extent);
}

}  // namespace
}  // namespace fenestra::nn
