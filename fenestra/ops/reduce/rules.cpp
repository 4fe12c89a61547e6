// The reductions: rules, compiled for float and double; and cells of every kind.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/reduce/rules.hpp>

namespace fenestra {

namespace {

/// See repeated_cells.
struct RepeatedCells {
  static constexpr std::string_view name = "repeated_cells";
  Index count = 0;
  Index size = 0;
  Shape to;

  Shape result_shape() const { return with_front(count, to); }
  static std::size_t scratch_bytes() { return 0; }
  void run(const Selection& cells, Index* out, void*) const {
    const Index n = to.elements().value_or(0);
    const Index* cell = cells.indices().data();
    for (Index item = 0; item < count; ++item) {
      for (Index i = 0; i < n; ++i) {
        out[item * n + i] = cell[i] + item * size;
      }
    }
  }
  friend bool operator==(const RepeatedCells&, const RepeatedCells&) = default;
};

/// A function of integers on integers that are there.
template <class M>
Selection mapped(const M& map, const Selection& data) {
  Tensor<Index> out = Tensor<Index>::uninitialised(map.result_shape());
  map.run(data, out.mutable_data(), nullptr);
  return out;
}

}  // namespace

Selection cell_positions(const Selection& cells, const CellPositions& of) {
  return mapped(of, cells);
}

namespace graph {

Data cell_positions(const Data& cells, const CellPositions& of) {
  return cells.is_constant() ? Data(fenestra::cell_positions(cells.constant(), of))
                             : apply_to_data(of, cells);
}

}  // namespace graph

Indices cell_positions(const Indices& cells, const CellPositions& of) {
  if (cells.level() == 0) {
    return cell_positions(cells.plain(), of);
  }
  if (const graph::Data* traced = cells.traced()) {
    return {cells.level(), graph::cell_positions(*traced, of)};
  }
  const BatchIndices<Indices> items = cells.items(cells.level());
  const CellPositions all{of.inner, of.extent, with_front(items.count, of.shape)};
  return {cells.level(), BatchIndices<Indices>(cell_positions(items.indices, all), items.count)};
}

Indices repeated_cells(const Indices& cells, Index count, Index size, const Shape& to) {
  const RepeatedCells map{count, size, to};
  if (cells.level() == 0) {
    return mapped(map, cells.plain());
  }
  if (const graph::Data* traced = cells.traced()) {
    return {cells.level(), graph::apply_to_data(map, *traced)};
  }
  throw Error(ErrorCode::unsupported,
              "vmap: integer data of one vmap meets values of another\n  fix: one vmap, with the "
              "axes folded into one");
}

FENESTRA_COMPILE_RULES(TakePrimitive)
FENESTRA_COMPILE_RULES(PlacePrimitive)
FENESTRA_COMPILE_RULES(MaxToPrimitive)

}  // namespace fenestra
