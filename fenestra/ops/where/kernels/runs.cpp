// Compiled choices for float and double, spread over threads.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/where/where.hpp>

#include <algorithm>

namespace fenestra {

namespace {

constexpr Index kGrain = 16384;  // as in elementwise/kernels/runs.cpp

}  // namespace

template <KernelScalar T>
void where_kernel(const T* mask, const T* a, const T* b, T* out, const BroadcastLoop<3>& loop) {
  const Index step_mask = loop.inner_step(0);
  const Index step_a = loop.inner_step(1);
  const Index step_b = loop.inner_step(2);
  const auto run = [&](const T* m, const T* p, const T* q, T* to, Index count) {
    // Both are read in any case: the compiler vectorises no read that depends.
    if (step_mask == 1 && step_a == 1 && step_b == 1) {
      for (Index i = 0; i < count; ++i) {
        const T yes = p[i];
        const T no = q[i];
        to[i] = m[i] == T(0) ? no : yes;
      }
    } else {
      for (Index i = 0; i < count; ++i) {
        const T yes = p[i * step_a];
        const T no = q[i * step_b];
        to[i] = m[i * step_mask] == T(0) ? no : yes;
      }
    }
  };
  const Index n = loop.inner();
  const Index runs = loop.outer();
  if (runs == 1) {
    parallel_for(n, kGrain, [&](Index begin, Index end) {
      run(mask + begin * step_mask,
          a + begin * step_a,
          b + begin * step_b,
          out + begin,
          end - begin);
    });
    return;
  }
  parallel_for(runs, std::max<Index>(1, kGrain / n), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      run(mask + loop.offset(0, r), a + loop.offset(1, r), b + loop.offset(2, r), out + r * n, n);
    }
  });
}

template void where_kernel(
    const float*, const float*, const float*, float*, const BroadcastLoop<3>&);
template void where_kernel(
    const double*, const double*, const double*, double*, const BroadcastLoop<3>&);

}  // namespace fenestra
