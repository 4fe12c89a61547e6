// The list of the convolution's candidates, fastest first; the specification ends it.
#include <fenestra/ops/conv/candidates.hpp>
#include <fenestra/ops/conv/kernels/depthwise.hpp>
#include <fenestra/ops/conv/kernels/direct.hpp>
#include <fenestra/ops/conv/kernels/gemm.hpp>
#include <fenestra/ops/conv/kernels/onednn.hpp>
#include <fenestra/ops/conv/kernels/winograd.hpp>
#include <fenestra/ops/conv/spec.hpp>

#include <algorithm>

namespace fenestra {

namespace {

const char* refuse_nothing(const ConvProblem&) { return nullptr; }

/// The slow path: the definition itself, on copies. Memory is bounded by that of the operands.
template <class T>
void run_spec(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  const ConvGeometry& g = problem.geometry;
  const auto load = [](const T* data, const Shape& shape) {
    return Tensor<T>(
        shape, std::span<const T>(data, static_cast<std::size_t>(shape.elements().value_or(0))));
  };
  const bool has_x = problem.direction != ConvDirection::input_grad;
  const bool has_w = problem.direction != ConvDirection::weight_grad;
  const Tensor<T> lhs = load(arguments.lhs, has_x ? g.x_shape() : g.y_shape());
  const Tensor<T> rhs = load(arguments.rhs, has_w ? g.w_shape() : g.y_shape());
  Tensor<T> out;
  switch (problem.direction) {
    case ConvDirection::forward: {
      if (arguments.bias != nullptr) {
        const Tensor<T> b = load(arguments.bias, Shape{g.out_channels});
        out = spec::conv(lhs, rhs, &b, g);
      } else {
        out = spec::conv<T>(lhs, rhs, nullptr, g);
      }
      break;
    }
    case ConvDirection::input_grad: {
      out = spec::conv_input_grad(lhs, rhs, g);
      if (arguments.bias != nullptr) {
        spec::add_channel(out, load(arguments.bias, Shape{g.in_channels}), g.x_map());
      }
      break;
    }
    case ConvDirection::weight_grad: out = spec::conv_weight_grad(lhs, rhs, g); break;
  }
  std::copy_n(out.data(), out.size(), arguments.out);
  if (arguments.finish != nullptr) {
    arguments.finish->run(arguments.out, out.size());
  }
}

// oneDNN is here to be asked for by name; what else is chosen must not depend on it.
constexpr ConvCandidate<float> kFloat[] = {
    {"conv_f32_winograd",
     detail::refuse_conv_winograd,
     detail::run_conv_winograd<float>,
     detail::packed_elements_conv_winograd<float>,
     detail::pack_conv_winograd<float>},
    {"conv_f32_depthwise", detail::refuse_conv_depthwise, detail::run_conv_depthwise<float>},
    {"conv_f32_direct",
     detail::refuse_conv_direct<float>,
     detail::run_conv_direct<float>,
     detail::packed_elements_conv_direct<float>,
     detail::pack_conv_direct<float>},
    {"conv_f32_gemm",
     detail::refuse_conv_gemm,
     detail::run_conv_gemm<float>,
     detail::packed_elements_conv_gemm<float>,
     detail::pack_conv_gemm<float>},
#ifdef FENESTRA_HAVE_ONEDNN
    {detail::kOnednnName, detail::refuse_conv_onednn, detail::run_conv_onednn},
#endif
    {"conv_f32_spec", refuse_nothing, run_spec<float>},
};

constexpr ConvCandidate<double> kDouble[] = {
    {"conv_f64_winograd",
     detail::refuse_conv_winograd,
     detail::run_conv_winograd<double>,
     detail::packed_elements_conv_winograd<double>,
     detail::pack_conv_winograd<double>},
    {"conv_f64_depthwise", detail::refuse_conv_depthwise, detail::run_conv_depthwise<double>},
    {"conv_f64_direct",
     detail::refuse_conv_direct<double>,
     detail::run_conv_direct<double>,
     detail::packed_elements_conv_direct<double>,
     detail::pack_conv_direct<double>},
    {"conv_f64_gemm",
     detail::refuse_conv_gemm,
     detail::run_conv_gemm<double>,
     detail::packed_elements_conv_gemm<double>,
     detail::pack_conv_gemm<double>},
    {"conv_f64_spec", refuse_nothing, run_spec<double>},
};

}  // namespace

template <>
std::span<const ConvCandidate<float>> conv_candidates() {
  return kFloat;
}

template <>
std::span<const ConvCandidate<double>> conv_candidates() {
  return kDouble;
}

}  // namespace fenestra
