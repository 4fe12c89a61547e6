// Models as files: there and back, into models that exist, and files that do not fit.
#include <fenestra/io/files_test.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>

#include <gtest/gtest.h>

#include <string>

namespace fenestra::nn {
namespace {

class ModelFiles : public io::Files {};

ModelInfo some_info() {
  return {.name = "tiny \"net\"",
          .classes = {"null", "eins", "zw\u00f6i"},
          .preprocessing = {.size = {28, 28}, .mean = {0.1307, 1.0 / 3}, .scale = {3.25, 1}},
          .more = {{"author", "nobody"}, {"fenestra.cursor", "7"}}};
}

Layer<float> some_model() {
  Layer<float> model = make_model<float>("small_resnet", {.channels = 1, .width = 0.5});
  initialise(model, Key(11));
  int i = 0;
  for (const Slot<float>& slot : slots<float>(model)) {
    if (!slot.trained) {
      *slot.value = Tensor<float>(slot.value->shape(), 0.5f + static_cast<float>(++i) / 16);
    }
  }
  return model;
}

template <class Model>
void expect_equal_numbers(Model& a, Model& b) {
  const auto first = slots<float>(a);
  const auto second = slots<float>(b);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].name, second[i].name);
    EXPECT_EQ(first[i].value->tensor(), second[i].value->tensor()) << first[i].name;
  }
}

TEST_F(ModelFiles, AreBuiltAgainByAProgramThatDoesNotKnowThem) {
  Layer<float> model = some_model();
  save_model(path("net.safetensors"), model, some_info());
  auto [loaded, info] = load_model<float>(path("net.safetensors"));
  EXPECT_EQ(info, some_info());
  EXPECT_EQ(load_info(path("net.safetensors")), some_info());
  EXPECT_EQ(loaded.describe().text(), model.describe().text());
  expect_equal_numbers(model, loaded);
  const Tensor<float> x(Shape{1, 1, 8, 8}, 0.25f);
  EXPECT_EQ(infer(loaded, x), infer(model, x));
  // Written again, it is the same file.
  save_model(path("again.safetensors"), loaded, info);
  EXPECT_EQ(read(path("again.safetensors")), read(path("net.safetensors")));
  // As double: the same numbers, which floats are.
  const auto as_double = load_model<double>(path("net.safetensors"));
  EXPECT_EQ(as_double.model.describe().text(), model.describe().text());
}

struct Own {
  Linear first{3, 4};
  BatchNorm norm{4};
  std::vector<Linear> rest = {Linear(4, 2, {.bias = false})};
};

TEST_F(ModelFiles, HoldClassesOfTheProgramToo) {
  Own net;
  initialise(net, Key(1));
  save_model(path("own.safetensors"), net, {.name = "own"});
  Own other;
  EXPECT_EQ(load_weights(path("own.safetensors"), other).name, "own");
  expect_equal_numbers(net, other);
  const std::string text = io::complaint([&] { load_model<float>(path("own.safetensors")); });
  EXPECT_NE(text.find("load_weights"), std::string::npos) << text;
}

TEST_F(ModelFiles, OfAFunctionHaveWeightsButNoArchitecture) {
  Sequential net{Linear(2, 2), [](const Value<float>& x) { return x + x; }};
  save_model(path("f.safetensors"), net);
  EXPECT_NE(io::complaint([&] { load_model<float>(path("f.safetensors")); }), "");
  load_weights(path("f.safetensors"), net);
}

TEST_F(ModelFiles, ThatDoNotFitAreRefusedWithAllTheirNames) {
  Sequential net;
  net.add("a", Linear(2, 3));
  net.add("b", Linear(3, 3));
  net.add("c", Linear(3, 1));
  save_model(
      path("net.safetensors"), net, {}, {{"optimiser.a.weight", Tensor<float>(Shape{3, 2})}});
  load_weights(path("net.safetensors"), net);  // what is the optimiser's is not asked for

  Sequential other;
  other.add("a", Linear(2, 4));
  other.add("d", Linear(4, 3));
  other.add("c", Linear(3, 1));
  initialise(other, Key(1));
  Sequential before = other;
  try {
    load_weights(path("net.safetensors"), other);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::shape_mismatch);
    const std::string text = error.what();
    for (const char* part : {"missing in the file (2):\n    d.weight (3, 4)\n    d.bias (3,)",
                             "in the file, not in the model (2):",
                             "\n    b.weight (3, 3)",
                             "\n    b.bias (3,)",
                             "of another shape in the file (2):\n    a.weight: (3, 2), the model "
                             "has (4, 2)"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n---\n" << text;
    }
  }
  expect_equal_numbers(before, other);  // nothing was changed
}

