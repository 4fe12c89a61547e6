// Chains: which operations become one, that they have the bits of their members, and that they take
// no more memory.
#include <fenestra/base/memory.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/engine/execution.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/chain.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/schedule.hpp>
#include <fenestra/graph/simplify.hpp>
#include <fenestra/graph/testing_test.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/models/convnext.hpp>
#include <fenestra/nn/models/mobilenet.hpp>
#include <fenestra/nn/pass.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

namespace fenestra::graph {
namespace {

template <class T>
void expect_same_bits(const Tensor<T>& a, const Tensor<T>& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  const auto bytes = static_cast<std::size_t>(a.size()) * sizeof(T);
  EXPECT_TRUE(bytes == 0 || std::memcmp(a.data(), b.data(), bytes) == 0) << what;
}

/// The outputs of a graph as it stands, without any pass.
template <class T>
std::vector<Tensor<T>> run_plainly(const Graph& graph, const std::vector<Tensor<T>>& given) {
  const auto plan = std::make_shared<const Plan>(graph);
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  const std::size_t bytes = (plan->arena_bytes() / kAlignment + 1) * kAlignment;
  const std::unique_ptr<void, Free> arena(std::aligned_alloc(kAlignment, bytes));
  Execution<T> execution(plan, static_cast<std::byte*>(arena.get()));
  std::vector<const void*> arguments;
  for (const Tensor<T>& tensor : given) {
    arguments.push_back(tensor.data());
  }
  std::vector<Tensor<T>> results;
  std::vector<void*> outputs;
  for (const Output& output : graph.outputs()) {
    results.push_back(Tensor<T>::uninitialised(graph.node(output.node).shape));
    outputs.push_back(results.back().mutable_data());
  }
  execution.run(arguments, outputs, {});
  return results;
}

// --- Random graphs ------------------------------

/// One operation of a random graph, on values by their numbers.
struct Instruction {
  int function = 0;
  std::size_t a = 0;
  std::size_t b = 0;
};

constexpr int kUnary = 11;
constexpr int kFunctions = kUnary + 9;

template <class V>
V apply_instruction(const Instruction& next, const std::vector<V>& values) {
  const V& a = values[next.a];
  const V& b = values[next.b];
  switch (next.function) {
    case 0: return relu(a);
    case 1: return sigmoid(a);
    case 2: return tanh(a);
    case 3: return neg(a);
    case 4: return scale(a, 0.3);
    case 5: return hard_sigmoid(a);
    case 6: return silu(a);
    case 7: return clip(a, -0.5, 0.75);
    case 8: return exp(clip(a, -2, 2));
    case 9: return gelu(a);
    case 10: return leaky_relu(a, 0.1);
    case kUnary: return a.shape().rank() > 0 ? softmax(a) : neg(a);  // no member of a chain
    case kUnary + 1: return sub(a, b);
    case kUnary + 2:
    case kUnary + 3: return mul(a, b);
    case kUnary + 4: return minimum(a, b);
    case kUnary + 5: return div(a, b);
    default: return add(a, b);
  }
}

/// The shapes of what a random graph is given: whole, for each channel in both layouts, for each
/// sample, and a number.
std::vector<Shape> argument_shapes(const Shape& shape) {
  return {shape, shape, {shape[1], 1, 1}, {shape[3]}, {shape[0], 1, 1, 1}, {}};
}

/// Outputs of random instructions: some values, and the last one.
template <class V>
std::vector<V> run_instructions(const std::vector<Instruction>& all,
                                const std::vector<std::size_t>& outputs,
                                std::vector<V> values) {
  for (const Instruction& next : all) {
    values.push_back(apply_instruction(next, values));
  }
  std::vector<V> results;
  for (const std::size_t output : outputs) {
    results.push_back(values[output]);
  }
  return results;
}

template <class T>
void expect_the_same_bits_everywhere(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  // Small ones, and some that take several threads and strips that end within a channel.
  const Shape shape = seed % 4 == 0 ? Shape{3, 5, 61, 47}
                                    : Shape{2 + static_cast<Index>(below(3)),
                                            1 + static_cast<Index>(below(5)),
                                            1 + static_cast<Index>(below(9)),
                                            1 + static_cast<Index>(below(19))};
  const std::vector<Shape> shapes = argument_shapes(shape);
  std::vector<Instruction> all;
  const std::size_t count = 3 + below(40);
  for (std::size_t i = 0; i < count; ++i) {
    // The next one often goes on with what the last one left.
    const std::size_t values = shapes.size() + i;
    const std::size_t a = random() % 2 == 0 ? values - 1 : below(values);
    all.push_back({static_cast<int>(below(kFunctions)), a, below(values)});
  }
  std::vector<std::size_t> outputs{shapes.size() + count - 1};
  for (std::size_t i = 0; i < below(3); ++i) {
    outputs.push_back(shapes.size() + below(count));
  }
  std::vector<Tensor<T>> given;
  Builder<T> builder;
  std::vector<Value<T>> inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    given.push_back(sample_tensor<T>(shapes[i], static_cast<int>(seed + i)));
    inputs.push_back(builder.input(shapes[i], "x" + std::to_string(i)));
  }
  for (const Value<T>& result : run_instructions(all, outputs, inputs)) {
    builder.output(result, "y");
  }
  const std::string what = "seed " + std::to_string(seed);
  const std::vector<Tensor<T>> eager = run_instructions(all, outputs, given);
  const Graph simple = simplify(builder.graph());
  const std::vector<Tensor<T>> plain = run_plainly(simple, given);
  const Graph chained = chain_elementwise(simple);
  verify(chained);
  EXPECT_LE(Plan(chained).arena_bytes(), Plan(simple).arena_bytes()) << what;
  const std::vector<Tensor<T>> strips = run_plainly(chained, given);
  const std::vector<RunArgument> arguments(given.begin(), given.end());
  const int before = threads();
  for (const int n : {1, 2, 3, 7}) {
    set_threads(n);
    for (const auto& tiling : {std::optional<BatchTilingOptions>(),
                               std::optional(BatchTilingOptions{}),
                               std::optional(kSmallestPieces)}) {
      const Program<T> program(builder.graph(), {.batch_tiling = tiling});
      Context<T> context(program);
      const std::vector<Tensor<T>> compiled =
          program.execute_new(ProgramForm::run, context, arguments);
      for (std::size_t i = 0; i < eager.size(); ++i) {
        expect_same_bits(compiled[i], eager[i], what + ", compiled");
      }
    }
  }
  set_threads(before);
  for (std::size_t i = 0; i < eager.size(); ++i) {
    expect_same_bits(plain[i], eager[i], what + ", no chains");
    expect_same_bits(strips[i], eager[i], what + ", chains");
  }
}

TEST(Chain, RandomGraphsHaveTheSameBitsEagerCompiledAndWithoutChains) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    expect_the_same_bits_everywhere<float>(seed);
    expect_the_same_bits_everywhere<double>(seed + 1000);
    if (HasFailure()) {
      break;
    }
  }
}

