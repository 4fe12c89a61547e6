// Epilogues: which readers are taken in, which not, and that bits stay.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/epilogue.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/simplify.hpp>
#include <fenestra/graph/testing_test.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/ops/conv/fused.hpp>
#include <fenestra/ops/conv/op.hpp>
#include <fenestra/spec/random.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fenestra::graph {
namespace {

TEST(Epilogue, SumAndActivationBecomePartOfTheConvolution) {
  const Graph graph = simplify(trace<float>(
      [](const auto& x, const auto& w, const auto& b, const auto& r) {
        return clip(add(r, conv(x, w, b)), 0, 6);
      },
      Shape{2, 3, 4, 4},
      Shape{5, 3, 1, 1},
      Shape{5},
      Shape{2, 5, 4, 4}));
  const Graph fused = fuse_epilogues(graph);
  verify(fused);
  EXPECT_EQ(to_string(fused),
            "%0 = input \"x0\" : f32 (2, 3, 4, 4)\n"
            "%1 = input \"x1\" : f32 (5, 3, 1, 1)\n"
            "%2 = input \"x2\" : f32 (5,)\n"
            "%3 = input \"x3\" : f32 (2, 5, 4, 4)\n"
            "%4 = conv+add+clip(%0, %1, %2, %3) {x=2x3x4x4 w=5x3x1x1 stride=1,1 padding=0,0 "
            "dilation=1,1 groups=1, 0 to 6} : f32 (2, 5, 4, 4)\n"
            "output \"y\" = %4\n");
}

template <class F>
std::size_t fused_nodes(const F& f) {
  const Graph graph = fuse_epilogues(
      simplify(trace<float>(f, Shape{2, 3, 4, 4}, Shape{3, 3, 1, 1}, Shape{3, 3, 1, 1})));
  verify(graph);
  return static_cast<std::size_t>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
        return node.operation && node.operation->name().find('+') != std::string_view::npos;
      }));
}

TEST(Epilogue, NothingIsTakenInThatSomebodyElseReads) {
  EXPECT_EQ(fused_nodes([](const auto& x, const auto& w, const auto&) {
              const auto y = conv(x, w);
              return mul(y, sigmoid(y));
            }),
            0u);
}

TEST(Epilogue, OfTwoConvolutionsTheLaterOneTakesInTheSum) {
  EXPECT_EQ(fused_nodes([](const auto& x, const auto& w, const auto& v) {
              return relu(add(conv(x, w), conv(x, v)));
            }),
            1u);
}

TEST(Epilogue, OneActivationAfterAtMostOneSumIsTakenIn) {
  EXPECT_EQ(fused_nodes(
                [](const auto& x, const auto& w, const auto&) { return add(relu(conv(x, w)), x); }),
            1u);
  EXPECT_EQ(fused_nodes([](const auto& x, const auto& w, const auto&) {
              return tanh(relu(add(add(conv(x, w), x), x)));
            }),
            1u);
}

TEST(Epilogue, ASumWithAnotherShapeAndOtherDirectionsStay) {
  EXPECT_EQ(fused_nodes([](const auto& x, const auto& w, const auto& v) {
              return add(conv(x, w), reshape(sum(v), Shape{1}));
            }),
            0u);
  EXPECT_EQ(fused_nodes([](const auto& x, const auto& w, const auto&) {
              return relu(conv_transpose(x, w));
            }),
            0u);
}

/// An activation behind a sum behind a convolution, compiled on the named candidate, against the
/// same one by one.
template <class T>
void expect_same_bits(const ConvGeometry& g, std::string_view kernel, int activation, int count) {
  const kernels::ForcedKernel forced(kernel);
  const Tensor<T> x = sample_tensor<T>(g.x_shape(), 1);
  const Tensor<T> w = sample_tensor<T>(g.w_shape(), 2);
  const Tensor<T> b = sample_tensor<T>(Shape{g.out_channels}, 3);
  const Tensor<T> r = sample_tensor<T>(g.y_shape(), 4);
  const ConvPrimitive primitive{
      {}, ConvDirection::forward, fenestra::detail::without_bias(g), true};
  const auto f = [&](const auto& x_, const auto& w_, const auto& b_, const auto& r_) {
    const auto y = apply(primitive, {x_, w_, b_});
    switch (activation % 7) {
      case 0: return relu(y);
      case 1: return clip(add(y, r_), 0, 6);
      case 2: return leaky_relu(add(r_, y), 0.1);
      case 3: return sigmoid(y);
      case 4: return silu(add(y, r_));
      case 5: return hard_sigmoid(y);
      default: return add(y, r_);
    }
  };
  set_threads(count);
  const auto program = compile<T>(f, x.shape(), w.shape(), b.shape(), r.shape());
  Context<T> context(program);
  EXPECT_TRUE(program.run(context, x, w, b, r)[0] == f(x, w, b, r))
      << kernel << " on " << count << " threads, activation " << activation % 7 << ": "
      << to_string(g);
  EXPECT_EQ(program.plan().steps().size(), 1u) << program.explain();
}

