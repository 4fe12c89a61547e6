// The convolution family on float and double: chooses candidates and runs them.
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv/kernels.hpp>

namespace fenestra {

template <KernelScalar T>
const ConvKernel<T>& choose_conv(ConvDirection direction, const ConvGeometry& g) {
  return kernels::choose(conv_candidates<T>(), {direction, g});
}

template <KernelScalar T>
void run_conv(const ConvKernel<T>& kernel,
              ConvDirection direction,
              const ConvGeometry& g,
              const T* lhs,
              const T* rhs,
              const T* bias,
              T* out) noexcept {
  kernel.run({direction, g}, {lhs, rhs, bias, out});
}

template const ConvKernel<float>& choose_conv(ConvDirection, const ConvGeometry&);
template const ConvKernel<double>& choose_conv(ConvDirection, const ConvGeometry&);
template void run_conv(const ConvKernel<float>&,
                       ConvDirection,
                       const ConvGeometry&,
                       const float*,
                       const float*,
                       const float*,
                       float*) noexcept;
template void run_conv(const ConvKernel<double>&,
                       ConvDirection,
                       const ConvGeometry&,
                       const double*,
                       const double*,
                       const double*,
                       double*) noexcept;

std::vector<KernelChoice> conv_kernels(const ConvGeometry& g) {
  std::vector<KernelChoice> choices;
  const auto list = [&](const char* direction, const auto& candidates, const ConvProblem& problem) {
    kernels::for_each_candidate(
        candidates, problem, [&](std::string_view name, const char* refusal) {
          choices.push_back({direction, std::string(name), refusal != nullptr ? refusal : ""});
        });
  };
  list("forward", conv_candidates<float>(), {ConvDirection::forward, g});
  list("forward", conv_candidates<double>(), {ConvDirection::forward, g});
  list("input_grad", conv_candidates<float>(), {ConvDirection::input_grad, g});
  list("input_grad", conv_candidates<double>(), {ConvDirection::input_grad, g});
  list("weight_grad", conv_candidates<float>(), {ConvDirection::weight_grad, g});
  list("weight_grad", conv_candidates<double>(), {ConvDirection::weight_grad, g});
  return choices;
}

}  // namespace fenestra