TEST(Chain, GradientsHaveTheBitsOfATape) {
  const auto loss = [](const auto& x, const auto& w) {
    const auto y = gelu(add(silu(mul(x, w)), mul(x, hard_sigmoid(x))));
    return sum(mul(tanh(y), sub(y, x)));
  };
  const Shape shape{3, 5, 67, 31};
  const auto x = sample_tensor<float>(shape);
  const auto w = sample_tensor<float>({5, 1, 1}, 2);
  Tape<float> tape;
  const auto a = tape.parameter(x);
  const auto b = tape.parameter(w);
  const auto gradients = tape.backward(loss(a, b));
  for (const int n : {1, 2, 3, 7}) {
    set_threads(n);
    const auto program =
        compile<float>(loss, shape, Shape{5, 1, 1}, CompileOptions{.value_and_grad = true});
    EXPECT_GT(count_named(program.plan(ProgramForm::value_and_grad).graph(), "chain"), 0U);
    Context<float> context(program);
    const std::vector<Tensor<float>> results = program.value_and_grad(context, x, w);
    expect_same_bits(results[1], gradients[a].tensor(), "x_bar");
    expect_same_bits(results[2], gradients[b].tensor(), "w_bar");
  }
  set_threads(1);
}

// --- What becomes a chain ------------------------------

