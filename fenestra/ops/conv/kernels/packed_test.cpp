// Weights packed ahead, and results finished run by run: every candidate gives the bits that it
// gives when it packs in the call and when what follows runs afterwards.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/ops/conv/candidates.hpp>
#include <fenestra/ops/conv/kernels/depthwise.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {
namespace {

using testing::ConvOperands;

constexpr const char* kProblems[] = {
    "x=2x3x19x17 w=8x3x5x5 stride=2 padding=2 bias=true",
    "x=3x32x14x14 w=40x32x3x3 padding=1 bias=true",
    "x=2x33x7x7 w=50x33x3x3 padding=1",
    "x=5x20x5x5 w=13x20x1x1 bias=true",
    "x=2x8x9x9 w=12x4x3x3 padding=1 groups=2 bias=true",
    "x=2x16x11x9 w=16x1x3x3 padding=1 groups=16 bias=true",
    "x=2x24x13x13 w=24x1x5x5 stride=2 padding=2 groups=24",
    "x=3x700x3x3 w=30x700x1x1",
    "x=4x6x50 w=9x6x7 dilation=2 padding=3 stride=3",
    "x=1x4x5x6x7 w=8x4x3x3x3 padding=1 bias=true",
    "x=1x14x14x40 w=3x3x40x36 padding=1 bias=true layout=channels_last",
    "x=3x9x8x3 w=3x3x3x20 padding=1 stride=2 layout=channels_last",
    "x=2x9x9x8 w=3x3x4x12 padding=1 groups=2 bias=true layout=channels_last",
    "x=2x9x10x14 w=3x3x2x14 padding=1 stride=2 groups=7 bias=true layout=channels_last",
    "x=2x10x10x24 w=3x3x1x24 padding=1 groups=24 layout=channels_last",
    "x=1x1x1x600 w=1x1x600x70 bias=true layout=channels_last",
    "x=6x2x2x9 w=1x1x9x33 layout=channels_last"};

template <class T>
std::vector<ConvProblem> problems(const ConvCandidate<T>& candidate) {
  std::vector<ConvProblem> accepted;
  for (const char* text : kProblems) {
    for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::input_grad}) {
      const ConvProblem problem{direction, Conv::parse(text)};
      // What a candidate refuses because others are faster it can do all the same.
      if (candidate.can_run(problem)) {
        accepted.push_back(problem);
      }
    }
  }
  return accepted;
}

template <class T>
Tensor<T> run(const ConvCandidate<T>& candidate,
              const ConvProblem& p,
              const ConvOperands<T>& in,
              const T* packed,
              const ConvEpilogue& epilogue = {},
              const Tensor<T>* residual = nullptr) {
  Tensor<T> out(testing::conv_out_shape(p), std::numeric_limits<T>::quiet_NaN());
  T* data = out.mutable_data();
  const ConvFinish<T> finish(epilogue, residual != nullptr ? residual->data() : nullptr, data);
  // Weights that were packed ahead are not looked at again.
  const Tensor<T> spoiled(in.rhs.shape(), std::numeric_limits<T>::quiet_NaN());
  candidate.run(p,
                {.lhs = in.lhs.data(),
                 .rhs = packed != nullptr ? spoiled.data() : in.rhs.data(),
                 .bias = in.has_bias ? in.bias.data() : nullptr,
                 .out = data,
                 .packed = packed,
                 .finish = epilogue.is_empty() ? nullptr : &finish});
  return out;
}

template <class F>
void on_threads(F f) {
  const int before = threads();
  for (const int count : {1, 2, 3, 7}) {
    set_threads(count);
    f(count);
  }
  set_threads(before);
}

class ConvPacked : public ::testing::TestWithParam<std::string_view> {
 protected:
  kernels::ScopedIsa isa_{GetParam()};
  kernels::ScopedNumerics numerics_{Numerics::fast};
};

template <class T>
void expect_packed_bits(std::set<std::string>& packing) {
  Random random(61);
  for (const ConvCandidate<T>& candidate : conv_candidates<T>()) {
    if (candidate.pack == nullptr) {
      continue;
    }
    for (const ConvProblem& p : problems(candidate)) {
      const Index elements = candidate.packed_elements(p);
      if (elements == 0) {
        continue;
      }
      packing.insert(std::string(candidate.name) + std::to_string(static_cast<int>(p.direction)));
      const ConvOperands<T> in = testing::random_conv_operands<T>(p, random);
      const Tensor<T> expected = run(candidate, p, in, static_cast<const T*>(nullptr));
      on_threads([&](int count) {
        // What packing leaves out is read as NaN.
        Tensor<T> packed(Shape{elements + 1}, std::numeric_limits<T>::quiet_NaN());
        T* data = packed.mutable_data();
        candidate.pack(p, {.rhs = in.rhs.data(), .out = data});
        EXPECT_TRUE(data[elements] != data[elements]) << "more than it says";
        EXPECT_TRUE(expected == run(candidate, p, in, static_cast<const T*>(data)))
            << candidate.name << " on " << count << " threads, direction "
            << static_cast<int>(p.direction) << ": " << to_string(p.geometry);
      });
    }
  }
}

TEST_P(ConvPacked, WeightsPackedAheadGiveTheSameBits) {
  std::set<std::string> packing;
  expect_packed_bits<float>(packing);
  expect_packed_bits<double>(packing);
  // Winograd, dense, direct and gemm, forward and input gradient, both scalars; groups that share
  // vectors, where there are some.
  EXPECT_EQ(packing.size(), detail::depthwise_loops<float>().lanes > 1 ? 20u : 16u);
}

template <class T>
void expect_finished_bits() {
  Random random(62);
  const UnaryCall relu{UnaryFunction::relu};
  const UnaryCall clip{UnaryFunction::clip, -0.25, 0.75};
  const ConvEpilogue epilogues[] = {{.activation = relu},
                                    {.activation = UnaryCall{UnaryFunction::silu}},
                                    {.sum = ConvEpilogue::Sum::result_first},
                                    {.sum = ConvEpilogue::Sum::residual_first, .activation = clip},
                                    {.sum = ConvEpilogue::Sum::result_first, .activation = relu}};
  std::size_t next = 0;
  for (const ConvCandidate<T>& candidate : conv_candidates<T>()) {
    for (const ConvProblem& p : problems(candidate)) {
      if (p.direction != ConvDirection::forward) {
        continue;
      }
      const ConvEpilogue& epilogue = epilogues[next++ % std::size(epilogues)];
      const ConvOperands<T> in = testing::random_conv_operands<T>(p, random);
      const Tensor<T> residual =
          testing::random_conv_operands<T>({ConvDirection::input_grad, p.geometry}, random).lhs;
      const T* const none = nullptr;
      Tensor<T> expected = run(candidate, p, in, none);
      ConvFinish<T>(epilogue, residual.data(), expected.data())
          .run(expected.mutable_data(), expected.size());
      on_threads([&](int count) {
        EXPECT_TRUE(expected == run(candidate, p, in, none, epilogue, &residual))
            << candidate.name << " on " << count << " threads: " << to_string(p.geometry);
      });
    }
  }
}

TEST_P(ConvPacked, ResultsFinishedRunByRunHaveTheSameBits) {
  expect_finished_bits<float>();
  expect_finished_bits<double>();
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ConvPacked,
                         ::testing::ValuesIn(kernels::supported_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

}  // namespace
}  // namespace fenestra
