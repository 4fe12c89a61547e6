// Layers: gradients against differences, traced against eager, descriptions there and back, and
// values against formulas.
#include <fenestra/fenestra.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layer_fields.hpp>
#include <fenestra/nn/layers.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace fenestra::nn {
namespace {

/// A layer and an input it takes.
struct Case {
  const char* text;
  Shape x;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kAll{
      {R"({"layer": "conv", "in": 4, "out": 6, "kernel": 3, "stride": 2, "padding": [[1, 0], [0, 1]], "groups": 2})",
       {2, 4, 5, 5}},
      {R"({"layer": "conv", "in": 2, "out": 3, "kernel": [3], "padding": "same", "dilation": 2, "bias": false})",
       {2, 2, 7}},
      {R"({"layer": "conv", "in": 1, "out": 2, "kernel": [2, 2, 2]})", {1, 1, 3, 3, 3}},
      {R"({"layer": "conv_transpose", "in": 2, "out": 3, "kernel": 3, "stride": 2, "padding": 1, "output_padding": 1})",
       {1, 2, 3, 3}},
      {R"({"layer": "linear", "in": 5, "out": 3})", {2, 5}},
      {R"({"layer": "linear", "in": 5, "out": 3, "bias": false})", {2, 4, 5}},
      {R"({"layer": "batch_norm", "channels": 3, "momentum": 0.3, "epsilon": 0.001})",
       {4, 3, 2, 2}},
      {R"({"layer": "batch_norm", "channels": 3, "affine": false})", {4, 3}},
      {R"({"layer": "group_norm", "groups": 2, "channels": 4})", {2, 4, 3, 3}},
      {R"({"layer": "instance_norm", "channels": 3, "affine": false})", {2, 3, 4}},
      {R"({"layer": "layer_norm", "shape": [2, 3]})", {2, 2, 3}},
      {R"({"layer": "layer_norm", "shape": [4], "epsilon": 1e-06, "channels": true})",
       {2, 4, 3, 2}},
      {R"({"layer": "max_pool", "kernel": 3, "stride": 2, "padding": 1, "pad_cells": "zero"})",
       {1, 2, 5, 5}},
      {R"({"layer": "avg_pool", "kernel": [2], "ceil_mode": true, "count_include_pad": false})",
       {1, 2, 5}},
      {R"({"layer": "avg_pool", "kernel": 2, "divisor_override": 3})", {1, 1, 4, 4}},
      {R"({"layer": "smooth_max_pool", "kernel": 2, "beta": 2, "normalised": true})", {1, 2, 4, 4}},
      {R"({"layer": "lp_pool", "kernel": 2, "p": 3})", {1, 2, 4, 4}},
      {R"({"layer": "adaptive_max_pool", "output_size": [2, 3]})", {1, 2, 5, 5}},
      {R"({"layer": "adaptive_avg_pool", "output_size": 2})", {1, 2, 5, 5}},
      {R"({"layer": "global_max_pool"})", {2, 3, 4}},
      {R"({"layer": "global_avg_pool"})", {2, 3, 3, 3}},
      {R"({"layer": "identity"})", {2, 3}},
      {R"({"layer": "flatten"})", {2, 3, 2}},
      {R"({"layer": "upsample", "factor": [2, 3]})", {1, 2, 3, 2}},
      {R"({"layer": "upsample", "bilinear": true, "align_corners": true})", {1, 2, 3, 3}},
      {R"({"layer": "dropout", "drop": 0.25})", {3, 4}},
      {R"({"layer": "dropout", "drop": 0.5, "channels": true})", {3, 4, 2}},
      {R"({"layer": "channel_scale", "channels": 3, "begin": 0.5})", {2, 3, 2}},
      {R"({"layer": "squeeze_excite", "channels": 4, "squeezed": 2, "hard": false})", {2, 4, 3, 3}},
      {R"({"layer": "squeeze_excite", "channels": 4, "squeezed": 2})", {2, 4, 3}},
      {R"({"layer": "sequential", "names": ["conv", "act"], "layers": [{"layer": "conv", "in": 1, "out": 2, "kernel": 3}, {"layer": "silu"}]})",
       {1, 1, 4, 4}},
      {R"({"layer": "residual", "body": {"layer": "linear", "in": 3, "out": 2}, "projection": {"layer": "linear", "in": 3, "out": 2, "bias": false}, "after": {"layer": "tanh"}})",
       {2, 3}},
      {R"({"layer": "branches", "layers": [{"layer": "identity"}, {"layer": "conv", "in": 2, "out": 3, "kernel": 3, "padding": 1}]})",
       {1, 2, 3, 3}},
      {R"({"layer": "relu"})", {3, 5}},
      {R"({"layer": "relu6"})", {3, 5}},
      {R"({"layer": "leaky_relu", "slope": 0.2})", {3, 5}},
      {R"({"layer": "elu", "slope": 1.5})", {3, 5}},
      {R"({"layer": "sigmoid"})", {3, 5}},
      {R"({"layer": "hard_sigmoid"})", {3, 5}},
      {R"({"layer": "tanh"})", {3, 5}},
      {R"({"layer": "silu"})", {3, 5}},
      {R"({"layer": "hard_swish"})", {3, 5}},
      {R"({"layer": "gelu"})", {3, 5}},
      {R"({"layer": "mish"})", {3, 5}},
      {R"({"layer": "softplus"})", {3, 5}},
  };
  return kAll;
}

/// No element twice, none near a kink: 0.37 apart in shuffled places.
Tensor<double> spread(const Shape& shape, double step = 0.37) {
  Tensor<double> x(shape);
  const Index n = x.size();
  for (Index i = 0; i < n; ++i) {
    const Index place = (i * 7919 + 13) % n;
    x.mutable_data()[i] = step * (static_cast<double>(place) - static_cast<double>(n) / 2) + 0.11;
  }
  return x;
}

/// A number of y that depends on all of them in different ways.
template <class V>
V weighed(const V& y) {
  Tensor<double> weights(y.shape());
  double w = 0.3;
  for (double& value : weights.mutable_values()) {
    value = w;
    w = w > 1 ? w - 0.9 : w + 0.17;
  }
  return sum(mul(y, V(weights)));
}

class Layers : public testing::TestWithParam<Case> {};

TEST_P(Layers, HaveTheGradientsThatDifferencesShow) {
  Layer<double> layer = build_layer<double>(GetParam().text);
  initialise(layer, Key(1));
  std::vector<Tensor<double>> parameters = {spread(GetParam().x, 0.037)};
  for (const Slot<double>& slot : slots<double>(layer)) {
    if (slot.trained) {
      parameters.push_back(slot.value->tensor());
    }
  }
  const auto f = [&](const auto& values) {
    Layer<double> moved = layer;
    std::size_t at = 1;
    for (const Slot<double>& slot : slots<double>(moved)) {
      if (slot.trained) {
        *slot.value = values[at++];
      }
    }
    auto pass = Pass<double>::training(Key(2));
    return weighed(moved(Value<double>(values[0]), pass));
  };
  const GradcheckReport report = gradcheck(f, parameters);
  EXPECT_TRUE(report.ok) << GetParam().text << "\n" << report.text();
}

TEST_P(Layers, ComputeTheSameTraced) {
  Layer<double> layer = build_layer<double>(GetParam().text);
  initialise(layer, Key(1));
  const Tensor<double> x = spread(GetParam().x);
  const Tensor<double> eager = infer(layer, x);
  auto program = compile<double>(
      [](const Layer<double>& model, const Value<double>& input) {
        auto pass = Pass<double>::inference();
        return model(input, pass);
      },
      layer,
      x.shape());
  Context context(program);
  std::vector<Tensor<double>> arguments;
  for (const Value<double>& value : tree_flatten(layer)) {
    arguments.push_back(value.tensor());
  }
  arguments.push_back(x);
  const std::vector<RunArgument> run_arguments(arguments.begin(), arguments.end());
  const Tensor<double> traced = program.execute_new(ProgramForm::run, context, run_arguments)[0];
  ASSERT_EQ(traced.shape(), eager.shape());
  for (Index i = 0; i < eager.size(); ++i) {
    EXPECT_EQ(traced[i], eager[i]) << GetParam().text;
  }
}

TEST_P(Layers, DescribeThemselves) {
  Layer<float> layer = build_layer<float>(GetParam().text);
  EXPECT_EQ(layer.describe().text(), GetParam().text);
  initialise(layer, Key(5));
  Layer<float> again = build_layer<float>(layer.describe());
  initialise(again, Key(5));
  Tensor<float> x(GetParam().x);
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_data()[i] = static_cast<float>(spread(GetParam().x)[i]);
  }
  EXPECT_EQ(infer(layer, x), infer(again, x));
  const std::string shown = to_string(layer);
  EXPECT_EQ(shown.find('"'), std::string::npos) << shown;
  EXPECT_EQ(shown.rfind(layer.kind(), 0), 0U) << shown;
}

