// Compiled passes of the normalisations for float and double.
//
// A group belongs to one range, and sums that cross groups are cut into blocks that depend on the
// geometry alone and are added in order, so results do not depend on threads. Runs are summed in T
// on vectors (kernels/sums.hpp), and the runs of a group in double.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/kernels/sums.hpp>
#include <fenestra/ops/normalise/kernels/channels.hpp>
#include <fenestra/ops/normalise/normalise.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra {

namespace {

/// Elements per range: 10 us of work at memory speed, enough to pay for waking a thread.
constexpr Index kGrain = 16384;
/// Blocks of rows or groups whose sums are kept apart; bounds the scratch to 64 rows of sums
/// (and three numbers per group).
constexpr Index kBlocks = 64;

template <class T>
T inverse_deviation(T var, double eps) noexcept {
  return T(1) / std::sqrt(var + static_cast<T>(eps));
}

/// An input that may be missing.
template <class T>
const T* data_or_null(std::span<const Tensor<T>> in, std::size_t i) {
  return in.size() > i ? in[i].data() : nullptr;
}

/// One per group, in scratch.
template <class T>
T* inverse_deviations(const NormGeometry& g, const T* var, kernels::ScratchFrame& frame) {
  const Index cells = g.stat_cells();
  T* r = frame.take<T>(cells);
  for (Index s = 0; s < cells; ++s) {
    r[s] = inverse_deviation(var[s], g.eps);
  }
  return r;
}

/// x_bar = factor * (v - shift - (x - mean) * slope) in group s.
template <class T>
struct InputGradTerms {
  T factor;
  T shift;
  T slope;

  InputGradTerms(const NormGeometry& g, const T* var, const T* sums, const T* gamma, Index s)
      : factor(inverse_deviation(var[s], g.eps)) {
    const auto count = static_cast<T>(g.count);
    shift = sums[s] / count;
    slope = factor * (sums[g.stat_cells() + s] / count);
    if (gamma != nullptr) {
      factor *= gamma[s];
    }
  }
};

/// Calls body(first, end) for ranges of groups.
template <class Body>
void for_each_groups(const NormGeometry& g, const Body& body) {
  parallel_for(g.runs.groups, std::max<Index>(1, kGrain / std::max<Index>(g.count, 1)), body);
}

/// Calls body(first element, end) for ranges of whole rows of a view of columns.
template <class Body>
void for_each_rows(const NormGeometry& g, const Body& body) {
  const Index columns = g.runs.length;
  parallel_for(g.runs.runs,
               std::max<Index>(1, kGrain / std::max<Index>(columns, 1)),
               [&](Index begin, Index end) { body(begin, end); });
}

/// Cuts [0, n) into at most kBlocks blocks; add(i, sums) adds item i to `width` sums of its block.
template <class T, class Add>
void blocked_sums(Index n, Index width, T* out, const Add& add) {
  const Index size = std::max<Index>(1, (n + kBlocks - 1) / kBlocks);
  const Index blocks = (n + size - 1) / size;
  kernels::ScratchFrame frame;
  T* partial = frame.take<T>(blocks * width);
  parallel_for(blocks, 1, [&](Index begin, Index end) {
    for (Index b = begin; b < end; ++b) {
      T* sums = partial + b * width;
      std::fill_n(sums, width, T(0));
      for (Index i = b * size; i < std::min(n, (b + 1) * size); ++i) {
        add(i, sums);
      }
    }
  });
  std::fill_n(out, width, T(0));
  for (Index b = 0; b < blocks; ++b) {
    for (Index j = 0; j < width; ++j) {
      out[j] += partial[b * width + j];
    }
  }
}

}  // namespace

template <KernelScalar T>
void norm_groups(const NormVariancePrimitive& norm,
                 std::span<const Tensor<T>> in,
                 T* var,
                 Index first,
                 Index end) {
  const NormGeometry& g = norm.g;
  const T* x = in[0].data();
  const T* mean = in[1].data();
  const NormRuns& r = g.runs;
  const auto& sums = kernels::run_sums<T>();
  for (Index s = first; s < end; ++s) {
    double sum = 0;
    for (Index run = 0; run < r.runs; ++run) {
      const T* from = x + r.begin(s) + run * r.run_stride;
      sum += sums.squares(from, mean[s], r.length);
    }
    var[s] = static_cast<T>(sum / static_cast<double>(g.count));
  }
}

