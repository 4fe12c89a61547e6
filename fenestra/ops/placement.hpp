// Gather and scatter between the cells of a channel and its windows, by flat index: the linear pair
// behind max pooling, its derivatives and max unpooling. They are adjoint to each other, so every
// order of derivative is one of the two.
#pragma once

#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>

namespace fenestra::spec {

/// Index of a window that no cell won: it reads zero and receives nothing.
inline constexpr Index kNowhere = -1;

/// y[n,c,o] = x[n,c,indices[n,c,o]], 0 where the index is `kNowhere`.
template <Scalar T>
void gather(const T* x,
            const Index* indices,
            const ActivationMap& x_map,
            const ActivationMap& y_map,
            T* y) {
  for (Index n = 0; n < (y_map.channels > 0 ? y_map.batch : 0); ++n) {
    for (Index c = 0; c < y_map.channels; ++c) {
      for (Index o = 0; o < y_map.cells; ++o) {
        const Index i = y_map.at(n, c, o);
        y[i] = indices[i] == kNowhere ? T(0) : x[x_map.at(n, c, indices[i])];
      }
    }
  }
}
template <Scalar T>
Tensor<T> gather(const Tensor<T>& x,
                 const Tensor<Index>& indices,
                 const ActivationMap& x_map,
                 const ActivationMap& y_map) {
  Tensor<T> y = Tensor<T>::uninitialised(indices.shape());
  gather(x.data(), indices.data(), x_map, y_map, y.mutable_data());
  return y;
}

/// x[n,c,indices[n,c,o]] += y[n,c,o], on zeros.
template <Scalar T>
void scatter(const T* y,
             const Index* indices,
             const ActivationMap& x_map,
             const ActivationMap& y_map,
             T* x) {
  std::fill_n(x, x_map.batch * x_map.channels * x_map.cells, T(0));
  for (Index n = 0; n < (y_map.channels > 0 ? y_map.batch : 0); ++n) {
    for (Index c = 0; c < y_map.channels; ++c) {
      for (Index o = 0; o < y_map.cells; ++o) {
        const Index i = y_map.at(n, c, o);
        if (indices[i] == kNowhere) {
          continue;
        }
        T& cell = x[x_map.at(n, c, indices[i])];
        cell = cell + y[i];
      }
    }
  }
}
template <Scalar T>
Tensor<T> scatter(const Tensor<T>& y,
                  const Tensor<Index>& indices,
                  const ActivationMap& x_map,
                  const ActivationMap& y_map,
                  const Shape& x_shape) {
  Tensor<T> x = Tensor<T>::uninitialised(x_shape);
  scatter(y.data(), indices.data(), x_map, y_map, x.mutable_data());
  return x;
}

}  // namespace fenestra::spec
