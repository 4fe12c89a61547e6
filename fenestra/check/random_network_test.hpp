// Random small networks: layers stacked on an activation (N, C, H, W), as one callable on any value
// type. For laws about whole graphs; nobody would train them.
//
// A layer is drawn, tried on a tensor of zeros, and kept unless the result is empty or has grown
// too large, so every network runs. The text of a network and its seed reproduce it.
#pragma once

#include <fenestra/ops/all.hpp>
#include <fenestra/spec/random.hpp>

#include <string>
#include <utility>
#include <vector>

namespace fenestra::check {

enum class LayerKind {
  conv,
  strided_conv,
  conv_transpose,
  max_pool,
  avg_pool,
  smooth_max_pool,
  lp_pool,
  adaptive_max_pool,
  adaptive_avg_pool,
  relu,
  gelu,
  silu,
  clip,
  gated,       ///< x * sigmoid(x)
  residual,    ///< x + tanh(conv(x))
  concat,      ///< x beside softplus(x)
  batch_norm,  ///< with parameters
  layer_norm,
  resize,
  pad,
  crop,
  transpose,
  softmax,
  extremes,      ///< max(x, min(x/2, 1/4))
  subtract_max,  ///< x minus its largest channel
  linear,        ///< over the last axis
  last,
};

class RandomNetwork {
 public:
  explicit RandomNetwork(std::uint64_t seed) {
    Random random(seed);
    x_ = Shape{
        random.between(1, 2), random.between(1, 3), random.between(4, 7), random.between(4, 7)};
    Tensor<double> now(x_);
    const Index layers = random.between(2, 6);
    while (static_cast<Index>(layers_.size()) < layers) {
      const Layer layer = draw(random, now.shape());
      std::vector<Tensor<double>> parameters;
      for (const Shape& shape : layer.parameters) {
        parameters.emplace_back(shape);
      }
      const Shape shape = run(layer, now, std::span<const Tensor<double>>(parameters)).shape();
      if (shape.elements().value_or(0) == 0 || *shape.elements() > kMostElements) {
        continue;
      }
      now = Tensor<double>(shape);
      text_ += (text_.empty() ? "" : " ") + std::to_string(static_cast<int>(layer.kind));
      layers_.push_back(layer);
    }
    y_ = now.shape();
  }

  /// x, then the parameters of all layers.
  std::vector<Shape> inputs() const {
    std::vector<Shape> shapes{x_};
    for (const Layer& layer : layers_) {
      shapes.insert(shapes.end(), layer.parameters.begin(), layer.parameters.end());
    }
    return shapes;
  }
  const Shape& output() const { return y_; }
  /// The kinds of its layers, by number.
  const std::string& text() const { return text_; }

  template <class V>
  V operator()(const std::vector<V>& in) const {
    V value = in[0];
    std::size_t next = 1;
    for (const Layer& layer : layers_) {
      value = run(layer, value, std::span<const V>(in).subspan(next, layer.parameters.size()));
      next += layer.parameters.size();
    }
    return value;
  }

 private:
  static constexpr Index kMostElements = 1000;

  struct Layer {
    LayerKind kind = LayerKind::relu;
    std::vector<Shape> parameters = {};
  };

  static Layer draw(Random& random, const Shape& x) {
    Layer layer{static_cast<LayerKind>(random.between(0, static_cast<Index>(LayerKind::last) - 1))};
    const Index channels = x[1];
    switch (layer.kind) {
      case LayerKind::conv: layer.parameters = {{2, channels, 3, 3}, {2}}; break;
      case LayerKind::strided_conv: layer.parameters = {{3, channels, 2, 1}}; break;
      case LayerKind::conv_transpose: layer.parameters = {{channels, 2, 2, 2}, {2}}; break;
      case LayerKind::residual: layer.parameters = {{channels, channels, 3, 3}}; break;
      case LayerKind::batch_norm: layer.parameters = {{channels}, {channels}}; break;
      case LayerKind::linear: layer.parameters = {{3, x[3]}, {3}}; break;
      default: break;
    }
    return layer;
  }

  template <class V>
  static V run(const Layer& layer, const V& x, std::span<const V> p) {
    const Index height = x.shape()[2];
    const Index width = x.shape()[3];
    const PerAxis small{height > 1 ? 2 : 1, width > 1 ? 2 : 1};
    switch (layer.kind) {
      case LayerKind::conv: return conv(x, p[0], p[1], {.padding = 1});
      case LayerKind::strided_conv: return conv(x, p[0], {.stride = {2, 1}, .padding = 1});
      case LayerKind::conv_transpose: return conv_transpose(x, p[0], p[1], {.stride = 1});
      case LayerKind::max_pool: return max_pool(x, {.kernel = small, .stride = 1});
      case LayerKind::avg_pool: return avg_pool(x, {.kernel = small});
      case LayerKind::smooth_max_pool: return smooth_max_pool(x, {.kernel = small, .beta = 2});
      case LayerKind::lp_pool: return lp_pool(x, {.kernel = small});
      case LayerKind::adaptive_max_pool: return adaptive_max_pool(x, {.output_size = 2});
      case LayerKind::adaptive_avg_pool: return adaptive_avg_pool(x, {.output_size = {3, 2}});
      case LayerKind::relu: return relu(x);
      case LayerKind::gelu: return gelu(x);
      case LayerKind::silu: return silu(x);
      case LayerKind::clip: return clip(x, -0.5, 0.5);
      case LayerKind::gated: return mul(x, sigmoid(x));
      case LayerKind::residual: return add(x, tanh(conv(x, p[0], {.padding = 1})));
      case LayerKind::concat: return concat({x, softplus(x)}, 1);
      case LayerKind::batch_norm: return batch_norm(x, p[0], p[1]).y;
      case LayerKind::layer_norm: return layer_norm(x, 2);
      case LayerKind::resize: return resize(x, {.size = {5, 6}, .mode = ResizeMode::bilinear});
      case LayerKind::pad:
        return pad(x, {{1, 0}, {1, 1}}, {.axes = {2, 3}, .mode = PadMode::replicate});
      case LayerKind::crop: return slice(x, 2, 0, (height + 1) / 2);
      case LayerKind::transpose: return transpose(x, {0, 1, 3, 2});
      case LayerKind::softmax: return softmax(x, 1);
      case LayerKind::extremes: return maximum(x, minimum(scale(x, 0.5), scalar_constant<V>(0.25)));
      case LayerKind::subtract_max: return sub(x, max_over(x, {.axes = {1}, .keep = true}));
      case LayerKind::linear: return linear(x, p[0], p[1]);
      case LayerKind::last: break;
    }
    return x;
  }

  Shape x_;
  Shape y_;
  std::vector<Layer> layers_;
  std::string text_;
};

}  // namespace fenestra::check
