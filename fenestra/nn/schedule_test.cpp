// Schedules: formulas, texts, spans in epochs, refusals. Step and cosine are in optimiser_test.cpp.
#include <fenestra/nn/schedule.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

namespace fenestra::nn {
namespace {

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos);
    return error.code();
  }
  return ErrorCode::none;
}

TEST(Schedule, LinearFallsInEqualParts) {
  const LinearRate rate{.rate = 1, .steps = 4, .least = 0.5};
  EXPECT_EQ(rate(0), 1);
  EXPECT_EQ(rate(1), 0.875);
  EXPECT_EQ(rate(4), 0.5);
  EXPECT_EQ(rate(100), 0.5);
}

/// As published (and as torch's OneCycleLR without three phases), in long double.
TEST(Schedule, OneCycleGoesUpAndDown) {
  const OneCycleRate rate{.rate = 0.4, .steps = 50};
  const long double start = 0.4L / 25, end = start / 1e4L;
  const long double top = 0.3L * 50 - 1;
  for (Index step = 0; step < 60; ++step) {
    const long double at = std::min<long double>(static_cast<long double>(step), 49);
    const long double part = at <= top ? at / top : (at - top) / (49 - top);
    const long double weight = (1 + std::cos(std::numbers::pi_v<long double> * part)) / 2;
    const long double expected =
        at <= top ? 0.4L + (start - 0.4L) * weight : end + (0.4L - end) * weight;
    // The angle, at most pi, has five roundings, which the cosine keeps; then come five more, of
    // numbers of at most 0.4: below 5 pi * 0.4 / 2 + 5 * 0.4 in units of 2^-53.
    EXPECT_NEAR(rate(step), static_cast<double>(expected), 6 * 0x1p-53) << step;
  }
  EXPECT_DOUBLE_EQ(rate(14), 0.4);
  EXPECT_EQ(code_of([] { OneCycleRate{.steps = 1}(0); }), ErrorCode::invalid_option);
}

TEST(Schedule, TextsGiveTheScheduleBack) {
  for (const char* text : {"constant",
                           "constant warmup=5",
                           "step every=10 factor=0.5",
                           "cosine warmup=100 steps=1000 least=0.01",
                           "linear warmup=2epochs least=0",
                           "one-cycle rise=0.25 divisor=10 final_divisor=100"}) {
    const Schedule schedule = Schedule::parse(text);
    EXPECT_EQ(schedule.text(), text);
    EXPECT_EQ(Schedule::parse(schedule.text()), schedule);
  }
}

TEST(Schedule, AnyOfThemIsItsFormulaTimesTheRate) {
  const Schedule cosine = Schedule::parse("cosine warmup=3 steps=11");
  const CosineRate plain{.rate = 1, .steps = 11, .least = 0, .warmup = 3};
  const Schedule step = Schedule::parse("step every=10 factor=0.5 warmup=4");
  const Schedule cycle = Schedule::parse("one-cycle steps=40");
  for (Index i = 0; i < 50; ++i) {
    EXPECT_EQ(cosine(i), plain(i)) << i;
    EXPECT_EQ(step(i), i < 4 ? static_cast<double>(i + 1) / 5 : std::pow(0.5, (i - 4) / 10)) << i;
    EXPECT_EQ(cycle(i), (OneCycleRate{.rate = 1, .steps = 40}(i))) << i;
  }
  EXPECT_EQ(Schedule()(12345), 1);
}

TEST(Schedule, SpansInEpochsBecomeStepsOfTheRun) {
  const Schedule step = Schedule::parse("step every=2epochs factor=0.5 warmup=0.5epochs");
  EXPECT_FALSE(step.is_resolved());
  EXPECT_EQ(code_of([&] { step(0); }), ErrorCode::invalid_option);
  const Schedule known = step.of_run(100, 10);
  EXPECT_EQ(known.text(), "step warmup=5 every=20 factor=0.5");
  EXPECT_EQ(known(24), 1);
  EXPECT_EQ(known(25), 0.5);
  const Schedule cosine = Schedule::parse("cosine");
  EXPECT_EQ(code_of([&] { cosine(0); }), ErrorCode::invalid_option);
  EXPECT_EQ(cosine.of_run(100, 10)(100), 0);
  // The cosine of an angle near pi / 2 that has three roundings.
  EXPECT_NEAR(cosine.of_run(100, 10)(50), 0.5, 6 * 0x1p-53);
  // A run that is shorter than its warm-up never falls.
  EXPECT_EQ(Schedule::parse("cosine warmup=200").of_run(100, 10)(99), 100.0 / 201);
}

TEST(Schedule, WhatMakesNoSenseIsRefused) {
  const auto parse = [](const char* text) { return [=] { Schedule::parse(text); }; };
  EXPECT_EQ(code_of(parse("")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(parse("cosin")), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of(parse("cosine every=3")), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of(parse("one-cycle warmup=3")), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of(parse("step every=0")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(parse("step every=1.5")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(parse("step every=-3epochs")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(parse("step factor=2")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(parse("cosine least=nan")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(parse("cosine warmup=1e300")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(parse("cosine warmup=epochs")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { Schedule().of_run(0, 1); }), ErrorCode::invalid_option);
}

}  // namespace
}  // namespace fenestra::nn
