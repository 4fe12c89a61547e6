// Metrics on small tables that were counted by hand.
#include <fenestra/nn/metrics.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fenestra::nn {
namespace {

using F = Tensor<float>;
using I = Tensor<Index>;

template <class G>
ErrorCode code_of(G&& g) {
  try {
    g();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

TEST(Metrics, TheFirstLargestScoreIsPredicted) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(predicted_classes(F(Shape{3, 3}, {1, 2, 2, 0, nan, 9, -1, -2, -3})),
            I(Shape{3}, {1, 1, 0}));
  // (1, 2, 3): the classes lie across the cells.
  EXPECT_EQ(predicted_classes(F(Shape{1, 2, 3}, {1, 5, 0, 2, 4, 0})), I(Shape{1, 3}, {1, 0, 0}));
}

TEST(Metrics, TopKCountsLabelsAmongTheLargest) {
  const F scores(Shape{3, 4}, {4, 3, 2, 1, 0, 0, 0, 0, 1, 2, 3, 4});
  const I labels(Shape{3}, {1, 2, 0});
  EXPECT_EQ(top_k_correct(scores, labels, 1), 0);
  EXPECT_EQ(top_k_correct(scores, labels, 2), 1);
  EXPECT_EQ(top_k_correct(scores, labels, 3), 2);  // of equal scores the first come first
  EXPECT_EQ(top_k_correct(scores, labels, 4), 3);
  EXPECT_EQ(top_k_correct(scores, labels, 99), 3);
  EXPECT_EQ(code_of([&] { top_k_correct(scores, labels, 0); }), ErrorCode::invalid_option);
}

TEST(Metrics, ConfusionsAreCounted) {
  ConfusionMatrix matrix(3);
  EXPECT_EQ(matrix.accuracy(), 1.0);
  matrix.add(I(Shape{4}, {0, 1, 1, 0}), I(Shape{4}, {0, 1, 0, 0}));
  matrix.add(F(Shape{1, 3}, {0, 2, 1}), I(Shape{1}, {0}));
  EXPECT_EQ(matrix.counts(), I(Shape{3, 3}, {2, 2, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(matrix.total(), 5);
  EXPECT_EQ(matrix.correct(), 3);
  EXPECT_EQ(matrix.accuracy(), 0.6);
  const auto iou = matrix.iou();
  EXPECT_EQ(iou[0], 2.0 / 4);
  EXPECT_EQ(iou[1], 1.0 / 3);
  EXPECT_TRUE(std::isnan(iou[2]));  // it never occurs
  EXPECT_EQ(matrix.mean_iou(), (0.5 + 1.0 / 3) / 2);
  EXPECT_EQ(to_string(matrix, {"cat", "dog"}),
            "     cat  dog  2\n"
            "cat    2    2  0\n"
            "dog    0    1  0\n"
            "2      0    0  0\n");
}

TEST(Metrics, WhatDoesNotFitIsRefusedAndNotCounted) {
  ConfusionMatrix matrix(2);
  EXPECT_EQ(code_of([&] { matrix.add(I(Shape{2}), I(Shape{3})); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([&] {
              matrix.add(I(Shape{2}), I(Shape{2}, {0, 2}));
            }),
            ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] {
              matrix.add(I(Shape{2}, {0, -1}), I(Shape{2}));
            }),
            ErrorCode::invalid_index);
  EXPECT_EQ(matrix.total(), 0);
  EXPECT_EQ(code_of([] { ConfusionMatrix(0); }), ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([] { predicted_classes(F(Shape{3})); }), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([] { predicted_classes(F(Shape{3, 0})); }), ErrorCode::rank_mismatch);
}

}  // namespace
}  // namespace fenestra::nn
