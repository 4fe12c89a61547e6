// The convolution family by Winograd's F(4x4, 3x3), as an expression in any field: plain loops,
// never optimised. In rationals it equals the definition; in float it is what conv_*_winograd
// computes, and its rounding bound is read off it.
//
//   Y = A' [ sum over channels of (G w G') . (B' x B) ] A       . by elements, ' transposed
//
// for a tile Y of 4 x 4 cells of y and the 6 x 6 cells of x it sees. The matrices interpolate
// polynomials at 0, +-5/8, +-3/2 and infinity. The same trilinear form gives the weight gradient,
// G' [ sum over tiles of (B' x B) . (A y_bar A') ] G, and flipped weights the input gradient.
//
// Rounding: a term passes at most n roundings on its way, so by elements
//
//   |error| <= gamma(n) |A|' [ sum (|G| |w| |G|') . (|B|' |x| |B|) ] |A|,    gamma(n) = n u/(1 - n
//   u)
//
// with n = channels + 21 (`winograd_roundings`). Where |x| and |w| are about equal everywhere, the
// sum is at most 63 times (50 in the weight gradient) that of the definition's |x| |w|; n is nearly
// 9 times smaller, so the bound is 7 to 10 times the strict one. With the usual points +-1 and +-2
// it would be 28 to 37 times: 5/8 and 3/2 are exact in binary and their powers stay close to 1.
// Unlike the strict bound, this one speaks of the whole tile: a large or infinite cell is felt by
// its neighbours up to 5 cells away, and an infinite weight by everything.
#pragma once

#include <fenestra/ops/conv/geometry.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fenestra::spec {

/// Roundings on the way of a term, G's own entries included. Forward: 6 by B, 8 by G, one per
/// channel, 6 by A and the bias; weight gradient: 6 by B, 6 by A, one per tile, 10 by G.
constexpr Index winograd_roundings(ConvDirection direction, const ConvGeometry& g) {
  switch (direction) {
    case ConvDirection::forward: return g.in_channels + 21;
    case ConvDirection::input_grad: return g.out_channels + 21;
    case ConvDirection::weight_grad: break;
  }
  const Index rows = (g.windows[0].out + 3) / 4;
  const Index columns = (g.windows[1].out + 3) / 4;
  return g.batch * rows * columns + 22;
}

namespace detail {

struct WinogradRatio {
  int numerator = 0;
  int denominator = 1;
};

/// B', G and A'.
inline constexpr WinogradRatio kWinogradData[6][6] = {
    {{225, 256}, {}, {-169, 64}, {}, {1}, {}},
    {{}, {-45, 32}, {-9, 4}, {5, 8}, {1}, {}},
    {{}, {45, 32}, {-9, 4}, {-5, 8}, {1}, {}},
    {{}, {-75, 128}, {-25, 64}, {3, 2}, {1}, {}},
    {{}, {75, 128}, {-25, 64}, {-3, 2}, {1}, {}},
    {{}, {225, 256}, {}, {-169, 64}, {}, {1}},
};
inline constexpr WinogradRatio kWinogradWeights[6][3] = {
    {{256, 225}, {}, {}},
    {{-2048, 2975}, {-256, 595}, {-32, 119}},
    {{-2048, 2975}, {256, 595}, {-32, 119}},
    {{128, 1071}, {64, 357}, {32, 119}},
    {{128, 1071}, {-64, 357}, {32, 119}},
    {{}, {}, {1}},
};
inline constexpr WinogradRatio kWinogradCells[4][6] = {
    {{1}, {1}, {1}, {1}, {1}, {}},
    {{}, {5, 8}, {-5, 8}, {3, 2}, {-3, 2}, {}},
    {{}, {25, 64}, {25, 64}, {9, 4}, {9, 4}, {}},
    {{}, {125, 512}, {-125, 512}, {27, 8}, {-27, 8}, {1}},
};

}  // namespace detail

/// A square of cells, taps or products, row-major, and the matrices that act on it.
template <Field T>
using WinogradSquare = std::vector<T>;

