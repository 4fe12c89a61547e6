// Normalisations beyond their laws: errors, layouts, the compiled passes, mixed derivatives.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/normalise/op.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace fenestra {
namespace {

using D = Tensor<double>;
using I = Interval<double>;

template <class Call>
Fault fault_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    return error.fault();
  }
  return {};
}

template <class T>
Tensor<T> reals(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Tensor<T> x(shape);
  for (T& value : x.mutable_values()) {
    value = static_cast<T>(random.real());
  }
  return x;
}

Tensor<I> points(const D& x) {
  return x.map([](double v) { return I(v); });
}

/// One width around the enclosure: a kernel adds in another order than the definition.
void expect_beside(const D& got, const Tensor<I>& enclosure) {
  ASSERT_EQ(got.shape(), enclosure.shape());
  for (Index i = 0; i < got.size(); ++i) {
    const double width = enclosure[i].width();
    ASSERT_GE(got[i], enclosure[i].lo() - width) << i;
    ASSERT_LE(got[i], enclosure[i].hi() + width) << i;
  }
}

/// Value and all gradients of a problem.
template <class T>
std::vector<Tensor<T>> everything(const NormaliseGeometry& g,
                                  const std::vector<Tensor<T>>& in,
                                  const Tensor<T>& y_bar) {
  std::vector<Tensor<T>> result{Normalise::forward<T>(g, {in, {}})};
  for (const Tensor<T>& bar : Normalise::vjp<T>(g, {in, {}}, y_bar)) {
    result.push_back(bar);
  }
  return result;
}

TEST(Normalise, MistakesAreRefusedWithTheirNumbers) {
  const D x(Shape{2, 6, 3});
  EXPECT_EQ(fault_of([&] { batch_norm(x, D(Shape{5}), D(Shape{6})); }).code,
            ErrorCode::shape_mismatch);
  EXPECT_EQ(fault_of([&] { batch_norm_inference(x, D(Shape{6}), D(Shape{1})); }).code,
            ErrorCode::shape_mismatch);
  EXPECT_EQ(fault_of([] { batch_norm(D(Shape{4})); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] { batch_norm(x, {.eps = -1}); }).code, ErrorCode::invalid_option);
  const Fault groups = fault_of([&] { group_norm(x, 4); });
  EXPECT_EQ(groups.code, ErrorCode::channels_not_divisible);
  EXPECT_EQ(groups.got, 4);
  EXPECT_EQ(groups.needed, 6);
  EXPECT_EQ(fault_of([&] { group_norm(x, 0); }).code, ErrorCode::invalid_groups);
  EXPECT_EQ(fault_of([&] { layer_norm(x, 4); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] { layer_norm(x, D(Shape{2}), D(Shape{2})); }).code,
            ErrorCode::shape_mismatch);
}

TEST(Normalise, AConstantGroupGivesBetaAndNoGradient) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{3, 2}, 4.0));
  const auto y = batch_norm(x, D(Shape{2}, {3.0, 5.0}), D(Shape{2}, {1.0, 2.0})).y;
  EXPECT_EQ(y.tensor(), D(Shape{3, 2}, {1.0, 2.0, 1.0, 2.0, 1.0, 2.0}));
  EXPECT_EQ(tape.backward(y)[x], D(Shape{3, 2}));
}

TEST(Normalise, AnEmptyBatchGivesAnEmptyResultAndZeroParameterGradients) {
  Tape<double> tape;
  const auto gamma = tape.parameter(D(Shape{4}, 1.0));
  const auto y = group_norm(D(Shape{0, 4, 5}), 2, gamma, D(Shape{4}));
  EXPECT_EQ(y.shape(), (Shape{0, 4, 5}));
  EXPECT_EQ(tape.backward(y)[gamma], D(Shape{4}));
}

TEST(Normalise, CompiledPassesLieBesideTheDefinitionForBothLayoutsAndAllThreads) {
  const int before = threads();
  for (const Layout layout : {Layout::channels_first, Layout::channels_last}) {
    for (const NormFunction f : {NormFunction::batch,
                                 NormFunction::batch_var,
                                 NormFunction::inference,
                                 NormFunction::group,
                                 NormFunction::layer}) {
      for (const bool affine : {true, false}) {
        NormaliseGeometry g;
        g.f = f;
        g.affine = affine;
        g.groups = 3;
        g.axes = 2;
        g.options.layout = layout;
        g.x = layout == Layout::channels_first ? Shape{5, 6, 13, 3} : Shape{5, 13, 3, 6};
        std::vector<D> in;
        std::vector<Tensor<I>> enclosed;
        for (const TensorInfo& info : Normalise::inputs(g)) {
          D value = reals<double>(info.shape, 20 + in.size());
          if (Normalise::positive(g, in.size())) {
            value = value.map([](double v) { return v * v; });
          }
          enclosed.push_back(points(value));
          in.push_back(std::move(value));
        }
        const D y_bar = reals<double>(Normalise::output(g).shape, 30);
        set_threads(1);
        const std::vector<D> got = everything(g, in, y_bar);
        const auto needed = everything(g, enclosed, points(y_bar));
        for (std::size_t i = 0; i < got.size(); ++i) {
          SCOPED_TRACE(to_string(g) + ", result " + std::to_string(i));
          expect_beside(got[i], needed[i]);
        }
        for (const int count : {2, 7}) {
          set_threads(count);
          EXPECT_EQ(everything(g, in, y_bar), got) << to_string(g);
        }
      }
    }
  }
  set_threads(before);
}

