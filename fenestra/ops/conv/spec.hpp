// Convolution, executable specification: plain loops for any scalar. Slow on purpose, never
// optimised.
//
//   y[n,co,o] = b[co] + sum over ci in the group of co, tap t of x[n, ci, o*s + t*d - pl] * w[co,
//   ci, t]
//
// cells outside the input are absent. Order of summation: ci outer, taps row-major, bias last. The
// form is trilinear in (x, w, y_bar), and each of the three functions below contracts it with two
// of them.
#pragma once

#include <fenestra/ops/conv/geometry.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

namespace fenestra::spec {

/// Calls f(n, co, ci, o, tap, cell, w_ci) for every product of the trilinear form, in the reference
/// order. `ci` is the channel of x, `w_ci` the same channel counted within its group.
template <class F>
void for_each_conv_term(const ConvGeometry& g, Index n, Index co, Index o, F&& f) {
  const Index group = co / g.group_out();
  for (Index w_ci = 0; w_ci < g.group_in(); ++w_ci) {
    const Index ci = group * g.group_in() + w_ci;
    for_each_tap(g.windows, o, Visit::real, [&](const Tap& tap) {
      f(g.x_map().at(n, ci, tap.cell), g.w_map().at(co, w_ci, tap.tap));
    });
  }
}

/// Calls f(n, co, o) for every cell of y.
template <class F>
void for_each_conv_output(const ConvGeometry& g, F&& f) {
  const Index cells = g.windows.out_cells();
  for (Index n = 0; n < (g.out_channels > 0 ? g.batch : 0); ++n) {
    for (Index co = 0; co < g.out_channels; ++co) {
      for (Index o = 0; o < cells; ++o) {
        f(n, co, o);
      }
    }
  }
}

/// y = conv(x, w) [+ b]. `b` may be null.
template <Scalar T>
Tensor<T> conv(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>* b, const ConvGeometry& g) {
  require_shape("conv", "x", x, g.x_shape());
  require_shape("conv", "w", w, g.w_shape());
  if (b != nullptr) {
    require_shape("conv", "b", *b, Shape{g.out_channels});
  }
  Tensor<T> y(g.y_shape());
  T* out = y.mutable_data();
  for_each_conv_output(g, [&](Index n, Index co, Index o) {
    T sum(0);
    for_each_conv_term(g, n, co, o, [&](Index xi, Index wi) { sum = sum + x[xi] * w[wi]; });
    out[g.y_map().at(n, co, o)] = b != nullptr ? sum + (*b)[co] : sum;
  });
  return y;
}

/// x_bar[n,ci,c] = sum over (co, o, t) that look at cell c of y_bar[n,co,o] * w[co,ci,t]. The
/// transposed convolution.
template <Scalar T>
Tensor<T> conv_input_grad(const Tensor<T>& y_bar, const Tensor<T>& w, const ConvGeometry& g) {
  require_shape("conv_input_grad", "y_bar", y_bar, g.y_shape());
  require_shape("conv_input_grad", "w", w, g.w_shape());
  Tensor<T> x_bar(g.x_shape());
  T* out = x_bar.mutable_data();
  for_each_conv_output(g, [&](Index n, Index co, Index o) {
    const T& seed = y_bar[g.y_map().at(n, co, o)];
    for_each_conv_term(g, n, co, o, [&](Index xi, Index wi) { out[xi] = out[xi] + seed * w[wi]; });
  });
  return x_bar;
}

/// w_bar[co,ci,t] = sum over (n, o) of y_bar[n,co,o] * x[n,ci,o*s + t*d - pl].
template <Scalar T>
Tensor<T> conv_weight_grad(const Tensor<T>& x, const Tensor<T>& y_bar, const ConvGeometry& g) {
  require_shape("conv_weight_grad", "x", x, g.x_shape());
  require_shape("conv_weight_grad", "y_bar", y_bar, g.y_shape());
  Tensor<T> w_bar(g.w_shape());
  T* out = w_bar.mutable_data();
  for_each_conv_output(g, [&](Index n, Index co, Index o) {
    const T& seed = y_bar[g.y_map().at(n, co, o)];
    for_each_conv_term(g, n, co, o, [&](Index xi, Index wi) { out[wi] = out[wi] + seed * x[xi]; });
  });
  return w_bar;
}

/// b_bar[c] = sum over batch and space of y_bar[n,c,o]; the channels of `map` are those of the
/// bias.
template <Scalar T>
Tensor<T> channel_sum(const Tensor<T>& y_bar, const ActivationMap& map) {
  Tensor<T> b_bar(Shape{map.channels});
  T* out = b_bar.mutable_data();
  for (Index n = 0; n < (map.channels > 0 ? map.batch : 0); ++n) {
    for (Index c = 0; c < map.channels; ++c) {
      for (Index cell = 0; cell < map.cells; ++cell) {
        out[c] = out[c] + y_bar[map.at(n, c, cell)];
      }
    }
  }
  return b_bar;
}

/// y[n,c,o] += b[c], the adjoint of `channel_sum`.
template <Scalar T>
void add_channel(Tensor<T>& y, const Tensor<T>& b, const ActivationMap& map) {
  T* out = y.mutable_data();
  for (Index n = 0; n < (map.channels > 0 ? map.batch : 0); ++n) {
    for (Index c = 0; c < map.channels; ++c) {
      for (Index cell = 0; cell < map.cells; ++cell) {
        const Index i = map.at(n, c, cell);
        out[i] = out[i] + b[c];
      }
    }
  }
}

/// a + b, elementwise.
template <Scalar T>
Tensor<T> sum_of(Tensor<T> a, const Tensor<T>& b) {
  require_shape("sum", "b", b, a.shape());
  T* out = a.mutable_data();
  for (Index i = 0; i < a.size(); ++i) {
    out[i] = out[i] + b[i];
  }
  return a;
}

/// Gradients of a convolution or transposed convolution; `b_bar` is meaningful where there is a
/// bias.
template <Scalar T>
struct ConvGrads {
  Tensor<T> x_bar;
  Tensor<T> w_bar;
  Tensor<T> b_bar;
};

template <Scalar T>
ConvGrads<T> conv_vjp(const Tensor<T>& x,
                      const Tensor<T>& w,
                      const Tensor<T>& y_bar,
                      const ConvGeometry& g) {
  return {
      conv_input_grad(y_bar, w, g), conv_weight_grad(x, y_bar, g), channel_sum(y_bar, g.y_map())};
}

/// y_dot = conv(x_dot, w) + conv(x, w_dot) [+ b_dot]. `b_dot` may be null.
template <Scalar T>
Tensor<T> conv_jvp(const Tensor<T>& x,
                   const Tensor<T>& w,
                   const Tensor<T>& x_dot,
                   const Tensor<T>& w_dot,
                   const Tensor<T>* b_dot,
                   const ConvGeometry& g) {
  return sum_of(conv<T>(x_dot, w, nullptr, g), conv(x, w_dot, b_dot, g));
}

template <Scalar T>
Tensor<T> conv(const Tensor<T>& x, const Tensor<T>& w, const ConvOptions& options = {}) {
  return conv<T>(x, w, nullptr, conv_geometry(x.shape(), w.shape(), std::nullopt, options));
}

template <Scalar T>
Tensor<T> conv(const Tensor<T>& x,
               const Tensor<T>& w,
               const Tensor<T>& b,
               const ConvOptions& options = {}) {
  return conv<T>(x, w, &b, conv_geometry(x.shape(), w.shape(), b.shape(), options));
}

}  // namespace fenestra::spec
