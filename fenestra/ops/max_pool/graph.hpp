// Winners of a graph's max pools as indices that people and max_unpool read.
#pragma once

#include <fenestra/ops/graph_values.hpp>
#include <fenestra/ops/max_pool/winners.hpp>

#include <algorithm>

namespace fenestra::graph {

struct WinnerIndices {
  static constexpr std::string_view name = "winner_indices";
  PoolGeometry pool;

  Shape result_shape() const { return pool.y_shape(); }
  void run(const Selection& winners, Index* out, void*) const {
    if (winners.is_compact()) {
      expand_winners(winners.taps().data(), pool, out);
    } else {
      std::copy_n(winners.indices().data(), winners.indices().size(), out);
    }
  }
  friend bool operator==(const WinnerIndices&, const WinnerIndices&) = default;
};

inline Data winner_indices(const Data& winners, const PoolGeometry& pool) {
  if (winners.is_constant()) {
    return fenestra::winner_indices(winners.constant(), pool);
  }
  return apply_to_data(WinnerIndices{pool}, winners);
}

}  // namespace fenestra::graph
