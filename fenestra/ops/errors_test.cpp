// Every invalid geometry of the contract, operator by operator: the code, the argument, the axis,
// and a text with the shapes, the numbers and a fix.
#include <fenestra/ops/conv/op.hpp>
#include <fenestra/ops/conv_transpose/op.hpp>
#include <fenestra/ops/max_unpool/op.hpp>
#include <fenestra/ops/pool/adaptive_avg/op.hpp>
#include <fenestra/ops/pool/adaptive_max/op.hpp>
#include <fenestra/ops/pool/avg/op.hpp>
#include <fenestra/ops/pool/lp/op.hpp>
#include <fenestra/ops/pool/max/op.hpp>
#include <fenestra/ops/pool/smooth_max/op.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace fenestra {
namespace {

struct Case {
  std::string call;  ///< a problem string, or the call in words
  ErrorCode code;
  std::string_view argument;
  int axis;
  std::vector<std::string> says;  ///< parts of the text
};

void expect_error(std::string_view op, const Case& c, const std::function<void()>& call) {
  SCOPED_TRACE(std::string(op) + " " + c.call);
  try {
    call();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(code_name(error.code()), code_name(c.code)) << text;
    EXPECT_EQ(error.argument(), c.argument) << text;
    EXPECT_EQ(error.axis(), c.axis) << text;
    EXPECT_EQ(error.op(), op);
    EXPECT_EQ(text.substr(0, op.size() + 1), std::string(op) + ":");
    EXPECT_NE(text.find("\n  fix: "), std::string::npos) << text;
    for (const std::string& part : c.says) {
      EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << text;
    }
  }
}

template <class Op>
void expect_errors(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    expect_error(Op::name, c, [&] { Op::parse(c.call); });
  }
}

using enum ErrorCode;

TEST(Errors, TheConvolutionOfTheDesignDocumentReadsAsItSays) {
  try {
    conv_geometry({8, 3, 2, 64}, {16, 3, 3, 3}, std::nullopt, {.stride = 2});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "conv: x (N,C,H,W) = (8, 3, 2, 64), w = (16, 3, 3, 3), stride 2, padding 0, "
                 "dilation 1, groups 1\n"
                 "  height: floor((2 + 0 + 0 - 3)/2) + 1 = 0   no window fits\n"
                 "  fix: padding >= 1 on height, or input height >= 3");
    EXPECT_EQ(error.fault(), (Fault{kernel_exceeds_input, Argument::kernel, 0, 3, 2}));
  }
}

