// The law on bits: over 1, 2, 3, 7 and 16 threads, and over parts of a batch, on the layers of
// known networks and on problems so large that every candidate and every way to split the work is
// taken. Two processes are compared by the tests of the tool. Under a sanitizer: one layer and one
// random problem of `kOneOf`.
#include <fenestra/check/sample_test.hpp>
#include <fenestra/check/soak.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::check {
namespace {

/// Batches of three and more, so that halves differ and no thread gets a whole share. Each is
/// larger than one tile of its kernel in every direction that is split among threads.
constexpr std::string_view kLarge[] = {
    "conv x=8x6x14x14 w=16x6x5x5 bias=true",           // LeNet
    "conv x=3x3x96x96 w=32x3x7x7 stride=2 padding=3",  // ResNet's first layer
    "conv x=3x96x96x3 w=7x7x3x32 stride=2 padding=3 layout=channels_last",
    "conv x=3x64x20x20 w=64x64x3x3 padding=1",
    "conv x=3x20x20x64 w=3x3x64x64 padding=1 layout=channels_last",
    "conv x=5x128x14x14 w=130x128x1x1 bias=true",
    "conv x=5x14x14x128 w=1x1x128x130 layout=channels_last",
    "conv x=3x128x7x7 w=96x128x3x3 padding=1",
    "conv x=3x64x28x28 w=64x64x3x3 stride=2 padding=1",
    "conv x=3x96x40x40 w=96x1x3x3 padding=1 groups=96",
    "conv x=3x72x28x28 w=72x1x5x5 stride=2 padding=2 groups=72",
    "conv x=3x28x28x72 w=5x5x1x72 stride=2 padding=2 groups=72 layout=channels_last",
    "conv x=3x128x20x20 w=128x4x3x3 padding=1 groups=32",
    "conv x=3x64x300 w=64x64x9 padding=4",
    "conv x=3x1x3000 w=16x1x33 stride=2 padding=16",
    "conv x=3x16x8x20x20 w=16x16x3x3x3 padding=1",
    "conv x=3x4x8x8x8x8 w=8x4x3x3x3x3 padding=1",
    "conv x=17x16x16x16 w=16x16x3x3 padding=1",
    "conv_transpose x=3x64x14x14 w=64x48x4x4 stride=2 padding=1 bias=true",
    "conv_transpose x=3x14x14x64 w=2x2x48x64 stride=2 layout=channels_last",
    "conv_transpose x=3x64x60 w=64x32x16 stride=8 padding=4",
    "max_pool x=3x64x57x57 kernel=3 stride=2 padding=1",
    "max_pool x=3x57x57x64 kernel=3 stride=2 padding=1 layout=channels_last",
    "max_pool x=5x128x14x14 kernel=2",
    "avg_pool x=3x64x35x35 kernel=3 stride=1 padding=1",
    "avg_pool x=3x35x35x64 kernel=3 stride=2 padding=1 count_include_pad=false "
    "layout=channels_last",
    "avg_pool x=5x64x4x14x14 kernel=2",
    "lp_pool x=3x32x28x28 kernel=3 stride=2 p=2",
    "max_pool x=5x64x9x9 kernel=9",
    "lp_pool x=5x64x9x9 kernel=9 p=2",
    "lp_pool x=3x28x28x40 kernel=3 stride=2 p=2 layout=channels_last",
    "lp_pool x=3x28x28x32 kernel=3 stride=2 p=3 layout=channels_last",
    "smooth_max_pool x=3x16x28x28 kernel=3 stride=2 padding=1 beta=2",
    "smooth_max_pool x=3x28x28x16 kernel=2 beta=2 layout=channels_last",
    "adaptive_avg_pool x=3x128x14x14 output_size=1",
    "adaptive_max_pool x=3x64x15x15 output_size=7",
};

/// What the problems of this process took so far.
std::set<std::string>& taken() {
  static std::set<std::string> names;
  return names;
}

void expect_bits(const SoakProblem& problem) {
  const SoakReport report = check_bits(problem);
  for (const auto& [name, count] : report.taken) {
    taken().insert(name);
  }
  if (report.failure) {
    const KernelFailure& f = report.failure->failure;
    ADD_FAILURE() << f.candidate << " on " << f.isa << " with " << f.threads << " threads, "
                  << f.quantity << ": " << f.detail << "\n  " << report.failure->command();
  }
}

TEST(KernelBits, DependNeitherOnThreadsNorOnBatchesInLargeProblems) {
  taken().clear();
  for (const std::string_view text : kLarge) {
    expect_bits(parse_soak_problem(text, 11));
  }
  // Every candidate ran; one that runs only where it is asked for by name is not among them.
  for (const KernelEntry& entry : kernel_registry()) {
    for (const std::string& name : entry.candidates()) {
      const bool is_asked_for = name.ends_with("_onednn");
      EXPECT_TRUE(is_asked_for || name.ends_with("_spec") || taken().contains(name)) << name;
    }
  }
  std::string names;
  for (const std::string& name : taken()) {
    names += (names.empty() ? "" : " ") + name;
  }
  RecordProperty("candidates", names);
}

TEST(KernelBits, DependNeitherOnThreadsNorOnBatchesInLayersOfNetworks) {
  const std::vector<NetworkLayer>& layers = network_layers();
  for (std::size_t i = 0; i < layers.size(); i += kOneOf) {
    expect_bits({&find_kernels(layers[i].op), layers[i].problem, 12});
  }
}

TEST(KernelBits, DependNeitherOnThreadsNorOnBatchesInRandomProblems) {
  SoakProblems problems(13);
  for (int i = 0; i < 500 / kOneOf; ++i) {
    expect_bits(problems.next());
  }
}

TEST(KernelBits, HaveOneNumberPerSeed) {
  const auto hash = [](std::uint64_t seed) {
    return hash_bits(seed, {.problems = 20, .seconds = {}}, {}).hash;
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_NE(hash(1), hash(2));
}

}  // namespace
}  // namespace fenestra::check