TEST(Chain, IsAnOperationMadeOfThoseThatWereThere) {
  Builder<double> builder;
  const auto x = builder.input({2, 3}, "x");
  const auto w = builder.input({3}, "w");
  const auto t = exp(mul(x, w));
  builder.output(add(t, mul(t, x)), "y");
  const Graph graph = chain_elementwise(builder.graph());
  verify(graph);
  EXPECT_EQ(to_string(graph),
            "%0 = input \"x\" : f64 (2, 3)\n"
            "%1 = input \"w\" : f64 (3,)\n"
            "%2 = chain(%0, %1) {t0 = mul(x0, x1); t1 = exp(t0); t2 = mul(t1, x0); add(t1, t2)} : "
            "f64 (2, 3)\n"
            "output \"y\" = %2\n");
}

TEST(Chain, LeavesOneActivationAlone) {
  Builder<float> builder;
  const auto x = builder.input({2, 1, 4, 4}, "x");
  const auto w = builder.parameter({1, 1, 3, 3}, "w");
  builder.output(max_pool(relu(conv(x, w)), {.kernel = 2}), "y");
  EXPECT_EQ(to_string(chain_elementwise(builder.graph())), to_string(builder.graph()));
}

TEST(Chain, EndsWhereSomebodyElseReads) {
  Builder<float> builder;
  const auto x = builder.input({4, 3}, "x");
  const auto t = exp(scale(x, 2));
  builder.output(sum(t), "total");
  builder.output(neg(tanh(t)), "y");
  builder.output(reshape(sigmoid(abs(x)), {12}), "z");
  const Graph graph = chain_elementwise(builder.graph());
  verify(graph);
  EXPECT_EQ(count_named(graph, "chain"), 3U);
  EXPECT_EQ(graph.size(), builder.graph().size() - 3);
}

TEST(Chain, AreNoLongerThanTheirStrips) {
  Builder<double> builder;
  auto y = builder.input({5, 1000}, "x");
  std::vector<Value<double>> values;
  for (int i = 0; i < 50; ++i) {
    values.push_back(scale(y, 1 + i));
  }
  for (const auto& value : values) {
    y = add(y, value);
  }
  builder.output(y, "y");
  const std::vector<Tensor<double>> given{sample_tensor<double>({5, 1000})};
  const Graph graph = chain_elementwise(builder.graph());
  EXPECT_GT(count_named(graph, "chain"), 1U);
  EXPECT_EQ(run_plainly(graph, given), run_plainly(builder.graph(), given));
}

TEST(Chain, ComputesAgainWhatItsInputsGiveAnyway) {
  // x hard_sigmoid(x) and its derivative both read x: nobody keeps hard_sigmoid(x).
  Builder<float> builder;
  const auto x = builder.input({4, 3}, "x");
  const auto y = mul(x, hard_sigmoid(x));
  builder.output(sum(softmax(y)), "loss");
  const std::size_t first[] = {0};
  const NodeId wrt[] = {x.node()};
  const Graph graph = simplify(reverse(builder.graph(), first, wrt, Seed::one));
  EXPECT_EQ(count_named(graph, "hard_sigmoid"), 1U);
  const Graph chained = chain_elementwise(graph);
  verify(chained);
  EXPECT_EQ(count_named(chained, "hard_sigmoid"), 0U);
  EXPECT_EQ(count_named(chained, "chain"), 2U);
  const std::vector<Tensor<float>> given{sample_tensor<float>({4, 3})};
  EXPECT_EQ(run_plainly(chained, given), run_plainly(graph, given));
  EXPECT_LT(Plan(chained).arena_bytes(), Plan(graph).arena_bytes());
}

TEST(Chain, DoesNotMoveWhatWouldKeepMoreMemory) {
  // In between, something else runs: waiting would keep a and b instead of their sum.
  Builder<float> builder;
  const auto x = builder.input({256}, "x");
  const auto a = softmax(x);
  const auto b = softmax(a);
  const auto t = add(a, b);
  const auto u = softmax(mul(x, x));
  builder.output(mul(t, u), "y");
  const Graph graph = chain_elementwise(builder.graph());
  EXPECT_EQ(to_string(graph), to_string(builder.graph()));
}

TEST(Chain, WritesAParameterWhereItLies) {
  Builder<float> builder;
  const auto w = builder.parameter({64}, "w");
  const auto g = builder.input({64}, "g");
  builder.update(w, sub(scale(w, 0.9), scale(g, 0.1)));
  const Program<float> program(builder.graph());
  EXPECT_EQ(count_named(program.plan().graph(), "chain"), 1U);
  EXPECT_EQ(program.peak_bytes(), 0U);
  EXPECT_TRUE(program.plan().copies().empty());
}

