// The transforms of F(4x4, 3x3) in vectors of channels, for every instruction set; see
// winograd_tiles.hpp for the loops and winograd.hpp for the matrices.
//
// Points +p and -p share their even and their odd part, so a matrix row costs about two
// multiply-adds. No term is added and taken away again, so the absolute values of the matrices
// bound what happens here.
#include <fenestra/kernels/simd.hpp>
#include <fenestra/ops/conv/kernels/winograd_tiles.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/conv/kernels/winograd_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace fenestra::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Other kernel files have functions of the same names in this namespace.
namespace {

constexpr int kBlockVectors = 2;

template <class T>
constexpr Index lanes_of() {
  return static_cast<Index>(hn::MaxLanes(hn::ScalableTag<T>()));
}
template <class T>
constexpr Index block_of() {
  return kBlockVectors * lanes_of<T>();
}

// The points 0, +-p, +-q and infinity.
constexpr double kP = 5.0 / 8;
constexpr double kQ = 3.0 / 2;
constexpr double kP2 = kP * kP;
constexpr double kQ2 = kQ * kQ;
// 1 / (p^2 q^2), and the factors of the rows of +-p and +-q of G.
constexpr double kZero = 1 / (kP2 * kQ2);
constexpr double kAtP = 1 / (2 * kP2 * (kP2 - kQ2));
constexpr double kAtQ = 1 / (2 * kQ2 * (kQ2 - kP2));

template <class T>
using VecOf = hn::Vec<hn::ScalableTag<T>>;

template <class T>
HWY_INLINE VecOf<T> constant(double value) {
  return hn::Set(hn::ScalableTag<T>(), static_cast<T>(value));
}

/// out = even + odd, even - odd.
template <class V>
HWY_INLINE void add_both(V even, V odd, V& plus, V& minus) {
  plus = hn::Add(even, odd);
  minus = hn::Sub(even, odd);
}

/// B: cells of x to products.
template <class T>
struct OfData {
  static constexpr int kIn = 6;
  static constexpr int kOut = 6;
  template <class V>
  static HWY_INLINE void apply(const V* x, V* v) {
    const V p = constant<T>(kP);
    const V q = constant<T>(kQ);
    const V p2 = constant<T>(kP2);
    const V q2 = constant<T>(kQ2);
    const V product = constant<T>(kP2 * kQ2);
    const V sum = constant<T>(kP2 + kQ2);
    v[0] = hn::MulAdd(product, x[0], hn::NegMulAdd(sum, x[2], x[4]));
    add_both(hn::NegMulAdd(q2, x[2], x[4]), hn::Mul(p, hn::NegMulAdd(q2, x[1], x[3])), v[1], v[2]);
    add_both(hn::NegMulAdd(p2, x[2], x[4]), hn::Mul(q, hn::NegMulAdd(p2, x[1], x[3])), v[3], v[4]);
    v[5] = hn::MulAdd(product, x[1], hn::NegMulAdd(sum, x[3], x[5]));
  }
};

/// A: cells of y_bar to products.
template <class T>
struct OfCotangent {
  static constexpr int kIn = 4;
  static constexpr int kOut = 6;
  template <class V>
  static HWY_INLINE void apply(const V* y, V* v) {
    v[0] = y[0];
    add_both(hn::MulAdd(constant<T>(kP2), y[2], y[0]),
             hn::MulAdd(constant<T>(kP2 * kP), y[3], hn::Mul(constant<T>(kP), y[1])),
             v[1],
             v[2]);
    add_both(hn::MulAdd(constant<T>(kQ2), y[2], y[0]),
             hn::MulAdd(constant<T>(kQ2 * kQ), y[3], hn::Mul(constant<T>(kQ), y[1])),
             v[3],
             v[4]);
    v[5] = y[3];
  }
};

/// The transpose of A: products to cells of y.
template <class T>
struct ToCells {
  static constexpr int kIn = 6;
  static constexpr int kOut = 4;
  template <class V>
  static HWY_INLINE void apply(const V* m, V* y) {
    V even_p, odd_p, even_q, odd_q;
    add_both(m[1], m[2], even_p, odd_p);
    add_both(m[3], m[4], even_q, odd_q);
    y[0] = hn::Add(m[0], hn::Add(even_p, even_q));
    y[1] = hn::MulAdd(constant<T>(kP), odd_p, hn::Mul(constant<T>(kQ), odd_q));
    y[2] = hn::MulAdd(constant<T>(kP2), even_p, hn::Mul(constant<T>(kQ2), even_q));
    y[3] = hn::MulAdd(constant<T>(kP2 * kP), odd_p, hn::MulAdd(constant<T>(kQ2 * kQ), odd_q, m[5]));
  }
};

/// G: taps to products.
template <class T>
struct OfWeights {
  static constexpr int kIn = 3;
  static constexpr int kOut = 6;
  template <class V>
  static HWY_INLINE void apply(const V* w, V* u) {
    u[0] = hn::Mul(constant<T>(kZero), w[0]);
    add_both(hn::MulAdd(constant<T>(kAtP * kP2), w[2], hn::Mul(constant<T>(kAtP), w[0])),
             hn::Mul(constant<T>(kAtP * kP), w[1]),
             u[1],
             u[2]);
    add_both(hn::MulAdd(constant<T>(kAtQ * kQ2), w[2], hn::Mul(constant<T>(kAtQ), w[0])),
             hn::Mul(constant<T>(kAtQ * kQ), w[1]),
             u[3],
             u[4]);
    u[5] = w[2];
  }
};

/// The transpose of G: products to taps of w_bar.
template <class T>
struct ToTaps {
  static constexpr int kIn = 6;
  static constexpr int kOut = 3;
  template <class V>
  static HWY_INLINE void apply(const V* s, V* w) {
    V even_p, odd_p, even_q, odd_q;
    add_both(s[1], s[2], even_p, odd_p);
    add_both(s[3], s[4], even_q, odd_q);
    w[0] = hn::MulAdd(constant<T>(kZero),
                      s[0],
                      hn::MulAdd(constant<T>(kAtP), even_p, hn::Mul(constant<T>(kAtQ), even_q)));
    w[1] = hn::MulAdd(constant<T>(kAtP * kP), odd_p, hn::Mul(constant<T>(kAtQ * kQ), odd_q));
    w[2] = hn::MulAdd(
        constant<T>(kAtP * kP2), even_p, hn::MulAdd(constant<T>(kAtQ * kQ2), even_q, s[5]));
  }
};

/// Both sides of a square: element (r, c) at src + r * row + c * column, result (r, c) to dst +
/// (r * kOut + c) * product. `add`, where given, is added to every element of the result.
template <class T, class Transform>
HWY_INLINE void transform_square(const T* HWY_RESTRICT src,
                                 Index row,
                                 Index column,
                                 T* HWY_RESTRICT dst,
                                 Index dst_row,
                                 Index dst_column,
                                 const T* add) {
  constexpr int kIn = Transform::kIn;
  constexpr int kOut = Transform::kOut;
  const hn::ScalableTag<T> d;
  VecOf<T> half[kOut][kIn];
  for (int c = 0; c < kIn; ++c) {
    VecOf<T> in[kIn];
    VecOf<T> out[kOut];
    FENESTRA_UNROLL
    for (int r = 0; r < kIn; ++r) {
      in[r] = hn::LoadU(d, src + r * row + c * column);
    }
    Transform::apply(in, out);
    FENESTRA_UNROLL
    for (int r = 0; r < kOut; ++r) {
      half[r][c] = out[r];
    }
  }
  for (int r = 0; r < kOut; ++r) {
    VecOf<T> out[kOut];
    Transform::apply(half[r], out);
    FENESTRA_UNROLL
    for (int c = 0; c < kOut; ++c) {
      if (add != nullptr) {
        out[c] = hn::Add(out[c], hn::LoadU(d, add));
      }
      hn::StoreU(out[c], d, dst + r * dst_row + c * dst_column);
    }
  }
}

/// The cells of a square that stand on the image, of both vectors; the others are zeros.
template <class T, int kSide>
HWY_NOINLINE void copy_patch(const ImageRows<const T>& image,
                             Index row,
                             Index column,
                             T* HWY_RESTRICT patch) {
  constexpr Index kBlock = block_of<T>();
  std::fill_n(patch, kSide * kSide * kBlock, T(0));
  const Index row_end = std::min<Index>(row + kSide, image.row1);
  const Index column_begin = std::max<Index>(column, 0);
  const Index column_end = std::min<Index>(column + kSide, image.width);
  for (Index r = std::max(row, image.row0); r < row_end; ++r) {
    const T* from = image.cells + (r - image.row0) * image.row_stride;
    T* to = patch + ((r - row) * kSide - column) * kBlock;
    for (Index c = column_begin; c < column_end; ++c) {
      std::copy_n(from + c * image.cell_stride, image.channels, to + c * kBlock);
    }
  }
}

template <class T, class Transform>
void read_tiles(const TileRows& tiles,
                const ImageRows<const T>& image,
                const ProductRows<T>& products) {
  constexpr Index kLanes = lanes_of<T>();
  constexpr Index kBlock = block_of<T>();
  constexpr int kSide = Transform::kIn;
  HWY_ALIGN T patch[kSide * kSide * kBlock];
  T* dst = products.data;
  for (Index i = tiles.begin; i < tiles.end; ++i) {
    const Index row = i * kTileSide + tiles.first_row;
    const bool rows_inside = row >= image.row0 && row + kSide <= image.row1;
    for (Index j = 0; j < tiles.columns; ++j, dst += products.row_stride) {
      const Index column = j * kTileSide + tiles.first_column;
      const bool inside =
          rows_inside && column >= 0 && column + kSide <= image.width && image.channels == kBlock;
      if (!inside) {
        copy_patch<T, kSide>(image, row, column, patch);
      }
      const T* src =
          inside ? image.cells + (row - image.row0) * image.row_stride + column * image.cell_stride
                 : patch;
      const Index row_stride = inside ? image.row_stride : kSide * kBlock;
      const Index cell_stride = inside ? image.cell_stride : kBlock;
      for (int v = 0; v < kBlockVectors; ++v) {
        transform_square<T, Transform>(src + v * kLanes,
                                       row_stride,
                                       cell_stride,
                                       dst + v * kLanes,
                                       Transform::kOut * products.product_stride,
                                       products.product_stride,
                                       nullptr);
      }
    }
  }
}

template <class T>
void write_cells(const TileRows& tiles,
                 const ProductRows<const T>& products,
                 const T* bias,
                 const ImageRows<T>& image) {
  constexpr Index kLanes = lanes_of<T>();
  constexpr Index kBlock = block_of<T>();
  HWY_ALIGN T patch[kTileSide * kTileSide * kBlock];
  const T* src = products.data;
  for (Index i = tiles.begin; i < tiles.end; ++i) {
    const Index row = i * kTileSide;
    const Index rows = std::min(kTileSide, image.row1 - row);
    for (Index j = 0; j < tiles.columns; ++j, src += products.row_stride) {
      const Index column = j * kTileSide;
      const Index columns = std::min(kTileSide, image.width - column);
      T* cells = image.cells + (row - image.row0) * image.row_stride + column * image.cell_stride;
      const bool whole = rows == kTileSide && columns == kTileSide && image.channels == kBlock;
      T* dst = whole ? cells : patch;
      for (int v = 0; v < kBlockVectors; ++v) {
        transform_square<T, ToCells<T>>(src + v * kLanes,
                                        kPatchSide * products.product_stride,
                                        products.product_stride,
                                        dst + v * kLanes,
                                        whole ? image.row_stride : kTileSide * kBlock,
                                        whole ? image.cell_stride : kBlock,
                                        bias != nullptr ? bias + v * kLanes : nullptr);
      }
      for (Index r = 0; r < rows && !whole; ++r) {
        for (Index c = 0; c < columns; ++c) {
          std::copy_n(patch + (r * kTileSide + c) * kBlock,
                      image.channels,
                      cells + r * image.row_stride + c * image.cell_stride);
        }
      }
    }
  }
}

template <class T>
void read_weights(const T* taps, Index sources, bool flipped, const ProductRows<T>& products) {
  constexpr Index kLanes = lanes_of<T>();
  constexpr Index kBlock = block_of<T>();
  const T* first = flipped ? taps + (kWinogradTaps - 1) * kBlock : taps;
  const Index step = flipped ? -kBlock : kBlock;
  for (Index s = 0; s < sources; ++s) {
    for (int v = 0; v < kBlockVectors; ++v) {
      transform_square<T, OfWeights<T>>(first + s * kWinogradTaps * kBlock + v * kLanes,
                                        3 * step,
                                        step,
                                        products.data + s * products.row_stride + v * kLanes,
                                        kPatchSide * products.product_stride,
                                        products.product_stride,
                                        nullptr);
    }
  }
}

template <class T>
void write_weights(const ProductRows<const T>& products, Index columns, T* taps) {
  for (Index c = 0; c < columns; c += lanes_of<T>()) {
    transform_square<T, ToTaps<T>>(products.data + c,
                                   kPatchSide * products.product_stride,
                                   products.product_stride,
                                   taps + c,
                                   3 * columns,
                                   columns,
                                   nullptr);
  }
}

template <class T>
constexpr WinogradLoops<T> kLoops{block_of<T>(),
                                  &read_tiles<T, OfData<T>>,
                                  &read_tiles<T, OfCotangent<T>>,
                                  &write_cells<T>,
                                  &read_weights<T>,
                                  &write_weights<T>};

}  // namespace

const WinogradLoops<float>* winograd_loops_f32() { return &kLoops<float>; }
const WinogradLoops<double>* winograd_loops_f64() { return &kLoops<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {

HWY_EXPORT(winograd_loops_f32);
HWY_EXPORT(winograd_loops_f64);

template <>
const WinogradLoops<float>& winograd_loops() {
  return *HWY_DYNAMIC_DISPATCH(winograd_loops_f32)();
}

template <>
const WinogradLoops<double>& winograd_loops() {
  return *HWY_DYNAMIC_DISPATCH(winograd_loops_f64)();
}

}  // namespace fenestra::detail
#endif  // HWY_ONCE