INSTANTIATE_TEST_SUITE_P(Every, Layers, testing::ValuesIn(cases()), [](const auto& one) {
  const std::string text = one.param.text;
  const std::size_t begin = text.find(": \"") + 3;
  return text.substr(begin, text.find('"', begin) - begin) + "_" + std::to_string(one.index);
});

TEST(LayerKinds, AreAllInTheCases) {
  std::set<std::string> tried;
  for (const Case& one : cases()) {
    tried.insert(Description::parse(one.text).kind());
  }
  for (const std::string& kind : layer_kinds()) {
    EXPECT_EQ(tried.count(kind), 1U) << kind;
  }
}

TEST(LayerFields, AreWhatEachKindIsTold) {
  for (const std::string& kind : layer_kinds()) {
    Description standard = Description::of_layer(kind);
    bool is_complete = true;
    for (const LayerField& field : layer_fields(kind)) {
      EXPECT_FALSE(field.name.empty()) << kind;
      is_complete = is_complete && !field.needed && field.type != "part";
      if (field.standard) {
        standard.add(field.name, *field.standard);
      }
    }
    if (is_complete) {
      // What is the standard anyway need not be said, and is not said again.
      const Description bare = Description::of_layer(kind);
      EXPECT_EQ(build_layer<float>(standard).describe().text(),
                build_layer<float>(bare).describe().text());
    }
  }
  const std::vector<LayerField> conv = layer_fields("conv");
  ASSERT_EQ(conv.size(), 8U);
  EXPECT_EQ(conv[0].name, "in");
  EXPECT_TRUE(conv[1].needed);
  EXPECT_EQ(conv[2].type, "axes");
  EXPECT_EQ(conv[2].standard->text(), "1");
  EXPECT_FALSE(layer_fields("max_pool")[0].standard) << "a kernel that is not given";
  EXPECT_EQ(layer_fields("sequential").size(), 2U);
  EXPECT_TRUE(layer_fields("relu").empty());
  EXPECT_THROW(layer_fields("konv"), Error);
  EXPECT_THROW(build_layer<float>(R"({"layer": "relu", "": true})"), Error);
}

