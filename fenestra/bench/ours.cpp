// The operators of this library, called eagerly; convolutions compiled, too.
#include <fenestra/bench/work.hpp>
#include <fenestra/engine/compile.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/conv/candidates.hpp>
#include <fenestra/ops/conv/op.hpp>
#include <fenestra/ops/conv_transpose/op.hpp>
#include <fenestra/ops/elementwise/call.hpp>
#include <fenestra/ops/elementwise/op.hpp>
#include <fenestra/ops/pool/adaptive_avg/op.hpp>
#include <fenestra/ops/pool/avg/op.hpp>
#include <fenestra/ops/pool/candidates.hpp>
#include <fenestra/ops/pool/max/op.hpp>
#include <fenestra/ops/pool/smooth_max/op.hpp>
#include <fenestra/spec/random.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace fenestra::bench {

namespace {

template <class T>
Tensor<T> random_tensor(const Shape& shape) {
  Random random(static_cast<std::uint64_t>(shape.elements().value_or(0)));
  Tensor<T> result(shape);
  for (T& value : result.mutable_values()) {
    value = static_cast<T>(random.real());
  }
  return result;
}

template <class... Tensors>
double bytes_of(const Tensors&... tensors) {
  return (static_cast<double>(tensors.size() * static_cast<Index>(sizeof tensors[0])) + ...);
}

template <class Problem, class Arguments>
std::string kernel_name(std::span<const kernels::Candidate<Problem, Arguments>> candidates,
                        const Problem& problem) {
  return std::string(kernels::choose(candidates, problem).name) + "_" +
         std::string(kernels::isa_name());
}

[[noreturn]] void throw_unknown(const Case& what, char direction) {
  throw Error(ErrorCode::unknown_choice,
              "bench: case \"" + what.name + "\": no direction " + direction + " of " + what.op);
}

/// Both convolutions: `transposed` reads the geometry's forward convolution backwards.
template <class T>
Work conv_work(const Case& what, char direction, const std::string& text, bool transposed) {
  const ConvGeometry g = transposed ? ConvTranspose::parse(text).conv : Conv::parse(text);
  Problem fields(text);
  const Tensor<T> x = random_tensor<T>(transposed ? g.y_shape() : g.x_shape());
  const Tensor<T> w = random_tensor<T>(g.w_shape());
  const Tensor<T> y_bar = random_tensor<T>(transposed ? g.x_shape() : g.y_shape());
  Work work;
  ConvDirection runs = ConvDirection::weight_grad;
  switch (direction) {
    case 'F':
    case 'T':
    case 'P': {
      runs = transposed ? ConvDirection::input_grad : ConvDirection::forward;
      const PerAxis stride = fields.per_axis("stride", 1);
      const PerAxis dilation = fields.per_axis("dilation", 1);
      const Padding padding = fields.padding("padding");
      if (transposed) {
        const ConvTransposeOptions options{.stride = stride,
                                           .padding = padding,
                                           .dilation = dilation,
                                           .groups = g.groups,
                                           .layout = g.layout};
        work.run = [=] { conv_transpose(x, w, options); };
        break;
      }
      const ConvOptions options{.stride = stride,
                                .padding = padding,
                                .dilation = dilation,
                                .groups = g.groups,
                                .layout = g.layout};
      if (direction == 'P') {
        const auto program = std::make_shared<Program<T>>(compile<T>(
            [&](const Value<T>& in) { return conv(in, Value<T>(w), options); }, x.shape()));
        const auto context = std::make_shared<Context<T>>(*program);
        const auto y = std::make_shared<std::vector<Tensor<T>>>(1, Tensor<T>(g.y_shape()));
        // Arguments refer to tensors: this one lives as long as they do.
        const auto kept = std::make_shared<const Tensor<T>>(x);
        const auto in = std::make_shared<std::vector<RunArgument>>();
        in->emplace_back(*kept);
        work.run = [kept, program, context, in, y] { program->run(*context, *in, *y); };
      } else if (direction == 'F') {
        work.run = [=] { conv(x, w, options); };
      } else {
        work.run = [=] {
          Tape<T> tape;
          conv(x, tape.parameter(w), options);
        };
      }
      break;
    }
    case 'D':
      runs = transposed ? ConvDirection::forward : ConvDirection::input_grad;
      if (transposed) {
        work.run = [=] { apply(ConvPrimitive{{}, ConvDirection::forward, g, false}, {y_bar, w}); };
      } else {
        work.run = [=] { conv_input_grad(y_bar, w, g); };
      }
      break;
    case 'W':
      if (transposed) {
        work.run = [=] { conv_weight_grad(y_bar, x, g); };
      } else {
        work.run = [=] { conv_weight_grad(x, y_bar, g); };
      }
      break;
    default: throw_unknown(what, direction);
  }
  work.kernel = kernel_name(conv_candidates<T>(), ConvProblem{runs, g});
  work.flops = 2.0 * static_cast<double>(g.multiply_adds());
  work.bytes = bytes_of(x, w, y_bar);
  return work;
}

/// With winners, as training needs them.
template <class T>
Work max_pool_work(const Case& what, char direction, const std::string& text) {
  const MaxPoolGeometry g = MaxPool::parse(text);
  const Tensor<T> x = random_tensor<T>(g.pool.x_shape());
  const Tensor<T> y_bar = random_tensor<T>(g.pool.y_shape());
  const auto forward = [g, x] {
    return apply_all(MaxPoolPrimitive{{}, PoolDirection::forward, g},
                     std::span<const Tensor<T>>(&x, 1),
                     std::span<const Selection>(),
                     true);
  };
  Work work;
  // One byte per winner.
  work.bytes = bytes_of(x, y_bar) + static_cast<double>(y_bar.size());
  PoolDirection runs = PoolDirection::forward;
  if (direction == 'F') {
    work.run = [forward] { forward(); };
  } else if (direction == 'D') {
    runs = PoolDirection::spread;
    work.run = [g, y_bar, winners = forward().workspace] {
      apply(MaxPoolPrimitive{{}, PoolDirection::spread, g}, {y_bar}, {winners});
    };
  } else {
    throw_unknown(what, direction);
  }
  work.kernel = kernel_name(pool_candidates<T, MaxReduction>(), PoolProblem<MaxReduction>{runs, g});
  return work;
}

template <class T>
Work avg_pool_work(const Case& what, char direction, const AvgPoolGeometry& g) {
  if (direction != 'F' && direction != 'D') {
    throw_unknown(what, direction);
  }
  const bool is_forward = direction == 'F';
  const Tensor<T> in = random_tensor<T>(is_forward ? g.pool.x_shape() : g.pool.y_shape());
  const AvgPoolPrimitive primitive{
      {}, is_forward ? PoolDirection::forward : PoolDirection::spread, g};
  Work work;
  work.run = [=] { apply(primitive, in); };
  work.kernel = kernel_name(pool_candidates<T, AverageReduction>(),
                            PoolProblem<AverageReduction>{primitive.direction, g});
  work.bytes =
      static_cast<double>(sizeof(T)) * static_cast<double>(g.pool.x_shape().elements().value_or(0) +
                                                           g.pool.y_shape().elements().value_or(0));
  return work;
}

template <class T>
Work smooth_max_pool_work(const Case& what, char direction, const std::string& text) {
  if (direction != 'F' && direction != 'D') {
    throw_unknown(what, direction);
  }
  const SmoothMaxPoolGeometry g = SmoothMaxPool::parse(text);
  const bool is_forward = direction == 'F';
  const Tensor<T> x = random_tensor<T>(g.pool.x_shape());
  const Tensor<T> y_bar = random_tensor<T>(g.pool.y_shape());
  const Tensor<T> beta(Shape{}, static_cast<T>(g.beta));
  const SmoothMaxPoolPrimitive primitive{
      {}, is_forward ? PoolDirection::forward : PoolDirection::spread, g};
  Work work;
  if (is_forward) {
    work.run = [=] { apply(primitive, {x, beta}); };
  } else {
    work.run = [=] { apply(primitive, {x, beta, y_bar}); };
  }
  work.kernel = kernel_name(pool_candidates<T, SmoothMaxReduction>(),
                            PoolProblem<SmoothMaxReduction>{primitive.direction, g});
  work.bytes = bytes_of(x, y_bar) + (is_forward ? 0 : bytes_of(x));
  return work;
}

/// Functions of one tensor or of two of the same shape.
template <class T>
Work elementwise_work(const Case& what, char direction, const std::string& text) {
  if (direction != 'F') {
    throw_unknown(what, direction);
  }
  const ElementwiseGeometry g = Elementwise::parse(text);
  const Tensor<T> a = random_tensor<T>(g.a);
  Work work;
  if (g.is_binary) {
    const Tensor<T> b = random_tensor<T>(g.b);
    work.run = [=] { binary(g.binary, a, b); };
    work.bytes = bytes_of(a, a, b);
  } else {
    work.run = [=] { unary(g.unary, a); };
    work.bytes = bytes_of(a, a);
  }
  work.kernel = "elementwise_" + std::string(kernels::isa_name());
  return work;
}

template <class T>
Work make(const Case& what, char direction, const std::string& problem) {
  if (what.op == Conv::name || what.op == ConvTranspose::name) {
    return conv_work<T>(what, direction, problem, what.op == ConvTranspose::name);
  }
  if (what.op == MaxPool::name) {
    return max_pool_work<T>(what, direction, problem);
  }
  if (what.op == AvgPool::name) {
    return avg_pool_work<T>(what, direction, AvgPool::parse(problem));
  }
  if (what.op == AdaptiveAvgPool::name) {
    return avg_pool_work<T>(what, direction, AdaptiveAvgPool::parse(problem));
  }
  if (what.op == SmoothMaxPool::name) {
    return smooth_max_pool_work<T>(what, direction, problem);
  }
  if (what.op == Elementwise::name) {
    return elementwise_work<T>(what, direction, problem);
  }
  throw_unknown(what, direction);
}

}  // namespace

Work make_ours(const Case& what, char direction, const std::string& problem, Numerics numerics) {
  const kernels::ScopedNumerics scope(numerics);
  Work work = is_model(what)     ? make_model(what, direction, problem)
              : what.is_double() ? make<double>(what, direction, problem)
                                 : make<float>(what, direction, problem);
  if (numerics == Numerics::fast) {
    work.run = [run = std::move(work.run)] {
      const kernels::ScopedNumerics fast(Numerics::fast);
      run();
    };
  }
  return work;
}

}  // namespace fenestra::bench
