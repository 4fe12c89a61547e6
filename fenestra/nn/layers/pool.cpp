// Pooling layers.
#include <fenestra/nn/layers/fields.hpp>
#include <fenestra/nn/layers/pool.hpp>
#include <fenestra/nn/layers/reach.hpp>
#include <fenestra/ops/pool/call.hpp>
#include <fenestra/spec/window.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace fenestra::nn {

template <class A>
void list_fields(const NoPoolOptions&, A&&) {}

template <class T, PoolKind k>
Value<T> BasicPool<T, k>::operator()(const Value<T>& x) const {
  // A layer is given batches, which says how many axes one number for a kernel is meant for.
  const int rank = x.rank() - 2;
  if (rank < 1) {
    throw Error(
        std::string(kind),
        {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = x.rank(), .needed = 3},
        "layer \"" + std::string(kind) + "\": x = " + to_string(x.shape()) +
            " has no space to pool\n  fix: (N, C, spatial...)");
  }
  if constexpr (k == PoolKind::max) {
    return max_pool(x, options_, rank);
  } else if constexpr (k == PoolKind::avg) {
    return avg_pool(x, options_, rank);
  } else if constexpr (k == PoolKind::smooth_max) {
    return smooth_max_pool(x, options_, rank);
  } else if constexpr (k == PoolKind::lp) {
    return lp_pool(x, options_, rank);
  } else if constexpr (k == PoolKind::adaptive_max) {
    return adaptive_max_pool(x, options_, rank);
  } else if constexpr (k == PoolKind::adaptive_avg) {
    return adaptive_avg_pool(x, options_, rank);
  } else if constexpr (k == PoolKind::global_max) {
    return adaptive_max_pool(x, global_pool(), rank);
  } else {
    return adaptive_avg_pool(x, global_pool(), rank);
  }
}

template <class T, PoolKind k>
Value<T> BasicPool<T, k>::operator()(const Value<T>& x, Pass<T>& pass) const {
  Value<T> y = (*this)(x);
  if (!pass.is_observed()) {
    return y;
  }
  LayerReach reach{.whole = kIsGlobal};
  if constexpr (!kIsGlobal) {
    for (int axis = 0; axis < x.rank() - 2; ++axis) {
      if constexpr (requires { options_.kernel; }) {
        const PerAxis& stride = options_.stride.is_given() ? options_.stride : options_.kernel;
        reach.axes.push_back(
            window_reach(options_.kernel[axis], stride[axis], options_.dilation[axis]));
      } else {
        const Index in = x.shape()[axis + 2];
        const Index out = y.shape()[axis + 2];
        const WindowAxis bins = resolve_adaptive(in, out, axis).axis;
        Index extent = 1;
        for (Index o = 0; o < out; ++o) {
          extent = std::max(extent, bins.needed_cells({o, o + 1}).count());
        }
        reach.axes.push_back(
            {static_cast<double>(extent), static_cast<double>(in) / static_cast<double>(out)});
      }
    }
  }
  return pass.observed(kind, x, std::move(y), reach);
}

template <class T, PoolKind k>
Description BasicPool<T, k>::describe() const {
  return describe_layer(kind, options_);
}

template <class T, PoolKind k>
BasicPool<T, k> BasicPool<T, k>::build(const Description& description) {
  FieldReader reader(description);
  if constexpr (kIsGlobal) {
    reader.finish();
    return BasicPool();
  } else {
    const auto options = reader.options<Options>();
    reader.finish();
    return BasicPool(options);
  }
}

template class BasicPool<float, PoolKind::max>;
template class BasicPool<double, PoolKind::max>;
template class BasicPool<float, PoolKind::avg>;
template class BasicPool<double, PoolKind::avg>;
template class BasicPool<float, PoolKind::smooth_max>;
template class BasicPool<double, PoolKind::smooth_max>;
template class BasicPool<float, PoolKind::lp>;
template class BasicPool<double, PoolKind::lp>;
template class BasicPool<float, PoolKind::adaptive_max>;
template class BasicPool<double, PoolKind::adaptive_max>;
template class BasicPool<float, PoolKind::adaptive_avg>;
template class BasicPool<double, PoolKind::adaptive_avg>;
template class BasicPool<float, PoolKind::global_max>;
template class BasicPool<double, PoolKind::global_max>;
template class BasicPool<float, PoolKind::global_avg>;
template class BasicPool<double, PoolKind::global_avg>;

}  // namespace fenestra::nn
