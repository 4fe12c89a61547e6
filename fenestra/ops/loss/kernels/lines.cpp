// Compiled cross entropy for float and double: one line of classes at a time, or neighbouring lines
// together, spread over threads by lines.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/ops/softmax/kernels/exponentials.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra {

namespace {

template <class T>
struct Lines {
  T greatest[detail::kSoftmaxLines];
  T sum[detail::kSoftmaxLines];  ///< of exp(x - greatest)

  /// `exponentials`, where given, receives exp(x - greatest) in the places of x.
  Lines(const T* x, Index extent, Index step, Index count, T* exponentials) {
    detail::sum_exponentials<T>({x, extent, step, count, greatest, sum, exponentials});
  }
};

/// Calls body(offset of the first line in x, its number, count) for groups of neighbouring lines.
template <class Body>
void for_each_group(const AxisView& view, const Body& body) {
  const auto [outer, extent, inner] = view;
  if (outer * inner == 0) {
    return;
  }
  const Index together = std::min(inner, detail::kSoftmaxLines);
  const Index blocks = (inner + together - 1) / together;
  const Index grain = std::max<Index>(1, detail::kSoftmaxGrain / (extent * together));
  parallel_for(outer * blocks, grain, [&](Index begin, Index end) {
    for (Index b = begin; b < end; ++b) {
      const Index o = b / blocks;
      const Index first = b % blocks * together;
      body(o * extent * inner + first, o * inner + first, std::min(together, inner - first));
    }
  });
}

}  // namespace

template <KernelScalar T>
void cross_entropy_kernel(const T* x, const Index* cells, T* loss, const AxisView& view) {
  for_each_group(view, [&](Index at, Index line, Index count) {
    const Lines<T> lines(x + at, view.extent, view.inner, count, nullptr);
    for (Index i = 0; i < count; ++i) {
      loss[line + i] = std::log(lines.sum[i]) - (x[cells[line + i]] - lines.greatest[i]);
    }
  });
}

template <KernelScalar T>
void cross_entropy_grad_kernel(
    const T* x, const T* u, const Index* cells, T* x_bar, const AxisView& view) {
  for_each_group(view, [&](Index at, Index line, Index count) {
    const Lines<T> lines(x + at, view.extent, view.inner, count, x_bar + at);
    T factor[detail::kSoftmaxLines];
    for (Index i = 0; i < count; ++i) {
      factor[i] = u[line + i] / lines.sum[i];
    }
    for (Index k = 0; k < view.extent; ++k) {
      for (Index i = 0; i < count; ++i) {
        x_bar[at + k * view.inner + i] *= factor[i];
      }
    }
    for (Index i = 0; i < count; ++i) {
      x_bar[cells[line + i]] -= u[line + i];
    }
  });
}

template FENESTRA_API void cross_entropy_kernel(const float*,
                                                const Index*,
                                                float*,
                                                const AxisView&);
template FENESTRA_API void cross_entropy_kernel(const double*,
                                                const Index*,
                                                double*,
                                                const AxisView&);
template FENESTRA_API void cross_entropy_grad_kernel(
    const float*, const float*, const Index*, float*, const AxisView&);
template FENESTRA_API void cross_entropy_grad_kernel(
    const double*, const double*, const Index*, double*, const AxisView&);

}  // namespace fenestra
