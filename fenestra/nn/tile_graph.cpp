// Networks followed backwards by tiles; see tile_graph.hpp.
#include <fenestra/engine/operation.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/nn/tile_assembly.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

namespace fenestra::nn::detail {

namespace {

using graph::NodeId;
using graph::Operation;

/// A tile of an operation on the kernel that the whole operation runs on.
class OnKernel final : public Operation {
 public:
  OnKernel(std::shared_ptr<const Operation> tile, std::string kernel)
      : tile_(std::move(tile)), kernel_(std::move(kernel)) {}

  std::string_view name() const override { return tile_->name(); }
  std::string attributes() const override { return tile_->attributes(); }
  bool equals(const Operation& other) const override {
    const auto* alike = dynamic_cast<const OnKernel*>(&other);
    return alike != nullptr && alike->kernel_ == kernel_ && tile_->equals(*alike->tile_);
  }
  graph::DataType result_type() const override { return tile_->result_type(); }
  Shape result_shape(std::span<const Shape> in) const override { return tile_->result_shape(in); }
  SelectionType workspace() const override { return tile_->workspace(); }
  bool aliases_input() const override { return tile_->aliases_input(); }
  bool may_overwrite(int i) const override { return tile_->may_overwrite(i); }
  std::string layout() const override { return tile_->layout(); }
  std::optional<Condition> condition(int i) const override { return tile_->condition(i); }
  Index multiply_adds() const override { return tile_->multiply_adds(); }
  std::unique_ptr<const graph::Kernel> prepare() const override {
    const kernels::ForcedKernel forced(kernel_, kernels::IfRefused::run);
    return tile_->prepare();
  }

