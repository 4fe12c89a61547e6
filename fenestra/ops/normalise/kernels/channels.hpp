// The normalisations on ranges of their groups, and as kernels that run channel by channel where
// groups are channels. Internal: not installed. Included where their rules are compiled, and where
// the loops are.
#pragma once

#include <fenestra/engine/primitive_of.hpp>
#include <fenestra/ops/channel_kernel.hpp>
#include <fenestra/ops/normalise/normalise.hpp>

#include <concepts>

namespace fenestra {

// For groups [first, end) of geometries whose groups are no columns; else as the kernels in
// normalise.hpp, sums over groups.
template <KernelScalar T>
void norm_groups(const NormVariancePrimitive& norm,
                 std::span<const Tensor<T>> in,
                 T* var,
                 Index first,
                 Index end);
template <KernelScalar T>
void norm_groups(
    const NormSumsPrimitive& norm, std::span<const Tensor<T>> in, T* sums, Index first, Index end);
template <KernelScalar T>
void norm_groups(const NormInputGradPrimitive& norm,
                 std::span<const Tensor<T>> in,
                 T* x_bar,
                 Index first,
                 Index end);
template <KernelScalar T>
void norm_groups(
    const NormalisePrimitive& norm, std::span<const Tensor<T>> in, T* y, Index first, Index end);

namespace detail {

/// Without channels where groups are others, or lie in columns.
inline graph::ChannelView norm_view(const NormGeometry& g) {
  const bool by_channels = !g.runs.columns && g.view.rank() == 3 && g.is_shared() &&
                           g.affine_is_stat() && g.stat_cells() == g.view[1] &&
                           g.view.elements().value_or(0) > 0;
  return by_channels ? graph::ChannelView{g.view[0], g.view[1], g.view[2]} : graph::ChannelView{};
}

}  // namespace detail

template <class P, KernelScalar T>
  requires std::derived_from<P, detail::NormPrimitive<P>>
class KernelOf<P, T> final : public detail::ChannelKernelOf<P, T> {
 public:
  explicit KernelOf(const P& primitive)
      : detail::ChannelKernelOf<P, T>(primitive, detail::norm_view(primitive.g)) {}

  void run_channels(const graph::Call& call, Index begin, Index end) const override {
    norm_groups(this->primitive_, this->inputs(call), static_cast<T*>(call.out), begin, end);
  }
};

}  // namespace fenestra
