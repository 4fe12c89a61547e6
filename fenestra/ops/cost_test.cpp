// Cost follows what is computed, not the parameters: problems whose strides, dilations, padding,
// kernels or extents are enormous while next to nothing is there to compute. Values, VJP and JVP in
// f32 and f64 are those of the specification within its rounding bound, and neither time nor memory
// grows with the numbers.
#include <fenestra/check/kernel_law.hpp>
#include <fenestra/ops/list.hpp>
#include <fenestra/ops/rules.hpp>

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {
namespace {

/// Processor time of this thread and those it waits for; other work on the machine does not count.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// The largest address space this process had, in KiB; 0 where the system does not say.
Index peak_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "VmPeak:") {
      Index kib = 0;
      status >> kib;
      return kib;
    }
  }
  return 0;
}

/// One call of each direction takes milliseconds, and so much only in a build that checks
/// everything; what is refused here took seconds to hours.
constexpr double kMostSeconds = 0.5;
/// Far more than all operands together, far less than what the parameters would ask for. The first
/// threads of a process reserve addresses of their own, hence not less.
constexpr Index kMostKib = 512 * 1024;

struct Problem {
  std::string_view op;
  std::string_view text;
};

constexpr Problem kProblems[] = {
    {"max_pool", "x=1x1x5 kernel=3 stride=16777216"},
    {"max_pool", "x=1x1x5 kernel=3 stride=2147483648"},
    {"max_pool", "x=1x1x5 kernel=3 stride=4611686018427387904"},
    {"max_pool", "x=2x3x5x7 kernel=3 stride=1073741824,1"},
    {"max_pool", "x=1x1x5 kernel=3 stride=1 padding=same dilation=2147483647"},
    {"max_pool", "x=1x2x5 kernel=3 stride=2147483648 padding=2147483648"},
    {"max_pool", "x=1x2x5 kernel=3 stride=2147483648 padding=2147483648 pad_cells=zero"},
    {"max_pool", "x=1x1x5 kernel=1000000000 stride=1 padding=500000000"},
    {"max_pool", "x=1x1x5 kernel=2147483647 stride=2147483647 ceil_mode=true"},
    {"max_pool", "x=1x40x5 kernel=3 stride=2147483648 layout=channels_last"},
    {"max_pool", "x=1x5x40 kernel=3 padding=same dilation=2147483647 layout=channels_last"},
    {"max_pool", "x=1x1 kernel=2 stride=5 padding=3:2 batched=false pad_cells=zero"},
    {"max_pool", "x=1x1x9 kernel=2 stride=50 padding=30:2"},
    {"max_pool", "x=1x1x20000 kernel=2 stride=1 dilation=10000"},
    {"max_pool", "x=1x1x20000 kernel=60 stride=59 dilation=300"},
    {"max_pool", "x=0x1x1000000000 kernel=3"},
    {"max_pool", "x=0x3x100000x100000 kernel=3 stride=1 padding=1"},
    {"max_pool", "x=1000000000x0x5 kernel=3"},
    {"max_pool", "x=1x0x1000000000 kernel=3"},
    {"avg_pool", "x=1x1x5 kernel=3 stride=16777216"},
    {"avg_pool", "x=1x1x5 kernel=3 stride=2305843009213693952"},
    {"avg_pool", "x=1x1x5 kernel=3 stride=1 padding=same dilation=2147483647"},
    {"avg_pool", "x=1x2x5x4 kernel=3 stride=2147483648,2 padding=2147483648,1"},
    {"avg_pool", "x=1x1x5 kernel=1000000000 stride=1 padding=500000000"},
    {"avg_pool", "x=1x1x5 kernel=1000000000 stride=1 padding=500000000 count_include_pad=false"},
    {"avg_pool", "x=1x1x5 kernel=2147483647 stride=2147483647 ceil_mode=true"},
    {"avg_pool", "x=1x1x20000 kernel=2 stride=1 dilation=10000"},
    {"avg_pool", "x=1x1x20000 kernel=60 stride=59 dilation=300"},
    {"avg_pool", "x=0x1x1000000000 kernel=3"},
    {"avg_pool", "x=1000000000x0x5 kernel=3"},
    {"lp_pool", "x=1x1x5 kernel=3 stride=4611686018427387904"},
    {"lp_pool", "x=1x1x5 kernel=3 stride=1 padding=same dilation=2147483647 p=3"},
    {"lp_pool", "x=1x1x5 kernel=1000000000 stride=1 padding=500000000"},
    {"lp_pool", "x=0x1x1000000000 kernel=3"},
    {"smooth_max_pool", "x=1x1x5 kernel=3 stride=4611686018427387904"},
    {"smooth_max_pool", "x=1x1x5 kernel=3 stride=1 padding=same dilation=2147483647"},
    {"smooth_max_pool", "x=1x1x5 kernel=1000000000 stride=1 padding=500000000 normalised=true"},
    {"smooth_max_pool", "x=1x2x5 kernel=3 stride=2147483648 padding=2147483648 pad_cells=zero"},
    {"smooth_max_pool", "x=0x1x1000000000 kernel=3"},
    {"smooth_max_pool", "x=1000000000x0x5 kernel=3"},
    {"adaptive_max_pool", "x=0x1x5 output_size=1000000000"},
    {"adaptive_max_pool", "x=1x1x3 output_size=20000"},
    {"adaptive_avg_pool", "x=0x1x1000000000 output_size=7"},
    {"adaptive_avg_pool", "x=1x1x3 output_size=20000"},
    {"max_unpool", "x=0x1x100000000 output_size=200000000"},
    {"max_unpool", "x=1x1x1 output_size=20000"},
    {"conv", "x=1x1x5 w=1x1x3 stride=2147483648"},
    {"conv", "x=1x1x5 w=1x1x3 stride=4611686018427387904"},
    {"conv", "x=1x2x5 w=2x2x3 padding=same dilation=2147483647"},
    {"conv", "x=1x2x5 w=2x2x3 stride=2147483648 padding=2147483648"},
    {"conv", "x=2x4x5x6 w=4x4x3x3 stride=2147483648,1 padding=0,1"},
    {"conv", "x=2x4x5x6 w=4x1x3x3 groups=4 stride=2147483648,65536 padding=1"},
    {"conv", "x=0x1x1000000000 w=1x1x3"},
    {"conv", "x=0x1x100000x100000 w=8x1x3x3 padding=1"},
    {"conv", "x=1000000000x0x5 w=0x0x3"},
    {"conv", "x=1x1x20000 w=1x1x2 dilation=10000"},
    {"conv", "x=1x1x20000 w=1x1x60 dilation=300 stride=59"},
    {"conv_transpose", "x=1x1x1 w=1x1x3 stride=65536"},
    {"conv_transpose", "x=1x1x1 w=1x1x3 stride=65536 output_padding=65535"},
    {"conv_transpose", "x=1x1x2 w=1x1x3 stride=65536"},
    {"conv_transpose", "x=1x4x2 w=4x4x3 stride=20000"},
    {"conv_transpose", "x=1x4x2 w=4x1x3 groups=4 stride=20000"},
    {"conv_transpose", "x=1x1x2x2 w=1x1x3x3 stride=150"},
    {"conv_transpose", "x=1x4x2x2 w=4x4x3x3 stride=150"},
    {"conv_transpose", "x=1x4x2x2 w=4x1x3x3 groups=4 stride=150"},
    {"conv_transpose", "x=1x1x1 w=1x1x2 dilation=65536"},
    {"conv_transpose", "x=0x1x1000000 w=1x1x3 stride=1000"},
    {"conv_transpose", "x=0x1x1000000000 w=1x1x3"},
    {"slice", "f=slice shape=4x5 begin=1,1 count=1,1 step=4611686018427387904,-9"},
    {"slice", "f=adjoint shape=4x5 begin=1,1 count=1,1 step=-4611686018427387904,9"},
    {"slice", "f=slice shape=0x1000000000 begin=0,1 count=0,500000000 step=1,2"},
    {"pad", "f=pad x=0x1000000000 low=0,5 high=0,7 mode=reflect"},
    {"pad", "f=adjoint x=0x5 low=0,1000000000 high=0,0 mode=replicate"},
    {"resize", "f=resize x=0x1x5 size=1000000000"},
    {"resize", "f=adjoint x=0x1x5 size=1000000000 mode=bilinear"},
    {"resize", "f=resize x=1x1x9000x1 size=1,9000 mode=bilinear"},
    {"resize", "f=adjoint x=1x1x9000x1 size=1,9000 mode=bilinear"},
    {"resize", "f=resize x=1x1x1x9000 size=9000,1"},
    {"reduce", "f=sum x=0x1000000000 axes=1"},
    {"reduce", "f=sum x=1000000000x0 axes=0"},
    {"reduce", "f=mean x=1000000000x0 axes=0"},
    {"reduce", "f=max x=0x1000000000 axes=1"},
    {"normalise", "f=batch x=0x1x1000000000"},
    {"normalise", "f=batch x=1000000000x0"},
    {"normalise", "f=group x=0x4x1000000000 groups=2"},
    {"normalise", "f=layer x=0x1000000000 axes=1 affine=false"},
    {"normalise", "f=layer x=1000000000x0 axes=1"},
    {"normalise", "f=inference x=1000000000x0x3"},
    {"softmax", "f=softmax x=0x1000000000"},
    {"softmax", "f=softmax x=1000000000x0"},
    {"softmax", "f=log_softmax x=1000000000x0 axis=0"},
    {"softmax", "f=logsumexp x=0x1000000000"},
    {"loss", "f=cross_entropy x=0x1000000000 reduction=sum"},
    {"loss", "f=mse x=0x1000000000 reduction=sum"},
    {"matmul", "a=0x1000000 b=1000000x0"},
    {"matmul", "a=1000000000x0 b=0x0"},
    {"matmul", "a=1000000000x0x3 b=3x2"},
    {"transpose", "x=0x1000000x1000 order=2,1,0"},
    {"concat", "axis=0 extents=0,0 x=0x1000000000"},
    {"elementwise", "f=add a=0x1000000000 b=1"},
    {"elementwise", "f=exp x=0x1000000000"},
    {"reshape", "x=0x1000000000 y=1000000000x0"},
    {"where", "mask=0x1000000000 a=1 b=scalar"},
    {"where", "mask=1 a=1000000000x0 b=scalar"},
    {"cumsum", "x=0x1000000000 axis=1"},
    {"cumsum", "x=1000000000x0 axis=0"},
    {"cumsum", "x=1000000000x0 axis=1 reverse=true"},
    {"sort", "x=0x1000000000 axis=1"},
    {"sort", "x=1000000000x0 axis=0 count=500000000"},
    {"sort", "x=1000000000x0 axis=1"},
    {"gather", "x=0x1000000000 indices=0x500000000 axis=1"},
    {"gather", "x=1000000000x0 indices=3 axis=0 slices=true"},
    {"gather", "x=1000000000x0 indices=1000000000x0 axis=1"},
    {"gather", "x=5 indices=0x1000000000 slices=true"},
};

