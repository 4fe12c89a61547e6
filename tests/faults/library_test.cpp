// What is larger than one operator: tensors, tapes, transforms, programs, optimisers, files. Where
// state outlives a call that failed, it is what the contract says.
#include <fenestra/engine/compile.hpp>
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/engine/vmap.hpp>
#include <fenestra/fenestra.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/io/idx.hpp>
#include <fenestra/io/image.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/io/npz.hpp>
#include <fenestra/io/regions.hpp>
#include <fenestra/io/safetensors.hpp>
#include <fenestra/nn/optimiser.hpp>
#include <tests/faults/failing_memory.hpp>
#include <tests/faults/survival.hpp>

#include <gtest/gtest.h>

#include <turbojpeg.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fenestra::faults {
namespace {

using T = Tensor<float>;

T sample(const Shape& shape, int seed) {
  T tensor(shape);
  Index i = seed;
  for (float& value : tensor.mutable_values()) {
    value = static_cast<float>((i++ * 37 + 11) % 23 - 11) * 0x1p-4f;
  }
  return tensor;
}

/// A network of a convolution, a pool and a linear layer, with its loss.
struct Network {
  T x = sample({3, 2, 8, 8}, 1);
  T w = sample({4, 2, 3, 3}, 2);
  T u = sample({64, 5}, 3);
  Tensor<Index> labels{Shape{3}, {0, 4, 2}};

  template <class W, class U, class X>
  auto loss(const W& weights, const U& linear, const X& input) const {
    const auto h = max_pool(relu(conv(input, weights, {.padding = 1})), {.kernel = 2});
    return cross_entropy(matmul(reshape(h, {3, 64}), linear), labels);
  }
  auto by_weights() const {
    return [this](const auto& weights, const auto& linear) { return loss(weights, linear, x); };
  }
};

class Library : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_threads(GetParam()); }
  void TearDown() override { set_threads(1); }
  Network net;
};

// --- tensors -----------------------------------------------------------------------------------

TEST(Tensors, AreAsTheyWereWhereACopyFails) {
  for (const Failing failing : {Failing::once, Failing::on}) {
    const T original = sample({5, 7}, 1);
    T copy = original;
    release_memory();
    const std::size_t in_use = memory_in_use();
    {
      // The first try is followed by another one, without what was cached.
      const FailingMemory memory(1, failing);
      if (failing == Failing::on) {
        EXPECT_THROW(copy.mutable_data(), std::bad_alloc);
      } else {
        EXPECT_NO_THROW(copy.mutable_data());
      }
    }
    EXPECT_EQ(memory_in_use(), in_use + (failing == Failing::on ? 0 : 192));
    EXPECT_EQ(copy, original);
    copy.mutable_data()[0] = 9;
    EXPECT_NE(copy, original);
    EXPECT_EQ(original, sample({5, 7}, 1));
  }
}

TEST(Tensors, SayHowMuchMemoryThereIsNot) {
  const std::size_t in_use = memory_in_use();
  const Index most = Index{1} << 44;
  try {
    const T tensor = T::uninitialised({4, most});
    FAIL() << "there is more memory than addresses";
  } catch (const std::bad_alloc& error) {
    EXPECT_STREQ(error.what(), "no memory for a tensor (4, 17592186044416): 281474976710656 bytes");
  }
  EXPECT_EQ(memory_in_use(), in_use);
}

// --- tape and transforms -----------------------------------------------------------------------

TEST_P(Library, AnOperatorThatFailsLeavesItsTapeUsable) {
  Tape<float> tape;
  const auto w = tape.parameter(net.w);
  const auto u = tape.parameter(net.u);
  const Tensors expected{tape.backward(net.loss(w, u, net.x))[w]};
  for (std::int64_t which = 1;; ++which) {
    const Index before = tape.size();
    try {
      const FailingMemory memory(which, Failing::on);
      relu(conv(net.x, w, {.padding = 1}));
      break;
    } catch (const std::bad_alloc&) {
    }
    EXPECT_LE(tape.size(), before + 1);  // the convolution, where relu failed
    ASSERT_TRUE(same_bits({tape.backward(net.loss(w, u, net.x))[w]}, expected))
        << "allocation " << which;
  }
}

TEST_P(Library, ASweepThatKeepsCanBeTriedAgain) {
  Tape<float> tape;
  const auto w = tape.parameter(net.w);
  const auto u = tape.parameter(net.u);
  const auto y = net.loss(w, u, net.x);
  expect_survival("backward, retain", [&] {
    const auto grads = tape.backward(y, {.retain = true});
    return Tensors{grads[w], grads[u]};
  });
}

