// The loader: batches, order, cursor, the thread.
#include <fenestra/nn/data/generated.hpp>
#include <fenestra/nn/data/loader.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
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

/// Samples (1, 3, 4) of distinct values, labels i % 5.
DatasetPtr counting(Index count) {
  Tensor<float> x(Shape{count, 1, 3, 4});
  Tensor<Index> labels(Shape{count});
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_data()[i] = static_cast<float>(i);
  }
  for (Index i = 0; i < count; ++i) {
    labels.mutable_data()[i] = i % 5;
  }
  return array_dataset(x, labels, {"a", "b", "c", "d", "e"});
}

template <class T>
bool same(const std::optional<Batch<T>>& a, const std::optional<Batch<T>>& b) {
  if (!a || !b) {
    return !a && !b;
  }
  return a->inputs == b->inputs && a->labels == b->labels && a->targets == b->targets &&
         a->which == b->which;
}

/// The items of a loader, ends of epochs among them, and the cursor before each.
struct Stream {
  std::vector<std::optional<Batch<float>>> items;
  std::vector<Cursor> before;
};
Stream stream_of(Loader<float>& loader, int items) {
  Stream stream;
  for (int i = 0; i < items; ++i) {
    stream.before.push_back(loader.cursor());
    stream.items.push_back(loader.next());
  }
  return stream;
}

const Augmentation kAll{.padding = 1,
                        .flip = 0.5,
                        .flip_vertical = 0.5,
                        .shift = 1,
                        .rotate = 20,
                        .cut_out = 1,
                        .noise = 0.1};

TEST(Loader, GivesEverySampleOncePerEpochWithItsLabel) {
  Loader<float> loader(counting(23), {.batch = 5, .seed = 3});
  EXPECT_EQ(loader.batches_per_epoch(), 5);
  std::vector<std::vector<Index>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<Index> order;
    int batches = 0;
    while (const auto batch = loader.next()) {
      ++batches;
      ASSERT_EQ(batch->inputs.shape(), (Shape{batch->size(), 1, 3, 4}));
      ASSERT_EQ(batch->labels.shape(), (Shape{batch->size()}));
      ASSERT_EQ(batch->targets.shape(), (Shape{0}));
      for (Index i = 0; i < batch->size(); ++i) {
        const Index which = batch->which[static_cast<std::size_t>(i)];
        order.push_back(which);
        ASSERT_EQ(batch->labels[i], which % 5);
        for (Index cell = 0; cell < 12; ++cell) {
          ASSERT_EQ(batch->inputs[12 * i + cell], static_cast<float>(12 * which + cell));
        }
      }
    }
    EXPECT_EQ(batches, 5);
    EXPECT_EQ(std::set<Index>(order.begin(), order.end()).size(), 23U);
    EXPECT_EQ(order.size(), 23U);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  EXPECT_EQ(loader.cursor(), (Cursor{3, 0}));
}

TEST(Loader, KeepsTheOrderWhereNotToShuffleAndDropsTheLastWhereAskedTo) {
  Loader<float> loader(counting(7), {.batch = 3, .shuffle = false, .drop_last = true});
  EXPECT_EQ(loader.batches_per_epoch(), 2);
  EXPECT_EQ(loader.next()->which, (std::vector<Index>{0, 1, 2}));
  EXPECT_EQ(loader.next()->which, (std::vector<Index>{3, 4, 5}));
  EXPECT_EQ(loader.cursor(), (Cursor{0, 6}));
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.cursor(), (Cursor{1, 0}));
  EXPECT_EQ(loader.next()->which, (std::vector<Index>{0, 1, 2}));
}

TEST(Loader, TheOrderDependsOnTheSeed) {
  Loader<float> a(counting(40), {.batch = 40, .seed = 1});
  Loader<float> b(counting(40), {.batch = 40, .seed = 2});
  EXPECT_NE(a.next()->which, b.next()->which);
}

TEST(Loader, PrefetchingChangesNothing) {
  for (const bool drop_last : {false, true}) {
    LoaderOptions options{.batch = 4,
                          .seed = 9,
                          .drop_last = drop_last,
                          .prefetch = 0,
                          .augmentation = kAll,
                          .preprocessing = {.mean = {3}, .scale = {7}}};
    Loader<float> plain(counting(18), options);
    const Stream expected = stream_of(plain, 15);
    for (const Index prefetch : {1, 2, 7}) {
      options.prefetch = prefetch;
      Loader<float> ahead(counting(18), options);
      const Stream found = stream_of(ahead, 15);
      for (std::size_t i = 0; i < expected.items.size(); ++i) {
        ASSERT_EQ(expected.before[i], found.before[i]);
        ASSERT_TRUE(same(expected.items[i], found.items[i])) << "item " << i;
      }
    }
  }
}

