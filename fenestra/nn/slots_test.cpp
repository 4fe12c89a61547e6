// Slots: names, order, copies, and models as trees.
#include <fenestra/fenestra.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/nn/slots.hpp>

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace fenestra::nn {
namespace {

using Strings = std::vector<std::string>;

template <class T, class Model>
Strings names_of(Model& model) {
  Strings names;
  for (const Slot<T>& slot : slots<T>(model)) {
    names.push_back(slot.name + (slot.trained ? "" : " (buffer)"));
  }
  return names;
}

Parameter<float> parameter(float value) { return {Tensor<float>(Shape{1}, value)}; }

struct Settings {
  int stride = 1;
  std::string text;
  std::vector<Index> extents;
};

struct Block {
  Parameter<float> weight = parameter(2);
  Settings settings;
  Buffer<float> mean{Tensor<float>(Shape{1})};
};

class Closed {
 public:
  using Scalar = float;
  explicit Closed(float w) : inner_(parameter(w)) {}
  template <class F>
  void slots(F&& f) {
    f("inner", inner_);
    f("block", block_);
  }
  const Value<float>& value() const { return inner_.value; }

 private:
  Parameter<float> inner_;
  Block block_;
};

struct Listed {
  Parameter<float> kernel = parameter(1);
  Parameter<float> shift = parameter(0);
  static constexpr auto fields = std::tuple{&Listed::kernel, &Listed::shift};
};

struct Everything {
  Parameter<float> stem = parameter(1);
  double factor = 2;
  std::vector<Block> stages = std::vector<Block>(2);
  std::array<Parameter<float>, 2> pair = {parameter(1), parameter(2)};
  std::map<std::string, Block> heads = {{"left", {}}, {"right", {}}};
  std::map<int, Parameter<float>> numbered = {{7, parameter(7)}};
  std::optional<Parameter<float>> absent;
  std::optional<Block> present = Block{};
  std::shared_ptr<Block> shared = std::make_shared<Block>();
  std::tuple<Parameter<float>, int> both = {parameter(3), 4};
  Closed closed = Closed(5);
  Listed listed;
};

TEST(Slots, HaveDottedNamesInTheOrderOfDeclaration) {
  Everything model;
  EXPECT_EQ(names_of<float>(model),
            (Strings{"stem",
                     "stages.0.weight",
                     "stages.0.mean (buffer)",
                     "stages.1.weight",
                     "stages.1.mean (buffer)",
                     "pair.0",
                     "pair.1",
                     "heads.left.weight",
                     "heads.left.mean (buffer)",
                     "heads.right.weight",
                     "heads.right.mean (buffer)",
                     "numbered.7",
                     "present.weight",
                     "present.mean (buffer)",
                     "shared.weight",
                     "shared.mean (buffer)",
                     "both.0",
                     "closed.inner",
                     "closed.block.weight",
                     "closed.block.mean (buffer)",
                     "listed.kernel",
                     "listed.shift"}));
  EXPECT_EQ(parameter_count(model), 15);
}

TEST(Slots, OwnedByAUniquePointerAreFound) {
  struct Net {
    std::unique_ptr<Block> block = std::make_unique<Block>();
    std::unique_ptr<Block> none;
  } net;
  EXPECT_EQ(names_of<float>(net), (Strings{"block.weight", "block.mean (buffer)"}));
}

TEST(Slots, PointIntoTheModel) {
  Block block;
  *slots<float>(block)[0].value = Tensor<float>(Shape{1}, 9.0f);
  EXPECT_EQ(block.weight.value[0], 9);
}

TEST(Slots, OfAConstModelAreConst) {
  const Everything model;
  std::size_t count = 0;
  for_each_slot(model, [&]<class S>(const std::string&, S&) {
    static_assert(std::is_const_v<S>);
    ++count;
  });
  EXPECT_EQ(count, 22U);
}

TEST(Slots, BuffersOfCopiesWithinAModelAreToldApart) {
  std::vector<Block> blocks(3, Block{});
  ASSERT_EQ(blocks[0].mean.id, blocks[1].mean.id);
  const auto all = slots<float>(blocks);
  EXPECT_NE(all[1].buffer, all[3].buffer);
  EXPECT_NE(all[1].buffer, all[5].buffer);
  EXPECT_NE(all[3].buffer, all[5].buffer);
}

TEST(Models, AreTreesOfTheirParameters) {
  Block block;
  block.mean.value = Tensor<float>(Shape{1}, 4.0f);
  const auto loss = [](const Block& b, const Closed& c) {
    return sum(b.weight.value * b.mean.value * c.value());
  };
  const Closed closed(3);
  const auto [value, gradients] = value_and_grad(loss, block, closed);
  EXPECT_EQ(value[0], 2 * 4 * 3);
  EXPECT_EQ(std::get<0>(gradients).weight.value[0], 12);
  EXPECT_EQ(std::get<1>(gradients).value()[0], 8);
  // Carried along, not differentiated.
  EXPECT_EQ(std::get<0>(gradients).mean.value[0], 4);
  EXPECT_EQ(std::get<0>(gradients).mean.id, block.mean.id);
}

struct Classifier {
  Conv conv{1, 2, {.kernel = 3}};
  BatchNorm norm{2};
  Layer<float> act = Relu();
  std::vector<Linear> heads = {Linear(32, 4), Linear(4, 3)};

  Value<float> operator()(const Value<float>& x, Pass<float>& pass) const {
    const Value<float> h = act(norm(conv(x, pass), pass), pass);
    return heads[1](heads[0](reshape(h, Shape{x.shape()[0], 32}), pass), pass);
  }
};

TEST(Models, OfLayersGiveModelsOfGradients) {
  Classifier net;
  initialise(net, Key(1));
  EXPECT_EQ(names_of<float>(net),
            (Strings{"conv.weight",
                     "conv.bias",
                     "norm.weight",
                     "norm.bias",
                     "norm.running_mean (buffer)",
                     "norm.running_var (buffer)",
                     "heads.0.weight",
                     "heads.0.bias",
                     "heads.1.weight",
                     "heads.1.bias"}));
  KeyDraws draws(Key(2));
  const Tensor<float> x = uniform<float>({2, 1, 6, 6}, draws, 1);
  const Tensor<Index> labels(Shape{2}, {0, 2});
  auto pass = Pass<float>::training(Key(3));
  const auto [loss, gradients] = value_and_grad(
      [&](const Classifier& model) { return cross_entropy(model(x, pass), labels); }, net);
  static_assert(std::is_same_v<std::remove_const_t<decltype(gradients)>, Classifier>);
  EXPECT_GT(loss[0], 0);
  EXPECT_EQ(gradients.conv.weight.value.shape(), (Shape{2, 1, 3, 3}));
  float largest = 0;
  for (const float g : gradients.conv.weight.value.tensor().values()) {
    largest = std::max(largest, std::abs(g));
  }
  EXPECT_GT(largest, 0);

  // The pass was given to a copy; its updates find their way to the model.
  EXPECT_EQ(net.norm.running_mean.value[0], 0);
  apply_updates(net, pass);
  EXPECT_NE(net.norm.running_mean.value[0], 0);
  Block other;
  EXPECT_THROW(apply_updates(other, pass), Error);
}

TEST(Models, CopiesAreIndependent) {
  Sequential a{Conv(1, 1), Sequential{Linear(2, 2)}};
  initialise(a, Key(4));
  Sequential b = a;
  *slots<float>(b)[0].value = Tensor<float>(Shape{1, 1, 1, 1}, 7.0f);
  *slots<float>(b)[2].value = Tensor<float>(Shape{2, 2}, 7.0f);
  EXPECT_NE((*slots<float>(a)[0].value)[0], 7);
  EXPECT_NE((*slots<float>(a)[2].value)[0], 7);
}

TEST(InitialiseModel, DrawsByNameAndSeed) {
  Sequential a{Conv(3, 8, {.kernel = 3}), Conv(3, 8, {.kernel = 3})};
  Sequential b = a;
  initialise(a, Key(1));
  initialise(b, Key(1));
  const auto first = slots<float>(a);
  const auto second = slots<float>(b);
  EXPECT_EQ(first[0].value->tensor(), second[0].value->tensor());
  EXPECT_NE(first[0].value->tensor(), first[2].value->tensor());  // another name
  // Kaiming: uniform on +-sqrt(6/27), and the draws are those of the name's key.
  const Key key = Key(1).fold("0.weight");
  const double bound = std::sqrt(6.0 / 27);
  for (Index i = 0; i < 216; ++i) {
    EXPECT_EQ((*first[0].value)[i],
              static_cast<float>(bound * (2 * key.uniform(static_cast<std::uint64_t>(i)) - 1)));
  }
  initialise(b, Key(2));
  EXPECT_NE(first[0].value->tensor(), second[0].value->tensor());
}

TEST(Pass, ChainsUpdatesOfABuffer) {
  Buffer<float> buffer{Tensor<float>(Shape{1}, 1.0f)};
  auto pass = Pass<float>::training(Key(1));
  EXPECT_EQ(pass.current(buffer)[0], 1);
  pass.update(buffer, Tensor<float>(Shape{1}, 2.0f));
  EXPECT_EQ(pass.current(buffer)[0], 2);
  pass.update(buffer, Tensor<float>(Shape{1}, 3.0f));
  ASSERT_EQ(pass.updates().size(), 1U);
  EXPECT_EQ(pass.updates()[0].value[0], 3);
  EXPECT_EQ(buffer.value[0], 1);
}

TEST(Pass, RefusesMasksInInferenceAndTakesThemFromASource) {
  auto inference = Pass<float>::inference();
  try {
    inference.keep_mask({2}, 0.5);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::wrong_context) << error.what();
  }
  auto pass = Pass<float>::training(Key(1));
  std::vector<MaskRequest> requests;
  pass.set_mask_source([&](const MaskRequest& request) {
    requests.push_back(request);
    return Value<float>(draw_mask<float>(Key(1), request));
  });
  auto plain = Pass<float>::training(Key(1));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pass.keep_mask({3, 4}, 0.5).tensor(), plain.keep_mask({3, 4}, 0.5).tensor());
  }
  EXPECT_EQ(requests, (std::vector<MaskRequest>{{0, {3, 4}, 0.5}, {1, {3, 4}, 0.5}}));
}

TEST(Pass, NamesLayersByScope) {
  Sequential net;
  net.add("first", Relu());
  net.add("second", Residual(Sequential{Relu(), Tanh()}, {.after = Sigmoid()}));
  auto pass = Pass<float>::inference();
  Strings seen;
  pass.set_observer([&](const LayerCall<float>& call) {
    seen.push_back(call.name + " " + std::string(call.kind));
  });
  net(Tensor<float>(Shape{1, 2}), pass);
  EXPECT_EQ(seen,
            (Strings{"first relu",
                     "second.body.0 relu",
                     "second.body.1 tanh",
                     "second.body sequential",
                     "second.after sigmoid",
                     "second residual",
                     " sequential"}));
}

}  // namespace
}  // namespace fenestra::nn
