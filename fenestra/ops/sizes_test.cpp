// Numbers of every size in every place of every operator's problem strings: a typed error, or a
// geometry whose counts are those of exact arithmetic. Compiled with the undefined-behaviour
// sanitizer this is the proof that no product or sum of sizes wraps around. Nothing is computed and
// nothing allocated here.
#include <fenestra/ops/list.hpp>

#include <gtest/gtest.h>

#include <cctype>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {
namespace {

__extension__ typedef __int128 Wide;

constexpr Index kMax = std::numeric_limits<Index>::max();

/// A number near one of those at which something could overflow; small ones as often.
Index hostile(Random& random) {
  constexpr Index kNear[] = {Index{1} << 31,
                             Index{1} << 32,
                             Index{1} << 40,
                             kMaxElements,
                             Index{1} << 61,
                             Index{1} << 62,
                             kMax - 2};
  if (random.chance(2)) {
    return random.between(-2, 9);
  }
  const Index near = kNear[random.between(0, std::size(kNear) - 1)] + random.between(-2, 2);
  return random.chance(4) ? -near : near;
}

/// `text` with some of its integers replaced. Digits of a word or of a real number stay.
std::string with_hostile_numbers(Random& random, std::string_view text, int one_in) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const bool starts = i > 0 && (text[i - 1] == '=' || text[i - 1] == 'x' || text[i - 1] == ',' ||
                                  text[i - 1] == ':');
    std::size_t end = i;
    end += end < text.size() && text[end] == '-' ? 1 : 0;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) {
      ++end;
    }
    const bool whole = end > i && (end == text.size() ||
                                   std::string_view(" x,:").find(text[end]) != std::string::npos);
    if (starts && whole && random.chance(one_in)) {
      result += std::to_string(hostile(random));
      i = end;
    } else {
      result += text[i++];
    }
  }
  return result;
}

/// Whether the extents multiply to `elements`, 2^53 at most.
bool is_exact(const Shape& shape) {
  Wide product = 1;
  Wide of_others = 1;  // than zeros: each of them must fit too
  for (const Index extent : shape) {
    if (extent < 0 || of_others > kMaxElements) {
      return false;
    }
    product *= extent;
    of_others *= extent == 0 ? 1 : extent;
  }
  return of_others <= kMaxElements && shape.elements() && *shape.elements() == product;
}

template <class Op>
void expect_typed_error_or_exact_counts(const std::string& text, int& refused, int& accepted) {
  try {
    const typename Op::Geometry g = Op::parse(text);
    for (const TensorInfo& input : Op::inputs(g)) {
      EXPECT_TRUE(is_exact(input.shape)) << Op::name << " " << text << ": " << input.name;
    }
    EXPECT_TRUE(is_exact(Op::output(g).shape)) << Op::name << " " << text;
    EXPECT_EQ(Op::parse(to_string(g)), g) << Op::name << " " << text << " -> " << to_string(g);
    if constexpr (requires { Op::costs(g); }) {
      EXPECT_GE(Op::costs(g).multiply_adds, 0) << Op::name << " " << text;
      EXPECT_GE(Op::costs(g).parameters, 0) << Op::name << " " << text;
    }
    hash_value(g);
    ++accepted;
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::none) << Op::name << " " << text;
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    ++refused;
  }
}

template <class Op>
void check_problem_strings() {
  Random random(11);
  int refused = 0;
  int accepted = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::string text = i % 5 == 0 ? std::string(Op::example) : to_string(Op::random(random));
    const std::string hostile_text =
        with_hostile_numbers(random, text, static_cast<int>(random.between(1, 9)));
    SCOPED_TRACE(hostile_text);
    expect_typed_error_or_exact_counts<Op>(hostile_text, refused, accepted);
  }
  EXPECT_GT(refused, 200) << Op::name;
  EXPECT_GT(accepted, 50) << Op::name;
}

template <class... Ops>
void check_all(TypeList<Ops...>) {
  (check_problem_strings<Ops>(), ...);
}

TEST(Sizes, OfEveryOperatorAreRefusedOrCountedExactly) { check_all(Operators{}); }

TEST(Sizes, ThatOverflowAreRefusedByName) {
  const auto code_of = []<class Op>(std::string_view text) {
    try {
      Op::parse(text);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::none;
  };
  const auto expect_overflow = [&]<class Op>(Op*, std::string_view text) {
    EXPECT_EQ(code_of.template operator()<Op>(text), ErrorCode::overflow)
        << Op::name << " " << text;
  };
  expect_overflow(static_cast<Reduce*>(nullptr), "f=mean x=4611686018427387904x4");
  expect_overflow(static_cast<Reduce*>(nullptr), "f=sum x=0x4611686018427387904x4");
  for (const char* f : {"batch", "group", "layer", "inference"}) {
    expect_overflow(static_cast<Normalise*>(nullptr),
                    "f=" + std::string(f) + " x=4611686018427387904x4");
    expect_overflow(static_cast<Normalise*>(nullptr),
                    "f=" + std::string(f) + " x=0x4x4611686018427387904");
  }
  expect_overflow(static_cast<Softmax*>(nullptr), "f=softmax x=4611686018427387904x4");
  expect_overflow(static_cast<Loss*>(nullptr), "f=cross_entropy x=4611686018427387904x4");
  expect_overflow(static_cast<Transpose*>(nullptr), "x=4611686018427387904x4 order=1,0");
  expect_overflow(static_cast<Reshape*>(nullptr),
                  "x=4611686018427387904x4 y=4x4611686018427387904");
  expect_overflow(static_cast<Elementwise*>(nullptr), "f=add a=4294967296x1 b=4294967296");
  expect_overflow(static_cast<Elementwise*>(nullptr), "f=exp x=4611686018427387904x4");
  expect_overflow(static_cast<Matmul*>(nullptr), "a=4294967296x1 b=1x4294967296");
  expect_overflow(static_cast<Matmul*>(nullptr), "a=16777216x2097152 b=2097152x16777216");
  expect_overflow(static_cast<Slice*>(nullptr), "f=slice shape=4611686018427387904x4");
}

}  // namespace
}  // namespace fenestra
