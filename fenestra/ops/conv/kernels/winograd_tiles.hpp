// The vector loops of the transformed convolution: tiles of cells to and from the 36 products of
// F(4x4, 3x3). Internal: not installed. They know tiles and blocks of channels;
// winograd.cpp says which ones. The transforms and their rounding are described in
// winograd.hpp.
//
// A block is two vectors of neighbouring channels. What is transformed lies as [product][row][block
// of channels], rows being tiles, or source channels in the weights.
#pragma once

#include <fenestra/base/error.hpp>

namespace fenestra::detail {

inline constexpr Index kTileSide = 4;               // cells of the target that a tile gives
inline constexpr Index kPatchSide = kTileSide + 2;  // cells of the source that it sees
inline constexpr Index kProducts = kPatchSide * kPatchSide;
inline constexpr Index kWinogradTaps = 9;

/// Rows of tiles [begin, end) of one image, and the cells they stand on. Tile (i, j) begins at row
/// 4 i + first_row and column 4 j + first_column; cells outside the image are zeros.
struct TileRows {
  Index begin = 0;
  Index end = 0;
  Index columns = 0;  ///< tiles of a row
  Index first_row = 0;
  Index first_column = 0;
};

/// Rows [row0, row1) of an image of `width` columns, seen through one block of channels.
template <class T>
struct ImageRows {
  T* cells = nullptr;  ///< cell (row0, 0), first channel of the block
  Index row0 = 0;
  Index row1 = 0;
  Index width = 0;
  Index row_stride = 0;
  Index cell_stride = 0;
  Index channels = 0;  ///< that exist; at most a block
};

/// Where the products of a block of channels lie.
template <class T>
struct ProductRows {
  T* data = nullptr;  ///< of the first tile
  Index product_stride = 0;
  Index row_stride = 0;
};

/// The loops for one instruction set.
template <class T>
struct WinogradLoops {
  Index block = 0;  ///< channels of a block
  /// Patches of 6 x 6 cells of x, transformed by B.
  void (*read_data)(const TileRows&, const ImageRows<const T>&, const ProductRows<T>&) = nullptr;
  /// Tiles of 4 x 4 cells of y_bar, transformed by A.
  void (*read_cotangent)(const TileRows&,
                         const ImageRows<const T>&,
                         const ProductRows<T>&) = nullptr;
  /// Tiles of 4 x 4 cells from their products; `bias`, a block of it, may be null.
  void (*write_cells)(const TileRows&,
                      const ProductRows<const T>&,
                      const T* bias,
                      const ImageRows<T>&) = nullptr;
  /// taps: [source channel][tap][block], taps in reverse order where `flipped`.
  void (*read_weights)(const T* taps, Index sources, bool flipped, const ProductRows<T>&) = nullptr;
  /// One row of `columns` sums, a multiple of the block, to taps: [tap][columns].
  void (*write_weights)(const ProductRows<const T>&, Index columns, T* taps) = nullptr;
};

/// Those of the best instruction set of this machine.
template <class T>
const WinogradLoops<T>& winograd_loops();

}  // namespace fenestra::detail
