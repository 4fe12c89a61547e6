// Networks tile by tile against the whole picture: every bit, on ready networks and on random
// stacks of layers; what is refused, and by which name.
//
// FENESTRA_TILE_CASES and FENESTRA_TILE_SEED set how many random stacks there are, and which.
#include <fenestra/fenestra.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/models/unet.hpp>
#include <fenestra/nn/slabs.hpp>
#include <fenestra/nn/tiles.hpp>
#include <fenestra/spec/random.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

namespace fenestra::nn {
namespace {

template <class T>
Tensor<T> picture(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Tensor<T> x(shape);
  for (T& value : x.mutable_values()) {
    value = static_cast<T>(random.real());
  }
  return x;
}

/// Weights and statistics of a network in use: nothing is zero or one.
template <class T>
void fill(Layer<T>& model, std::uint64_t seed) {
  initialise(model, Key(seed));
  Random random(seed);
  for (const Slot<T>& slot : slots<T>(model)) {
    Tensor<T> value = slot.value->tensor();
    const bool positive = slot.name.ends_with("running_var");
    if (!slot.trained || value.rank() == 1) {
      for (T& number : value.mutable_values()) {
        number = static_cast<T>(positive ? 1.5 + random.real() : random.real());
      }
      *slot.value = value;
    }
  }
}

/// "" where both have the same bits; NaNs count as equal.
template <class T>
std::string difference(const Tensor<T>& whole, const Tensor<T>& tiles) {
  if (whole.shape() != tiles.shape()) {
    return to_string(whole.shape()) + " and " + to_string(tiles.shape());
  }
  for (Index i = 0; i < whole.size(); ++i) {
    const T a = whole.data()[i];
    const T b = tiles.data()[i];
    if (std::memcmp(&a, &b, sizeof(T)) != 0 && !(a != a && b != b)) {
      return "number " + std::to_string(i) + " of " + to_string(whole.shape()) + ": " +
             std::to_string(a) + " and " + std::to_string(b);
    }
  }
  return "";
}

template <class T>
std::string difference(const Layer<T>& model, const Tensor<T>& x, const TileOptions& options) {
  return difference(infer(model, x), infer_tiled(model, x, options));
}

template <class F>
std::string refusal(const F& f, ErrorCode code) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

TEST(Tiles, AUNetHasTheBitsOfTheWholeWhateverTheTiles) {
  Layer<float> net = unet<float>({});
  fill(net, 1);
  const Tensor<float> x = picture<float>(Shape{1, 1, 72, 104}, 2);
  for (const Shape& tile :
       {Shape{72, 104}, Shape{32, 32}, Shape{31, 45}, Shape{72, 7}, Shape{5, 104}}) {
    EXPECT_EQ(difference(net, x, {.tile = tile}), "") << to_string(tile);
  }
  Layer<double> exact = unet<double>({.classes = 4, .channels = 3, .width = 0.5});
  fill(exact, 3);
  EXPECT_EQ(difference(exact, picture<double>(Shape{2, 3, 48, 40}, 4), {.tile = Shape{17, 23}}),
            "");
}

TEST(Tiles, AreAsLargeAsTheMemoryAllows) {
  Layer<float> net = unet<float>({.width = 0.25});
  fill(net, 1);
  const Tensor<float> x = picture<float>(Shape{1, 1, 256, 256}, 2);
  const auto run = [&](std::size_t memory) {
    Tensor<float> y;
    TileReport report =
        infer_tiled<float>(net, tensor_source(x), tensor_sink(y), {.memory = memory});
    EXPECT_EQ(difference(infer(net, x), y), "");
    EXPECT_LE(report.bytes, memory);
    EXPECT_EQ(report.output, (Shape{1, 1, 256, 256}));
    return report;
  };
  const TileReport whole = run(std::size_t{1} << 30);
  EXPECT_EQ(whole.tiles, 1);
  EXPECT_EQ(whole.input_share, 1);
  const TileReport some = run(whole.bytes - 1);
  EXPECT_GT(some.tiles, 1);
  const TileReport less = run(some.bytes / 4);
  EXPECT_GT(less.tiles, some.tiles);
  EXPECT_GT(less.input_share, some.input_share);
}

TEST(Tiles, OfWhichOneTakesMoreThanTheFirstAreCutInTwo) {
  Layer<float> net = unet<float>({.width = 0.25});
  fill(net, 1);
  const Tensor<float> x = picture<float>(Shape{1, 1, 48, 48}, 2);
  const Tensor<float> whole = infer(net, x);
  int cut = 0;
  for (const Index side : {5, 7, 11, 13}) {
    Tensor<float> y;
    const auto run = [&](std::size_t memory) {
      return infer_tiled<float>(
          net, tensor_source(x), tensor_sink(y), {.tile = Shape{side, side}, .memory = memory});
    };
    const TileReport free = run(std::size_t{1} << 30);
    try {
      const TileReport tight = run(free.bytes - 1);
      EXPECT_LT(tight.bytes, free.bytes);
      EXPECT_GT(tight.tiles, free.tiles);
      EXPECT_EQ(difference(whole, y), "");
      ++cut;
    } catch (const Error& error) {  // the first, the middle or the last takes the most
      EXPECT_EQ(error.code(), ErrorCode::memory_limit) << error.what();
    }
  }
  EXPECT_GT(cut, 0);
}

/// JSON of layers, drawn at random.
class RandomStack {
 public:
  explicit RandomStack(std::uint64_t seed) : random_(seed), rank_(1) {
    rank_ = static_cast<int>(random_.chance(5) ? 1 : random_.chance(6) ? 3 : 2);
    channels_ = random_channels();
    shape_ = Shape{random_.chance(6) ? Index{2} : Index{1}, channels_};
    const Index most = rank_ == 1 ? 150 : rank_ == 2 ? 44 : 12;
    for (int axis = 0; axis < rank_; ++axis) {
      shape_.push_back(random_.between(most / 4, most));
    }
    const Index layers = random_.between(1, 5);
    for (Index i = 0; i < layers; ++i) {
      layers_ += (i > 0 ? ", " : "") + layer(2);
    }
    for (int axis = 0; axis < rank_; ++axis) {
      tile_.push_back(random_.between(1, most));
    }
  }
  std::string text() const { return R"({"layer": "sequential", "layers": [)" + layers_ + "]}"; }
  const Shape& shape() const { return shape_; }
  Shape tile() const { return tile_; }

