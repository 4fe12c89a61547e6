// Maxima over axes: the winners, and the linear pair that follows them.
//
//   take(x, cells, shape)    y[i] = x[cells[i]]
//   place(y, cells, shape)   x[cells[i]] += y[i]
//
// The first element that no later one beats wins; NaN beats every number. Value and derivatives
// follow that one winner.
#pragma once

#include <fenestra/ops/apply.hpp>
#include <fenestra/ops/elementwise/broadcast.hpp>
#include <fenestra/spec/scalar.hpp>

#include <string>

namespace fenestra {

template <Value V>
V take(const V& x, const IndicesOf<V>& cells, const Shape& shape);
template <Value V>
V place(const V& y, const IndicesOf<V>& cells, const Shape& shape);

/// Flat indices into a tensor of `from`, one for each element of `to`, trusted: whoever makes the
/// indices checks them.
struct TakePrimitive {
  static constexpr std::string_view name = "take";
  Shape from;
  Shape to;

  template <class T>
  Applied<Tensor<T>> eval(std::span<const Tensor<T>> in,
                          std::span<const Selection> data,
                          bool) const {
    Tensor<T> y = Tensor<T>::uninitialised(to);
    const Index* cells = data[0].indices().data();
    T* out = y.mutable_data();
    for (Index i = 0; i < y.size(); ++i) {
      out[i] = in[0][cells[i]];
    }
    return {std::move(y), {}};
  }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return place(y_bar, saved.data[0], from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return take(*dots[0], saved.data[0], to);
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const TakePrimitive&, const TakePrimitive&) = default;
};

struct PlacePrimitive {
  static constexpr std::string_view name = "place";
  Shape from;
  Shape to;

  template <class T>
  Applied<Tensor<T>> eval(std::span<const Tensor<T>> in,
                          std::span<const Selection> data,
                          bool) const {
    Tensor<T> x(to);
    const Index* cells = data[0].indices().data();
    T* out = x.mutable_data();
    for (Index i = 0; i < in[0].size(); ++i) {
      out[cells[i]] = out[cells[i]] + in[0][i];
    }
    return {std::move(x), {}};
  }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return take(y_bar, saved.data[0], from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return place(*dots[0], saved.data[0], to);
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const PlacePrimitive&, const PlacePrimitive&) = default;
};

template <Value V>
V take(const V& x, const IndicesOf<V>& cells, const Shape& shape) {
  return apply(TakePrimitive{x.shape(), shape}, {x}, {cells});
}

template <Value V>
V place(const V& y, const IndicesOf<V>& cells, const Shape& shape) {
  return apply(PlacePrimitive{y.shape(), shape}, {y}, {cells});
}

/// The maximum over the axes in which `to` is 1; none of them is empty.
struct MaxToPrimitive {
  static constexpr std::string_view name = "max_to";
  Shape from;
  Shape to;

  template <class T>
  Applied<Tensor<T>> eval(std::span<const Tensor<T>> in,
                          std::span<const Selection>,
                          bool keep) const {
    // A scalar without a total order (an interval) has an enclosed maximum, but a winner only where
    // there is no doubt; without derivatives none is asked for.
    if constexpr (!TotallyOrdered<T>) {
      if (!keep) {
        return {enclosed_maximum(in[0]), {}};
      }
    }
    Tensor<Index> winners = winners_of(in[0]);
    Tensor<T> y = Tensor<T>::uninitialised(to);
    T* out = y.mutable_data();
    for (Index i = 0; i < y.size(); ++i) {
      out[i] = in[0][winners[i]];
    }
    return {std::move(y), keep ? Selection(std::move(winners)) : Selection()};
  }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return place(y_bar, saved.workspace, from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return take(*dots[0], saved.workspace, to);
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const MaxToPrimitive&, const MaxToPrimitive&) = default;

 private:
  /// Calls visit(element of x, element of y), x in row-major order.
  template <class F>
  void for_each_element(F&& visit) const {
    if (from.elements().value_or(0) == 0) {
      return;
    }
    const BroadcastLoop<1> loop(from, {to});
    const Index n = loop.inner();
    for (Index run = 0; run < loop.outer(); ++run) {
      const Index at = loop.offset(0, run);
      for (Index i = 0; i < n; ++i) {
        visit(run * n + i, at + i * loop.inner_step(0));
      }
    }
  }
  template <class T>
  Tensor<Index> winners_of(const Tensor<T>& x) const {
    Tensor<Index> winners(to, Index{-1});
    Index* winner = winners.mutable_data();
    for_each_element([&](Index i, Index o) {
      if (winner[o] < 0 || beats(x[i], x[winner[o]])) {
        winner[o] = i;
      }
    });
    return winners;
  }
  template <class T>
  Tensor<T> enclosed_maximum(const Tensor<T>& x) const {
    Tensor<T> y(to);
    Tensor<bool> seen(to, false);
    T* out = y.mutable_data();
    bool* any = seen.mutable_data();
    for_each_element([&](Index i, Index o) {
      out[o] = any[o] ? scalar_max(out[o], x[i]) : x[i];
      any[o] = true;
    });
    return y;
  }
};

}  // namespace fenestra
