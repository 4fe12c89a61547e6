// Programs whose weights are constants, packed when they are compiled: the bits of eager calls and
// of programs that are given the same weights, on the layers of networks.
#include <fenestra/base/parallel.hpp>
#include <fenestra/check/soak.hpp>
#include <fenestra/engine/compile.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/all.hpp>
#include <fenestra/ops/conv/op.hpp>
#include <fenestra/ops/conv_transpose/op.hpp>
#include <fenestra/spec/random.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace fenestra::check {
namespace {

using graph::kSmallestPieces;

template <class T>
Tensor<T> drawn(const Shape& shape, Random& random) {
  Tensor<T> tensor(shape);
  for (T& value : tensor.mutable_values()) {
    value = static_cast<T>(random.real());
  }
  return tensor;
}

/// The program of f, which takes a list of values; all but the first are constants, or given.
template <class T, class F>
Program<T> program_of(const F& f,
                      const std::vector<Tensor<T>>& in,
                      bool held,
                      const CompileOptions& options) {
  graph::Builder<T> builder;
  std::vector<graph::Value<T>> values{builder.input(in[0].shape(), "x")};
  for (std::size_t i = 1; i < in.size(); ++i) {
    values.push_back(held ? graph::Value<T>(in[i])
                          : builder.parameter(in[i].shape(), "w" + std::to_string(i)));
  }
  builder.output(f(values), "y");
  return Program<T>(builder.graph(), options);
}

template <class T>
Tensor<T> result_of(const Program<T>& program, Context<T>& context, std::span<const Tensor<T>> in) {
  std::vector<RunArgument> arguments;
  for (const Tensor<T>& tensor : in) {
    arguments.emplace_back(tensor);
  }
  return program.execute_new(ProgramForm::run, context, arguments)[0];
}

std::size_t packed_bytes(const graph::Plan& plan) {
  std::size_t bytes = 0;
  for (const graph::Step& step : plan.steps()) {
    bytes += step.packed_bytes();
  }
  return bytes;
}

/// f eager, with its weights constants of the program, and given to it; notes kernels that packed.
template <class T, class F>
void expect_same_bits(const F& f,
                      const std::vector<Tensor<T>>& in,
                      const CompileOptions& options,
                      std::set<std::string>& packing) {
  const Tensor<T> eager = f(std::vector<Tensor<T>>(in));
  const Program<T> held = program_of(f, in, true, options);
  const Program<T> given = program_of(f, in, false, options);
  Context<T> of_held(held);
  Context<T> of_given(given);
  const std::span<const Tensor<T>> all(in);
  EXPECT_TRUE(eager == result_of(held, of_held, all.first(1)));
  EXPECT_TRUE(eager == result_of(given, of_given, all));
  EXPECT_TRUE(eager == result_of(held, of_held, all.first(1))) << "a second time";
  std::size_t constants = packed_bytes(held.plan());
  for (const Tensor<T>& tensor : all.subspan(1)) {
    constants += static_cast<std::size_t>(tensor.size()) * sizeof(T);
  }
  EXPECT_EQ(held.plan().constant_bytes(), constants);
  EXPECT_EQ(packed_bytes(given.plan()), 0u);
  for (const graph::Step& step : held.plan().steps()) {
    if (step.packed_bytes() > 0) {
      packing.insert(std::string(step.kernel->name()));
    }
  }
}

template <class Op, class T>
void expect_same_bits_of(const NetworkLayer& layer, std::set<std::string>& packing) {
  for (const Layout layout : {Layout::channels_first, Layout::channels_last}) {
    const auto g = Op::with_layout(Op::parse(layer.problem), layout);
    SCOPED_TRACE(layer.op + " " + to_string(g));
    Random random(71);
    std::vector<Tensor<T>> in;
    for (const auto& info : Op::inputs(g)) {
      in.push_back(drawn<T>(info.shape, random));
    }
    const auto f = [&](const auto& values) { return Op::call(g, values, {}); };
    for (const int count : {1, 3}) {
      set_threads(count);
      const Numerics numerics = count == 1 ? Numerics::strict : Numerics::fast;
      const kernels::ScopedNumerics scope(numerics);
      expect_same_bits<T>(f, in, {}, packing);
    }
  }
}

class PackedConstants : public testing::Test {
 protected:
  ~PackedConstants() override { set_threads(before_); }

