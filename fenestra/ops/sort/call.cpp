// Sorting: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/sort/sort.hpp>

namespace fenestra {

template <CompiledValue V>
V sort(const V& x, const SortOptions& options) {
  return generic::sort(x, options);
}
template <CompiledValue V>
Sorted<V> sort_with_indices(const V& x, const SortOptions& options) {
  return generic::sort_with_indices(x, options);
}
template <CompiledValue V>
Sorted<V> topk(const V& x, Index count, const TopkOptions& options) {
  return generic::topk(x, count, options);
}
#define FENESTRA_SORT_CALLS(V)                                                     \
  template FENESTRA_API V sort(const V&, const SortOptions&);                      \
  template FENESTRA_API Sorted<V> sort_with_indices(const V&, const SortOptions&); \
  template FENESTRA_API Sorted<V> topk(const V&, Index, const TopkOptions&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_SORT_CALLS)

}  // namespace fenestra
