// oneDNN called directly, in f32, on the same problems.
//
// Every work comes in four forms: on tensors in the layout of the case as they are; the same with
// weights in the form that oneDNN chooses, their reorder counted; in the blocked layout that oneDNN
// chooses, with all reorders from and to the case's layout counted; and in that layout without
// them. Weights that are constant (P) are reordered before. Primitives are created once and only
// executed in the timed part, which is the best a caller with a cache can do. Without oneDNN every
// form is empty.
#include <fenestra/bench/work.hpp>

#ifdef FENESTRA_HAVE_ONEDNN

#include <fenestra/ops/conv/op.hpp>
#include <fenestra/ops/conv_transpose/op.hpp>
#include <fenestra/ops/pool/adaptive_avg/op.hpp>
#include <fenestra/ops/pool/avg/op.hpp>
#include <fenestra/ops/pool/max/op.hpp>

#include <omp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <dnnl.hpp>

namespace fenestra::bench {

namespace {

using dnnl::memory;
using Dims = memory::dims;
using ArgumentMap = std::unordered_map<int, memory>;

constexpr auto kF32 = memory::data_type::f32;

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}
dnnl::stream& stream() {
  static dnnl::stream one(engine());
  return one;
}

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * dims[i];
  }
  return strides;
}

/// A tensor's logical dims and where its plain form has them in memory.
struct Operand {
  Dims dims;
  Dims strides;

  memory::desc plain() const { return {dims, kF32, strides}; }
  memory::desc any() const { return {dims, kF32, memory::format_tag::any}; }
};

/// Channels come second in oneDNN's dims, wherever they are in memory.
Operand activation(const Shape& shape, Layout layout) {
  Dims dims(shape.begin(), shape.end());
  Dims strides = dense_strides(dims);
  if (layout == Layout::channels_last) {
    std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
    std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
  }
  return {dims, strides};
}

/// Filled with ones: fresh pages would be shared zeros, and zeros may multiply faster.
memory filled(const memory::desc& desc) {
  memory result(desc, engine());
  auto* data = static_cast<float*>(result.get_data_handle());
  std::fill_n(data, desc.get_size() / sizeof(float), 1.0F);
  return result;
}

/// How a primitive is made of the descriptors of its operands, and what it is given.
struct Recipe {
  Operand in[2];
  int in_arguments[2];
  int inputs;
  Operand out;
  int out_argument;
  /// From (first input, second input, output) to the primitive descriptor's parts.
  struct Made {
    dnnl::primitive primitive;
    memory::desc in[2];
    memory::desc out;
    std::optional<memory::desc> workspace;
  };
  std::function<Made(const memory::desc&, const memory::desc&, const memory::desc&)> make;
  int weights = -1;               ///< which input they are, 2 for the output, -1 without them
  bool constant_weights = false;  ///< their reorder is not counted
};

enum class Form { plain, packed_weights, with_reorders, own_layout };

std::function<void()> on_tensors(const Recipe& recipe, Form form) {
  const bool reorders = form == Form::packed_weights || form == Form::with_reorders;
  const auto asked = [&](const Operand& operand, int which) {
    const bool is_free =
        form == Form::packed_weights ? which == recipe.weights : form != Form::plain;
    return is_free ? operand.any() : operand.plain();
  };
  Recipe::Made made =
      recipe.make(asked(recipe.in[0], 0), asked(recipe.in[1], 1), asked(recipe.out, 2));
  struct Step {
    dnnl::primitive primitive;
    ArgumentMap arguments;
  };
  auto steps = std::make_shared<std::vector<Step>>();
  ArgumentMap arguments;
  const auto convert = [&](const memory& from, const memory& to) {
    steps->push_back({dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}});
  };
  for (int i = 0; i < recipe.inputs; ++i) {
    const memory inner = filled(made.in[i]);
    const bool is_ready = recipe.constant_weights && i == recipe.weights;
    if (reorders && !is_ready && made.in[i] != recipe.in[i].plain()) {
      convert(filled(recipe.in[i].plain()), inner);
    }
    arguments.emplace(recipe.in_arguments[i], inner);
  }
  const memory out = filled(made.out);
  arguments.emplace(recipe.out_argument, out);
  if (made.workspace) {
    memory workspace(*made.workspace, engine());
    std::fill_n(static_cast<char*>(workspace.get_data_handle()), made.workspace->get_size(), 0);
    arguments.emplace(DNNL_ARG_WORKSPACE, workspace);
  }
  steps->push_back({made.primitive, arguments});
  if (reorders && made.out != recipe.out.plain()) {
    convert(out, filled(recipe.out.plain()));
  }
  return [steps] {
    for (const Step& step : *steps) {
      step.primitive.execute(stream(), step.arguments);
    }
    stream().wait();
  };
}

OnednnWork all_forms(const Recipe& recipe) {
  const auto attempt = [&](Form form) -> std::function<void()> {
    try {
      return on_tensors(recipe, form);
    } catch (const dnnl::error&) {
      return {};
    }
  };
  return {attempt(Form::plain),
          recipe.weights < 0 ? nullptr : attempt(Form::packed_weights),
          attempt(Form::with_reorders),
          attempt(Form::own_layout)};
}

