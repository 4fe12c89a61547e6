// Padding and cropping of images: known values, undoing each other, adjointness, and refusals.
#include <fenestra/spec/image.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace fenestra {
namespace {

using Image = Tensor<Rational>;

Image random_tensor(Random& random, const Shape& shape) {
  Image result(shape);
  for (Rational& value : result.mutable_values()) {
    value = Rational(random.between(-9, 9), random.between(1, 4));
  }
  return result;
}

Rational dot(const Image& a, const Image& b) {
  Rational sum;
  for (Index i = 0; i < a.size(); ++i) {
    sum = sum + a[i] * b[i];
  }
  return sum;
}

/// A padding of `rank` (low, high) pairs and an image shape, both random.
struct Case {
  Shape shape;
  Padding padding;

  Case(Random& random, int rank) {
    padding.low = padding.high = PerAxis();
    for (int axis = 0; axis < rank; ++axis) {
      shape.push_back(random.between(0, 4));
      padding.push_back({random.between(0, 2), random.between(0, 2)});
    }
  }
};

/// The code, axis and argument of the error that `f` must throw.
template <class F>
Fault fault_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    return error.fault();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Image, PaddingPutsZerosAroundAnImage) {
  const Image image(Shape{2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(spec::pad_image(image, 1),
            Image(Shape{4, 4}, {0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0}));
  EXPECT_EQ(spec::pad_image(image, {{0, 1}, {2, 0}}),
            Image(Shape{3, 4}, {0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0}));
}

TEST(Image, CroppingTakesTheBorderAway) {
  const Image image(Shape{3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(spec::unpad_image(image, 1), Image(Shape{1, 2}, {6, 7}));
  EXPECT_EQ(spec::unpad_image(image, {{0, 1}, {2, 0}}), Image(Shape{2, 2}, {3, 4, 7, 8}));
  EXPECT_EQ(spec::unpad_image(image, {{1, 2}, {0, 0}}), Image(Shape{0, 4}));
}

TEST(Image, CroppingUndoesPaddingInAnyRank) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const Case c(random, static_cast<int>(random.between(1, 5)));
    const Image image = random_tensor(random, c.shape);
    EXPECT_EQ(spec::unpad_image(spec::pad_image(image, c.padding), c.padding), image);
  }
}

TEST(Image, PaddingIsTheAdjointOfCropping) {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const Case c(random, static_cast<int>(random.between(1, 5)));
    const Image image = random_tensor(random, c.shape);
    const Image padded = spec::pad_image(image, c.padding);
    const Image other = random_tensor(random, padded.shape());
    EXPECT_EQ(dot(padded, other), dot(image, spec::unpad_image(other, c.padding)));
  }
}

TEST(Image, ChannelsArePaddedAndCroppedOneByOneInBothLayouts) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const Case c(random, static_cast<int>(random.between(1, 4)));
    const Index channels = random.between(1, 3);
    Shape shape{channels};
    for (const Index extent : c.shape) {
      shape.push_back(extent);
    }
    const Image x = random_tensor(random, shape);
    const Image padded = spec::pad_channels(x, c.padding);
    EXPECT_EQ(spec::unpad_channels(padded, c.padding), x);
    for (Index channel = 0; channel < channels; ++channel) {
      const Image image = sliced(x, 0, channel, 1).reshaped(c.shape);
      const Image alone = spec::pad_image(image, c.padding);
      EXPECT_EQ(sliced(padded, 0, channel, 1).reshaped(alone.shape()), alone);
    }
    const auto last = [](const Image& t) {
      return activation_to_layout(t, false, Layout::channels_first, Layout::channels_last);
    };
    EXPECT_EQ(spec::pad_channels(last(x), c.padding, Layout::channels_last), last(padded));
    EXPECT_EQ(spec::unpad_channels(last(padded), c.padding, Layout::channels_last), last(x));
  }
}

TEST(Image, NegativePaddingIsRefusedOnItsAxis) {
  const Image image(Shape{2, 2});
  const Fault expected{ErrorCode::invalid_padding, Argument::padding, 1, -1, 0};
  EXPECT_EQ(fault_of([&] { spec::pad_image(image, {{0, 0}, {1, -1}}); }), expected);
  EXPECT_EQ(fault_of([&] { spec::unpad_image(image, {{0, 0}, {-1, 1}}); }), expected);
}

TEST(Image, CroppingMoreThanThereIsIsRefusedOnItsAxis) {
  const Image x(Shape{3, 2, 2});
  EXPECT_EQ(fault_of([&] {
              spec::unpad_channels(x, {{0, 0}, {1, 2}});
            }),
            (Fault{ErrorCode::invalid_padding, Argument::padding, 1, 3, 2}));
}

TEST(Image, PaddingThatDoesNotFitTheAxesIsRefused) {
  const Image x(Shape{3, 2, 2});
  EXPECT_EQ(fault_of([&] {
              spec::pad_channels(x, {1, 1, 1});
            }),
            (Fault{ErrorCode::rank_mismatch, Argument::padding, -1, 3, 2}));
  EXPECT_EQ(fault_of([&] { spec::pad_image(x, same); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] { spec::pad_channels(Image(Shape{3}), 1); }),
            (Fault{ErrorCode::rank_mismatch, Argument::x, -1, 1, 2}));
}

TEST(Image, ExtremePaddingIsAnErrorAndNeverACrash) {
  const Image image(Shape{2, 2});
  for (const Index low : {std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max()}) {
    for (const Index high :
         {Index{0}, std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max()}) {
      EXPECT_THROW(spec::pad_image(image, {{low, high}, {0, 0}}), Error);
      EXPECT_THROW(spec::unpad_image(image, {{low, high}, {0, 0}}), Error);
    }
  }
}

}  // namespace
}  // namespace fenestra
