// apply: runs a primitive on values of any type. The one place where eager evaluation, the tape and
// forward mode meet.
//
// A primitive is a small comparable struct (geometry, options) with
// - name: what tapes, plans and messages call it
// - result_shape(x): the shape of the result, x being that of the first input
// - run<T>(in, data, out): values on tensors, into memory it is given and overwrites whole
// - or, where derivatives need to know what the forward pass chose, workspace<T>(): form and shape
// of
//   what it leaves, and run<T>(in, data, out, buffer), the buffer empty where nobody asked
// - or, where the result is the first input under another shape, aliases_input = true and no run
// - vjp<V>(i, saved, y_bar): cotangent of input i, written with operators on V; may be a
//   std::optional<V>, empty for zero. Where the cotangents share work,
//   vjp_all<V>(saved, y_bar, needed, bars) fills them together instead
// - jvp<V>(saved, dots): tangent of the result, written with operators on V; an empty dot is zero
// - needs(i, what): whether the cotangent of input i reads input `what` (or kOutput)
//
// Since vjp and jvp are made of operators on the same value type, every order and mixture of
// derivatives follows.
#pragma once

#include <fenestra/ops/value.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra {

/// Stands for the result in `needs`.
inline constexpr int kOutput = -1;

/// What a derivative rule may look at. Inputs and output are present where `needs` asked for them.
template <Value V>
struct Saved {
  std::vector<std::optional<V>> in;
  std::optional<V> y;
  IndicesOf<V> workspace;          ///< left by the forward pass
  std::vector<IndicesOf<V>> data;  ///< integer inputs

  const V& operator[](int i) const { return *in[static_cast<std::size_t>(i)]; }
};

template <Value V>
struct Applied {
  V y;
  IndicesOf<V> workspace;
};

/// A primitive's name, by its attributes where it says so.
template <class P>
std::string_view name_of(const P& primitive) {
  if constexpr (requires { primitive.display_name(); }) {
    return primitive.display_name();
  } else {
    return P::name;
  }
}

/// True where the result is the first input's elements under another shape.
template <class P>
constexpr bool aliases_input() {
  if constexpr (requires { P::aliases_input; }) {
    return P::aliases_input;
  } else {
    return false;
  }
}

/// True where the forward pass can leave a workspace.
template <class P, class T>
constexpr bool leaves_workspace() {
  return requires(const P& p) { p.template workspace<T>(); };
}

/// Moves what a specification computed to where it belongs.
template <class T>
void store(Tensor<T> result, T* out) {
  const Index n = result.size();
  std::move(result.mutable_data(), result.mutable_data() + n, out);
}

template <class P, class T>
Applied<Tensor<T>> apply_all(const P& primitive,
                             std::span<const Tensor<T>> in,
                             std::span<const Selection> data,
                             bool keep) {
  if constexpr (aliases_input<P>()) {
    return {in[0].reshaped(primitive.result_shape(in[0].shape())), {}};
  } else {
    Tensor<T> y = Tensor<T>::uninitialised(primitive.result_shape(in[0].shape()));
    if constexpr (leaves_workspace<P, T>()) {
      Selection workspace;
      SelectionBuffer buffer;
      if (keep) {
        const SelectionType type = primitive.template workspace<T>();
        if (type.form == SelectionForm::taps) {
          auto taps = Tensor<std::uint8_t>::uninitialised(type.shape);
          buffer.taps = taps.mutable_data();
          workspace = Selection(std::move(taps));
        } else {
          auto indices = Tensor<Index>::uninitialised(type.shape);
          buffer.indices = indices.mutable_data();
          workspace = Selection(std::move(indices));
        }
      }
      primitive.template run<T>(in, data, y.mutable_data(), buffer);
      return {std::move(y), std::move(workspace)};
    } else {
      primitive.template run<T>(in, data, y.mutable_data());
      return {std::move(y), {}};
    }
  }
}

