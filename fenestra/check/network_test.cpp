// Random networks, compiled and eager: the same bits in value, cotangents, tangent and second
// order.
#include <fenestra/check/graph_law.hpp>
#include <fenestra/check/random_network.hpp>

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace fenestra::check {
namespace {

constexpr std::uint64_t kNetworks = 150;

TEST(Networks, ACompiledNetworkHasTheBitsOfTheEagerOne) {
  for (std::uint64_t seed = 1; seed <= kNetworks; ++seed) {
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

}  // namespace
}  // namespace fenestra::check
