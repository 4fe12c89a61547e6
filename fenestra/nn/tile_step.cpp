// Steps on tiles, compiled for float and double.
#include <fenestra/engine/operation.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/nn/tile_step.hpp>

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

namespace fenestra::nn::detail {

namespace {

// Pictures come in few shapes: a leaf, and the last one of a batch.
constexpr std::size_t kMostNetworks = 4;
// A picture has 3 ^ rank kinds of tiles where it is cut evenly, and twice as many extents.
constexpr std::size_t kMostPrograms = 64;

using graph::NodeId;

/// What a layer does to its leaf, in the graph of a whole picture: cell by cell as far as anybody
/// can see. It never runs; `replayed` puts the layer's own function in its place.
template <class T>
class OfLeaf final : public graph::Operation {
 public:
  using Function = typename Pass<T>::LeafFunction;

  explicit OfLeaf(std::shared_ptr<const Function> function) : function_(std::move(function)) {}

  const Function& function() const { return *function_; }
  std::string_view name() const override { return "of_leaf"; }
  std::string attributes() const override { return {}; }
  bool equals(const Operation& other) const override {
    const auto* alike = dynamic_cast<const OfLeaf*>(&other);
    return alike != nullptr && alike->function_ == function_;
  }
  graph::DataType result_type() const override { return graph::DataTypeOf<T>::value; }
  Shape result_shape(std::span<const Shape> in) const override { return in[0]; }
  std::optional<TileOf<std::shared_ptr<const Operation>>> tile(std::span<const Shape>,
                                                               const Box& box) const override {
    return {{box, {box}, graph::shared_operation(new OfLeaf(function_)), {}}};
  }
  std::unique_ptr<const graph::Kernel> prepare() const override {
    assert(false && "of_leaf runs nowhere");
    return nullptr;
  }

