// where beyond its laws: what is not chosen, NaN in the mask, batches and programs, refusals.
#include <fenestra/fenestra.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fenestra {
namespace {

using D = Tensor<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Where, WhatIsNotChosenHasNoInfluenceEvenIfItIsNoNumber) {
  const D mask(Shape{3}, {1.0, 0.0, 1.0});
  const D a(Shape{3}, {1.0, kNan, kInf});
  const D b(Shape{3}, {kInf, 2.0, kNan});
  EXPECT_EQ(where(mask, a, b), D(Shape{3}, {1.0, 2.0, kInf}));
  Tape<double> tape;
  const auto va = tape.parameter(a);
  const auto vb = tape.parameter(b);
  const auto grads = tape.backward(where(mask, va, vb));
  EXPECT_EQ(grads[va], D(Shape{3}, {1.0, 0.0, 1.0}));
  EXPECT_EQ(grads[vb], D(Shape{3}, {0.0, 1.0, 0.0}));
}

TEST(Where, ANanInTheMaskChoosesTheFirst) {
  EXPECT_EQ(where(D(Shape{1}, kNan), D(Shape{1}, 1.0), D(Shape{1}, 2.0)), D(Shape{1}, 1.0));
}

TEST(Where, AMaskThatIsComputedHasNoDerivative) {
  const auto f = [](const auto& x) {
    return sum(where(less(x, scalar_constant<std::decay_t<decltype(x)>>(1.0)), mul(x, x), x));
  };
  EXPECT_EQ(D(grad(f, D(Shape{2}, {0.5, 3.0}))), D(Shape{2}, {1.0, 1.0}));
  EXPECT_EQ(hessian(f, D(Shape{2}, {0.5, 3.0})), D(Shape{2, 2}, {2.0, 0.0, 0.0, 0.0}));
}

TEST(Where, ABatchIsEveryItemAlone) {
  const D mask(Shape{2, 3}, {1, 0, 1, 0, 0, 1});
  const D a(Shape{2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const D b(Shape{}, 0.0);
  const D y =
      vmap([&](const auto& m, const auto& x) { return where(m, x, b); }, over(mask), over(a));
  EXPECT_EQ(y, where(reshape(mask, Shape{2, 1, 3}), a, b));
}

TEST(Where, AProgramGivesTheSame) {
  const auto f = [](const auto& m, const auto& a, const auto& b) { return where(m, a, b); };
  const D mask(Shape{4}, {1, 0, -1, 0});
  const D a(Shape{2, 4}, 3.0);
  const D b(Shape{2, 1}, {5.0, 7.0});
  const auto program = compile<double>(f, mask.shape(), a.shape(), b.shape());
  Context context(program);
  EXPECT_EQ(program.run(context, mask, a, b)[0], where(mask, a, b));
}

TEST(Where, LongRowsAreTheSameOnEveryNumberOfThreads) {
  const Index n = 50000;
  D mask(Shape{n});
  D a(Shape{n});
  D b(Shape{n});
  for (Index i = 0; i < n; ++i) {
    mask.mutable_data()[i] = static_cast<double>(i % 3);
    a.mutable_data()[i] = static_cast<double>(i);
    b.mutable_data()[i] = -1;
  }
  const int before = threads();
  for (const int count : {1, 3}) {
    set_threads(count);
    const D y = where(mask, a, b);
    for (Index i = 0; i < n; ++i) {
      ASSERT_EQ(y[i], i % 3 == 0 ? -1.0 : static_cast<double>(i));
    }
  }
  set_threads(before);
}

TEST(Where, ShapesThatDoNotMeetAreRefused) {
  try {
    where(D(Shape{2}), D(Shape{3}), D(Shape{3}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::shape_mismatch);
    EXPECT_NE(std::string(error.what()).find("where"), std::string::npos);
  }
}

}  // namespace
}  // namespace fenestra