TEST(Errors, OfAConvolution) {
  expect_errors<Conv>({
      {"x=1x3x5x5 w=4x3x0x3",
       invalid_kernel,
       "kernel",
       0,
       {"(1, 3, 5, 5)", "(4, 3, 0, 3)", "height: kernel = 0", "kernel >= 1"}},
      {"x=1x3x5x5 w=4x3x3x-2", invalid_kernel, "kernel", 1, {"width: kernel = (-2)"}},
      {"x=1x3x5x5 w=4x3x3x3 stride=1,0",
       invalid_stride,
       "stride",
       1,
       {"stride 1,0", "width: stride = 0", "stride >= 1 on width"}},
      {"x=1x3x5x5 w=4x3x3x3 stride=-1", invalid_stride, "stride", 0, {"height: stride = (-1)"}},
      {"x=1x3x5x5 w=4x3x3x3 dilation=0",
       invalid_dilation,
       "dilation",
       0,
       {"dilation = 0, needed >= 1"}},
      {"x=1x3x5x5 w=4x3x3x3 padding=-1",
       invalid_padding,
       "padding",
       0,
       {"padding -1", "padding = (-1), needed >= 0"}},
      {"x=1x3x5x5 w=4x3x3x3 padding=0:0,0:-3",
       invalid_padding,
       "padding",
       1,
       {"padding 0:0,0:-3", "width: padding = (-3)"}},
      {"x=1x3x5x5 w=4x3x3x3 groups=0", invalid_groups, "groups", -1, {"groups = 0, needed >= 1"}},
      {"x=1x3x5x5 w=4x3x3x3 groups=-3", invalid_groups, "groups", -1, {"groups = -3"}},
      {"x=1x3x5x5 w=4x3x3x3 groups=2",
       channels_not_divisible,
       "x",
       -1,
       {"input channels 3", "groups 2", "groups that divide 3"}},
      {"x=1x4x5x5 w=3x2x3x3 groups=2",
       channels_not_divisible,
       "w",
       -1,
       {"output channels 3", "groups 2"}},
      {"x=1x3x5x5 w=4x2x3x3", channel_mismatch, "w", -1, {"x has 3 channels, w takes 2"}},
      {"x=1x4x5x5 w=4x4x3x3 groups=2", channel_mismatch, "w", -1, {"x has 4 channels, w takes 8"}},
      {"x=5x5 w=4x3x3x3",
       rank_mismatch,
       "x",
       -1,
       {"x has 2 axes, needed 4 (a batch) or 3 (one sample)"}},
      {"x=1x1x3x5x5 w=4x3x3x3", rank_mismatch, "x", -1, {"x has 5 axes"}},
      {"x=1x3x5 w=4x3", rank_mismatch, "w", -1, {"w has 2 axes, needed 3 to 10"}},
      {"x=1x3x5x5 w=4x3x3x3 stride=1,1,1",
       rank_mismatch,
       "stride",
       -1,
       {"stride has 3 values for 2 axes"}},
      {"x=1x3x5x5 w=4x3x3x3 padding=1,1,1",
       rank_mismatch,
       "padding",
       -1,
       {"padding has 3 values for 2 axes"}},
      {"x=1x3x5x5 w=4x3x3x3 dilation=1,1,1",
       rank_mismatch,
       "dilation",
       -1,
       {"dilation has 3 values for 2 axes"}},
      {"x=-1x3x5x5 w=4x3x3x3", invalid_extent, "x", -1, {"x has the extent -1"}},
      {"x=1x3x5x5 w=-4x3x3x3", invalid_extent, "w", -1, {"w has the extent -4"}},
      {"x=1x3x0x5 w=4x3x3x3", invalid_extent, "x", 0, {"height: input extent = 0"}},
      {"x=1x3x5x5 w=4x3x3x3 dilation=1,4",
       kernel_exceeds_input,
       "kernel",
       1,
       {"width: floor((5 + 0 + 0 - 9)/1) + 1 = (-3)",
        "padding >= 2 on width, or input width >= 9"}},
      {"x=1x3x5x5 w=4x3x3x3 padding=0:0,1:0 dilation=1,4",
       kernel_exceeds_input,
       "kernel",
       1,
       {"floor((5 + 1 + 0 - 9)/1) + 1 = (-2)", "input width >= 8"}},
      {"x=1x3x5x9000000000000000000 w=4x3x1x9000000000000000000",
       overflow,
       "padding",
       1,
       {"do not fit into 64 bits"}},
      {"x=1x3x4000000000x4000000000 w=4x3x1x1", overflow, "x", -1, {"number of elements"}},
  });
  expect_error("conv",
               {"bias (3,) for 4 channels",
                bias_mismatch,
                "b",
                -1,
                {"b = (3,)", "b has 3 elements", "b of shape (4,)"}},
               [] {
                 conv_geometry({1, 3, 5}, {4, 3, 2}, Shape{3}, {});
               });
  expect_error("conv", {"bias (4, 1)", bias_mismatch, "b", -1, {"b = (4, 1)", "needed 4"}}, [] {
    conv_geometry({1, 3, 5}, {4, 3, 2}, Shape{4, 1}, {});
  });
}

