// LeNet-5 (LeCun et al., 1998) with rectifiers and max pooling, for pictures of 28x28.
#pragma once

#include <fenestra/nn/models/options.hpp>

namespace fenestra::nn {

template <class T>
Layer<T> lenet(const ModelOptions& options = {}) {
  const auto width = [&](Index channels) { return scaled_channels(channels, options.width, 1); };
  BasicSequential<T> net;
  net.add("conv1",
          BasicConv<T>(or_default(options.channels, 1), width(6), {.kernel = 5, .padding = 2}));
  net.add("relu1", BasicActivation<T, Nonlinearity::relu>());
  net.add("pool1", BasicMaxPool<T>({.kernel = 2}));
  net.add("conv2", BasicConv<T>(width(6), width(16), {.kernel = 5}));
  net.add("relu2", BasicActivation<T, Nonlinearity::relu>());
  net.add("pool2", BasicMaxPool<T>({.kernel = 2}));
  net.add("flatten", BasicFlatten<T>());
  net.add("fc1", BasicLinear<T>(width(16) * 25, width(120)));
  net.add("relu3", BasicActivation<T, Nonlinearity::relu>());
  net.add("fc2", BasicLinear<T>(width(120), width(84)));
  net.add("relu4", BasicActivation<T, Nonlinearity::relu>());
  net.add("fc3", BasicLinear<T>(width(84), or_default(options.classes, 10)));
  return net;
}

}  // namespace fenestra::nn
