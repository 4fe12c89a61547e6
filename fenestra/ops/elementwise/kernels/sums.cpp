// Sums over axes of tensors of float and double: each output is owned by one range, and its terms
// are added in an order that depends on the shapes alone, so results do not depend on threads.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/sums.hpp>
#include <fenestra/ops/elementwise/kernels/sums.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>

#include <algorithm>

namespace fenestra {

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
