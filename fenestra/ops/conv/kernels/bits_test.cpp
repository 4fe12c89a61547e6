// Convolutions of real networks by the kernels that are chosen for them, and those never chosen by
// one that they can do: the same bits on any number of threads and in every batch.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/ops/conv/candidates.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace fenestra {
namespace {

using testing::kConvDirections;

template <class T>
const ConvCandidate<T>& chosen(ConvDirection direction, const ConvGeometry& g) {
  return kernels::choose(conv_candidates<T>(), {direction, g});
}

/// Both promises in every direction; notes which kernels ran.
template <class T>
void expect_bits(const char* problem, std::set<std::string>& taken) {
  const ConvGeometry g = Conv::parse(problem);
  Random random(41);
  for (const ConvDirection direction : kConvDirections) {
    const std::string_view choice = chosen<T>(direction, g).name;
    EXPECT_EQ(choice, chosen<T>(direction, Conv::single_sample(g)).name) << problem;
    for (const ConvCandidate<T>& kernel : conv_candidates<T>()) {
      if (kernel.name.ends_with("_spec") || !kernel.can_run({direction, g})) {
        continue;
      }
      const std::string name =
          std::string(kernel.name) + " direction " + std::to_string(static_cast<int>(direction));
      if (!taken.insert(name).second && kernel.name != choice) {
        continue;
      }
      SCOPED_TRACE(name);
      testing::expect_conv_bits_on_any_threads<T>(kernel.run, {direction, g}, random);
      if (direction != ConvDirection::weight_grad) {
        testing::expect_conv_bits_of_samples<T>(kernel.run, {direction, g}, random);
      }
    }
  }
}

/// Depthwise, planes, direct and gemm in every direction, outer in one, dense in two.
constexpr std::size_t kStrictKernels = 15;

class ConvBits : public ::testing::TestWithParam<std::string_view> {
 protected:
  kernels::ScopedIsa isa_{GetParam()};
};

TEST_P(ConvBits, AreThoseOfOneSampleOnOneThreadInTheLayersOfNetworks) {
  std::set<std::string> taken;
  for (const char* problem : {
           "x=8x1x28x28 w=6x1x5x5 padding=2 bias=true",             // LeNet
           "x=8x6x14x14 w=16x6x5x5 bias=true",                      //
           "x=2x3x112x112 w=64x3x7x7 stride=2 padding=3",           // ResNet
           "x=2x64x28x28 w=64x64x3x3 padding=1",                    //
           "x=2x128x14x14 w=128x128x3x3 padding=1",                 //
           "x=3x256x7x7 w=128x256x3x3 padding=1",                   //
           "x=3x64x14x14 w=256x64x1x1",                             //
           "x=2x64x28x28 w=128x64x1x1 stride=2",                    //
           "x=2x32x36x36 w=128x32x1x1",                             //
           "x=2x32x28x28 w=32x1x3x3 padding=1 groups=32",           // MobileNet
           "x=2x48x29x29 w=48x1x5x5 padding=2 stride=2 groups=48",  //
           "x=3x96x7x7 w=96x1x5x5 padding=2 groups=96",             //
           "x=2x24x28x28 w=24x1x7x7 padding=3 groups=24",           // ConvNeXt
           "x=2x64x28x28 w=64x4x3x3 padding=1 groups=16",           // ResNeXt
           "x=2x128x14x14 w=128x16x3x3 padding=1 groups=8",         //
           "x=2x16x40x40 w=16x16x3x3 padding=1 bias=true",          // U-Net
           "x=2x64x28x28 w=1x64x3x3 padding=1",                     //
           "x=4x16x512 w=32x16x9 padding=4",                        // WaveNet and others
           "x=4x1x2000 w=32x1x80 stride=4",                         //
           "x=4x32x500 w=32x32x3 dilation=8 padding=8",             //
           "x=2x3x8x28x28 w=16x3x3x3x3 padding=1",                  // volumes
           "x=2x16x4x14x14 w=32x16x3x3x3 padding=1",                //
           "x=9x4x3x3 w=4x4x3x3 padding=1",                         // small ones
           "x=40x1x8x8 w=1x1x3x3 padding=1",                        //
           "x=17x3x6x6 w=8x3x3x3 padding=1",                        //
           "x=2x28x28x64 w=3x3x64x64 padding=1 bias=true layout=channels_last",
           "x=2x112x112x3 w=7x7x3x32 stride=2 padding=3 layout=channels_last",
           "x=5x7x7x128 w=1x1x128x100 layout=channels_last",
           "x=3x28x28x48 w=3x3x1x48 padding=1 groups=48 layout=channels_last",
           "x=8x14x14x6 w=5x5x6x16 layout=channels_last",
       }) {
    expect_bits<float>(problem, taken);
  }
  EXPECT_EQ(taken.size(), kStrictKernels);
}

TEST_P(ConvBits, AreThoseOfOneSampleOnOneThreadInDoubleToo) {
  std::set<std::string> taken;
  for (const char* problem : {"x=8x6x14x14 w=16x6x5x5 bias=true",
                              "x=2x3x64x64 w=32x3x7x7 stride=2 padding=3",
                              "x=2x48x14x14 w=48x48x3x3 padding=1",
                              "x=3x64x7x7 w=32x64x3x3 padding=1",
                              "x=2x32x36x36 w=128x32x1x1",
                              "x=2x24x29x29 w=24x1x5x5 padding=2 stride=2 groups=24",
                              "x=2x24x29x29 w=48x1x5x5 padding=2 stride=2 groups=24",
                              "x=2x24x29x29 w=48x1x5x5 padding=2 groups=24",
                              "x=3x14x14x24 w=3x3x1x24 padding=1 groups=24 layout=channels_last",
                              "x=3x16x20x20 w=32x16x1x1",
                              "x=2x16x4x14x14 w=32x16x3x3x3 padding=1"}) {
    expect_bits<double>(problem, taken);
  }
  EXPECT_EQ(taken.size(), kStrictKernels);
}

TEST_P(ConvBits, AKernelIsChosenByOneSample) {
  Random random(42);
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    // Half of them with transforms allowed, on sizes around those where they begin to pay.
    const kernels::ScopedNumerics numerics(i % 2 == 0 ? Numerics::strict : Numerics::fast);
    const Index channels = random.between(30, 34);
    const Shape x{1, channels, random.between(4, 20), random.between(4, 20)};
    ConvGeometry g = i % 4 == 1
                         ? conv_geometry(x, {32, channels, 3, 3}, std::nullopt, {.padding = 1})
                         : Conv::random(random);
    for (const ConvDirection direction : kConvDirections) {
      g.batch = 1;
      const std::string_view f32 = chosen<float>(direction, g).name;
      const std::string_view f64 = chosen<double>(direction, g).name;
      for (const Index batch : {2, 17, 1000}) {
        g.batch = batch;
        EXPECT_EQ(chosen<float>(direction, g).name, f32) << to_string(g);
        EXPECT_EQ(chosen<double>(direction, g).name, f64) << to_string(g);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ConvBits,
                         ::testing::ValuesIn(kernels::supported_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

}  // namespace
}  // namespace fenestra