TEST(LayerText, IsForPeople) {
  Sequential net;
  net.add("stem", Conv(3, 8, {.kernel = {3, 5}, .padding = {{1, 0}, {2, 2}}, .bias = false}));
  net.add("block", Residual(Sequential{Relu(), Conv(8, 8)}));
  EXPECT_EQ(to_string(net),
            "sequential\n"
            "  stem: conv(in=3, out=8, kernel=3x5, padding=1:0x2:2, bias=false)\n"
            "  block: residual\n"
            "    body: sequential\n"
            "      0: relu\n"
            "      1: conv(in=8, out=8)");
}

// --- Values ------------------------------

/// Each activation by the functions of the system's library.
double expected(const std::string& kind, double x) {
  const double hard = std::fmin(std::fmax(x + 3, 0), 6) / 6;
  if (kind == "relu") {
    return std::fmax(x, 0);
  }
  if (kind == "relu6") {
    return std::fmin(std::fmax(x, 0), 6);
  }
  if (kind == "leaky_relu") {
    return x > 0 ? x : 0.01 * x;
  }
  if (kind == "elu") {
    return x > 0 ? x : std::expm1(x);
  }
  if (kind == "sigmoid") {
    return 1 / (1 + std::exp(-x));
  }
  if (kind == "hard_sigmoid") {
    return hard;
  }
  if (kind == "tanh") {
    return std::tanh(x);
  }
  if (kind == "silu") {
    return x / (1 + std::exp(-x));
  }
  if (kind == "hard_swish") {
    return x * hard;
  }
  if (kind == "gelu") {
    return x * std::erfc(-x / std::sqrt(2.0)) / 2;
  }
  const double softplus = x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  return kind == "mish" ? x * std::tanh(softplus) : softplus;
}

