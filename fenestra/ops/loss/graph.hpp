// Labels of a graph: cross entropy on them reads cells that the program computes for each run.
#pragma once

#include <fenestra/ops/graph_values.hpp>
#include <fenestra/ops/loss/loss.hpp>

namespace fenestra::graph {

/// Labels as flat indices into logits of shape x.
struct LabelCells {
  static constexpr std::string_view name = "label_cells";
  Shape x;

  Shape result_shape() const { return fenestra::detail::without_classes(x); }
  void run(const Selection& labels, Index* out, void*) const {
    fenestra::detail::write_label_cells(x, labels.indices(), out);
  }
  friend bool operator==(const LabelCells&, const LabelCells&) = default;
};

/// The cells of labels that belong to a graph and whose shape was checked; numbers are checked when
/// they are given.
inline Data append_label_cells(const Shape& x, const Data& labels) {
  labels.graph()->restrict_data(labels.node(),
                                {0, x[fenestra::detail::class_axis(x)], "cross_entropy"});
  return apply_to_data(LabelCells{x}, labels);
}

inline Data label_cells(const Shape& x, const Data& labels) {
  if (labels.is_constant()) {
    return fenestra::detail::label_cells(x, labels.constant());
  }
  fenestra::detail::require_labels(x, labels.type());
  return append_label_cells(x, labels);
}

}  // namespace fenestra::graph
