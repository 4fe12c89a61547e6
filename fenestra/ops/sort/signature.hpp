// Sorting for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/signature.hpp>
#include <fenestra/ops/sort/sort.hpp>

#include <utility>

namespace fenestra {

struct SortSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    constexpr std::string_view kResult = "tuple[Tensor, IntArray]";
    declarer.function(
        {.name = "sort",
         .text = "The elements of an axis in order, and their places in the input. Of equals the "
                 "earlier comes first; NaN is above every number.",
         .shapes = "input (any) -> (the same), integers (the same)",
         .example = ">>> fn.sort(fn.tensor([3., 1., 2.]))\n"
                    "(Tensor([1., 2., 3.], dtype=float64), array([1, 2, 0]))",
         .result = kResult},
        []<class V>(const V& x, const SortOptions& o) { return both(sort_with_indices(x, o)); },
        Input{"input"},
        Options<SortOptions>{});
    declarer.function(
        {.name = "topk",
         .text = "The k largest elements of an axis, the largest first, or the k least, and their "
                 "places in the input; ties and NaN as in sort.",
         .shapes = "input (any) -> k on the axis, integers (the same)",
         .example = ">>> fn.topk(fn.tensor([3., 1., 2.]), 2)\n"
                    "(Tensor([3., 2.], dtype=float64), array([0, 2]))",
         .result = kResult},
        []<class V>(const V& x, Index k, const TopkOptions& o) { return both(topk(x, k, o)); },
        Input{"input"},
        Plain<Index>{.name = "k"},
        Options<TopkOptions>{});
  }

 private:
  template <class V>
  static signature::WithIndices<V> both(Sorted<V> sorted) {
    return {std::move(sorted.values), std::move(sorted.indices)};
  }
};

}  // namespace fenestra