template <Field T>
struct WinogradMatrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<T> entries;

  const T& at(std::size_t r, std::size_t c) const { return entries[r * columns + c]; }
  WinogradMatrix transposed() const {
    WinogradMatrix result{columns, rows, {}};
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t r = 0; r < rows; ++r) {
        result.entries.push_back(at(r, c));
      }
    }
    return result;
  }
  /// M s M', entries that are zero left out.
  WinogradSquare<T> both_sides(const WinogradSquare<T>& s) const {
    return from_left(from_left(s, columns), rows);
  }

 private:
  /// (M s)', s with `width` columns.
  WinogradSquare<T> from_left(const WinogradSquare<T>& s, std::size_t width) const {
    WinogradSquare<T> result(width * rows, T(0));
    for (std::size_t c = 0; c < width; ++c) {
      for (std::size_t r = 0; r < rows; ++r) {
        T sum(0);
        bool first = true;
        for (std::size_t k = 0; k < columns; ++k) {
          if (at(r, k) == T(0)) {
            continue;
          }
          const T term = at(r, k) * s[k * width + c];
          sum = first ? term : sum + term;
          first = false;
        }
        result[c * rows + r] = sum;
      }
    }
    return result;
  }
};

/// The transforms on one geometry: two spatial axes, 3x3, stride 1, dilation 1, one group.
template <Field T>
class Winograd {
 public:
  /// With `magnitudes` the matrices are taken by absolute value: what the rounding bound asks for.
  explicit Winograd(const ConvGeometry& g, bool magnitudes = false)
      : g_(g),
        data_(matrix(detail::kWinogradData, magnitudes)),
        weights_(matrix(detail::kWinogradWeights, magnitudes)),
        cells_(matrix(detail::kWinogradCells, magnitudes)) {}

  const WinogradMatrix<T>& data() const { return data_; }        ///< B', 6 x 6
  const WinogradMatrix<T>& weights() const { return weights_; }  ///< G, 6 x 3
  const WinogradMatrix<T>& cells() const { return cells_; }      ///< A', 4 x 6

  /// One contraction; `b` may be null and is null for the weight gradient.
  Tensor<T> run(ConvDirection direction,
                const Tensor<T>& lhs,
                const Tensor<T>& rhs,
                const Tensor<T>* b) const {
    const bool transposed = direction == ConvDirection::input_grad;
    require_shape("winograd", "lhs", lhs, transposed ? g_.y_shape() : g_.x_shape());
    const bool has_w = direction != ConvDirection::weight_grad;
    require_shape("winograd", "rhs", rhs, has_w ? g_.w_shape() : g_.y_shape());
    return has_w ? correlation(transposed, lhs, rhs, b) : weight_grad(lhs, rhs);
  }

 private:
  using Square = WinogradSquare<T>;

  template <std::size_t rows, std::size_t columns>
  static WinogradMatrix<T> matrix(const detail::WinogradRatio (&ratios)[rows][columns],
                                  bool magnitudes) {
    WinogradMatrix<T> result{rows, columns, {}};
    for (const auto& row : ratios) {
      for (const auto [numerator, denominator] : row) {
        const int value = magnitudes && numerator < 0 ? -numerator : numerator;
        result.entries.push_back(T(value) / T(denominator));
      }
    }
    return result;
  }

  /// An activation: who maps (sample, channel, cell), and its two extents.
  struct Image {
    ActivationMap map;
    Index rows = 0;
    Index width = 0;
  };
  Image x_image() const { return {g_.x_map(), g_.windows[0].in, g_.windows[1].in}; }
  Image y_image() const { return {g_.y_map(), g_.windows[0].out, g_.windows[1].out}; }

  /// Cells (row, column) and on, `side` of them each way; those outside are zeros.
  static Square patch(const Tensor<T>& values,
                      const Image& image,
                      Index n,
                      Index channel,
                      Index row,
                      Index column,
                      Index side) {
    Square square;
    for (Index r = row; r < row + side; ++r) {
      for (Index c = column; c < column + side; ++c) {
        const bool real = r >= 0 && r < image.rows && c >= 0 && c < image.width;
        square.push_back(real ? values[image.map.at(n, channel, r * image.width + c)] : T(0));
      }
    }
    return square;
  }
  template <class F>
  static void for_each_tile(const Image& image, F&& f) {
    for (Index n = 0; n < image.map.batch; ++n) {
      for (Index row = 0; row < image.rows; row += 4) {
        for (Index column = 0; column < image.width; column += 4) {
          f(n, row, column);
        }
      }
    }
  }
  static void add_product(Square& sums, const Square& a, const Square& b) {
    for (std::size_t e = 0; e < sums.size(); ++e) {
      sums[e] = sums[e] + a[e] * b[e];
    }
  }

