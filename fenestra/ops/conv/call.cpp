// Convolution: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/conv/conv.hpp>

namespace fenestra {

void throw_spatial_rank(std::string_view op, const Shape& w, int rank) {
  throw Error(std::string(op),
              check_spatial_rank(w, rank),
              std::string(op) + ": w = " + to_string(w) + " has " + std::to_string(w.rank()) +
                  " axes, needed " + std::to_string(rank + 2) + "\n  fix: a weight with " +
                  std::to_string(rank) + " spatial axes, or conv");
}

template <CompiledValue V>
V conv_values(const V& x, const V& w, const V* b, const ConvOptions& options) {
  return generic::conv_values(x, w, b, options);
}
#define FENESTRA_CONV_CALLS(V) \
  template FENESTRA_API V conv_values(const V&, const V&, const V*, const ConvOptions&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_CONV_CALLS)

}  // namespace fenestra
