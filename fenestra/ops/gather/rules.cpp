// Indices as flat cells, for every kind of integers. The rules are those of `take` and `place`.
#include <fenestra/engine/batch.hpp>
#include <fenestra/engine/operation.hpp>
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/gather/gather.hpp>

namespace fenestra {

GatherGeometry gather_geometry(const Shape& x, const Shape& indices, int axis, bool slices) {
  GatherGeometry g{x, 0, indices, slices};
  const std::string op(g.op());
  g.axis = resolved_axis(op, x, axis);
  const auto fail = [&](const std::string& fix) {
    throw Error(op,
                {.code = ErrorCode::shape_mismatch, .argument = Argument::indices, .axis = g.axis},
                op + ": x = " + to_string(x) + ", indices = " + to_string(indices) + ", axis " +
                    std::to_string(g.axis) + "\n  fix: " + fix);
  };
  if (slices && x.rank() - 1 + indices.rank() > kMaxRank) {
    fail("fewer axes: the result would have " + std::to_string(x.rank() - 1 + indices.rank()));
  }
  bool fits = slices || indices.rank() == x.rank();
  for (int i = 0; fits && !slices && i < x.rank(); ++i) {
    fits = i == g.axis || indices[i] == x[i];
  }
  if (!fits) {
    fail("indices of x's shape but for that axis" +
         spelled("; take() chooses slices", "; fn.take chooses slices"));
  }
  require_elements(op, "y", Argument::none, g.y_shape());
  return g;
}

namespace {

/// Cells of `count` items whose x lie one behind the other; indices were checked.
void write_cells(const GatherGeometry& g, Index count, const Index* indices, Index* out) noexcept {
  const AxisView view = axis_view(g.x, g.axis);
  const auto cell = [&](Index item, Index o, Index index, Index i) {
    const Index at = index < 0 ? index + view.extent : index;
    return ((item * view.outer + o) * view.extent + at) * view.inner + i;
  };
  const Index chosen = g.slices ? g.indices.elements().value_or(0) : g.indices[g.axis];
  if (chosen == 0 || view.inner == 0) {
    return;  // however large the other extents are
  }
  for (Index item = 0; item < count; ++item) {
    for (Index o = 0; o < view.outer; ++o) {
      for (Index j = 0; j < chosen; ++j) {
        for (Index i = 0; i < view.inner; ++i) {
          const Index index = g.slices ? indices[item * chosen + j] : *indices++;
          *out++ = cell(item, o, index, i);
        }
      }
    }
  }
}

void require_range(const GatherGeometry& g, const Tensor<Index>& indices) {
  const Index extent = g.x[g.axis];
  for (Index i = 0; i < indices.size(); ++i) {
    if (indices[i] < -extent || indices[i] >= extent) {
      throw Error(std::string(g.op()),
                  {.code = ErrorCode::invalid_index,
                   .argument = Argument::indices,
                   .axis = g.axis,
                   .got = indices[i],
                   .needed = extent},
                  std::string(g.op()) + ": index " + std::to_string(indices[i]) + " at element " +
                      std::to_string(i) + ", axis " + std::to_string(g.axis) + " of x = " +
                      to_string(g.x) + " has " + std::to_string(extent) + " elements\n  fix: " +
                      (extent == 0 ? std::string("no index chooses of none")
                                   : "indices from " + std::to_string(-extent) + " to " +
                                         std::to_string(extent - 1)));
    }
  }
}

const Tensor<Index>& as_integers(const GatherGeometry& g, const Selection& indices) {
  if (indices.type().form != SelectionForm::indices) {
    throw Error(std::string(g.op()),
                {.code = ErrorCode::dtype_mismatch, .argument = Argument::indices},
                std::string(g.op()) + ": the indices are the winners of a pool\n  fix: pass " +
                    spelled("Tensor<Index>", "an array of integers"));
  }
  return indices.indices();
}

Selection plain_cells(const GatherGeometry& g, Index count, const Selection& indices) {
  const Tensor<Index>& given = as_integers(g, indices);
  require_range(g, given);
  const Shape y = g.y_shape();
  auto cells = Tensor<Index>::uninitialised(count == 0 ? y : with_front(count, y));
  write_cells(g, std::max<Index>(count, 1), given.data(), cells.mutable_data());
  return cells;
}

struct GatherCells {
  static constexpr std::string_view name = "gather_cells";
  GatherGeometry g;
  Index count = 0;  ///< of items; 0: no batch

  Shape result_shape() const { return count == 0 ? g.y_shape() : with_front(count, g.y_shape()); }
  static std::size_t scratch_bytes() { return 0; }
  void run(const Selection& indices, Index* out, void*) const {
    write_cells(g, std::max<Index>(count, 1), indices.indices().data(), out);
  }
  friend bool operator==(const GatherCells&, const GatherCells&) = default;
};

graph::Data traced_cells(const GatherGeometry& g, Index count, const graph::Data& indices) {
  const Index extent = g.x[g.axis];
  indices.graph()->restrict_data(indices.node(), {-extent, extent, std::string(g.op())});
  return graph::apply_to_data(GatherCells{g, count}, indices);
}

}  // namespace

Shape item_shape(const Selection& indices) { return indices.type().shape; }

Selection gather_cells(const GatherGeometry& g, const Selection& indices) {
  return plain_cells(g, 0, indices);
}

namespace graph {

Shape item_shape(const Data& indices) { return indices.shape(); }

Data gather_cells(const GatherGeometry& g, const Data& indices) {
  return indices.is_constant() ? Data(plain_cells(g, 0, indices.constant()))
                               : traced_cells(g, 0, indices);
}

}  // namespace graph

Shape item_shape(const Indices& indices) {
  if (indices.level() == 0) {
    return item_shape(indices.plain());
  }
  if (const graph::Data* traced = indices.traced()) {
    return traced->shape();
  }
  const Shape all = item_shape(indices.items(indices.level()).indices);
  Shape item;
  for (int axis = 1; axis < all.rank(); ++axis) {
    item.push_back(all[axis]);
  }
  return item;
}

Indices gather_cells(const GatherGeometry& g, const Indices& indices) {
  if (indices.level() == 0) {
    return plain_cells(g, 0, indices.plain());
  }
  if (const graph::Data* traced = indices.traced()) {
    return {indices.level(), traced_cells(g, 0, *traced)};
  }
  const BatchIndices<Indices> items = indices.items(indices.level());
  if (const graph::Data* traced = items.indices.traced()) {
    Indices cells(items.indices.level(), traced_cells(g, items.count, *traced));
    return {indices.level(), BatchIndices<Indices>(std::move(cells), items.count)};
  }
  const Selection all = plain_items(g.op(), indices).indices;
  return {indices.level(), BatchIndices<Indices>(plain_cells(g, items.count, all), items.count)};
}

}  // namespace fenestra
