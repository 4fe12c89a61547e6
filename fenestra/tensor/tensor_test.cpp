// Tensors are values: sharing is never visible, strided memory is copied faithfully, and the
// rearrangements move every element to the place the layouts say.
#include <fenestra/tensor/tensor.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <memory>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace fenestra {
namespace {

ErrorCode code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

Tensor<int> counting(const Shape& shape) {
  Tensor<int> result(shape);
  std::iota(result.mutable_values().begin(), result.mutable_values().end(), 0);
  return result;
}

TEST(Tensor, IsZeroUnlessToldOtherwise) {
  EXPECT_EQ(Tensor<double>(), Tensor<double>(Shape{}, {0.0}));
  EXPECT_EQ(Tensor<int>(Shape{2, 2}), (Tensor<int>(Shape{2, 2}, {0, 0, 0, 0})));
  EXPECT_EQ(Tensor<int>(Shape{3}, 7), (Tensor<int>(Shape{3}, {7, 7, 7})));
  EXPECT_EQ(Tensor<int>(Shape{2, 0, 3}).size(), 0);
  EXPECT_EQ(Tensor<std::string>(Shape{1}, {"any scalar"})[0], "any scalar");
}

TEST(Tensor, AWriteThroughACopyLeavesTheOriginalAlone) {
  const Tensor<int> original(Shape{3}, {1, 2, 3});
  Tensor<int> copy = original;
  EXPECT_EQ(copy.data(), original.data()) << "a copy is O(1)";
  copy.mutable_data()[0] = 9;
  EXPECT_EQ(original, (Tensor<int>(Shape{3}, {1, 2, 3})));
  EXPECT_EQ(copy, (Tensor<int>(Shape{3}, {9, 2, 3})));
}

TEST(Tensor, AWriteThroughTheOriginalLeavesTheCopyAlone) {
  Tensor<int> original(Shape{2}, {1, 2});
  const Tensor<int> copy = original;
  original.mutable_values()[1] = 5;
  EXPECT_EQ(copy, (Tensor<int>(Shape{2}, {1, 2})));
}

TEST(Tensor, AWriteToATensorOfItsOwnDoesNotMoveIt) {
  Tensor<int> own(Shape{2}, {1, 2});
  const int* before = own.data();
  own.mutable_data()[0] = 4;
  EXPECT_EQ(own.data(), before);
}

TEST(Tensor, AWriteThroughAReshapedTensorLeavesTheOriginalAlone) {
  const Tensor<int> original = counting({2, 3});
  Tensor<int> view = original.reshaped({6});
  EXPECT_EQ(view.data(), original.data());
  view.mutable_data()[5] = -1;
  EXPECT_EQ(original, counting({2, 3}));
}

TEST(Tensor, RefusesWhatDoesNotAddUp) {
  EXPECT_EQ(code_of([] { Tensor<int>(Shape{2}, {1, 2, 3}); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([] { Tensor<int>(Shape{-1}); }), ErrorCode::overflow);
  EXPECT_EQ(code_of([] {
              Tensor<int>(Shape{Index{1} << 40, Index{1} << 40});
            }),
            ErrorCode::overflow);
  EXPECT_EQ(code_of([] { counting({2, 3}).reshaped({4}); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([] { counting({2, 3}).reshaped({-6}); }), ErrorCode::overflow);
}

TEST(Tensor, AtTakesAnIndexForEachAxis) {
  const Tensor<int> tensor = counting(Shape{2, 3, 4});
  EXPECT_EQ(tensor.at(0, 0, 0), 0);
  EXPECT_EQ(tensor.at(1, 2, 3), 23);
  EXPECT_EQ(tensor.at(Index{1}, 0, 2), 14);
  EXPECT_EQ(Tensor<int>(Shape{}, {7}).at(), 7);
  Tensor<int> written = tensor;
  written.mutable_at(1, 0, 2) = -1;
  EXPECT_EQ(written[14], -1);
  EXPECT_EQ(tensor.at(1, 0, 2), 14) << "the tensor it was copied from keeps its elements";
}

TEST(Tensor, AtRefusesOtherAxesAndPlacesThatAreNotThere) {
  Tensor<int> tensor = counting(Shape{2, 3});
  EXPECT_EQ(code_of([&] { tensor.at(1); }), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([&] { tensor.at(1, 1, 0); }), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([&] { tensor.at(2, 0); }), ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] { tensor.at(0, 3); }), ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] { tensor.at(0, -1); }), ErrorCode::invalid_index) << "none from the end";
  EXPECT_EQ(code_of([&] { tensor.mutable_at(0, 3) = 1; }), ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] { Tensor<int>(Shape{0}).at(0); }), ErrorCode::invalid_index);
  try {
    tensor.at(1, 3);
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "tensor: index 3 on axis 1 of the shape (2, 3)\n  fix: 0 to 2");
  }
}