TEST(Activations, AreTheirFormulasAlsoFarOut) {
  const std::vector<double> points{-800, -40, -3, -1, -1e-9, 0, 1e-9, 0.5, 3, 5.9, 6, 7, 40, 800};
  const Tensor<double> x(Shape{static_cast<Index>(points.size())}, points);
  for (int i = 0; i < kNonlinearities; ++i) {
    const auto f = static_cast<Nonlinearity>(i);
    const std::string kind(nonlinearity_name(f));
    const Tensor<double> y =
        activate(f, Value<double>(x), f == Nonlinearity::elu ? 1 : 0.01).tensor();
    for (Index at = 0; at < x.size(); ++at) {
      const double wanted = expected(kind, x[at]);
      // A few roundings, each relative; the tail of the normal distribution multiplies that of its
      // argument by x^2.
      const double roundings = 8 + (kind == "gelu" ? 2 * x[at] * x[at] : 0);
      EXPECT_LE(std::fabs(y[at] - wanted), roundings * 0x1p-53 * std::fabs(wanted) + 1e-300)
          << kind << " of " << x[at];
    }
    // Gradients stay finite where the function does.
    const Tensor<double> bar =
        grad([&](const Value<double>& v) { return sum(activate(f, v, 1)); }, x);
    for (Index at = 0; at < x.size(); ++at) {
      EXPECT_TRUE(std::isfinite(bar[at])) << kind << " at " << x[at];
    }
  }
}

TEST(Dropout, KeepsTheMeanAndFollowsItsKey) {
  const Tensor<double> ones(Shape{100, 1000}, 1.0);
  const BasicDropout<double> dropout(0.3);
  auto pass = Pass<double>::training(Key(7));
  const Tensor<double> y = dropout(ones, pass).tensor();
  double sum_of = 0;
  for (const double value : y.values()) {
    EXPECT_TRUE(value == 0 || value == 1 / 0.7) << value;
    sum_of += value;
  }
  // Variance of one element: (1 - keep)/keep; six standard errors.
  EXPECT_LE(std::fabs(sum_of / 1e5 - 1), 6 * std::sqrt(0.3 / 0.7 / 1e5));
  auto again = Pass<double>::training(Key(7));
  EXPECT_EQ(dropout(ones, again).tensor(), y);
  EXPECT_NE(dropout(ones, again).tensor(), y);  // the second mask of the pass
  auto other = Pass<double>::training(Key(8));
  EXPECT_NE(dropout(ones, other).tensor(), y);
  auto inference = Pass<double>::inference();
  EXPECT_EQ(dropout(ones, inference).tensor(), ones);
}

TEST(Dropout, OfChannelsDropsThemWhole) {
  const BasicDropout<double> dropout(0.5, {.channels = true});
  auto pass = Pass<double>::training(Key(1));
  const Tensor<double> y = dropout(Tensor<double>(Shape{4, 16, 3}, 1.0), pass).tensor();
  for (Index c = 0; c < 64; ++c) {
    EXPECT_EQ(y[3 * c], y[3 * c + 1]);
    EXPECT_EQ(y[3 * c], y[3 * c + 2]);
  }
}