// --- Networks ------------------------------

/// A graph with numbers for all that it is given.
struct TracedStep {
  Graph graph;
  std::vector<Tensor<float>> given;
};

/// The gradient of a network by its parameters, and the new values of its buffers.
TracedStep trace_step(nn::Layer<float> model, const Shape& input) {
  nn::initialise(model, Key(1));
  TracedStep step;
  Builder<float> builder;
  const fenestra::Value<float> x(builder.input(input, "x"));
  step.given.push_back(sample_tensor<float>(input));
  std::vector<NodeId> trained;
  for (const nn::Slot<float>& slot : nn::slots<float>(model)) {
    step.given.push_back(slot.value->tensor());
    const Shape shape = slot.value->shape();
    const Value<float> node =
        slot.trained ? builder.parameter(shape, slot.name) : builder.mask(shape, slot.name);
    if (slot.trained) {
      trained.push_back(node.node());
    }
    *slot.value = fenestra::Value<float>(node);
  }
  nn::Pass<float> pass = nn::Pass<float>::training(Key(2));
  pass.set_mask_source([&](const nn::MaskRequest& request) {
    step.given.push_back(nn::draw_mask<float>(Key(3), request));
    return fenestra::Value<float>(builder.mask(request.shape, "mask"));
  });
  const fenestra::Value<float> scores = model(x, pass);
  const fenestra::Value<float> loss = sum(mul(scores, scores));
  builder.output(*loss.as<Value<float>>(), "loss");
  for (const nn::BufferUpdate<float>& update : pass.updates()) {
    builder.output(*update.value.as<Value<float>>(), "buffer");
  }
  const std::size_t first[] = {0};
  step.graph = simplify(reverse(builder.graph(), first, trained, Seed::one));
  return step;
}

/// Chains leave fewer steps, no more memory, and the same bits.
void expect_chains(const TracedStep& step, std::size_t most_steps) {
  const Graph ordered = update_early(read_soon(step.graph));
  const Graph chained = chain_elementwise(ordered);
  verify(chained);
  const Plan plan(chained);
  EXPECT_LE(plan.steps().size(), most_steps);
  EXPECT_LE(plan.arena_bytes(), Plan(ordered).arena_bytes());
  const std::vector<Tensor<float>> needed = run_plainly(ordered, step.given);
  const Program<float> program(step.graph, {.fold = false});
  EXPECT_GT(count_named(program.plan().graph(), "chain"), 0U);
  Context<float> context(program);
  const std::vector<RunArgument> arguments(step.given.begin(), step.given.end());
  const std::vector<Tensor<float>> compiled =
      program.execute_new(ProgramForm::run, context, arguments);
  ASSERT_EQ(compiled.size(), needed.size());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    expect_same_bits(compiled[i], needed[i], "output " + std::to_string(i));
  }
}

TEST(Chain, RunHardSwishesAndTheirDerivativesInOneLoopEach) {
  const TracedStep step =
      trace_step(nn::mobilenet_v3_small<float>({.classes = 5, .width = 0.25}), {2, 3, 32, 32});
  EXPECT_EQ(count_named(step.graph, "hard_sigmoid"), 28U);
  // The 19 of hard swishes are computed where they are read, the 9 of attention are kept.
  EXPECT_EQ(count_named(chain_elementwise(step.graph), "hard_sigmoid"), 9U);
  const std::size_t before = Plan(step.graph).steps().size();
  expect_chains(step, before - before / 4);
}

TEST(Chain, RunTheDerivativeOfGeluInOneLoop) {
  nn::BasicSequential<float> net;
  net.add(nn::convnext_block<float>(8));
  net.add(nn::convnext_block<float>(8));
  const TracedStep step = trace_step(net, {2, 8, 9, 9});
  const Graph chained = chain_elementwise(step.graph);
  EXPECT_EQ(count_named(step.graph, "normal_cdf"), 2U);
  EXPECT_EQ(count_named(chained, "normal_cdf"), 0U);
  expect_chains(step, Plan(step.graph).steps().size() - 2 * 7);
}

}  // namespace
}  // namespace fenestra::graph
