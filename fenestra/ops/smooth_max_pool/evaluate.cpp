// Smooth max pooling on float and double: chooses a candidate and runs it.
#include <fenestra/ops/smooth_max_pool/kernels.hpp>
#include <fenestra/ops/smooth_max_pool/smooth_max_pool.hpp>

namespace fenestra {

template <KernelScalar T>
const SmoothKernel<T>& choose_smooth_max_pool(SmoothDirection direction,
                                              const SmoothMaxPoolGeometry& g) {
  return kernels::choose(smooth_max_pool_candidates<T>(), {direction, g});
}

template <KernelScalar T>
void run_smooth_max_pool(const SmoothKernel<T>& kernel,
                         SmoothDirection direction,
                         const SmoothMaxPoolGeometry& g,
                         const T* x,
                         const T* v,
                         T beta,
                         T* out) {
  if (!g.pool.is_empty()) {
    kernel.run({direction, g}, {x, v, beta, out});
  }
}

template const SmoothKernel<float>& choose_smooth_max_pool(SmoothDirection,
                                                           const SmoothMaxPoolGeometry&);
template const SmoothKernel<double>& choose_smooth_max_pool(SmoothDirection,
                                                            const SmoothMaxPoolGeometry&);
template void run_smooth_max_pool(const SmoothKernel<float>&,
                                  SmoothDirection,
                                  const SmoothMaxPoolGeometry&,
                                  const float*,
                                  const float*,
                                  float,
                                  float*);
template void run_smooth_max_pool(const SmoothKernel<double>&,
                                  SmoothDirection,
                                  const SmoothMaxPoolGeometry&,
                                  const double*,
                                  const double*,
                                  double,
                                  double*);

std::vector<KernelChoice> smooth_max_pool_kernels(const SmoothMaxPoolGeometry& g) {
  std::vector<KernelChoice> choices;
  const auto list =
      [&](const char* direction, const auto& candidates, const SmoothProblem& problem) {
        kernels::for_each_candidate(
            candidates, problem, [&](std::string_view name, const char* refusal) {
              choices.push_back({direction, std::string(name), refusal != nullptr ? refusal : ""});
            });
      };
  list("forward", smooth_max_pool_candidates<float>(), {SmoothDirection::forward, g});
  list("forward", smooth_max_pool_candidates<double>(), {SmoothDirection::forward, g});
  list("mix", smooth_max_pool_candidates<float>(), {SmoothDirection::mix, g});
  list("mix", smooth_max_pool_candidates<double>(), {SmoothDirection::mix, g});
  list("spread", smooth_max_pool_candidates<float>(), {SmoothDirection::spread, g});
  list("spread", smooth_max_pool_candidates<double>(), {SmoothDirection::spread, g});
  list("slope", smooth_max_pool_candidates<float>(), {SmoothDirection::slope, g});
  list("slope", smooth_max_pool_candidates<double>(), {SmoothDirection::slope, g});
  list("curve", smooth_max_pool_candidates<float>(), {SmoothDirection::curve, g});
  list("curve", smooth_max_pool_candidates<double>(), {SmoothDirection::curve, g});
  return choices;
}

}  // namespace fenestra