TEST_F(ModelFiles, ThatAskForMoreMemoryThanTheyHoldNumbersAreRefusedBeforeItIsTaken) {
  for (const char* architecture :
       {R"({"layer": "conv", "in": 3000000, "out": 3000000, "kernel": 5})",
        R"({"layer": "conv", "in": 1, "out": 1, "kernel": [1000000, 1000000, 1000000]})",
        R"({"layer": "linear", "in": 1e300, "out": 1e300})",
        R"({"layer": "batch_norm", "channels": 900000000000})",
        R"({"layer": "layer_norm", "shape": [4000000, 4000000]})",
        R"({"layer": "residual", "body": {"layer": "sequential", "layers": [
            {"layer": "squeeze_excite", "channels": 4000000, "squeezed": 4000000}]}})"}) {
    io::save_safetensors(path("huge"),
                         io::TensorMap{},
                         {{"fenestra.format", "1"}, {"fenestra.architecture", architecture}});
    try {
      load_model<float>(path("huge"));
      ADD_FAILURE() << architecture;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file) << error.what();
      EXPECT_NE(std::string(error.what()).find("the tensors have 0"), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(ModelFiles, WithBadMetadataAreRefused) {
  const auto load_with = [&](const char* key, const char* value) {
    io::Metadata metadata{{"fenestra.format", "1"},
                          {"fenestra.architecture", R"({"layer": "relu"})"}};
    metadata[key] = value;
    io::save_safetensors(path("bad.safetensors"), {}, metadata);
    return io::complaint([&] { load_model<float>(path("bad.safetensors")); });
  };
  EXPECT_EQ(load_with("author", "x"), "");
  EXPECT_NE(load_with("fenestra.format", "2"), "");
  EXPECT_NE(load_with("fenestra.architecture", "{"), "");
  EXPECT_NE(load_with("fenestra.architecture", "3"), "");
  EXPECT_NE(load_with("fenestra.classes", "[1]"), "");
  EXPECT_NE(load_with("fenestra.classes", "{}"), "");
  EXPECT_NE(load_with("fenestra.preprocessing", R"({"size": [0]})"), "");
  EXPECT_NE(load_with("fenestra.preprocessing", R"({"mean": 1})"), "");
  EXPECT_NE(load_with("fenestra.preprocessing", R"({"scale": ["a"]})"), "");
  EXPECT_NE(io::complaint([&] { load_model<float>(path("absent.safetensors")); }), "");
}

TEST_F(ModelFiles, ThatWereDamagedAreRefusedByTheirChecksum) {
  const std::string file = path("net.safetensors");
  save_model(file, some_model(), some_info());
  const std::string whole = read(file);
  // The last number, and a letter of a text that nothing else would miss.
  for (const std::size_t at : {whole.size() - 1, whole.find("nobody")}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write("net.safetensors", damaged);
    const std::string text = io::complaint([&] { load_model<float>(file); });
    EXPECT_NE(text.find("the checksum is "), std::string::npos) << at << ": " << text;
    EXPECT_NE(text.find("fenestra.checksum"), std::string::npos) << text;
  }
  // Who changes a file on purpose leaves the checksum out.
  write("net.safetensors", whole);
  io::SafetensorsContents contents = io::load_safetensors(file);
  EXPECT_EQ(contents.metadata.erase("fenestra.checksum"), 1U);
  contents.metadata["author"] = "somebody";
  io::save_safetensors(file, contents.tensors, contents.metadata);
  EXPECT_EQ(load_model<float>(file).info.more.at("author"), "somebody");
}

}  // namespace
}  // namespace fenestra::nn
