// A primitive that treats channels one by one as a kernel that runs on ranges of them, too: what
// specialisations of KernelOf for channels share. Internal: not installed.
#pragma once

#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/graph/channels.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <span>

namespace fenestra::detail {

/// On whole tensors it runs as it does without a program.
template <class P, KernelScalar T>
class ChannelKernelOf : public graph::ChannelKernel {
 public:
  ChannelKernelOf(const P& primitive, const graph::ChannelView& view)
      : primitive_(primitive), view_(view) {}

  graph::ChannelView view() const final { return view_; }
  void run(const graph::Call& call) const final {
    primitive_.template run<T>(inputs(call), call.data, static_cast<T*>(call.out), call.workspace);
  }

 protected:
  static std::span<const Tensor<T>> inputs(const graph::Call& call) {
    return {static_cast<const Tensor<T>*>(call.in), call.count};
  }

  P primitive_;

 private:
  graph::ChannelView view_;
};

}  // namespace fenestra::detail
