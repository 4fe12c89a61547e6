// The descriptor of the elementwise family: one problem names one function. See ops/operator.hpp
// for the contract.
#pragma once

#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/spec/problem.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

/// A function with its constants and the shapes of its arguments; `b` only with two of them.
struct ElementwiseGeometry {
  bool is_binary = false;
  UnaryCall unary;
  BinaryFunction binary = BinaryFunction::add;
  Shape a;
  Shape b;

  friend constexpr bool operator==(const ElementwiseGeometry&,
                                   const ElementwiseGeometry&) = default;
};

namespace detail {

// stop_gradient is missing: that its derivative is another than its value's is its purpose.
inline constexpr std::array kUnaryFunctions = {
    UnaryFunction::neg,   UnaryFunction::exp,          UnaryFunction::log,
    UnaryFunction::sqrt,  UnaryFunction::abs,          UnaryFunction::sign,
    UnaryFunction::relu,  UnaryFunction::leaky_relu,   UnaryFunction::sigmoid,
    UnaryFunction::tanh,  UnaryFunction::normal_cdf,   UnaryFunction::gelu,
    UnaryFunction::silu,  UnaryFunction::hard_sigmoid, UnaryFunction::clip,
    UnaryFunction::power, UnaryFunction::scale,        UnaryFunction::softplus,
    UnaryFunction::sin,   UnaryFunction::cos,          UnaryFunction::erf,
    UnaryFunction::floor, UnaryFunction::ceil,         UnaryFunction::round,
    UnaryFunction::elu};
inline constexpr std::array kBinaryFunctions = {BinaryFunction::add,
                                                BinaryFunction::sub,
                                                BinaryFunction::mul,
                                                BinaryFunction::div,
                                                BinaryFunction::pow,
                                                BinaryFunction::min,
                                                BinaryFunction::max,
                                                BinaryFunction::mod,
                                                BinaryFunction::floor_divide,
                                                BinaryFunction::less,
                                                BinaryFunction::less_equal,
                                                BinaryFunction::equal};

/// The keys of a function's constants in problem strings, in the order of UnaryCall.
constexpr std::array<std::string_view, 2> constant_keys(UnaryFunction f) {
  switch (f) {
    case UnaryFunction::leaky_relu: return {"slope", ""};
    case UnaryFunction::clip: return {"low", "high"};
    case UnaryFunction::power: return {"p", ""};
    case UnaryFunction::scale: return {"factor", ""};
    case UnaryFunction::elu: return {"alpha", ""};
    default: return {"", ""};
  }
}

}  // namespace detail

inline std::string to_string(const ElementwiseGeometry& g) {
  if (g.is_binary) {
    return "f=" + std::string(function_name(g.binary)) + " a=" + problem_text(g.a) +
           " b=" + problem_text(g.b);
  }
  std::string text = "f=" + std::string(function_name(g.unary.f)) + " x=" + problem_text(g.a);
  const auto keys = detail::constant_keys(g.unary.f);
  const double constants[] = {g.unary.a, g.unary.b};
  for (std::size_t i = 0; i < keys.size() && !keys[i].empty(); ++i) {
    text += " " + std::string(keys[i]) + "=" + problem_text(constants[i]);
  }
  return text;
}

struct Elementwise : EngineOperator<Elementwise> {
  using Geometry = ElementwiseGeometry;
  static constexpr std::string_view name = "elementwise";
  static constexpr std::string_view summary =
      "one function of every element, or of two tensors that broadcast";
  static constexpr std::string_view example = "f=add a=8x16x32 b=16x1";
  static constexpr OwnField own_fields[] = {
      {.name = "p", .meaning = "exponent, of power", .otherwise = "1"},
      {.name = "slope", .meaning = "below zero, of leaky_relu", .otherwise = "1"},
      {.name = "low", .meaning = "lower bound, of clip", .otherwise = "1"},
      {.name = "high", .meaning = "upper bound, of clip", .otherwise = "1"},
      {.name = "factor", .meaning = "of scale", .otherwise = "1"},
      {.name = "alpha", .meaning = "limit below zero, of elu", .otherwise = "1"}};