TEST(Loader, GoesOnFromAnyCursorWithTheSameBits) {
  const LoaderOptions options{.batch = 4, .seed = 5, .augmentation = kAll};
  Loader<float> unbroken(counting(18), options);
  const Stream expected = stream_of(unbroken, 14);
  Loader<float> seeking(counting(18), options);
  for (std::size_t at = 0; at < expected.items.size(); ++at) {
    Loader<float> fresh(counting(18), options);
    fresh.seek(expected.before[at]);
    // One loader is sought back and forth, with its thread somewhere else each time.
    const std::size_t elsewhere = (at * 5 + 3) % expected.items.size();
    seeking.seek(expected.before[elsewhere]);
    ASSERT_TRUE(same(seeking.next(), expected.items[elsewhere]));
    seeking.seek(expected.before[at]);
    for (std::size_t i = at; i < expected.items.size(); ++i) {
      ASSERT_EQ(fresh.cursor(), expected.before[i]);
      ASSERT_TRUE(same(fresh.next(), expected.items[i])) << "from " << at << ", item " << i;
      ASSERT_TRUE(same(seeking.next(), expected.items[i])) << "from " << at << ", item " << i;
    }
  }
}

TEST(Loader, AugmentationDependsOnTheSampleAndTheEpochNotOnTheBatch) {
  LoaderOptions options{.batch = 1, .seed = 5, .augmentation = kAll};
  Loader<float> single(counting(9), options);
  options.batch = 4;
  options.shuffle = false;
  Loader<float> four(counting(9), options);
  std::vector<std::vector<float>> epochs[2];
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::vector<float>> of_single(9), of_four(9);
    const auto collect = [](Loader<float>& loader, std::vector<std::vector<float>>& into) {
      while (const auto batch = loader.next()) {
        for (Index i = 0; i < batch->size(); ++i) {
          const float* begin = batch->inputs.data() + 12 * i;
          into[static_cast<std::size_t>(batch->which[static_cast<std::size_t>(i)])].assign(
              begin, begin + 12);
        }
      }
    };
    collect(single, of_single);
    collect(four, of_four);
    EXPECT_EQ(of_single, of_four);
    epochs[epoch] = of_single;
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST(Loader, MakesMasksTargetsAndDoubles) {
  const auto shapes = shapes_dataset({.count = 3, .size = 16});
  Loader<double> masks(shapes, {.batch = 2, .shuffle = false, .preprocessing = {.size = {8, 8}}});
  EXPECT_EQ(masks.sample_shape(), (Shape{1, 8, 8}));
  const auto batch = masks.next();
  EXPECT_EQ(batch->inputs.shape(), (Shape{2, 1, 8, 8}));
  EXPECT_EQ(batch->labels.shape(), (Shape{2, 8, 8}));
  EXPECT_EQ(batch->labels.at(1, 2, 3), shapes->get(1).mask.at(5, 7));
  EXPECT_EQ(batch->targets.shape(), (Shape{0}));

  const auto itself = as_reconstruction(counting(4));
  Loader<float> targets(itself,
                        {.batch = 2,
                         .shuffle = false,
                         .augmentation = {.crop = {3, 3}, .noise = 1},
                         .preprocessing = {.size = {6, 6}, .mean = {1}, .scale = {2}}});
  const auto pair = targets.next();
  EXPECT_EQ(pair->inputs.shape(), (Shape{2, 1, 6, 6}));
  EXPECT_EQ(pair->targets.shape(), (Shape{2, 1, 6, 6}));
  EXPECT_EQ(pair->labels.shape(), (Shape{0}));
  Loader<float> plain(itself, {.batch = 4, .shuffle = false});
  const auto all = plain.next();
  EXPECT_EQ(all->inputs, all->targets);

  const auto numbers =
      target_dataset(Tensor<float>(Shape{3, 2}), Tensor<float>(Shape{3}, {1, 2, 3}));
  Loader<double> regression(numbers, {.batch = 3, .shuffle = false});
  EXPECT_EQ(regression.next()->targets, Tensor<double>(Shape{3}, {1, 2, 3}));
}

/// Counts what is read, is slow, and has a broken sample.
class Watched final : public Dataset {
 public:
  Watched(Index count, Index broken, std::chrono::milliseconds pause = {})
      : Dataset({.name = "watched", .sample_shape = {1, 1}, .classes = {"only"}}),
        count_(count),
        broken_(broken),
        pause_(pause) {}
  Index size() const override { return count_; }
  Index reads() const { return reads_; }

 protected:
  Sample read(Index i) const override {
    ++reads_;
    std::this_thread::sleep_for(pause_);
    if (i == broken_) {
      throw Error(ErrorCode::bad_file, "no such picture");
    }
    return {.image = Tensor<float>(Shape{1, 1}, static_cast<float>(i))};
  }

 private:
  Index count_, broken_;
  std::chrono::milliseconds pause_;
  mutable std::atomic<Index> reads_ = 0;
};

TEST(Loader, CarriesErrorsToTheCallerWhenTheirBatchIsDue) {
  for (const Index prefetch : {0, 3}) {
    Loader<float> loader(std::make_shared<const Watched>(10, 7),
                         {.batch = 2, .shuffle = false, .prefetch = prefetch});
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(loader.next());
    }
    for (int again = 0; again < 2; ++again) {
      try {
        loader.next();
        FAIL() << "sample 7 is broken";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file);
        EXPECT_EQ(std::string(error.what()), "watched: sample 7: no such picture");
      }
      EXPECT_EQ(loader.cursor(), (Cursor{0, 6}));
    }
    loader.seek({0, 8});
    EXPECT_EQ(loader.next()->which, (std::vector<Index>{8, 9}));
    EXPECT_FALSE(loader.next());
  }
}

