// Compiled maps along an axis, for float and double. A block or a piece of its rows belongs to one
// range, and terms are added in the order of the output cells, so results do not depend on threads.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/resize/axis_map.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace fenestra {

namespace {

// Elements per range: 64 KiB of f32, enough work to pay for waking a thread.
constexpr Index kGrain = 16384;
// Long rows are cut, so that one large image is work for several threads.
constexpr Index kPiece = 1024;

/// body(block, first column, count) over all blocks, in ranges of about `kGrain` of the `cells`
/// each column touches.
template <class Body>
void for_each_piece(const MappedAxis& view, Index cells, const Body& body) {
  if (view.outer == 0 || view.inner == 0) {
    return;
  }
  const Index piece = std::min(view.inner, kPiece);
  const Index pieces = ceil_div(view.inner, piece);
  const Index work = std::max<Index>(1, piece * cells);
  parallel_for(view.outer * pieces, std::max<Index>(1, kGrain / work), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Index column = i % pieces * piece;
      body(i / pieces, column, std::min(piece, view.inner - column));
    }
  });
}

template <class T>
void apply_to_line(const T* from,
                   T* to,
                   const AxisMap& map,
                   const std::vector<std::pair<T, T>>& weights) noexcept {
  const std::size_t n = map.first.size();
  const Index* first = map.first.data();
  if (map.selects()) {
    for (std::size_t o = 0; o < n; ++o) {
      to[o] = from[first[o]];
    }
    return;
  }
  const Index* second = map.second.data();
  for (std::size_t o = 0; o < n; ++o) {
    to[o] = weights[o].first * from[first[o]] + weights[o].second * from[second[o]];
  }
}

template <class T>
void apply_transposed_to_line(const T* from,
                              T* to,
                              const AxisMap& map,
                              const std::vector<std::pair<T, T>>& weights) noexcept {
  const std::size_t n = map.first.size();
  const Index* first = map.first.data();
  std::fill_n(to, map.in, T(0));
  if (map.selects()) {
    for (std::size_t o = 0; o < n; ++o) {
      to[first[o]] += from[o];
    }
    return;
  }
  const Index* second = map.second.data();
  for (std::size_t o = 0; o < n; ++o) {
    to[first[o]] += weights[o].first * from[o];
    to[second[o]] += weights[o].second * from[o];
  }
}

}  // namespace

template <KernelScalar T>
void axis_map_kernel(const T* x, T* y, const AxisStep<T>& step) {
  const AxisMap& map = step.map;
  const auto& weights = step.weights;
  const MappedAxis& view = step.view;
  const Index inner = view.inner;
  for_each_piece(view, map.out(), [&](Index block, Index column, Index count) {
    const T* from = x + block * map.in * inner + column;
    T* to = y + block * map.out() * inner + column;
    if (inner == 1) {  // the mapped axis is the innermost: one cell per output, not a row
      apply_to_line(from, to, map, weights);
      return;
    }
    for (std::size_t o = 0; o < map.first.size(); ++o, to += inner) {
      const T* a = from + map.first[o] * inner;
      if (map.selects()) {
        std::copy_n(a, count, to);
        continue;
      }
      const T* b = from + map.second[o] * inner;
      const T w = weights[o].first;
      const T v = weights[o].second;
      for (Index i = 0; i < count; ++i) {
        to[i] = w * a[i] + v * b[i];
      }
    }
  });
}

template <KernelScalar T>
void axis_map_adjoint_kernel(const T* y, T* x, const AxisStep<T>& step) {
  const AxisMap& map = step.map;
  const auto& weights = step.weights;
  const MappedAxis& view = step.view;
  const Index inner = view.inner;
  for_each_piece(view, map.in + map.out(), [&](Index block, Index column, Index count) {
    const T* from = y + block * map.out() * inner + column;
    T* to = x + block * map.in * inner + column;
    if (inner == 1) {
      apply_transposed_to_line(from, to, map, weights);
      return;
    }
    for (Index row = 0; row < map.in; ++row) {
      std::fill_n(to + row * inner, count, T(0));
    }
    for (std::size_t o = 0; o < map.first.size(); ++o, from += inner) {
      T* a = to + map.first[o] * inner;
      if (map.selects()) {
        for (Index i = 0; i < count; ++i) {
          a[i] += from[i];
        }
        continue;
      }
      T* b = to + map.second[o] * inner;
      const T w = weights[o].first;
      const T v = weights[o].second;
      // The two rows may be the same one, at the border: one loop after the other keeps the order
      // of the definition.
      for (Index i = 0; i < count; ++i) {
        a[i] += w * from[i];
      }
      for (Index i = 0; i < count; ++i) {
        b[i] += v * from[i];
      }
    }
  });
}

template FENESTRA_API void axis_map_kernel(const float*, float*, const AxisStep<float>&);
template FENESTRA_API void axis_map_kernel(const double*, double*, const AxisStep<double>&);
template FENESTRA_API void axis_map_adjoint_kernel(const float*, float*, const AxisStep<float>&);
template FENESTRA_API void axis_map_adjoint_kernel(const double*, double*, const AxisStep<double>&);

}  // namespace fenestra
