// Max unpooling by indices of a graph, given for each run or computed by it.
#pragma once

#include <fenestra/ops/graph_values.hpp>
#include <fenestra/ops/max_unpool/max_unpool.hpp>
#include <fenestra/ops/require.hpp>

#include <algorithm>
#include <cstdint>

namespace fenestra::graph {

struct LastWriters {
  static constexpr std::string_view name = "last_writers";
  MaxUnpoolGeometry g;

  Shape result_shape() const { return g.x_shape(); }
  std::size_t scratch_bytes() const {
    return g.batch == 0 || g.channels == 0 ? 0 : static_cast<std::size_t>(g.y_map().cells);
  }
  void run(const Selection& indices, Index* out, void* scratch) const {
    std::copy_n(indices.indices().data(), indices.indices().size(), out);
    spec::drop_overwritten(out, g, static_cast<std::uint8_t*>(scratch));
  }
  friend bool operator==(const LastWriters&, const LastWriters&) = default;
};

/// Shapes are checked here, numbers when they are given.
inline Data last_writers(const Data& indices, const MaxUnpoolGeometry& g) {
  if (indices.is_constant()) {
    return spec::last_writers(indices.constant().indices(), g);
  }
  require_shape("max_unpool", "indices", indices, g.x_shape());
  indices.graph()->restrict_data(indices.node(), {spec::kNowhere, g.y_map().cells, "max_unpool"});
  return apply_to_data(LastWriters{g}, indices);
}

}  // namespace fenestra::graph
