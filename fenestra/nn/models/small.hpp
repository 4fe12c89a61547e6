// Small networks for other shapes of data: an autoencoder, a dilated network for series, and a
// network for volumes.
#pragma once

#include <fenestra/nn/models/options.hpp>

#include <string>

namespace fenestra::nn {

/// Pictures of 28x28 through 32 numbers and back; what comes out are scores of a sigmoid, with as
/// many channels as what goes in.
template <class T>
Layer<T> autoencoder(const ModelOptions& options = {}) {
  constexpr Index kSide = 7;  // of 28x28 after two halvings
  constexpr Index kCode = 32;
  const Index channels = or_default(options.channels, 1);
  const Index narrow = scaled_channels(16, options.width);
  const Index wide = scaled_channels(32, options.width);
  BasicSequential<T> encoder;
  encoder.add("conv1", BasicConv<T>(channels, narrow, {.kernel = 3, .stride = 2, .padding = 1}));
  encoder.add("act1", BasicActivation<T, Nonlinearity::silu>());
  encoder.add("conv2", BasicConv<T>(narrow, wide, {.kernel = 3, .stride = 2, .padding = 1}));
  encoder.add("act2", BasicActivation<T, Nonlinearity::silu>());
  // A convolution over all that is left is a linear layer that keeps its axes.
  encoder.add("code", BasicConv<T>(wide, kCode, {.kernel = kSide}));
  BasicSequential<T> decoder;
  decoder.add("spread", BasicConvTranspose<T>(kCode, wide, {.kernel = kSide}));
  decoder.add("act1", BasicActivation<T, Nonlinearity::silu>());
  decoder.add("conv1",
              BasicConvTranspose<T>(wide, narrow, {.kernel = 4, .stride = 2, .padding = 1}));
  decoder.add("act2", BasicActivation<T, Nonlinearity::silu>());
  decoder.add(
      "conv2",
      BasicConvTranspose<T>(
          narrow, or_default(options.classes, channels), {.kernel = 4, .stride = 2, .padding = 1}));
  BasicSequential<T> net;
  net.add("encoder", std::move(encoder));
  net.add("decoder", std::move(decoder));
  return net;
}

/// Series (N, channels, length) to scores, by residual blocks that look 1, 2, 4, ... steps apart
/// (Oord et al., 2016).
template <class T>
Layer<T> dilated_1d(const ModelOptions& options = {}) {
  const Index channels = scaled_channels(32, options.width);
  BasicSequential<T> net;
  net.add("stem", BasicConv<T>(or_default(options.channels, 1), channels, {.kernel = {1}}));
  for (int block = 0; block < 6; ++block) {
    const Index apart = Index{1} << block;
    BasicSequential<T> body;
    for (const char* name : {"1", "2"}) {
      body.add(std::string("conv") + name,
               BasicConv<T>(channels,
                            channels,
                            {.kernel = {3}, .padding = {apart}, .dilation = apart, .bias = false}));
      body.add(std::string("norm") + name, BasicBatchNorm<T>(channels));
      body.add(std::string("act") + name, BasicActivation<T, Nonlinearity::relu>());
    }
    net.add("block" + std::to_string(block + 1), BasicResidual<T>(std::move(body)));
  }
  net.add("mean", BasicGlobalAvgPool<T>());
  net.add("flatten", BasicFlatten<T>());
  net.add("head", BasicLinear<T>(channels, or_default(options.classes, 10)));
  return net;
}

/// Volumes (N, channels, depth, height, width), each at least 8, to scores.
template <class T>
Layer<T> volume_net(const ModelOptions& options = {}) {
  BasicSequential<T> net;
  Index in = or_default(options.channels, 1);
  int number = 1;
  for (const Index channels : {16, 32, 64}) {
    const Index out = scaled_channels(channels, options.width);
    BasicSequential<T> stage;
    stage.add("conv", BasicConv<T>(in, out, {.kernel = {3, 3, 3}, .padding = 1, .bias = false}));
    stage.add("norm", BasicBatchNorm<T>(out));
    stage.add("act", BasicActivation<T, Nonlinearity::relu>());
    stage.add("pool", BasicMaxPool<T>({.kernel = 2}));
    net.add("stage" + std::to_string(number++), std::move(stage));
    in = out;
  }
  net.add("mean", BasicGlobalAvgPool<T>());
  net.add("flatten", BasicFlatten<T>());
  net.add("head", BasicLinear<T>(in, or_default(options.classes, 10)));
  return net;
}

}  // namespace fenestra::nn