TEST(Normalise, ResultsOfManyElementsDoNotDependOnThreads) {
  const int before = threads();
  for (const Layout layout : {Layout::channels_first, Layout::channels_last}) {
    const auto x = reals<float>(
        layout == Layout::channels_first ? Shape{8, 5, 40, 40} : Shape{8, 40, 40, 5}, 1);
    const auto u = reals<float>(x.shape(), 2);
    const auto run = [&] {
      Tape<float> tape;
      const auto variable = tape.parameter(x);
      const auto gamma = tape.parameter(reals<float>(Shape{5}, 3));
      const auto beta = tape.parameter(reals<float>(Shape{5}, 4));
      const auto y = batch_norm(variable, gamma, beta, {.layout = layout}).y;
      const auto grads = tape.backward(Seed<float>{y, u});
      return std::vector<Tensor<float>>{y.tensor(), grads[variable], grads[gamma], grads[beta]};
    };
    set_threads(1);
    const auto needed = run();
    for (const int count : {2, 7}) {
      set_threads(count);
      EXPECT_EQ(run(), needed);
    }
  }
  set_threads(before);
}

TEST(Normalise, BothLayoutsEncloseTheSameNumbers) {
  const D x = reals<double>({2, 6, 4}, 7);
  const D moved = activation_to_layout(x, true, Layout::channels_first, Layout::channels_last);
  const auto compare = [](const Tensor<I>& first, const Tensor<I>& last) {
    const auto back =
        activation_to_layout(last, true, Layout::channels_last, Layout::channels_first);
    for (Index i = 0; i < first.size(); ++i) {
      EXPECT_TRUE(intersects(first[i], back[i])) << first[i] << back[i];
    }
  };
  const NormOptions last{.layout = Layout::channels_last};
  compare(batch_norm(points(x)).y, batch_norm(points(moved), last).y);
  compare(group_norm(points(x), 3), group_norm(points(moved), 3, last));
}

TEST(Normalise, TheReturnedStatisticsAreDifferentiable) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{2, 1}, {1.0, 5.0}));
  const auto result = batch_norm(x);
  EXPECT_EQ(result.mean.tensor(), D(Shape{1}, 3.0));
  EXPECT_EQ(result.var.tensor(), D(Shape{1}, 4.0));
  EXPECT_EQ(tape.backward(result.mean, {.retain = true})[x], D(Shape{2, 1}, 0.5));
  EXPECT_EQ(tape.backward(result.var)[x], D(Shape{2, 1}, {-2.0, 2.0}));
}

TEST(Normalise, SecondDerivativesAgreeInEveryNesting) {
  // Enclosures of the same number by three different routes must meet pairwise.
  using T = Tensor<I>;
  const T x = points(reals<double>({2, 2, 3}, 5));
  const T v = points(reals<double>({2, 2, 3}, 6));
  const T u = points(reals<double>({2, 2, 3}, 7));
  const T gamma(Shape{2}, {I(1.5), I(-0.5)});
  const T beta(Shape{2}, {I(0.0), I(1.0)});
  const auto f = [&](const auto& t) { return batch_norm(t, gamma, beta, {.eps = 0.125}).y; };

  Tape<I> tape;
  const auto variable = tape.parameter(x);
  const auto [y, y_dot] = jvp(f, primals(variable), tangents(v));
  const T forward_then_reverse = tape.backward(Seed<I>{y_dot, u})[variable];

  const auto pulled = [&](const Value<I>& t) {
    Tape<I> around;
    const auto parameter = around.parameter(t);
    return around.backward(Seed<I>{f(parameter), u})[parameter];
  };
  const T reverse_then_forward = jvp(pulled, primals(x), tangents(v)).second;

  Tape<I> inner;
  Tape<I> outer;
  const auto at = inner.parameter(x);
  const auto nested = outer.parameter(at);
  const auto slope = outer.backward(Seed<I>{f(nested), u})[nested];
  const T reverse_twice = inner.backward(Seed<I>{slope, v})[at];

  for (Index i = 0; i < x.size(); ++i) {
    EXPECT_TRUE(intersects(forward_then_reverse[i], reverse_then_forward[i])) << i;
    EXPECT_TRUE(intersects(forward_then_reverse[i], reverse_twice[i])) << i;
    EXPECT_LT(reverse_twice[i].width(), 1e-9) << "an enclosure this wide says nothing";
  }
}

}  // namespace
}  // namespace fenestra