template <KernelScalar T>
void norm_groups(
    const NormalisePrimitive& norm, std::span<const Tensor<T>> in, T* y, Index first, Index end) {
  const NormGeometry& g = norm.g;
  const T* x = in[0].data();
  const T* mean = in[1].data();
  const T* var = in[2].data();
  const T* gamma = data_or_null(in, 3);
  const T* beta = data_or_null(in, 4);
  const NormRuns& r = g.runs;
  for (Index s = first; s < end; ++s) {
    const T m = mean[s];
    const T factor = inverse_deviation(var[s], g.eps);
    const Index cell = r.affine_begin(s);
    for (Index run = 0; run < r.runs; ++run) {
      const T* from = x + r.begin(s) + run * r.run_stride;
      T* to = y + r.begin(s) + run * r.run_stride;
      if (gamma == nullptr) {
        for (Index i = 0; i < r.length; ++i) {
          to[i] = (from[i] - m) * factor;
        }
      } else if (r.piece == 1) {
        for (Index i = 0; i < r.length; ++i) {
          to[i] = (from[i] - m) * (factor * gamma[cell + i]) + beta[cell + i];
        }
      } else {
        for (Index i = 0, c = cell; i < r.length; i += r.piece, ++c) {
          const T a = factor * gamma[c];
          const T b = beta[c];
          for (Index k = i; k < i + r.piece; ++k) {
            to[k] = (from[k] - m) * a + b;
          }
        }
      }
    }
  }
}

template <KernelScalar T>
void norm_groups(
    const NormSumsPrimitive& norm, std::span<const Tensor<T>> in, T* sums, Index first, Index end) {
  const NormGeometry& g = norm.g;
  const T* u = in[0].data();
  const T* x = in[1].data();
  const T* mean = in[2].data();
  const T* var = in[3].data();
  const NormRuns& r = g.runs;
  const auto& runs = kernels::run_sums<T>();
  for (Index s = first; s < end; ++s) {
    const T factor = inverse_deviation(var[s], g.eps);
    double sum_u = 0;
    double sum_uh = 0;
    for (Index run = 0; run < r.runs; ++run) {
      const Index at = r.begin(s) + run * r.run_stride;
      const auto part = runs.pair(u + at, x + at, mean[s], factor, r.length);
      sum_u += part.u;
      sum_uh += part.uh;
    }
    sums[s] = static_cast<T>(sum_u);
    sums[r.groups + s] = static_cast<T>(sum_uh);
  }
}

template <KernelScalar T>
void norm_groups(const NormInputGradPrimitive& norm,
                 std::span<const Tensor<T>> in,
                 T* x_bar,
                 Index first,
                 Index end) {
  const NormGeometry& g = norm.g;
  const T* v = in[0].data();
  const T* x = in[1].data();
  const T* mean = in[2].data();
  const T* var = in[3].data();
  const T* sums = in[4].data();
  const T* gamma = data_or_null(in, 5);
  const NormRuns& r = g.runs;
  for (Index s = first; s < end; ++s) {
    const InputGradTerms<T> terms(g, var, sums, gamma, s);
    const T m = mean[s];
    for (Index run = 0; run < r.runs; ++run) {
      const Index at = r.begin(s) + run * r.run_stride;
      for (Index i = at; i < at + r.length; ++i) {
        x_bar[i] = terms.factor * ((v[i] - terms.shift) - (x[i] - m) * terms.slope);
      }
    }
  }
}

template <KernelScalar T>
void norm_kernel(const NormVariancePrimitive& norm, std::span<const Tensor<T>> in, T* var) {
  const NormGeometry& g = norm.g;
  const T* x = in[0].data();
  const T* mean = in[1].data();
  const NormRuns& r = g.runs;
  if (r.columns) {
    blocked_sums(r.runs, r.length, var, [&](Index row, T* sums) {
      const T* from = x + row * r.length;
      for (Index j = 0; j < r.length; ++j) {
        sums[j] += (from[j] - mean[j]) * (from[j] - mean[j]);
      }
    });
    for (Index j = 0; j < r.length; ++j) {
      var[j] /= static_cast<T>(g.count);
    }
    return;
  }
  for_each_groups(g, [&](Index first, Index end) { norm_groups(norm, in, var, first, end); });
}

template <KernelScalar T>
void norm_kernel(const NormalisePrimitive& norm, std::span<const Tensor<T>> in, T* y) {
  const NormGeometry& g = norm.g;
  const T* x = in[0].data();
  const T* mean = in[1].data();
  const T* var = in[2].data();
  const T* gamma = data_or_null(in, 3);
  const T* beta = data_or_null(in, 4);
  const NormRuns& r = g.runs;
  if (r.columns) {
    kernels::ScratchFrame frame;
    T* factor = inverse_deviations(g, var, frame);
    for (Index j = 0; gamma != nullptr && j < r.length; ++j) {
      factor[j] *= gamma[j];
    }
    for_each_rows(g, [&](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const T* from = x + row * r.length;
        T* to = y + row * r.length;
        for (Index j = 0; j < r.length; ++j) {
          to[j] = (from[j] - mean[j]) * factor[j];
        }
        for (Index j = 0; beta != nullptr && j < r.length; ++j) {
          to[j] += beta[j];
        }
      }
    });
    return;
  }
  for_each_groups(g, [&](Index first, Index end) { norm_groups(norm, in, y, first, end); });
}

