// Elementwise functions of tensors of float and double: cut into runs for the loops on vectors, and
// spread over threads where the work is worth it. And sums over axes: each output is owned by one
// range, and its terms are added in an order that depends on the shapes alone, so results do not
// depend on threads.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/kernels/sums.hpp>
#include <fenestra/ops/elementwise/evaluate.hpp>
#include <fenestra/ops/elementwise/loops.hpp>
#include <fenestra/ops/elementwise/sum_kernel.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>

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

// --- Sums ------------------------------

template <KernelScalar T>
void sum_to_kernel(const T* x, T* out, const Shape& from, const Shape& to) {
  const Index outputs = to.elements().value_or(0);
  const Index inputs = from.elements().value_or(0);
  if (outputs == 0) {
    return;
  }
  if (inputs == 0) {
    std::fill_n(out, outputs, T(0));
    return;
  }
  // Merged axes alternate between kept and summed. Kept ones index the output; summed ones are
  // walked inside.
  Shape kept, summed;
  Shape kept_strides, summed_strides;
  const int lead = from.rank() - to.rank();
  Index stride = inputs;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const Index extent = from[axis];
    stride /= extent;
    if (extent == 1) {
      continue;
    }
    const bool is_kept = axis >= lead && to[axis - lead] == extent;
    Shape& extents = is_kept ? kept : summed;
    Shape& strides = is_kept ? kept_strides : summed_strides;
    const int outer = extents.rank() - 1;
    if (outer >= 0 && strides[outer] == extent * stride) {
      extents[outer] *= extent;
      strides[outer] = stride;
      continue;
    }
    extents.push_back(extent);
    strides.push_back(stride);
  }
  const auto offset_of = [](Index i, const Shape& extents, const Shape& strides) {
    Index offset = 0;
    for (int axis = extents.rank() - 1; axis >= 0; --axis) {
      offset += i % extents[axis] * strides[axis];
      i /= extents[axis];
    }
    return offset;
  };
  const Index terms = inputs / outputs;
  const bool inner_summed = summed.rank() > 0 && summed_strides[summed.rank() - 1] == 1;
  const Index run = inner_summed ? summed[summed.rank() - 1] : 1;
  const Index grain = std::max<Index>(1, 32768 / std::max<Index>(terms, 1));
  if (inner_summed) {
    const auto& sum_run = kernels::run_sums<T>().plain;
    parallel_for(outputs, grain, [&](Index begin, Index end) {
      for (Index o = begin; o < end; ++o) {
        const T* base = x + offset_of(o, kept, kept_strides);
        T sum = 0;
        for (Index t = 0; t < terms; t += run) {
          sum += sum_run(base + offset_of(t, summed, summed_strides), run);
        }
        out[o] = sum;
      }
    });
    return;
  }
  // The innermost axis is kept: whole rows are added, which vectorises along the output.
  const Index row = kept.rank() > 0 ? kept[kept.rank() - 1] : 1;
  const Index rows = outputs / row;
  // A long row is cut so that its partial results stay in the first-level cache.
  const Index piece = std::min<Index>(row, 2048);
  const Index pieces = (row + piece - 1) / piece;
  parallel_for(rows * pieces, std::max<Index>(1, grain / piece), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const Index first = r % pieces * piece;
      const Index count = std::min(piece, row - first);
      const Index o = r / pieces * row + first;
      const T* base = x + offset_of(o, kept, kept_strides);
      std::fill_n(out + o, count, T(0));
      for (Index t = 0; t < terms; ++t) {
        const T* term = base + offset_of(t, summed, summed_strides);
        for (Index i = 0; i < count; ++i) {
          out[o + i] += term[i];
        }
      }
    }
  });
}

template <KernelScalar T>
void sum_channels(const T* x, T* out, const graph::ChannelView& view, Index begin, Index end) {
  const auto& sum_run = kernels::run_sums<T>().plain;
  for (Index c = begin; c < end; ++c) {
    T sum = 0;
    for (Index sample = 0; sample < view.samples; ++sample) {
      sum += sum_run(x + (sample * view.channels + c) * view.cells, view.cells);
    }
    out[c] = sum;
  }
}

template void sum_channels(const float*, float*, const graph::ChannelView&, Index, Index);
template void sum_channels(const double*, double*, const graph::ChannelView&, Index, Index);
template void sum_to_kernel(const float*, float*, const Shape&, const Shape&);
template void sum_to_kernel(const double*, double*, const Shape&, const Shape&);

}  // namespace fenestra
