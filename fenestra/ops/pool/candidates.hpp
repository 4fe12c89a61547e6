// The candidates of the pools, for float and double. Internal: not installed.
#pragma once

#include <fenestra/ops/pool/pool.hpp>

#include <span>

namespace fenestra {

/// Fastest first, the specification last. Of max pooling, callers ensure `has_compact_winners`.
template <class T, class R>
std::span<const PoolKernel<T, R>> pool_candidates();

}  // namespace fenestra