TEST(Errors, NameTheAxesByRankAndLayout) {
  expect_errors<Conv>({
      {"x=1x3x5 w=4x3x7", kernel_exceeds_input, "kernel", 0, {"x (N,C,L) = (1, 3, 5)", "length: "}},
      {"x=3x5 w=4x3x7", kernel_exceeds_input, "kernel", 0, {"x (C,L) = (3, 5)"}},
      {"x=1x3x2x5x5 w=4x3x3x3x3", kernel_exceeds_input, "kernel", 0, {"x (N,C,D,H,W)", "depth: "}},
      {"x=1x3x5x5x5x2 w=4x3x3x3x3x3",
       kernel_exceeds_input,
       "kernel",
       3,
       {"x (N,C,S0,S1,S2,S3)", "axis 3: "}},
      {"x=1x5x2x3 w=3x3x3x4 layout=channels_last",
       kernel_exceeds_input,
       "kernel",
       1,
       {"x (N,H,W,C) = (1, 5, 2, 3)"}},
  });
}

TEST(Errors, OfATransposedConvolution) {
  expect_errors<ConvTranspose>({
      {"x=1x3x5 w=3x4x0", invalid_kernel, "kernel", 0, {"(1, 3, 5)", "(3, 4, 0)"}},
      {"x=1x3x5 w=3x4x3 stride=0", invalid_stride, "stride", 0, {"stride = 0"}},
      {"x=1x3x5 w=3x4x3 dilation=-2", invalid_dilation, "dilation", 0, {"dilation = (-2)"}},
      {"x=1x3x5 w=3x4x3 padding=-1", invalid_padding, "padding", 0, {"padding = (-1)"}},
      {"x=1x3x5 w=3x4x3 groups=0", invalid_groups, "groups", -1, {"groups = 0"}},
      {"x=1x3x5 w=3x4x3 groups=2", channels_not_divisible, "x", -1, {"channels 3", "groups 2"}},
      {"x=1x2x5 w=3x4x3", channel_mismatch, "w", -1, {"x has 2 channels, w takes 3"}},
      {"x=1x3x5x5 w=3x4x3 ", rank_mismatch, "x", -1, {"x has 4 axes, needed 3"}},
      {"x=1x3x5 w=3x4x3 output_padding=1,1",
       rank_mismatch,
       "output_padding",
       -1,
       {"2 values for 1 axes"}},
      {"x=1x3x5 w=3x4x3 output_size=9,9",
       rank_mismatch,
       "output_size",
       -1,
       {"2 values for 1 axes"}},
      {"x=1x3x0 w=3x4x3", invalid_extent, "x", 0, {"input extent = 0"}},
      {"x=1x3x5 w=3x4x3 output_padding=-1",
       invalid_output_padding,
       "output_padding",
       0,
       {"output_padding = (-1)", "between 0 and 0"}},
      {"x=1x3x5 w=3x4x3 stride=2 output_padding=2",
       invalid_output_padding,
       "output_padding",
       0,
       {"0 <= output_padding < max(stride 2, dilation 1)",
        "output_padding between 0 and 1 on length"}},
      {"x=1x3x5 w=3x4x3 stride=2 dilation=3 output_padding=3",
       invalid_output_padding,
       "output_padding",
       0,
       {"between 0 and 2"}},
      {"x=1x3x5 w=3x4x3 stride=2 output_size=10",
       invalid_output_size,
       "output_size",
       0,
       {"output_size = 10, (5 - 1)*2 - 0 - 0 + 3 = 11", "output_size between 11 and 12"}},
      {"x=1x3x5 w=3x4x3 stride=2 output_size=13",
       invalid_output_size,
       "output_size",
       0,
       {"output_size = 13"}},
      {"x=1x3x1 w=3x4x3 padding=2 output_size=1",
       invalid_output_size,
       "output_size",
       0,
       {"= (-1) without output padding", "less padding on length"}},
      {"x=1x3x2 w=3x4x3 padding=2",
       empty_output,
       "padding",
       0,
       {"(2 - 1)*1 - 2 - 2 + 3 + 0 = 0   no output is left",
        "padding smaller by 1 in total on length"}},
      {"x=1x3x1 w=3x4x1 padding=4611686018427387904",
       empty_output,
       "padding",
       0,
       {"far smaller padding"}},
      {"x=1x3x9000000000000000000 w=3x4x3 stride=2",
       overflow,
       "output_padding",
       0,
       {"do not fit into 64 bits"}},
      {"x=1x3x4000000000x4000000000 w=3x4x1x1", overflow, "x", -1, {"number of elements"}},
  });
  expect_error(
      "conv_transpose",
      {"bias (3,) for 4 channels", bias_mismatch, "b", -1, {"b has 3 elements", "b of shape (4,)"}},
      [] {
        conv_transpose_geometry({1, 3, 5}, {3, 4, 2}, Shape{3}, {});
      });
}

