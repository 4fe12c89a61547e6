// Tensors in words: known texts, whole and abbreviated.
#include <fenestra/spec/rational.hpp>
#include <fenestra/tensor/print.hpp>

#include <gtest/gtest.h>

#include <numeric>
#include <sstream>
#include <string>

namespace fenestra {
namespace {

Tensor<int> counting(const Shape& shape) {
  Tensor<int> result(shape);
  std::iota(result.mutable_values().begin(), result.mutable_values().end(), 0);
  return result;
}

TEST(Print, ANumberAndAVectorAreOneLine) {
  EXPECT_EQ(to_string(Tensor<double>(Shape{}, 2.5)), "2.5");
  EXPECT_EQ(to_string(Tensor<int>(Shape{3}, {1, -20, 3})), "[  1, -20,   3]");
  EXPECT_EQ(to_string(Tensor<int>(Shape{0})), "[]");
  EXPECT_EQ(to_string(Tensor<int>(Shape{2, 0})), "[[],\n []]");
}

TEST(Print, AxesAreBracketsAndElementsAsWideAsTheWidest) {
  EXPECT_EQ(to_string(Tensor<double>(Shape{2, 2}, {1, -0.5, 10, 0.25})),
            "[[   1, -0.5],\n [  10, 0.25]]");
  EXPECT_EQ(to_string(counting(Shape{2, 2, 2})),
            "[[[0, 1],\n"
            "  [2, 3]],\n"
            "\n"
            " [[4, 5],\n"
            "  [6, 7]]]");
}

TEST(Print, FloatsHaveAsManyDigitsAsTheyTakeAndEightAtTheMost) {
  EXPECT_EQ(to_string(Tensor<float>(Shape{}, 0.1F)), "0.1");
  EXPECT_EQ(to_string(Tensor<double>(Shape{}, 1.0 / 3)), "0.33333333");
  EXPECT_EQ(to_string(Tensor<double>(Shape{}, 1e-20)), "1e-20");
}

TEST(Print, OtherScalarsPrintAsTheyDo) {
  EXPECT_EQ(to_string(Tensor<Rational>(Shape{2}, {Rational(1) / Rational(3), Rational(2)})),
            "[1/3,   2]");
}

TEST(Print, AThousandElementsAreWrittenAndOfMoreTheEdges) {
  const std::string whole = to_string(counting(Shape{1000}));
  EXPECT_EQ(whole.find("..."), std::string::npos);
  EXPECT_EQ(whole.substr(0, 16), "[  0,   1,   2, ");
  EXPECT_EQ(to_string(counting(Shape{1001})), "[   0,    1,    2, ...,  998,  999, 1000]");
  EXPECT_EQ(to_string(counting(Shape{40, 40})),
            "[[   0,    1,    2, ...,   37,   38,   39],\n"
            " [  40,   41,   42, ...,   77,   78,   79],\n"
            " [  80,   81,   82, ...,  117,  118,  119],\n"
            " ...,\n"
            " [1480, 1481, 1482, ..., 1517, 1518, 1519],\n"
            " [1520, 1521, 1522, ..., 1557, 1558, 1559],\n"
            " [1560, 1561, 1562, ..., 1597, 1598, 1599]]");
}

TEST(Print, AnAxisOfSixIsWrittenWholeBesideOneThatIsNot) {
  EXPECT_EQ(to_string(counting(Shape{200, 6})),
            "[[   0,    1,    2,    3,    4,    5],\n"
            " [   6,    7,    8,    9,   10,   11],\n"
            " [  12,   13,   14,   15,   16,   17],\n"
            " ...,\n"
            " [1182, 1183, 1184, 1185, 1186, 1187],\n"
            " [1188, 1189, 1190, 1191, 1192, 1193],\n"
            " [1194, 1195, 1196, 1197, 1198, 1199]]");
}

TEST(Print, StreamsTakeTheSameText) {
  std::ostringstream out;
  out << counting(Shape{2, 2});
  EXPECT_EQ(out.str(), "[[0, 1],\n [2, 3]]");
}

}  // namespace
}  // namespace fenestra
