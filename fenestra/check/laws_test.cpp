// Tests of the tests: descriptors with one deliberate mistake each, and the law that must see it.
// The mistakes are those a person makes: a shifted window, a forgotten bias, another tie rule,
// another divisor, a layout taken for the other.
#include <fenestra/check/laws.hpp>
#include <fenestra/ops/conv/op.hpp>
#include <fenestra/ops/conv_transpose/op.hpp>
#include <fenestra/ops/max_unpool/op.hpp>
#include <fenestra/ops/pool/avg/op.hpp>
#include <fenestra/ops/pool/lp/op.hpp>
#include <fenestra/ops/pool/max/op.hpp>
#include <fenestra/ops/pool/smooth_max/op.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace fenestra::check {
namespace {

constexpr int kProblems = 200;

/// The laws broken by `Op` on any of its first random problems.
template <class Op>
std::set<Law> broken_laws() {
  std::set<Law> broken;
  Random random(2024);
  for (int i = 0; i < kProblems; ++i) {
    const auto g = Op::random(random);
    for (const LawOutcome& outcome : Laws<Op>(g, random.bits()).run()) {
      if (outcome.verdict == Verdict::broken) {
        EXPECT_FALSE(outcome.detail.empty()) << "a broken law says where, got and needed";
        broken.insert(outcome.law);
      }
    }
  }
  return broken;
}

std::string names(const std::set<Law>& laws) {
  std::string text;
  for (const Law law : laws) {
    text += (text.empty() ? "" : ", ") + std::string(law_name(law));
  }
  return text.empty() ? "none" : text;
}

/// Each of `laws` complains of `Op`.
template <class Op>
void expect_caught(const std::set<Law>& laws) {
  const std::set<Law> broken = broken_laws<Op>();
  for (const Law law : laws) {
    EXPECT_TRUE(broken.contains(law))
        << law_name(law) << " did not see it; broken: " << names(broken);
  }
}

/// None of `laws` complains: the mistake is seen by the others alone, which is why they exist.
template <class Op>
void expect_missed(const std::set<Law>& laws) {
  const std::set<Law> broken = broken_laws<Op>();
  for (const Law law : laws) {
    EXPECT_FALSE(broken.contains(law)) << law_name(law);
  }
}

template <class T>
Tensor<T> rolled(Tensor<T> tensor) {
  const auto values = tensor.mutable_values();
  std::rotate(values.begin(), values.begin() + (values.empty() ? 0 : 1), values.end());
  return tensor;
}

// Wrong gradients.

struct ShiftedInputGradient : Conv {
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    auto bars = Conv::vjp(g, in, y_bar);
    bars[0] = rolled(bars[0]);
    return bars;
  }
};

TEST(Laws, AdjointSeesAnInputGradientOfAShiftedWindow) {
  expect_caught<ShiftedInputGradient>({Law::adjoint});
}

struct ForgottenBiasGradient : Conv {
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    auto bars = Conv::vjp(g, in, y_bar);
    if (g.has_bias) {
      bars[2] = Tensor<T>(bars[2].shape());
    }
    return bars;
  }
};

TEST(Laws, AdjointSeesAForgottenBiasGradient) {
  expect_caught<ForgottenBiasGradient>({Law::adjoint});
}

/// Forgets the second term of the product rule in both directions: the two remain adjoint.
struct ForgottenWeightDerivative : Conv {
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    auto bars = Conv::vjp(g, in, y_bar);
    bars[1] = Tensor<T>(bars[1].shape());
    return bars;
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, std::vector<Tensor<T>> dots) {
    dots[1] = Tensor<T>(dots[1].shape());
    return Conv::jvp(g, in, dots);
  }
};

TEST(Laws, DualsAndDifferencesSeeADerivativeForgottenInBothDirections) {
  expect_caught<ForgottenWeightDerivative>({Law::duals, Law::finite_differences});
  expect_missed<ForgottenWeightDerivative>({Law::adjoint});
}

template <class T>
struct Stripped {
  static T of(const T& x) { return x; }
};
template <class T>
struct Stripped<Dual<T>> {
  static Dual<T> of(const Dual<T>& x) { return Dual<T>(x.value); }
};

/// Right to first order; the tangent forgets that it depends on the point.
struct FirstOrderOnly : Conv {
  template <class T>
  static Tensor<T> jvp(const Geometry& g, Inputs<T> in, const std::vector<Tensor<T>>& dots) {
    for (Tensor<T>& value : in.values) {
      value = value.map([](const T& v) { return Stripped<T>::of(v); });
    }
    return Conv::jvp(g, in, dots);
  }
};

