// custom_vjp on every level: tapes, tapes of tapes, jets, batches on either side, programs.
#include <fenestra/fenestra.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fenestra {
namespace {

using D = Tensor<double>;
using V = Value<double>;

/// a^2 b, whose pullback claims three times the right derivative by a: nobody else's rule does.
struct Counted {
  int* forwards;

  auto function() const {
    return custom_vjp([](const auto& a, const auto& b) { return mul(mul(a, a), b); },
                      [count = forwards](const V& a, const V& b) {
                        ++*count;
                        return std::pair(V(mul(mul(a, a), b)), std::tuple(a, b));
                      },
                      [](const std::tuple<V, V>& kept, const V& y_bar) {
                        const auto& [a, b] = kept;
                        return std::tuple(V(scale(mul(y_bar, mul(a, b)), 6)),
                                          V(mul(y_bar, mul(a, a))));
                      });
  }
};

const D kA(Shape{2}, {2, 3});
const D kB(Shape{2}, {5, 7});

TEST(CustomVjp, TensorsAloneRunTheFunction) {
  int forwards = 0;
  EXPECT_EQ(Counted{&forwards}.function()(kA, kB), D(Shape{2}, {20, 63}));
  EXPECT_EQ(forwards, 0);
}

TEST(CustomVjp, ATapeUsesThePullbackAndRunsForwardOnce) {
  int forwards = 0;
  const auto f = Counted{&forwards}.function();
  const auto [y, bars] =
      value_and_grad([&](const auto& a, const auto& b) { return sum(f(a, b)); }, kA, kB);
  EXPECT_EQ(D(y), D(Shape{}, 83.0));
  EXPECT_EQ(D(std::get<0>(bars)), D(Shape{2}, {60, 126}));
  EXPECT_EQ(D(std::get<1>(bars)), D(Shape{2}, {4, 9}));
  EXPECT_EQ(forwards, 1);
}

TEST(CustomVjp, ThePullbackIsDifferentiatedInItsTurn) {
  int forwards = 0;
  const auto f = Counted{&forwards}.function();
  const auto slope = [&](const auto& a) {
    return sum(grad([&](const auto& v) { return sum(f(v, kB)); }, a));
  };
  EXPECT_EQ(D(grad(slope, kA)), D(Shape{2}, {30, 42}));  // d(6ab)/da = 6b
  EXPECT_EQ(hessian([&](const auto& a) { return sum(f(a, kB)); }, kA),
            D(Shape{2, 2}, {30, 0, 0, 42}));
}

TEST(CustomVjp, TheDerivativeOfTheValueIsThePullbackOnOuterLevelsToo) {
  int forwards = 0;
  const auto f = Counted{&forwards}.function();
  // d/da (a * d/dw sum(w f(a))) = d/da (a f(a)) = f + a * 6ab, with the pullback's own factor.
  const auto outer = [&](const auto& a) {
    const auto inner =
        grad([&](const auto& w) { return sum(mul(w, f(a, kB))); }, V(D(Shape{2}, 1.0)));
    return sum(mul(a, inner));
  };
  EXPECT_EQ(D(grad(outer, kA)), D(Shape{2}, {20 + 120, 63 + 378}));
}

TEST(CustomVjp, ForwardModeIsTheTransposeOfThePullback) {
  int forwards = 0;
  const auto f = Counted{&forwards}.function();
  const auto [y, y_dot] = jvp([&](const auto& a, const auto& b) { return f(a, b); },
                              primals(kA, kB),
                              tangents(D(Shape{2}, {1, 0}), D(Shape{2}, {10, 1})));
  EXPECT_EQ(D(y), D(Shape{2}, {20, 63}));
  EXPECT_EQ(D(y_dot), D(Shape{2}, {60 + 40, 9}));
}

TEST(CustomVjp, BatchesInsideAndOutside) {
  int forwards = 0;
  const auto f = Counted{&forwards}.function();
  const D as(Shape{3, 2}, {2, 3, 1, 1, 4, 0});
  // b is the same for all items.
  const D ys = vmap([&](const auto& a) { return f(a, kB); }, over(as));
  EXPECT_EQ(ys, D(Shape{3, 2}, {20, 63, 5, 7, 80, 0}));
  const D inside =
      vmap([&](const auto& a) { return grad([&](const auto& v) { return sum(f(v, kB)); }, a); },
           over(V(as)));
  EXPECT_EQ(inside, D(Shape{3, 2}, {60, 126, 30, 42, 120, 0}));
  const auto [a_bar, b_bar] = grad(
      [&](const auto& a, const auto& b) {
        return sum(vmap([&](const auto& item) { return f(item, b); }, over(a)));
      },
      V(as),
      V(kB));
  EXPECT_EQ(D(a_bar), D(Shape{3, 2}, {60, 126, 30, 42, 120, 0}));
  EXPECT_EQ(D(b_bar), D(Shape{2}, {4 + 1 + 16, 9 + 1 + 0}));
}

TEST(CustomVjp, ProgramsKnowThePullbackHoweverTheyAreDifferentiated) {
  int forwards = 0;
  const auto f = Counted{&forwards}.function();
  const auto loss = [&](const auto& a, const auto& b) { return sum(f(a, b)); };
  const auto traced = compile<double>(
      [&](const auto& a, const auto& b) { return grad(loss, a, b); }, kA.shape(), kB.shape());
  Context context(traced);
  EXPECT_EQ(traced.run(context, kA, kB)[0], D(Shape{2}, {60, 126}));

  const auto reversed = compile<double>(loss, kA, kB, CompileOptions{.vjp = true});
  Context other(reversed);
  const auto results = reversed.vjp(other, kA, kB, D(Shape{}, 1.0));
  EXPECT_EQ(results[results.size() - 2], D(Shape{2}, {60, 126}));
  EXPECT_EQ(results[results.size() - 1], D(Shape{2}, {4, 9}));
}

TEST(CustomVjp, AnyResidualsWillDo) {
  const auto f =
      custom_vjp([](const auto& x) { return round(x); },
                 [](const auto& x) { return std::pair(round(x), std::string("nothing")); },
                 [](const std::string& kept, const V& y_bar) {
                   EXPECT_EQ(kept, "nothing");
                   return y_bar;
                 });
  EXPECT_EQ(D(grad([&](const auto& x) { return sum(mul(f(x), x)); }, D(Shape{2}, {1.25, 2.75}))),
            D(Shape{2}, {2.25, 5.75}));
}

TEST(CustomVjp, WrongCotangentsAreRefused) {
  const auto too_few =
      custom_vjp([](const auto& a, const auto& b) { return mul(a, b); },
                 [](const auto& a, const auto& b) { return std::pair(mul(a, b), 0); },
                 [](int, const V& y_bar) { return y_bar; });
  const auto misshapen = custom_vjp([](const auto& a) { return sum(a); },
                                    [](const auto& a) { return std::pair(sum(a), 0); },
                                    [](int, const V& y_bar) { return y_bar; });
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message([&] {
              grad([&](const auto& a) { return sum(too_few(a, kB)); }, kA);
            }).find("1 cotangents for 2 arguments"),
            std::string::npos);
  EXPECT_NE(message([&] { grad([&](const auto& a) { return misshapen(a); }, kA); }).find("(2,)"),
            std::string::npos);
}

}  // namespace
}  // namespace fenestra
