// What the tests of the pools' kernels share: instruction sets, numbers, and comparison with a
// bound. Not installed.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::testing_pools {

/// Runs `f` at every instruction set that this machine has and kernels are compiled for, the
/// portable code included.
template <class F>
void at_every_target(const F& f) {
  for (const std::string_view isa : kernels::supported_isas()) {
    SCOPED_TRACE(isa);
    const kernels::ScopedIsa scope(isa);
    f();
  }
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
Tensor<T> random_tensor(Random& random, const Shape& shape) {
  Tensor<T> t(shape);
  for (T& v : t.mutable_values()) {
    v = static_cast<T>(2 * random.real());
  }
  return t;
}

template <class T>
Tensor<long double> widen(const Tensor<T>& t) {
  return t.map([](T v) { return static_cast<long double>(v); });
}

/// u the unit roundoff of T: m*u/(1 - m*u).
template <class T>
long double gamma(Index m) {
  const long double mu = static_cast<long double>(m) * (std::numeric_limits<T>::epsilon() / 2.0L);
  return mu / (1 - mu);
}

/// The first element further from the exact one than its bound; infinities and NaN must match.
template <class T, class Bound>
std::string first_outside(const T* got, const Tensor<long double>& exact, const Bound& bound) {
  for (Index i = 0; i < exact.size(); ++i) {
    const auto g = static_cast<long double>(got[i]);
    const bool fine = std::isnan(exact[i])   ? std::isnan(g)
                      : std::isinf(exact[i]) ? g == exact[i]
                                             : std::fabs(g - exact[i]) <= bound(i);
    if (!fine) {
      return "element " + std::to_string(i) + ": " + std::to_string(g) + ", needed " +
             std::to_string(exact[i]) + " within " + std::to_string(static_cast<double>(bound(i)));
    }
  }
  return {};
}

/// Every rest of a division by the lanes, below and above one and two vectors: 1 .. 2*lanes + 3.
inline std::vector<Index> widths() {
  std::vector<Index> all;
  for (Index width = 1; width <= 35; ++width) {
    if (width <= 19 || width >= 31) {  // up to 8 lanes, and around two vectors of 16
      all.push_back(width);
    }
  }
  return all;
}

/// Problems whose rows end at every lane of a vector, in both layouts.
inline std::vector<std::string> tails(Index width) {
  std::vector<std::string> texts;
  for (const std::string options :
       {" kernel=3,3 stride=1,1 padding=1",
        " kernel=3,3 stride=2,2 padding=1",
        " kernel=2,2 stride=2,2 padding=1",
        " kernel=1,2 stride=1,3 padding=0,1",
        " kernel=2,3 stride=1,2 dilation=2,3 padding=2,6 ceil_mode=true",
        " kernel=4,5 stride=3,4 padding=3,4 ceil_mode=true"}) {
    texts.push_back("x=1x2x4x" + std::to_string(width) + options);
    texts.push_back("x=1x4x5x" + std::to_string(width) + options + " layout=channels_last");
    texts.push_back("x=1x4x5x" + std::to_string(width + 30) + options + " layout=channels_last");
  }
  return texts;
}

/// Problems with short rows: planes that are cut into blocks, that are taken together with a last
/// group that is not full, and of other ranks. Channels last, rows that are cut.
inline std::vector<std::string> planes() {
  return {"x=2x2x300x30 kernel=3 stride=2 padding=1",
          "x=1x2x301x29 kernel=2,3 stride=1,2 padding=1,0",
          "x=1x1x500x37 kernel=3 stride=3 padding=1 ceil_mode=true",
          "x=1x1x700x13 kernel=2,2 stride=3,3 dilation=4,5",
          "x=1x101x10x10 kernel=2",
          "x=1x203x5x6 kernel=3 stride=1 padding=1",
          "x=1x67x9x7 kernel=3,2 stride=2 padding=1,0 dilation=1,2",
          "x=1x3x20x21x22 kernel=2",
          "x=1x2x9x40x17 kernel=3 stride=2,2,1 padding=1",
          "x=1x2x5x6x7x8 kernel=2 stride=1,2,2,2 padding=1,0,1,0",
          "x=1x300x19 kernel=3 stride=2 padding=1 batched=true",
          "x=2x5x70x67 kernel=3 stride=1 padding=1 layout=channels_last",
          "x=1x4x150x40 kernel=2,5 stride=1,2 padding=1,3 dilation=1,2 layout=channels_last",
          "x=1x3x4x60x41 kernel=2,3,3 stride=1,2,3 padding=1 layout=channels_last"};
}

/// NaN and infinities in every place of a row, one at a time: f(text, place, special).
template <class T, class F>
void special_places(const F& f) {
  const T infinity = std::numeric_limits<T>::infinity();
  for (const Index width : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 35}) {
    for (const std::string options : {" kernel=3 stride=1 padding=1",
                                      " kernel=2 stride=2 padding=1",
                                      " kernel=3 stride=2 padding=1"}) {
      const std::string text = "x=1x1x" + std::to_string(width) + options + " batched=true";
      for (Index place = 0; place < width; ++place) {
        for (const T special : {std::numeric_limits<T>::quiet_NaN(), infinity, -infinity}) {
          f(text, place, special);
        }
      }
    }
  }
}

/// The same bits from `run` (which returns a vector) with 1, 2 and 7 threads.
template <class Run>
void expect_thread_invariance(const Run& run, const std::string& what) {
  const int before = threads();
  set_threads(1);
  const auto alone = run();
  for (const int n : {2, 7}) {
    set_threads(n);
    EXPECT_TRUE(same_bits(alone, run())) << what << " with " << n << " threads";
  }
  set_threads(before);
}

}  // namespace fenestra::testing_pools