TEST(Laws, NestedDualsSeeATangentThatIsRightToFirstOrderOnly) {
  expect_caught<FirstOrderOnly>({Law::nested_duals});
  expect_missed<FirstOrderOnly>({Law::duals, Law::adjoint, Law::finite_differences});
}

/// The gradient to beta with the wrong sign, in both directions alike.
struct WrongBetaGradient : SmoothMaxPool {
  template <Transcendental T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    auto bars = SmoothMaxPool::vjp(g, in, y_bar);
    bars[1] = bars[1].map([](const T& v) { return T(-v); });
    return bars;
  }
  template <Transcendental T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, std::vector<Tensor<T>> dots) {
    dots[1] = dots[1].map([](const T& v) { return T(-v); });
    return SmoothMaxPool::jvp(g, in, dots);
  }
};

TEST(Laws, EnclosuresSeeAWrongGradientBeyondTheRationals) {
  expect_caught<WrongBetaGradient>({Law::duals, Law::finite_differences});
}

/// dy/dx = |x|^(p-1)/y^p instead of /y^(p-1).
struct WrongLpGradient : LpPool {
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    const Tensor<T> y = LpPool::forward(g, in);
    Tensor<T> scaled = y_bar;
    T* out = scaled.mutable_data();
    for (Index i = 0; i < y.size(); ++i) {
      out[i] = y[i] == T(0) ? out[i] : out[i] / y[i];
    }
    return LpPool::vjp(g, in, scaled);
  }
};

TEST(Laws, AdjointSeesAWrongPowerInTheGradient) { expect_caught<WrongLpGradient>({Law::adjoint}); }

// Wrong tie rules.

template <OrderedScalar T>
Tensor<Index> last_winners(const Tensor<T>& x, const MaxPoolGeometry& g) {
  Tensor<Index> indices(g.pool.y_shape(), spec::kNowhere);
  Index* out = indices.mutable_data();
  const T zero(0);
  spec::for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const T* best = nullptr;
    for_each_tap(g.pool.windows, o, [&](const Tap& tap) {
      const bool real = tap.cell >= 0;
      if (!real && (g.pad_cells == PadCells::ignore || !tap.declared)) {
        return;
      }
      const T* candidate = real ? x.data() + g.pool.x_map().at(n, c, tap.cell) : &zero;
      if (best == nullptr || !beats(*best, *candidate)) {
        best = candidate;
        out[g.pool.y_map().at(n, c, o)] = tap.cell;
      }
    });
  });
  return indices;
}

struct LastWinnerInVjp : MaxPool {
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    return {spec::max_pool_vjp(last_winners(in.values[0], g), y_bar, g)};
  }
};

struct LastWinnerInJvp : MaxPool {
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return spec::max_pool_jvp(last_winners(in.values[0], g), dots[0], g);
  }
};

struct LastWinnerInValue : MaxPool {
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    if constexpr (TotallyOrdered<T>) {
      return spec::gather(
          in.values[0], last_winners(in.values[0], g), g.pool.x_map(), g.pool.y_map());
    } else {
      return MaxPool::forward(g, in);
    }
  }
};

TEST(Laws, ATieRuleThatDiffersBetweenValueVjpAndJvpIsSeen) {
  expect_caught<LastWinnerInVjp>({Law::adjoint});
  expect_caught<LastWinnerInJvp>({Law::adjoint, Law::duals});
  expect_caught<LastWinnerInValue>({Law::duals});
}

struct FirstWriterInUnpool : MaxUnpool {
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    Tensor<T> y(g.y_shape());
    std::vector<bool> taken(static_cast<std::size_t>(y.size()));
    T* out = y.mutable_data();
    const ActivationMap map = g.x_map();
    for (Index n = 0; n < map.batch; ++n) {
      for (Index c = 0; c < map.channels; ++c) {
        for (Index i = 0; i < map.cells; ++i) {
          const Index target = in.data[0][map.at(n, c, i)];
          if (target == spec::kNowhere) {
            continue;
          }
          const Index place = g.y_map().at(n, c, target);
          if (!taken[static_cast<std::size_t>(place)]) {
            out[place] = in.values[0][map.at(n, c, i)];
            taken[static_cast<std::size_t>(place)] = true;
          }
        }
      }
    }
    return y;
  }
};

TEST(Laws, DualsSeeDuplicatesPlacedByAnotherRuleThanTheirDerivative) {
  expect_caught<FirstWriterInUnpool>({Law::duals, Law::finite_differences});
}

// Wrong divisors.