TEST_P(Library, ASweepThatReleasesHasReleased) {
  for (std::int64_t which = 1;; ++which) {
    Tape<float> tape;
    const auto w = tape.parameter(net.w);
    const auto y = net.loss(w, net.u, net.x);
    try {
      const FailingMemory memory(which, Failing::on);
      tape.backward(y);
      break;
    } catch (const std::bad_alloc&) {
    }
    try {
      tape.backward(y);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::released_graph);
    }
    // The tape itself is as good as before.
    EXPECT_NO_THROW(tape.backward(net.loss(w, net.u, net.x)));
  }
}

TEST_P(Library, TransformsSurvive) {
  const auto f = net.by_weights();
  const auto of_w = [&](const auto& w) { return f(w, net.u); };
  expect_survival("value_and_grad", [&] {
    const auto [value, bars] = value_and_grad(f, net.w, net.u);
    return Tensors{value, std::get<0>(bars), std::get<1>(bars)};
  });
  expect_survival("vjp", [&] {
    const auto [y, pullback] = vjp(of_w, net.w);
    return Tensors{y, pullback(T(Shape{}, 2.0f))};
  });
  expect_survival("jvp", [&] {
    const auto [y, y_dot] = jvp(of_w, primals(net.w), tangents(net.w));
    return Tensors{y, y_dot};
  });
  expect_survival("hvp", [&] { return Tensors{hvp(of_w, primals(net.w), tangents(net.w))}; });
  const auto row = [&](const auto& b) {
    return tanh(matmul(reshape(b, {1, 3}), sample({3, 2}, 7)));
  };
  expect_survival("jacrev", [&] { return Tensors{jacrev(row, sample({3}, 5))}; });
  expect_survival("jacfwd", [&] { return Tensors{jacfwd(row, sample({3}, 5))}; });
  expect_survival("hessian", [&] {
    return Tensors{
        jacfwd([&](const auto& b) { return grad([&](const auto& c) { return sum(row(c)); }, b); },
               sample({3}, 5))};
  });
}

TEST_P(Library, CheckpointsSurvive) {
  expect_survival("checkpoint", [&] {
    Tape<float> tape;
    const auto w = tape.parameter(net.w);
    const std::vector<Value<float>> args{tape.constant(net.x), w};
    const auto y = checkpoint(
        [](std::span<const Value<float>> in) { return relu(conv(in[0], in[1], {.padding = 1})); },
        args);
    return Tensors{y.tensor(), tape.backward(sum(y))[w]};
  });
}

TEST_P(Library, VmapSurvives) {
  const T ws = sample({2, 4, 2, 3, 3}, 9);
  expect_survival("vmap", [&] {
    return Tensors{
        vmap([&](const auto& w) { return relu(conv(net.x, w, {.padding = 1})); }, over(ws))};
  });
  const auto loss = [](const auto& w, const auto& x) {
    const auto y = conv(x, w, {.padding = 1});
    return sum(mul(y, y));
  };
  expect_survival("per_sample_grad",
                  [&] { return Tensors{per_sample_grad(loss, net.w, over(net.x))}; });
}

// --- programs ----------------------------------------------------------------------------------

TEST_P(Library, TracingAndCompilingSurvive) {
  const auto f = [&](const auto& x, const auto& w, const auto& u) { return net.loss(w, u, x); };
  expect_survival("compile and run", [&] {
    const auto program = compile<float>(
        f, net.x.shape(), net.w, net.u, CompileOptions{.jvp = true, .value_and_grad = true});
    Context<float> context(program);
    Tensors results = program.value_and_grad(context, net.x, net.w, net.u);
    results.push_back(program.run(context, net.x, net.w, net.u)[0]);
    return results;
  });
  const auto program = compile<float>(
      f, net.x.shape(), net.w, net.u, CompileOptions{.run = false, .value_and_grad = true});
  expect_survival("compile with a limit", [&] {
    const auto limited = compile<float>(
        f,
        net.x.shape(),
        net.w,
        net.u,
        CompileOptions{
            .run = false, .value_and_grad = true, .memory_limit = program.peak_bytes() - 64});
    Context<float> context(limited);
    return limited.value_and_grad(context, net.x, net.w, net.u);
  });
  expect_survival("explain", [&] {
    std::size_t characters = 0;
    for (const auto format :
         {graph::ExplainFormat::text, graph::ExplainFormat::dot, graph::ExplainFormat::html}) {
      characters += program.explain(ProgramForm::value_and_grad, format).size();
    }
    characters += to_string(program.plan(ProgramForm::value_and_grad).graph()).size();
    return Tensors{T(Shape{}, static_cast<float>(characters))};
  });
}

