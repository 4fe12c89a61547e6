// Choosing by integers beyond its laws: batches, programs, repeated choices, refusals.
#include <fenestra/fenestra.hpp>

#include <gtest/gtest.h>

#include <string>

namespace fenestra {
namespace {

using D = Tensor<double>;
using I = Tensor<Index>;

const D kX(Shape{2, 3}, {1, 2, 3, 4, 5, 6});

template <class Call>
Fault fault_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    return error.fault();
  }
  return {};
}

TEST(Gather, AnElementThatIsChosenTwiceReceivesBothCotangents) {
  const I rows(Shape{3}, {1, 0, 1});
  const D weights(Shape{3, 3}, {1, 1, 1, 2, 2, 2, 4, 4, 4});
  const auto f = [&](const auto& x) { return sum(mul(take(x, rows, 0), weights)); };
  EXPECT_EQ(D(grad(f, kX)), D(Shape{2, 3}, {2, 2, 2, 5, 5, 5}));
}

TEST(Gather, IndicesOfAnyRankStandWhereTheAxisWas) {
  const I columns(Shape{2, 2}, {0, 2, -1, -3});
  const D y = take(kX, columns, 1);
  EXPECT_EQ(y, D(Shape{2, 2, 2}, {1, 3, 3, 1, 4, 6, 6, 4}));
  EXPECT_EQ(take(kX, I(Shape{}, Index{1}), 0), D(Shape{3}, {4, 5, 6}));
}

TEST(Gather, ABatchChoosesForEveryItemWhetherItsIndicesAreSharedOrNot) {
  const D xs(Shape{2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const I shared(Shape{1, 2}, {1, 0});
  const D by_shared = vmap([&](const auto& x) { return gather(x, shared, 0); }, over(xs));
  EXPECT_EQ(by_shared, D(Shape{2, 1, 2}, {3, 2, 7, 6}));
  const I each(Shape{2, 1, 2}, {1, 0, 0, 0});
  const D by_item =
      vmap([](const auto& x, const auto& i) { return gather(x, i, 0); }, over(xs), over(each));
  EXPECT_EQ(by_item, D(Shape{2, 1, 2}, {3, 2, 5, 6}));
  const I rows(Shape{2, 1}, {1, 0});
  const D by_rows =
      vmap([](const auto& x, const auto& i) { return take(x, i, 0); }, over(xs), over(rows));
  EXPECT_EQ(by_rows, D(Shape{2, 1, 2}, {3, 4, 5, 6}));
  const D of_one = vmap(
      [](const auto& x, const auto& i) { return take(x, i, 1); }, Value<double>(kX), over(rows));
  EXPECT_EQ(of_one, D(Shape{2, 2, 1}, {2, 5, 1, 4}));
}

TEST(Gather, AProgramChecksItsIndicesWhenTheyAreGiven) {
  const auto f = [](const auto& x, const auto& indices) { return gather(x, indices, 1); };
  const auto program =
      compile<double>(f, kX.shape(), DataShape{Shape{2, 1}}, CompileOptions{.vjp = true});
  Context context(program);
  EXPECT_EQ(program.run(context, kX, I(Shape{2, 1}, {-1, 0}))[0], D(Shape{2, 1}, {3, 4}));
  EXPECT_EQ(fault_of([&] {
              program.run(context, kX, I(Shape{2, 1}, {3, 0}));
            }).code,
            ErrorCode::invalid_index);
}

TEST(Gather, WrongIndicesAreRefusedWithTheirPlace) {
  const Fault outside = fault_of([] { gather(kX, I(Shape{2, 1}, {0, 3}), 1); });
  EXPECT_EQ(outside.code, ErrorCode::invalid_index);
  EXPECT_EQ(outside.got, 3);
  EXPECT_EQ(outside.needed, 3);
  EXPECT_EQ(fault_of([] { gather(kX, I(Shape{2}, {0, 1}), 1); }).code, ErrorCode::shape_mismatch);
  EXPECT_EQ(fault_of([] { take(kX, I(Shape{1}, {-4}), 1); }).code, ErrorCode::invalid_index);
  EXPECT_EQ(fault_of([] { take(kX, I(Shape{1}, {0}), 2); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([] { take(D(Shape{0}), I(Shape{1}, {0}), 0); }).code,
            ErrorCode::invalid_index);
}

TEST(Argmax, TheFirstOfEqualsAndTheFirstNanWin) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const D x(Shape{2, 3}, {1, 3, 3, nan, 7, nan});
  EXPECT_EQ(argmax(x, {.axis = 1}).indices(), I(Shape{2}, {1, 0}));
  EXPECT_EQ(argmax(x).indices(), I(Shape{}, Index{3}));
  EXPECT_EQ(argmin(x, {.axis = 0, .keep = true}).indices(), I(Shape{1, 3}, {1, 0, 1}));
  EXPECT_EQ(fault_of([] { argmax(D(Shape{2, 0}), {.axis = 1}); }).code, ErrorCode::invalid_extent);
  EXPECT_EQ(fault_of([] { argmax(kX, {.axis = 2}); }).code, ErrorCode::rank_mismatch);
}

TEST(Argmax, ChoosesInBatchesOnTapesAndInPrograms) {
  const D xs(Shape{2, 2, 2}, {1, 2, 3, 0, 5, 9, 7, 8});
  const auto best = [](const auto& x) {
    return gather(x, argmax(x, {.axis = 0, .keep = true}), 0);
  };
  EXPECT_EQ(D(vmap(best, over(xs))), D(Shape{2, 1, 2}, {3, 2, 7, 9}));
  const auto twice = [&](const auto& x) { return vmap(best, over(x)); };
  EXPECT_EQ(fault_of([&] {
              vmap(twice, over(D(Shape{1, 2, 2, 2})));
            }).code,
            ErrorCode::unsupported);
  const D x(Shape{2, 2}, {1, 2, 3, 0});
  EXPECT_EQ(D(grad([&](const auto& v) { return sum(best(v)); }, x)), D(Shape{2, 2}, {0, 1, 1, 0}));
  const auto program = compile<double>(best, x.shape());
  Context context(program);
  EXPECT_EQ(program.run(context, x)[0], D(Shape{1, 2}, {3, 2}));
}

TEST(Max, OfABatchHasGradientsForEveryItem) {
  const D xs(Shape{2, 3}, {1, 5, 2, 7, 3, 7});
  const auto bars = per_sample_grad(
      [](const auto& w, const auto& x) { return max_over(mul(w, x)); }, D(Shape{}, 2.0), over(xs));
  EXPECT_EQ(D(bars), D(Shape{2}, {5, 7}));
}

}  // namespace
}  // namespace fenestra
