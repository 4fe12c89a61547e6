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
              T* out) {
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
                       float*);
template void run_conv(const ConvKernel<double>&,
                       ConvDirection,
                       const ConvGeometry&,
                       const double*,
                       const double*,
                       const double*,
                       double*);

std::vector<KernelChoice> conv_kernels(const ConvGeometry& g) {
  std::vector<KernelChoice> choices;
  const auto list = [&](const auto& candidates, ConvDirection direction) {
    kernels::for_each_candidate(
        candidates, {direction, g}, [&](std::string_view name, const char* refusal) {
          choices.push_back({std::string(ConvPrimitive::direction_name(direction)),
                             std::string(name),
                             refusal != nullptr ? refusal : ""});
        });
  };
  for (const ConvDirection direction :
       {ConvDirection::forward, ConvDirection::input_grad, ConvDirection::weight_grad}) {
    list(conv_candidates<float>(), direction);
    list(conv_candidates<double>(), direction);
  }
  return choices;
}

}  // namespace fenestra
