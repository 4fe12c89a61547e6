// summary: what a model is made of, a line for each layer, without computing anything: the model is
// traced into a graph.
//
//   std::cout << nn::summary(net, Shape{1, 3, 224, 224});
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/value.hpp>
#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/nn/slots.hpp>

#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace fenestra::nn {

struct SummaryRow {
  std::string name;  ///< dotted; empty where the model did not say
  std::string kind;
  Shape output;
  Index parameters = 0;
  Index multiply_adds = 0;
  /// Cells of the input, along each spatial axis, that one cell of the output can see through the
  /// windows of convolutions and pools (statistics and gates of whole channels do not count); empty
  /// where it sees everything.
  std::vector<Index> receptive_field;
};

struct FENESTRA_API Summary {
  Shape input;
  Shape output;
  std::vector<SummaryRow> rows;
  Index parameters = 0;
  Index buffers = 0;  ///< numbers that are kept and not trained
  Index multiply_adds = 0;

  /// A table, and the totals.
  std::string text() const;
};
FENESTRA_API std::ostream& operator<<(std::ostream& out, const Summary& summary);

namespace detail {

/// Follows a graph while a model is traced into it.
class FENESTRA_API SummaryMaker {
 public:
  SummaryMaker(const graph::Graph& graph, const Shape& input);

  /// A layer gave node `output`, kNoNode for a constant; nodes since the last call are its own.
  void layer(const std::string& name,
             std::string_view kind,
             const LayerReach& reach,
             graph::NodeId input,
             graph::NodeId output,
             const Shape& shape);
  Summary finish(const Shape& output, Index buffers);

 private:
  struct Field {
    std::vector<AxisReach> axes;
    bool whole = false;
  };

  void follow();
  std::optional<Field> field_of(graph::NodeId node) const;
  SummaryRow taken_row();

  const graph::Graph& graph_;
  int rank_;
  std::vector<std::optional<Field>> fields_;  ///< of the nodes so far; none of what is not data
  graph::NodeId counted_ = 0;                 ///< nodes whose work is in a row
  std::set<graph::NodeId> owned_;             ///< parameters that are in a row
  Summary summary_;
};

template <class T>
graph::NodeId node_of(const Value<T>& value) {
  const auto* traced = value.template as<graph::Value<T>>();
  return traced != nullptr ? traced->node() : graph::kNoNode;
}

template <class T, class Model>
Summary summary_of(Model model, const Shape& input) {
  graph::Builder<T> builder;
  const Level level = builder.graph().level();
  Index buffers = 0;
  for (const Slot<T>& slot : slots<T>(model)) {
    const Shape shape = slot.value->shape();
    buffers += slot.trained ? 0 : shape.elements().value_or(0);
    *slot.value = Value<T>(
        level, slot.trained ? builder.parameter(shape, slot.name) : builder.mask(shape, slot.name));
  }
  const Value<T> x(level, builder.input(input, "x"));
  SummaryMaker maker(builder.graph(), input);
  Pass<T> pass = Pass<T>::inference();
  pass.set_observer([&](const LayerCall<T>& call) {
    if (!call.has_parts) {
      maker.layer(call.name,
                  call.kind,
                  call.reach,
                  node_of(call.input),
                  node_of(call.output),
                  call.output.shape());
    }
  });
  const Value<T> y = [&]() -> Value<T> {
    if constexpr (CalledWithPass<Model, T>) {
      return model(x, pass);
    } else {
      return pass.observed("custom", x, model(x));
    }
  }();
  return maker.finish(y.shape(), buffers);
}

}  // namespace detail

/// The summary of a model for inputs of that shape, (N, C, spatial...).
template <class Model>
Summary summary(const Model& model, const Shape& input) {
  return detail::summary_of<ScalarOf<TreeValue<Model>>>(model, input);
}

}  // namespace fenestra::nn