 private:
  Index random_channels() {
    constexpr Index kCounts[] = {1, 2, 3, 4, 8, 12, 16, 24, 32, 40, 64};
    return kCounts[random_.between(0, rank_ == 2 ? 10 : 7)];
  }
  std::string list(Index low, Index high) {
    std::string text = "[";
    for (int axis = 0; axis < rank_; ++axis) {
      text += (axis > 0 ? ", " : "") + std::to_string(random_.between(low, high));
    }
    return text + "]";
  }
  std::string pairs(Index high) {
    std::string text = "[";
    for (int axis = 0; axis < rank_; ++axis) {
      text += (axis > 0 ? ", [" : "[") + std::to_string(random_.between(0, high)) + ", " +
              std::to_string(random_.between(0, high)) + "]";
    }
    return text + "]";
  }
  std::string field(const std::string& name, const std::string& value) {
    return ", \"" + name + "\": " + value;
  }
  /// Channels in, channels out, and groups that divide both.
  std::string conv_channels(Index out) {
    Index groups = 1;
    if (random_.chance(3)) {
      out = random_.chance(2) ? channels_ : out;
      groups = random_.chance(2) ? channels_ : 2;
      groups = channels_ % groups == 0 && out % groups == 0 ? groups : 1;
    }
    const std::string text = field("in", std::to_string(channels_)) +
                             field("out", std::to_string(out)) +
                             field("groups", std::to_string(groups)) +
                             field("bias", random_.chance(3) ? "false" : "true");
    channels_ = out;
    return text;
  }
  std::string conv() {
    return R"({"layer": "conv")" + conv_channels(random_channels()) + field("kernel", list(1, 4)) +
           field("stride", random_.chance(2) ? "1" : list(1, 3)) +
           field("dilation", random_.chance(3) ? list(1, 3) : "1") +
           field("padding", random_.chance(4) ? "\"same\"" : pairs(random_.chance(6) ? 6 : 3)) +
           "}";
  }
  std::string conv_transpose() {
    return R"({"layer": "conv_transpose")" + conv_channels(random_channels()) +
           field("kernel", list(1, 4)) + field("stride", list(1, 3)) +
           field("dilation", random_.chance(4) ? "2" : "1") + field("padding", list(0, 1)) + "}";
  }
  std::string pool() {
    const char* kinds[] = {"max_pool", "avg_pool", "lp_pool", "smooth_max_pool"};
    const Index kind = random_.between(0, 3);
    std::string text = R"({"layer": ")" + std::string(kinds[kind]) + "\"" +
                       field("kernel", list(1, 4)) + field("stride", list(1, 3)) +
                       field("dilation", random_.chance(4) ? "2" : "1") +
                       field("ceil_mode", random_.chance(2) ? "true" : "false");
    if (kind < 2) {
      text += field("padding", list(0, 1));
    }
    if (kind == 1) {
      text += field("count_include_pad", random_.chance(2) ? "true" : "false");
    }
    if (kind == 2) {
      text += field("p", random_.chance(3) ? "3" : "2");
    }
    return text + "}";
  }
  std::string other() {
    const char* activations[] = {"relu", "gelu", "silu", "tanh", "leaky_relu", "sigmoid", "mish"};
    switch (random_.between(0, 3)) {
      case 0: return R"({"layer": "batch_norm", "channels": )" + std::to_string(channels_) + "}";
      case 1:
        return R"({"layer": "layer_norm", "channels": true, "shape": [)" +
               std::to_string(channels_) + "]}";
      case 2:
        return R"({"layer": "upsample")" + field("factor", list(1, 3)) +
               (random_.chance(2) ? field("bilinear", "true") : "") + "}";
      default: return R"({"layer": ")" + std::string(activations[random_.between(0, 6)]) + "\"}";
    }
  }
  /// Keeps the spatial extents.
  std::string same_size(Index out) {
    const std::string text = R"({"layer": "conv")" + field("in", std::to_string(channels_)) +
                             field("out", std::to_string(out)) + field("kernel", list(1, 5)) +
                             field("padding", "\"same\"") + "}";
    return text;
  }
  std::string layer(int depth) {
    switch (random_.between(0, depth > 0 ? 7 : 5)) {
      case 0:
      case 1: return conv();
      case 2: return conv_transpose();
      case 3: return pool();
      case 6: return R"({"layer": "residual", "body": )" + same_size(channels_) + "}";
      case 7: {
        const Index out = random_channels();
        const std::string second = same_size(out);
        const std::string text = R"({"layer": "branches", "layers": [{"layer": "identity"}, )" +
                                 second + ", " + same_size(1) + "]}";
        channels_ += out + 1;
        return text;
      }
      default: return other();
    }
  }