/// What every pool with fixed windows refuses.
template <class Op>
void expect_pool_errors() {
  expect_errors<Op>({
      {"x=1x3x5x5 kernel=0",
       invalid_kernel,
       "kernel",
       0,
       {"x (N,C,H,W) = (1, 3, 5, 5)", "height: kernel = 0", "kernel >= 1"}},
      {"x=1x3x5x5 kernel=2,-1",
       invalid_kernel,
       "kernel",
       1,
       {"kernel 2,-1", "width: kernel = (-1)"}},
      {"x=1x3x5x5 kernel=2 stride=0", invalid_stride, "stride", 0, {"stride = 0"}},
      {"x=1x3x5x5 kernel=2 dilation=1,0", invalid_dilation, "dilation", 1, {"dilation = 0"}},
      {"x=1x3x5x5 kernel=2 padding=0,-1",
       invalid_padding,
       "padding",
       1,
       {"padding = (-1), needed >= 0"}},
      {"x=1x3x5x5 kernel=2,6",
       kernel_exceeds_input,
       "kernel",
       1,
       {"floor((5 + 0 + 0 - 6)/6) + 1 = 0   no window fits",
        "padding >= 1 on width, or input width >= 6"}},
      {"x=1x3x5x5 kernel=7 stride=2 ceil_mode=true",
       kernel_exceeds_input,
       "kernel",
       0,
       {"ceil_mode",
        "floor((5 + 0 + 0 - 7 + 1)/2) + 1 = 0   no window fits",
        "padding >= 1 on height, or input height >= 6"}},
      {"x=1x3x0x5 kernel=2", invalid_extent, "x", 0, {"input extent = 0"}},
      {"x=1x-3x5x5 kernel=2", invalid_extent, "x", -1, {"extent -3"}},
      {"x=1x3x5x5 kernel=2,2,2 batched=true", rank_mismatch, "kernel", -1, {"3 values for 2 axes"}},
      {"x=1x3 kernel=2", rank_mismatch, "kernel", -1, {"number of spatial axes is 0"}},
      {"x=5 kernel=2,2",
       rank_mismatch,
       "x",
       -1,
       {"x has 1 axes, needed 4 (a batch) or 3 (one sample)"}},
      {"x=1x3x5x5 kernel=2 stride=1,1,1",
       rank_mismatch,
       "stride",
       -1,
       {"stride has 3 values for 2 axes"}},
      {"x=1x3x5x5 kernel=2 padding=1,1,1",
       rank_mismatch,
       "padding",
       -1,
       {"padding has 3 values for 2 axes"}},
      {"x=1x3x5x5 kernel=2 dilation=1,1,1",
       rank_mismatch,
       "dilation",
       -1,
       {"dilation has 3 values for 2 axes"}},
      {"x=1x3x5x9000000000000000000 kernel=2,9000000000000000000",
       overflow,
       "padding",
       1,
       {"do not fit into 64 bits"}},
      {"x=1x3x4000000000x4000000000 kernel=2", overflow, "x", -1, {"number of elements"}},
  });
}

