// Every official test within the lists of operators gives the official outputs, with the tolerances
// of the official runner: a relative difference of 1e-3 and an absolute one of 1e-7; integers are
// equal. What fails is listed with its reason in official_failures.txt, and nothing else may.
#include <fenestra/io/onnx/official_test.hpp>

#include <gtest/gtest.h>

namespace fenestra::onnx::official {
namespace {

bool is_near(double got, double wanted) {
  if (std::isnan(wanted) || std::isnan(got)) {
    return std::isnan(wanted) && std::isnan(got);
  }
  return got == wanted || std::abs(got - wanted) <= 1e-7 + 1e-3 * std::abs(wanted);
}

/// Why an output is wrong, or nothing.
template <class T>
std::string difference(const Datum<T>& got, const TensorData& wanted) {
  if (got.shape() != wanted.shape) {
    return "shape " + to_string(got.shape()) + ", needed " + to_string(wanted.shape);
  }
  if (got.type() != wanted.type) {
    return "type " + type_name(got.type()) + ", needed " + type_name(wanted.type);
  }
  const Datum<T> right = datum_of<T>(wanted);
  if (!is_floating(wanted.type)) {
    return got.numbers() == right.numbers() ? "" : "other integers";
  }
  const Tensor<T> a = got.value().tensor();
  const Tensor<T> b = right.value().tensor();
  for (Index i = 0; i < a.size(); ++i) {
    if (!is_near(static_cast<double>(a[i]), static_cast<double>(b[i]))) {
      return "element " + std::to_string(i) + ": " + std::to_string(a[i]) + ", needed " +
             std::to_string(b[i]);
    }
  }
  return "";
}

template <class T>
std::string run(const Case& test) {
  try {
    const Network<T> network(read_model(test.path / "model.onnx"));
    for (const fs::path& data_set : test.data_sets) {
      const auto results = network.run(inputs_of(network, data_set));
      for (std::size_t i = 0; i < network.outputs().size(); ++i) {
        const TensorData wanted = read_tensor(data_set / ("output_" + std::to_string(i) + ".pb"));
        const std::string wrong = difference(results.at(network.outputs()[i].name), wanted);
        if (!wrong.empty()) {
          return "output " + std::to_string(i) + ": " + wrong;
        }
      }
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::map<std::string, std::string> listed_failures() {
  std::map<std::string, std::string> listed;
  std::ifstream in(FENESTRA_ONNX_FAILURES);
  std::string name;
  std::string reason;
  while (in >> name && std::getline(in, reason)) {
    if (name[0] != '#') {
      listed[name] = reason;
    }
  }
  return listed;
}

TEST(OfficialVectors, AllOfTheListsPassButTheListedOnes) {
  const fs::path root = FENESTRA_ONNX_TESTDATA;
  if (!fs::is_directory(root / "node")) {
    GTEST_SKIP() << "no official vectors; scripts/install-packages installs libonnx-testdata";
  }
  int all[5] = {};
  int passed[5] = {};
  std::set<std::string> failed;
  for (const Case& test : cases(root)) {
    const std::string why = test.in_double ? run<double>(test) : run<float>(test);
    const std::string name = test.folder + "/" + test.name;
    ++all[test.tier];
    if (why.empty()) {
      ++passed[test.tier];
    } else {
      failed.insert(name);
      if (listed_failures().count(name) == 0) {
        ADD_FAILURE() << name << " (list " << test.tier << "): " << why;
      }
    }
  }
  for (const auto& [name, reason] : listed_failures()) {
    EXPECT_EQ(failed.count(name), 1U) << name << " is listed as failing, but passes";
    EXPECT_GT(reason.size(), 10U) << name << " is listed without a reason";
  }
  EXPECT_EQ(all[1], 448);
  EXPECT_EQ(all[2], 352);
  EXPECT_EQ(all[3], 61);
  EXPECT_GE(passed[1], 446);
  EXPECT_GE(passed[2], 347);
  std::printf("official vectors: %d of %d, %d of %d, %d of %d; others: %d of %d\n",
              passed[1],
              all[1],
              passed[2],
              all[2],
              passed[3],
              all[3],
              passed[4],
              all[4]);
}

}  // namespace
}  // namespace fenestra::onnx::official
