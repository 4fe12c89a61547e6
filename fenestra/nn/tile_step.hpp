// TileSteps<T>: the step of a batch on a part of its pictures, as a program of its own: what a tile
// of the scores needs of the network (tile_graph.hpp), a loss of these scores alone, and its
// gradients. A loss that is a mean over cells is the mean of what tiles give, each weighted by its
// cells; so are its gradients. Statistics and masks of layers are those of the tile, as of a leaf.
// Not installed; the inside of trainer_core.hpp.
#pragma once

#include <fenestra/nn/tile_graph.hpp>
#include <fenestra/nn/trainer_program.hpp>

#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fenestra::nn::detail {

/// What a step on tiles is of.
template <class T>
struct TileStepParts {
  const typename TrainerCore<T>::Parts& parts;
  const LossFunction<T>& loss;
  std::span<const Slot<T>> slots;
  const Shape& tile;  ///< of the scores, along each spatial axis
};

/// The graph of a network in training, of a picture of that shape, with the layer of each node.
/// Slots are parameters and data of their names. What depends on a leaf is an operation that only
/// `replayed` understands. Throws `unsupported` where something does so by other means.
template <class T>
TracedNetwork trace_training(const typename TrainerCore<T>::Parts& parts,
                             std::span<const Slot<T>> slots,
                             const Shape& input);

/// A tile of such a graph, traced once more: of the part `x` of the picture, with what the slots
/// are now, and with statistics and masks by `pass`.
template <class T>
Value<T> replayed(const graph::Graph& tile,
                  const Value<T>& x,
                  std::span<const Slot<T>> slots,
                  Pass<T>& pass);

template <class T>
class TileSteps {
 public:
  /// Cells of each tile of the scores that inputs of this shape have. Throws `memory_limit` where a
  /// layer needs the whole picture, with its name.
  std::vector<Index> cells(const TileStepParts<T>& of, const Shape& inputs);
  /// What a tile has of a batch.
  Batch<T> part(const TileStepParts<T>& of, const Batch<T>& batch, Index tile);
  /// The step of a tile of pictures of the shape `inputs`, and whether it was made now. `batch` is
  /// what the tile has. Only one program has memory at a time.
  StepProgram<T>& program(const TileStepParts<T>& of,
                          const Shape& inputs,
                          Index tile,
                          const BatchView<T>& batch,
                          bool& traced);
  void clear();

 private:
  /// Pictures of one shape.
  struct Network {
    Shape inputs;
    TracedNetwork traced;
    TileGraph<T> graph;
    TileGrid grid;

    Network(const TileStepParts<T>& of, const Shape& shape);
    GraphTile cut(Index tile) const;
  };
  Network& network(const TileStepParts<T>& of, const Shape& inputs);

  std::list<Network> networks_;
  std::map<std::string, StepProgram<T>> programs_;
  StepProgram<T>* last_ = nullptr;
};

extern template class TileSteps<float>;
extern template class TileSteps<double>;

}  // namespace fenestra::nn::detail
