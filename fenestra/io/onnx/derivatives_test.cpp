// Derivatives of every operator, on the official inputs, in double: <y_bar, J x_dot> equals
// <J' y_bar, x_dot>, and J x_dot is the central difference wherever the function is smooth there.
#include <fenestra/base/key.hpp>
#include <fenestra/fenestra.hpp>
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/official_test.hpp>

#include <gtest/gtest.h>

namespace fenestra::onnx::official {
namespace {

using Point = std::vector<Tensor<double>>;

/// Numbers in [-1, 1), by position.
Point directions(const Point& like, std::uint64_t seed) {
  Point result;
  for (const Tensor<double>& tensor : like) {
    const Key key = Key(seed).fold(result.size());
    Tensor<double> direction(tensor.shape());
    for (Index i = 0; i < direction.size(); ++i) {
      direction.mutable_data()[i] = 2 * key.uniform(static_cast<std::uint64_t>(i)) - 1;
    }
    result.push_back(direction);
  }
  return result;
}

double inner(const Point& a, const Point& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    for (Index i = 0; i < a[k].size(); ++i) {
      sum += a[k][i] * b[k][i];
    }
  }
  return sum;
}
double magnitude(const Point& a, const Point& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    for (Index i = 0; i < a[k].size(); ++i) {
      sum += std::abs(a[k][i] * b[k][i]);
    }
  }
  return sum;
}
Point moved_by(const Point& at, const Point& direction, double step) {
  Point result = at;
  for (std::size_t k = 0; k < at.size(); ++k) {
    for (Index i = 0; i < at[k].size(); ++i) {
      result[k].mutable_data()[i] += step * direction[k][i];
    }
  }
  return result;
}

/// A network as a function of its floating-point inputs and weights; inputs that are settings of an
/// operator, whose numbers it looks at, stay.
struct Differentiated {
  Network<double> network;
  Network<double>::Data inputs;
  std::vector<std::string> varied;
  Point point;

  Differentiated(const Case& test)
      : network(read_model(test.path / "model.onnx")),
        inputs(inputs_of(network, test.data_sets[0])) {
    std::set<std::string> settings;
    for (const Node& node : network.model().graph.nodes) {
      const std::map<std::string, std::size_t> first = {{"Pad", 1},
                                                        {"Resize", 1},
                                                        {"Upsample", 1},
                                                        {"Range", 0},
                                                        {"Dropout", 1},
                                                        {"RoiAlign", 1},
                                                        {"NonMaxSuppression", 0}};
      const auto found = first.find(node.op_type);
      for (std::size_t i = found == first.end() ? node.inputs.size() : found->second;
           i < node.inputs.size();
           ++i) {
        settings.insert(node.inputs[i]);
      }
    }
    for (const auto& [name, datum] : inputs) {
      const bool is_shape = !datum.is_real() || datum.shape().elements() == 0;
      if (!is_shape && settings.count(name) == 0) {
        varied.push_back(name);
        point.push_back(datum.value().tensor());
      }
    }
    for (const Weight<double>& weight : network.weights()) {
      if (weight.trained) {
        point.push_back(weight.value().tensor());
      }
    }
  }

  std::vector<Value<double>> operator()(const std::vector<Value<double>>& at) const {
    Network<double> moved = network;
    Network<double>::Data given = inputs;
    std::size_t next = 0;
    for (const std::string& name : varied) {
      given.insert_or_assign(name, Datum<double>(at[next++], given.at(name).type()));
    }
    for (Weight<double>& weight : moved.weights()) {
      if (weight.trained) {
        weight.value() = at[next++];
      }
    }
    std::vector<Value<double>> results;
    const auto all = moved.run(given);
    for (const ValueInfo& output : moved.outputs()) {
      if (all.at(output.name).is_real()) {
        results.push_back(all.at(output.name).value());
      }
    }
    return results;
  }

  Point at(const Point& where) const {
    Point result;
    for (const Value<double>& value : (*this)({where.begin(), where.end()})) {
      result.push_back(value.tensor());
    }
    return result;
  }
};

/// How far <y_bar, J x_dot> and <J' y_bar, x_dot> may be apart by rounding, by what their terms add
/// up to. Neither path has more roundings than there are numbers to be added, and those of
/// functions: 4 units for a function or its slope, in at most 4 steps a node. They are of the
/// terms' size before anything cancels. Directions are random, so that n of them cancel to one in
/// sqrt(n).
double rounding(const Differentiated& f, const Point& y) {
  double numbers = 0;
  for (const Point* point : {&f.point, &y}) {
    for (const Tensor<double>& tensor : *point) {
      numbers += static_cast<double>(tensor.size());
    }
  }
  const auto nodes = static_cast<double>(f.network.model().graph.nodes.size());
  return 0x1p-53 * (numbers + 16 * nodes) * std::sqrt(numbers);
}

double largest(const Point& point) {
  double most = 0;
  for (const Tensor<double>& tensor : point) {
    for (Index i = 0; i < tensor.size(); ++i) {
      most = std::isfinite(tensor[i]) ? std::max(most, std::abs(tensor[i])) : most;
    }
  }
  return most;
}

