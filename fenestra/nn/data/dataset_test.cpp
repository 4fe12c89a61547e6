// Datasets in memory and datasets made of others.
#include <fenestra/nn/data/dataset.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
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

/// `count` samples (1, 2), each with its index as both values, labels i % 3.
DatasetPtr counting(Index count) {
  Tensor<float> x(Shape{count, 1, 2});
  Tensor<Index> labels(Shape{count});
  for (Index i = 0; i < count; ++i) {
    x.mutable_data()[2 * i] = x.mutable_data()[2 * i + 1] = static_cast<float>(i);
    labels.mutable_data()[i] = i % 3;
  }
  return array_dataset(x, labels, {"a", "b", "c"});
}

TEST(Dataset, ArraysAreSharedNotCopied) {
  const Tensor<float> x(Shape{3, 1, 2, 2}, 1.5F);
  const auto data = array_dataset(x, Tensor<Index>(Shape{3}, {0, 2, 1}));
  const Sample sample = data->get(1);
  EXPECT_EQ(sample.image.data(), x.data() + 4);
  EXPECT_EQ(sample.image.shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(sample.label, 2);
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->task(), Task::classification);
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"0", "1", "2"}));
}

TEST(Dataset, SamplesOutliveTheDatasetAndAreNobodysToChange) {
  auto data = array_dataset(Tensor<float>(Shape{2, 1, 2}, {1, 2, 3, 4}), Tensor<Index>(Shape{2}));
  Sample sample = data->get(1);
  Sample changed = data->get(1);
  changed.image.mutable_data()[0] = 9;
  EXPECT_EQ(data->get(1).image[0], 3);
  data.reset();
  EXPECT_EQ(sample.image[1], 4);
}

TEST(Dataset, LevelsBecomeNumbersWhenAskedFor) {
  const Tensor<std::uint8_t> x(Shape{2, 1, 2}, {0, 255, 51, 128});
  const auto data = array_dataset(x, Tensor<Index>(Shape{2}, {1, 0}), {"a", "b"});
  EXPECT_EQ(data->sample_shape(), (Shape{1, 2}));
  EXPECT_EQ(data->get(0).image, Tensor<float>(Shape{1, 2}, {0, 1}));
  EXPECT_EQ(data->get(1).image, Tensor<float>(Shape{1, 2}, {51.0F / 255, 128.0F / 255}));
  EXPECT_EQ(data->get(0).label, 1);
  EXPECT_EQ(code_of([&] {
              array_dataset(x, Tensor<Index>(Shape{2}, {1, 2}), {"a", "b"});
            }),
            ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] { array_dataset(x, Tensor<Index>(Shape{3})); }), ErrorCode::shape_mismatch);
}

TEST(Dataset, MasksAndTargets) {
  const Tensor<float> x(Shape{2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto masks =
      mask_dataset(x, Tensor<Index>(Shape{2, 2, 2}, {0, 1, 0, 1, 1, 1, 0, 2}), {"no", "yes", "?"});
  EXPECT_EQ(masks->task(), Task::segmentation);
  EXPECT_EQ(masks->get(1).mask, Tensor<Index>(Shape{2, 2}, {1, 1, 0, 2}));
  const auto targets = target_dataset(x, Tensor<float>(Shape{2}, {10, 20}));
  EXPECT_EQ(targets->task(), Task::reconstruction);
  EXPECT_EQ(targets->get(1).target, Tensor<float>(Shape{}, {20}));
  const auto itself = as_reconstruction(masks);
  EXPECT_EQ(itself->task(), Task::reconstruction);
  EXPECT_EQ(itself->get(1).target, masks->get(1).image);
  EXPECT_EQ(itself->info().target_shape, itself->sample_shape());
}

TEST(Dataset, SubsetsAnswerForTheChosenSamples) {
  const auto some = subset(counting(10), {7, 2, 2});
  EXPECT_EQ(some->size(), 3);
  EXPECT_EQ(some->get(0).image[0], 7);
  EXPECT_EQ(some->get(2).label, 2);
  EXPECT_EQ(some->sample_name(0), "sample 7");
  EXPECT_EQ(code_of([&] { some->get(3); }), ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] { subset(counting(3), {3}); }), ErrorCode::invalid_index);
}

