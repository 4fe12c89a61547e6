// The law on integers on the stated box, on lines, on random problems and on the layers of known
// networks. The box and its sampling are stated in kernel_box.hpp; problems run on an instruction
// set and on threads drawn from the seed, layers on several such draws, small ones on all of them.
// A failure prints the command that shows it again. Under a sanitizer: one problem of `kOneOf`.
#include <fenestra/check/kernel_box.hpp>
#include <fenestra/check/sample_test.hpp>
#include <fenestra/check/soak.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace fenestra::check {

/// GoogleTest prints parameters by their bytes otherwise.
void PrintTo(BoxChannels kind, std::ostream* out) {
  constexpr const char* kNames[] = {"depthwise", "multiplier", "grouped", "dense"};
  *out << kNames[static_cast<int>(kind)];
}

namespace {

/// Counts problems, and stops a test at the first that fails.
class KernelLaws : public testing::Test {
 protected:
  bool holds(std::string_view op,
             const std::string& problem,
             Coverage coverage = Coverage::sampled) {
    return drawn_++ % kOneOf != 0 || !integers(op, problem, coverage).failure;
  }
  KernelReport integers(std::string_view op, const std::string& problem, Coverage coverage) {
    const KernelEntry& entry = find_kernels(op);
    const std::uint64_t seed = random_.bits() >> 32;
    const KernelReport report = entry.integers(problem, seed, coverage);
    ++problems_;
    if (report.failure) {
      const KernelFailure& f = *report.failure;
      const SoakFailure failure{"integers", {&entry, problem, seed}, problems_, f};
      ADD_FAILURE() << f.candidate << " on " << f.isa << " with " << f.threads << " threads, "
                    << f.quantity << ": " << f.detail << "\n  " << failure.command();
    }
    return report;
  }
  /// Every choice with itself and, `rounds` times, with another; f(window, number) says whether to
  /// go on. The number of choices is even, and so is half of it: the round moves `number` on, or a
  /// choice would have the same layout in all rounds, and two kinds of channels.
  template <class F>
  void for_each_square(int rounds, F&& f) {
    const std::vector<AxisChoice> choices = box_choices();
    EXPECT_EQ(choices.size(), 1900U);
    std::vector<std::size_t> other(choices.size());
    std::iota(other.begin(), other.end(), std::size_t{0});
    int number = 0;
    for (int round = 0; round <= rounds; ++round) {
      for (std::size_t i = 0; i < choices.size(); ++i, ++number) {
        if (!f(BoxWindow({choices[i], choices[other[i]]}, random_), number + round)) {
          return;
        }
      }
      for (std::size_t i = other.size() - 1; i > 0; --i) {
        std::swap(other[i],
                  other[static_cast<std::size_t>(random_.between(0, static_cast<Index>(i)))]);
      }
    }
  }
  /// Every `step`th choice on a line.
  template <class F>
  void for_each_line(int step, F&& f) {
    const std::vector<AxisChoice> choices = line_choices(random_);
    int number = 0;
    for (std::size_t i = 0; i < choices.size(); i += static_cast<std::size_t>(step), ++number) {
      if (!f(BoxWindow({choices[i]}, random_), number)) {
        return;
      }
    }
  }
  void TearDown() override { RecordProperty("problems", std::to_string(problems_)); }

  static Layout layout_of(int number) {
    return number % 2 == 0 ? Layout::channels_first : Layout::channels_last;
  }
  static BoxChannels kind_of(int number) { return kBoxChannels[number / 2 % 4]; }

  Random random_{20};
  std::int64_t drawn_ = 0;
  std::int64_t problems_ = 0;
};

class KernelLawsOfChannels : public KernelLaws, public testing::WithParamInterface<BoxChannels> {};

TEST_P(KernelLawsOfChannels, HoldOnEveryConvolutionOfTheBox) {
  for_each_square(1, [&](const BoxWindow& window, int) {
    return holds("conv", box_conv(window, GetParam(), Layout::channels_first, false, random_)) &&
           holds("conv", box_conv(window, GetParam(), Layout::channels_last, false, random_));
  });
}

INSTANTIATE_TEST_SUITE_P(Box, KernelLawsOfChannels, testing::ValuesIn(kBoxChannels));

/// Padding may crop everything away: such a transposed convolution is none.
bool is_problem(std::string_view op, const std::string& problem) {
  try {
    find_kernels(op).other_layout(problem);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::empty_output) << problem;
    return false;
  }
}

TEST_F(KernelLaws, HoldOnEveryTransposedConvolutionOfTheBox) {
  for_each_square(4, [&](const BoxWindow& window, int number) {
    const std::string problem = box_conv(window, kind_of(number), layout_of(number), true, random_);
    return !is_problem("conv_transpose", problem) || holds("conv_transpose", problem);
  });
}

TEST_F(KernelLaws, HoldOnEveryMaxPoolOfTheBox) {
  for_each_square(2, [&](const BoxWindow& window, int number) {
    const std::string zeros = random_.chance(3) ? " pad_cells=zero" : "";
    return holds("max_pool", box_pool(window, layout_of(number), zeros, random_));
  });
}

TEST_F(KernelLaws, HoldOnEveryAveragePoolOfTheBox) {
  for_each_square(2, [&](const BoxWindow& window, int number) {
    const std::string divisor = random_.chance(2)   ? ""
                                : random_.chance(3) ? " divisor_override=-3"
                                                    : " count_include_pad=false";
    return holds("avg_pool", box_pool(window, layout_of(number), divisor, random_));
  });
}

