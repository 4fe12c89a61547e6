// The normalisations on ranges of their groups, and as kernels that run channel by channel where
// groups are channels. Internal: not installed. Included where their rules are compiled, and where
// the loops are.
#pragma once

#include <fenestra/engine/primitive_of.hpp>
#include <fenestra/ops/channel_kernel.hpp>
#include <fenestra/ops/normalise/normalise.hpp>

namespace fenestra {

// For groups [first, end) of geometries whose groups are no columns; else as the kernels in
// normalise.hpp, sums over groups.

template <KernelScalar T>
void norm_variance_of_groups(
    const NormGeometry& g, const T* x, const T* mean, T* var, Index first, Index end);
template <KernelScalar T>
void normalise_groups(const NormGeometry& g,
                      const T* x,
                      const T* mean,
                      const T* var,
                      const T* gamma,
                      const T* beta,
                      T* y,
                      Index first,
                      Index end);
template <KernelScalar T>
void norm_sums_of_groups(const NormGeometry& g,
                         const T* u,
                         const T* x,
                         const T* mean,
                         const T* var,
                         T* sums,
                         Index first,
                         Index end);
template <KernelScalar T>
void norm_input_grad_of_groups(const NormGeometry& g,
                               const T* v,
                               const T* x,
                               const T* mean,
                               const T* var,
                               const T* sums,
                               const T* gamma,
                               T* x_bar,
                               Index first,
                               Index end);

namespace detail {

/// Without channels where groups are others, or lie in columns.
inline graph::ChannelView norm_view(const NormGeometry& g) {
  const bool by_channels = !g.runs.columns && g.view.rank() == 3 && g.is_shared() &&
                           g.affine_is_stat() && g.stat_cells() == g.view[1] &&
                           g.view.elements().value_or(0) > 0;
  return by_channels ? graph::ChannelView{g.view[0], g.view[1], g.view[2]} : graph::ChannelView{};
}

/// What they share.
template <class P, KernelScalar T>
class NormKernelOf : public ChannelKernelOf<P, T> {
 public:
  explicit NormKernelOf(const P& primitive)
      : ChannelKernelOf<P, T>(primitive, norm_view(primitive.g)) {}
};

}  // namespace detail

template <KernelScalar T>
class KernelOf<NormVariancePrimitive, T> final
    : public detail::NormKernelOf<NormVariancePrimitive, T> {
 public:
  using detail::NormKernelOf<NormVariancePrimitive, T>::NormKernelOf;

  void run_channels(const graph::Call& call, Index begin, Index end) const override {
    const auto in = this->inputs(call);
    norm_variance_of_groups(
        this->primitive_.g, in[0].data(), in[1].data(), static_cast<T*>(call.out), begin, end);
  }
};

template <KernelScalar T>
class KernelOf<NormalisePrimitive, T> final : public detail::NormKernelOf<NormalisePrimitive, T> {
 public:
  using detail::NormKernelOf<NormalisePrimitive, T>::NormKernelOf;

  void run_channels(const graph::Call& call, Index begin, Index end) const override {
    const auto in = this->inputs(call);
    const bool affine = in.size() > 3;
    normalise_groups(this->primitive_.g,
                     in[0].data(),
                     in[1].data(),
                     in[2].data(),
                     affine ? in[3].data() : nullptr,
                     affine ? in[4].data() : nullptr,
                     static_cast<T*>(call.out),
                     begin,
                     end);
  }
};

template <KernelScalar T>
class KernelOf<NormSumsPrimitive, T> final : public detail::NormKernelOf<NormSumsPrimitive, T> {
 public:
  using detail::NormKernelOf<NormSumsPrimitive, T>::NormKernelOf;

  void run_channels(const graph::Call& call, Index begin, Index end) const override {
    const auto in = this->inputs(call);
    norm_sums_of_groups(this->primitive_.g,
                        in[0].data(),
                        in[1].data(),
                        in[2].data(),
                        in[3].data(),
                        static_cast<T*>(call.out),
                        begin,
                        end);
  }
};

template <KernelScalar T>
class KernelOf<NormInputGradPrimitive, T> final
    : public detail::NormKernelOf<NormInputGradPrimitive, T> {
 public:
  using detail::NormKernelOf<NormInputGradPrimitive, T>::NormKernelOf;

  void run_channels(const graph::Call& call, Index begin, Index end) const override {
    const auto in = this->inputs(call);
    norm_input_grad_of_groups(this->primitive_.g,
                              in[0].data(),
                              in[1].data(),
                              in[2].data(),
                              in[3].data(),
                              in[4].data(),
                              in.size() > 5 ? in[5].data() : nullptr,
                              static_cast<T*>(call.out),
                              begin,
                              end);
  }
};

}  // namespace fenestra
