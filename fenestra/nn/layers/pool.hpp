// Pooling layers over the spatial axes of (N, C, spatial...). One number for a kernel holds on all
// of them.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/description.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/ops/pool/reduction.hpp>

#include <string_view>
#include <type_traits>

namespace fenestra::nn {

enum class FENESTRA_API PoolKind {
  max,
  avg,
  smooth_max,
  lp,
  adaptive_max,
  adaptive_avg,
  global_max,
  global_avg,
};

constexpr std::string_view pool_name(PoolKind kind) {
  switch (kind) {
    case PoolKind::max: return "max_pool";
    case PoolKind::avg: return "avg_pool";
    case PoolKind::smooth_max: return "smooth_max_pool";
    case PoolKind::lp: return "lp_pool";
    case PoolKind::adaptive_max: return "adaptive_max_pool";
    case PoolKind::adaptive_avg: return "adaptive_avg_pool";
    case PoolKind::global_max: return "global_max_pool";
    case PoolKind::global_avg: return "global_avg_pool";
  }
  return "";
}

/// A global pool has none.
struct NoPoolOptions {};

namespace detail {

template <PoolKind k>
struct PoolOptionsOf {
  using type = NoPoolOptions;
};
template <>
struct PoolOptionsOf<PoolKind::max> {
  using type = MaxPoolOptions;
};
template <>
struct PoolOptionsOf<PoolKind::avg> {
  using type = AvgPoolOptions;
};
template <>
struct PoolOptionsOf<PoolKind::smooth_max> {
  using type = SmoothMaxPoolOptions;
};
template <>
struct PoolOptionsOf<PoolKind::lp> {
  using type = LpPoolOptions;
};
template <>
struct PoolOptionsOf<PoolKind::adaptive_max> {
  using type = AdaptivePoolOptions;
};
template <>
struct PoolOptionsOf<PoolKind::adaptive_avg> {
  using type = AdaptivePoolOptions;
};

}  // namespace detail

/// The options are those of the operator: `MaxPool({.kernel = 3, .stride = 2, .padding = 1})`.
/// Global pools leave the spatial axes with extent 1.
template <class T, PoolKind k>
class FENESTRA_API BasicPool {
 public:
  using Scalar = T;
  using Options = typename detail::PoolOptionsOf<k>::type;
  static constexpr std::string_view kind = pool_name(k);
  static constexpr bool kIsGlobal = std::is_same_v<Options, NoPoolOptions>;

  BasicPool()
    requires(kIsGlobal)
  = default;
  explicit BasicPool(const Options& options)
    requires(!kIsGlobal)
      : options_(options) {}

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  Description describe() const;
  static BasicPool build(const Description& description);

 private:
  Options options_ = {};
};

template <class T>
using BasicMaxPool = BasicPool<T, PoolKind::max>;
template <class T>
using BasicAvgPool = BasicPool<T, PoolKind::avg>;
template <class T>
using BasicSmoothMaxPool = BasicPool<T, PoolKind::smooth_max>;
template <class T>
using BasicLpPool = BasicPool<T, PoolKind::lp>;
template <class T>
using BasicAdaptiveMaxPool = BasicPool<T, PoolKind::adaptive_max>;
template <class T>
using BasicAdaptiveAvgPool = BasicPool<T, PoolKind::adaptive_avg>;
template <class T>
using BasicGlobalMaxPool = BasicPool<T, PoolKind::global_max>;
template <class T>
using BasicGlobalAvgPool = BasicPool<T, PoolKind::global_avg>;

using MaxPool = BasicMaxPool<float>;
using AvgPool = BasicAvgPool<float>;
using SmoothMaxPool = BasicSmoothMaxPool<float>;
using LpPool = BasicLpPool<float>;
using AdaptiveMaxPool = BasicAdaptiveMaxPool<float>;
using AdaptiveAvgPool = BasicAdaptiveAvgPool<float>;
using GlobalMaxPool = BasicGlobalMaxPool<float>;
using GlobalAvgPool = BasicGlobalAvgPool<float>;

}  // namespace fenestra::nn