  Random random_;
  int rank_;
  Index channels_ = 1;
  Shape shape_;
  Shape tile_;
  std::string layers_;
};

Index number_from(const char* name, Index otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}

TEST(Tiles, ALargePictureHasTheBitsOfTheWhole) {
  const Index side = number_from("FENESTRA_TILE_SIDE", 192);
  Layer<float> net = unet<float>({});
  fill(net, 5);
  const Tensor<float> x = picture<float>(Shape{1, 1, side, side}, 6);
  EXPECT_EQ(difference(net, x, {.tile = Shape{side / 3, side / 4}}), "");
}

/// The same on ranks that share the picture; "" where it has too few rows for them.
template <class T>
std::string slab_difference(const Layer<T>& model,
                            const Tensor<T>& x,
                            const Tensor<T>& whole,
                            std::uint64_t ranks) {
  const TracedNetwork network = trace_network<T>(model, x.shape());
  Tensor<T> y(whole.shape());
  std::mutex mutex;
  try {
    ranks::run_ranks(static_cast<int>(ranks), [&](const ranks::CommunicatorPtr& communicator) {
      SlabNetwork<T>(network, communicator)
          .run(tensor_source(x), {.begin = {}, .write = [&](const Box& box, const T* values) {
                                    const std::lock_guard lock(mutex);
                                    tensor_sink(y).write(box, values);
                                  }});
    });
  } catch (const Error& error) {
    return error.code() == ErrorCode::invalid_extent ? "" : error.what();
  }
  const std::string found = difference(whole, y);
  return found.empty() ? found : std::to_string(ranks) + " ranks: " + found;
}

template <class T>
std::string random_difference(const RandomStack& stack, std::uint64_t seed, Index& compared) {
  Layer<T> model = build_layer<T>(std::string_view(stack.text()));
  fill(model, seed);
  const Tensor<T> x = picture<T>(stack.shape(), seed);
  std::optional<Tensor<T>> whole;
  try {
    whole = infer(model, x);
  } catch (const Error&) {
    return "";  // extents that no layer takes
  }
  ++compared;
  const std::string found = difference(*whole, infer_tiled(model, x, {.tile = stack.tile()}));
  return found.empty() && seed % 4 == 1 ? slab_difference(model, x, *whole, 2 + seed % 3) : found;
}