TEST(Dataset, SplitsIntoTwoPartsByTheSeedAlone) {
  const auto data = counting(50);
  const auto ids = [](const DatasetPtr& part) {
    std::vector<Index> all;
    for (Index i = 0; i < part->size(); ++i) {
      all.push_back(static_cast<Index>(part->get(i).image[0]));
    }
    return all;
  };
  const auto parts = split(data, 0.2, 1);
  const auto train = ids(parts.train), test = ids(parts.test);
  EXPECT_EQ(train.size(), 40U);
  EXPECT_EQ(test.size(), 10U);
  std::set<Index> all(train.begin(), train.end());
  all.insert(test.begin(), test.end());
  EXPECT_EQ(all.size(), 50U);
  EXPECT_TRUE(std::is_sorted(train.begin(), train.end()));
  EXPECT_EQ(test, ids(split(data, 0.2, 1).test));
  EXPECT_NE(test, ids(split(data, 0.2, 2).test));
  EXPECT_EQ(split(counting(2), 0.01, 0).test->size(), 1);
  EXPECT_EQ(split(counting(2), 0.99, 0).train->size(), 1);
  EXPECT_EQ(code_of([&] { split(counting(1), 0.5, 0); }), ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([&] { split(data, 0, 0); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([&] { split(data, 1, 0); }), ErrorCode::invalid_option);
}

TEST(Dataset, RefusesArraysThatDoNotFit) {
  const Tensor<float> x(Shape{3, 1, 2, 2});
  EXPECT_EQ(code_of([&] { array_dataset(x, Tensor<Index>(Shape{4})); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([&] {
              array_dataset(x, Tensor<Index>(Shape{3, 1}));
            }),
            ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([&] { array_dataset(Tensor<float>(Shape{3}), Tensor<Index>(Shape{3})); }),
            ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([&] {
              array_dataset(x, Tensor<Index>(Shape{3}, {0, -1, 0}));
            }),
            ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] {
              array_dataset(x, Tensor<Index>(Shape{3}, {0, 2, 0}), {"a", "b"});
            }),
            ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] {
              array_dataset(x, Tensor<Index>(Shape{3}, {0, Index{1} << 60, 0}));
            }),
            ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] {
              mask_dataset(x, Tensor<Index>(Shape{3, 2, 3}));
            }),
            ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([&] {
              target_dataset(x, Tensor<float>(Shape{2, 5}));
            }),
            ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([&] { counting(3)->get(-1); }), ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] { counting(3)->get(3); }), ErrorCode::invalid_index);
}

TEST(Dataset, AnEmptyOneHasNoSamples) {
  const auto none = array_dataset(Tensor<float>(Shape{0, 1, 2}), Tensor<Index>(Shape{0}));
  EXPECT_EQ(none->size(), 0);
  EXPECT_EQ(none->class_count(), 0);
  EXPECT_EQ(code_of([&] { none->get(0); }), ErrorCode::invalid_index);
}

/// Says one thing and gives another.
class Liar final : public Dataset {
 public:
  explicit Liar(Task task)
      : Dataset({.name = "liar",
                 .task = task,
                 .sample_shape = {1, 2},
                 .classes = {"a"},
                 .target_shape = {2}}) {}
  Index size() const override { return 2; }

 protected:
  Sample read(Index i) const override {
    return {.image = Tensor<float>(i == 0 ? Shape{1, 3} : Shape{1, 2}), .label = 1};
  }
};

TEST(Dataset, SamplesThatAreNotWhatWasPromisedAreNamed) {
  EXPECT_EQ(code_of([] { Liar(Task::classification).get(0); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([] { Liar(Task::classification).get(1); }), ErrorCode::invalid_index);
  EXPECT_EQ(code_of([] { Liar(Task::segmentation).get(1); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([] { Liar(Task::reconstruction).get(1); }), ErrorCode::shape_mismatch);
  try {
    Liar(Task::classification).get(0);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "liar: sample 0: image = (1, 3), the dataset's samples have (1, 2)");
  }
}

}  // namespace
}  // namespace fenestra::nn
