// Graphs of many nodes: the time to compile them grows as they do, memory is packed as if one by
// one, and nothing descends as deep as a graph is long.
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/graph/packing.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/testing_test.hpp>
#include <fenestra/nn/compile_step.hpp>

#include <gtest/gtest.h>

#include <pthread.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace fenestra::graph {
namespace {

using V = Value<float>;

// --- the time to compile -----------------------------------------------------------------------

/// What a chain of elementwise operations, all of one group, asks.
Graph chain(int nodes) {
  Builder<float> builder;
  V x = builder.input({4, 8}, "x");
  for (int i = 0; i < nodes; ++i) {
    x = i % 2 == 1 ? relu(x) : scale(x, 1.0 + i);
  }
  builder.output(sum(x), "y");
  return builder.graph();
}

/// Convolutions with their parameters, around each of which the input goes by.
Graph residuals(int nodes) {
  Builder<float> builder;
  V x = builder.input({2, 2, 4, 4}, "x");
  for (int i = 0; i < nodes / 4; ++i) {
    const V w = builder.parameter({2, 2, 3, 3}, "w" + std::to_string(i));
    x = add(x, relu(conv(x, w, {.padding = 1})));
  }
  builder.output(sum(x), "y");
  return builder.graph();
}

/// One value that everybody reads, under other shapes too, and one that collects them all.
Graph fan(int nodes) {
  Builder<float> builder;
  const V x = tanh(builder.input({4, 8}, "x"));
  std::vector<V> parts;
  for (int i = 0; i < nodes / 4; ++i) {
    const V part = scale(reshape(x, i % 2 == 1 ? Shape{8, 4} : Shape{2, 16}), 1.0 + i);
    parts.push_back(tanh(reshape(part, {32})));
  }
  V y = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    y = add(y, parts[i]);
  }
  builder.output(sum(y), "y");
  return builder.graph();
}

/// A step of gradient descent with momentum: every parameter has an update and a velocity.
Graph step_of(const Graph& loss) {
  const std::vector<NodeId> wrt = differentiable(loss);
  const std::size_t first[] = {0};
  Graph graph = reverse(loss, first, wrt, Seed::one);
  std::vector<NodeId> bars;
  for (std::size_t i = 1; i < graph.outputs().size(); ++i) {
    bars.push_back(graph.outputs()[i].node);
  }
  graph.clear_outputs();
  graph.add_output(loss.outputs()[0].node, "y");
  Builder<float> builder(std::move(graph));
  const V rate = builder.input({}, "rate");
  const SgdUpdate update{.momentum = 0.9};
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (loss.node(wrt[i]).kind == NodeKind::parameter) {
      const V w = builder.value(wrt[i]);
      builder.update(w, update(builder, rate, w, builder.value(bars[i])));
    }
  }
  return builder.graph();
}

/// Processor time of compiling: other work on the machine does not count.
double seconds_to_compile(const Graph& graph) {
  const std::clock_t start = std::clock();
  const Program<float> program(graph);
  const std::clock_t end = std::clock();
  EXPECT_GT(program.plan().steps().size(), 0u);
  return static_cast<double>(end - start) / CLOCKS_PER_SEC;
}

/// Seconds for 8,000 nodes: a promise to callers, not to those who check every access.
#if defined(FENESTRA_SANITIZED) || !defined(NDEBUG)
constexpr double kMostSeconds = std::numeric_limits<double>::infinity();
#else
constexpr double kMostSeconds = 0.5;
#endif

// Four times the nodes take four times as long, and a little more where caches end; where each node
// looks at every other one it is 16 times. The least of a few tries counts.
void expect_proportional(const std::function<Graph(int)>& make) {
  constexpr double kMost = 8;
  constexpr int kTries = 4;
  const Graph few = make(2000);
  const Graph many = make(8000);
  EXPECT_NEAR(static_cast<double>(many.size()) / static_cast<double>(few.size()), 4, 0.1);
  double of_few = seconds_to_compile(few);
  double of_many = seconds_to_compile(many);
  const double most = kMostSeconds * static_cast<double>(many.size()) / 8000;
  for (int i = 1; i < kTries && (of_many > kMost * of_few || of_many > most); ++i) {
    of_few = std::min(of_few, seconds_to_compile(few));
    of_many = std::min(of_many, seconds_to_compile(many));
  }
  EXPECT_LE(of_many, kMost * of_few);
  EXPECT_LE(of_many, most) << many.size() << " nodes";
}

Graph gradient_of(const Graph& graph) {
  const std::size_t first[] = {0};
  return reverse(graph, first, differentiable(graph), Seed::one);
}

TEST(Scale, CompilingAChainTakesTimeAsItsLength) {
  expect_proportional(chain);
  expect_proportional([](int nodes) { return gradient_of(chain(nodes)); });
}
TEST(Scale, CompilingResidualsTakesTimeAsTheirNumber) {
  expect_proportional(residuals);
  expect_proportional([](int nodes) { return gradient_of(residuals(nodes)); });
}
TEST(Scale, CompilingManyUpdatesTakesTimeAsTheirNumber) {
  expect_proportional([](int nodes) { return step_of(residuals(nodes)); });
}
TEST(Scale, CompilingWideGraphsTakesTimeAsTheirWidth) {
  expect_proportional(fan);
  expect_proportional([](int nodes) { return gradient_of(fan(nodes)); });
}

