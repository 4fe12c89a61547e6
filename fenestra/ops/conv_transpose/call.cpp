// Transposed convolution: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/conv_transpose/conv_transpose.hpp>

namespace fenestra {

template <CompiledValue V>
V conv_transpose_values(const V& x, const V& w, const V* b, const ConvTransposeOptions& options) {
  return generic::conv_transpose_values(x, w, b, options);
}
#define FENESTRA_CONV_TRANSPOSE_CALLS(V)         \
  template FENESTRA_API V conv_transpose_values( \
      const V&, const V&, const V*, const ConvTransposeOptions&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_CONV_TRANSPOSE_CALLS)

}  // namespace fenestra
