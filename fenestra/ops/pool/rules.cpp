// The pools' rules, compiled; and the winners of values and of graphs as indices that people and
// max_unpool read.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/pool/rules.hpp>

#include <algorithm>

namespace fenestra {

namespace graph {

namespace {

struct WinnerIndices {
  static constexpr std::string_view name = "winner_indices";
  PoolGeometry pool;

  Shape result_shape() const { return pool.y_shape(); }
  static std::size_t scratch_bytes() { return 0; }
  void run(const Selection& winners, Index* out, void*) const {
    if (winners.is_compact()) {
      expand_winners(winners.taps().data(), pool, out);
    } else {
      std::copy_n(winners.indices().data(), winners.indices().size(), out);
    }
  }
  friend bool operator==(const WinnerIndices&, const WinnerIndices&) = default;
};

}  // namespace

Data winner_indices(const Data& winners, const PoolGeometry& pool) {
  if (winners.is_constant()) {
    return fenestra::winner_indices(winners.constant(), pool);
  }
  return apply_to_data(WinnerIndices{pool}, winners);
}

}  // namespace graph

Indices winner_indices(const Indices& winners, const PoolGeometry& g) {
  if (winners.level() == 0) {
    return winner_indices(winners.plain(), g);
  }
  if (const graph::Data* traced = winners.traced()) {
    return {winners.level(), graph::winner_indices(*traced, g)};
  }
  throw Error("max_pool",
              {.code = ErrorCode::unsupported, .argument = Argument::indices},
              "max_pool: no indices of hidden samples\n  fix: return_indices outside vmap and "
              "per-sample gradients");
}

FENESTRA_COMPILE_RULES(MaxPoolPrimitive)
FENESTRA_COMPILE_RULES(AvgPoolPrimitive)
FENESTRA_COMPILE_RULES(LpPoolPrimitive)
FENESTRA_COMPILE_RULES(SmoothMaxPoolPrimitive)

}  // namespace fenestra
