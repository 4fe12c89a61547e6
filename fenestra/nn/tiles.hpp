// Networks on pictures that are larger than memory, tile by tile, with the bits of the whole.
//
//   nn::infer_tiled(net, source, sink, {.memory = std::size_t{1} << 30});
//
// A tile of the output needs a computed part of every layer before it, and that part is the same
// layer with a geometry of its own: its padding is what is left of the picture's padding where the
// tile touches the border. No overlap is chosen and nothing is blended. A network in which a cell
// needs the whole picture (global pooling, statistics over space, a linear layer on all cells) is
// refused by the name of the layer. docs/decisions/0026-tiles.md says why bits are equal.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>
#include <fenestra/graph/value.hpp>
#include <fenestra/nn/layer.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fenestra::nn {

/// A picture (N, C, spatial...) that is read by parts: `read` fills as many numbers as the box has
/// cells, in the order of a dense tensor.
template <class T>
struct TileSource {
  Shape shape;
  std::function<void(const Box& box, T* out)> read;
};

/// Where a result goes. Every cell is written once, by boxes that do not overlap.
template <class T>
struct TileSink {
  std::function<void(const Shape& shape)> begin = {};  ///< before the first tile; may be empty
  std::function<void(const Box& box, const T* values)> write;
};

struct TileOptions {
  /// Of the output along each spatial axis, the last tiles smaller; empty: as large as fits.
  Shape tile = {};
  /// Bytes for tiles, with everything between their input and output, and for the parameters. What
  /// the program itself and the scratch of its threads take comes on top.
  std::size_t memory = std::size_t{1} << 30;
  /// Which of the tiles, in their order: this one, and every so many. For several who share them.
  Index first = 0;
  Index stride = 1;
  /// After each tile, with their number.
  std::function<void(Index done, Index all)> progress = {};
};

struct TileReport {
  Shape output;
  Shape tile;              ///< of the output, along each spatial axis
  Index tiles = 0;         ///< computed; one of full size that did not fit was cut in two
  Index programs = 0;      ///< tiles of different geometry that were compiled
  std::size_t bytes = 0;   ///< the most that a tile took, parameters counted
  double input_share = 1;  ///< cells read, by cells of the picture: what the overlap costs
};

/// A network as a graph of one picture, its parameters constants, and the layer that each node
/// belongs to.
struct TracedNetwork {
  graph::Graph graph;
  std::vector<std::string> layers;  ///< of each node: "level.down.first (conv)"
};

/// The network on tiles of one geometry of pictures. Throws `memory_limit` where not even the
/// smallest tile fits, or where a layer needs the whole picture, with its name.
template <class T>
class FENESTRA_API TiledNetwork {
 public:
  TiledNetwork(const TracedNetwork& network, const TileOptions& options);
  ~TiledNetwork();
  TiledNetwork(TiledNetwork&&) noexcept;
  TiledNetwork& operator=(TiledNetwork&&) noexcept;

  const Shape& output() const;
  /// Of the output, along each spatial axis.
  const Shape& tile() const;
  TileReport run(const TileSource<T>& source, const TileSink<T>& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What one cell of the output sees of the outputs of a layer.
struct LayerCells {
  std::string layer;
  Shape output;  ///< of the layer, on the whole picture
  Box cells;     ///< of it, that the cell needs
};

/// What a box of the output needs of every layer before it, the picture first; layers whose axes
/// are joined are left out. Throws `memory_limit` where a layer needs the whole picture, with its
/// name.
template <class T>
FENESTRA_API std::vector<LayerCells> needed_layers(const TracedNetwork& network, const Box& output);

namespace detail {

/// Gives names to the nodes that layers append to a graph.
class FENESTRA_API LayerNames {
 public:
  explicit LayerNames(const graph::Graph& graph) : graph_(graph) {}
  /// Nodes without a name are this layer's.
  void layer(const std::string& name, std::string_view kind);
  std::vector<std::string> finish();

 private:
  const graph::Graph& graph_;
  std::vector<std::string> names_;
};

}  // namespace detail

/// The graph of a model in inference.
template <class T, class Model>
TracedNetwork trace_network(const Model& model, const Shape& input) {
  graph::Builder<T> builder;
  const Level level = builder.graph().level();
  detail::LayerNames names(builder.graph());
  const Value<T> x(level, builder.input(input, "x"));
  names.layer("picture", "input");
  Pass<T> pass = Pass<T>::inference();
  pass.set_observer([&](const LayerCall<T>& call) { names.layer(call.name, call.kind); });
  const Value<T> y = [&]() -> Value<T> {
    if constexpr (detail::CalledWithPass<Model, T>) {
      return model(x, pass);
    } else {
      return model(x);
    }
  }();
  const auto* traced = y.template as<graph::Value<T>>();
  builder.output(traced != nullptr ? *traced : graph::Value<T>(y.tensor()), "y");
  names.layer("", "model");
  return {builder.graph(), names.finish()};
}

/// The output of a model in inference, tile by tile: bit for bit that of `infer` on the whole.
template <class T, class Model>
TileReport infer_tiled(const Model& model,
                       const TileSource<T>& source,
                       const TileSink<T>& sink,
                       const TileOptions& options = {}) {
  return TiledNetwork<T>(trace_network<T>(model, source.shape), options).run(source, sink);
}

/// The same on tensors.
template <class Model, class T>
Tensor<T> infer_tiled(const Model& model, const Tensor<T>& x, const TileOptions& options = {});

/// Tensors as pictures by parts.
template <class T>
FENESTRA_API TileSource<T> tensor_source(const Tensor<T>& x);
template <class T>
FENESTRA_API TileSink<T> tensor_sink(Tensor<T>& y);

template <class Model, class T>
Tensor<T> infer_tiled(const Model& model, const Tensor<T>& x, const TileOptions& options) {
  Tensor<T> y;
  infer_tiled<T>(model, tensor_source(x), tensor_sink(y), options);
  return y;
}

extern template class TiledNetwork<float>;
extern template class TiledNetwork<double>;

}  // namespace fenestra::nn