  static Geometry parse(std::string_view text) {
    std::string_view names[detail::kUnaryFunctions.size() + detail::kBinaryFunctions.size()];
    std::size_t count = 0;
    for (const UnaryFunction f : detail::kUnaryFunctions) {
      names[count++] = function_name(f);
    }
    for (const BinaryFunction f : detail::kBinaryFunctions) {
      names[count++] = function_name(f);
    }
    Problem problem(text);
    Geometry g;
    const auto which = static_cast<std::size_t>(problem.choice("f", names));
    g.is_binary = which >= detail::kUnaryFunctions.size();
    if (g.is_binary) {
      g.binary = detail::kBinaryFunctions[which - detail::kUnaryFunctions.size()];
      g.a = problem.shape("a");
      g.b = problem.shape("b");
      problem.finish(name);
      broadcast_shape(function_name(g.binary), g.a, g.b);
      return g;
    }
    g.unary.f = detail::kUnaryFunctions[which];
    g.a = problem.shape("x");
    const auto keys = detail::constant_keys(g.unary.f);
    double* constants[] = {&g.unary.a, &g.unary.b};
    for (std::size_t i = 0; i < keys.size() && !keys[i].empty(); ++i) {
      *constants[i] = problem.real(keys[i], 1);
    }
    problem.finish(name);
    require_elements(name, "x", Argument::x, g.a);
    if (g.unary.f == UnaryFunction::clip) {
      require_clip_bounds(g.unary.a, g.unary.b);
    }
    return g;
  }

