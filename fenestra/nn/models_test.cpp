// The ready models: published parameter counts, shapes that come out, summaries counted by hand.
#include <fenestra/fenestra.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/summary.hpp>

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace fenestra::nn {
namespace {

Shape batch_of(Index samples, const Shape& one) {
  Shape shape{samples};
  for (int axis = 0; axis < one.rank(); ++axis) {
    shape.push_back(one[axis]);
  }
  return shape;
}

TEST(Models, HaveThePublishedParameterCounts) {
  // LeNet-5 by hand, ResNet-20 from its paper's layout (0.27 M, with projections), the others as
  // torchvision counts them.
  const std::map<std::string, Index> published{{"lenet", 61706},
                                               {"mobilenet_v2", 3504872},
                                               {"mobilenet_v3_small", 2542856},
                                               {"resnet18", 11689512},
                                               {"convnext_tiny", 28589128}};
  for (const auto& [name, count] : published) {
    EXPECT_EQ(parameter_count(make_model<float>(name)), count) << name;
  }
  // 3x3 convolutions, norms, two projections, the head.
  const auto convs = [](Index in, Index out) { return 9 * in * out + 2 * out; };
  const Index small = convs(3, 16) + 6 * convs(16, 16) + convs(16, 32) + 5 * convs(32, 32) +
                      (16 * 32 + 64) + convs(32, 64) + 5 * convs(64, 64) + (32 * 64 + 128) + 650;
  EXPECT_EQ(parameter_count(make_model<float>("small_resnet")), small);
}

TEST(Models, AreScaledByWidth) {
  // torchvision's mobilenet_v2(width_mult=0.5) and mobilenet_v3_small(width_mult=0.5).
  EXPECT_EQ(parameter_count(make_model<float>("mobilenet_v2", {.width = 0.5})), 1968680);
  EXPECT_EQ(parameter_count(make_model<float>("mobilenet_v2", {.classes = 10, .width = 0.25})),
            parameter_count(make_model<float>("mobilenet_v2", {.width = 0.25})) - 990 * 1281);
}

TEST(Models, GiveWhatTheySay) {
  for (const ModelEntry& entry : model_entries()) {
    const Layer<float> model = make_model<float>(entry.name);
    const Shape input = batch_of(2, entry.input);
    const Summary s = summary(model, input);
    EXPECT_EQ(s.parameters, parameter_count(model)) << entry.name;
    EXPECT_GT(s.multiply_adds, 0);
    if (entry.output == "classes") {
      EXPECT_EQ(s.output.rank(), 2) << entry.name;
      EXPECT_EQ(s.output[0], 2);
    } else {
      EXPECT_EQ(s.output, input) << entry.name;
    }
    // Built again from its description, it is the same.
    EXPECT_EQ(build_layer<float>(model.describe()).describe().text(), model.describe().text());
  }
}

TEST(Models, RunAndTrainAndAreTracedAlike) {
  for (const char* name :
       {"lenet", "small_resnet", "unet", "autoencoder", "dilated_1d", "volume_net"}) {
    Layer<float> model = make_model<float>(name, {.width = 0.25});
    initialise(model, Key(1));
    Shape shape = batch_of(2, model_entry(name).input);
    if (std::string(name) == "unet") {
      shape = {2, 1, 16, 16};
    }
    KeyDraws draws(Key(2));
    const Tensor<float> x = uniform<float>(shape, draws, 1);
    const auto loss = [&](const Layer<float>& net) {
      auto pass = Pass<float>::training(Key(3));
      const Value<float> y = net(x, pass);
      return mean(y * y);
    };
    const auto [value, gradients] = value_and_grad(loss, model);
    EXPECT_GT(value[0], 0) << name;
    EXPECT_TRUE(std::isfinite(value[0])) << name;
    // Weights that no gradient reaches would be dead from the start.
    std::size_t reached = 0;
    for (const Value<float>& gradient : tree_flatten(gradients)) {
      bool any = false;
      for (const float g : gradient.tensor().values()) {
        any = any || g != 0;
      }
      reached += any ? 1 : 0;
    }
    EXPECT_EQ(reached, tree_flatten(gradients).size()) << name;
  }
}

TEST(Models, UnknownOrBadOnesAreRefused) {
  try {
    make_model<float>("lenett");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unknown_model);
    EXPECT_NE(std::string(error.what()).find("lenet,"), std::string::npos) << error.what();
  }
  for (const ModelOptions& options : {ModelOptions{.width = 0}, ModelOptions{.classes = -1}}) {
    try {
      make_model<float>("lenet", options);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_option) << error.what();
    }
  }
}

