// The descriptor of the normalisations. See ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/normalise/normalise.hpp>
#include <fenestra/ops/random_shape.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

/// The statistics of the training form are results too, so they are problems of their own.
enum class NormFunction { batch, batch_mean, batch_var, inference, group, layer };

struct NormaliseGeometry {
  NormFunction f = NormFunction::batch;
  Shape x;
  bool affine = true;  ///< with gamma and beta
  Index groups = 1;    ///< of group norm
  int axes = 1;        ///< of layer norm
  NormOptions options;

  friend constexpr bool operator==(const NormaliseGeometry&, const NormaliseGeometry&) = default;
};

namespace detail {
inline constexpr std::string_view kNormNames[] = {
    "batch", "batch_mean", "batch_var", "inference", "group", "layer"};

/// The option that the function has not: a layer norm sees no channels.
constexpr std::string_view left_out(NormFunction f) {
  return f == NormFunction::layer ? "layout" : "";
}
}  // namespace detail

inline std::string to_string(const NormaliseGeometry& g) {
  std::string text = "f=" + std::string(detail::kNormNames[static_cast<int>(g.f)]) +
                     " x=" + problem_text(g.x) + (g.affine ? "" : " affine=false");
  if (g.f == NormFunction::group) {
    text += " groups=" + std::to_string(g.groups);
  }
  if (g.f == NormFunction::layer) {
    text += " axes=" + std::to_string(g.axes);
  }
  return text + fields_text(g.options, detail::left_out(g.f));
}

struct Normalise : EngineOperator<Normalise> {
  using Geometry = NormaliseGeometry;
  using Options = NormOptions;
  static constexpr std::string_view name = "normalise";
  static constexpr std::string_view summary = "batch, group and layer normalisation";
  static constexpr std::string_view example = "f=batch x=8x16x32x32";
  static constexpr OwnField own_fields[] = {
      {.name = "groups", .meaning = "parts of the channels, of group_norm", .otherwise = "1"},
      {.name = "affine", .meaning = "whether there are a scale and a shift", .otherwise = "true"},
      {.name = "axes", .meaning = "how many of the last axes, of layer_norm", .otherwise = "1"}};