 private:
  std::shared_ptr<const Function> function_;
};

/// The node that a value of a trace is; a constant joins the graph.
template <class T>
NodeId node_in(graph::Graph& graph, const Value<T>& value) {
  const auto* traced = value.template as<graph::Value<T>>();
  return traced != nullptr ? traced->node() : graph.add_constant(value.plain());
}

[[noreturn]] void throw_not_of_leaf(const std::string& what) {
  throw Error(ErrorCode::unsupported,
              "trainer: " + what +
                  ", which a tile of a picture cannot have of its own\n  fix: pass.of_leaf(x, f) "
                  "around what needs statistics or masks, or train on whole pictures");
}

/// A box of a dense tensor.
template <class N>
Tensor<N> part_of(const Tensor<N>& x, const Box& box) {
  Tensor<N> part = Tensor<N>::uninitialised(box.shape());
  const int last = box.rank() - 1;
  const Index row = box.count[last];
  N* out = part.mutable_data();
  Shape at = box.begin;
  for (Index left = part.size(); left > 0; left -= row) {
    Index from = 0;
    for (int axis = 0; axis <= last; ++axis) {
      from = from * x.shape()[axis] + at[axis];
    }
    out = std::copy_n(x.data() + from, row, out);
    for (int axis = last - 1; axis >= 0 && ++at[axis] == box[axis].end; --axis) {
      at[axis] = box.begin[axis];
    }
  }
  return part;
}

/// A box without its axis of channels, or with other ones: what labels and targets have of it.
Box with_channels(const Box& box, std::optional<Index> channels) {
  Box result;
  for (int axis = 0; axis < box.rank(); ++axis) {
    if (axis == 1 && !channels) {
      continue;
    }
    result.begin.push_back(axis == 1 ? 0 : box.begin[axis]);
    result.count.push_back(axis == 1 ? *channels : box.count[axis]);
  }
  return result;
}

void require_cells(const char* what, const Shape& got, const Box& whole) {
  if (got != whole.shape()) {
    throw Error(ErrorCode::shape_mismatch,
                std::string("trainer: ") + what + " = " + to_string(got) +
                    " of scores in tiles\n  fix: " + to_string(whole.shape()) +
                    ", a value for each cell");
  }
}

}  // namespace

template <class T>
TracedNetwork trace_training(const typename TrainerCore<T>::Parts& parts,
                             std::span<const Slot<T>> slots,
                             const Shape& input) {
  graph::Builder<T> builder;
  LayerNames names(builder.graph());
  const graph::Value<T> x = builder.input(input, "inputs");
  SlotScope<T> scope(slots);
  put_nodes(builder, slots, scope);
  names.layer("picture", "input");
  Pass<T> pass = Pass<T>::training(Key(0));
  pass.set_observer([&](const LayerCall<T>& call) { names.layer(call.name, call.kind); });
  pass.set_mask_source([&](const MaskRequest& request) -> Value<T> {
    throw_not_of_leaf("\"" + pass.scope() + "\" asks for a mask " + to_string(request.shape));
  });
  pass.set_leaf_source([](const Value<T>& of, const typename Pass<T>::LeafFunction& f) {
    const auto* traced = of.template as<graph::Value<T>>();
    if (traced == nullptr) {
      throw_not_of_leaf("a layer has statistics or masks of a constant");
    }
    const auto kept = std::make_shared<const typename Pass<T>::LeafFunction>(f);
    return Value<T>(
        graph::Value<T>(traced->graph(),
                        traced->graph()->add_operation(graph::shared_operation(new OfLeaf<T>(kept)),
                                                       {traced->node()})));
  });
  const Value<T> scores = parts.forward(Value<T>(x), pass);
  if (!pass.updates().empty()) {
    throw_not_of_leaf("a buffer " + to_string(pass.updates()[0].value.shape()) + " changes");
  }
  const auto* traced = scores.template as<graph::Value<T>>();
  builder.output(traced != nullptr ? *traced : graph::Value<T>(scores.plain()), "scores");
  names.layer("", "model");
  return {builder.graph(), names.finish()};
}

template <class T>
Value<T> replayed(const graph::Graph& tile,
                  const Value<T>& x,
                  std::span<const Slot<T>> slots,
                  Pass<T>& pass) {
  const std::shared_ptr<graph::Graph> to = x.template as<graph::Value<T>>()->graph();
  std::vector<NodeId> place(static_cast<std::size_t>(tile.size()));
  const auto at = [&](NodeId id) -> NodeId& { return place[static_cast<std::size_t>(id)]; };
  for (NodeId id = 0; id < tile.size(); ++id) {
    graph::Node node = tile.node(id);
    if (node.kind == graph::NodeKind::input) {
      at(id) = node_in(*to, x);
      continue;
    }
    if (node.is_argument()) {
      const auto slot = std::find_if(slots.begin(), slots.end(), [&](const Slot<T>& candidate) {
        return candidate.name == node.name;
      });
      at(id) = node_in(*to, *slot->value);
      continue;
    }
    if (const auto* leaf = dynamic_cast<const OfLeaf<T>*>(node.operation.get())) {
      at(id) = node_in(*to, leaf->function()(Value<T>(graph::Value<T>(to, at(node.in[0]))), pass));
      continue;
    }
    for (auto* list : {&node.in, &node.data}) {
      for (NodeId& input : *list) {
        input = at(input);
      }
    }
    at(id) = to->append(std::move(node));
  }
  return Value<T>(graph::Value<T>(to, at(tile.outputs().at(0).node)));
}

// --- TileSteps ---------------------------------------------------------------------------------

template <class T>
TileSteps<T>::Network::Network(const TileStepParts<T>& of, const Shape& shape)
    : inputs(shape),
      traced(trace_training<T>(of.parts, of.slots, shape)),
      graph(tile_graph<T>(traced, TileKernels::own)) {
  require_space(graph.output());
  grid = TileGrid::of(graph.output(), of.tile);
}

template <class T>
GraphTile TileSteps<T>::Network::cut(Index tile) const {
  try {
    return graph.tile(grid.box(tile));
  } catch (const TileRefusal& refusal) {
    throw_refused(refusal, traced);
  }
}

template <class T>
typename TileSteps<T>::Network& TileSteps<T>::network(const TileStepParts<T>& of,
                                                      const Shape& inputs) {
  for (Network& known : networks_) {
    if (known.inputs == inputs) {
      return known;
    }
  }
  if (networks_.size() == kMostNetworks) {
    networks_.pop_back();
  }
  networks_.emplace_front(of, inputs);
  return networks_.front();
}

template <class T>
std::vector<Index> TileSteps<T>::cells(const TileStepParts<T>& of, const Shape& inputs) {
  const TileGrid& grid = network(of, inputs).grid;
  std::vector<Index> cells;
  for (Index tile = 0; tile < grid.count(); ++tile) {
    const Shape part = grid.box(tile).shape();
    cells.push_back(*part.elements() / (part[0] * part[1]));
  }
  return cells;
}

template <class T>
Batch<T> TileSteps<T>::part(const TileStepParts<T>& of, const Batch<T>& batch, Index tile) {
  const Network& pictures = network(of, batch.inputs.shape());
  const GraphTile cut = pictures.cut(tile);
  const Box whole(pictures.grid.output);
  Batch<T> part{.inputs = part_of(batch.inputs, cut.input)};
  // What nobody filled has no axis, or no samples.
  const auto is_filled = [](const auto& x) { return x.rank() > 0 && x.size() > 0; };
  if (is_filled(batch.labels)) {
    require_cells("labels", batch.labels.shape(), with_channels(whole, std::nullopt));
    part.labels = part_of(batch.labels, with_channels(cut.output, std::nullopt));
  }
  if (is_filled(batch.targets)) {
    const Index channels = batch.targets.rank() > 1 ? batch.targets.shape()[1] : 0;
    require_cells("targets", batch.targets.shape(), with_channels(whole, channels));
    part.targets = part_of(batch.targets, with_channels(cut.output, channels));
  }
  return part;
}

template <class T>
StepProgram<T>& TileSteps<T>::program(const TileStepParts<T>& of,
                                      const Shape& inputs,
                                      Index tile,
                                      const BatchView<T>& batch,
                                      bool& traced) {
  const std::string key = to_string(network(of, inputs).cut(tile).graph);
  auto known = programs_.find(key);
  if (last_ != nullptr && (known == programs_.end() || last_ != &known->second)) {
    last_->release();
  }
  traced = known == programs_.end() || !known->second.fits(batch);
  if (traced) {
    if (programs_.size() >= kMostPrograms) {
      programs_.clear();
    }
    // Functions of layers belong to a model that may have been replaced since the trace.
    const GraphTile cut = Network(of, inputs).cut(tile);
    const typename TrainerCore<T>::Parts parts{.slots = {},
                                               .forward = [&](const Value<T>& x, Pass<T>& pass) {
                                                 return replayed(cut.graph, x, of.slots, pass);
                                               }};
    programs_.erase(key);
    known = programs_.try_emplace(key, parts, of.loss, of.slots, batch).first;
  }
  last_ = &known->second;
  return known->second;
}

template <class T>
void TileSteps<T>::clear() {
  networks_.clear();
  programs_.clear();
  last_ = nullptr;
}

template TracedNetwork trace_training<float>(const TrainerCore<float>::Parts&,
                                             std::span<const Slot<float>>,
                                             const Shape&);
template TracedNetwork trace_training<double>(const TrainerCore<double>::Parts&,
                                              std::span<const Slot<double>>,
                                              const Shape&);
template Value<float> replayed(const graph::Graph&,
                               const Value<float>&,
                               std::span<const Slot<float>>,
                               Pass<float>&);
template Value<double> replayed(const graph::Graph&,
                                const Value<double>&,
                                std::span<const Slot<double>>,
                                Pass<double>&);
template class TileSteps<float>;
template class TileSteps<double>;

}  // namespace fenestra::nn::detail