template <KernelScalar T>
void norm_kernel(const NormSumsPrimitive& norm, std::span<const Tensor<T>> in, T* sums) {
  const NormGeometry& g = norm.g;
  const T* u = in[0].data();
  const T* x = in[1].data();
  const T* mean = in[2].data();
  const T* var = in[3].data();
  const NormRuns& r = g.runs;
  if (!r.columns && (!norm.over_affine || g.affine_is_stat())) {
    for_each_groups(g, [&](Index first, Index end) { norm_groups(norm, in, sums, first, end); });
    return;
  }
  kernels::ScratchFrame frame;
  const T* inverse = inverse_deviations(g, var, frame);
  if (r.columns) {
    const Index n = r.length;
    blocked_sums(r.runs, 2 * n, sums, [&](Index row, T* to) {
      const T* from_u = u + row * n;
      const T* from_x = x + row * n;
      for (Index j = 0; j < n; ++j) {
        to[j] += from_u[j];
        to[n + j] += from_u[j] * ((from_x[j] - mean[j]) * inverse[j]);
      }
    });
    return;
  }
  const auto& runs = kernels::run_sums<T>();
  const Index n = g.affine_cells();
  blocked_sums(r.groups, 2 * n, sums, [&](Index s, T* to) {
    const T m = mean[s];
    const T factor = inverse[s];
    const Index cell = r.affine_begin(s);
    for (Index run = 0; run < r.runs; ++run) {
      const Index at = r.begin(s) + run * r.run_stride;
      if (r.piece == 1) {
        for (Index i = 0; i < r.length; ++i) {
          to[cell + i] += u[at + i];
          to[n + cell + i] += u[at + i] * ((x[at + i] - m) * factor);
        }
      } else {
        for (Index i = 0, c = cell; i < r.length; i += r.piece, ++c) {
          const auto part = runs.pair(u + at + i, x + at + i, m, factor, r.piece);
          to[c] += part.u;
          to[n + c] += part.uh;
        }
      }
    }
  });
}

template <KernelScalar T>
void norm_kernel(const NormInputGradPrimitive& norm, std::span<const Tensor<T>> in, T* x_bar) {
  const NormGeometry& g = norm.g;
  const T* v = in[0].data();
  const T* x = in[1].data();
  const T* mean = in[2].data();
  const T* var = in[3].data();
  const T* sums = in[4].data();
  const T* gamma = data_or_null(in, 5);
  const NormRuns& r = g.runs;
  if (!r.columns) {
    for_each_groups(g, [&](Index first, Index end) { norm_groups(norm, in, x_bar, first, end); });
    return;
  }
  const Index cells = g.stat_cells();
  kernels::ScratchFrame frame;
  T* a = frame.take<T>(cells);
  T* b = frame.take<T>(cells);
  T* c = frame.take<T>(cells);
  for (Index s = 0; s < cells; ++s) {
    const InputGradTerms<T> terms(g, var, sums, gamma, s);
    a[s] = terms.factor;
    b[s] = terms.shift;
    c[s] = terms.slope;
  }
  for_each_rows(g, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      const Index at = row * r.length;
      for (Index j = 0; j < r.length; ++j) {
        x_bar[at + j] = a[j] * ((v[at + j] - b[j]) - (x[at + j] - mean[j]) * c[j]);
      }
    }
  });
}

#define FENESTRA_NORM_KERNELS_FOR(P, T)                                              \
  template void norm_groups(const P&, std::span<const Tensor<T>>, T*, Index, Index); \
  template FENESTRA_API void norm_kernel(const P&, std::span<const Tensor<T>>, T*);
#define FENESTRA_NORM_KERNELS(P)      \
  FENESTRA_NORM_KERNELS_FOR(P, float) \
  FENESTRA_NORM_KERNELS_FOR(P, double)

FENESTRA_NORM_KERNELS(NormVariancePrimitive)
FENESTRA_NORM_KERNELS(NormSumsPrimitive)
FENESTRA_NORM_KERNELS(NormInputGradPrimitive)
FENESTRA_NORM_KERNELS(NormalisePrimitive)

}  // namespace fenestra