TEST(Epilogue, IsThereWhereAConvolutionHasNoTerms) {
  const auto f = [](const auto& x, const auto& w, const auto& b, const auto& r) {
    return relu(add(conv(x, w, b), r));
  };
  for (const Index side : {1, 3}) {  // a plain product, and windows
    const Tensor<float> x(Shape{2, 0, 5, 5});
    const Tensor<float> w(Shape{3, 0, side, side});
    const Tensor<float> b = sample_tensor<float>(Shape{3}, 1);
    const Tensor<float> r = sample_tensor<float>(Shape{2, 3, 6 - side, 6 - side}, 2);
    const auto program = compile<float>(f, x.shape(), w.shape(), b.shape(), r.shape());
    Context<float> context(program);
    EXPECT_TRUE(program.run(context, x, w, b, r)[0] == f(x, w, b, r)) << side;
  }
}

TEST(Epilogue, BitsAreThoseOfTheOperatorsOneByOneOnEveryCandidate) {
  const int before = threads();
  Random random(81);
  std::set<std::string> taken;
  int activation = 0;
  for (int i = 0; i < 120 && !testing::Test::HasFailure(); ++i) {
    const ConvGeometry g = Conv::random(random);
    if (g.y_shape().elements().value_or(0) == 0 || g.w_shape().elements().value_or(0) == 0) {
      continue;
    }
    for (const KernelChoice& choice : conv_kernels(fenestra::detail::without_bias(g))) {
      if (choice.direction != "forward" || !choice.refusal.empty()) {
        continue;
      }
      taken.insert(choice.name);
      for (const int count : {1, 2, 3, 7}) {
        if (choice.name.find("_f32_") != std::string::npos) {
          expect_same_bits<float>(g, choice.name, activation, count);
        } else {
          expect_same_bits<double>(g, choice.name, activation, count);
        }
      }
      ++activation;
    }
  }
  set_threads(before);
  for (const char* name :
       {"conv_f32_gemm", "conv_f64_gemm", "conv_f32_direct", "conv_f64_direct"}) {
    EXPECT_TRUE(taken.contains(name)) << name;
  }
}

TEST(Epilogue, PiecesOfTheBatchCutTheResidualToo) {
  const auto f = [](const auto& x, const auto& w) {
    const auto y = relu(conv(x, w, {.padding = 1}));
    return relu(add(conv(y, w, {.padding = 1}), x));
  };
  const Tensor<double> x = sample_tensor<double>({5, 4, 6, 6}, 1);
  const Tensor<double> w = sample_tensor<double>({4, 4, 3, 3}, 2);
  const auto program = compile<double>(
      f, x.shape(), w.shape(), CompileOptions{.threads = 2, .batch_tiling = kSmallestPieces});
  Context<double> context(program);
  EXPECT_EQ(program.plan().loops().size(), 1u);
  EXPECT_EQ(program.plan().steps().size(), 2u);
  EXPECT_TRUE(program.run(context, x, w)[0] == f(x, w));
}

