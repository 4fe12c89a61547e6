// LeNet-5 whose shapes are checked by the compiler, then planned, run and compared with the eager
// call. With REFUSED defined the first linear layer takes the features of unpadded images, and the
// program does not compile:
// expect: "linear: x"
// expect: "shape-mismatch"
// expect: "got 400, needed 256"
// expect: "x = (8, 400)"
// expect: "w = (120, 256)"
#include <fenestra/typed.hpp>

#include <cstdio>

namespace fn = fenestra;
using fn::Shape;

namespace {

#ifdef REFUSED
constexpr fn::Index kFeatures = 16 * 4 * 4;
#else
constexpr fn::Index kFeatures = 16 * 5 * 5;
#endif

// One callable for tensors, tapes and graphs; options that decide a shape are template arguments.
constexpr auto loss = [](const auto& images,
                         const auto& labels,
                         const auto& w1,
                         const auto& b1,
                         const auto& w2,
                         const auto& b2,
                         const auto& w3,
                         const auto& b3,
                         const auto& w4,
                         const auto& b4,
                         const auto& w5,
                         const auto& b5) {
  constexpr fn::MaxPoolOptions kHalve{.kernel = 2};
  const auto first =
      fn::max_pool2d<kHalve>(fn::relu(fn::conv2d<fn::ConvOptions{.padding = 2}>(images, w1, b1)));
  const auto second = fn::max_pool2d<kHalve>(fn::relu(fn::conv2d(first, w2, b2)));
  const auto features = fn::reshape<Shape{8, -1}>(second);
  const auto hidden = fn::relu(fn::linear(fn::relu(fn::linear(features, w3, b3)), w4, b4));
  return fn::cross_entropy(fn::linear(hidden, w5, b5), labels);
};

/// Small numbers of both signs, the same in every run.
fn::Tensor<float> filled(const Shape& shape) {
  fn::Tensor<float> result(shape);
  unsigned state = 1;
  for (float& value : result.mutable_values()) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 24U) / 1280.0F - 0.1F;
  }
  return result;
}

}  // namespace

int main() {
  const auto program = fn::compile<float>(loss,
                                          fn::typed_input<Shape{8, 1, 28, 28}>,
                                          fn::typed_data<Shape{8}>,
                                          fn::typed_parameter<Shape{6, 1, 5, 5}>,
                                          fn::typed_parameter<Shape{6}>,
                                          fn::typed_parameter<Shape{16, 6, 5, 5}>,
                                          fn::typed_parameter<Shape{16}>,
                                          fn::typed_parameter<Shape{120, kFeatures}>,
                                          fn::typed_parameter<Shape{120}>,
                                          fn::typed_parameter<Shape{84, 120}>,
                                          fn::typed_parameter<Shape{84}>,
                                          fn::typed_parameter<Shape{10, 84}>,
                                          fn::typed_parameter<Shape{10}>);
  std::printf("%s\n", program.explain().c_str());

  const fn::Tensor<fn::Index> labels(Shape{8}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto run = [&](const auto& call) {
    return call(filled(Shape{8, 1, 28, 28}),
                labels,
                filled(Shape{6, 1, 5, 5}),
                filled(Shape{6}),
                filled(Shape{16, 6, 5, 5}),
                filled(Shape{16}),
                filled(Shape{120, kFeatures}),
                filled(Shape{120}),
                filled(Shape{84, 120}),
                filled(Shape{84}),
                filled(Shape{10, 84}),
                filled(Shape{10}));
  };
  fn::Context<float> context(program);
  const fn::Tensor<float> planned =
      run([&](const auto&... in) { return program.run(context, in...)[0]; });
  const fn::Tensor<float> eager = run(loss);
  std::printf("loss %.6f\n", static_cast<double>(planned[0]));
  return planned == eager ? 0 : 1;
}
