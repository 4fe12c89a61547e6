// Elementwise functions of tensors of float and double: cut into runs for the loops on vectors, and
// spread over threads where the work is worth it.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/elementwise/kernels/loops.hpp>
#include <fenestra/ops/elementwise/spec.hpp>

#include <algorithm>

namespace fenestra {

namespace {

// Elements per range: 64 KiB of f32, a comfortable share of a second-level cache, and enough work
// (10 us) to pay for waking a thread.
constexpr Index kGrain = 16384;

/// The loops of the instruction set in use, which the environment may limit.
template <class T>
const detail::ElementwiseLoops<T>& loops() {
  kernels::apply_isa_limit();
  return detail::elementwise_loops<T>();
}

}  // namespace

template <KernelScalar T>
void unary_kernel(const UnaryCall& call, const T* x, T* out, Index n) {
  const auto& run = loops<T>().unary;
  parallel_for(
      n, kGrain, [&](Index begin, Index end) { run(call, x + begin, out + begin, end - begin); });
}

template <KernelScalar T>
void gate_kernel(const GateCall& call, const T* u, const T* x, T* out, Index n) {
  const auto& run = loops<T>().gate;
  parallel_for(n, kGrain, [&](Index begin, Index end) {
    run(call, u + begin, x + begin, out + begin, end - begin);
  });
}

template <KernelScalar T>
void binary_kernel(BinaryFunction f, const T* a, const T* b, T* out, const BroadcastLoop<2>& loop) {
  const auto& run = loops<T>().binary;
  const Index n = loop.inner();
  const Index step_a = loop.inner_step(0);
  const Index step_b = loop.inner_step(1);
  const Index runs = loop.outer();
  if (runs == 1) {
    parallel_for(n, kGrain, [&](Index begin, Index end) {
      run(f, {a + begin * step_a, step_a}, {b + begin * step_b, step_b}, out + begin, end - begin);
    });
    return;
  }
  parallel_for(runs, std::max<Index>(1, kGrain / n), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      run(f, {a + loop.offset(0, r), step_a}, {b + loop.offset(1, r), step_b}, out + r * n, n);
    }
  });
}

template void unary_kernel(const UnaryCall&, const float*, float*, Index);
template void unary_kernel(const UnaryCall&, const double*, double*, Index);
template void gate_kernel(const GateCall&, const float*, const float*, float*, Index);
template void gate_kernel(const GateCall&, const double*, const double*, double*, Index);
template void binary_kernel(
    BinaryFunction, const float*, const float*, float*, const BroadcastLoop<2>&);
template void binary_kernel(
    BinaryFunction, const double*, const double*, double*, const BroadcastLoop<2>&);

}  // namespace fenestra
