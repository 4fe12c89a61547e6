// Residual networks of basic blocks (He et al., 2015): ResNet-18 for pictures of 224x224, and the
// one of three stages for pictures of 28x28 or 32x32.
#pragma once

#include <fenestra/nn/models/options.hpp>

#include <string>

namespace fenestra::nn {

template <class T>
BasicResidual<T> basic_block(Index in, Index out, Index stride) {
  BasicSequential<T> body;
  body.add("first", conv_norm_act<T>(in, out, {.stride = stride}));
  body.add("second", conv_norm<T>(out, out));
  ResidualSettings<T> settings{.after = BasicActivation<T, Nonlinearity::relu>()};
  if (stride != 1 || in != out) {
    settings.projection = conv_norm<T>(in, out, {.kernel = 1, .stride = stride});
  }
  return BasicResidual<T>(std::move(body), std::move(settings));
}

/// `count` blocks, the first of which has the stride.
template <class T>
BasicSequential<T> basic_stage(Index in, Index out, Index stride, int count) {
  BasicSequential<T> stage;
  for (int block = 0; block < count; ++block) {
    stage.add(basic_block<T>(block == 0 ? in : out, out, block == 0 ? stride : 1));
  }
  return stage;
}

template <class T>
Layer<T> resnet18(const ModelOptions& options = {}) {
  const auto width = [&](Index channels) { return scaled_channels(channels, options.width); };
  BasicSequential<T> net;
  net.add("stem",
          conv_norm_act<T>(or_default(options.channels, 3), width(64), {.kernel = 7, .stride = 2}));
  net.add("pool", BasicMaxPool<T>({.kernel = 3, .stride = 2, .padding = 1}));
  Index in = width(64);
  int number = 1;
  for (const Index channels : {64, 128, 256, 512}) {
    net.add("stage" + std::to_string(number),
            basic_stage<T>(in, width(channels), number == 1 ? 1 : 2, 2));
    in = width(channels);
    ++number;
  }
  net.add("mean", BasicGlobalAvgPool<T>());
  net.add("flatten", BasicFlatten<T>());
  net.add("head", BasicLinear<T>(in, or_default(options.classes, 1000)));
  return net;
}

/// ResNet-20: three blocks in each of three stages of 16, 32 and 64 channels.
template <class T>
Layer<T> small_resnet(const ModelOptions& options = {}) {
  const auto width = [&](Index channels) { return scaled_channels(channels, options.width); };
  BasicSequential<T> net;
  net.add("stem", conv_norm_act<T>(or_default(options.channels, 3), width(16)));
  net.add("stage1", basic_stage<T>(width(16), width(16), 1, 3));
  net.add("stage2", basic_stage<T>(width(16), width(32), 2, 3));
  net.add("stage3", basic_stage<T>(width(32), width(64), 2, 3));
  net.add("mean", BasicGlobalAvgPool<T>());
  net.add("flatten", BasicFlatten<T>());
  net.add("head", BasicLinear<T>(width(64), or_default(options.classes, 10)));
  return net;
}

}  // namespace fenestra::nn
