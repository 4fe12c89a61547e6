// Networks without layers, written once for any value type: the shapes of the parameters and a
// forward pass that reads them in that order. They are what the bench times and tests compare where
// layers would be in the way; to train and to deploy, take the others of this folder (make.hpp).
#pragma once

#include <fenestra/nn/initialise.hpp>
#include <fenestra/ops/concat/call.hpp>
#include <fenestra/ops/conv/call.hpp>
#include <fenestra/ops/conv_transpose/call.hpp>
#include <fenestra/ops/elementwise/call.hpp>
#include <fenestra/ops/matmul/call.hpp>
#include <fenestra/ops/normalise/call.hpp>
#include <fenestra/ops/pool/call.hpp>
#include <fenestra/ops/reshape/call.hpp>

#include <span>
#include <string>
#include <vector>

namespace fenestra::nn {

/// Parameters in the order in which a forward pass reads them.
template <AnyValue V>
class Reader {
 public:
  explicit Reader(std::span<const V> values) : values_(values) {}
  const V& next() {
    if (at_ == values_.size()) {
      throw Error(ErrorCode::shape_mismatch,
                  "model: " + std::to_string(values_.size()) +
                      " parameters given, more needed\n  fix: one tensor per shape that the model "
                      "lists");
    }
    return values_[at_++];
  }

 private:
  std::span<const V> values_;
  std::size_t at_ = 0;
};

/// Weights drawn for rectifiers; vectors are biases and shifts (zero), except those a model says
/// are scales (one).
template <class T>
std::vector<Tensor<T>> initial_parameters(const std::vector<Shape>& shapes, Random& random) {
  std::vector<Tensor<T>> parameters;
  for (const Shape& shape : shapes) {
    parameters.push_back(shape.rank() > 1 ? kaiming_uniform<T>(shape, random) : Tensor<T>(shape));
  }
  return parameters;
}

/// LeNet-5 with rectifiers: (N, 1, 28, 28) images to (N, 10) scores.
struct LeNet5 {
  static constexpr std::string_view name = "lenet5";
  static constexpr Index classes = 10;
  static Shape input(Index batch) { return {batch, 1, 28, 28}; }

  static std::vector<Shape> parameters() {
    return {
        {6, 1, 5, 5}, {6}, {16, 6, 5, 5}, {16}, {120, 400}, {120}, {84, 120}, {84}, {10, 84}, {10}};
  }
  template <class T>
  static std::vector<Tensor<T>> initial(Random& random) {
    return initial_parameters<T>(parameters(), random);
  }
  template <AnyValue V>
  static V forward(std::span<const V> parameters, const V& x) {
    Reader<V> p(parameters);
    const auto stage = [&](const V& h, Index padding) {
      const V& w = p.next();
      return max_pool(relu(conv(h, w, p.next(), {.padding = padding})), {.kernel = 2});
    };
    const auto dense = [&](const V& h) {
      const V& w = p.next();
      return linear(h, w, p.next());
    };
    V h = stage(stage(x, 2), 0);
    h = reshape(h, Shape{h.shape()[0], -1});
    h = relu(dense(h));
    h = relu(dense(h));
    return dense(h);
  }
};

/// A U-Net of three levels, 16, 32 and 64 channels wide: (N, 3, H, W) images to (N, 1, H, W)
/// scores, H and W multiples of 4.
struct UNet {
  static constexpr std::string_view name = "unet";
  static Shape input(Index batch) { return {batch, 3, 128, 128}; }

