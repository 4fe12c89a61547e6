// TileGraph<T>::Assembly: the graph of a part of a network, from what happens at each of its nodes.
// Included by the sources of TileGraph alone. Internal: not installed.
#pragma once

#include <fenestra/nn/tile_graph.hpp>
#include <fenestra/ops/reshape/call.hpp>
#include <fenestra/ops/slice/call.hpp>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace fenestra::nn::detail {

using graph::NodeId;

inline Index count_of(const std::vector<IndexRange>& atoms) {
  Index count = 1;
  for (const IndexRange& range : atoms) {
    count *= range.count();
  }
  return count;
}

/// Puts the graph of a tile together.
template <class T>
class TileGraph<T>::Assembly {
 public:
  Assembly(const TileGraph& of, const Found& found)
      : of_(of), found_(found), place_(index(of.whole_.size()), graph::kNoNode) {}

  GraphTile finish(const Box& output) {
    GraphTile tile;
    for (NodeId id = 0; id <= of_.output_; ++id) {
      if (found_[index(id)]) {
        place_[index(id)] = id == of_.input_ ? given(id) : computed(id);
      }
    }
    Ranges last = found_[index(of_.output_)]->computed;
    for (std::size_t axis = 0; axis < last.size(); ++axis) {
      if (!last[axis].empty()) {
        last[axis][0] = output[static_cast<int>(axis)];
      }
    }
    graph_->add_output(cropped(of_.output_, last), "y");
    tile.output = output;
    tile.input = Box(of_.input());
    if (found_[index(of_.input_)]) {
      const Ranges& read = found_[index(of_.input_)]->computed;
      for (std::size_t axis = 0; axis < read.size(); ++axis) {
        tile.input.set(static_cast<int>(axis), read[axis][0]);
      }
    }
    tile.graph = std::move(*graph_);
    return tile;
  }
  /// The graph of `nodes`, given `in`, which gives `out`.
  graph::Graph stage(const std::vector<NodeId>& in,
                     const std::vector<NodeId>& nodes,
                     const std::vector<std::pair<NodeId, Ranges>>& out) {
    for (const NodeId id : in) {
      place_[index(id)] = given(id);
    }
    for (const NodeId id : nodes) {
      place_[index(id)] = computed(id);
    }
    for (const auto& [id, ranges] : out) {
      graph_->add_output(cropped(id, ranges), "");
    }
    return std::move(*graph_);
  }

 private:
  static Shape shape_of(const Ranges& ranges) {
    Shape shape;
    for (const auto& atoms : ranges) {
      shape.push_back(count_of(atoms));
    }
    return shape;
  }
  graph::Value<T> value(NodeId id) const { return {graph_, id}; }

  NodeId given(NodeId id) {
    const graph::Node& node = of_.whole_.node(id);
    return graph_->add_input(node.type, shape_of(found_[index(id)]->computed), node.name);
  }
  NodeId computed(NodeId id) {
    const graph::Node& node = of_.whole_.node(id);
    const NodeTile& tile = *found_[index(id)];
    if (tile.operation == nullptr) {
      return reshape(value(cropped(node.in[0], tile.in[0])), shape_of(tile.computed)).node();
    }
    std::vector<NodeId> in;
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      in.push_back(of_.depends(node.in[i]) ? cropped(node.in[i], tile.in[i])
                                           : sliced(copied(node.in[i]), tile.boxes[i]));
    }
    std::vector<NodeId> data;
    for (const NodeId read : node.data) {
      data.push_back(copied(read));
    }
    return graph_->add_operation(tile.operation, std::move(in), std::move(data));
  }
  /// A node that does not depend on the picture, with all that it is made of.
  NodeId copied(NodeId id) {
    NodeId& place = place_[index(id)];
    if (place == graph::kNoNode) {
      graph::Node node = of_.whole_.node(id);
      for (auto* list : {&node.in, &node.data}) {
        for (NodeId& input : *list) {
          input = copied(input);
        }
      }
      place = graph_->append(std::move(node));
    }
    return place;
  }
  /// A part of a node whose axes are those of the box.
  NodeId sliced(NodeId id, const Box& box) {
    std::vector<AxisRange> ranges;
    for (int axis = 0; axis < box.rank(); ++axis) {
      if (box[axis] != IndexRange{0, graph_->node(id).shape[axis]}) {
        ranges.push_back({axis, box.begin[axis], box.count[axis]});
      }
    }
    return ranges.empty() ? id : slice(value(id), std::span<const AxisRange>(ranges)).node();
  }
  /// What a reader asks of a node, which may have been computed for others too.
  NodeId cropped(NodeId id, const Ranges& asked) {
    const Ranges& has = found_[index(id)]->computed;
    const NodeId now = place_[index(id)];
    if (has == asked) {
      return now;
    }
    // Axis by atom, so that a part of joined rows and columns is a box again.
    Shape parted;
    Box box;
    for (std::size_t axis = 0; axis < has.size(); ++axis) {
      for (std::size_t k = 0; k < has[axis].size(); ++k) {
        parted.push_back(has[axis][k].count());
        box.begin.push_back(asked[axis][k].begin - has[axis][k].begin);
        box.count.push_back(asked[axis][k].count());
      }
    }
    const NodeId part = sliced(reshape(value(now), parted).node(), box);
    return reshape(value(part), shape_of(asked)).node();
  }

  const TileGraph& of_;
  const Found& found_;
  std::shared_ptr<graph::Graph> graph_ = std::make_shared<graph::Graph>();
  std::vector<NodeId> place_;
};

}  // namespace fenestra::nn::detail
