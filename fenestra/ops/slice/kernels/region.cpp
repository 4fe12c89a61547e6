// Compiled copies between strided regions, for float and double. A copy has no order, so threads
// cannot be seen.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/slice/region.hpp>

#include <algorithm>

namespace fenestra {

namespace {

// Elements per range: 64 KiB of f32, enough work to pay for waking a thread.
constexpr Index kGrain = 16384;

/// Axes that both sides walk as one are merged, so that the innermost run is as long as the memory
/// allows.
struct Merged {
  Shape extents, from, to;

  Merged(const Shape& all, const Shape& from_strides, const Shape& to_strides) {
    for (int axis = 0; axis < all.rank(); ++axis) {
      if (all[axis] == 1) {
        continue;
      }
      const int last = extents.rank() - 1;
      if (last >= 0 && from[last] == from_strides[axis] * all[axis] &&
          to[last] == to_strides[axis] * all[axis]) {
        extents[last] *= all[axis];
        from[last] = from_strides[axis];
        to[last] = to_strides[axis];
      } else {
        extents.push_back(all[axis]);
        from.push_back(from_strides[axis]);
        to.push_back(to_strides[axis]);
      }
    }
    if (extents.rank() == 0) {
      extents.push_back(1);
      from.push_back(1);
      to.push_back(1);
    }
  }
};

template <class T>
void copy_run(const T* from, Index from_step, T* to, Index to_step, Index n) noexcept {
  if (from_step == 1 && to_step == 1) {
    std::copy_n(from, n, to);
  } else if (to_step == 1) {
    for (Index i = 0; i < n; ++i) {
      to[i] = from[i * from_step];
    }
  } else if (from_step == 1) {
    for (Index i = 0; i < n; ++i) {
      to[i * to_step] = from[i];
    }
  } else {
    for (Index i = 0; i < n; ++i) {
      to[i * to_step] = from[i * from_step];
    }
  }
}

}  // namespace

template <KernelScalar T>
void copy_region_kernel(const T* from,
                        const Shape& from_strides,
                        T* to,
                        const Shape& to_strides,
                        const Shape& extents) {
  if (extents.elements().value_or(0) == 0) {
    return;
  }
  const Merged m(extents, from_strides, to_strides);
  const int inner = m.extents.rank() - 1;
  const Index n = m.extents[inner];
  const Index from_step = m.from[inner];
  const Index to_step = m.to[inner];
  if (inner == 0) {
    parallel_for(n, kGrain, [&](Index begin, Index end) {
      copy_run(from + begin * from_step, from_step, to + begin * to_step, to_step, end - begin);
    });
    return;
  }
  Index runs = 1;
  for (int axis = 0; axis < inner; ++axis) {
    runs *= m.extents[axis];
  }
  parallel_for(runs, std::max<Index>(1, kGrain / n), [&](Index begin, Index end) {
    for (Index run = begin; run < end; ++run) {
      Index rest = run;
      Index source = 0;
      Index target = 0;
      for (int axis = inner - 1; axis >= 0; --axis) {
        const Index at = rest % m.extents[axis];
        source += at * m.from[axis];
        target += at * m.to[axis];
        rest /= m.extents[axis];
      }
      copy_run(from + source, from_step, to + target, to_step, n);
    }
  });
}

template FENESTRA_API void copy_region_kernel(
    const float*, const Shape&, float*, const Shape&, const Shape&);
template FENESTRA_API void copy_region_kernel(
    const double*, const Shape&, double*, const Shape&, const Shape&);

}  // namespace fenestra
