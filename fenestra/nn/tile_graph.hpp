// TileGraph<T>: what a part of a network's output needs of everything before it, and the graph that
// computes that part alone. Internal: not installed.
//
// The network is a graph of one picture, (N, C, spatial...). A part of the output is followed
// backwards: each operation says what it reads for a part of its result and gives itself on that
// part (graph::Operation::tile); where several read one node, it computes the hull of what they
// need. Reshapes that join axes (rows and columns to cells) or part them again are followed through
// the axes of the picture that an axis is made of. Kernels are those that the whole would choose,
// so that every cell is computed as in the whole.
#pragma once

#include <fenestra/graph/graph.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/nn/tiles.hpp>
#include <fenestra/tensor/box.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fenestra::nn::detail {

/// Why a network has no tiles, and the node where that shows.
struct TileRefusal {
  graph::NodeId node = graph::kNoNode;
  std::string reason;
};

/// An output (N, C, spatial...) cut into tiles, the last ones along each axis smaller; numbered
/// with the last axis first.
struct TileGrid {
  Shape output;
  Shape tile;  ///< along each spatial axis, from 1 to the extent

  /// With tiles no larger than the output. Throws `invalid_extent` for a tile that it cannot have.
  static TileGrid of(const Shape& output, const Shape& tile);

  int rank() const { return output.rank() - 2; }
  Index tiles_along(int axis) const { return ceil_div(output[axis + 2], tile[axis]); }
  Index count() const;
  /// The part of the output that a tile is.
  Box box(Index number) const;
};

/// "512x512"
std::string size_text(const Shape& shape);

/// Throws `rank_mismatch` where an output has no space to cut.
void require_space(const Shape& output);

/// Which kernels the operations of a tile run on.
enum class TileKernels {
  of_whole,  ///< those that the whole would choose: the bits of the whole
  own,       ///< those that are best for the tile
};

/// A graph that computes `output` of the whole, given `input` of the picture.
struct GraphTile {
  graph::Graph graph;
  Box input;
  Box output;
};

/// A node of which every rank has rows, along the first spatial axis of the picture: its cells lie
/// as (outer, rows, inner).
struct SlabTensor {
  Shape whole;
  int axis = 0;    ///< of the shape, that the rows are in
  Index rows = 0;  ///< of the whole
  Index outer = 1;
  Index inner = 1;
  std::vector<IndexRange> own;  ///< what each rank computes: all rows, each once
  std::vector<IndexRange> has;  ///< with what it needs of others
  Index last_stage = -1;        ///< that reads it

  Shape shape(Index some_rows) const {
    Shape part = whole;
    part[axis] = whole[axis] / rows * some_rows;
    return part;
  }
};

/// What a rank computes between two exchanges.
struct SlabStage {
  graph::Graph graph;
  std::vector<graph::NodeId> in;   ///< nodes of which it is given what the rank has
  std::vector<graph::NodeId> out;  ///< nodes of which it computes what the rank owns
};

struct SlabPlan {
  graph::NodeId input = graph::kNoNode;
  graph::NodeId output = graph::kNoNode;
  std::vector<SlabStage> stages;
  std::map<graph::NodeId, SlabTensor> tensors;  ///< all that stages read and write
};

/// A node with fewer rows than there are ranks.
struct TooFewRows {
  graph::NodeId node = graph::kNoNode;
  Index rows = 0;
};

template <class T>
class TileGraph {
 public:
  /// Of a graph with one input and one output; parameters and data of the graph are the tiles' too.
  /// Throws a `TileRefusal` where an operation reads the whole picture for every cell, or has no
  /// tiles.
  explicit TileGraph(graph::Graph whole, TileKernels kernels = TileKernels::of_whole);

  const Shape& input() const { return whole_.node(input_).shape; }
  const Shape& output() const { return whole_.node(output_).shape; }
  GraphTile tile(const Box& output) const;
  /// What is needed of every node; none of nodes that are not, that do not depend on the picture,
  /// and whose axes are joined.
  std::vector<std::optional<Box>> needed(const Box& output) const;
  /// How `ranks` ranks compute the whole together, and the part of this one. Every node is computed
  /// once, by rows; where an operation reads rows that another rank owns, a stage ends. The plan is
  /// the same on all ranks, but for the graphs. Throws a `TooFewRows`.
  SlabPlan slabs(int rank, int ranks) const;

 private:
  /// An axis of a node is a product of atoms, each an axis of the picture, or channels.
  struct Atom {
    Index extent = 1;
    int axis = 1;  ///< of the picture; from 2 on it is space

    bool spatial() const { return axis >= 2; }
  };
  using Axis = std::vector<Atom>;
  /// A range for each atom of each axis.
  using Ranges = std::vector<std::vector<IndexRange>>;

  /// What happens at one node in one tile.
  struct NodeTile {
    Ranges computed;
    std::vector<Ranges> in;  ///< asked of inputs that depend on the picture
    std::vector<Box> boxes;  ///< of all inputs
    std::shared_ptr<const graph::Operation> operation;  ///< null: a reshape
  };
  using Found = std::vector<std::optional<NodeTile>>;
  class Assembly;
  class SlabPlanner;

  bool depends(graph::NodeId id) const { return !axes_[index(id)].empty() || id == input_; }
  static std::size_t index(graph::NodeId id) { return static_cast<std::size_t>(id); }

  std::vector<Shape> input_shapes(const graph::Node& node) const;
  std::vector<Axis> regrouped(graph::NodeId id) const;
  std::vector<Axis> followed(graph::NodeId id);
  Ranges before_regrouping(graph::NodeId id, const Ranges& result) const;
  std::optional<NodeTile> node_tile(graph::NodeId id, const Ranges& wanted) const;
  Found walk(const Box& output) const;

  graph::Graph whole_;
  TileKernels tile_kernels_;
  graph::NodeId input_ = graph::kNoNode;
  graph::NodeId output_ = graph::kNoNode;
  std::vector<std::vector<Axis>> axes_;  ///< of the nodes that depend on the picture
  std::vector<TileAxes> tile_axes_;      ///< of operations
  std::vector<std::string> kernels_;     ///< what the whole runs on; empty where there is no choice
};

/// The tiles of a network. What it refuses is thrown as an `Error` with the layer's name.
template <class T>
TileGraph<T> tile_graph(const TracedNetwork& network, TileKernels kernels);
/// A refusal in words.
[[noreturn]] void throw_refused(const TileRefusal& refusal, const TracedNetwork& network);

extern template class TileGraph<float>;
extern template class TileGraph<double>;

}  // namespace fenestra::nn::detail