template <class P, class V>
Applied<Var<V>> apply_all(const P& primitive,
                          std::span<const Var<V>> in,
                          std::span<const IndicesOf<V>> data,
                          bool keep) {
  std::vector<V> values;
  values.reserve(in.size());
  bool recording = false;
  for (const Var<V>& input : in) {
    values.push_back(input.value());
    recording = recording || input.requires_grad();
  }
  recording = recording && detail::no_grad_depth == 0;
  Applied<V> result = apply_all(primitive, std::span<const V>(values), data, keep || recording);
  if (!recording) {
    return {Var<V>(std::move(result.y)), std::move(result.workspace)};
  }

  Saved<V> saved;
  saved.workspace = result.workspace;
  saved.data.assign(data.begin(), data.end());
  saved.in.resize(values.size());
  const int count = static_cast<int>(values.size());
  for (int i = 0; i < count; ++i) {
    if (!in[static_cast<std::size_t>(i)].requires_grad()) {
      continue;
    }
    for (int j = 0; j < count; ++j) {
      if (primitive.needs(i, j)) {
        saved.in[static_cast<std::size_t>(j)] = values[static_cast<std::size_t>(j)];
      }
    }
    if (primitive.needs(i, kOutput)) {
      saved.y = result.y;
    }
  }
  auto rule = [primitive, saved = std::move(saved)](const V& y_bar,
                                                    const std::vector<bool>& needed,
                                                    std::vector<std::optional<V>>& bars) {
    if constexpr (requires { primitive.template vjp_all<V>(saved, y_bar, needed, bars); }) {
      primitive.template vjp_all<V>(saved, y_bar, needed, bars);
    } else {
      for (std::size_t i = 0; i < needed.size(); ++i) {
        if (needed[i]) {
          bars[i] = primitive.template vjp<V>(static_cast<int>(i), saved, y_bar);
        }
      }
    }
  };
  return {record<V>(name_of(primitive), std::move(result.y), in, std::move(rule)),
          std::move(result.workspace)};
}

template <class P, class V>
Applied<Jet<V>> apply_all(const P& primitive,
                          std::span<const Jet<V>> in,
                          std::span<const IndicesOf<V>> data,
                          bool keep) {
  std::vector<V> primals;
  std::vector<std::optional<V>> dots;
  primals.reserve(in.size());
  dots.reserve(in.size());
  bool moving = false;
  for (const Jet<V>& input : in) {
    primals.push_back(input.primal());
    dots.push_back(input.tangent());
    moving = moving || input.tangent().has_value();
  }
  Applied<V> result = apply_all(primitive, std::span<const V>(primals), data, keep || moving);
  if (!moving) {
    return {Jet<V>(std::move(result.y)), std::move(result.workspace)};
  }
  Saved<V> saved;
  saved.y = result.y;
  saved.workspace = result.workspace;
  saved.data.assign(data.begin(), data.end());
  for (V& primal : primals) {
    saved.in.emplace_back(std::move(primal));
  }
  std::optional<V> tangent =
      primitive.template jvp<V>(saved, std::span<const std::optional<V>>(dots));
  return {Jet<V>(std::move(result.y), std::move(tangent)), std::move(result.workspace)};
}

/// The result of a primitive on values of one type.
template <class P, Value V>
constexpr V apply(const P& primitive,
                  std::initializer_list<V> in,
                  std::initializer_list<IndicesOf<V>> data = {}) {
  return apply_all(primitive,
                   std::span<const V>(in.begin(), in.size()),
                   std::span<const IndicesOf<V>>(data.begin(), data.size()),
                   false)
      .y;
}

/// The sum of the terms that are there; derivative rules collect their parts in it.
template <Value V>
class OptionalSum {
 public:
  void add_term(V term) {
    if (sum_) {
      accumulate(*sum_, term);
    } else {
      sum_ = std::move(term);
    }
  }
  std::optional<V> take() { return std::move(sum_); }

 private:
  std::optional<V> sum_;
};

}  // namespace fenestra