 private:
  std::shared_ptr<const Operation> tile_;
  std::string kernel_;
};

[[noreturn]] void refuse(NodeId node, std::string reason) {
  throw TileRefusal{node, std::move(reason)};
}

}  // namespace

template <class T>
TileGraph<T>::TileGraph(graph::Graph whole, TileKernels kernels)
    : whole_(std::move(whole)), tile_kernels_(kernels) {
  const auto size = index(whole_.size());
  axes_.resize(size);
  tile_axes_.resize(size);
  kernels_.resize(size);
  output_ = whole_.outputs().at(0).node;
  for (NodeId id = 0; id < whole_.size(); ++id) {
    const graph::Node& node = whole_.node(id);
    if (node.kind == graph::NodeKind::input) {
      input_ = id;
      for (int axis = 0; axis < node.shape.rank(); ++axis) {
        axes_[index(id)].push_back({Atom{node.shape[axis], std::max(axis, 1)}});
      }
    }
    bool depending = false;
    for (const NodeId in : node.in) {
      depending = depending || depends(in);
    }
    for (const NodeId data : node.data) {
      if (depends(data)) {
        refuse(id, "it reads places that another layer found in the whole picture");
      }
    }
    if (depending) {
      axes_[index(id)] = node.operation->aliases_input() ? regrouped(id) : followed(id);
    }
  }
}

template <class T>
std::vector<Shape> TileGraph<T>::input_shapes(const graph::Node& node) const {
  std::vector<Shape> shapes;
  for (const NodeId in : node.in) {
    shapes.push_back(whole_.node(in).shape);
  }
  return shapes;
}

/// The atoms of the first input, dealt to the axes of the result; channels may be parted.
template <class T>
std::vector<typename TileGraph<T>::Axis> TileGraph<T>::regrouped(NodeId id) const {
  const graph::Node& node = whole_.node(id);
  std::deque<Atom> atoms;
  for (const Axis& axis : axes_[index(node.in[0])]) {
    for (const Atom& atom : axis) {
      if (atom.extent != 1) {
        atoms.push_back(atom);
      }
    }
  }
  std::vector<Axis> axes;
  for (const Index extent : node.shape) {
    Axis& axis = axes.emplace_back();
    for (Index left = extent; left > 1;) {
      if (atoms.empty()) {
        refuse(id, "it gives the picture other axes");
      }
      Atom& atom = atoms.front();
      if (left % atom.extent == 0) {
        left /= atom.extent;
        axis.push_back(atom);
        atoms.pop_front();
      } else if (!atom.spatial() && atom.extent % left == 0) {
        axis.push_back({left, atom.axis});
        atom.extent /= left;
        left = 1;
      } else {
        refuse(id, "it gives the picture other axes");
      }
    }
  }
  return axes;
}

/// The axes of an operation's result: those of its inputs, where the extents are the same; or cells
/// of its own.
template <class T>
std::vector<typename TileGraph<T>::Axis> TileGraph<T>::followed(NodeId id) {
  const graph::Node& node = whole_.node(id);
  const std::vector<Shape> shapes = input_shapes(node);
  const auto tile = node.operation->tile(shapes, Box(node.shape));
  if (!tile) {
    refuse(id, "every cell of its result needs the whole picture, or it has no tiles");
  }
  TileAxes& mapped = tile_axes_[index(id)];
  mapped = tile->axes;
  if (tile_kernels_ == TileKernels::of_whole) {
    kernels_[index(id)] = node.operation->prepare()->name();
  }
  const int rank = node.shape.rank();
  std::vector<Axis> axes(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    if (!depends(node.in[i])) {
      continue;
    }
    const std::vector<Axis>& from = axes_[index(node.in[i])];
    if (i == 0) {
      for (std::size_t axis = 0; axis < from.size(); ++axis) {
        for (const Atom& atom : from[axis]) {
          if (atom.spatial() && atom.extent > 1 && (mapped.mixed >> axis & 1U) != 0) {
            refuse(id, "every cell of its result needs the whole picture");
          }
        }
      }
    }
    for (int axis = 0; axis < rank; ++axis) {
      const int source = i == 0 && mapped.from.rank() > 0
                             ? static_cast<int>(mapped.from[axis])
                             : axis - (rank - static_cast<int>(from.size()));
      if (source < 0) {
        continue;
      }
      const Axis& found = from[static_cast<std::size_t>(source)];
      Axis& own = axes[static_cast<std::size_t>(axis)];
      if (shapes[i][source] == node.shape[axis]) {
        own = own.size() > found.size() ? own : found;
      } else if (found.size() > 1) {
        refuse(id, "it changes an axis of joined rows and columns");
      } else if (own.empty()) {
        own = {Atom{node.shape[axis], found.empty() ? 1 : found[0].axis}};
      }
    }
  }
  for (int axis = 0; axis < rank; ++axis) {
    Axis& own = axes[static_cast<std::size_t>(axis)];
    if (own.empty() && node.shape[axis] != 1) {
      own = {Atom{node.shape[axis], 1}};
    }
  }
  return axes;
}

/// What a reshape's input gives to ranges of its result. Atoms of one cell were dropped, and parted
/// ones are never cut.
template <class T>
typename TileGraph<T>::Ranges TileGraph<T>::before_regrouping(NodeId id,
                                                              const Ranges& result) const {
  std::deque<IndexRange> ranges;
  std::deque<Index> extents;
  for (std::size_t axis = 0; axis < result.size(); ++axis) {
    for (std::size_t k = 0; k < result[axis].size(); ++k) {
      ranges.push_back(result[axis][k]);
      extents.push_back(axes_[index(id)][axis][k].extent);
    }
  }
  Ranges before;
  for (const Axis& axis : axes_[index(whole_.node(id).in[0])]) {
    std::vector<IndexRange>& own = before.emplace_back();
    for (const Atom& atom : axis) {
      if (atom.extent == 1) {
        own.push_back({0, 1});
        continue;
      }
      own.push_back(extents.front() == atom.extent ? ranges.front() : IndexRange{0, atom.extent});
      for (Index taken = 1; taken < atom.extent;) {
        taken *= extents.front();
        extents.pop_front();
        ranges.pop_front();
      }
    }
  }
  return before;
}

template <class T>
std::optional<typename TileGraph<T>::NodeTile> TileGraph<T>::node_tile(NodeId id,
                                                                       const Ranges& wanted) const {
  const graph::Node& node = whole_.node(id);
  NodeTile result{wanted, {}, {}, nullptr};
  if (node.kind == graph::NodeKind::input) {
    return result;
  }
  if (node.operation->aliases_input()) {
    result.in.push_back(before_regrouping(id, wanted));
    return result;
  }
  Box box(node.shape);
  for (int axis = 0; axis < box.rank(); ++axis) {
    const std::vector<IndexRange>& atoms = wanted[static_cast<std::size_t>(axis)];
    if (atoms.size() == 1) {
      box.set(axis, atoms[0]);
    } else if (atoms.size() > 1) {
      box.set(axis, {0, count_of(atoms)});  // its cells, wherever they lie
    }
  }
  const std::vector<Shape> shapes = input_shapes(node);
  auto tile = node.operation->tile(shapes, box);
  if (!tile) {
    refuse(id, "it has no tile of this form");
  }
  const auto source_of = [&](std::size_t i, int axis) {
    const Shape& from = tile_axes_[index(id)].from;
    return i == 0 && from.rank() > 0 ? static_cast<int>(from[axis])
                                     : axis - (box.rank() - shapes[i].rank());
  };
  const auto require_cells = [&](bool holds) {
    if (!holds) {
      refuse(id, "it does not treat joined rows and columns cell by cell");
    }
  };
  for (int axis = 0; axis < box.rank(); ++axis) {
    std::vector<IndexRange>& atoms = result.computed[static_cast<std::size_t>(axis)];
    if (atoms.size() == 1) {
      atoms[0] = tile->result[axis];
    } else {
      require_cells(tile->result[axis] == box[axis]);
    }
  }
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    Ranges& asked = result.in.emplace_back();
    const bool depending = depends(node.in[i]);
    const std::vector<Axis>& from = axes_[index(node.in[i])];
    asked.resize(from.size());
    for (std::size_t b = 0; b < from.size(); ++b) {
      if (from[b].size() == 1) {
        asked[b] = {tile->in[i][static_cast<int>(b)]};
      }
    }
    for (int axis = 0; axis < box.rank(); ++axis) {
      const int source = source_of(i, axis);
      const std::vector<IndexRange>& atoms = wanted[static_cast<std::size_t>(axis)];
      if (atoms.size() < 2 || source < 0) {
        continue;
      }
      const IndexRange read = tile->in[i][source];
      const auto at = static_cast<std::size_t>(source);
      if (depending && from[at].size() > 1) {
        require_cells(read == box[axis]);
        asked[at] = atoms;
      } else {
        require_cells(read == IndexRange{0, shapes[i][source]});
      }
    }
    for (std::size_t b = 0; b < from.size(); ++b) {
      require_cells(asked[b].size() == from[b].size());
    }
  }
  result.boxes = std::move(tile->in);
  result.operation = std::move(tile->part);
  if (!kernels_[index(id)].empty()) {
    result.operation = graph::shared_operation(new OnKernel(result.operation, kernels_[index(id)]));
  }
  return result;
}