TEST(BatchNorm, HasTheStatisticsOfTheFormulas) {
  const Index n = 6;
  const Index channels = 2;
  const Index cells = 3;
  const Tensor<double> x = spread({n, channels, cells}, 0.21);
  BasicBatchNorm<double> norm(channels, {.momentum = 0.25, .epsilon = 1e-3});
  norm.weight->value = Tensor<double>(Shape{2}, {1.5, -2.0});
  norm.bias->value = Tensor<double>(Shape{2}, {0.5, 3.0});
  norm.running_mean.value = Tensor<double>(Shape{2}, {1.0, 2.0});
  norm.running_var.value = Tensor<double>(Shape{2}, {3.0, 4.0});
  auto pass = Pass<double>::training(Key(1));
  const Tensor<double> y = norm(x, pass).tensor();
  const Tensor<double> before = norm.running_mean.value.tensor();
  apply_updates(norm, pass);
  auto inference = Pass<double>::inference();
  const Tensor<double> inferred = norm(x, inference).tensor();
  for (Index c = 0; c < channels; ++c) {
    const auto at = [&](Index i, Index cell) { return (i * channels + c) * cells + cell; };
    long double mean = 0;
    for (Index i = 0; i < n * cells; ++i) {
      mean += x[at(i / cells, i % cells)];
    }
    mean /= n * cells;
    long double squares = 0;
    for (Index i = 0; i < n * cells; ++i) {
      const long double d = x[at(i / cells, i % cells)] - mean;
      squares += d * d;
    }
    const long double biased = squares / (n * cells);
    const long double unbiased = squares / (n * cells - 1);
    const double old_var = c == 0 ? 3 : 4;
    const double new_mean = static_cast<double>(0.75L * before[c] + 0.25L * mean);
    const double new_var = static_cast<double>(0.75L * old_var + 0.25L * unbiased);
    // Sums of 18 terms and a handful of products.
    EXPECT_NEAR(norm.running_mean.value[c], new_mean, 64 * 0x1p-53 * 8);
    EXPECT_NEAR(norm.running_var.value[c], new_var, 64 * 0x1p-53 * 8);
    const double gamma = c == 0 ? 1.5 : -2;
    const double beta = c == 0 ? 0.5 : 3;
    // Two sums of 18 terms, with a square each in the second, and a root, a quotient, a product and
    // a sum: fewer than 64 roundings on our side and as many on the other, of numbers below 8.
    const double bound = 128 * 0x1p-53 * 8;
    for (Index i = 0; i < n * cells; ++i) {
      const Index k = at(i / cells, i % cells);
      const long double h = (x[k] - mean) / std::sqrt(biased + 1e-3L);
      EXPECT_NEAR(y[k], static_cast<double>(h * gamma + beta), bound);
      const double by_running = (x[k] - new_mean) / std::sqrt(new_var + 1e-3);
      EXPECT_NEAR(inferred[k], by_running * gamma + beta, bound);
    }
  }
}

TEST(BatchNorm, UsedTwiceInAPassMovesTwice) {
  BasicBatchNorm<double> norm(1, {.momentum = 0.5});
  auto pass = Pass<double>::training(Key(1));
  const Tensor<double> x(Shape{2, 1}, {1.0, 3.0});  // mean 2
  norm(x, pass);
  norm(x, pass);
  apply_updates(norm, pass);
  EXPECT_EQ(norm.running_mean.value[0], 1.5);
}

TEST(LayerNorm, OverChannelsNormalisesEachCell) {
  const Tensor<double> x = spread({2, 3, 2, 2});
  const BasicLayerNorm<double> norm(Shape{3}, {.epsilon = 0, .channels = true});
  const Tensor<double> y = norm(x).tensor();
  for (Index sample = 0; sample < 2; ++sample) {
    for (Index cell = 0; cell < 4; ++cell) {
      const auto at = [&](Index c) { return (sample * 3 + c) * 4 + cell; };
      const double mean = (x[at(0)] + x[at(1)] + x[at(2)]) / 3;
      double var = 0;
      for (Index c = 0; c < 3; ++c) {
        var += (x[at(c)] - mean) * (x[at(c)] - mean) / 3;
      }
      for (Index c = 0; c < 3; ++c) {
        // Sums of 3 terms, squares, a root and a quotient: fewer than 24 roundings on either side,
        // of results below 2.
        EXPECT_NEAR(y[at(c)], (x[at(c)] - mean) / std::sqrt(var), 48 * 0x1p-53 * 2);
      }
    }
  }
}

