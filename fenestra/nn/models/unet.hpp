// U-Net (Ronneberger et al., 2015), padded and with batch norm: pictures to scores for each of
// their cells. Four levels, 16 channels at the finest; height and width are multiples of 8.
#pragma once

#include <fenestra/nn/models/options.hpp>

namespace fenestra::nn {

template <class T>
BasicSequential<T> double_conv(Index in, Index out) {
  BasicSequential<T> block;
  block.add("first", conv_norm_act<T>(in, out));
  block.add("second", conv_norm_act<T>(out, out));
  return block;
}

/// What happens at one size: two convolutions, everything below it beside a short cut, and two
/// convolutions on both.
template <class T>
BasicSequential<T> unet_level(Index in, Index channels, int below) {
  BasicSequential<T> level;
  level.add("down", double_conv<T>(in, channels));
  if (below > 0) {
    BasicSequential<T> deeper;
    deeper.add("pool", BasicMaxPool<T>({.kernel = 2}));
    deeper.add("level", unet_level<T>(channels, 2 * channels, below - 1));
    deeper.add("enlarge",
               BasicConvTranspose<T>(2 * channels, channels, {.kernel = 2, .stride = 2}));
    level.add("skip", BasicBranches<T>{Layer<T>(BasicIdentity<T>()), Layer<T>(std::move(deeper))});
    level.add("up", double_conv<T>(2 * channels, channels));
  }
  return level;
}

template <class T>
Layer<T> unet(const ModelOptions& options = {}) {
  const Index channels = scaled_channels(16, options.width, 4);
  BasicSequential<T> net;
  net.add("level", unet_level<T>(or_default(options.channels, 1), channels, 3));
  net.add("head", BasicConv<T>(channels, or_default(options.classes, 1)));
  return net;
}

}  // namespace fenestra::nn
