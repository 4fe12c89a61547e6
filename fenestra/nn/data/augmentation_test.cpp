// Augmentation: known answers on tiny pictures, and the laws that hold for any draw.
#include <fenestra/nn/data/augmentation.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace fenestra::nn {
namespace {

const Tensor<float> kNine(Shape{1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});

Sample nine_with_mask() {
  return {.image = kNine, .mask = Tensor<Index>(Shape{3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})};
}

Tensor<float> as_image(const Tensor<Index>& mask) {
  return mask.map([](Index v) { return static_cast<float>(v); })
      .reshaped(Shape{1, mask.shape()[0], mask.shape()[1]});
}

template <class Act>
ErrorCode code_of(Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

TEST(Augmentation, ShiftsByWholeCellsAndFillsWithZeros) {
  EXPECT_EQ(shifted(kNine, Shape{1, 0}),
            Tensor<float>(Shape{1, 3, 3}, {0, 0, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(shifted(kNine, Shape{0, -1}),
            Tensor<float>(Shape{1, 3, 3}, {2, 3, 0, 5, 6, 0, 8, 9, 0}));
  EXPECT_EQ(shifted(kNine, Shape{5, 0}), Tensor<float>(Shape{1, 3, 3}));
  EXPECT_EQ(shifted(Tensor<float>(Shape{2, 2}, {1, 2, 3, 4}), Shape{1}),
            Tensor<float>(Shape{2, 2}, {0, 1, 0, 3}));
}

TEST(Augmentation, FlipsOneAxis) {
  EXPECT_EQ(flipped(kNine, 1), Tensor<float>(Shape{1, 3, 3}, {3, 2, 1, 6, 5, 4, 9, 8, 7}));
  EXPECT_EQ(flipped(kNine, 0), Tensor<float>(Shape{1, 3, 3}, {7, 8, 9, 4, 5, 6, 1, 2, 3}));
}

TEST(Augmentation, RotatesByQuarterTurnsExactlyAnticlockwise) {
  EXPECT_EQ(rotated(kNine, 90), Tensor<float>(Shape{1, 3, 3}, {3, 6, 9, 2, 5, 8, 1, 4, 7}));
  EXPECT_EQ(rotated(kNine, 180), Tensor<float>(Shape{1, 3, 3}, {9, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(rotated(kNine, -90), Tensor<float>(Shape{1, 3, 3}, {7, 4, 1, 8, 5, 2, 9, 6, 3}));
  EXPECT_EQ(rotated(kNine, 270), rotated(kNine, -90));
  EXPECT_EQ(rotated(kNine, 0), kNine);
  EXPECT_EQ(rotated(kNine, -360), kNine);
  const Tensor<float> even(Shape{1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(rotated(even, 90), Tensor<float>(Shape{1, 2, 2}, {2, 4, 1, 3}));
}

TEST(Augmentation, RotationInterpolatesBetweenCells) {
  // By 45 degrees the cell above the centre shows the place sqrt(1/2) right and above of it.
  const auto y = rotated(kNine, 45);
  EXPECT_FLOAT_EQ(y.at(0, 1, 1), 5);
  const double a = std::sqrt(0.5);
  const double expected = (1 - a) * (1 - a) * 5 + a * (1 - a) * (6 + 2) + a * a * 3;
  // Four products and three sums in float, of numbers up to 9.
  EXPECT_NEAR(static_cast<double>(y.at(0, 0, 1)), expected, 7 * 0x1p-24 * 9);
}

TEST(Augmentation, DrawsOnlyShiftsInRangeAndAllOfThem) {
  std::set<std::pair<int, int>> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto y = augment({.image = kNine}, {.shift = 1}, Key(seed)).image;
    bool found = false;
    for (int down = -1; down <= 1; ++down) {
      for (int right = -1; right <= 1; ++right) {
        if (y == shifted(kNine, Shape{down, right})) {
          seen.emplace(down, right);
          found = true;
        }
      }
    }
    ASSERT_TRUE(found);
  }
  EXPECT_EQ(seen.size(), 9U);
}

TEST(Augmentation, CertainFlipsAndFlipsByChance) {
  EXPECT_EQ(augment({.image = kNine}, {.flip = 1}, Key(3)).image, flipped(kNine, 1));
  EXPECT_EQ(augment({.image = kNine}, {.flip_vertical = 1}, Key(3)).image, flipped(kNine, 0));
  int flips = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    flips += augment({.image = kNine}, {.flip = 0.25}, Key(seed)).image == kNine ? 0 : 1;
  }
  EXPECT_NEAR(flips, 250, 70);  // five standard deviations
}

TEST(Augmentation, CropsAnyWindowOfThePaddedPicture) {
  // In two rows and columns of zeros all round, every window of 2 x 2 can be cut.
  std::set<std::vector<float>> windows;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const auto y = augment({.image = kNine}, {.padding = 1, .crop = Shape{2, 2}}, Key(seed)).image;
    ASSERT_EQ(y.shape(), (Shape{1, 2, 2}));
    windows.emplace(y.values().begin(), y.values().end());
  }
  std::set<std::vector<float>> expected;
  for (int top = -1; top <= 2; ++top) {
    for (int left = -1; left <= 2; ++left) {
      std::vector<float> window;
      for (int i = top; i < top + 2; ++i) {
        for (int j = left; j < left + 2; ++j) {
          window.push_back(i < 0 || j < 0 || i > 2 || j > 2 ? 0.0F
                                                            : static_cast<float>(3 * i + j + 1));
        }
      }
      expected.insert(window);
    }
  }
  EXPECT_EQ(windows, expected);
}

TEST(Augmentation, PaddingAloneKeepsTheSize) {
  bool moved = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto y = augment({.image = kNine}, {.padding = 2}, Key(seed)).image;
    ASSERT_EQ(y.shape(), kNine.shape());
    moved = moved || !(y == kNine);
  }
  EXPECT_TRUE(moved);
}

TEST(Augmentation, CutsOutOneBoxOfTheSampleAlone) {
  const Sample ones{.image = Tensor<float>(Shape{2, 6, 6}, 1.0F),
                    .mask = Tensor<Index>(Shape{6, 6}, Index{1}),
                    .target = Tensor<float>(Shape{2, 6, 6}, 1.0F)};
  std::set<Index> sizes;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Sample cut = augment(ones, {.cut_out = 3}, Key(seed));
    EXPECT_EQ(cut.mask, ones.mask);
    EXPECT_EQ(cut.target, ones.target);
    Index zeros = 0;
    for (Index cell = 0; cell < 36; ++cell) {
      EXPECT_EQ(cut.image[cell], cut.image[36 + cell]);  // through all channels
      zeros += cut.image[cell] == 0 ? 1 : 0;
    }
    sizes.insert(zeros);
  }
  // Centred on any cell: whole, or with a row or a column, or both, beyond the border.
  EXPECT_EQ(sizes, (std::set<Index>{4, 6, 9}));
}

TEST(Augmentation, NoiseHasTheMeanAndDeviationAskedFor) {
  const Tensor<float> zeros(Shape{1, 100, 100});
  const auto y = augment({.image = zeros}, {.noise = 0.5}, Key(1)).image;
  double sum = 0, squares = 0;
  for (const float v : y.values()) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  EXPECT_NEAR(sum / 1e4, 0, 5 * 0.5 / 100);
  EXPECT_NEAR(squares / 1e4, 0.25, 5 * 0.25 * std::sqrt(2.0) / 100);
}

TEST(Augmentation, IsAFunctionOfTheKey) {
  const Augmentation all{.padding = 1,
                         .flip = 0.5,
                         .flip_vertical = 0.5,
                         .shift = 1,
                         .rotate = 30,
                         .cut_out = 1,
                         .noise = 0.1};
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Sample a = augment(nine_with_mask(), all, Key(seed));
    const Sample b = augment(nine_with_mask(), all, Key(seed));
    EXPECT_EQ(a.image, b.image);
    EXPECT_EQ(a.mask, b.mask);
    EXPECT_FALSE(a.image == augment(nine_with_mask(), all, Key(seed + 1)).image);
  }
}

TEST(Augmentation, MasksFollowTheirPictures) {
  // The mask has the picture's numbers, so whole-cell moves must leave both equal.
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Sample moved =
        augment(nine_with_mask(),
                {.padding = 1, .crop = Shape{3, 2}, .flip = 0.5, .flip_vertical = 0.5, .shift = 1},
                Key(seed));
    ASSERT_EQ(moved.image, as_image(moved.mask)) << seed;
  }
}

TEST(Augmentation, RotatedMasksFollowByTheNearestCell) {
  // A large square keeps its inside: where a rotated mask and picture disagree is on the edge only.
  Sample sample{.image = Tensor<float>(Shape{1, 32, 32}), .mask = Tensor<Index>(Shape{32, 32})};
  for (Index i = 8; i < 24; ++i) {
    for (Index j = 4; j < 20; ++j) {
      sample.image.mutable_at(0, i, j) = 1;
      sample.mask.mutable_at(i, j) = 3;
    }
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Sample rotated = augment(sample, {.rotate = 180}, Key(seed));
    for (Index cell = 0; cell < rotated.mask.size(); ++cell) {
      const float value = rotated.image[cell];
      ASSERT_TRUE(rotated.mask[cell] == 0 || rotated.mask[cell] == 3);
      if (value > 0.999F) {
        ASSERT_EQ(rotated.mask[cell], 3);
      }
      if (value == 0) {
        ASSERT_EQ(rotated.mask[cell], 0);
      }
    }
  }
}

TEST(Augmentation, TargetsMoveWhereTheyHaveTheSamplesExtents) {
  const Sample sample{.image = kNine, .target = kNine};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Sample moved = augment(sample, {.flip = 0.5, .shift = 1, .rotate = 20}, Key(seed));
    EXPECT_EQ(moved.image, moved.target);
    const Sample noisy = augment(sample, {.shift = 1, .noise = 0.1}, Key(seed));
    EXPECT_EQ(noisy.target, augment(sample, {.shift = 1}, Key(seed)).image);
  }
  const Tensor<float> other(Shape{2}, {1, 2});
  EXPECT_EQ(augment({.image = kNine, .target = other}, {.flip = 1}, Key(0)).target, other);
}

TEST(Augmentation, WorksOnSignalsAndVolumes) {
  const Tensor<float> signal(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(augment({.image = signal}, {.flip = 1}, Key(0)).image,
            Tensor<float>(Shape{2, 3}, {3, 2, 1, 6, 5, 4}));
  const Tensor<float> volume(Shape{1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(augment({.image = volume}, {.flip = 1}, Key(0)).image,
            Tensor<float>(Shape{1, 2, 2, 2}, {2, 1, 4, 3, 6, 5, 8, 7}));
  EXPECT_EQ(shifted(volume, Shape{1, 0, 0}),
            Tensor<float>(Shape{1, 2, 2, 2}, {0, 0, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(rotated(volume, 90), Tensor<float>(Shape{1, 2, 2, 2}, {2, 4, 1, 3, 6, 8, 5, 7}));
}

TEST(Augmentation, LeavesTheOriginalAlone) {
  const Sample sample{.image = kNine};
  const Tensor<float> before(kNine.shape(), kNine.values());
  (void)augment(sample, {.shift = 1, .cut_out = 2, .noise = 1}, Key(0));
  (void)augment(sample, {.noise = 1}, Key(0));
  EXPECT_EQ(kNine, before);
}

TEST(Augmentation, RefusesWhatCannotBe) {
  const Shape picture{1, 8, 8}, signal{1, 8}, row{5};
  const auto check_code = [](const Augmentation& how, const Shape& shape) {
    return code_of([&] { check_fits(how, shape); });
  };
  EXPECT_EQ(check_code({}, row), ErrorCode::none);
  EXPECT_EQ(check_code({.noise = 1}, row), ErrorCode::none);
  EXPECT_EQ(check_code({.flip = 1.5}, picture), ErrorCode::invalid_option);
  EXPECT_EQ(check_code({.flip = -0.1}, picture), ErrorCode::invalid_option);
  EXPECT_EQ(check_code({.flip_vertical = std::numeric_limits<double>::quiet_NaN()}, picture),
            ErrorCode::invalid_option);
  EXPECT_EQ(check_code({.shift = -1}, picture), ErrorCode::invalid_option);
  EXPECT_EQ(check_code({.shift = std::numeric_limits<Index>::max()}, picture),
            ErrorCode::invalid_option);
  EXPECT_EQ(check_code({.rotate = 181}, picture), ErrorCode::invalid_option);
  EXPECT_EQ(check_code({.noise = std::numeric_limits<double>::infinity()}, picture),
            ErrorCode::invalid_option);
  EXPECT_EQ(check_code({.crop = Shape{9, 8}}, picture), ErrorCode::invalid_extent);
  EXPECT_EQ(check_code({.padding = 1, .crop = Shape{9, 10}}, picture), ErrorCode::none);
  EXPECT_EQ(check_code({.crop = Shape{0, 8}}, picture), ErrorCode::invalid_extent);
  EXPECT_EQ(check_code({.crop = Shape{8}}, picture), ErrorCode::invalid_extent);
  EXPECT_EQ(check_code({.rotate = 10}, signal), ErrorCode::rank_mismatch);
  EXPECT_EQ(check_code({.flip_vertical = 0.5}, signal), ErrorCode::rank_mismatch);
  EXPECT_EQ(check_code({.shift = 1}, row), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([&] { flipped(kNine, 2); }), ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] { shifted(kNine, Shape{1}); }), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([&] { rotated(Tensor<float>(Shape{1, 3}), 5); }), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([&] { rotated(kNine, std::numeric_limits<double>::infinity()); }),
            ErrorCode::invalid_option);
}

TEST(Augmentation, IsReadFromTextAndPrinted) {
  const Augmentation how{.padding = 4, .crop = Shape{28, 24}, .flip = 0.5, .rotate = 12.5};
  EXPECT_EQ(to_string(how), "padding=4,flip=0.5,rotate=12.5,crop=28x24");
  EXPECT_EQ(parse_augmentation(to_string(how)), how);
  EXPECT_EQ(parse_augmentation("none"), Augmentation{});
  EXPECT_EQ(parse_augmentation(""), Augmentation{});
  EXPECT_EQ(to_string(Augmentation{}), "none");
  for (const char* text : {"shift", "shift=", "shift=x", "shift=2.5", "crop=3x", "shift=1 "}) {
    EXPECT_EQ(code_of([&] { parse_augmentation(text); }), ErrorCode::invalid_option) << text;
  }
  for (const char* text : {"flip=0.5,", "flop=1"}) {
    EXPECT_EQ(code_of([&] { parse_augmentation(text); }), ErrorCode::unknown_choice) << text;
  }
  try {
    parse_augmentation("shfit=2");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean shift?"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace fenestra::nn
