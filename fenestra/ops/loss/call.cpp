// Losses: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/loss/loss.hpp>

namespace fenestra {

template <CompiledValue V>
V cross_entropy(const V& x, const IndicesOf<V>& labels, const LossOptions& options) {
  return generic::cross_entropy(x, labels, options);
}
template <CompiledValue V>
V mse_loss_values(const V& x, const V& target, const LossOptions& options) {
  return generic::mse_loss_values(x, target, options);
}
template <CompiledValue V>
V bce_with_logits_values(const V& x, const V& target, const LossOptions& options) {
  return generic::bce_with_logits_values(x, target, options);
}
#define FENESTRA_LOSS_CALLS(V)                                                              \
  template FENESTRA_API V cross_entropy(const V&, const IndicesOf<V>&, const LossOptions&); \
  template FENESTRA_API V mse_loss_values(const V&, const V&, const LossOptions&);          \
  template FENESTRA_API V bce_with_logits_values(const V&, const V&, const LossOptions&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_LOSS_CALLS)

}  // namespace fenestra
