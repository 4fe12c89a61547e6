// The descriptor of the resize family, resize and resize_adjoint: see ops/operator.hpp for the
// contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/random_options.hpp>
#include <fenestra/ops/resize/resize.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <vector>

namespace fenestra {

enum class ResizeFunction { resize, adjoint };

/// A problem of the family: a geometry and which of the pair to run.
struct ResizeProblem {
  ResizeFunction f = ResizeFunction::resize;
  ResizeGeometry resize;

  friend bool operator==(const ResizeProblem&, const ResizeProblem&) = default;
};

/// Sizes say it all unless a scale left a fraction of a cell over.
inline std::string to_string(const ResizeProblem& p) {
  const ResizeGeometry& g = p.resize;
  ResizeOptions options{.mode = g.mode, .align_corners = g.align_corners, .layout = g.layout};
  bool by_size = true;
  for (const ResizeAxis& a : g.axes) {
    by_size = by_size && (g.align_corners || a.step == Ratio::of(a.in, a.out));
    options.size.push_back(a.out);
    const double step = static_cast<double>(a.step.num);
    options.scale.push_back(step == 0 ? 1 : static_cast<double>(a.step.den) / step);
  }
  const std::string text = p.f == ResizeFunction::resize ? "f=resize x=" : "f=adjoint x=";
  return text + problem_text(g.x_shape()) + fields_text(options, by_size ? "scale" : "size") +
         (g.batched ? "" : " batched=false");
}

struct Resize : EngineOperator<Resize> {
  using Geometry = ResizeProblem;
  using Options = ResizeOptions;
  static constexpr std::string_view name = "resize";
  static constexpr std::string_view summary =
      "resize and its adjoint: nearest or linear interpolation of the spatial axes";
  static constexpr std::string_view example = "f=resize x=1x3x8x8 size=16,12 mode=bilinear";

  static Geometry parse(std::string_view text) {
    static constexpr std::string_view kFunctions[] = {"resize", "adjoint"};
    Problem problem(text);
    Geometry g;
    if (problem.has("f")) {
      g.f = static_cast<ResizeFunction>(problem.choice("f", kFunctions));
    }
    const Shape x = problem.shape("x");
    const auto options = problem.options<Options>();
    const int rank =
        problem.has("batched") ? x.rank() - (problem.flag("batched", true) ? 2 : 1) : 0;
    problem.finish(name);
    g.resize = resize_geometry(x, options, rank);
    return g;
  }

  static Geometry random(Random& random) {
    Geometry g;
    g.f = random.chance(2) ? ResizeFunction::adjoint : ResizeFunction::resize;
    const int rank = random_rank(random);
    auto options = random_choices<Options>(random);
    options.align_corners = options.align_corners && options.mode == ResizeMode::bilinear;
    Shape spatial;
    const bool by_scale = random.chance(3);
    for (int axis = 0; axis < rank; ++axis) {
      const Index in = random.between(1, rank > 3 ? 3 : 6);
      spatial.push_back(in);
      if (by_scale) {
        // At least 1/in, so that a cell is left; thirds and fifths are not doubles, and still
        // exact.
        options.scale.push_back(static_cast<double>(random.between(6, rank > 3 ? 9 : 14)) /
                                static_cast<double>(random.between(1, std::min<Index>(in, 5)) + 5));
      } else {
        options.size.push_back(random.between(1, rank > 3 ? 4 : 9));
      }
    }
    const RandomActivation x(random, spatial, random.chance(12) ? 0 : random.between(1, 3));
    options.layout = x.layout;
    g.resize = resize_geometry(x.joined(), options, rank);
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    return {{"x",
             g.f == ResizeFunction::resize ? g.resize.x_shape() : g.resize.y_shape(),
             Role::activation}};
  }
  static TensorInfo output(const Geometry& g) {
    return {"y",
            g.f == ResizeFunction::resize ? g.resize.y_shape() : g.resize.x_shape(),
            Role::activation};
  }
  static Layout layout(const Geometry& g) { return g.resize.layout; }
  static bool batched(const Geometry& g) { return g.resize.batched; }
  static Geometry with_layout(Geometry g, Layout layout) {
    g.resize.layout = layout;
    return g;
  }
  static Geometry single_sample(Geometry g) {
    g.resize.batched = false;
    g.resize.batch = 1;
    return g;
  }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  /// Per axis, and only where it changes: a weight is a quotient of two rounded integers (3
  /// roundings), a product makes 4, and the sum of two terms 5; the adjoint adds as many terms as
  /// meet in a cell. Selections only copy or add.
  static Index terms(const Geometry& g) {
    const bool weighs = g.resize.mode == ResizeMode::bilinear;
    const bool adjoint = g.f == ResizeFunction::adjoint;
    Index terms = 0;
    for (int axis = 0; axis < g.resize.rank(); ++axis) {
      if (!g.resize.keeps(axis)) {
        terms += (weighs ? 4 : 0) + (adjoint ? g.resize.map(axis).fan_in() : weighs ? 1 : 0);
      }
    }
    return terms;
  }

  template <class V>
  static V call(const Geometry& g, const std::vector<V>& in, const std::vector<Tensor<Index>>&) {
    return g.f == ResizeFunction::resize ? fenestra::resize(in[0], g.resize)
                                         : fenestra::resize_adjoint(in[0], g.resize);
  }
};

static_assert(Operator<Resize>);

}  // namespace fenestra