struct WindowDims {
  Dims kernel, stride, dilation, low, high;

  explicit WindowDims(const Windows& windows) {
    for (int axis = 0; axis < windows.rank(); ++axis) {
      const WindowAxis& a = windows[axis];
      kernel.push_back(a.kernel);
      stride.push_back(a.stride);
      dilation.push_back(a.dilation - 1);
      low.push_back(a.pad_low);
      // What the last window reaches, which is less than the padding where the stride skips it.
      high.push_back((a.out - 1) * a.stride + a.span() - a.in - a.pad_low);
    }
  }
};

/// Logical dims (groups,) out, in, taps of a weight that is stored as ours: for the transposed
/// convolution input channels come first.
Operand weight_operand(const ConvGeometry& g, bool transposed) {
  Dims taps;
  for (int axis = 0; axis < g.rank(); ++axis) {
    taps.push_back(g.windows[axis].kernel);
  }
  const Index cells = g.windows.taps();
  Operand w;
  const auto push = [&](Index extent, Index stride) {
    w.dims.push_back(extent);
    w.strides.push_back(stride);
  };
  const bool is_last = g.layout == Layout::channels_last;
  const Index inner = g.group_in();
  const Index out_stride = is_last ? 1 : inner * cells;
  const Index in_stride = is_last ? g.out_channels : cells;
  if (g.groups > 1) {
    push(g.groups, g.group_out() * out_stride);
  }
  if (transposed) {
    push(inner, in_stride);
    push(g.group_out(), out_stride);
  } else {
    push(g.group_out(), out_stride);
    push(inner, in_stride);
  }
  const Dims tap_strides = dense_strides(taps);
  for (std::size_t i = 0; i < taps.size(); ++i) {
    push(taps[i], tap_strides[i] * (is_last ? inner * g.out_channels : 1));
  }
  return w;
}

/// F, D and W of one of the two convolution families of oneDNN, which differ in names only.
template <class Forward, class BackwardData, class BackwardWeights>
OnednnWork conv_family(const Operand& x,
                       const Operand& w,
                       const Operand& y,
                       const WindowDims& d,
                       char direction,
                       dnnl::algorithm algorithm) {
  const auto forward = [=](const memory::desc& xm, const memory::desc& wm, const memory::desc& ym) {
    return
        typename Forward::primitive_desc(typename Forward::desc(dnnl::prop_kind::forward_training,
                                                                algorithm,
                                                                xm,
                                                                wm,
                                                                ym,
                                                                d.stride,
                                                                d.dilation,
                                                                d.low,
                                                                d.high),
                                         engine());
  };
  switch (direction) {
    case 'F':
    case 'P':
      return all_forms(
          {{x, w},
           {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS},
           2,
           y,
           DNNL_ARG_DST,
           [=](const auto& xm, const auto& wm, const auto& ym) -> Recipe::Made {
             const auto pd = forward(xm, wm, ym);
             return {Forward(pd), {pd.src_desc(), pd.weights_desc()}, pd.dst_desc(), std::nullopt};
           },
           1,
           direction == 'P'});
    case 'D':
      return all_forms({{y, w},
                        {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS},
                        2,
                        x,
                        DNNL_ARG_DIFF_SRC,
                        [=](const auto& ym, const auto& wm, const auto& xm) -> Recipe::Made {
                          const typename BackwardData::primitive_desc pd(
                              typename BackwardData::desc(
                                  algorithm, xm, wm, ym, d.stride, d.dilation, d.low, d.high),
                              engine(),
                              forward(xm, wm, ym));
                          return {BackwardData(pd),
                                  {pd.diff_dst_desc(), pd.weights_desc()},
                                  pd.diff_src_desc(),
                                  std::nullopt};
                        },
                        1});
    case 'W':
      return all_forms({{x, y},
                        {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST},
                        2,
                        w,
                        DNNL_ARG_DIFF_WEIGHTS,
                        [=](const auto& xm, const auto& ym, const auto& wm) -> Recipe::Made {
                          const typename BackwardWeights::primitive_desc pd(
                              typename BackwardWeights::desc(
                                  algorithm, xm, wm, ym, d.stride, d.dilation, d.low, d.high),
                              engine(),
                              forward(xm, wm, ym));
                          return {BackwardWeights(pd),
                                  {pd.src_desc(), pd.diff_dst_desc()},
                                  pd.diff_weights_desc(),
                                  std::nullopt};
                        },
                        2});
    default: return {};
  }
}

