// Max unpooling's rules, compiled; and the last writers of values' and graphs' indices.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/max_unpool/max_unpool.hpp>
#include <fenestra/ops/require.hpp>

#include <algorithm>
#include <cstdint>

namespace fenestra {

namespace graph {

namespace {

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

}  // namespace

/// Shapes are checked here, numbers when they are given.
Data last_writers(const Data& indices, const MaxUnpoolGeometry& g) {
  if (indices.is_constant()) {
    return spec::last_writers(indices.constant().indices(), g);
  }
  require_shape("max_unpool", "indices", indices, g.x_shape());
  indices.graph()->restrict_data(indices.node(), {spec::kNowhere, g.y_map().cells, "max_unpool"});
  return apply_to_data(LastWriters{g}, indices);
}

}  // namespace graph

Indices last_writers(const Indices& indices, const MaxUnpoolGeometry& g) {
  if (indices.level() == 0) {
    return spec::last_writers(indices.plain().indices(), g);
  }
  if (const graph::Data* traced = indices.traced()) {
    return {indices.level(), graph::last_writers(*traced, g)};
  }
  throw Error(
      "max_unpool",
      {.code = ErrorCode::unsupported, .argument = Argument::indices},
      "max_unpool: indices for hidden samples\n  fix: max_unpool outside vmap and per-sample "
      "gradients, or the same indices for all samples");
}

FENESTRA_COMPILE_RULES(PlacementPrimitive)

}  // namespace fenestra
