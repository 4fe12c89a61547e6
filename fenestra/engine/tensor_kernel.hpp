// TensorKernel<T>: a kernel of a program on tensors of one scalar, with everything decided.
#pragma once

#include <fenestra/graph/operation.hpp>
#include <fenestra/tensor/selection.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <span>

namespace fenestra {

template <class T>
class TensorKernel : public graph::Kernel {
 public:
  /// Overwrites `out` whole. `scratch` has `scratch_bytes`; `packed` is what `pack_elements` wrote
  /// of the input that `packing` names, or null.
  virtual void compute(std::span<const Tensor<T>> in,
                       std::span<const Selection> data,
                       T* out,
                       const SelectionBuffer& workspace,
                       void* scratch,
                       const T* packed) const = 0;
  virtual void pack_elements(const T*, T*) const {}

  void run(const graph::Call& call) const final {
    compute(std::span<const Tensor<T>>(static_cast<const Tensor<T>*>(call.in), call.count),
            call.data,
            static_cast<T*>(call.out),
            call.workspace,
            call.scratch,
            static_cast<const T*>(call.packed));
  }
  void pack(const void* data, void* packed) const final {
    pack_elements(static_cast<const T*>(data), static_cast<T*>(packed));
  }
};

}  // namespace fenestra
