// Chains of elementwise operations in one loop: what one hands to the next stays in the first-level
// cache and takes no memory of the program.
//
// A chain is an operation like any other, made of the operations that were there. Its kernel runs
// theirs on one strip of elements after another; an element has the same bits wherever a range
// begins, so a chain has the bits of its members. Which operations can be members is asked of their
// kernels; why chains look as they do is told in docs/decisions/0030-elementwise-chains.md.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>
#include <fenestra/graph/operation.hpp>

#include <span>

namespace fenestra::graph {

/// The kernel of an operation that computes each element of its result from the same element of
/// inputs of the result's shape, and from others that are repeated over it.
class FENESTRA_API ElementwiseKernel : public Kernel {
 public:
  /// Elements [begin, begin + count) of the result into `out`, in the calling thread. `in[i]`
  /// points to element `begin` of an input that has the result's shape, to the first one of any
  /// other. `out` may be the memory of an input of the result's shape. The same bits as `run`.
  virtual void run_range(std::span<const void* const> in,
                         Index begin,
                         Index count,
                         void* out) const = 0;
};

/// Elementwise operations of one result shape, whose inner values nobody else reads, as chains.
/// Keeps the order of everything else, and moves no member where that would take more memory.
FENESTRA_API Graph chain_elementwise(const Graph& graph);

}  // namespace fenestra::graph
