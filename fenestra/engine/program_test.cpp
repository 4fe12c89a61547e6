// Programs: what they compute, that running them allocates nothing, threads, errors, training
// steps.
#include <fenestra/engine/transforms.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/testing_test.hpp>
#include <fenestra/nn/compile_step.hpp>
#include <fenestra/nn/optimiser.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <thread>

// Sanitizers have an allocator of their own.
#if defined(__GLIBC__) && !defined(FENESTRA_SANITIZED)
#define FENESTRA_COUNTS_ALLOCATIONS 1

namespace {
std::atomic<long> allocations{0};
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
}
#endif

namespace fenestra::graph {
namespace {

template <class F>
ErrorCode code_of(const F& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

/// A small network of most kinds of layers; generic in the value type.
constexpr auto kModel = [](const auto& x, const auto& w, const auto& b, const auto& v) {
  const auto y = max_pool(relu(conv(x, w, b, {.padding = 1})), {.kernel = 2});
  const auto z = avg_pool(tanh(batch_norm(y).y), {.kernel = 2});
  return log_softmax(linear(reshape(z, {z.shape()[0], -1}), v));
};

template <class T>
struct Case {
  Tensor<T> x = sample_tensor<T>({2, 3, 8, 8}, 1);
  Tensor<T> w = sample_tensor<T>({4, 3, 3, 3}, 2);
  Tensor<T> b = sample_tensor<T>({4}, 3);
  Tensor<T> v = sample_tensor<T>({5, 16}, 4);
};

template <class T>
Program<T> compiled(const CompileOptions& options = {}) {
  const Case<T> c;
  return compile<T>(kModel, c.x.shape(), c.w.shape(), c.b.shape(), c.v.shape(), options);
}

TEST(Program, RunsToTheBitsOfEager) {
  const Case<double> c;
  const Program<double> program = compiled<double>();
  Context<double> context(program);
  EXPECT_EQ(program.run(context, c.x, c.w, c.b, c.v)[0], kModel(c.x, c.w, c.b, c.v));
}

TEST(Program, DerivesToTheBitsOfEager) {
  const Case<float> c;
  const Program<float> program = compiled<float>({.vjp = true, .jvp = true});
  Context<float> context(program);
  const auto [y, pullback] = vjp(kModel, c.x, c.w, c.b, c.v);
  const Tensor<float> y_bar = sample_tensor<float>(y.shape(), 5);
  const auto [x_bar, w_bar, b_bar, v_bar] = pullback(y_bar);
  const auto results = program.vjp(context, c.x, c.w, c.b, c.v, y_bar);
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[0], y);
  EXPECT_EQ(results[1], x_bar);
  EXPECT_EQ(results[2], w_bar);
  EXPECT_EQ(results[3], b_bar);
  EXPECT_EQ(results[4], v_bar);
  const auto dots = std::tuple(sample_tensor<float>(c.x.shape(), 6),
                               sample_tensor<float>(c.w.shape(), 7),
                               sample_tensor<float>(c.b.shape(), 8),
                               sample_tensor<float>(c.v.shape(), 9));
  const auto& [x_dot, w_dot, b_dot, v_dot] = dots;
  const auto eager = jvp(kModel, primals(c.x, c.w, c.b, c.v), tangents(x_dot, w_dot, b_dot, v_dot));
  const auto moved = program.jvp(context, c.x, c.w, c.b, c.v, x_dot, w_dot, b_dot, v_dot);
  EXPECT_EQ(moved[0], eager.first);
  EXPECT_EQ(moved[1], eager.second);
}

TEST(Program, DifferentiatesByWhatIsAskedFor) {
  const Case<double> c;
  const Program<double> program = compiled<double>({.vjp = true, .wrt = {1, 3}});
  Context<double> context(program);
  const auto [y, pullback] = vjp(kModel, c.x, c.w, c.b, c.v);
  const Tensor<double> y_bar = sample_tensor<double>(y.shape(), 5);
  const auto results = program.vjp(context, c.x, c.w, c.b, c.v, y_bar);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[1], std::get<1>(pullback(y_bar)));
  EXPECT_EQ(results[2], std::get<3>(pullback(y_bar)));
  EXPECT_EQ(count_named(program.plan(ProgramForm::vjp).graph(), "conv_input_grad"), 0u);
}

TEST(Program, CompilesTransformsInsideTheCallable) {
  const auto cubes = [](const auto& x) { return sum(mul(x, mul(x, x))); };
  const auto model = [&](const auto& x, const auto& v) {
    return std::tuple(grad(cubes, x), hvp(cubes, primals(x), tangents(v)));
  };
  const Tensor<double> x = sample_tensor<double>({5}, 1);
  const Tensor<double> v = sample_tensor<double>({5}, 2);
  const auto program = compile<double>(model, x.shape(), v.shape());
  Context<double> context(program);
  const auto results = program.run(context, x, v);
  EXPECT_EQ(results[0], std::get<0>(model(x, v)));
  EXPECT_EQ(results[1], std::get<1>(model(x, v)));
}

TEST(Program, LabelsAreDataWithoutAGradient) {
  const Tensor<double> x = sample_tensor<double>({3, 4});
  const Tensor<Index> labels({3}, {2, 0, 3});
  const auto loss = [](const auto& logits, const auto& classes) {
    return cross_entropy(logits, classes);
  };
  const auto program =
      compile<double>(loss, Shape{3, 4}, DataShape{{3}}, CompileOptions{.value_and_grad = true});
  Context<double> context(program);
  const auto results = program.value_and_grad(context, x, labels);
  const auto [value, x_bar] = value_and_grad(
      [&](const auto& logits) { return cross_entropy(logits, Selection(labels)); }, x);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], value);
  EXPECT_EQ(results[1], x_bar);
}

