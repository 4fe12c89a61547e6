// Padding: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/pad/pad.hpp>

namespace fenestra {

template <CompiledValue V>
V pad(const V& x, const std::vector<LowHigh>& padding, const PadOptions& options) {
  return generic::pad(x, padding, options);
}
template <CompiledValue V>
V pad_adjoint(const V& y_bar,
              const Shape& shape,
              const std::vector<LowHigh>& padding,
              const PadOptions& options) {
  return generic::pad_adjoint(y_bar, shape, padding, options);
}
#define FENESTRA_PAD_CALLS(V)                                                            \
  template FENESTRA_API V pad(const V&, const std::vector<LowHigh>&, const PadOptions&); \
  template FENESTRA_API V pad_adjoint(                                                   \
      const V&, const Shape&, const std::vector<LowHigh>&, const PadOptions&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_PAD_CALLS)

}  // namespace fenestra