OnednnWork pool(const PoolGeometry& g, char direction, dnnl::algorithm algorithm) {
  const Operand x = activation(g.x_shape(), g.layout);
  const Operand y = activation(g.y_shape(), g.layout);
  WindowDims d(g.windows);
  for (int axis = 0; axis < g.rank(); ++axis) {
    if (g.windows[axis].rule == ExtentRule::adaptive) {  // global: one window over everything
      const auto at = static_cast<std::size_t>(axis);
      d.kernel[at] = d.stride[at] = g.windows[axis].in;
      d.low[at] = d.high[at] = d.dilation[at] = 0;
    }
  }
  const auto forward = [=](const memory::desc& xm, const memory::desc& ym) {
    return dnnl::pooling_forward::primitive_desc(
        dnnl::pooling_forward::desc(dnnl::prop_kind::forward_training,
                                    algorithm,
                                    xm,
                                    ym,
                                    d.stride,
                                    d.kernel,
                                    d.low,
                                    d.high),
        engine());
  };
  const bool keeps_winners = algorithm == dnnl::algorithm::pooling_max;
  // Pools do not choose a layout, they take that of their input: channels in blocks of a vector.
  const auto blocked = [](const memory::desc& given, const Operand& operand) {
    using Tag = memory::format_tag;
    constexpr Tag kTags[2][3] = {{Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c},
                                 {Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c}};
    if (given.data.format_kind != dnnl_format_kind_any) {
      return given;
    }
    const bool wide = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
    return memory::desc(operand.dims, kF32, kTags[wide ? 1 : 0][operand.dims.size() - 3]);
  };
  if (direction == 'F') {
    return all_forms({{x, x},
                      {DNNL_ARG_SRC, DNNL_ARG_SRC},
                      1,
                      y,
                      DNNL_ARG_DST,
                      [=](const auto& xm, const auto&, const auto& ym) -> Recipe::Made {
                        const auto pd = forward(blocked(xm, x), blocked(ym, y));
                        return {dnnl::pooling_forward(pd),
                                {pd.src_desc(), pd.src_desc()},
                                pd.dst_desc(),
                                keeps_winners ? std::optional(pd.workspace_desc()) : std::nullopt};
                      }});
  }
  return all_forms(
      {{y, y},
       {DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_DST},
       1,
       x,
       DNNL_ARG_DIFF_SRC,
       [=](const auto& ym, const auto&, const auto& xm) -> Recipe::Made {
         const auto hint = forward(blocked(xm, x), blocked(ym, y));
         const dnnl::pooling_backward::primitive_desc pd(
             dnnl::pooling_backward::desc(
                 algorithm, blocked(xm, x), blocked(ym, y), d.stride, d.kernel, d.low, d.high),
             engine(),
             hint);
         return {dnnl::pooling_backward(pd),
                 {pd.diff_dst_desc(), pd.diff_dst_desc()},
                 pd.diff_src_desc(),
                 keeps_winners ? std::optional(hint.workspace_desc()) : std::nullopt};
       }});
}

OnednnWork make(const Case& what, char direction, const std::string& problem) {
  if (what.is_double() || direction == 'T') {
    return {};
  }
  if (what.op == Conv::name) {
    const ConvGeometry g = Conv::parse(problem);
    if (g.rank() > 3) {
      return {};
    }
    return conv_family<dnnl::convolution_forward,
                       dnnl::convolution_backward_data,
                       dnnl::convolution_backward_weights>(activation(g.x_shape(), g.layout),
                                                           weight_operand(g, false),
                                                           activation(g.y_shape(), g.layout),
                                                           WindowDims(g.windows),
                                                           direction,
                                                           dnnl::algorithm::convolution_direct);
  }
  if (what.op == ConvTranspose::name) {
    const ConvGeometry g = ConvTranspose::parse(problem).conv;
    return conv_family<dnnl::deconvolution_forward,
                       dnnl::deconvolution_backward_data,
                       dnnl::deconvolution_backward_weights>(activation(g.y_shape(), g.layout),
                                                             weight_operand(g, true),
                                                             activation(g.x_shape(), g.layout),
                                                             WindowDims(g.windows),
                                                             direction,
                                                             dnnl::algorithm::deconvolution_direct);
  }
  if (what.op == MaxPool::name) {
    return pool(MaxPool::parse(problem).pool, direction, dnnl::algorithm::pooling_max);
  }
  if (what.op == AvgPool::name) {
    return pool(
        AvgPool::parse(problem).pool, direction, dnnl::algorithm::pooling_avg_include_padding);
  }
  if (what.op == AdaptiveAvgPool::name) {
    return pool(AdaptiveAvgPool::parse(problem).pool,
                direction,
                dnnl::algorithm::pooling_avg_include_padding);
  }
  return {};
}

}  // namespace

OnednnWork make_onednn(const Case& what, char direction, const std::string& problem, int threads) {
  omp_set_num_threads(threads);
  return make(what, direction, problem);
}

std::string onednn_version() {
  const dnnl::version_t* version = dnnl::version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

}  // namespace fenestra::bench

#else

namespace fenestra::bench {

OnednnWork make_onednn(const Case&, char, const std::string&, int) { return {}; }

std::string onednn_version() { return ""; }

}  // namespace fenestra::bench

#endif  // FENESTRA_HAVE_ONEDNN