TEST_F(KernelLaws, HoldOnEveryLpPoolOfTheBox) {
  for_each_square(1, [&](const BoxWindow& window, int number) {
    const char* const exponent = number % 3 == 0 ? " p=1" : number % 3 == 1 ? " p=2" : " p=3";
    return holds("lp_pool", box_pool(window, layout_of(number), exponent, random_));
  });
}

TEST_F(KernelLaws, HoldOnEverySmoothMaxPoolOfTheBox) {
  for_each_square(0, [&](const BoxWindow& window, int number) {
    const std::string options = std::string(number % 3 == 0 ? " beta=-2" : " beta=1.5") +
                                (number % 2 == 0 ? " normalised=true" : "") +
                                (number % 5 == 0 ? " pad_cells=zero" : "");
    return holds("smooth_max_pool", box_pool(window, layout_of(number), options, random_));
  });
}

TEST_F(KernelLaws, HoldOnLinesOfConvolutions) {
  for_each_line(1, [&](const BoxWindow& window, int number) {
    return holds("conv", box_conv(window, kind_of(number), layout_of(number), false, random_));
  });
}

TEST_F(KernelLaws, HoldOnLinesOfTransposedConvolutions) {
  for_each_line(5, [&](const BoxWindow& window, int number) {
    const std::string problem = box_conv(window, kind_of(number), layout_of(number), true, random_);
    return !is_problem("conv_transpose", problem) || holds("conv_transpose", problem);
  });
}

TEST_F(KernelLaws, HoldOnLinesOfPools) {
  for_each_line(5, [&](const BoxWindow& window, int number) {
    const Layout layout = layout_of(number);
    return holds("max_pool", box_pool(window, layout, "", random_)) &&
           holds("avg_pool", box_pool(window, layout, " count_include_pad=false", random_)) &&
           (number % 3 != 0 ||
            (holds("lp_pool", box_pool(window, layout, " p=2", random_)) &&
             holds("smooth_max_pool", box_pool(window, layout, " beta=2", random_))));
  });
}

/// The smallest that transforms accept: they take more channels than most problems of these laws
/// have.
TEST_F(KernelLaws, HoldOnTransformedConvolutions) {
  for (const char* problem :
       {"x=1x32x12x16 w=32x32x3x3 padding=1",
        "x=1x11x18x32 w=3x3x32x33 padding=2:0,0:1 bias=true layout=channels_last"}) {
    const KernelReport report = integers("conv", problem, Coverage::full);
    for (const char* name : {"conv_f32_winograd", "conv_f64_winograd"}) {
      EXPECT_NE(std::find(report.taken.begin(), report.taken.end(), name), report.taken.end())
          << name << " on " << problem;
    }
  }
}

/// So large that a weight gradient is computed in several parts.
TEST_F(KernelLaws, HoldOnConvolutionsInParts) {
  integers("conv", "x=1x16x66000 w=12x16x1 stride=2", Coverage::sampled);
}

class KernelLawsOfSeeds : public KernelLaws, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(KernelLawsOfSeeds, HoldOnRandomProblems) {
  constexpr std::int64_t kProblems = 4000 / kOneOf;
  const SoakReport report = soak_integers(GetParam(), {.problems = kProblems, .seconds = {}}, {});
  problems_ = report.problems;
  if (report.failure) {
    const KernelFailure& f = report.failure->failure;
    ADD_FAILURE() << f.candidate << " on " << f.isa << " with " << f.threads << " threads, "
                  << f.quantity << ": " << f.detail << "\n  " << report.failure->command();
  } else {
    EXPECT_EQ(report.problems, kProblems);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, KernelLawsOfSeeds, testing::Values(1, 2, 3));

constexpr int kLayerParts = 4;
/// Multiply-adds up to which a layer takes every instruction set with every number of threads.
constexpr Index kSmallLayer = Index{1} << 18;

class KernelLawsOfLayers : public KernelLaws, public testing::WithParamInterface<int> {};

TEST_P(KernelLawsOfLayers, HoldOnLayersOfNetworksInBothLayouts) {
  const std::vector<NetworkLayer>& layers = network_layers();
  for (std::size_t i = static_cast<std::size_t>(GetParam()); i < layers.size(); i += kLayerParts) {
    const NetworkLayer& layer = layers[i];
    const KernelEntry& entry = find_kernels(layer.op);
    const std::string other = entry.other_layout(layer.problem);
    ASSERT_LT(entry.work(layer.problem), Index{1} << 23) << layer.source;
    if (entry.work(layer.problem) <= kSmallLayer) {
      ASSERT_TRUE(holds(layer.op, layer.problem, Coverage::full)) << layer.source;
    }
    for (int draw = 0; draw < 3; ++draw) {
      ASSERT_TRUE(holds(layer.op, layer.problem)) << layer.source;
      ASSERT_TRUE(holds(layer.op, other)) << layer.source;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, KernelLawsOfLayers, testing::Range(0, kLayerParts));

TEST(Networks, AreAtLeastTwenty) {
  std::set<std::string> networks;
  for (const NetworkLayer& layer : network_layers()) {
    networks.insert(layer.source.substr(0, layer.source.find(',')));
  }
  EXPECT_GE(networks.size(), 20U);
}

TEST(KernelEntries, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  try {
    parse_soak_problem("convolve x=1x1x4", 1);
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unknown_operator);
    EXPECT_NE(std::string(error.what()).find("conv_transpose"), std::string::npos);
  }
}

TEST(KernelEntries, AProblemTooLargeForExactFloatIsRefused) {
  try {
    check_integers(parse_soak_problem("conv x=1x64x56x56 w=64x64x3x3 padding=1", 1));
    FAIL() << "checked";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::overflow);
  }
}

}  // namespace
}  // namespace fenestra::check
