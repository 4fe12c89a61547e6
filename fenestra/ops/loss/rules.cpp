// The losses' rules, compiled; and labels of values and of graphs.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/loss/rules.hpp>

namespace fenestra {

namespace graph {

namespace {

/// Labels as flat indices into logits of shape x.
struct LabelCells {
  static constexpr std::string_view name = "label_cells";
  Shape x;

  Shape result_shape() const { return fenestra::detail::without_classes(x); }
  static std::size_t scratch_bytes() { return 0; }
  void run(const Selection& labels, Index* out, void*) const {
    fenestra::detail::write_label_cells(x, labels.indices(), out);
  }
  friend bool operator==(const LabelCells&, const LabelCells&) = default;
};

/// The cells of labels that belong to a graph and whose shape was checked; numbers are checked when
/// they are given.
Data append_label_cells(const Shape& x, const Data& labels) {
  labels.graph()->restrict_data(labels.node(),
                                {0, x[fenestra::detail::class_axis(x)], "cross_entropy"});
  return apply_to_data(LabelCells{x}, labels);
}

}  // namespace

Data label_cells(const Shape& x, const Data& labels) {
  if (labels.is_constant()) {
    return fenestra::detail::label_cells(x, labels.constant());
  }
  fenestra::detail::require_labels(x, labels.type());
  return append_label_cells(x, labels);
}

}  // namespace graph

namespace {

/// The labels of all items as flat indices into their folded logits.
BatchIndices<Selection> item_cells(const Shape& x, const BatchIndices<Selection>& labels) {
  if (labels.count == 0) {
    return {detail::label_cells(x, labels.indices)};
  }
  const Tensor<Index>& given = labels.indices.indices();
  const Shape folded = detail::require_labels_of_items(x, labels.count, given.shape());
  const Selection all(given.reshaped(detail::without_classes(folded)));
  return {detail::label_cells(folded, all), labels.count};
}

}  // namespace

Indices label_cells(const Shape& x, const Indices& labels) {
  if (labels.level() == 0) {
    return detail::label_cells(x, labels.plain());
  }
  if (const graph::Data* traced = labels.traced()) {
    return {labels.level(), graph::label_cells(x, *traced)};
  }
  const BatchIndices<Indices> items = labels.items(labels.level());
  if (const graph::Data* traced = items.indices.traced()) {
    const Shape folded = detail::require_labels_of_items(x, items.count, traced->shape());
    Indices all(items.indices.level(), graph::append_label_cells(folded, *traced));
    return {labels.level(), BatchIndices<Indices>(std::move(all), items.count)};
  }
  BatchIndices<Selection> cells = item_cells(x, plain_items("cross_entropy", labels));
  return {labels.level(), BatchIndices<Indices>(std::move(cells.indices), cells.count)};
}

FENESTRA_COMPILE_RULES(CrossEntropyGradPrimitive)
FENESTRA_COMPILE_RULES(CrossEntropyPrimitive)

}  // namespace fenestra
