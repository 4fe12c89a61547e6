// The elementwise functions as kernels that run on ranges of elements, too, for chains of them.
// Internal: not installed. Included where their rules are compiled, and nowhere else.
#pragma once

#include <fenestra/engine/primitive_of.hpp>
#include <fenestra/graph/chain.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/elementwise/kernels/loops.hpp>

#include <algorithm>
#include <array>
#include <span>

namespace fenestra {

namespace detail {

/// What they share: on whole tensors they run as they do without a program.
template <class P, class T>
class ElementwiseKernelOf : public graph::ElementwiseKernel {
 public:
  explicit ElementwiseKernelOf(const P& primitive) : primitive_(primitive) {
    kernels::apply_isa_limit();
  }
  void run(const graph::Call& call) const final {
    const std::span<const Tensor<T>> in(static_cast<const Tensor<T>*>(call.in), call.count);
    primitive_.template run<T>(in, call.data, static_cast<T*>(call.out), call.workspace);
  }

 protected:
  P primitive_;
};

}  // namespace detail

template <KernelScalar T>
class KernelOf<UnaryPrimitive, T> final : public detail::ElementwiseKernelOf<UnaryPrimitive, T> {
 public:
  using detail::ElementwiseKernelOf<UnaryPrimitive, T>::ElementwiseKernelOf;

  void run_range(std::span<const void* const> in, Index, Index count, void* out) const override {
    detail::elementwise_loops<T>().unary(
        this->primitive_.call, static_cast<const T*>(in[0]), static_cast<T*>(out), count);
  }
};

template <KernelScalar T>
class KernelOf<GatePrimitive, T> final : public detail::ElementwiseKernelOf<GatePrimitive, T> {
 public:
  using detail::ElementwiseKernelOf<GatePrimitive, T>::ElementwiseKernelOf;

  void run_range(std::span<const void* const> in, Index, Index count, void* out) const override {
    detail::elementwise_loops<T>().gate(this->primitive_.call,
                                        static_cast<const T*>(in[0]),
                                        static_cast<const T*>(in[1]),
                                        static_cast<T*>(out),
                                        count);
  }
};

template <KernelScalar T>
class KernelOf<BinaryPrimitive, T> final : public detail::ElementwiseKernelOf<BinaryPrimitive, T> {
 public:
  explicit KernelOf(const BinaryPrimitive& primitive)
      : detail::ElementwiseKernelOf<BinaryPrimitive, T>(primitive),
        loop_(primitive.shape, {primitive.a, primitive.b}),
        follows_{primitive.a == primitive.shape, primitive.b == primitive.shape} {}

  void run_range(std::span<const void* const> in,
                 Index begin,
                 Index count,
                 void* out) const override {
    const auto& run = detail::elementwise_loops<T>().binary;
    const Index inner = loop_.inner();
    // The range may begin and end within a line of the loop.
    Index line = begin / inner;
    Index first = begin - line * inner;
    for (Index done = 0; done < count; first = 0, ++line) {
      const Index n = std::min(inner - first, count - done);
      const auto operand = [&](std::size_t k) -> detail::RunOperand<T> {
        const Index step = loop_.inner_step(k);
        const Index offset = follows_[k] ? done : loop_.offset(k, line) + first * step;
        return {static_cast<const T*>(in[k]) + offset, step};
      };
      run(this->primitive_.f, operand(0), operand(1), static_cast<T*>(out) + done, n);
      done += n;
    }
  }

 private:
  BroadcastLoop<2> loop_;
  std::array<bool, 2> follows_;  ///< operands that have the result's shape
};

}  // namespace fenestra
