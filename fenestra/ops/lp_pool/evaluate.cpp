// Lp pooling on float and double: chooses a candidate and runs it.
#include <fenestra/ops/lp_pool/kernels.hpp>
#include <fenestra/ops/lp_pool/lp_pool.hpp>

namespace fenestra {

template <KernelScalar T>
const LpKernel<T>& choose_lp_pool(const LpPoolGeometry& g) {
  return kernels::choose(lp_pool_candidates<T>(), LpProblem{g});
}

template <KernelScalar T>
void run_lp_pool(const LpKernel<T>& kernel, const LpPoolGeometry& g, const T* x, T* out) {
  if (!g.pool.is_empty()) {
    kernel.run({g}, {x, out});
  }
}

template const LpKernel<float>& choose_lp_pool(const LpPoolGeometry&);
template const LpKernel<double>& choose_lp_pool(const LpPoolGeometry&);
template void run_lp_pool(const LpKernel<float>&, const LpPoolGeometry&, const float*, float*);
template void run_lp_pool(const LpKernel<double>&, const LpPoolGeometry&, const double*, double*);

std::vector<KernelChoice> lp_pool_kernels(const LpPoolGeometry& g) {
  std::vector<KernelChoice> choices;
  const auto list = [&](const char* direction, const auto& candidates, const LpProblem& problem) {
    kernels::for_each_candidate(
        candidates, problem, [&](std::string_view name, const char* refusal) {
          choices.push_back({direction, std::string(name), refusal != nullptr ? refusal : ""});
        });
  };
  list("forward", lp_pool_candidates<float>(), {g});
  list("forward", lp_pool_candidates<double>(), {g});
  return choices;
}

}  // namespace fenestra
