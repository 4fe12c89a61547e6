// The list of the convolution's candidates, fastest first; the specification ends it.
#include <fenestra/ops/conv/candidates.hpp>
#include <fenestra/ops/conv/kernels/dense.hpp>
#include <fenestra/ops/conv/kernels/depthwise.hpp>
#include <fenestra/ops/conv/kernels/direct.hpp>
#include <fenestra/ops/conv/kernels/gemm.hpp>
#include <fenestra/ops/conv/kernels/onednn.hpp>
#include <fenestra/ops/conv/kernels/outer.hpp>
#include <fenestra/ops/conv/kernels/planes.hpp>
#include <fenestra/ops/conv/kernels/winograd.hpp>
#include <fenestra/ops/conv/spec.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>

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

template <class T>
constexpr std::string_view name(std::string_view of_float, std::string_view of_double) {
  return std::is_same_v<T, float> ? of_float : of_double;
}

/// With what is there for one type only, before the specification.
template <class T, std::same_as<ConvCandidate<T>>... Special>
constexpr auto candidates(const Special&... special) {
  return std::to_array<ConvCandidate<T>>({
      {name<T>("conv_f32_winograd", "conv_f64_winograd"),
       detail::refuse_conv_winograd,
       detail::run_conv_winograd<T>,
       detail::packed_elements_conv_winograd<T>,
       detail::pack_conv_winograd<T>},
      {name<T>("conv_f32_depthwise", "conv_f64_depthwise"),
       detail::refuse_conv_depthwise<T>,
       detail::run_conv_depthwise<T>,
       detail::packed_elements_conv_depthwise<T>,
       detail::pack_conv_depthwise<T>,
       detail::depthwise_lacks<T>},
      {.name = name<T>("conv_f32_planes", "conv_f64_planes"),
       .refuse = detail::refuse_conv_planes<T>,
       .run = detail::run_conv_planes<T>,
       .lacks = detail::planes_lacks<T>},
      {.name = name<T>("conv_f32_outer", "conv_f64_outer"),
       .refuse = detail::refuse_conv_outer<T>,
       .run = detail::run_conv_outer<T>,
       .lacks = detail::outer_lacks},
      {name<T>("conv_f32_dense", "conv_f64_dense"),
       detail::refuse_conv_dense<T>,
       detail::run_conv_dense<T>,
       detail::packed_elements_conv_dense<T>,
       detail::pack_conv_dense<T>,
       detail::dense_lacks},
      {name<T>("conv_f32_direct", "conv_f64_direct"),
       detail::refuse_conv_direct<T>,
       detail::run_conv_direct<T>,
       detail::packed_elements_conv_direct<T>,
       detail::pack_conv_direct<T>,
       detail::direct_lacks},
      {name<T>("conv_f32_gemm", "conv_f64_gemm"),
       detail::refuse_conv_gemm,
       detail::run_conv_gemm<T>,
       detail::packed_elements_conv_gemm<T>,
       detail::pack_conv_gemm<T>},
      special...,
      {name<T>("conv_f32_spec", "conv_f64_spec"), refuse_nothing, run_spec<T>},
  });
}

#ifdef FENESTRA_HAVE_ONEDNN
// Here to be asked for by name; what else is chosen must not depend on it.
constexpr ConvCandidate<float> kOnednn = {
    detail::kOnednnName, detail::refuse_conv_onednn, detail::run_conv_onednn};
constexpr auto kFloat = candidates<float>(kOnednn);
#else
constexpr auto kFloat = candidates<float>();
#endif
constexpr auto kDouble = candidates<double>();

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
