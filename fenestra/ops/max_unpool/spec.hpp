// Max unpooling, executable specification: every value goes to the cell its index names, other
// cells are zero.
//
//   y[n,c,indices[n,c,i]] = x[n,c,i], the last i in row-major order where several name one cell
//
// Linear in x. A value that a later one overwrote reaches nothing, so its gradient is 0: dropping
// such indices first makes the operator a scatter, its VJP a gather, exactly adjoint.
#pragma once

#include <fenestra/ops/max_unpool/geometry.hpp>
#include <fenestra/ops/placement.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace fenestra::spec {

/// Replaces all but the last of equal indices of a sample and channel by `kNowhere`. `taken` has
/// room for the cells of y.
inline void drop_overwritten(Index* indices, const MaxUnpoolGeometry& g, std::uint8_t* taken) {
  const ActivationMap map = g.x_map();
  for (Index n = 0; n < (map.channels > 0 ? map.batch : 0); ++n) {
    for (Index c = 0; c < map.channels; ++c) {
      std::fill_n(taken, g.y_map().cells, std::uint8_t{0});
      for (Index i = map.cells - 1; i >= 0; --i) {
        Index& index = indices[map.at(n, c, i)];
        if (index == kNowhere) {
          continue;
        }
        if (taken[index] != 0) {
          index = kNowhere;
        } else {
          taken[index] = 1;
        }
      }
    }
  }
}

/// Validates `indices` (a cell of y, or `kNowhere`) and keeps the last of duplicates.
inline Tensor<Index> last_writers(const Tensor<Index>& indices, const MaxUnpoolGeometry& g) {
  require_shape("max_unpool", "indices", indices, g.x_shape());
  Tensor<Index> result = indices;
  if (result.size() == 0) {
    return result;
  }
  Index* out = result.mutable_data();
  const ActivationMap map = g.x_map();
  const Index cells = g.y_map().cells;
  for (Index n = 0; n < map.batch; ++n) {
    for (Index c = 0; c < map.channels; ++c) {
      for (Index i = map.cells - 1; i >= 0; --i) {
        const Index index = out[map.at(n, c, i)];
        if (index != kNowhere && (index < 0 || index >= cells)) {
          throw Error("max_unpool",
                      {.code = ErrorCode::invalid_index,
                       .argument = Argument::indices,
                       .got = index,
                       .needed = cells},
                      "max_unpool: indices[sample " + std::to_string(n) + ", channel " +
                          std::to_string(c) + ", cell " + std::to_string(i) +
                          "] = " + std::to_string(index) + ", the output " + to_string(g.out) +
                          " has " + std::to_string(cells) + " cells\n  fix: indices from 0 to " +
                          std::to_string(cells - 1) + ", or -1 for nowhere");
        }
      }
    }
  }
  std::vector<std::uint8_t> taken(static_cast<std::size_t>(cells));
  drop_overwritten(out, g, taken.data());
  return result;
}

template <Scalar T>
Tensor<T> max_unpool(const Tensor<T>& x, const Tensor<Index>& indices, const MaxUnpoolGeometry& g) {
  require_shape("max_unpool", "x", x, g.x_shape());
  return scatter(x, last_writers(indices, g), g.y_map(), g.x_map(), g.y_shape());
}

template <Scalar T>
Tensor<T> max_unpool_vjp(const Tensor<Index>& indices,
                         const Tensor<T>& y_bar,
                         const MaxUnpoolGeometry& g) {
  require_shape("max_unpool_vjp", "y_bar", y_bar, g.y_shape());
  return gather(y_bar, last_writers(indices, g), g.y_map(), g.x_map());
}

template <Scalar T>
Tensor<T> max_unpool(const Tensor<T>& x,
                     const Tensor<Index>& indices,
                     const MaxUnpoolOptions& options) {
  return max_unpool(x, indices, max_unpool_geometry(x.shape(), options));
}

}  // namespace fenestra::spec