  static std::vector<Shape> parameters() {
    std::vector<Shape> shapes;
    const auto twice = [&](Index in, Index out) {
      shapes.insert(shapes.end(), {{out, in, 3, 3}, {out}, {out, out, 3, 3}, {out}});
    };
    const auto up = [&](Index in, Index out) {
      shapes.insert(shapes.end(), {{in, out, 2, 2}, {out}});
      twice(2 * out, out);
    };
    twice(3, 16);
    twice(16, 32);
    twice(32, 64);
    up(64, 32);
    up(32, 16);
    shapes.insert(shapes.end(), {{1, 16, 1, 1}, {1}});
    return shapes;
  }
  template <class T>
  static std::vector<Tensor<T>> initial(Random& random) {
    return initial_parameters<T>(parameters(), random);
  }
  template <AnyValue V>
  static V forward(std::span<const V> parameters, const V& x) {
    Reader<V> p(parameters);
    const auto once = [&](const V& h) {
      const V& w = p.next();
      return relu(conv(h, w, p.next(), {.padding = 1}));
    };
    const auto twice = [&](const V& h) { return once(once(h)); };
    const auto up = [&](const V& h, const V& skip) {
      const V& w = p.next();
      return twice(concat({conv_transpose(h, w, p.next(), {.stride = 2}), skip}, 1));
    };
    const V fine = twice(x);
    const V middle = twice(max_pool(fine, {.kernel = 2}));
    const V coarse = twice(max_pool(middle, {.kernel = 2}));
    const V y = up(up(coarse, middle), fine);
    const V& w = p.next();
    return conv(y, w, p.next());
  }
};

/// ResNet-18: (N, 3, 224, 224) images to (N, 1000) scores. Training normalises by the statistics
/// of the batch; inference by stored ones, `statistics` in the order of the normalisations.
struct ResNet18 {
  static constexpr std::string_view name = "resnet18";
  static constexpr Index classes = 1000;
  static Shape input(Index batch) { return {batch, 3, 224, 224}; }

  static std::vector<Shape> parameters() {
    std::vector<Shape> shapes;
    const auto layer = [&](Index in, Index out, Index kernel) {
      shapes.insert(shapes.end(), {{out, in, kernel, kernel}, {out}, {out}});
    };
    layer(3, 64, 7);
    Index in = 64;
    for (const Index out : kWidths) {
      for (int block = 0; block < 2; ++block) {
        layer(in, out, 3);
        layer(out, out, 3);
        if (in != out) {
          layer(in, out, 1);
        }
        in = out;
      }
    }
    shapes.insert(shapes.end(), {{1000, 512}, {1000}});
    return shapes;
  }
  /// Mean and variance of each normalisation.
  static std::vector<Shape> statistics() {
    std::vector<Shape> shapes;
    const std::vector<Shape> all = parameters();
    for (std::size_t i = 1; i + 2 < all.size(); i += 3) {
      shapes.insert(shapes.end(), {all[i], all[i]});
    }
    return shapes;
  }
  template <class T>
  static std::vector<Tensor<T>> initial(Random& random) {
    std::vector<Tensor<T>> all = initial_parameters<T>(parameters(), random);
    for (std::size_t i = 1; i + 2 < all.size(); i += 3) {
      all[i] = Tensor<T>(all[i].shape(), T(1));
    }
    return all;
  }
  template <class T>
  static std::vector<Tensor<T>> initial_statistics() {
    std::vector<Tensor<T>> all;
    for (const Shape& shape : statistics()) {
      all.emplace_back(shape, T(all.size() % 2 == 0 ? 0 : 1));
    }
    return all;
  }

  template <AnyValue V>
  static V forward(std::span<const V> parameters, const V& x) {
    return run<V>(parameters, {}, x);
  }
  template <AnyValue V>
  static V infer(std::span<const V> parameters, std::span<const V> statistics, const V& x) {
    return run<V>(parameters, statistics, x);
  }

 private:
  static constexpr Index kWidths[] = {64, 128, 256, 512};

  template <AnyValue V>
  static V run(std::span<const V> parameters, std::span<const V> statistics, const V& x) {
    Reader<V> p(parameters);
    Reader<V> s(statistics);
    const auto layer = [&](const V& h, Index stride, Index padding) {
      const V y = conv(h, p.next(), {.stride = stride, .padding = padding});
      const V& gamma = p.next();
      const V& beta = p.next();
      if (statistics.empty()) {
        return batch_norm(y, gamma, beta).y;
      }
      const V& mean = s.next();
      return batch_norm_inference(y, mean, s.next(), gamma, beta);
    };
    V h = max_pool(relu(layer(x, 2, 3)), {.kernel = 3, .stride = 2, .padding = 1});
    Index in = 64;
    for (const Index out : kWidths) {
      for (int block = 0; block < 2; ++block) {
        const Index stride = in == out ? 1 : 2;
        V y = layer(relu(layer(h, stride, 1)), 1, 1);
        h = relu(add(y, in == out ? h : layer(h, stride, 0)));
        in = out;
      }
    }
    h = global_avg_pool(h);
    const V& w = p.next();
    return linear(reshape(h, Shape{h.shape()[0], -1}), w, p.next());
  }
};

}  // namespace fenestra::nn