template <class T>
typename TileGraph<T>::Found TileGraph<T>::walk(const Box& output) const {
  std::vector<std::optional<Ranges>> wanted(index(whole_.size()));
  const auto want = [&](NodeId id, const Ranges& ranges) {
    std::optional<Ranges>& all = wanted[index(id)];
    if (!all) {
      all = ranges;
      return;
    }
    for (std::size_t axis = 0; axis < ranges.size(); ++axis) {
      for (std::size_t k = 0; k < ranges[axis].size(); ++k) {
        (*all)[axis][k] = hull((*all)[axis][k], ranges[axis][k]);
      }
    }
  };
  if (!depends(output_)) {
    refuse(output_, "it does not depend on the picture");
  }
  Ranges first;
  for (int axis = 0; axis < output.rank(); ++axis) {
    const Axis& atoms = axes_[index(output_)][static_cast<std::size_t>(axis)];
    if (atoms.size() > 1) {
      refuse(output_, "it gives joined rows and columns back");
    }
    first.push_back(atoms.empty() ? std::vector<IndexRange>() : std::vector{output[axis]});
  }
  want(output_, first);
  Found found(index(whole_.size()));
  for (NodeId id = output_; id >= 0; --id) {
    if (!wanted[index(id)]) {
      continue;
    }
    found[index(id)] = node_tile(id, *wanted[index(id)]);
    const graph::Node& node = whole_.node(id);
    const std::vector<Ranges>& in = found[index(id)]->in;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (depends(node.in[i])) {
        want(node.in[i], in[i]);
      }
    }
  }
  return found;
}

