// ConvNeXt-tiny (Liu et al., 2022): a convolutional network after the manner of transformers. Its
// stochastic depth is left out.
#pragma once

#include <fenestra/nn/models/options.hpp>

#include <string>

namespace fenestra::nn {

template <class T>
BasicLayerNorm<T> channel_norm(Index channels) {
  return BasicLayerNorm<T>(Shape{channels}, {.epsilon = 1e-6, .channels = true});
}

/// One convolution of 7x7 for each channel, a norm, and two of 1x1 with four times the channels
/// between; what it adds begins very small.
template <class T>
BasicResidual<T> convnext_block(Index channels) {
  BasicSequential<T> body;
  body.add("depthwise",
           BasicConv<T>(channels, channels, {.kernel = 7, .padding = 3, .groups = channels}));
  body.add("norm", channel_norm<T>(channels));
  body.add("expand", BasicConv<T>(channels, 4 * channels));
  body.add("act", BasicActivation<T, Nonlinearity::gelu>());
  body.add("project", BasicConv<T>(4 * channels, channels));
  body.add("scale", BasicChannelScale<T>(channels, 1e-6));
  return BasicResidual<T>(std::move(body));
}

template <class T>
Layer<T> convnext_tiny(const ModelOptions& options = {}) {
  BasicSequential<T> net;
  Index in = or_default(options.channels, 3);
  int number = 1;
  for (const auto& [channels, count] :
       {std::pair<Index, int>{96, 3}, {192, 3}, {384, 9}, {768, 3}}) {
    const Index out = scaled_channels(channels, options.width);
    BasicSequential<T> down;
    if (number == 1) {
      down.add("conv", BasicConv<T>(in, out, {.kernel = 4, .stride = 4}));
      down.add("norm", channel_norm<T>(out));
    } else {
      down.add("norm", channel_norm<T>(in));
      down.add("conv", BasicConv<T>(in, out, {.kernel = 2, .stride = 2}));
    }
    BasicSequential<T> stage;
    for (int block = 0; block < count; ++block) {
      stage.add(convnext_block<T>(out));
    }
    net.add("down" + std::to_string(number), std::move(down));
    net.add("stage" + std::to_string(number), std::move(stage));
    in = out;
    ++number;
  }
  net.add("mean", BasicGlobalAvgPool<T>());
  net.add("norm", channel_norm<T>(in));
  net.add("flatten", BasicFlatten<T>());
  net.add("head", BasicLinear<T>(in, or_default(options.classes, 1000)));
  return net;
}

}  // namespace fenestra::nn