TEST(Errors, OfEveryPoolWithFixedWindows) {
  expect_pool_errors<MaxPool>();
  expect_pool_errors<AvgPool>();
  expect_pool_errors<SmoothMaxPool>();
  expect_pool_errors<LpPool>();
}

TEST(Errors, OfTheOptionsThatOnePoolHas) {
  expect_errors<AvgPool>({
      {"x=1x3x5 kernel=2 divisor_override=0",
       invalid_divisor,
       "divisor_override",
       -1,
       {"divisor_override = 0", "another divisor"}},
  });
  expect_errors<SmoothMaxPool>({
      {"x=1x3x5 kernel=2 beta=0", invalid_beta, "beta", -1, {"beta is zero or not finite"}},
      {"x=1x3x5 kernel=2 beta=inf", invalid_beta, "beta", -1, {"finite beta"}},
      {"x=1x3x5 kernel=2 beta=nan", invalid_beta, "beta", -1, {"finite beta"}},
  });
  expect_errors<LpPool>({
      {"x=1x3x5 kernel=2 p=0", invalid_exponent, "p", -1, {"p > 0"}},
      {"x=1x3x5 kernel=2 p=-2", invalid_exponent, "p", -1, {"p > 0"}},
      {"x=1x3x5 kernel=2 p=inf", invalid_exponent, "p", -1, {"finite"}},
  });
}

template <class Op>
void expect_adaptive_errors() {
  expect_errors<Op>({
      {"x=1x3x5x5 output_size=0",
       invalid_output_size,
       "output_size",
       0,
       {"height: output_size = 0, needed >= 1"}},
      {"x=1x3x5x5 output_size=2,-1",
       invalid_output_size,
       "output_size",
       1,
       {"output_size 2,-1", "width: output_size = (-1)"}},
      {"x=1x3x5x0 output_size=2", invalid_extent, "x", 1, {"input extent = 0"}},
      {"x=1x3x5x5 output_size=2,2,2 batched=true",
       rank_mismatch,
       "output_size",
       -1,
       {"3 values for 2 axes"}},
      {"x=1x3 output_size=2", rank_mismatch, "kernel", -1, {"number of spatial axes is 0"}},
      {"x=5x5x5x5x5 output_size=2,2", rank_mismatch, "x", -1, {"x has 5 axes"}},
      {"x=1x3x5x4000000000 output_size=1,4000000000",
       overflow,
       "output_size",
       1,
       {"do not fit into 64 bits"}},
  });
}

TEST(Errors, OfTheAdaptivePools) {
  expect_adaptive_errors<AdaptiveMaxPool>();
  expect_adaptive_errors<AdaptiveAvgPool>();
}

TEST(Errors, OfAnUnpool) {
  expect_errors<MaxUnpool>({
      {"x=1x3x5x5", rank_mismatch, "kernel", -1, {"kernel"}},
      {"x=1x3x5x5 kernel=0", invalid_kernel, "kernel", 0, {"kernel = 0"}},
      {"x=1x3x5x5 kernel=2 stride=0", invalid_stride, "stride", 0, {"stride = 0"}},
      {"x=1x3x5x5 kernel=2 padding=-1", invalid_padding, "padding", 0, {"padding = (-1)"}},
      {"x=1x3x1x5 kernel=2 padding=1",
       empty_output,
       "padding",
       0,
       {"(1 - 1)*2 - 1 - 1 + 2 + 0 = 0"}},
      {"x=1x3x5x5 output_size=4,0", invalid_output_size, "output_size", 1, {"output_size = 0"}},
      {"x=1x3x5x5 output_size=4,4,4 batched=true",
       rank_mismatch,
       "output_size",
       -1,
       {"3 values for 2 axes"}},
      {"x=1x3x5x0 kernel=2", invalid_extent, "x", 1, {"input extent = 0"}},
      {"x=1x3x5 kernel=9000000000000000000 stride=9000000000000000000",
       overflow,
       "output_padding",
       0,
       {"64 bits"}},
  });
}