template <class T>
GraphTile TileGraph<T>::tile(const Box& output) const {
  const Found found = walk(output);
  return Assembly(*this, found).finish(output);
}

template <class T>
std::vector<std::optional<Box>> TileGraph<T>::needed(const Box& output) const {
  std::vector<std::optional<Box>> boxes;
  for (const std::optional<NodeTile>& tile : walk(output)) {
    std::optional<Box>& box = boxes.emplace_back();
    if (!tile) {
      continue;
    }
    box.emplace();
    for (const std::vector<IndexRange>& atoms : tile->computed) {
      if (atoms.size() > 1) {
        box.reset();
        break;
      }
      box->begin.push_back(atoms.empty() ? 0 : atoms[0].begin);
      box->count.push_back(atoms.empty() ? 1 : atoms[0].count());
    }
  }
  return boxes;
}

template class TileGraph<float>;
template class TileGraph<double>;

// --- Grids and refusals ------------------------------------------------------------------------

TileGrid TileGrid::of(const Shape& output, const Shape& tile) {
  TileGrid grid{output, tile};
  bool good = tile.rank() == grid.rank();
  for (int axis = 0; good && axis < tile.rank(); ++axis) {
    good = tile[axis] >= 1;
    grid.tile[axis] = std::min(tile[axis], output[axis + 2]);
  }
  if (!good) {
    throw Error(ErrorCode::invalid_extent,
                "tiles: tile " + size_text(tile) + " of an output " + to_string(output) +
                    "\n  fix: at least 1 along each of its " + std::to_string(grid.rank()) +
                    " spatial axes");
  }
  return grid;
}

Index TileGrid::count() const {
  Index n = 1;
  for (int axis = 0; axis < rank(); ++axis) {
    n *= tiles_along(axis);
  }
  return n;
}

Box TileGrid::box(Index number) const {
  Box result(output);
  for (int axis = rank() - 1; axis >= 0; --axis) {
    const Index begin = number % tiles_along(axis) * tile[axis];
    number /= tiles_along(axis);
    result.set(axis + 2, {begin, std::min(begin + tile[axis], output[axis + 2])});
  }
  return result;
}

std::string size_text(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += (axis > 0 ? "x" : "") + std::to_string(shape[axis]);
  }
  return text;
}

void require_space(const Shape& output) {
  if (output.rank() < 3 || output.elements().value_or(0) == 0) {
    throw Error(ErrorCode::rank_mismatch,
                "tiles: the output " + to_string(output) +
                    " has no space to cut\n  fix: a network whose output is (N, C, spatial...)");
  }
}

void throw_refused(const TileRefusal& refusal, const TracedNetwork& network) {
  const graph::Node& node = network.graph.node(refusal.node);
  const std::string op = node.operation != nullptr ? std::string(node.operation->name()) : "input";
  throw Error(op,
              {.code = ErrorCode::memory_limit},
              "tiles: layer " + network.layers[static_cast<std::size_t>(refusal.node)] + ", at " +
                  op + " " + to_string(node.shape) + ": " + refusal.reason +
                  "\n  fix: run the whole picture, or leave the layer out of the network");
}

template <class T>
TileGraph<T> tile_graph(const TracedNetwork& network, TileKernels kernels) {
  const kernels::ScopedNumerics strict(Numerics::strict);
  try {
    return TileGraph<T>(network.graph, kernels);
  } catch (const TileRefusal& refusal) {
    throw_refused(refusal, network);
  }
}

template TileGraph<float> tile_graph(const TracedNetwork&, TileKernels);
template TileGraph<double> tile_graph(const TracedNetwork&, TileKernels);

}  // namespace fenestra::nn::detail