TEST(Tiles, RandomStacksHaveTheBitsOfTheWhole) {
  const Index cases = number_from("FENESTRA_TILE_CASES", 1000);
  const auto first = static_cast<std::uint64_t>(number_from("FENESTRA_TILE_SEED", 1));
  Index compared = 0;
  // A stack that no picture of its size goes through is no case: another one takes its place.
  for (Index i = 0; compared < cases; ++i) {
    ASSERT_LT(i, 2 * cases) << "only " << compared << " stacks were compared";
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    const RandomStack stack(seed);
    const auto told = [&] {
      return "seed " + std::to_string(seed) + " x " + to_string(stack.shape()) + " tile " +
             to_string(stack.tile()) + "\n" + stack.text();
    };
    try {
      const std::string found = i % 4 == 0 ? random_difference<double>(stack, seed, compared)
                                           : random_difference<float>(stack, seed, compared);
      ASSERT_EQ(found, "") << told();
    } catch (const Error& error) {
      FAIL() << error.what() << "\n" << told();
    }
  }
}

TEST(Tiles, RefuseALayerThatNeedsTheWholePictureByItsName) {
  const auto refused = [](const std::string& text, const std::string& name) {
    const std::string all =
        R"({"layer": "sequential", "names": ["first", "guilty", "last"], "layers": [)"
        R"({"layer": "conv", "in": 1, "out": 4, "kernel": 3}, )" +
        text + R"(, {"layer": "identity"}]})";
    const Layer<float> model = build_layer<float>(std::string_view(all));
    const std::string words = refusal(
        [&] {
          infer_tiled(model, Tensor<float>(Shape{1, 1, 20, 20}), {});
        },
        ErrorCode::memory_limit);
    EXPECT_NE(words.find("\"guilty" + name), std::string::npos) << text << "\n" << words;
    EXPECT_NE(words.find("fix: "), std::string::npos) << words;
  };
  refused(R"({"layer": "global_avg_pool"})", "\" (global_avg_pool)");
  refused(R"({"layer": "global_max_pool"})", "\" (global_max_pool)");
  refused(R"({"layer": "adaptive_max_pool", "output_size": 4})", "\" (adaptive_max_pool)");
  refused(R"({"layer": "adaptive_avg_pool", "output_size": 4})", "\" (adaptive_avg_pool)");
  refused(R"({"layer": "layer_norm", "shape": [18, 18]})", "\" (layer_norm)");
  refused(R"({"layer": "group_norm", "groups": 2, "channels": 4})", "\" (group_norm)");
  refused(R"({"layer": "instance_norm", "channels": 4})", "\" (instance_norm)");
  refused(R"({"layer": "squeeze_excite", "channels": 4, "squeezed": 2})", "");
  refused(
      R"({"layer": "sequential", "names": ["flat", "linear"], "layers": [{"layer": "flatten"}, )"
      R"({"layer": "linear", "in": 1296, "out": 3}]})",
      ".linear\" (linear)");
}

TEST(Tiles, RefuseWhatCannotBe) {
  Layer<float> net = build_layer<float>(R"({"layer": "conv", "in": 1, "out": 2, "kernel": 3})");
  const Tensor<float> x(Shape{1, 1, 20, 20});
  for (const Shape& tile : {Shape{4}, Shape{4, 4, 4}, Shape{0, 4}, Shape{4, -1}}) {
    EXPECT_NE(refusal([&] { infer_tiled(net, x, {.tile = tile}); }, ErrorCode::invalid_extent), "");
  }
  EXPECT_NE(refusal([&] { infer_tiled(net, x, {.memory = 16}); }, ErrorCode::memory_limit), "");
  EXPECT_NE(refusal(
                [&] {
                  infer_tiled(net, x, {.tile = Shape{20, 20}, .memory = 512});
                },
                ErrorCode::memory_limit),
            "");
  TiledNetwork<float> tiled(trace_network<float>(net, x.shape()), {});
  Tensor<float> y;
  EXPECT_NE(refusal(
                [&] {
                  tiled.run(tensor_source(Tensor<float>(Shape{1, 1, 20, 21})), tensor_sink(y));
                },
                ErrorCode::shape_mismatch),
            "");
}