TEST(Tensor, EqualityLooksAtShapeAndElements) {
  EXPECT_NE(counting({2, 3}), counting({3, 2}));
  EXPECT_NE(counting({2}), (Tensor<int>(Shape{2}, {0, 2})));
  EXPECT_EQ(Tensor<int>(Shape{0, 3}), Tensor<int>(Shape{0, 3}));
  EXPECT_NE(Tensor<int>(Shape{0, 3}), Tensor<int>(Shape{3, 0}));
}

TEST(Tensor, MapsToAnotherScalar) {
  const Tensor<double> halves = counting({2, 2}).map([](int v) { return v / 2.0; });
  EXPECT_EQ(halves, (Tensor<double>(Shape{2, 2}, {0.0, 0.5, 1.0, 1.5})));
}

TEST(CopyStrided, ReadsForwardsBackwardsRepeatedAndWithGaps) {
  const std::vector<int> memory = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const auto copy = [&](std::size_t start, const Shape& shape, const std::vector<Index>& strides) {
    return copy_strided(memory.data() + start, shape, strides);
  };
  EXPECT_EQ(copy(0, {3, 4}, {4, 1}), counting({3, 4}));
  EXPECT_EQ(copy(0, {4, 3}, {1, 4}),
            (Tensor<int>(Shape{4, 3}, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11})));
  EXPECT_EQ(copy(11, {3, 4}, {-4, -1}),
            (Tensor<int>(Shape{3, 4}, {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0})));
  EXPECT_EQ(copy(8, {3, 2}, {-4, 3}), (Tensor<int>(Shape{3, 2}, {8, 11, 4, 7, 0, 3})));
  EXPECT_EQ(copy(5, {2, 3}, {0, 0}), Tensor<int>(Shape{2, 3}, 5));
  EXPECT_EQ(copy(7, {}, {}), Tensor<int>(Shape{}, 7));
}

TEST(CopyStrided, TouchesNoMemoryForAnEmptyShape) {
  const std::vector<Index> strides = {100, -100, 7};
  EXPECT_EQ(copy_strided<int>(nullptr, {2, 0, 3}, strides), Tensor<int>(Shape{2, 0, 3}));
}

TEST(CopyStrided, NeedsOneStridePerAxis) {
  const int memory[] = {1, 2};
  const std::vector<Index> strides = {1, 1};
  EXPECT_EQ(code_of([&] { copy_strided(memory, {2}, strides); }), ErrorCode::rank_mismatch);
}

TEST(Tensor, BorrowedMemoryIsReadAndNeverWritten) {
  for (const bool writable : {false, true}) {
    const std::shared_ptr<int[]> memory(new int[3]{1, 2, 3});
    Tensor<int> x = Tensor<int>::borrowed(Shape{3}, memory, writable);
    EXPECT_EQ(x.data(), memory.get());
    x.mutable_data()[0] = 7;
    EXPECT_EQ(memory[0], 1);
    EXPECT_EQ(x[0], 7);
  }
}

TEST(Tensor, ALentStorageIsSharedWithTheBorrowerAndWithNobodyElse) {
  Tensor<int> x = counting({3});
  const Tensor<int> copy = x;
  const std::shared_ptr<int[]> lent = x.lend();
  EXPECT_EQ(x.lend(), lent);
  lent[0] = 7;
  EXPECT_EQ(x[0], 7);
  EXPECT_EQ(copy, counting({3}));
  x.mutable_data()[0] = 8;
  EXPECT_EQ(lent[0], 7);
}

TEST(Tensor, ReadOnlyMemoryIsNotLent) {
  const std::shared_ptr<int[]> memory(new int[1]{1});
  Tensor<int> x = Tensor<int>::borrowed(Shape{1}, memory);
  EXPECT_NE(x.lend(), memory);
  Tensor<int> y = Tensor<int>::borrowed(Shape{1}, memory, true);
  EXPECT_EQ(y.lend(), memory);
}

TEST(Transform, PermutedMovesEveryElement) {
  const Tensor<int> t = counting({2, 3, 4});
  const std::vector<int> order = {2, 0, 1};
  const Tensor<int> p = permuted(t, order);
  ASSERT_EQ(p.shape(), (Shape{4, 2, 3}));
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 3; ++j) {
      for (Index k = 0; k < 4; ++k) {
        EXPECT_EQ(p[(k * 2 + i) * 3 + j], t[(i * 3 + j) * 4 + k]);
      }
    }
  }
}