Tensor<double> small_integers(Random& random, const Shape& shape) {
  Tensor<double> values(shape);
  for (double& v : values.mutable_values()) {
    v = static_cast<double>(random.between(-4, 4));
  }
  return values;
}

template <class Op>
void check_cost(std::string_view text) {
  const auto g = Op::parse(text);
  Random random(3);
  Inputs<double> in;
  std::vector<Tensor<double>> dots;
  for (const TensorInfo& info : Op::inputs(g)) {
    in.values.push_back(small_integers(random, info.shape));
    dots.push_back(small_integers(random, info.shape));
    if constexpr (requires { Op::scalar_value(g); }) {
      if (info.role == Role::scalar) {
        in.values.back() = Tensor<double>(Shape{}, Op::scalar_value(g));
      }
    }
  }
  if constexpr (requires { Op::data(g); }) {
    for (const TensorInfo& info : Op::data(g)) {
      in.data.push_back(Tensor<Index>(info.shape, Index{0}));
    }
  }
  const Tensor<double> y_bar = small_integers(random, Op::output(g).shape);
  const auto timed = [&](const char* what, const auto& f) {
    const double start = processor_seconds();
    const auto result = f();
    EXPECT_LT(processor_seconds() - start, kMostSeconds) << Op::name << " " << text << " " << what;
    return result;
  };
  using namespace check::detail;
  const auto needed =
      timed("specification", [&] { return compute_all<Op, check::Rounded>(g, in, dots, y_bar); });
  const auto narrow = timed("f32", [&] { return compute_all<Op, float>(g, in, dots, y_bar); });
  const auto wide = timed("f64", [&] { return compute_all<Op, double>(g, in, dots, y_bar); });
  EXPECT_EQ(outside_bound<float>(narrow, needed), "") << Op::name << " " << text;
  EXPECT_EQ(outside_bound<double>(wide, needed), "") << Op::name << " " << text;
}

