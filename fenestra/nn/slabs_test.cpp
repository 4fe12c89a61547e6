// Slabs: ranks that share a picture compute what one computes, to the last bit, and every cell of
// every layer once.
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/slabs.hpp>
#include <fenestra/spec/random.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <mutex>

namespace fenestra::nn {
namespace {

using ranks::CommunicatorPtr;

template <class T>
Tensor<T> noise(const Shape& shape, std::uint64_t seed) {
  Tensor<T> x(shape);
  Random random(seed);
  for (T& value : x.mutable_values()) {
    value = static_cast<T>(random.real());
  }
  return x;
}

template <class T>
struct Found {
  Tensor<T> y;
  std::vector<SlabReport> reports;
};

/// The output that ranks put together; every cell is written by one of them.
template <class T>
Found<T> run_on(int ranks, const Layer<T>& model, const Tensor<T>& x, Halos halos) {
  const TracedNetwork network = trace_network<T>(model, x.shape());
  Found<T> found;
  found.reports.resize(static_cast<std::size_t>(ranks));
  Index cells = 0;
  std::mutex mutex;
  ranks::run_ranks(ranks, [&](const CommunicatorPtr& communicator) {
    SlabNetwork<T> slabs(network, communicator, halos);
    const SlabReport report =
        slabs.run(tensor_source(x), {.begin = {}, .write = [&](const Box& box, const T* values) {
                                       const std::lock_guard lock(mutex);
                                       if (found.y.shape() != slabs.output()) {
                                         found.y = Tensor<T>(slabs.output());
                                       }
                                       tensor_sink(found.y).write(box, values);
                                       cells += *box.shape().elements();
                                     }});
    const std::lock_guard lock(mutex);
    found.reports[static_cast<std::size_t>(communicator->rank())] = report;
  });
  EXPECT_EQ(cells, found.y.size());
  return found;
}

template <class T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

TEST(Slabs, AUNetHasTheBitsOfTheWholeOnAnyNumberOfRanks) {
  Layer<float> net = make_model<float>("unet", {.classes = 2, .channels = 1, .width = 0.5});
  initialise(net, Key(1));
  const Tensor<float> x = noise<float>(Shape{1, 1, 72, 40}, 2);
  const Tensor<float> whole = infer(net, x);
  for (const int ranks : {1, 2, 3, 5, 9}) {
    for (const Halos halos : {Halos::exchanged, Halos::recomputed}) {
      const Found<float> found = run_on(ranks, net, x, halos);
      EXPECT_TRUE(same_bits(found.y, whole)) << ranks;
      double read = 0;
      std::size_t sent = 0;
      for (const SlabReport& report : found.reports) {
        read += report.input_share;
        sent += report.sent;
      }
      EXPECT_EQ(sent > 0, ranks > 1 && halos == Halos::exchanged);
      if (ranks > 1) {
        // A row beyond each side for the first convolution; the whole receptive field otherwise.
        const double beyond = halos == Halos::exchanged ? 2.0 * (ranks - 1) / 72 : 0;
        EXPECT_TRUE(halos == Halos::exchanged ? std::abs(read - 1 - beyond) < 1e-12 : read > 1.5)
            << ranks << " " << read;
      }
    }
  }
}

TEST(Slabs, OnePictureLeavesNothingToTheNextOne) {
  Layer<float> net = make_model<float>("unet", {.classes = 2, .channels = 1, .width = 0.25});
  initialise(net, Key(1));
  const Shape shape{1, 1, 40, 24};
  const TracedNetwork network = trace_network<float>(net, shape);
  ranks::run_ranks(3, [&](const CommunicatorPtr& communicator) {
    SlabNetwork<float> slabs(network, communicator);
    std::size_t bytes = 0;
    for (const std::uint64_t seed : {2, 3, 2}) {
      const Tensor<float> x = noise<float>(shape, seed);
      const Tensor<float> whole = infer(net, x);
      int writes = 0;
      const SlabReport report = slabs.run(
          tensor_source(x), {.begin = {}, .write = [&](const Box& box, const float* values) {
                               Tensor<float> y = whole;
                               tensor_sink(y).write(box, values);
                               EXPECT_TRUE(same_bits(y, whole)) << seed;
                               ++writes;
                             }});
      EXPECT_EQ(writes, 1);
      EXPECT_TRUE(bytes == 0 || bytes == report.bytes);
      bytes = report.bytes;
    }
  });
}

TEST(Slabs, StridesDilationsAndUnevenRowsHaveTheBitsOfTheWhole) {
  for (const char* text :
       {R"({"layer": "conv", "in": 2, "out": 3, "kernel": [5, 3], "stride": [3, 2],
            "padding": [[4, 1], [0, 2]]})",
        R"({"layer": "sequential", "layers": [
             {"layer": "conv", "in": 2, "out": 4, "kernel": 3, "dilation": 3, "padding": 3},
             {"layer": "batch_norm", "channels": 4}, {"layer": "gelu"},
             {"layer": "avg_pool", "kernel": 3, "stride": 2, "padding": 1, "ceil_mode": true},
             {"layer": "layer_norm", "channels": true, "shape": [4]},
             {"layer": "residual",
              "body": {"layer": "conv", "in": 4, "out": 4, "kernel": 5, "padding": "same"}},
             {"layer": "upsample", "factor": 3, "bilinear": true},
             {"layer": "conv_transpose", "in": 4, "out": 2, "kernel": 4, "stride": 3}]})",
        R"({"layer": "sequential", "layers": [
             {"layer": "conv", "in": 2, "out": 4, "kernel": 9, "padding": 4},
             {"layer": "conv", "in": 4, "out": 4, "kernel": 9, "padding": 4}]})"}) {
    Layer<double> model = build_layer<double>(std::string_view(text));
    initialise(model, Key(3));
    const Tensor<double> x = noise<double>(Shape{2, 2, 23, 17}, 4);
    const Tensor<double> whole = infer(model, x);
    for (const int ranks : {2, 3, 6}) {
      // With windows of 9 rows and slabs of 3, rows come from beyond the neighbours too.
      EXPECT_TRUE(same_bits(run_on(ranks, model, x, Halos::exchanged).y, whole))
          << text << " " << ranks;
    }
  }
}

TEST(Slabs, RefuseFewerRowsThanRanksAndLayersThatNeedAll) {
  const auto words = [](const char* text, int ranks) -> std::string {
    Layer<float> model = build_layer<float>(std::string_view(text));
    try {
      run_on(ranks, model, Tensor<float>(Shape{1, 1, 16, 16}), Halos::exchanged);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  const std::string few = words(
      R"({"layer": "sequential", "names": ["a", "pool"], "layers": [
           {"layer": "conv", "in": 1, "out": 2, "kernel": 3, "padding": 1},
           {"layer": "max_pool", "kernel": 8}]})",
      3);
  EXPECT_NE(few.find("\"pool\" (max_pool) has 2 rows for 3 ranks"), std::string::npos) << few;
  const std::string all = words(
      R"({"layer": "sequential", "names": ["a", "norm"], "layers": [
           {"layer": "conv", "in": 1, "out": 2, "kernel": 3, "padding": 1},
           {"layer": "instance_norm", "channels": 2}]})",
      2);
  EXPECT_NE(all.find("\"norm\" (instance_norm)"), std::string::npos) << all;
}

}  // namespace
}  // namespace fenestra::nn