// --- packing -----------------------------------------------------------------------------------

/// The definition: the largest first, each at the lowest offset that all who live with it leave.
std::size_t pack_one_by_one(std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return buffers[a].bytes > buffers[b].bytes;
  });
  std::size_t total = 0;
  std::vector<const Buffer*> placed;
  for (const std::size_t at : order) {
    Buffer& buffer = buffers[at];
    std::sort(placed.begin(), placed.end(), [](const Buffer* a, const Buffer* b) {
      return a->offset < b->offset;
    });
    buffer.offset = 0;
    for (const Buffer* other : placed) {
      const bool overlap = other->first <= buffer.last && buffer.first <= other->last;
      if (overlap && other->offset < buffer.offset + buffer.bytes) {
        buffer.offset = std::max(buffer.offset, other->offset + other->bytes);
      }
    }
    total = std::max(total, buffer.offset + buffer.bytes);
    placed.push_back(&buffer);
  }
  return total;
}

TEST(Packing, GivesEveryBufferTheLowestPlaceThatItsTimeLeaves) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    const int times = draw(1, 60);
    const int sizes = draw(1, 12);
    std::vector<Buffer> buffers(static_cast<std::size_t>(draw(0, 80)));
    for (Buffer& buffer : buffers) {
      buffer.bytes = static_cast<std::size_t>(64 * draw(0, sizes));
      buffer.first = 1000 + draw(0, times);
      buffer.last = std::min<NodeId>(1000 + times, buffer.first + draw(0, draw(0, times)));
    }
    std::vector<Buffer> expected = buffers;
    const std::size_t bytes = pack_one_by_one(expected);
    EXPECT_EQ(pack(buffers), bytes) << "seed " << seed;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(buffers[i].offset, expected[i].offset) << "seed " << seed << ", buffer " << i;
    }
  }
}

// --- depth -------------------------------------------------------------------------------------

/// Runs `body` on a stack that a descent through 10,000 nodes, 32 bytes each, would overflow.
void on_a_small_stack(const std::function<void()>& body) {
  constexpr std::size_t kBytes = 256 << 10;
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kBytes), 0);
  pthread_t thread;
  const int failed = pthread_create(
      &thread,
      &attributes,
      [](void* given) -> void* {
        (*static_cast<const std::function<void()>*>(given))();
        return nullptr;
      },
      const_cast<void*>(static_cast<const void*>(&body)));
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(failed, 0);
  pthread_join(thread, nullptr);
}

constexpr int kDeep = 10000;

template <class W>
W deep_chain(W x) {
  for (int i = 0; i < kDeep; ++i) {
    x = i % 3 == 2   ? reshape(x, i % 2 == 1 ? Shape{2, 2} : Shape{4})
        : i % 2 == 1 ? tanh(x)
                     : scale(x, 1.0001);
  }
  return sum(x);
}

TEST(Scale, LongChainsCompileDifferentiatePrintAndEnd) {
  on_a_small_stack([] {
    Builder<float> builder;
    builder.output(deep_chain(builder.input({4}, "x")), "y");
    EXPECT_GT(to_string(builder.graph()).size(), std::size_t{kDeep});
    const Program<float> program(builder.graph(), {.jvp = true, .value_and_grad = true});
    Context<float> context(program);
    const auto x = sample_tensor<float>({4});
    const std::vector<Tensor<float>> compiled = program.value_and_grad(context, x);
    EXPECT_GT(program.explain(ProgramForm::value_and_grad).size(), std::size_t{kDeep});
    // A tape sweeps as far back.
    Tape<float> tape;
    const auto w = tape.parameter(x);
    EXPECT_EQ(tape.backward(deep_chain(w))[w], compiled[1]);
  });
}

TEST(Scale, LongChainsAreComputedAgain) {
  on_a_small_stack([] {
    // All of the chain leads to one value, which waits while something larger is computed.
    Builder<float> builder;
    V waiting = builder.input({4096}, "x");
    for (int i = 0; i < kDeep; ++i) {
      waiting = softmax(waiting);  // not elementwise: each is an operation of its own
    }
    const V larger = tanh(broadcast_to(sum(waiting), {3, 4096}));
    builder.output(sum(mul(waiting, sum(larger))), "y");
    const std::size_t bytes = Program<float>(builder.graph()).peak_bytes();
    const Program<float> limited(builder.graph(), {.memory_limit = bytes - 8192});
    EXPECT_LT(limited.peak_bytes(), bytes);
    EXPECT_GT(count_named(limited.plan().graph(), "softmax"), std::size_t{kDeep});
  });
}

}  // namespace
}  // namespace fenestra::graph
