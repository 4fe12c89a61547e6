// The descriptor of the pad family, pad and pad_adjoint: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/pad/pad.hpp>
#include <fenestra/spec/problem.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace fenestra {

enum class PadFunction { pad, adjoint };

/// A problem of the family: a padding and which of the pair to run.
struct PadProblem {
  PadFunction f = PadFunction::pad;
  PadGeometry pad;

  std::vector<LowHigh> pairs() const {
    std::vector<LowHigh> list;
    for (int axis = 0; axis < pad.x.rank(); ++axis) {
      list.emplace_back(pad.low[axis], pad.high[axis]);
    }
    return list;
  }
  friend bool operator==(const PadProblem&, const PadProblem&) = default;
};

inline std::string to_string(const PadProblem& p) {
  std::string text = p.f == PadFunction::pad ? "f=pad" : "f=adjoint";
  text += " x=" + problem_text(p.pad.x);
  if (p.pad.x.rank() > 0) {
    text += " low=" + list_text(p.pad.low) + " high=" + list_text(p.pad.high);
  }
  const PadOptions options{.mode = p.pad.mode, .value = p.pad.value + 0.0};  // -0 is equal to 0
  return text + fields_text(options, options.mode == PadMode::constant ? "" : "value");
}

struct Pad : EngineOperator<Pad> {
  using Geometry = PadProblem;
  using Options = PadOptions;
  static constexpr std::string_view name = "pad";
  static constexpr std::string_view summary =
      "pad and its adjoint: cells added at the ends of axes (zero, constant, reflect, replicate, "
      "circular)";
  static constexpr std::string_view example =
      "f=pad x=2x3x8x8 low=0,0,1,2 high=0,0,1,0 mode=reflect";
  static constexpr OwnField own_fields[] = {{.name = "low",
                                             .meaning = "cells added before each axis: 0,0,1,1",
                                             .otherwise = "0 on each axis"},
                                            {.name = "high",
                                             .meaning = "cells added behind each axis: 0,0,1,1",
                                             .otherwise = "0 on each axis"}};

  /// `low` and `high` have one value per axis, 0 where they are left out.
  static Geometry parse(std::string_view text) {
    static constexpr std::string_view kFunctions[] = {"pad", "adjoint"};
    Problem problem(text);
    Geometry g;
    if (problem.has("f")) {
      g.f = static_cast<PadFunction>(problem.choice("f", kFunctions));
    }
    const Shape x = problem.shape("x");
    const auto options = problem.options<Options>();
    const std::vector<Index> low = problem.integers("low");
    const std::vector<Index> high = problem.integers("high");
    problem.finish(name);
    if (!std::isfinite(options.value)) {
      throw Error(ErrorCode::bad_problem,
                  "problem \"" + std::string(text) + "\": value is not finite");
    }
    if (!low.empty() && !high.empty() && low.size() != high.size()) {
      throw Error(ErrorCode::bad_problem,
                  "problem \"" + std::string(text) +
                      "\": low and high differ in length\n  fix: one value per axis");
    }
    const std::size_t pairs = low.empty() && high.empty() ? static_cast<std::size_t>(x.rank())
                                                          : std::max(low.size(), high.size());
    std::vector<LowHigh> padding;
    for (std::size_t i = 0; i < pairs; ++i) {
      padding.emplace_back(i < low.size() ? low[i] : 0, i < high.size() ? high[i] : 0);
    }
    g.pad = resolve_pad(x, padding, options);
    return g;
  }

  static Geometry random(Random& random) {
    Geometry g;
    g.f = random.chance(2) ? PadFunction::adjoint : PadFunction::pad;
    auto options = random_choices<Options>(random);
    options.value = static_cast<double>(random.between(-4, 4)) / 2;
    const int rank = random.chance(15) ? 0 : random_rank(random);
    Shape x;
    std::vector<LowHigh> padding;
    for (int axis = 0; axis < rank; ++axis) {
      const Index extent = random.chance(20) ? 0 : random.between(1, rank > 3 ? 3 : 5);
      const bool repeats = options.mode != PadMode::zero && options.mode != PadMode::constant;
      Index most = random.chance(3) ? 0 : rank > 3 ? 1 : 3;
      if (repeats && extent == 0) {
        most = 0;
      } else if (options.mode == PadMode::reflect) {
        most = std::min(most, extent - 1);
      } else if (options.mode == PadMode::circular) {
        most = std::min(most, extent);
      }
      x.push_back(extent);
      padding.emplace_back(random.between(0, most), random.between(0, most));
    }
    g.pad = resolve_pad(x, padding, options);
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    return {{"x", g.f == PadFunction::pad ? g.pad.x : g.pad.y()}};
  }
  static TensorInfo output(const Geometry& g) {
    return {"y", g.f == PadFunction::pad ? g.pad.y() : g.pad.x};
  }
  /// Affine where the constant is not zero, for which difference quotients are exact just the same.
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  /// Pad copies; the constant itself may round. The adjoint adds, axis by axis, what meets in a
  /// cell.
  static Index terms(const Geometry& g) {
    if (g.f == PadFunction::pad) {
      return g.pad.mode == PadMode::constant ? 1 : 0;
    }
    Index terms = 0;
    for (int axis = 0; axis < g.pad.x.rank() && !g.pad.adds_constants(); ++axis) {
      terms += g.pad.map(axis).fan_in();
    }
    return terms;
  }

  template <class V>
  static V call(const Geometry& g, const std::vector<V>& in, const std::vector<Tensor<Index>>&) {
    const PadOptions options{.axes = {}, .mode = g.pad.mode, .value = g.pad.value};
    return g.f == PadFunction::pad ? fenestra::pad(in[0], g.pairs(), options)
                                   : fenestra::pad_adjoint(in[0], g.pad.x, g.pairs(), options);
  }
};

static_assert(Operator<Pad>);

}  // namespace fenestra