 private:
  int before_ = threads();
};

TEST_F(PackedConstants, GiveTheBitsOfEagerCallsOnLayersOfNetworks) {
  std::set<std::string> packing;
  for (const NetworkLayer& layer : network_layers()) {
    if (layer.op == "conv") {
      expect_same_bits_of<Conv, float>(layer, packing);
      expect_same_bits_of<Conv, double>(layer, packing);
    } else if (layer.op == "conv_transpose") {
      expect_same_bits_of<ConvTranspose, float>(layer, packing);
      expect_same_bits_of<ConvTranspose, double>(layer, packing);
    }
  }
  EXPECT_EQ(packing,
            (std::set<std::string>{"conv_f32_dense",
                                   "conv_f32_depthwise",
                                   "conv_f32_direct",
                                   "conv_f32_gemm",
                                   "conv_f32_winograd",
                                   "conv_f64_dense",
                                   "conv_f64_depthwise",
                                   "conv_f64_direct",
                                   "conv_f64_gemm",
                                   "conv_f64_winograd"}));
}

/// Two convolutions, so that they run in pieces together; the last piece is a smaller one.
template <class T>
void expect_same_bits_in_pieces(Layout layout, std::set<std::string>& packing) {
  Random random(72);
  const bool first = layout == Layout::channels_first;
  const ConvOptions padded{.padding = 1, .layout = layout};
  const std::vector<Tensor<T>> in{
      drawn<T>(first ? Shape{7, 9, 4, 4} : Shape{7, 4, 4, 9}, random),
      drawn<T>(first ? Shape{20, 9, 3, 3} : Shape{3, 3, 9, 20}, random),
      drawn<T>(first ? Shape{6, 20, 3, 3} : Shape{3, 3, 20, 6}, random)};
  const auto f = [&](const auto& values) {
    return conv(conv(values[0], values[1], padded), values[2], padded);
  };
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    for (const std::size_t cache : {std::size_t{1}, std::size_t{12 << 10}}) {
      graph::BatchTilingOptions pieces = kSmallestPieces;
      pieces.cache_bytes = cache;
      const CompileOptions options{.batch_tiling = pieces};
      expect_same_bits<T>(f, in, options, packing);
      EXPECT_EQ(program_of(f, in, true, options).plan().loops().size(), 1u);
    }
  }
}

TEST_F(PackedConstants, GiveTheBitsOfEagerCallsInPieces) {
  std::set<std::string> packing;
  for (const Layout layout : {Layout::channels_first, Layout::channels_last}) {
    expect_same_bits_in_pieces<float>(layout, packing);
    expect_same_bits_in_pieces<double>(layout, packing);
  }
  EXPECT_FALSE(packing.empty());
}

TEST_F(PackedConstants, GiveTheBitsOfEagerCallsInProducts) {
  Random random(73);
  std::set<std::string> packing;
  for (const Index rows : {1, 5, 40}) {
    for (const bool transposed : {false, true}) {
      const std::vector<Tensor<float>> in{
          drawn<float>({rows, 333}, random),
          drawn<float>(transposed ? Shape{70, 333} : Shape{333, 70}, random)};
      const auto f = [&](const auto& values) {
        return matmul(values[0], values[1], {.transpose_b = transposed});
      };
      for (const int count : {1, 3}) {
        set_threads(count);
        expect_same_bits<float>(f, in, {}, packing);
        EXPECT_GT(packed_bytes(program_of(f, in, true, {}).plan()), 0u);
      }
    }
  }
}

TEST_F(PackedConstants, ArePassedOverWhereAnotherInstructionSetIsInUse) {
  Random random(74);
  const std::vector<Tensor<float>> in{drawn<float>({2, 9, 9, 33}, random),
                                      drawn<float>({3, 3, 33, 50}, random)};
  const auto f = [](const auto& values) {
    return conv(values[0], values[1], {.padding = 1, .layout = Layout::channels_last});
  };
  const Program<float> program = program_of(f, in, true, {});
  EXPECT_GT(packed_bytes(program.plan()), 0u);
  Context<float> context(program);
  for (const std::string_view name : kernels::supported_isas()) {
    const kernels::ScopedIsa isa(name);
    const Tensor<float> eager = f(in);
    EXPECT_TRUE(eager == result_of(program, context, std::span<const Tensor<float>>(in).first(1)))
        << name;
  }
}

}  // namespace
}  // namespace fenestra::check