template <class... Ops>
void check_cost_by_name(TypeList<Ops...>, const Problem& problem) {
  bool found = false;
  ((problem.op == Ops::name ? (found = true, check_cost<Ops>(problem.text)) : void()), ...);
  EXPECT_TRUE(found) << problem.op;
}

TEST(Cost, FollowsWhatIsComputedNotTheParameters) {
  for (const Problem& problem : kProblems) {
    SCOPED_TRACE(std::string(problem.op) + " " + std::string(problem.text));
    const Index before = peak_kib();
    EXPECT_NO_THROW(check_cost_by_name(Operators{}, problem));
    EXPECT_LT(peak_kib() - before, kMostKib);
  }
}

/// What is really asked for is refused where it cannot be had, before anything is computed.
TEST(Cost, OfAnEnormousResultIsAnError) {
  const Tensor<float> x(Shape{1, 1, 5}, 1.0F);
  EXPECT_ANY_THROW(max_pool1d(x, {.kernel = 3, .stride = 1, .padding = Index{1} << 45}));
  EXPECT_ANY_THROW(pad(x, {{0, 0}, {0, 0}, {Index{1} << 45, 0}}));
  EXPECT_ANY_THROW(resize(x, {.size = Index{1} << 45}));
}

}  // namespace
}  // namespace fenestra