TEST(Epilogue, WhatDerivativesReadIsNotTakenIn) {
  const Tensor<double> x = sample_tensor<double>({2, 3, 5, 5}, 1);
  const Tensor<double> w = sample_tensor<double>({4, 3, 3, 3}, 2);
  const auto check = [&](const auto& f, std::size_t activations) {
    const auto program = compile<double>(
        f, x.shape(), w.shape(), CompileOptions{.run = false, .value_and_grad = true});
    Context<double> context(program);
    const auto got = program.value_and_grad(context, x, w);
    const auto [y, bars] = value_and_grad(f, x, w);
    EXPECT_TRUE(got[0] == y);
    EXPECT_TRUE(got[1] == std::get<0>(bars));
    EXPECT_TRUE(got[2] == std::get<1>(bars));
    const Graph& graph = program.plan(ProgramForm::value_and_grad).graph();
    EXPECT_EQ(count_named(graph, "relu") + count_named(graph, "clip"), activations);
  };
  // The gate of relu reads the result, that of clip what it was given.
  check([](const auto& a, const auto& b) { return sum(relu(conv(a, b))); }, 0);
  check([](const auto& a, const auto& b) { return sum(clip(conv(a, b), -0.5, 0.5)); }, 1);
}

TEST(Epilogue, AFusedConvolutionHasTheDerivativesOfItsParts) {
  const Tensor<double> x = sample_tensor<double>({2, 3, 5, 5}, 1);
  const Tensor<double> w = sample_tensor<double>({4, 3, 3, 3}, 2);
  const Tensor<double> r = sample_tensor<double>({2, 4, 3, 3}, 3);
  const ConvGeometry g = conv_geometry(x.shape(), w.shape(), std::nullopt, {});
  const ConvPrimitive plain{{}, ConvDirection::forward, g, false};
  const FusedConvPrimitive fused{
      {},
      g,
      false,
      {.sum = ConvEpilogue::Sum::result_first, .activation = UnaryCall{UnaryFunction::silu}},
      "conv+add+silu"};
  using V = fenestra::Value<double>;
  const auto parts = [&](const V& a, const V& b, const V& c) {
    return silu(add(apply(plain, {a, b}), c));
  };
  const auto whole = [&](const V& a, const V& b, const V& c) { return apply(fused, {a, b, c}); };
  const auto loss = [](const auto& f) {
    return [&f](const V& a, const V& b, const V& c) { return sum(f(a, b, c)); };
  };
  const auto [y, bars] = value_and_grad(loss(parts), V(x), V(w), V(r));
  const auto [z, others] = value_and_grad(loss(whole), V(x), V(w), V(r));
  EXPECT_TRUE(y.tensor() == z.tensor());
  EXPECT_TRUE(std::get<0>(bars).tensor() == std::get<0>(others).tensor());
  EXPECT_TRUE(std::get<1>(bars).tensor() == std::get<1>(others).tensor());
  EXPECT_TRUE(std::get<2>(bars).tensor() == std::get<2>(others).tensor());
  const auto dots = tangents(V(sample_tensor<double>(x.shape(), 4)),
                             V(sample_tensor<double>(w.shape(), 5)),
                             V(sample_tensor<double>(r.shape(), 6)));
  EXPECT_TRUE(jvp(parts, primals(V(x), V(w), V(r)), dots).second.tensor() ==
              jvp(whole, primals(V(x), V(w), V(r)), dots).second.tensor());
}

struct Remaining {
  std::size_t relu = 0;
  std::size_t clip = 0;
  std::size_t add = 0;
  friend bool operator==(const Remaining&, const Remaining&) = default;
};

/// What is left of activations and sums when a model is compiled for inference.
Remaining remaining(const std::string& name, const Shape& input) {
  nn::Layer<float> model = nn::make_model<float>(name);
  nn::initialise(model, Key(1));
  const auto program = compile<float>(
      [&](const auto& x) {
        nn::Pass<float> pass = nn::Pass<float>::inference();
        return model(fenestra::Value<float>(x), pass);
      },
      input);
  const Graph& graph = program.plan().graph();
  return {count_named(graph, "relu"), count_named(graph, "clip"), count_named(graph, "add")};
}

TEST(Epilogue, NoActivationBehindAConvolutionIsLeftInKnownNetworks) {
  EXPECT_EQ(remaining("resnet18", {1, 3, 64, 64}), Remaining{});
  EXPECT_EQ(remaining("mobilenet_v2", {1, 3, 64, 64}), Remaining{});
  // The classifier of LeNet has two activations behind products.
  EXPECT_EQ(remaining("lenet", {1, 1, 28, 28}).relu, 2u);
}

}  // namespace
}  // namespace fenestra::graph
