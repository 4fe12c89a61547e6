// Matrix products, for those who call them; derivatives and other scalars: matmul.hpp, einsum.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/spec/options.hpp>

#include <string_view>

namespace fenestra {

struct MatMulOptions {
  bool transpose_a = false;  ///< of the last two axes; not of a vector
  bool transpose_b = false;

  friend constexpr bool operator==(const MatMulOptions&, const MatMulOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = MatMulOptions;
    field("transpose_a",
          &O::transpose_a,
          {.help = "whether the last two axes of a are swapped", .place = Place::by_keyword});
    field("transpose_b",
          &O::transpose_b,
          {.help = "whether the last two axes of b are swapped", .place = Place::by_keyword});
  }
};

template <CompiledValue V>
FENESTRA_API V matmul_values(const V& a, const V& b, const MatMulOptions& options);
inline namespace generic {
template <AnyValue V>
constexpr V linear_values(const V& x, const V& w, const V* b);
template <AnyValue V>
V einsum_values(std::string_view text, const V& a, const V& b);
}  // namespace generic
/// `b` may be null.
template <CompiledValue V>
FENESTRA_API V linear_values(const V& x, const V& w, const V* b);
template <CompiledValue V>
FENESTRA_API V einsum_values(std::string_view text, const V& a, const V& b);

/// The product over the last axis of a and the last but one of b, leading axes broadcast. A vector
/// (rank 1) is a row on the left and a column on the right, and its axis is dropped again.
template <AnyValue A, AnyValue B>
constexpr CommonValue<A, B> matmul(const A& a, const B& b, const MatMulOptions& options = {}) {
  return matmul_values<CommonValue<A, B>>(a, b, options);
}

/// x w' + b: w is (out, in), b (out), x has any leading axes.
template <AnyValue X, AnyValue W, AnyValue B>
constexpr CommonValue<X, W, B> linear(const X& x, const W& w, const B& b) {
  using V = CommonValue<X, W, B>;
  const V& bias = b;
  return linear_values<V>(x, w, &bias);
}
template <AnyValue X, AnyValue W>
constexpr CommonValue<X, W> linear(const X& x, const W& w) {
  return linear_values<CommonValue<X, W>>(x, w, nullptr);
}

/// Sums of products by letters: "ij,jk->ik", "bij->bji", "ij->". See einsum.hpp.
template <CompiledValue V>
FENESTRA_API V einsum(std::string_view text, const V& x);
template <AnyValue A, AnyValue B>
CommonValue<A, B> einsum(std::string_view text, const A& a, const B& b) {
  return einsum_values<CommonValue<A, B>>(text, a, b);
}

}  // namespace fenestra