  /// Forward, and the input gradient: the same on flipped weights, target cell o seeing source
  /// cells o + pad - 2 and on.
  Tensor<T> correlation(bool transposed,
                        const Tensor<T>& source,
                        const Tensor<T>& w,
                        const Tensor<T>* b) const {
    const Image from = transposed ? y_image() : x_image();
    const Image to = transposed ? x_image() : y_image();
    const auto first_source = [&](const WindowAxis& a) {
      return transposed ? a.cell_step(1 - a.span()) : a.window(0).first;
    };
    const Index first_row = first_source(g_.windows[0]);
    const Index first_column = first_source(g_.windows[1]);
    const Index sources = from.map.channels;
    const Index targets = to.map.channels;
    std::vector<Square> transformed;  // weights, [target][source]
    for (Index t = 0; t < targets; ++t) {
      for (Index s = 0; s < sources; ++s) {
        Square taps;
        for (Index tap = 0; tap < 9; ++tap) {
          taps.push_back(transposed ? w[g_.w_map().at(s, t, 8 - tap)]
                                    : w[g_.w_map().at(t, s, tap)]);
        }
        transformed.push_back(weights_.both_sides(taps));
      }
    }
    Tensor<T> target(transposed ? g_.x_shape() : g_.y_shape());
    T* out = target.mutable_data();
    for_each_tile(to, [&](Index n, Index row, Index column) {
      std::vector<Square> patches;
      for (Index s = 0; s < sources; ++s) {
        patches.push_back(
            data_.both_sides(patch(source, from, n, s, row + first_row, column + first_column, 6)));
      }
      for (Index t = 0; t < targets; ++t) {
        Square sums(36, T(0));
        for (Index s = 0; s < sources; ++s) {
          add_product(sums,
                      transformed[static_cast<std::size_t>(t * sources + s)],
                      patches[static_cast<std::size_t>(s)]);
        }
        const Square tile = cells_.both_sides(sums);
        for (Index r = row; r < std::min(row + 4, to.rows); ++r) {
          for (Index c = column; c < std::min(column + 4, to.width); ++c) {
            const T& value = tile[static_cast<std::size_t>((r - row) * 4 + (c - column))];
            out[to.map.at(n, t, r * to.width + c)] = b != nullptr ? value + (*b)[t] : value;
          }
        }
      }
    });
    return target;
  }

  Tensor<T> weight_grad(const Tensor<T>& x, const Tensor<T>& y_bar) const {
    const WinogradMatrix<T> spread = cells_.transposed();
    const WinogradMatrix<T> gather = weights_.transposed();
    const Index ins = g_.in_channels;
    const Index outs = g_.out_channels;
    std::vector<Square> sums(static_cast<std::size_t>(outs * ins), Square(36, T(0)));
    for_each_tile(y_image(), [&](Index n, Index row, Index column) {
      std::vector<Square> patches;
      for (Index ci = 0; ci < ins; ++ci) {
        patches.push_back(data_.both_sides(patch(x,
                                                 x_image(),
                                                 n,
                                                 ci,
                                                 g_.windows[0].window(row).first,
                                                 g_.windows[1].window(column).first,
                                                 6)));
      }
      for (Index co = 0; co < outs; ++co) {
        const Square tile = spread.both_sides(patch(y_bar, y_image(), n, co, row, column, 4));
        for (Index ci = 0; ci < ins; ++ci) {
          add_product(sums[static_cast<std::size_t>(co * ins + ci)],
                      patches[static_cast<std::size_t>(ci)],
                      tile);
        }
      }
    });
    Tensor<T> w_bar(g_.w_shape());
    T* out = w_bar.mutable_data();
    for (Index co = 0; co < outs; ++co) {
      for (Index ci = 0; ci < ins; ++ci) {
        const Square taps = gather.both_sides(sums[static_cast<std::size_t>(co * ins + ci)]);
        for (Index tap = 0; tap < 9; ++tap) {
          out[g_.w_map().at(co, ci, tap)] = taps[static_cast<std::size_t>(tap)];
        }
      }
    }
    return w_bar;
  }

  ConvGeometry g_;
  WinogradMatrix<T> data_;
  WinogradMatrix<T> weights_;
  WinogradMatrix<T> cells_;
};

}  // namespace fenestra::spec
