// The elementwise functions, sums and expansions: what call.hpp declares, compiled for float and
// double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>

namespace fenestra {

void throw_clip_bounds(double least, double largest) {
  throw Error("clip",
              {.code = ErrorCode::invalid_option, .argument = Argument::none},
              "clip: least = " + std::to_string(least) + ", largest = " + std::to_string(largest) +
                  "\n  fix: least <= largest, neither a NaN");
}

template <CompiledValue V>
V unary(const UnaryCall& call, const V& x) {
  return generic::unary(call, x);
}
template <CompiledValue V>
V binary_values(BinaryFunction f, const V& a, const V& b) {
  return generic::binary_values(f, a, b);
}
template <CompiledValue V>
V sum_to(const V& x, const Shape& shape) {
  return generic::sum_to(x, shape);
}
template <CompiledValue V>
V broadcast_to(const V& x, const Shape& shape) {
  return generic::broadcast_to(x, shape);
}
#define FENESTRA_ELEMENTWISE_CALLS(V)                                        \
  template FENESTRA_API V unary(const UnaryCall&, const V&);                 \
  template FENESTRA_API V binary_values(BinaryFunction, const V&, const V&); \
  template FENESTRA_API V sum_to(const V&, const Shape&);                    \
  template FENESTRA_API V broadcast_to(const V&, const Shape&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_ELEMENTWISE_CALLS)

}  // namespace fenestra