TEST_P(Library, RunsOfOneProgramInOneContextSurvive) {
  const auto program = compile<float>(
      [&](const auto& x, const auto& w, const auto& u) { return net.loss(w, u, x); },
      net.x.shape(),
      net.w,
      net.u,
      CompileOptions{.value_and_grad = true, .batch_tiling = graph::kSmallestPieces});
  Context<float> context(program);
  expect_survival("run", [&] { return program.run(context, net.x, net.w, net.u); });
  expect_survival("value_and_grad",
                  [&] { return program.value_and_grad(context, net.x, net.w, net.u); });
}

TEST_P(Library, TrainingStepsSurvive) {
  const auto f = [&](const auto& w, const auto& u, const auto& x) { return net.loss(w, u, x); };
  const auto program =
      compile_step<float>(SgdUpdate{.momentum = 0.5}, f, net.w, net.u, net.x.shape());
  Context<float> context(program);
  T w = net.w;
  T u = net.u;
  T w_velocity;
  T u_velocity;
  const T rate(Shape{}, 0.25f);
  const auto start_again = [&] {
    w = net.w;
    u = net.u;
    w_velocity = T(w.shape());
    u_velocity = T(u.shape());
  };
  // A step that fails half-way may have written some parameters and not others.
  expect_survival("a training step", start_again, [&] {
    Tensors results = program.run(context, w, u, net.x, rate, w_velocity, u_velocity);
    results.insert(results.end(), {w, u, w_velocity, u_velocity});
    return results;
  });
}

// --- optimisers --------------------------------------------------------------------------------

template <class Optimiser>
void expect_whole_steps(const Optimiser& fresh, const Network& net) {
  Optimiser reference = fresh;
  std::vector<T> expected{net.w, net.u};
  const std::vector<T> gradients{sample(net.w.shape(), 4), sample(net.u.shape(), 5)};
  reference.step(expected, gradients);
  reference.step(expected, gradients);
  // Both steps fail at each of their allocations before they succeed.
  Optimiser optimiser = fresh;
  std::vector<T> parameters{net.w, net.u};
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t which = 1;; ++which) {
      const std::vector<T> before{T(net.w.shape(), parameters[0].values()),
                                  T(net.u.shape(), parameters[1].values())};
      const std::vector<T> shared = parameters;
      release_memory();
      try {
        const FailingMemory memory(which, Failing::on);
        optimiser.step(parameters, gradients);
        break;
      } catch (const std::bad_alloc&) {
      }
      ASSERT_TRUE(same_bits(parameters, before)) << "step " << step << ", allocation " << which;
    }
  }
  EXPECT_TRUE(same_bits(parameters, expected));
}

TEST_P(Library, OptimisersStepWholeOrNotAtAll) {
  expect_whole_steps(nn::Sgd<float>({.rate = 0.1}), net);
  expect_whole_steps(nn::Sgd<float>({.rate = 0.1, .momentum = 0.9, .nesterov = true}), net);
  expect_whole_steps(nn::Adam<float>({.weight_decay = 0.1}), net);
}

// --- files -------------------------------------------------------------------------------------

/// A format: how tensors are saved in it, and loaded.
struct Format {
  std::string_view name;
  void (*save)(const std::filesystem::path& path, const T& tensor);
  T (*load)(const std::filesystem::path& path);
};

constexpr const char* kName = "a tensor with a name too long for a small string";

T named(const io::TensorMap& map) { return std::get<T>(map.find(kName)->second); }

/// Row by row.
template <io::RegionFormat format>
void save_by_parts(const std::filesystem::path& path, const T& tensor) {
  io::RegionWriter writer(path, format, tensor.shape());
  Box row(tensor.shape());
  for (Index i = 0; i < tensor.shape()[1]; ++i) {
    row.set(1, {i, i + 1});
    writer.write(row, tensor.data() + i * tensor.shape()[2]);
  }
  writer.commit();
}
T load_by_parts(const std::filesystem::path& path) {
  const io::RegionReader reader(path);
  T tensor(reader.shape());
  Box row(reader.shape());
  for (Index i = 0; i < tensor.shape()[1]; ++i) {
    row.set(1, {i, i + 1});
    reader.read(row, tensor.mutable_data() + i * tensor.shape()[2]);
  }
  return tensor;
}