TEST(Transform, PermutedRefusesWhatIsNotAPermutation) {
  const Tensor<int> t = counting({2, 3});
  for (const std::vector<int>& order : {std::vector<int>{0},
                                        std::vector<int>{0, 0},
                                        std::vector<int>{0, 2},
                                        std::vector<int>{-1, 0}}) {
    EXPECT_EQ(code_of([&] { permuted(t, order); }), ErrorCode::rank_mismatch);
  }
}

TEST(Transform, SlicedTakesTheNamedEntries) {
  const Tensor<int> t = counting({2, 3, 2});
  EXPECT_EQ(sliced(t, 1, 1, 2), (Tensor<int>(Shape{2, 2, 2}, {2, 3, 4, 5, 8, 9, 10, 11})));
  EXPECT_EQ(sliced(t, 0, 1, 1), (Tensor<int>(Shape{1, 3, 2}, {6, 7, 8, 9, 10, 11})));
  EXPECT_EQ(sliced(t, 2, 2, 0), Tensor<int>(Shape{2, 3, 0}));
}

TEST(Transform, SlicedRefusesWhatIsNotThere) {
  const Tensor<int> t = counting({2, 3});
  struct Bad {
    int axis;
    Index begin, count;
  };
  for (const Bad& bad : {Bad{2, 0, 1},
                         Bad{-1, 0, 1},
                         Bad{1, -1, 1},
                         Bad{1, 0, 4},
                         Bad{1, 3, 1},
                         Bad{1, 0, -1},
                         Bad{1, 1, INT64_MAX},
                         Bad{1, INT64_MAX, INT64_MAX}}) {
    EXPECT_EQ(code_of([&] { sliced(t, bad.axis, bad.begin, bad.count); }),
              ErrorCode::invalid_index);
  }
}

TEST(Transform, LayoutsOfActivationsAgreeWithTheMap) {
  const Tensor<int> first = counting({2, 3, 2, 2});
  const Tensor<int> last =
      activation_to_layout(first, true, Layout::channels_first, Layout::channels_last);
  ASSERT_EQ(last.shape(), (Shape{2, 2, 2, 3}));
  const ActivationMap from{2, 3, 4, Layout::channels_first};
  const ActivationMap to{2, 3, 4, Layout::channels_last};
  for (Index n = 0; n < 2; ++n) {
    for (Index c = 0; c < 3; ++c) {
      for (Index cell = 0; cell < 4; ++cell) {
        EXPECT_EQ(last[to.at(n, c, cell)], first[from.at(n, c, cell)]);
      }
    }
  }
  EXPECT_EQ(activation_to_layout(last, true, Layout::channels_last, Layout::channels_first), first);
}

TEST(Transform, LayoutsOfSingleSamplesAndOfEveryRankReturn) {
  Shape shape{2, 3};
  for (int rank = 1; rank <= kMaxSpatialRank; ++rank) {
    shape.push_back(rank % 2 + 1);
    for (const bool batched : {true, false}) {
      const Tensor<int> x = counting(shape);
      const auto there =
          activation_to_layout(x, batched, Layout::channels_first, Layout::channels_last);
      EXPECT_EQ(there.shape()[there.rank() - 1], batched ? 3 : 2);
      EXPECT_EQ(activation_to_layout(there, batched, Layout::channels_last, Layout::channels_first),
                x);
    }
  }
}

TEST(Transform, LayoutsOfWeightsAgreeWithTheMap) {
  const Tensor<int> first = counting({4, 3, 2, 2});
  const Tensor<int> last = weight_to_layout(first, Layout::channels_first, Layout::channels_last);
  ASSERT_EQ(last.shape(), (Shape{2, 2, 3, 4}));
  const WeightMap from{4, 3, 4, Layout::channels_first};
  const WeightMap to{4, 3, 4, Layout::channels_last};
  for (Index co = 0; co < 4; ++co) {
    for (Index ci = 0; ci < 3; ++ci) {
      for (Index tap = 0; tap < 4; ++tap) {
        EXPECT_EQ(last[to.at(co, ci, tap)], first[from.at(co, ci, tap)]);
      }
    }
  }
  EXPECT_EQ(weight_to_layout(last, Layout::channels_last, Layout::channels_first), first);
}

// Buffers of 5 and 7 MiB are no whole number of large pages. Only the address sanitizer refuses to
// give them: elsewhere this holds whatever is asked for.
TEST(Tensor, LargeBuffersOfAllSizesCanBeHad) {
  for (Index mebibytes = 3; mebibytes <= 17; ++mebibytes) {
    Tensor<float> x(Shape{mebibytes << 18});
    x.mutable_data()[0] = 1;
    x.mutable_data()[x.size() - 1] = 2;
    EXPECT_EQ(x.data()[0] + x.data()[x.size() - 1], 3) << mebibytes;
  }
}

}  // namespace
}  // namespace fenestra