TEST(Errors, ATensorOfAnotherShapeThanTheGeometrysIsRefusedByEveryFunctionThatTakesOne) {
  const auto g = conv_geometry({1, 2, 5}, {3, 2, 2}, std::nullopt, {});
  const Tensor<double> wrong(Shape{1, 2, 4});
  const Tensor<double> x(g.x_shape());
  const Tensor<double> w(g.w_shape());
  const Tensor<double> y(g.y_shape());
  const auto expect = [](std::string_view op,
                         const std::string& names,
                         const std::function<void()>& call) {
    expect_error(op, {names, shape_mismatch, "", -1, {names, "the geometry needs", "pass "}}, call);
  };
  expect("conv", "x = (1, 2, 4)", [&] { spec::conv<double>(wrong, w, nullptr, g); });
  expect("conv", "w = (1, 2, 4)", [&] { spec::conv<double>(x, wrong, nullptr, g); });
  expect("conv", "b = (1, 2, 4)", [&] { spec::conv<double>(x, w, &wrong, g); });
  expect("conv_input_grad", "y_bar = (1, 2, 4)", [&] { spec::conv_input_grad(wrong, w, g); });
  expect("conv_weight_grad", "y_bar = (1, 2, 4)", [&] { spec::conv_weight_grad(x, wrong, g); });
  const auto pool = max_pool_geometry({1, 2, 5}, {.kernel = 2});
  const Tensor<Index> indices(pool.pool.y_shape());
  expect("max_pool", "x = (1, 2, 4)", [&] { spec::max_pool(wrong, pool); });
  expect("max_pool_vjp", "y_bar = (1, 2, 4)", [&] { spec::max_pool_vjp(indices, wrong, pool); });
  expect("max_pool_jvp", "x_dot = (1, 2, 4)", [&] { spec::max_pool_jvp(indices, wrong, pool); });
  const auto mean = avg_pool_geometry({1, 2, 5}, {.kernel = 2});
  expect("avg_pool", "x = (1, 2, 4)", [&] { spec::avg_pool(wrong, mean); });
  expect("avg_pool_vjp", "y_bar = (1, 2, 4)", [&] { spec::avg_pool_vjp(wrong, mean); });
  const auto smooth = smooth_max_pool_geometry({1, 2, 5}, {.kernel = 2});
  const Tensor<double> beta(Shape{}, 1.0);
  expect("smooth_max_pool", "x = (1, 2, 4)", [&] { spec::smooth_max_pool(wrong, beta, smooth); });
  expect("smooth_max_pool", "beta = (1, 2, 4)", [&] { spec::smooth_max_pool(x, wrong, smooth); });
  expect("smooth_max_pool_vjp", "y_bar = (1, 2, 4)", [&] {
    spec::smooth_max_pool_vjp(x, beta, wrong, smooth);
  });
  expect("smooth_max_pool_vjp", "beta = (1, 2, 4)", [&] {
    spec::smooth_max_pool_vjp(x, wrong, Tensor<double>(smooth.pool.y_shape()), smooth);
  });
  expect("smooth_max_pool_jvp", "beta = (1, 2, 4)", [&] {
    spec::smooth_max_pool_jvp(x, wrong, x, beta, smooth);
  });
  expect("smooth_max_pool_jvp", "beta_dot = (1, 2, 4)", [&] {
    spec::smooth_max_pool_jvp(x, beta, x, wrong, smooth);
  });
  const auto lp = lp_pool_geometry({1, 2, 5}, {.kernel = 2});
  expect("lp_pool", "x = (1, 2, 4)", [&] { spec::lp_pool(wrong, lp); });
  expect("lp_pool_vjp", "y_bar = (1, 2, 4)", [&] { spec::lp_pool_vjp(x, wrong, lp); });
  expect("lp_pool_jvp", "x_dot = (1, 2, 4)", [&] { spec::lp_pool_jvp(x, wrong, lp); });
}

}  // namespace
}  // namespace fenestra
