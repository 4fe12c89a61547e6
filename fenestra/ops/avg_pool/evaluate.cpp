// Average pooling on float and double: chooses a candidate and runs it.
#include <fenestra/ops/avg_pool/avg_pool.hpp>
#include <fenestra/ops/avg_pool/kernels.hpp>

namespace fenestra {

template <KernelScalar T>
const AvgPoolKernel<T>& choose_avg_pool(AvgPoolDirection direction, const AvgPoolGeometry& g) {
  return kernels::choose(avg_pool_candidates<T>(), {direction, g});
}

template <KernelScalar T>
void run_avg_pool(const AvgPoolKernel<T>& kernel,
                  AvgPoolDirection direction,
                  const AvgPoolGeometry& g,
                  const T* in,
                  T* out) {
  if (!g.pool.is_empty()) {
    kernel.run({direction, g}, {in, out});
  }
}

template const AvgPoolKernel<float>& choose_avg_pool(AvgPoolDirection, const AvgPoolGeometry&);
template const AvgPoolKernel<double>& choose_avg_pool(AvgPoolDirection, const AvgPoolGeometry&);
template void run_avg_pool(
    const AvgPoolKernel<float>&, AvgPoolDirection, const AvgPoolGeometry&, const float*, float*);
template void run_avg_pool(
    const AvgPoolKernel<double>&, AvgPoolDirection, const AvgPoolGeometry&, const double*, double*);

std::vector<KernelChoice> avg_pool_kernels(const AvgPoolGeometry& g) {
  std::vector<KernelChoice> choices;
  const auto list =
      [&](const char* direction, const auto& candidates, const AvgPoolProblem& problem) {
        kernels::for_each_candidate(
            candidates, problem, [&](std::string_view name, const char* refusal) {
              choices.push_back({direction, std::string(name), refusal != nullptr ? refusal : ""});
            });
      };
  list("forward", avg_pool_candidates<float>(), {AvgPoolDirection::forward, g});
  list("forward", avg_pool_candidates<double>(), {AvgPoolDirection::forward, g});
  list("input_grad", avg_pool_candidates<float>(), {AvgPoolDirection::input_grad, g});
  list("input_grad", avg_pool_candidates<double>(), {AvgPoolDirection::input_grad, g});
  return choices;
}

}  // namespace fenestra