TEST(Program, RefusesLabelsThatAreNoClass) {
  const auto program =
      compile<double>([](const auto& x, const auto& labels) { return cross_entropy(x, labels); },
                      Shape{2, 4},
                      DataShape{{2}});
  Context<double> context(program);
  const Tensor<double> x({2, 4});
  EXPECT_EQ(code_of([&] {
              program.run(context, x, Tensor<Index>({2}, {0, 4}));
            }),
            ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] {
              program.run(context, x, Tensor<Index>({2}, {-1, 0}));
            }),
            ErrorCode::invalid_index);
  EXPECT_EQ(code_of([&] { program.run(context, x, Tensor<Index>({2}, {3, 0})); }), ErrorCode::none);
}

TEST(Program, PoolsAndUnpoolsByItsOwnIndices) {
  const auto model = [](const auto& x) {
    const auto [y, indices] = max_pool_with_indices(x, {.kernel = 2});
    return max_unpool(y, indices, {.kernel = 2});
  };
  const Tensor<double> x = sample_tensor<double>({1, 2, 4, 6});
  const auto program = compile<double>(model, x.shape());
  Context<double> context(program);
  EXPECT_EQ(program.run(context, x)[0], model(x));
}

TEST(Program, ASharpnessThatIsGivenIsDifferentiated) {
  const auto model = [](const auto& x, const auto& beta) {
    return smooth_max_pool(x, beta, {.kernel = 2});
  };
  const Tensor<double> x = sample_tensor<double>({1, 2, 4, 4});
  const Tensor<double> beta(Shape{}, 3.0);
  const auto program = compile<double>(model, x.shape(), Shape{}, CompileOptions{.vjp = true});
  Context<double> context(program);
  const auto [y, pullback] = vjp(model, x, beta);
  const Tensor<double> y_bar(y.shape(), 1.0);
  const auto results = program.vjp(context, x, beta, y_bar);
  EXPECT_EQ(results[0], y);
  EXPECT_EQ(results[2], std::get<1>(pullback(y_bar)));
}

TEST(Program, RefusesASharpnessThatEagerRefuses) {
  const auto model = [](const auto& x, const auto& beta) {
    return smooth_max_pool(x, reshape(beta, Shape{}), {.kernel = {2}});
  };
  const Tensor<float> x({1, 1, 4}, 1.0f);
  const auto program = compile<float>(model, x.shape(), Shape{1}, CompileOptions{.vjp = true});
  Context<float> context(program);
  const Tensor<float> y_bar({1, 1, 2}, 1.0f);
  for (const float bad : {0.0f, -0.0f, INFINITY, -INFINITY, NAN}) {
    const Tensor<float> beta({1}, bad);
    EXPECT_EQ(code_of([&] { model(x, beta); }), ErrorCode::invalid_beta) << bad;
    EXPECT_EQ(code_of([&] { program.run(context, x, beta); }), ErrorCode::invalid_beta) << bad;
    EXPECT_EQ(code_of([&] { program.vjp(context, x, beta, y_bar); }), ErrorCode::invalid_beta)
        << bad;
    EXPECT_EQ(code_of([&] {
                const fenestra::Value<float> constant(beta);
                compile<float>([&](const auto& in) { return model(in, constant); }, x.shape());
              }),
              ErrorCode::invalid_beta)
        << bad;
  }
  EXPECT_EQ(code_of([&] { program.run(context, x, Tensor<float>({1}, -3.0f)); }), ErrorCode::none);
}