AvgPoolGeometry other_count(AvgPoolGeometry g) {
  g.count_include_pad = !g.count_include_pad;
  return g;
}

struct OtherDivisorInVjp : AvgPool {
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    return AvgPool::vjp(other_count(g), in, y_bar);
  }
};

struct OtherDivisorInValue : AvgPool {
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return AvgPool::forward(other_count(g), in);
  }
};

TEST(Laws, AWrongDivisorIsSeen) {
  expect_caught<OtherDivisorInVjp>({Law::adjoint});
  expect_caught<OtherDivisorInValue>({Law::duals, Law::finite_differences});
}

// Mistakes that are the same in value and derivatives: no consistency can see them, the known
// answers do.

struct LastWinnerEverywhere : LastWinnerInValue {
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    return LastWinnerInVjp::vjp(g, in, y_bar);
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return LastWinnerInJvp::jvp(g, in, dots);
  }
};

struct OtherDivisorEverywhere : OtherDivisorInValue {
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    return OtherDivisorInVjp::vjp(g, in, y_bar);
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return AvgPool::jvp(other_count(g), in, dots);
  }
};

/// A true convolution, kernel flipped, in everything.
struct FlippedKernel : Conv {
  template <class T>
  static Inputs<T> flipped(Inputs<T> in) {
    in.values[1] = flipped(in.values[1]);
    return in;
  }
  template <class T>
  static Tensor<T> flipped(Tensor<T> w) {
    std::reverse(w.mutable_values().begin(), w.mutable_values().end());
    return w;
  }
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return Conv::forward(g, flipped(in));
  }
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    auto bars = Conv::vjp(g, flipped(in), y_bar);
    bars[1] = flipped(bars[1]);
    return bars;
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, std::vector<Tensor<T>> dots) {
    dots[1] = flipped(dots[1]);
    return Conv::jvp(g, flipped(in), dots);
  }
};

TEST(Laws, KnownAnswersSeeARuleThatIsWrongEverywhereAlike) {
  expect_caught<LastWinnerEverywhere>({Law::answers});
  expect_missed<LastWinnerEverywhere>(
      {Law::adjoint, Law::duals, Law::nested_duals, Law::finite_differences});
  expect_caught<OtherDivisorEverywhere>({Law::answers});
  expect_missed<OtherDivisorEverywhere>(
      {Law::adjoint, Law::duals, Law::nested_duals, Law::finite_differences});
  expect_caught<FlippedKernel>({Law::answers});
  expect_missed<FlippedKernel>(
      {Law::adjoint, Law::duals, Law::nested_duals, Law::finite_differences});
}

// Layout, batch, groups.

struct LayoutIgnored : Conv {
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    const Tensor<T> y = Conv::forward(g, in);
    return g.layout == Layout::channels_last ? rolled(y) : y;
  }
};

TEST(Laws, LayoutsSeeALayoutReadInAnotherOrder) { expect_caught<LayoutIgnored>({Law::layouts}); }

struct LayoutIgnoredInVjp : AvgPool {
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    auto bars = AvgPool::vjp(g, in, y_bar);
    if (g.pool.layout == Layout::channels_last) {
      bars[0] = rolled(bars[0]);
    }
    return bars;
  }
};

TEST(Laws, LayoutsSeeItInTheGradientToo) { expect_caught<LayoutIgnoredInVjp>({Law::layouts}); }

struct SamplesMixed : Conv {
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    const Tensor<T> y = Conv::forward(g, in);
    return g.batched && g.batch > 1 ? rolled(y) : y;
  }
};

TEST(Laws, BatchSeesASampleThatDependsOnItsNeighbour) { expect_caught<SamplesMixed>({Law::batch}); }

struct GroupsIgnored : Conv {
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    Inputs<T> first = in;
    T* x = first.values[0].mutable_data();
    for (Index n = 0; n < g.batch; ++n) {
      for (Index c = 0; c < g.in_channels; ++c) {
        for (Index cell = 0; cell < g.x_map().cells; ++cell) {
          x[g.x_map().at(n, c, cell)] = in.values[0][g.x_map().at(n, c % g.group_in(), cell)];
        }
      }
    }
    return Conv::forward(g, first);
  }
};

TEST(Laws, GroupsSeeEveryGroupReadingTheFirstGroupsChannels) {
  expect_caught<GroupsIgnored>({Law::groups});
}

// Rounding, intervals, strings, sizes.

/// Loses a third of the bits of a float, as a sum in half precision would.
struct LosesBits : Conv {
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    const Tensor<T> y = Conv::forward(g, in);
    if constexpr (std::is_same_v<T, float>) {
      return y.map([](float v) { return v * (1 + 0x1p-12F); });
    } else {
      return y;
    }
  }
};

