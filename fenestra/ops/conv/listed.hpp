// The specification of the convolution with its window map written down once: the same sums in the
// same order as conv/spec.hpp, an order of magnitude sooner, because which cell a tap sees does not
// depend on sample and channels. For laws that ask it a million times; a test holds it against the
// specification. Not a kernel: nothing runs on it.
#pragma once

#include <fenestra/ops/conv/spec.hpp>

#include <vector>

namespace fenestra::spec {

template <Scalar T>
class ListedConv {
 public:
  explicit ListedConv(const ConvGeometry& g) : g_(g) {
    const bool is_empty = g.batch * g.out_channels * g.group_in() == 0;
    for (Index o = 0; o < g.windows.out_cells() && !is_empty; ++o) {
      begin_.push_back(taps_.size());
      for_each_tap(g.windows, o, [&](const Tap& tap) {
        if (tap.cell >= 0) {
          taps_.push_back(tap);
        }
      });
    }
    begin_.push_back(taps_.size());
  }

  /// `b` may be null.
  Tensor<T> conv(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>* b) const {
    Tensor<T> y(g_.y_shape());
    T* out = y.mutable_data();
    const T* lhs = x.data();
    const T* rhs = w.data();
    for_each_conv_output(g_, [&](Index n, Index co, Index o) {
      T sum(0);
      for_each_term(n, co, o, [&](Index xi, Index wi) { sum = sum + lhs[xi] * rhs[wi]; });
      out[g_.y_map().at(n, co, o)] = b != nullptr ? sum + (*b)[co] : sum;
    });
    return y;
  }
  Tensor<T> input_grad(const Tensor<T>& y_bar, const Tensor<T>& w) const {
    Tensor<T> x_bar(g_.x_shape());
    T* out = x_bar.mutable_data();
    const T* rhs = w.data();
    for_each_conv_output(g_, [&](Index n, Index co, Index o) {
      const T seed = y_bar[g_.y_map().at(n, co, o)];
      for_each_term(n, co, o, [&](Index xi, Index wi) { out[xi] = out[xi] + seed * rhs[wi]; });
    });
    return x_bar;
  }
  Tensor<T> weight_grad(const Tensor<T>& x, const Tensor<T>& y_bar) const {
    Tensor<T> w_bar(g_.w_shape());
    T* out = w_bar.mutable_data();
    const T* lhs = x.data();
    for_each_conv_output(g_, [&](Index n, Index co, Index o) {
      const T seed = y_bar[g_.y_map().at(n, co, o)];
      for_each_term(n, co, o, [&](Index xi, Index wi) { out[wi] = out[wi] + seed * lhs[xi]; });
    });
    return w_bar;
  }

  /// Value, tangent where asked for (else an empty tensor) and cotangents of the convolution, or,
  /// `direction` being the input gradient, of the transposed one.
  std::vector<Tensor<T>> all(ConvDirection direction,
                             const std::vector<Tensor<T>>& in,
                             const std::vector<Tensor<T>>& dots,
                             const Tensor<T>& y_bar,
                             bool with_tangent) const {
    const bool is_forward = direction == ConvDirection::forward;
    const bool has_bias = in.size() > 2;
    const auto run = [&](const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>* b) {
      if (is_forward) {
        return conv(x, w, b);
      }
      Tensor<T> y = input_grad(x, w);
      if (b != nullptr) {
        add_channel(y, *b, g_.x_map());
      }
      return y;
    };
    std::vector<Tensor<T>> all{run(in[0], in[1], has_bias ? &in[2] : nullptr), Tensor<T>(Shape{0})};
    if (with_tangent) {
      all[1] =
          sum_of(run(dots[0], in[1], nullptr), run(in[0], dots[1], has_bias ? &dots[2] : nullptr));
    }
    all.push_back(is_forward ? input_grad(y_bar, in[1]) : conv(y_bar, in[1], nullptr));
    all.push_back(is_forward ? weight_grad(in[0], y_bar) : weight_grad(y_bar, in[0]));
    if (has_bias) {
      all.push_back(channel_sum(y_bar, is_forward ? g_.y_map() : g_.x_map()));
    }
    return all;
  }

 private:
  template <class F>
  void for_each_term(Index n, Index co, Index o, F&& f) const {
    if (g_.group_in() == 0) {
      return;  // windows were not listed
    }
    const Index group = co / g_.group_out();
    const ActivationMap x_map = g_.x_map();
    const WeightMap w_map = g_.w_map();
    const Tap* const begin = taps_.data() + begin_[static_cast<std::size_t>(o)];
    const Tap* const end = taps_.data() + begin_[static_cast<std::size_t>(o) + 1];
    for (Index w_ci = 0; w_ci < g_.group_in(); ++w_ci) {
      const Index ci = group * g_.group_in() + w_ci;
      for (const Tap* tap = begin; tap != end; ++tap) {
        f(x_map.at(n, ci, tap->cell), w_map.at(co, w_ci, tap->tap));
      }
    }
  }

  ConvGeometry g_;
  std::vector<Tap> taps_;           ///< the real ones of every window, window by window
  std::vector<std::size_t> begin_;  ///< of each window in `taps_`, and the end
};

}  // namespace fenestra::spec