TEST(Tiles, OfSeveralSharesAreTheTilesOfTheWhole) {
  Layer<float> net =
      build_layer<float>(R"({"layer": "conv", "in": 1, "out": 1, "kernel": 3, "padding": 1})");
  fill(net, 3);
  const Tensor<float> x = picture<float>(Shape{1, 1, 20, 14}, 1);
  const Tensor<float> whole = infer_tiled(net, x);
  for (const Index stride : {1, 2, 5, 12, 13}) {
    Tensor<float> y(whole.shape());
    const TileSink<float> sink{.begin = {}, .write = tensor_sink(y).write};
    std::vector<Index> tiles;
    double cells_read = 0;
    for (Index first = 0; first < stride; ++first) {
      const TileReport report =
          infer_tiled<float>(net,
                             tensor_source(x),
                             sink,
                             {.tile = Shape{6, 5},
                              .first = first,
                              .stride = stride,
                              .progress = [&](Index, Index all) {
                                EXPECT_EQ(all, (12 - first + stride - 1) / stride);
                              }});
      tiles.push_back(report.tiles);
      cells_read += report.input_share;
    }
    EXPECT_EQ(std::accumulate(tiles.begin(), tiles.end(), Index{0}), 12) << stride;
    EXPECT_EQ(y, whole) << stride;
    // Each of 4 x 3 tiles reads one row and column beyond its sides, but for the picture's.
    EXPECT_DOUBLE_EQ(cells_read, (20.0 + 6) * (14.0 + 4) / (20 * 14)) << stride;
  }
  EXPECT_NE(refusal([&] { infer_tiled(net, x, {.first = -1}); }, ErrorCode::invalid_option), "");
  EXPECT_NE(refusal([&] { infer_tiled(net, x, {.stride = 0}); }, ErrorCode::invalid_option), "");
}

TEST(Tiles, EveryCellOfTheOutputIsWrittenOnceAndProgressIsSaid) {
  Layer<float> net =
      build_layer<float>(R"({"layer": "conv", "in": 2, "out": 3, "kernel": 3, "stride": 2})");
  const Tensor<float> x = picture<float>(Shape{1, 2, 41, 30}, 1);
  std::vector<int> times;
  Shape shape;
  Index last = 0;
  infer_tiled<float>(
      net,
      tensor_source(x),
      {.begin =
           [&](const Shape& whole) {
             shape = whole;
             times.assign(static_cast<std::size_t>(*whole.elements()), 0);
           },
       .write =
           [&](const Box& box, const float*) {
             for (Index c = 0; c < 3; ++c) {
               for (Index h = box[2].begin; h < box[2].end; ++h) {
                 for (Index w = box[3].begin; w < box[3].end; ++w) {
                   ++times[static_cast<std::size_t>((c * shape[2] + h) * shape[3] + w)];
                 }
               }
             }
           }},
      {.tile = Shape{6, 5}, .progress = [&](Index done, Index all) {
         EXPECT_EQ(done, ++last);
         EXPECT_EQ(all, 12);
       }});
  EXPECT_EQ(shape, (Shape{1, 3, 20, 14}));
  EXPECT_EQ(last, 12);
  EXPECT_EQ(times, std::vector<int>(times.size(), 1));
}

TEST(Tiles, TheReceptiveFieldOfACellIsWhatItsWindowsReach) {
  Layer<float> net = build_layer<float>(
      R"({"layer": "sequential", "names": ["a", "b", "c"], "layers": [)"
      R"({"layer": "conv", "in": 1, "out": 2, "kernel": 3, "padding": 1}, )"
      R"({"layer": "max_pool", "kernel": 2}, )"
      R"({"layer": "conv", "in": 2, "out": 1, "kernel": 3, "padding": 2, "dilation": 2}]})");
  const TracedNetwork network = trace_network<float>(net, Shape{1, 1, 40, 40});
  Box cell(Shape{1, 1, 20, 20});
  cell.set(2, {10, 11});
  cell.set(3, {0, 1});
  const std::vector<LayerCells> fields = needed_layers<float>(network, cell);
  ASSERT_EQ(fields.size(), 4u);
  // 3 with dilation 2 is 5 wide, 10 after the pool, 12 after the first convolution.
  EXPECT_EQ(fields[0].layer, "\"picture\" (input)");
  EXPECT_EQ(fields[0].cells[2], (IndexRange{15, 27}));
  EXPECT_EQ(fields[0].cells[3], (IndexRange{0, 7}));
  EXPECT_EQ(fields[1].layer, "\"a\" (conv)");
  EXPECT_EQ(fields[1].cells[2], (IndexRange{16, 26}));
  EXPECT_EQ(fields[2].layer, "\"b\" (max_pool)");
  EXPECT_EQ(fields[2].cells[2], (IndexRange{8, 13}));
  EXPECT_EQ(fields[3].cells, cell);
}

}  // namespace
}  // namespace fenestra::nn