TEST(Laws, RoundingSeesAResultOutsideItsBound) { expect_caught<LosesBits>({Law::rounding}); }

/// The same in the engine, where kernels run, and not in the definition.
struct LosesBitsInAKernel : Conv {
  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& data) {
    const V y = Conv::call<V>(g, in, data);
    if constexpr (std::is_same_v<V, Tensor<double>>) {
      return kernels::forced_kernel() == "conv_f64_gemm" ? scale(y, 1 + 0x1p-30) : y;
    } else {
      return y;
    }
  }
};

TEST(Laws, KernelsSeesOneCandidateOutsideTheBound) {
  expect_caught<LosesBitsInAKernel>({Law::kernels});
  expect_missed<LosesBitsInAKernel>({Law::rounding, Law::engine});
}

struct LosesBitsOfExp : SmoothMaxPool {
  template <Transcendental T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    const Tensor<T> y = SmoothMaxPool::forward(g, in);
    if constexpr (std::is_same_v<T, double>) {
      return y.map([](double v) { return v + 0x1p-30; });
    } else {
      return y;
    }
  }
};

TEST(Laws, RoundingSeesItBeyondTheRationalsToo) { expect_caught<LosesBitsOfExp>({Law::rounding}); }

template <class Op>
struct DoesNotEnclose : Op {
  using Geometry = typename Op::Geometry;
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    const Tensor<T> y = Op::template forward<T>(g, in);
    if constexpr (std::is_same_v<T, Interval<double>>) {
      return y.map([](const T& v) { return v + T(0x1p-30); });
    } else {
      return y;
    }
  }
};

TEST(Laws, IntervalsSeeAnEnclosureThatMissesTheValue) {
  expect_caught<DoesNotEnclose<Conv>>({Law::intervals});
  expect_caught<DoesNotEnclose<AvgPool>>({Law::intervals});
}

struct ForgetsTheBias : Conv {
  static Geometry parse(std::string_view text) {
    Geometry g = Conv::parse(text);
    g.has_bias = false;
    return g;
  }
};

TEST(Laws, TheStringLawSeesAFieldThatIsNotReadBack) {
  expect_caught<ForgetsTheBias>({Law::problem_string});
}

struct ForgetsTheOutputPadding : ConvTranspose {
  static Geometry random(Random& random) {
    Geometry g = ConvTranspose::random(random);
    for (int axis = 0; axis < g.rank(); ++axis) {
      g.conv.windows.axes[axis].in += g.conv.windows[axis].output_padding_limit();
    }
    return g;
  }
};

TEST(Laws, SizesSeeAnExtentNoOutputPaddingReaches) {
  expect_caught<ForgetsTheOutputPadding>({Law::sizes});
}

struct Throws : Conv {
  template <class T>
  static Tensor<T> jvp(const Geometry&, const Inputs<T>&, const std::vector<Tensor<T>>&) {
    throw Error(ErrorCode::overflow, "no tangent today");
  }
};

TEST(Laws, AnErrorBreaksTheLawAndIsQuoted) {
  const auto outcomes = Laws<Throws>(Conv::parse("x=1x1x3 w=1x1x2"), 1).run();
  const auto adjoint = std::find_if(
      outcomes.begin(), outcomes.end(), [](const LawOutcome& o) { return o.law == Law::adjoint; });
  ASSERT_NE(adjoint, outcomes.end());
  EXPECT_EQ(adjoint->verdict, Verdict::broken);
  EXPECT_EQ(adjoint->detail, "threw overflow: no tangent today");
}

TEST(Laws, OfTheUnmodifiedOperatorsAllHold) {
  EXPECT_EQ(names(broken_laws<Conv>()), "none");
  EXPECT_EQ(names(broken_laws<ConvTranspose>()), "none");
  EXPECT_EQ(names(broken_laws<MaxPool>()), "none");
  EXPECT_EQ(names(broken_laws<MaxUnpool>()), "none");
  EXPECT_EQ(names(broken_laws<AvgPool>()), "none");
  EXPECT_EQ(names(broken_laws<SmoothMaxPool>()), "none");
  EXPECT_EQ(names(broken_laws<LpPool>()), "none");
}

TEST(Laws, HaveNamesOfTheirOwn) {
  std::set<std::string_view> seen;
  for (const Law law : kLaws) {
    EXPECT_FALSE(law_name(law).empty());
    EXPECT_TRUE(seen.insert(law_name(law)).second) << law_name(law);
  }
}

}  // namespace
}  // namespace fenestra::check
