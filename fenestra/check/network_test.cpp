// Random networks, compiled and eager: the same bits in value, cotangents, tangent and second
// order.
#include <fenestra/base/parallel.hpp>
#include <fenestra/check/graph_law.hpp>
#include <fenestra/check/random_network_test.hpp>

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace fenestra::check {
namespace {

constexpr std::uint64_t kNetworks = 150;

/// What the law on graphs says of the random network of this seed.
void expect_compiled_is_eager(std::uint64_t seed) {
  const RandomNetwork network(seed);
  Random random(seed);
  const auto draw = [&](const Shape& shape) {
    Tensor<double> tensor(shape);
    for (double& value : tensor.mutable_values()) {
      value = random.real();
    }
    return tensor;
  };
  std::vector<Tensor<double>> in;
  std::vector<Tensor<double>> dots;
  for (const Shape& shape : network.inputs()) {
    in.push_back(draw(shape));
    dots.push_back(draw(shape));
  }
  EXPECT_EQ(graph_complaint(network, in, dots, draw(network.output())), "")
      << "seed " << seed << ", layers " << network.text();
}

TEST(Networks, ACompiledNetworkHasTheBitsOfTheEagerOne) {
  for (std::uint64_t seed = 1; seed <= kNetworks; ++seed) {
    expect_compiled_is_eager(seed);
  }
}

TEST(Networks, ACompiledNetworkHasTheBitsOfTheEagerOneOnAnyThreads) {
  const int before = threads();
  for (const int count : {1, 3, 7, 16}) {
    set_threads(count);
    for (std::uint64_t seed = 1; seed <= kNetworks / 5; ++seed) {
      expect_compiled_is_eager(seed);
    }
  }
  set_threads(before);
}

TEST(Networks, EveryKindOfLayerIsDrawn) {
  std::set<std::string> kinds;
  for (std::uint64_t seed = 1; seed <= kNetworks; ++seed) {
    std::istringstream text(RandomNetwork(seed).text());
    for (std::string kind; text >> kind;) {
      kinds.insert(kind);
    }
  }
  EXPECT_EQ(kinds.size(), static_cast<std::size_t>(LayerKind::last));
}

/// One function of two faces: `Compiled` on graph values, `Eager` on all others.
template <class Compiled, class Eager>
std::string two_faced(const Compiled& compiled, const Eager& eager) {
  const auto f = [&]<class V>(const std::vector<V>& in) {
    if constexpr (ValueTraits<V>::has_elements) {
      return eager(in[0]);
    } else {
      return compiled(in[0]);
    }
  };
  const Tensor<double> zero(Shape{2});
  const Tensor<double> one(Shape{2}, 1.0);
  return graph_complaint(f, {zero}, {one}, one);
}

TEST(GraphLaw, NoticesAnotherValue) {
  EXPECT_EQ(two_faced([](const auto& x) { return exp(x); }, [](const auto& x) { return exp(x); }),
            "");
  EXPECT_EQ(
      two_faced([](const auto& x) { return exp(x); }, [](const auto& x) { return neg(exp(x)); })
          .substr(0, 7),
      "value 0");
}

TEST(GraphLaw, NoticesAnotherDerivative) {
  // At 0 both are 0, but one is flat.
  EXPECT_EQ(
      two_faced([](const auto& x) { return scale(x, 1); }, [](const auto& x) { return relu(x); })
          .substr(0, 5),
      "jvp 1");
}

TEST(GraphLaw, NoticesAnotherSecondDerivative) {
  // At 0: value 1 and slope 1, but one bends.
  EXPECT_EQ(two_faced([](const auto& x) { return exp(x); },
                      [](const auto& x) { return add(x, ones_like(x)); })
                .substr(0, 12),
            "second order");
}

}  // namespace
}  // namespace fenestra::check