  static std::vector<KnownAnswer> answers() {
    return {{.problem = "f=mul a=2x2 b=2",
             .inputs = {{1, 2, 3, 4}, {5, 6}},
             .y = {5, 12, 15, 24},
             .y_bar = {1, 1, 1, 2},
             .bars = {{5, 6, 5, 12}, {4, 10}}},
            {.problem = "f=div a=2 b=scalar",
             .inputs = {{1, 3}, {2}},
             .y = {0.5, 1.5},
             .y_bar = {1, 1},
             .bars = {{0.5, 0.5}, {-1}}},
            {.problem = "f=max a=3 b=3",
             .inputs = {{1, 2, 3}, {1, 3, 2}},
             .y = {1, 3, 3},
             .y_bar = {1, 1, 1},
             .bars = {{1, 0, 1}, {0, 1, 0}}},
            {.problem = "f=min a=3 b=3",
             .inputs = {{1, 2, 3}, {1, 3, 2}},
             .y = {1, 2, 2},
             .y_bar = {1, 1, 1},
             .bars = {{1, 1, 0}, {0, 0, 1}}},
            {.problem = "f=relu x=3",
             .inputs = {{-1, 0, 2}},
             .y = {0, 0, 2},
             .y_bar = {1, 1, 1},
             .bars = {{0, 0, 1}}},
            {.problem = "f=leaky_relu x=3 slope=0.25",
             .inputs = {{-4, 0, 2}},
             .y = {-1, 0, 2},
             .y_bar = {1, 1, 1},
             .bars = {{0.25, 0.25, 1}}},
            {.problem = "f=clip x=5 low=-1 high=2",
             .inputs = {{-3, -1, 0, 2, 3}},
             .y = {-1, -1, 0, 2, 2},
             .y_bar = {1, 1, 1, 1, 1},
             .bars = {{0, 1, 1, 1, 0}}},
            {.problem = "f=hard_sigmoid x=3", .inputs = {{-3, 0, 3}}, .y = {0, 0.5, 1}},
            {.problem = "f=abs x=3",
             .inputs = {{-2, 0, 3}},
             .y = {2, 0, 3},
             .y_bar = {1, 1, 1},
             .bars = {{-1, 0, 1}}},
            {.problem = "f=power x=2 p=-2",
             .inputs = {{0.5, -2}},
             .y = {4, 0.25},
             .y_bar = {1, 1},
             .bars = {{-16, 0.25}}},
            {.problem = "f=gelu x=3",
             .inputs = {{-1, 0, 2}},
             .y = {-0.158655253931, 0, 1.954499736104},
             .y_bar = {1, 1, 1},
             .bars = {{-0.083315470588, 0.5, 1.085231801078}},
             .half_unit = 5e-13},
            {.problem = "f=silu x=2",
             .inputs = {{-1, 2}},
             .y = {-0.26894142137, 1.761594155956},
             .y_bar = {1, 1},
             .bars = {{0.072329488129, 1.090784248785}},
             .half_unit = 5e-13},
            {.problem = "f=softplus x=2",
             .inputs = {{0, 3}},
             .y = {0.69314718056, 3.048587351574},
             .y_bar = {1, 1},
             .bars = {{0.5, 0.952574126822}},
             .half_unit = 5e-13}};
  }
  static Geometry random(Random& random) {
    Geometry g;
    const Shape shape = random_shape(random, 0, 4);
    g.is_binary = random.chance(2);
    if (g.is_binary) {
      g.binary = detail::kBinaryFunctions[pick(random, detail::kBinaryFunctions.size())];
      g.a = random.chance(2) ? shape : random_broadcastable(random, shape);
      g.b = random.chance(2) ? shape : random_broadcastable(random, shape);
      return g;
    }
    g.a = shape;
    g.unary.f = detail::kUnaryFunctions[pick(random, detail::kUnaryFunctions.size())];
    // Constants with few bits, so that rationals stay small; the bends of `clip` are at integers.
    switch (g.unary.f) {
      case UnaryFunction::leaky_relu: g.unary.a = 0.125; break;
      case UnaryFunction::clip:
        g.unary.a = static_cast<double>(random.between(-2, 0));
        g.unary.b = static_cast<double>(random.between(0, 2));
        break;
      case UnaryFunction::power: {
        static constexpr double kExponents[] = {-2, -1, 0, 1, 2, 3, 0.5, 1.5, -0.75};
        g.unary.a = kExponents[random.between(0, 8)];
        break;
      }
      case UnaryFunction::elu: g.unary.a = random.chance(2) ? 1 : 0.5; break;
      case UnaryFunction::scale: g.unary.a = static_cast<double>(random.between(-4, 4)) / 4; break;
      default: break;
    }
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    if (g.is_binary) {
      return {{"a", g.a}, {"b", g.b}};
    }
    return {{"x", g.a}};
  }
  static TensorInfo output(const Geometry& g) {
    return {"y", g.is_binary ? broadcast_shape(function_name(g.binary), g.a, g.b) : g.a};
  }
  static Algebra algebra(const Geometry& g) {
    if (g.is_binary) {
      switch (g.binary) {
        case BinaryFunction::add:
        case BinaryFunction::sub:
        case BinaryFunction::mul: return Algebra::multilinear;
        case BinaryFunction::min:
        case BinaryFunction::max:
        case BinaryFunction::less:
        case BinaryFunction::less_equal:
        case BinaryFunction::equal: return Algebra::piecewise_linear;
        case BinaryFunction::mod:
        case BinaryFunction::floor_divide:
        case BinaryFunction::div: return Algebra::rational;
        case BinaryFunction::pow: return Algebra::transcendental;
      }
    }
    switch (g.unary.f) {
      case UnaryFunction::neg:
      case UnaryFunction::scale: return Algebra::multilinear;
      case UnaryFunction::abs:
      case UnaryFunction::sign:
      case UnaryFunction::relu:
      case UnaryFunction::leaky_relu:
      case UnaryFunction::hard_sigmoid:
      case UnaryFunction::floor:
      case UnaryFunction::ceil:
      case UnaryFunction::round:
      case UnaryFunction::clip: return Algebra::piecewise_linear;
      case UnaryFunction::power:
        return spec::detail::is_small_integer(g.unary.a) ? Algebra::rational
                                                         : Algebra::transcendental;
      default: return Algebra::transcendental;
    }
  }
  /// Where there are jumps among the numbers that laws draw: halves, and quotients of two draws.
  static bool jumps(const Geometry& g) {
    return g.is_binary ? g.binary == BinaryFunction::mod || g.binary == BinaryFunction::floor_divide
                       : g.unary.f == UnaryFunction::round;
  }
  /// Where the function needs x > 0.
  static bool positive(const Geometry& g, std::size_t input) {
    if (g.is_binary) {
      return g.binary == BinaryFunction::pow && input == 0;
    }
    return g.unary.f == UnaryFunction::log || g.unary.f == UnaryFunction::sqrt ||
           (g.unary.f == UnaryFunction::power && !spec::detail::is_small_integer(g.unary.a));
  }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& /*data*/) {
    return g.is_binary ? binary(g.binary, in[0], in[1]) : unary(g.unary, in[0]);
  }

 private:
  static std::size_t pick(Random& random, std::size_t count) {
    return static_cast<std::size_t>(random.between(0, static_cast<Index>(count) - 1));
  }
};

static_assert(Operator<Elementwise>);

}  // namespace fenestra
