// A primitive with its kernel chosen: what a compiled program runs instead of choosing again.
#pragma once

#include <fenestra/engine/tensor_kernel.hpp>

#include <span>
#include <string_view>

namespace fenestra {

/// P has run_with(candidate, in, data, out, workspace). Without a candidate the specification's
/// loops are all there is.
template <class P, class T, class Candidate>
class WithKernel final : public TensorKernel<T> {
 public:
  WithKernel(const P& primitive, const Candidate* candidate)
      : primitive_(primitive), candidate_(candidate) {}

  std::string_view name() const override {
    return candidate_ != nullptr ? candidate_->name : std::string_view();
  }
  void compute(std::span<const Tensor<T>> in,
               std::span<const Selection> data,
               T* out,
               const SelectionBuffer& workspace,
               void*,
               const T*) const override {
    if (candidate_ != nullptr) {
      primitive_.run_with(*candidate_, in, data, out, workspace);
    } else {
      primitive_.template run<T>(in, data, out, workspace);
    }
  }

 private:
  P primitive_;
  const Candidate* candidate_;
};

}  // namespace fenestra
