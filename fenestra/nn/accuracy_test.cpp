// Accuracy: which samples count as right, and labels that do not fit.
#include <fenestra/nn/accuracy.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace fenestra::nn {
namespace {

using D = Tensor<double>;
using Labels = Tensor<Index>;

ErrorCode code_of(const D& scores, const Labels& labels) {
  try {
    accuracy(scores, labels);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

TEST(Accuracy, IsTheShareOfSamplesWhoseLargestScoreIsAtTheirLabel) {
  const D scores(Shape{4, 3}, {1., 2., 3., 9., 0., 0., 0., 5., 1., 1., 2., 3.});
  EXPECT_EQ(accuracy(scores, Labels(Shape{4}, {2, 0, 1, 0})), 0.75);
  EXPECT_EQ(correct_predictions(scores, Labels(Shape{4}, {2, 0, 1, 0})), 3);
}

TEST(Accuracy, TheFirstOfEqualScoresIsThePrediction) {
  EXPECT_EQ(accuracy(D(Shape{1, 2}, {1., 1.}), Labels(Shape{1}, {0})), 1);
  EXPECT_EQ(accuracy(D(Shape{1, 2}, {1., 1.}), Labels(Shape{1}, {1})), 0);
}

TEST(Accuracy, NanIsTheLargestScore) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(accuracy(D(Shape{1, 3}, {9., nan, 1.}), Labels(Shape{1}, {1})), 1);
}

TEST(Accuracy, NoSamplesAreAllCorrect) { EXPECT_EQ(accuracy(D(Shape{0, 3}), Labels(Shape{0})), 1); }

TEST(Accuracy, ShapesAndLabelsThatDoNotFitAreRefused) {
  EXPECT_EQ(code_of(D(Shape{2, 3}), Labels(Shape{3})), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of(D(Shape{6}), Labels(Shape{6})), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of(D(Shape{1, 3}), Labels(Shape{1}, {3})), ErrorCode::invalid_index);
  EXPECT_EQ(code_of(D(Shape{1, 3}), Labels(Shape{1}, {-1})), ErrorCode::invalid_index);
}

}  // namespace
}  // namespace fenestra::nn
