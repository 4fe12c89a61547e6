// Networks on a picture that several ranks share: each has a slab of rows of every layer, and gets
// what its windows reach beyond them from the ranks that computed it.
//
//   nn::SlabNetwork<float> slabs(nn::trace_network<float>(net, shape), communicator);
//   slabs.run(source, sink);    // on every rank: its rows of the output
//
// The rows that a layer needs are those of the window map, as for tiles (tiles.hpp); nothing is
// computed twice, and every cell has the bits of the whole. Read on: docs/decisions/0026-tiles.md.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/tiles.hpp>
#include <fenestra/ranks/communicator.hpp>

#include <cstddef>
#include <memory>

namespace fenestra::nn {

/// How a rank comes to rows beyond its own.
enum class Halos {
  exchanged,   ///< from the ranks that computed them, layer by layer
  recomputed,  ///< by itself, from a larger part of the picture: no messages, more work
};

struct SlabReport {
  Shape output;
  Box own;                 ///< of the output: what this rank computed
  Index stages = 0;        ///< parts of the network between which ranks meet
  std::size_t sent = 0;    ///< bytes, by this rank
  std::size_t bytes = 0;   ///< the most that activations took
  double input_share = 1;  ///< cells read by this rank, by cells of the picture
};

/// The network on slabs of one geometry of pictures. Throws `memory_limit` where a layer needs the
/// whole picture, with its name, and `invalid_extent` where a layer has fewer rows than there are
/// ranks. All ranks make the same calls.
template <class T>
class FENESTRA_API SlabNetwork {
 public:
  /// `communicator` may be null: one rank.
  SlabNetwork(const TracedNetwork& network,
              ranks::CommunicatorPtr communicator,
              Halos halos = Halos::exchanged);
  ~SlabNetwork();
  SlabNetwork(SlabNetwork&&) noexcept;
  SlabNetwork& operator=(SlabNetwork&&) noexcept;

  const Shape& output() const;
  /// The part of the output that a rank computes.
  Box own(int rank) const;
  /// Reads what this rank needs of the picture, and writes its part of the output.
  SlabReport run(const TileSource<T>& source, const TileSink<T>& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class SlabNetwork<float>;
extern template class SlabNetwork<double>;

}  // namespace fenestra::nn