TEST(Loader, MakesNoMoreAheadThanAskedForAndRestsBetweenEpochs) {
  const auto data = std::make_shared<const Watched>(100, -1);
  Loader<float> loader(data, {.batch = 5, .prefetch = 2});
  EXPECT_EQ(data->reads(), 0);
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(data->reads(), 15);
  while (loader.next()) {
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(data->reads(), 100);
}

TEST(Loader, MakesAShareOfEachBatch) {
  for (const Index prefetch : {0, 3}) {
    const auto data = std::make_shared<const Watched>(10, 7);
    Loader<float> loader(data, {.batch = 5, .shuffle = false, .prefetch = prefetch});
    // The first two of five; the broken one is the third of its batch.
    loader.set_share(
        [](const Cursor&, Index place, Index samples) { return place < 2 && samples == 5; });
    for (const float first : {0.0f, 5.0f}) {
      const auto batch = loader.next();
      ASSERT_EQ(batch->inputs.shape(), (Shape{5, 1, 1}));
      EXPECT_EQ(batch->inputs[0], first);
      EXPECT_EQ(batch->inputs[1], first + 1);
      EXPECT_EQ(batch->size(), 5);
    }
    EXPECT_FALSE(loader.next());
    EXPECT_EQ(data->reads(), 4);
    // By batches, and all of them again, in the middle of an epoch.
    loader.set_share([](const Cursor& at, Index, Index) { return at.next == 0; });
    loader.next();
    EXPECT_EQ(data->reads(), 9);
    loader.set_share({});
    EXPECT_THROW(loader.next(), Error);
  }
}

TEST(Loader, IsDestroyedAndMovedAtAnyMoment) {
  for (int taken = 0; taken < 20; ++taken) {
    const auto data = std::make_shared<const Watched>(
        30, taken % 3 == 0 ? 14 : -1, std::chrono::milliseconds(taken % 2));
    Loader<float> loader(data, {.batch = 3, .shuffle = false, .prefetch = taken % 4});
    for (int i = 0; i < taken % 4; ++i) {
      loader.next();
    }
    if (taken % 5 == 0) {
      Loader<float> moved = std::move(loader);
      EXPECT_EQ(moved.next()->size(), 3);
    } else if (taken % 5 == 1) {
      loader = Loader<float>(data, {.batch = 4, .shuffle = false});
      EXPECT_EQ(loader.next()->size(), 4);
    }
  }
}

TEST(Loader, RefusesWhatCannotBe) {
  const auto data = counting(10);
  const auto none = array_dataset(Tensor<float>(Shape{0, 1, 2}), Tensor<Index>(Shape{0}));
  const auto made = [](const DatasetPtr& from, const LoaderOptions& options) {
    return code_of([&] { Loader<float> loader(from, options); });
  };
  EXPECT_EQ(made(none, {}), ErrorCode::invalid_extent);
  EXPECT_EQ(made(data, {.batch = 0}), ErrorCode::invalid_extent);
  EXPECT_EQ(made(data, {.batch = -3}), ErrorCode::invalid_extent);
  EXPECT_EQ(made(data, {.batch = 11, .drop_last = true}), ErrorCode::invalid_extent);
  EXPECT_EQ(made(data, {.batch = 11}), ErrorCode::none);
  EXPECT_EQ(made(data, {.prefetch = -1}), ErrorCode::invalid_option);
  EXPECT_EQ(made(data, {.augmentation = {.flip = 2}}), ErrorCode::invalid_option);
  EXPECT_EQ(made(data, {.preprocessing = {.mean = {1, 2}}}), ErrorCode::channel_mismatch);
  EXPECT_EQ(made(data, {.preprocessing = {.size = {4}}}), ErrorCode::rank_mismatch);
  Loader<float> loader(data);
  for (const Cursor& cursor : {Cursor{-1, 0}, Cursor{0, -1}, Cursor{0, 11}}) {
    EXPECT_EQ(code_of([&] { loader.seek(cursor); }), ErrorCode::invalid_index);
  }
  loader.seek({4, 10});
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.cursor(), (Cursor{5, 0}));
}

}  // namespace
}  // namespace fenestra::nn