// --- Mistakes ------------------------------

ErrorCode code_of(const std::function<void()>& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const Error& error) {
    if (text != nullptr) {
      *text = error.what();
    }
    return error.code();
  }
  return ErrorCode::none;
}

TEST(LayerErrors, SayWhatIsWrong) {
  EXPECT_EQ(code_of([] { Conv(0, 3); }), ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([] { Conv(3, 4, {.groups = 2}); }), ErrorCode::channels_not_divisible);
  EXPECT_EQ(code_of([] { Conv(3, 4, {.kernel = 0}); }), ErrorCode::invalid_kernel);
  EXPECT_EQ(code_of([] { GroupNorm(3, 4); }), ErrorCode::channels_not_divisible);
  EXPECT_EQ(code_of([] { GroupNorm(0, 4); }), ErrorCode::invalid_groups);
  EXPECT_EQ(code_of([] { GroupNorm(1, 0); }), ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([] { Dropout(1.0); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { BatchNorm(2, {.momentum = 2}); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { Branches(std::vector<Layer<float>>()); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { Sequential().add("a.b", Relu()); }), ErrorCode::invalid_option);
  auto training = Pass<float>::training(Key(1));
  EXPECT_EQ(code_of([&] {
              BatchNorm(2)(Tensor<float>(Shape{1, 2}), training);
            }),
            ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([&] {
              BatchNorm(2)(Tensor<float>(Shape{4, 3}), training);
            }),
            ErrorCode::channel_mismatch);
  EXPECT_EQ(code_of([] {
              MaxPool({.kernel = 2})(Tensor<float>(Shape{4, 3}));
            }),
            ErrorCode::rank_mismatch);
}

TEST(LayerErrors, NameTheLayerOfAModel) {
  Sequential net;
  net.add("stem", Conv(1, 4));
  net.add("block", Residual(Sequential{Relu(), Conv(3, 4)}));
  std::string text;
  EXPECT_EQ(code_of(
                [&] {
                  infer(net, Tensor<float>(Shape{1, 1, 4, 4}));
                },
                &text),
            ErrorCode::channel_mismatch);
  EXPECT_EQ(text.rfind("layer at \"block.body.1\": conv", 0), 0U) << text;
}

TEST(LayerErrors, OfDescriptions) {
  const auto code = [](const char* text) { return code_of([&] { build_layer<float>(text); }); };
  EXPECT_EQ(code(R"({"layer": "convolution"})"), ErrorCode::unknown_model);
  for (const char* text : {R"({"in": 3})",
                           R"(["layer"])",
                           R"({"layer": "conv", "in": 3})",
                           R"({"layer": "conv", "in": 3, "out": "4"})",
                           R"({"layer": "conv", "in": 3, "out": 1.5})",
                           R"({"layer": "conv", "in": 3, "out": 4, "strid": 2})",
                           R"({"layer": "conv", "in": 3, "out": 4, "kernel": []})",
                           R"({"layer": "conv", "in": 3, "out": 4, "padding": "some"})",
                           R"({"layer": "conv", "in": 3, "out": 4, "bias": 1})",
                           R"({"layer": "relu", "slope": 1})",
                           R"({"layer": "sequential", "layers": {}})",
                           R"({"layer": "sequential", "names": ["a"], "layers": []})",
                           R"({"layer": "residual"})",
                           R"({"layer": "relu"} x)",
                           R"({"layer": "relu")",
                           R"({"layer": nul})",
                           ""}) {
    EXPECT_EQ(code(text), ErrorCode::bad_file) << text;
  }
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  EXPECT_EQ(code(deep.c_str()), ErrorCode::bad_file);
}

TEST(LayerErrors, AFunctionOfTheProgramRunsButHasNoDescription) {
  const Layer<float> twice([](const Value<float>& x) { return x + x; });
  EXPECT_EQ(infer(twice, Tensor<float>(Shape{1}, 2.0f))[0], 4);
  EXPECT_EQ(code_of([&] { twice.describe(); }), ErrorCode::unknown_model);
}

}  // namespace
}  // namespace fenestra::nn