TEST(Summary, OfLeNetIsTheOneCountedByHand) {
  const Summary s = summary(make_model<float>("lenet"), Shape{1, 1, 28, 28});
  struct Row {
    const char* name;
    const char* kind;
    Shape output;
    Index parameters, multiply_adds;
    std::vector<Index> sees;
  };
  const std::vector<Row> expected{
      {"conv1", "conv", {1, 6, 28, 28}, 156, 28 * 28 * 6 * 25, {5, 5}},
      {"relu1", "relu", {1, 6, 28, 28}, 0, 0, {5, 5}},
      {"pool1", "max_pool", {1, 6, 14, 14}, 0, 0, {6, 6}},
      {"conv2", "conv", {1, 16, 10, 10}, 2416, 100 * 16 * 150, {14, 14}},
      {"relu2", "relu", {1, 16, 10, 10}, 0, 0, {14, 14}},
      {"pool2", "max_pool", {1, 16, 5, 5}, 0, 0, {16, 16}},
      {"flatten", "flatten", {1, 400}, 0, 0, {16, 16}},
      {"fc1", "linear", {1, 120}, 48120, 48000, {}},
      {"relu3", "relu", {1, 120}, 0, 0, {}},
      {"fc2", "linear", {1, 84}, 10164, 10080, {}},
      {"relu4", "relu", {1, 84}, 0, 0, {}},
      {"fc3", "linear", {1, 10}, 850, 840, {}},
  };
  ASSERT_EQ(s.rows.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(s.rows[i].name, expected[i].name);
    EXPECT_EQ(s.rows[i].kind, expected[i].kind) << expected[i].name;
    EXPECT_EQ(s.rows[i].output, expected[i].output) << expected[i].name;
    EXPECT_EQ(s.rows[i].parameters, expected[i].parameters) << expected[i].name;
    EXPECT_EQ(s.rows[i].multiply_adds, expected[i].multiply_adds) << expected[i].name;
    EXPECT_EQ(s.rows[i].receptive_field, expected[i].sees) << expected[i].name;
  }
  EXPECT_EQ(s.parameters, 61706);
  EXPECT_EQ(s.multiply_adds, 416520);
  EXPECT_EQ(s.buffers, 0);
  EXPECT_NE(s.text().find("61,706        416,520"), std::string::npos) << s.text();
}

TEST(Summary, FollowsShortCutsStridesAndEnlargements) {
  Sequential net;
  net.add("down", Conv(1, 1, {.kernel = 3, .stride = 2, .padding = 1}));              // 3, step 2
  net.add("wide", Residual(Conv(1, 1, {.kernel = 3, .padding = 2, .dilation = 2})));  // 3 + 4*2
  net.add("after", Conv(1, 1, {.kernel = 3, .padding = 1}));                          // 11 + 2*2
  net.add("up", Upsample());                                 // the same, step 1
  net.add("last", Conv(1, 1, {.kernel = 3, .padding = 1}));  // 15 + 2*1
  const Summary s = summary(net, Shape{1, 1, 32, 32});
  std::vector<Index> sees;
  for (const SummaryRow& row : s.rows) {
    sees.push_back(row.receptive_field.at(0));
  }
  EXPECT_EQ(sees, (std::vector<Index>{3, 11, 15, 15, 17}));
  EXPECT_EQ(s.output, (Shape{1, 1, 32, 32}));
}

struct Own {
  Conv conv{1, 2, {.kernel = 3}};
  BatchNorm norm{2};
  Linear head{2, 3};
  Value<float> operator()(const Value<float>& x, Pass<float>& pass) const {
    const Value<float> h = relu(norm(conv(x, pass), pass));
    return head(mean(h, {.axes = {2, 3}}), pass);
  }
};

TEST(Summary, NamesTheLayersOfAStruct) {
  const Summary s = summary(Own(), Shape{1, 1, 5, 5});
  ASSERT_EQ(s.rows.size(), 3U);
  EXPECT_EQ(s.rows[0].name, "conv");
  EXPECT_EQ(s.rows[1].name, "norm");
  EXPECT_EQ(s.rows[2].name, "head");
  EXPECT_EQ(s.parameters, 20 + 4 + 9);
  EXPECT_EQ(s.buffers, 4);
}

}  // namespace
}  // namespace fenestra::nn
