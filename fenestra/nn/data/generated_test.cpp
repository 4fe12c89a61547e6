// Generated data: a function of seed and index, and recognisable by plain measurements.
#include <fenestra/nn/data/generated.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

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

TEST(Generated, IsAFunctionOfSeedAndIndex) {
  const auto a = shapes_dataset({.count = 5, .seed = 1});
  const auto b = shapes_dataset({.count = 50, .seed = 1});
  const auto other = shapes_dataset({.count = 5, .seed = 2});
  for (Index i = 4; i >= 0; --i) {
    EXPECT_EQ(a->get(i).image, b->get(i).image);
    EXPECT_EQ(a->get(i).mask, b->get(i).mask);
    EXPECT_FALSE(a->get(i).image == other->get(i).image);
  }
  EXPECT_FALSE(a->get(0).image == a->get(1).image);
}

TEST(Generated, ShapesAreBrightWhereTheMaskSaysSo) {
  const auto data = shapes_dataset({.count = 60, .size = 48, .channels = 3, .noise = 0});
  std::vector<Index> cells(4);
  for (Index i = 0; i < data->size(); ++i) {
    const Sample sample = data->get(i);
    for (Index cell = 0; cell < sample.mask.size(); ++cell) {
      const Index label = sample.mask[cell];
      ASSERT_TRUE(label >= 0 && label < 4);
      ++cells[static_cast<std::size_t>(label)];
      const Index row = cell / 48, column = cell % 48;
      bool is_inside = row > 0 && row < 47 && column > 0 && column < 47;
      for (const Index next :
           {cell - 49, cell - 48, cell - 47, cell - 1, cell + 1, cell + 47, cell + 48, cell + 49}) {
        is_inside = is_inside && sample.mask[std::clamp<Index>(next, 0, 48 * 48 - 1)] == label;
      }
      if (is_inside) {
        for (Index channel = 0; channel < 3; ++channel) {
          const float value = sample.image[channel * 48 * 48 + cell];
          ASSERT_TRUE(label == 0 ? value < 0.46F : value >= 0.49F && value <= 1.0F)
              << "sample " << i << " cell " << cell << " label " << label << " value " << value;
        }
      }
    }
  }
  for (const Index count : cells) {
    EXPECT_GT(count, 48 * 48);  // of 60 pictures
  }
  EXPECT_GT(cells[0], cells[1] + cells[2] + cells[3]);
}

/// How much of the box around the mask a lone figure fills.
double fill_of(const Tensor<Index>& mask) {
  const Index size = mask.shape()[0];
  Index top = size, bottom = 0, left = size, right = 0, count = 0;
  for (Index cell = 0; cell < mask.size(); ++cell) {
    if (mask[cell] != 0) {
      top = std::min(top, cell / size);
      bottom = std::max(bottom, cell / size);
      left = std::min(left, cell % size);
      right = std::max(right, cell % size);
      ++count;
    }
  }
  return static_cast<double>(count) / static_cast<double>((bottom - top + 1) * (right - left + 1));
}

TEST(Generated, LoneCirclesAreRoundAndLoneTrianglesHalfFull) {
  const auto data = shapes_dataset({.count = 400, .size = 96, .noise = 0});
  int circles = 0, triangles = 0;
  for (Index i = 0; i < data->size(); ++i) {
    const auto mask = data->get(i).mask;
    const std::set<Index> kinds(mask.values().begin(), mask.values().end());
    bool touches_border = false;
    for (Index k = 0; k < 96; ++k) {
      touches_border = touches_border || mask.at(0, k) != 0 || mask.at(95, k) != 0 ||
                       mask.at(k, 0) != 0 || mask.at(k, 95) != 0;
    }
    if (kinds.size() != 2 || touches_border) {
      continue;
    }
    const double fill = fill_of(mask);
    // Several figures of one kind fill less of the box around them all.
    if (kinds.count(1) == 1 && fill > 0.7) {
      EXPECT_NEAR(fill, 3.14159265 / 4, 0.06);
      ++circles;
    }
    if (kinds.count(3) == 1) {
      EXPECT_LT(fill, 0.62);
      ++triangles;
    }
  }
  EXPECT_GT(circles, 5);
  EXPECT_GT(triangles, 5);
}

TEST(Generated, TonesAreOfTheirKind) {
  const auto data = tones_dataset({.count = 300, .length = 256, .noise = 0});
  std::vector<Index> counts(5);
  for (Index i = 0; i < data->size(); ++i) {
    const Sample sample = data->get(i);
    ++counts[static_cast<std::size_t>(sample.label)];
    const auto x = sample.image.values();
    std::vector<float> levels(x.begin(), x.end());
    std::sort(levels.begin(), levels.end());
    const auto distinct = std::unique(levels.begin(), levels.end()) - levels.begin();
    Index crossings = 0, first_half = 0;
    for (std::size_t t = 1; t < x.size(); ++t) {
      if ((x[t - 1] < 0) != (x[t] < 0)) {
        ++crossings;
        first_half += t < x.size() / 2 ? 1 : 0;
      }
      EXPECT_LE(std::abs(x[t]), 1.0F);
    }
    switch (sample.label) {
      case 1: EXPECT_EQ(distinct, 2); break;
      case 3: EXPECT_GT(crossings - first_half, first_half); break;  // the pitch rises
      case 4: EXPECT_GT(crossings, 90); break;  // 127.5 on average, standard deviation 8
      default:
        EXPECT_LE(crossings, 66);
        EXPECT_GE(crossings, 5);
        break;
    }
  }
  for (const Index count : counts) {
    EXPECT_GT(count, 30);
  }
}

TEST(Generated, VolumesAreOfTheirKind) {
  const auto data = volumes_dataset({.count = 60, .size = 16, .noise = 0});
  std::set<Index> labels;
  for (Index i = 0; i < data->size(); ++i) {
    const Sample sample = data->get(i);
    ASSERT_EQ(sample.image.shape(), (Shape{1, 16, 16, 16}));
    labels.insert(sample.label);
    // The body is near the middle, and only the shell is hollow there.
    double sum[3] = {}, mass = 0;
    for (Index cell = 0; cell < sample.image.size(); ++cell) {
      const auto value = static_cast<double>(sample.image[cell]);
      mass += value;
      sum[0] += value * static_cast<double>(cell / 256);
      sum[1] += value * static_cast<double>(cell / 16 % 16);
      sum[2] += value * static_cast<double>(cell % 16);
    }
    const auto centre = [&](int axis) { return static_cast<Index>(std::lround(sum[axis] / mass)); };
    const float middle = sample.image.at(0, centre(0), centre(1), centre(2));
    EXPECT_EQ(middle == 0, sample.label == 2) << "label " << sample.label;
  }
  EXPECT_EQ(labels.size(), 4U);
}

TEST(Generated, RefusesSizesThatShowNothing) {
  EXPECT_EQ(code_of([] { shapes_dataset({.count = 0}); }), ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([] { shapes_dataset({.size = 8}); }), ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([] { shapes_dataset({.channels = 2}); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { shapes_dataset({.noise = -1}); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { tones_dataset({.length = 8}); }), ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([] { tones_dataset({.noise = NAN}); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { volumes_dataset({.size = 4000}); }), ErrorCode::invalid_extent);
}

}  // namespace
}  // namespace fenestra::nn
