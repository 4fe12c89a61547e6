// A primitive with its kernel chosen: what a compiled program runs instead of choosing again.
#pragma once

#include <fenestra/tensor/selection.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <span>
#include <string_view>

namespace fenestra {

/// P has run_with<T>(kernel, in, data, out, workspace). Without a kernel the specification's loops
/// are all there is.
template <class P, class Kernel>
struct WithKernel {
  P primitive;
  const Kernel* kernel = nullptr;

  std::string_view kernel_name() const {
    return kernel != nullptr ? kernel->name : std::string_view();
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer& workspace,
           void*) const {
    if (kernel != nullptr) {
      primitive.run_with(*kernel, in, data, out, workspace);
    } else if constexpr (requires { primitive.template run<T>(in, data, out, workspace); }) {
      primitive.template run<T>(in, data, out, workspace);
    } else {
      primitive.template run<T>(in, data, out);
    }
  }
};

}  // namespace fenestra
