// The vector loops of the weight gradient by outer products, for every instruction set. Internal:
// not installed. They know runs of cells, places and panels; outer.cpp says which ones.
#pragma once

#include <fenestra/base/error.hpp>

namespace fenestra::detail {

/// Pointers of a tile, at most: more leave the registers, and each costs a load per cell.
inline constexpr Index kOuterGroups = 10;

/// Cells of y side by side: those of the panel from `y` on, and what they see of x from `x` on.
struct OuterRun {
  Index x = 0;
  Index y = 0;
  Index cells = 0;
};

/// sums[place][lane] (+)= sum over the cells of the runs of x[place, cell] * y[cell][lane]. A place
/// is a number of x that every cell sees: `places` neighbours for each of `groups` pointers.
template <class T>
struct OuterTile {
  const T* const* x = nullptr;  ///< groups pointers
  const OuterRun* run = nullptr;
  Index runs = 0;
  Index step = 1;        ///< numbers of x from one cell to the next
  const T* y = nullptr;  ///< [cell][vectors * lanes]
  Index groups = 1;
  Index places = 1;
  Index vectors = 1;
  T* sums = nullptr;      ///< [vectors * lanes] for each place, those of a group in a row
  Index group_pitch = 0;  ///< sums from one group to the next
  bool accumulate = false;
};

/// Few output channels that fill no vector of their own: sums[channel][place] (+)= the same sums,
/// with vectors along places or along cells.
template <class T>
struct OuterRest {
  const T* const* x = nullptr;  ///< groups pointers
  const OuterRun* run = nullptr;
  Index runs = 0;
  Index step = 1;
  const T* y = nullptr;  ///< [channel][cell]
  Index y_pitch = 0;     ///< from channel to channel
  Index channels = 1;    ///< at most kOuterRest
  Index groups = 1;
  Index neighbours = 1;
  T* sums = nullptr;  ///< places of a channel side by side
  Index sums_pitch = 0;
  bool accumulate = false;
};
inline constexpr Index kOuterRest = 4;

/// The loops for one instruction set.
template <class T>
struct OuterLoops {
  Index lanes;
  /// Places (groups times neighbours) that a tile of so many vectors may have, 1, 2 or 4.
  Index (*most_places)(Index vectors);
  void (*add_tile)(const OuterTile<T>&);
  /// Vectors along neighbouring places, and along cells that lie side by side: of step 1.
  void (*add_rest_places)(const OuterRest<T>&);
  void (*add_rest_cells)(const OuterRest<T>&);
  /// out (+)= parts[0] + parts[pitch] + ... one after the other, `size` numbers: whole vectors.
  void (*add_sums)(const T* parts, Index pitch, Index count, bool accumulate, Index size, T* out);
};

/// Those of the best instruction set of this machine.
template <class T>
const OuterLoops<T>& outer_loops();
template <>
const OuterLoops<float>& outer_loops();
template <>
const OuterLoops<double>& outer_loops();

}  // namespace fenestra::detail
