// What the ready models have in common: their options, and blocks that several of them use.
#pragma once

#include <fenestra/nn/layers.hpp>

#include <algorithm>
#include <utility>

namespace fenestra::nn {

/// 0 stands for what the model was published with.
struct ModelOptions {
  Index classes = 0;  ///< scores that come out; channels of what comes out of U-Net and autoencoder
  Index channels = 0;  ///< of the input
  double width = 1;    ///< factor on the number of channels inside
};

/// A number of channels times the width, a multiple of `divisor` and at least that, and never more
/// than a tenth below what was asked for.
inline Index scaled_channels(Index channels, double width, Index divisor = 8) {
  const double wanted = static_cast<double>(channels) * width;
  Index rounded = std::max(
      divisor, static_cast<Index>(wanted + static_cast<double>(divisor) / 2) / divisor * divisor);
  if (static_cast<double>(rounded) < 0.9 * wanted) {
    rounded += divisor;
  }
  return rounded;
}

inline Index or_default(Index given, Index standard) { return given > 0 ? given : standard; }

/// Convolution without bias, batch norm, and an activation; of two axes, padded to keep the size at
/// stride 1.
struct ConvNormOptions {
  Index kernel = 3;
  Index stride = 1;
  Index groups = 1;
  BatchNormSettings norm = {};
};

template <class T>
BasicSequential<T> conv_norm(Index in, Index out, const ConvNormOptions& options = {}) {
  BasicSequential<T> block;
  block.add("conv",
            BasicConv<T>(in,
                         out,
                         {.kernel = options.kernel,
                          .stride = options.stride,
                          .padding = (options.kernel - 1) / 2,
                          .groups = options.groups,
                          .bias = false}));
  block.add("norm", BasicBatchNorm<T>(out, options.norm));
  return block;
}

template <class T, Nonlinearity f = Nonlinearity::relu>
BasicSequential<T> conv_norm_act(Index in, Index out, const ConvNormOptions& options = {}) {
  BasicSequential<T> block = conv_norm<T>(in, out, options);
  block.add("act", BasicActivation<T, f>());
  return block;
}

}  // namespace fenestra::nn