TEST(Program, UnpoolsByIndicesThatAreGiven) {
  const auto model = [](const auto& x, const auto& indices) {
    return max_unpool(x, indices, {.kernel = 2});
  };
  const Tensor<double> x = sample_tensor<double>({1, 1, 2, 2});
  const Tensor<Index> indices({1, 1, 2, 2}, {0, 5, 5, -1});  // the later of two wins
  const auto program = compile<double>(model, x.shape(), DataShape{indices.shape()});
  Context<double> context(program);
  EXPECT_EQ(program.run(context, x, indices)[0], model(x, indices));
}

TEST(Program, GivesTheErrorsOfEagerWhileItIsBuilt) {
  const auto model = [](const auto& x, const auto& w) { return conv(x, w); };
  std::string eager;
  try {
    model(Tensor<float>({1, 3, 8, 8}), Tensor<float>({4, 2, 3, 3}));
  } catch (const Error& error) {
    eager = error.what();
  }
  try {
    compile<float>(model, Shape{1, 3, 8, 8}, Shape{4, 2, 3, 3});
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), eager);
    EXPECT_EQ(error.code(), ErrorCode::channel_mismatch);
  }
}

TEST(Program, RefusesWhatItWasNotBuiltFor) {
  const Program<double> program = compile<double>([](const auto& x) { return exp(x); }, Shape{3});
  const Program<double> other = compile<double>([](const auto& x) { return exp(x); }, Shape{3});
  Context<double> context(program);
  Context<double> foreign(other);
  const Tensor<double> x({3});
  EXPECT_EQ(code_of([&] { program.run(context, Tensor<double>({4})); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([&] { program.run(context); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([&] { program.run(context, Tensor<Index>({3})); }), ErrorCode::dtype_mismatch);
  EXPECT_EQ(code_of([&] { program.vjp(context, x, x); }), ErrorCode::not_compiled);
  EXPECT_EQ(code_of([&] { program.run(foreign, x); }), ErrorCode::wrong_context);
}

TEST(Program, RefusesValuesOfTwoGraphs) {
  Builder<float> one;
  Builder<float> two;
  EXPECT_EQ(code_of([&] { add(one.input({2}, "x"), two.input({2}, "x")); }),
            ErrorCode::foreign_variable);
}

TEST(Program, AnOutputMayBeAnInputAConstantOrNamedTwice) {
  Builder<double> builder;
  const auto x = builder.input({3}, "x");
  const auto y = exp(x);
  builder.output(y, "y");
  builder.output(x, "x");
  builder.output(y, "y again");
  builder.output(reshape(y, Shape{3, 1}), "reshaped");
  builder.output(Tensor<double>({2}, 7.0), "constant");
  const Program<double> program(builder.graph());
  Context<double> context(program);
  const Tensor<double> at = sample_tensor<double>({3});
  const auto results = program.run(context, at);
  EXPECT_EQ(results[0], exp(at));
  EXPECT_EQ(results[1], at);
  EXPECT_EQ(results[2], exp(at));
  EXPECT_EQ(results[3], exp(at).reshaped({3, 1}));
  EXPECT_EQ(results[4], Tensor<double>({2}, 7.0));
}

TEST(Program, SaysWhichResultsAreCompleteAsItGoes) {
  Builder<float> builder;
  const auto x = builder.input({6, 3, 8, 8}, "x");
  const auto w = builder.parameter({4, 3, 3, 3}, "w");
  const auto y = relu(conv(x, w, {.padding = 1}));
  const auto z = max_pool(y, {.kernel = 2});
  builder.output(exp(exp(z)), "last");
  builder.output(w, "w");
  builder.output(y, "y");
  builder.output(y, "y again");
  builder.output(sum(y), "sum");
  for (const bool in_pieces : {false, true}) {
    CompileOptions options;
    options.threads = 2;
    if (!in_pieces) {
      options.batch_tiling.reset();
    }
    const Program<float> program(builder.graph(), options);
    Context<float> context(program);
    const Tensor<float> at = sample_tensor<float>({6, 3, 8, 8}, 1);
    const Tensor<float> by = sample_tensor<float>({4, 3, 3, 3}, 2);
    const auto expected = program.run(context, at, by);
    std::vector<Tensor<float>> results;
    std::vector<float*> memory;
    for (const Tensor<float>& tensor : expected) {
      results.emplace_back(tensor.shape(), -1.0f);
    }
    for (Tensor<float>& tensor : results) {
      memory.push_back(tensor.mutable_data());
    }
    std::vector<std::size_t> said;
    std::size_t calls = 0;
    const RunArgument arguments[] = {at, by};
    program.run(context, arguments, memory, [&](std::span<const std::size_t> complete) {
      ++calls;
      for (const std::size_t result : complete) {
        EXPECT_EQ(results[result], expected[result]);
        said.push_back(result);
      }
    });
    EXPECT_GT(calls, 2u);
    // What the convolution gave is known before the end; what is copied comes there.
    EXPECT_NE(said.front(), 0u);
    std::sort(said.begin(), said.end());
    EXPECT_EQ(said, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
    memory.pop_back();
    EXPECT_EQ(code_of([&] { program.run(context, arguments, memory); }), ErrorCode::shape_mismatch);
  }
}

TEST(Program, KeepsParametersPackedWhereItIsTold) {
  Builder<float> builder;
  const auto x = builder.input({5, 32, 6, 6}, "x");
  const auto w = builder.parameter({32, 32, 3, 3}, "w");
  // Channels first, the second one packs what the first one reads as it lies.
  builder.output(conv_transpose(relu(conv(x, w, {.padding = 1})), w, {.padding = 1}), "y");
  const Tensor<float> at = sample_tensor<float>({5, 32, 6, 6}, 1);
  const Tensor<float> by = sample_tensor<float>({32, 32, 3, 3}, 2);
  const Tensor<float> by_other = sample_tensor<float>({32, 32, 3, 3}, 3);
  for (const bool in_pieces : {false, true}) {
    CompileOptions options;
    options.batch_tiling.reset();
    if (in_pieces) {
      options.batch_tiling = kSmallestPieces;
    }
    const Program<float> program(builder.graph(), options);
    Context<float> context(program);
    const auto run = [&](const Tensor<float>& weights, PackedParameters packed) {
      Tensor<float> y(at.shape());
      float* const memory[] = {y.mutable_data()};
      const RunArgument arguments[] = {at, weights};
      program.run(context, arguments, memory, {}, packed);
      return y;
    };
    const Tensor<float> expected = program.run(context, at, by)[0];
    const Tensor<float> expected_other = program.run(context, at, by_other)[0];
    using enum PackedParameters;
    EXPECT_EQ(run(by, again), expected) << "nothing was kept";
    EXPECT_EQ(run(by, again), expected);
    EXPECT_NE(run(by_other, again), expected_other) << "kept is what was packed before";
    EXPECT_EQ(run(by_other, kept), expected_other);
    EXPECT_EQ(run(by_other, again), expected_other);
    EXPECT_EQ(run(by, in_calls), expected);
    EXPECT_EQ(run(by_other, again), expected_other) << "in_calls has kept nothing";
  }
}

TEST(Program, ContextsMayShareMemoryOfTheCaller) {
  const Case<double> c;
  const Program<double> program = compiled<double>();
  std::vector<double> memory(program.peak_bytes() / sizeof(double) + 8);
  void* begin = memory.data();
  std::size_t room = memory.size() * sizeof(double);
  auto* const line =
      static_cast<std::byte*>(std::align(kAlignment, program.peak_bytes(), begin, room));
  ASSERT_NE(line, nullptr);
  Context<double> one(program, line);
  Context<double> two(program, line);
  EXPECT_EQ(one.bytes(), program.peak_bytes());
  for (Context<double>* context : {&one, &two, &one}) {
    EXPECT_EQ(program.run(*context, c.x, c.w, c.b, c.v)[0], kModel(c.x, c.w, c.b, c.v));
  }
}

TEST(Program, IsMovableAndReusable) {
  const Case<double> c;
  Program<double> first = compiled<double>();
  Context<double> context(first);
  const Program<double> program = std::move(first);
  Context<double> moved = std::move(context);
  for (int seed = 1; seed <= 3; ++seed) {
    const Tensor<double> x = sample_tensor<double>(c.x.shape(), seed);
    EXPECT_EQ(program.run(moved, x, c.w, c.b, c.v)[0], kModel(x, c.w, c.b, c.v));
  }
}

TEST(Program, ManyThreadsRunItWithAContextEach) {
  const Case<double> c;
  const Program<double> program = compiled<double>({.vjp = true});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      Context<double> context(program);
      const Tensor<double> x = sample_tensor<double>(c.x.shape(), seed);
      const auto [y, pullback] = vjp(kModel, x, c.w, c.b, c.v);
      const Tensor<double> y_bar = sample_tensor<double>(y.shape(), seed + 1);
      const Tensor<double> w_bar = std::get<1>(pullback(y_bar));
      for (int i = 0; i < 10; ++i) {
        const auto results = program.vjp(context, x, c.w, c.b, c.v, y_bar);
        wrong += !(results[0] == y && results[2] == w_bar);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

#ifdef FENESTRA_COUNTS_ALLOCATIONS
template <class T>
long allocations_of_a_run(const Program<T>& program,
                          ProgramForm form,
                          std::span<const RunArgument> arguments) {
  Context<T> context(program);
  std::vector<Tensor<T>> results;
  for (const Shape& shape : program.result_shapes(form)) {
    results.push_back(Tensor<T>(shape));
  }
  program.execute(form, context, arguments, results);  // kernels get their scratch
  const long before = allocations;
  program.execute(form, context, arguments, results);
  return allocations - before;
}

TEST(Program, TheCounterOfAllocationsCounts) {
  const long before = allocations;
  const Tensor<float> x({1000});
  EXPECT_GT(allocations, before);
}

TEST(Program, RunningAllocatesNothing) {
  const Case<double> c;
  const Program<double> program = compiled<double>({.vjp = true, .jvp = true});
  const Tensor<double> y_bar({2, 5}, 1.0);
  std::vector<RunArgument> arguments{c.x, c.w, c.b, c.v};
  EXPECT_EQ(allocations_of_a_run<double>(program, ProgramForm::run, arguments), 0);
  arguments.push_back(y_bar);
  EXPECT_EQ(allocations_of_a_run<double>(program, ProgramForm::vjp, arguments), 0);
  arguments.pop_back();
  arguments.insert(arguments.end(), {c.x, c.w, c.b, c.v});
  EXPECT_EQ(allocations_of_a_run<double>(program, ProgramForm::jvp, arguments), 0);
}

TEST(Program, RunningOtherOperatorsAllocatesNothing) {
  const auto model = [](const auto& x, const auto& labels) {
    const auto up = resize(x, {.size = {7, 9}, .mode = ResizeMode::bilinear});
    const auto padded = pad(up, {{1, 2}, {2, 1}}, {.axes = {2, 3}, .mode = PadMode::reflect});
    const auto pooled = global_max_pool(lp_pool(padded, {.kernel = 2}));
    const auto wide = concat(std::tie(pooled, pooled), 1);
    return cross_entropy(smooth_max_pool(wide, {.kernel = 1}), labels);
  };
  const Tensor<double> x = sample_tensor<double>({2, 3, 5, 6});
  const Tensor<Index> labels({2, 1, 1}, {1, 4});
  const auto program = compile<double>(
      model, x.shape(), DataShape{labels.shape()}, CompileOptions{.value_and_grad = true});
  const std::vector<RunArgument> arguments{x, labels};
  EXPECT_EQ(allocations_of_a_run<double>(program, ProgramForm::run, arguments), 0);
  EXPECT_EQ(allocations_of_a_run<double>(program, ProgramForm::value_and_grad, arguments), 0);
}
#endif

// --- Training steps ------------------------------

constexpr auto kLoss = [](const auto& x, const auto& labels, const auto& params) {
  return cross_entropy(linear(x, params[0], params[1]), labels);
};

TEST(TrainingStep, MovesParametersInPlaceAsTheOptimiserDoes) {
  const Tensor<double> x = sample_tensor<double>({4, 6});
  const Tensor<Index> labels({4}, {0, 2, 1, 2});
  std::vector<Tensor<double>> params{sample_tensor<double>({3, 6}, 2),
                                     sample_tensor<double>({3}, 3)};
  std::vector<Tensor<double>> eager = params;
  const auto program =
      compile_step<double>(SgdUpdate{}, kLoss, Shape{4, 6}, DataShape{{4}}, params);
  Context<double> context(program);
  EXPECT_TRUE(program.plan().copies().empty()) << "parameters are written where they lie";
  const Tensor<double> rate(Shape{}, 0.125);  // exact, so that contraction cannot be seen
  for (int step = 0; step < 3; ++step) {
    const auto [loss, bars] =
        value_and_grad([&](const auto& p) { return kLoss(x, Selection(labels), p); }, eager);
    for (std::size_t i = 0; i < eager.size(); ++i) {
      eager[i] = sub(eager[i], mul(rate, bars[i]));
    }
    const auto results = program.run(context, x, labels, params[0], params[1], rate);
    EXPECT_EQ(results[0], loss);
    EXPECT_EQ(params, eager);
  }
}

TEST(TrainingStep, MomentumIsAParameterOfItsOwn) {
  const Tensor<double> x = sample_tensor<double>({4, 6});
  const Tensor<Index> labels({4}, {0, 2, 1, 2});
  std::vector<Tensor<double>> params{sample_tensor<double>({3, 6}, 2),
                                     sample_tensor<double>({3}, 3)};
  std::vector<Tensor<double>> eager = params;
  std::vector<Tensor<double>> velocity{Tensor<double>({3, 6}), Tensor<double>({3})};
  std::vector<Tensor<double>> eager_velocity = velocity;
  const auto program =
      compile_step<double>(SgdUpdate{.momentum = 0.5}, kLoss, Shape{4, 6}, DataShape{{4}}, params);
  Context<double> context(program);
  const Tensor<double> rate(Shape{}, 0.125);
  for (int step = 0; step < 3; ++step) {
    const auto bars = grad([&](const auto& p) { return kLoss(x, Selection(labels), p); }, eager);
    for (std::size_t i = 0; i < eager.size(); ++i) {
      eager_velocity[i] = add(scale(eager_velocity[i], 0.5), bars[i]);
      eager[i] = sub(eager[i], mul(rate, eager_velocity[i]));
    }
    program.run(context, x, labels, params[0], params[1], rate, velocity[0], velocity[1]);
    EXPECT_EQ(params, eager);
    EXPECT_EQ(velocity, eager_velocity);
  }
}

TEST(TrainingStep, RefusesToOverwriteAConstant) {
  const std::vector<Tensor<double>> params{Tensor<double>({3, 6}), Tensor<double>({3})};
  const auto program =
      compile_step<double>(SgdUpdate{}, kLoss, Shape{4, 6}, DataShape{{4}}, params);
  Context<double> context(program);
  const Tensor<double> x({4, 6});
  const Tensor<Index> labels({4}, Index{0});
  EXPECT_EQ(code_of([&] {
              program.run(context, x, labels, params[0], params[1], Tensor<double>(Shape{}, 0.1));
            }),
            ErrorCode::read_only);
}

TEST(TrainingStep, ATensorThatSharesStorageIsNotChangedByAnothersStep) {
  std::vector<Tensor<double>> params{sample_tensor<double>({3, 6}), sample_tensor<double>({3})};
  const std::vector<Tensor<double>> before = params;  // shares storage
  const auto program =
      compile_step<double>(SgdUpdate{}, kLoss, Shape{4, 6}, DataShape{{4}}, params);
  Context<double> context(program);
  program.run(context,
              sample_tensor<double>({4, 6}),
              Tensor<Index>({4}, Index{1}),
              params[0],
              params[1],
              Tensor<double>(Shape{}, 0.1));
  EXPECT_EQ(before[0], sample_tensor<double>({3, 6}));
  EXPECT_NE(params[0], before[0]);
}

}  // namespace
}  // namespace fenestra::graph
