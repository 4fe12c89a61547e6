// Compiled softmax lines for float and double, spread over threads by lines. Lines that lie beside
// each other in memory are worked on together, so that reads are contiguous.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/softmax/kernels/exponentials.hpp>
#include <fenestra/ops/softmax/softmax.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra {

namespace {

template <class T>
void lines(SoftmaxFunction f, const T* x, T* out, Index extent, Index step, Index count) {
  T greatest[detail::kSoftmaxLines];
  T sum[detail::kSoftmaxLines];
  // A line whose greatest is infinite gives inf - inf; where the answer is known it is put in
  // below.
  const bool stores_exponentials = f == SoftmaxFunction::softmax || f == SoftmaxFunction::weights;
  detail::sum_exponentials<T>(
      {x, extent, step, count, greatest, sum, stores_exponentials ? out : nullptr});
  switch (f) {
    case SoftmaxFunction::logsumexp:
      for (Index i = 0; i < count; ++i) {
        out[i] = std::isinf(greatest[i]) ? greatest[i] : greatest[i] + std::log(sum[i]);
      }
      break;
    case SoftmaxFunction::log_softmax:
      for (Index i = 0; i < count; ++i) {
        sum[i] = std::log(sum[i]);
      }
      for (Index k = 0; k < extent; ++k) {
        for (Index i = 0; i < count; ++i) {
          out[k * step + i] = (x[k * step + i] - greatest[i]) - sum[i];
        }
      }
      break;
    default:
      for (Index k = 0; k < extent; ++k) {
        for (Index i = 0; i < count; ++i) {
          const bool dead =
              f == SoftmaxFunction::weights && std::isinf(greatest[i]) && greatest[i] < 0;
          out[k * step + i] = dead ? T(0) : out[k * step + i] / sum[i];
        }
      }
      break;
  }
}

}  // namespace

template <KernelScalar T>
void softmax_kernel(SoftmaxFunction f, const T* x, T* out, const AxisView& view) {
  const auto [outer, extent, inner] = view;
  const Index together = std::min(inner, detail::kSoftmaxLines);
  const Index blocks = (inner + together - 1) / together;
  const Index grain = std::max<Index>(1, detail::kSoftmaxGrain / (extent * together));
  parallel_for(outer * blocks, grain, [&](Index begin, Index end) {
    for (Index b = begin; b < end; ++b) {
      const Index o = b / blocks;
      const Index first = b % blocks * together;
      const Index at = o * extent * inner + first;
      const Index to = f == SoftmaxFunction::logsumexp ? o * inner + first : at;
      lines(f, x + at, out + to, extent, inner, std::min(together, inner - first));
    }
  });
}

template FENESTRA_API void softmax_kernel(SoftmaxFunction, const float*, float*, const AxisView&);
template FENESTRA_API void softmax_kernel(SoftmaxFunction, const double*, double*, const AxisView&);

}  // namespace fenestra
