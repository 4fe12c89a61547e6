// Matrix products: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/matmul/einsum.hpp>
#include <fenestra/ops/matmul/matmul.hpp>

namespace fenestra {

template <CompiledValue V>
V matmul_values(const V& a, const V& b, const MatMulOptions& options) {
  return generic::matmul_values(a, b, options);
}
template <CompiledValue V>
V linear_values(const V& x, const V& w, const V* b) {
  return generic::linear_values(x, w, b);
}
template <CompiledValue V>
V einsum_values(std::string_view text, const V& a, const V& b) {
  return generic::einsum_values(text, a, b);
}
template <CompiledValue V>
V einsum(std::string_view text, const V& x) {
  return generic::einsum(text, x);
}
#define FENESTRA_MATMUL_CALLS(V)                                                   \
  template FENESTRA_API V matmul_values(const V&, const V&, const MatMulOptions&); \
  template FENESTRA_API V linear_values(const V&, const V&, const V*);             \
  template FENESTRA_API V einsum_values(std::string_view, const V&, const V&);     \
  template FENESTRA_API V einsum(std::string_view, const V&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_MATMUL_CALLS)

}  // namespace fenestra
