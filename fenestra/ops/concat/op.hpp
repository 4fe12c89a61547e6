// The descriptor of concat: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/concat/concat.hpp>
#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <vector>

namespace fenestra {

struct ConcatGeometry {
  int axis = 0;
  std::vector<Shape> parts;

  friend bool operator==(const ConcatGeometry&, const ConcatGeometry&) = default;
};

inline std::string to_string(const ConcatGeometry& g) {
  std::string text = "axis=" + std::to_string(g.axis) + " extents=";
  for (std::size_t i = 0; i < g.parts.size(); ++i) {
    text += (i > 0 ? "," : "") + std::to_string(g.parts[i][g.axis]);
  }
  return text + " x=" + problem_text(g.parts[0]);
}

struct Concat : EngineOperator<Concat> {
  using Geometry = ConcatGeometry;
  static constexpr std::string_view name = "concat";
  static constexpr std::string_view summary = "concat: tensors one after another along an axis";
  static constexpr std::string_view example = "axis=1 extents=3,5 x=2x3x8x8";
  static constexpr OwnField own_fields[] = {
      {.name = "axis", .meaning = help::kAxis, .otherwise = "0"},
      {.name = "extents", .meaning = "of the parts on the axis: 4,8"}};

  /// `x` is the first part; the others differ from it in the axis alone, by `extents`.
  static Geometry parse(std::string_view text) {
    Problem problem(text);
    const Shape x = problem.shape("x");
    const Index axis = problem.integer("axis", 0);
    const std::vector<Index> extents = problem.integers("extents");
    problem.finish(name);
    Geometry g;
    const bool exists = axis >= -kMaxRank && axis < kMaxRank;
    g.axis = checked_axis(name, x, exists ? static_cast<int>(axis) : kMaxRank);
    if (extents.empty() || extents[0] != x[g.axis]) {
      const Index got = extents.empty() ? 0 : extents[0];
      throw Error(std::string(name),
                  {.code = ErrorCode::shape_mismatch,
                   .argument = Argument::x,
                   .got = got,
                   .needed = x[g.axis]},
                  "concat: extents begin with " + std::to_string(got) + ", x = " + to_string(x) +
                      " has " + std::to_string(x[g.axis]) + " on axis " + std::to_string(g.axis) +
                      "\n  fix: extents=" + std::to_string(x[g.axis]) + ",...");
    }
    for (const Index extent : extents) {
      g.parts.push_back(x);
      g.parts.back()[g.axis] = extent;
      if (!g.parts.back().elements()) {
        throw Error(
            std::string(name),
            {.code = ErrorCode::invalid_extent,
             .argument = Argument::x,
             .got = extent,
             .needed = 0},
            "concat: a part " + to_string(g.parts.back()) + " cannot exist\n  fix: extents >= 0");
      }
    }
    resolve_concat(g.parts, g.axis);
    return g;
  }

  static Geometry random(Random& random) {
    Geometry g;
    Shape x;
    const int rank = random_rank(random);
    for (int axis = 0; axis < rank; ++axis) {
      x.push_back(random.chance(20) ? 0 : random.between(1, rank > 3 ? 3 : 5));
    }
    g.axis = static_cast<int>(random.between(0, rank - 1));
    const Index count = random.between(1, 4);
    for (Index i = 0; i < count; ++i) {
      x[g.axis] = random.chance(10) ? 0 : random.between(1, 4);
      g.parts.push_back(x);
    }
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    std::vector<TensorInfo> infos;
    for (const Shape& part : g.parts) {
      infos.push_back({"x", part});
    }
    return infos;
  }
  static TensorInfo output(const Geometry& g) { return {"y", resolve_concat(g.parts, g.axis).y}; }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  /// Copies: no rounding at all.
  static Index terms(const Geometry&) { return 0; }

  template <class V>
  static V call(const Geometry& g, const std::vector<V>& in, const std::vector<Tensor<Index>>&) {
    return fenestra::concat(in, g.axis);
  }
};

static_assert(Operator<Concat>);

}  // namespace fenestra