constexpr Format kFormats[] = {
    {"npy",
     [](const std::filesystem::path& path, const T& tensor) { io::save_npy(path, tensor); },
     [](const std::filesystem::path& path) { return io::load_npy<float>(path); }},
    {"npz",
     [](const std::filesystem::path& path, const T& tensor) {
       io::save_npz(path, {{kName, tensor}}, {.deflate = true});
     },
     [](const std::filesystem::path& path) { return named(io::load_npz(path)); }},
    {"safetensors",
     [](const std::filesystem::path& path, const T& tensor) {
       io::save_safetensors(path, {{kName, tensor}}, {{"by", "somebody with a long enough name"}});
     },
     [](const std::filesystem::path& path) { return named(io::load_safetensors(path).tensors); }},
    {"png",
     [](const std::filesystem::path& path, const T& tensor) {
       io::save_png(path, io::to_image(tensor));
     },
     [](const std::filesystem::path& path) { return io::to_tensor(io::load_image(path)); }},
    {"parts_of_npy", &save_by_parts<io::RegionFormat::npy>, &load_by_parts},
    {"parts_of_pgm", &save_by_parts<io::RegionFormat::pgm>, &load_by_parts},
};

class Files : public testing::TestWithParam<Format> {
 protected:
  Files() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fenestra_XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~Files() override { std::filesystem::remove_all(folder); }
  std::ptrdiff_t count() const {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  }
  std::filesystem::path folder;
};

TEST_P(Files, AreWholeWhereSavingOrLoadingFails) {
  const Format& format = GetParam();
  const std::filesystem::path path =
      folder / ("a_file_with_a_long_name." + std::string(format.name));
  const T before(Shape{1, 3, 4}, 0.0f);
  const T after(Shape{1, 5, 6}, 1.0f);
  format.save(path, before);
  expect_survival("load", [&] { return Tensors{format.load(path)}; });
  expect_survival("save", [&] {
    format.save(path, before);
    return Tensors{};
  });
  for (std::int64_t which = 1;; ++which) {
    try {
      const FailingMemory memory(which, Failing::on);
      format.save(path, after);
      break;
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    }
    ASSERT_EQ(count(), 1) << "allocation " << which;
    ASSERT_EQ(format.load(path), before) << "allocation " << which;
  }
  EXPECT_EQ(format.load(path), after);
  EXPECT_EQ(count(), 1);
}

INSTANTIATE_TEST_SUITE_P(Of, Files, testing::ValuesIn(kFormats), [](const auto& one) {
  return std::string(one.param.name);
});

TEST(IdxFiles, SurviveBeingRead) {
  static constexpr unsigned char kFile[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 9, 8, 7, 6, 5, 4};
  expect_survival("decode_idx", [] {
    return Tensors{io::decode_idx<float>(std::as_bytes(std::span(kFile)), "in memory")};
  });
}

TEST(JpegFiles, SurviveBeingRead) {
  const io::Image picture = io::to_image(sample({3, 20, 30}, 1));
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const tjhandle encoder = tjInitCompress();
  ASSERT_EQ(
      tjCompress2(
          encoder, picture.bytes.data(), 30, 0, 20, TJPF_RGB, &bytes, &size, TJSAMP_420, 90, 0),
      0);
  const std::string file(reinterpret_cast<const char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(encoder);
  expect_survival("decode_image", [&] {
    return Tensors{io::to_tensor(io::decode_image(std::as_bytes(std::span(file)), "in memory"))};
  });
}

// --- threads -----------------------------------------------------------------------------------

TEST(Threads, WhatFailsInAWorkerIsThrownWhereItWasCalled) {
  set_threads(3);
  for (std::int64_t which = 1; which <= 64; ++which) {
    std::vector<int> done(64);
    const FailingMemory memory(which, Failing::once);
    EXPECT_THROW(parallel_for(64,
                              1,
                              [&](Index begin, Index) {
                                const std::vector<char> scratch(1000);
                                done[static_cast<std::size_t>(begin)] = scratch[0] + 1;
                              }),
                 std::bad_alloc);
  }
  set_threads(1);
}

INSTANTIATE_TEST_SUITE_P(On, Library, testing::Values(1, 3), [](const auto& one) {
  return std::to_string(one.param) + (one.param == 1 ? "Thread" : "Threads");
});

}  // namespace
}  // namespace fenestra::faults
