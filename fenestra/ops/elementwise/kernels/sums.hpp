// Sums over all samples and cells of a channel as a kernel that runs channel by channel. Internal:
// not installed. Included where the rules are compiled, and where the loops are.
#pragma once

#include <fenestra/engine/primitive_of.hpp>
#include <fenestra/ops/channel_kernel.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>

namespace fenestra {

/// Sums of channels [begin, end), the bits of `sum_to_kernel`.
template <KernelScalar T>
void sum_channels(const T* x, T* out, const graph::ChannelView& view, Index begin, Index end);

template <KernelScalar T>
class KernelOf<SumToPrimitive, T> final : public detail::ChannelKernelOf<SumToPrimitive, T> {
 public:
  explicit KernelOf(const SumToPrimitive& primitive)
      : detail::ChannelKernelOf<SumToPrimitive, T>(primitive, view_of(primitive)) {}

  void run_channels(const graph::Call& call, Index begin, Index end) const override {
    sum_channels(this->inputs(call)[0].data(), static_cast<T*>(call.out), this->view(), begin, end);
  }

 private:
  /// With one of anything axes merge, and sums are others.
  static graph::ChannelView view_of(const SumToPrimitive& sum) {
    const Shape& from = sum.from;
    const bool by_channels = from.rank() == 3 && from[0] > 1 && from[1] > 1 && from[2] > 1 &&
                             sum.to == Shape{1, from[1], 1};
    return by_channels ? graph::ChannelView{from[0], from[1], from[2]} : graph::ChannelView{};
  }
};

}  // namespace fenestra
