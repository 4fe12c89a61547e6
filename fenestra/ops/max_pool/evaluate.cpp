// Max pooling on float and double: chooses candidates and runs them.
#include <fenestra/ops/max_pool/kernels.hpp>
#include <fenestra/ops/max_pool/max_pool.hpp>

namespace fenestra {

template <KernelScalar T>
const MaxPoolKernel<T>& choose_max_pool(MaxPoolDirection direction, const MaxPoolGeometry& g) {
  return kernels::choose(max_pool_candidates<T>(), {direction, g});
}

template <KernelScalar T>
void run_max_pool(const MaxPoolKernel<T>& kernel,
                  MaxPoolDirection direction,
                  const MaxPoolGeometry& g,
                  const T* in,
                  const WinnerTap* winners_in,
                  T* out,
                  WinnerTap* winners_out) {
  if (!g.pool.is_empty()) {
    kernel.run({direction, g}, {in, winners_in, out, winners_out});
  }
}

template const MaxPoolKernel<float>& choose_max_pool(MaxPoolDirection, const MaxPoolGeometry&);
template const MaxPoolKernel<double>& choose_max_pool(MaxPoolDirection, const MaxPoolGeometry&);
template void run_max_pool(const MaxPoolKernel<float>&,
                           MaxPoolDirection,
                           const MaxPoolGeometry&,
                           const float*,
                           const WinnerTap*,
                           float*,
                           WinnerTap*);
template void run_max_pool(const MaxPoolKernel<double>&,
                           MaxPoolDirection,
                           const MaxPoolGeometry&,
                           const double*,
                           const WinnerTap*,
                           double*,
                           WinnerTap*);

std::vector<KernelChoice> max_pool_kernels(const MaxPoolGeometry& g) {
  std::vector<KernelChoice> choices;
  const auto list =
      [&](const char* direction, const auto& candidates, const MaxPoolProblem& problem) {
        kernels::for_each_candidate(
            candidates, problem, [&](std::string_view name, const char* refusal) {
              choices.push_back({direction, std::string(name), refusal != nullptr ? refusal : ""});
            });
      };
  list("forward", max_pool_candidates<float>(), {MaxPoolDirection::forward, g});
  list("forward", max_pool_candidates<double>(), {MaxPoolDirection::forward, g});
  list("gather", max_pool_candidates<float>(), {MaxPoolDirection::gather, g});
  list("gather", max_pool_candidates<double>(), {MaxPoolDirection::gather, g});
  list("scatter", max_pool_candidates<float>(), {MaxPoolDirection::scatter, g});
  list("scatter", max_pool_candidates<double>(), {MaxPoolDirection::scatter, g});
  return choices;
}

}  // namespace fenestra
