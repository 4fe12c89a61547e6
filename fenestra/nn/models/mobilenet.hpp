// Networks of inverted residuals for small machines: MobileNetV2 (Sandler et al., 2018) and
// MobileNetV3-small (Howard et al., 2019), scalable in width.
#pragma once

#include <fenestra/nn/models/options.hpp>

#include <string>

namespace fenestra::nn {

/// How a block is made; channels are scaled already.
struct InvertedBlock {
  Index in = 0;
  Index expanded = 0;
  Index out = 0;
  Index kernel = 3;
  Index stride = 1;
  Index squeezed = 0;  ///< of squeeze-and-excitation; 0 for none
  BatchNormSettings norm = {};
};

/// 1x1 to `expanded`, one convolution for each channel, 1x1 to `out`; a short cut where the shape
/// stays.
template <class T, Nonlinearity f>
Layer<T> inverted_block(const InvertedBlock& b) {
  BasicSequential<T> body;
  if (b.expanded != b.in) {
    body.add("expand", conv_norm_act<T, f>(b.in, b.expanded, {.kernel = 1, .norm = b.norm}));
  }
  body.add("depthwise",
           conv_norm_act<T, f>(
               b.expanded,
               b.expanded,
               {.kernel = b.kernel, .stride = b.stride, .groups = b.expanded, .norm = b.norm}));
  if (b.squeezed > 0) {
    body.add("attention", BasicSqueezeExcite<T>(b.expanded, b.squeezed));
  }
  body.add("project", conv_norm<T>(b.expanded, b.out, {.kernel = 1, .norm = b.norm}));
  if (b.stride == 1 && b.in == b.out) {
    return BasicResidual<T>(std::move(body));
  }
  return body;
}

template <class T>
Layer<T> mobilenet_v2(const ModelOptions& options = {}) {
  constexpr auto kRelu6 = Nonlinearity::relu6;
  struct Stage {
    Index expansion, channels;
    int count;
    Index stride;
  };
  BasicSequential<T> net;
  Index in = scaled_channels(32, options.width);
  net.add("stem", conv_norm_act<T, kRelu6>(or_default(options.channels, 3), in, {.stride = 2}));
  int number = 1;
  for (const Stage& s : {Stage{1, 16, 1, 1},
                         Stage{6, 24, 2, 2},
                         Stage{6, 32, 3, 2},
                         Stage{6, 64, 4, 2},
                         Stage{6, 96, 3, 1},
                         Stage{6, 160, 3, 2},
                         Stage{6, 320, 1, 1}}) {
    const Index out = scaled_channels(s.channels, options.width);
    BasicSequential<T> stage;
    for (int block = 0; block < s.count; ++block) {
      stage.add(inverted_block<T, kRelu6>({.in = in,
                                           .expanded = in * s.expansion,
                                           .out = out,
                                           .stride = block == 0 ? s.stride : 1}));
      in = out;
    }
    net.add("stage" + std::to_string(number++), std::move(stage));
  }
  // The last convolution does not shrink: narrow networks need its features most.
  const Index last = scaled_channels(1280, std::max(1.0, options.width));
  net.add("last", conv_norm_act<T, kRelu6>(in, last, {.kernel = 1}));
  net.add("mean", BasicGlobalAvgPool<T>());
  net.add("flatten", BasicFlatten<T>());
  net.add("dropout", BasicDropout<T>(0.2));
  net.add("head", BasicLinear<T>(last, or_default(options.classes, 1000)));
  return net;
}

template <class T>
Layer<T> mobilenet_v3_small(const ModelOptions& options = {}) {
  constexpr auto kSwish = Nonlinearity::hard_swish;
  constexpr BatchNormSettings kNorm{.momentum = 0.01, .epsilon = 1e-3};
  const auto width = [&](Index channels) { return scaled_channels(channels, options.width); };
  struct Row {
    Index kernel, expanded, out;
    bool squeezes, swishes;
    Index stride;
  };
  BasicSequential<T> net;
  net.add("stem",
          conv_norm_act<T, kSwish>(
              or_default(options.channels, 3), width(16), {.stride = 2, .norm = kNorm}));
  Index in = width(16);
  int number = 1;
  for (const Row& r : {Row{3, 16, 16, true, false, 2},
                       Row{3, 72, 24, false, false, 2},
                       Row{3, 88, 24, false, false, 1},
                       Row{5, 96, 40, true, true, 2},
                       Row{5, 240, 40, true, true, 1},
                       Row{5, 240, 40, true, true, 1},
                       Row{5, 120, 48, true, true, 1},
                       Row{5, 144, 48, true, true, 1},
                       Row{5, 288, 96, true, true, 2},
                       Row{5, 576, 96, true, true, 1},
                       Row{5, 576, 96, true, true, 1}}) {
    const Index expanded = width(r.expanded);
    const InvertedBlock block{.in = in,
                              .expanded = expanded,
                              .out = width(r.out),
                              .kernel = r.kernel,
                              .stride = r.stride,
                              .squeezed = r.squeezes ? scaled_channels(expanded / 4, 1) : 0,
                              .norm = kNorm};
    net.add("block" + std::to_string(number++),
            r.swishes ? inverted_block<T, kSwish>(block)
                      : inverted_block<T, Nonlinearity::relu>(block));
    in = block.out;
  }
  const Index last = 6 * in;
  const Index hidden = width(1024);
  net.add("last", conv_norm_act<T, kSwish>(in, last, {.kernel = 1, .norm = kNorm}));
  net.add("mean", BasicGlobalAvgPool<T>());
  net.add("flatten", BasicFlatten<T>());
  net.add("hidden", BasicLinear<T>(last, hidden));
  net.add("act", BasicActivation<T, kSwish>());
  net.add("dropout", BasicDropout<T>(0.2));
  net.add("head", BasicLinear<T>(hidden, or_default(options.classes, 1000)));
  return net;
}

}  // namespace fenestra::nn