  static Geometry parse(std::string_view text) {
    Problem problem(text);
    Geometry g;
    g.f = static_cast<NormFunction>(problem.choice("f", detail::kNormNames));
    g.x = problem.shape("x");
    g.affine = problem.flag("affine", true);
    if (g.f == NormFunction::group) {
      g.groups = problem.integer("groups", 1);
    }
    if (g.f == NormFunction::layer) {
      const Index axes = problem.integer("axes", 1);
      g.axes = axes < 0 || axes > kMaxRank ? 0 : static_cast<int>(axes);
    }
    g.options = problem.options<Options>(detail::left_out(g.f));
    problem.finish(name);
    geometry(g);
    return g;
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "f=batch x=2x2x2 eps=0.125",
             .inputs = {{1, 2, 3, 5, 4, 0, -1, 2}, {1, 2}, {0, -1}},
             .y = {-0.493196961916,
                   0.164398987305,
                   -0.316236541242,
                   1.507132682112,
                   1.479590885748,
                   -1.150792911138,
                   -3.962974987951,
                   -1.227921152919},
             .y_bar = {1, 0, 0, 2, 0, -1, 1, 0},
             .bars = {{0.710914539699,
                       -0.017772863492,
                       -0.763683863028,
                       0.846564282272,
                       -0.159955771432,
                       -0.533185904774,
                       0.574242904758,
                       -0.657123324001},
                      {0.657595949221, 1.025645188137},
                      {0, 3}},
             .half_unit = 5e-13},
            {.problem = "f=batch_mean x=2x2x2 affine=false",
             .inputs = {{1, 2, 3, 5, 4, 0, -1, 2}},
             .y = {1.75, 2.25}},
            {.problem = "f=batch_var x=2x2x2 affine=false",
             .inputs = {{1, 2, 3, 5, 4, 0, -1, 2}},
             .y = {2.1875, 4.6875}},
            {.problem = "f=group x=1x4x2 groups=2 eps=0.125",
             .inputs = {{1, 2, 3, 5, 4, 0, -1, 2}, {1, 2, 1, -1}, {0, -1, 0, 1}},
             .y = {-1.150792911138,
                   -0.493196961916,
                   -0.671202025389,
                   1.959181771496,
                   1.408405679262,
                   -0.640184399664,
                   2.152331919396,
                   0.615889360201},
             .y_bar = {1, 0, 0, 2, 0, -1, 1, 0},
             .bars = {{0.737573834938,
                       -0.435435155566,
                       -0.950848196847,
                       0.648709517475,
                       -0.067166887834,
                       -0.10914619273,
                       0.008395860979,
                       0.167917219584},
                      {-1.150792911138, 2.959181771496, 0.640184399664, -1.152331919396},
                      {1, 2, -1, 1}},
             .half_unit = 5e-13},
            {.problem = "f=layer x=2x3 eps=0.125",
             .inputs = {{1, 2, 4, 0, -1, 3}, {1, 2, -1}, {0, -1, 0.5}},
             .y = {-1.028518954453,
                   -1.514259477227,
                   -0.785648693066,
                   -0.38401228859,
                   -2.920061442949,
                   -0.844043010064},
             .y_bar = {1, 0, 0, 2, 0, -1},
             .bars = {{0.242254464479,
                       -0.3251309918,
                       0.082876527322,
                       0.618489838074,
                       -0.469839919911,
                       -0.148649918164},
                      {-1.796543531633, 0, -1.344043010064},
                      {3, 0, -1}},
             .half_unit = 5e-13},
            {.problem = "f=inference x=1x2 eps=0.25",
             .inputs = {{1, 2}, {0.5, 1}, {0.75, 2}, {2, 3}, {0, 1}},
             .y = {1, 3},
             .y_bar = {1, 1},
             .bars = {{2, 2}},
             .half_unit = 5e-13}};
  }
  static Geometry random(Random& random) {
    Geometry g;
    g.f = static_cast<NormFunction>(random.between(0, 5));
    g.affine = !random.chance(3);
    g.options.eps = random.chance(2) ? 1e-5 : 0.125;
    g.x = random_shape(random, 2, 4, 1);
    if (g.f == NormFunction::layer) {
      g.axes = static_cast<int>(random.between(1, g.x.rank()));
      return g;
    }
    const bool last = random.chance(2);
    g.options.layout = last ? Layout::channels_last : Layout::channels_first;
    if (g.f == NormFunction::group) {
      g.groups = random.between(1, 3);
      g.x[last ? g.x.rank() - 1 : 1] = g.groups * random.between(1, 2);
    }
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    const Shape parameters = geometry(g).parameters;
    std::vector<TensorInfo> list{{"x", g.x}};
    if (g.f == NormFunction::inference) {
      list.push_back({"mean", parameters});
      list.push_back({"var", parameters});
    }
    if (g.affine) {
      list.push_back({"gamma", parameters});
      list.push_back({"beta", parameters});
    }
    return list;
  }
  static TensorInfo output(const Geometry& g) {
    const bool statistic = g.f == NormFunction::batch_mean || g.f == NormFunction::batch_var;
    return {"y", statistic ? geometry(g).parameters : g.x};
  }
  static Algebra algebra(const Geometry& g) {
    switch (g.f) {
      case NormFunction::batch_mean:
      case NormFunction::batch_var: return Algebra::rational;
      default: return Algebra::transcendental;
    }
  }
  /// The variance given to inference.
  static bool positive(const Geometry& g, std::size_t input) {
    return g.f == NormFunction::inference && input == 2;
  }

  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& /*data*/) {
    const NormOptions& options = g.options;
    switch (g.f) {
      case NormFunction::inference:
        return g.affine ? batch_norm_inference(in[0], in[1], in[2], in[3], in[4], options)
                        : batch_norm_inference(in[0], in[1], in[2], options);
      case NormFunction::group:
        return g.affine ? group_norm(in[0], g.groups, in[1], in[2], options)
                        : group_norm(in[0], g.groups, options);
      case NormFunction::layer:
        return g.affine ? layer_norm(in[0], in[1], in[2], options.eps)
                        : layer_norm(in[0], g.axes, options.eps);
      default: break;
    }
    const NormGeometry geometry = batch_norm_geometry(in[0].shape(), options);
    if (g.f == NormFunction::batch) {
      return g.affine ? batch_norm(in[0], in[1], in[2], options).y : batch_norm(in[0], options).y;
    }
    const std::vector<V> statistics = detail::norm_inputs(geometry, in[0]);
    return reshape(statistics[g.f == NormFunction::batch_mean ? 1 : 2], geometry.parameters);
  }

 private:
  static NormGeometry geometry(const Geometry& g) {
    switch (g.f) {
      case NormFunction::group: return group_norm_geometry(g.x, g.groups, g.options);
      case NormFunction::layer: return layer_norm_geometry(g.x, g.axes, g.options.eps);
      default: return batch_norm_geometry(g.x, g.options);
    }
  }
};

static_assert(Operator<Normalise>);

}  // namespace fenestra