/// Elements of J x_dot that were compared with differences, sharply. Of a smooth function, the
/// central difference over h is off by some c h^2, which is a third of what it changes by from h
/// to 2 h: twice the change is allowed, and the rounding of f. A corner at the point changes
/// nothing, but its bend (above + below - 2 middle) / h does not grow with h as f'' h does: such
/// elements are left out.
Index compare_with_differences(const Differentiated& f,
                               const Point& x_dot,
                               const Point& y_dot,
                               const std::string& name) {
  constexpr double h = 1e-4;
  const Point middle = f.at(f.point);
  const Point above[] = {f.at(moved_by(f.point, x_dot, h)), f.at(moved_by(f.point, x_dot, 2 * h))};
  const Point below[] = {f.at(moved_by(f.point, x_dot, -h)),
                         f.at(moved_by(f.point, x_dot, -2 * h))};
  // Terms are numbers, or products of two.
  const double most = std::max({1.0, largest(f.point), largest(middle)});
  const double noise = rounding(f, middle) * most * most / h;
  Index compared = 0;
  for (std::size_t k = 0; k < middle.size(); ++k) {
    for (Index i = 0; i < middle[k].size(); ++i) {
      double slope[2];
      double bend[2];
      for (const std::size_t by : {0, 1}) {
        const double step = by == 0 ? h : 2 * h;
        slope[by] = (above[by][k][i] - below[by][k][i]) / (2 * step);
        bend[by] = (above[by][k][i] + below[by][k][i] - 2 * middle[k][i]) / step;
      }
      const double change = std::abs(slope[1] - slope[0]);
      const bool corner = std::abs(bend[1] - 2 * bend[0]) > std::abs(bend[0]) / 2 + 4 * noise;
      if (!std::isfinite(change) || corner) {
        continue;
      }
      const double allowed = 2 * change + 2 * noise;
      EXPECT_LE(std::abs(slope[0] - y_dot[k][i]), allowed)
          << name << ", output " << k << ", element " << i << ": J x_dot = " << y_dot[k][i]
          << ", the difference is " << slope[0];
      // Across a jump, anything would be allowed.
      compared += allowed < 1e-3 * (1 + std::abs(slope[0])) ? 1 : 0;
    }
  }
  return compared;
}

TEST(OfficialVectors, DerivativesAreAdjointAndAgreeWithDifferences) {
  const fs::path root = FENESTRA_ONNX_TESTDATA;
  if (!fs::is_directory(root / "node")) {
    GTEST_SKIP() << "no official vectors; scripts/install-packages installs libonnx-testdata";
  }
  std::map<std::string, Index> compared;
  for (const Case& test : cases(root)) {
    // Masks are drawn anew, and what is expanded is another test's operator once more.
    if (test.name.starts_with("test_training_dropout") || test.name.ends_with("_expanded")) {
      continue;
    }
    SCOPED_TRACE(test.folder + "/" + test.name);
    try {
      const Differentiated f(test);
      if (f.point.empty()) {
        continue;
      }
      const Point x_dot = directions(f.point, 1);
      const auto [y, y_dot] = jvp(f, primals(f.point), tangents(x_dot));
      const Point y_bar = directions(y, 2);
      const auto [again, pullback] = vjp(f, f.point);
      const Point x_bar = pullback(y_bar);
      const double forward = inner(y_bar, y_dot);
      const double backward = inner(x_bar, x_dot);
      const double scale = magnitude(y_bar, y_dot) + magnitude(x_bar, x_dot);
      if (std::isfinite(scale)) {
        EXPECT_LE(std::abs(forward - backward), rounding(f, y) * scale) << test.name;
      }
      const Index count = compare_with_differences(f, x_dot, y_dot, test.name);
      for (const std::string& op : test.operators) {
        compared[op] += count;
      }
    } catch (const Error& error) {
      ADD_FAILURE() << test.name << ": " << error.what();
    }
  }
  for (const auto& [op, count] : compared) {
    const Operator* known = find_operator(op);
    if (known != nullptr && known->derivative == Derivative::full) {
      EXPECT_GT(count, 0) << op << " was never compared with differences";
    }
  }
}

/// Tests whose operator looks at numbers that are inputs of the program here, and so cannot be
/// traced.
bool looks_at_numbers(const Case& test) {
  constexpr std::string_view kBegins[] = {"test_gridsample",
                                          "test_onehot_negative",  // indices are floating-point
                                          "test_onehot_with_"};
  return std::any_of(std::begin(kBegins), std::end(kBegins), [&](std::string_view begin) {
    return test.name.starts_with(begin);
  });
}

TEST(OfficialVectors, ProgramsComputeWhatTheNetworkComputesEagerly) {
  const fs::path root = FENESTRA_ONNX_TESTDATA;
  if (!fs::is_directory(root / "node")) {
    GTEST_SKIP() << "no official vectors; scripts/install-packages installs libonnx-testdata";
  }
  int compiled = 0;
  for (const Case& test : cases(root)) {
    if (test.name.starts_with("test_training_dropout") || test.name.ends_with("_expanded")) {
      continue;
    }
    SCOPED_TRACE(test.folder + "/" + test.name);
    const Differentiated f(test);
    const Point eager = f.at(f.point);
    if (f.point.empty() || eager.empty()) {
      continue;
    }
    const bool looks = looks_at_numbers(test);
    try {
      const auto program = compile<double>(f, f.point);
      Context context(program);
      const std::vector<RunArgument> arguments(f.point.begin(), f.point.end());
      const Point results = program.execute_new(ProgramForm::run, context, arguments);
      ASSERT_EQ(results.size(), eager.size());
      for (std::size_t k = 0; k < eager.size(); ++k) {
        ASSERT_EQ(results[k].shape(), eager[k].shape());
        for (Index i = 0; i < eager[k].size(); ++i) {
          // Weights are inputs here, so that nothing is folded: the same kernels, the same bits.
          EXPECT_TRUE(results[k][i] == eager[k][i] ||
                      (std::isnan(results[k][i]) && std::isnan(eager[k][i])))
              << results[k][i] << ", eagerly " << eager[k][i];
        }
      }
      EXPECT_FALSE(looks);
      ++compiled;
    } catch (const Error& error) {
      EXPECT_TRUE(looks) << error.what();
    }
  }
  EXPECT_GT(compiled, 450);
}

}  // namespace
}  // namespace fenestra::onnx::official
