// Blocked matrix product C = A B (+ C) (+ bias), for float and double. Internal: not installed.
//
// Operands are described by how a kernel gets at them, not by where they lie: an operand may be
// read in place, or brought by a function that writes a panel of it, so that a convolution packs
// patches on the fly and no patch matrix exists. An element of C is one chain of multiply-adds in
// the order of k, cut into blocks whose size depends on k alone; how rows and columns are divided
// changes no bit, so results do not depend on the number of threads.
#pragma once

#include <fenestra/base/error.hpp>

namespace fenestra::kernels {

/// Lines [first, first + count) of an operand, depths [k0, k1). A line is a row of A or a column of
/// B.
struct PanelRange {
  Index first = 0;
  Index count = 0;
  Index k0 = 0;
  Index k1 = 0;
};

/// Writes panels of `width` lines each; what fills up the last one does not matter. Line i at depth
/// k goes to dst[(i / width) * width * (k1 - k0) + (k - k0) * width + i % width].
template <class T>
using PackPanels = void (*)(const void* object, const PanelRange& range, Index width, T* dst);

/// How the kernel reads A, rows x depth.
enum class LeftAccess {
  rows,         ///< in place: rows are runs of consecutive depths
  lines,        ///< in place: element (i, k) at data[i + k * depth_stride]
  packed,       ///< brought by `pack`, once per call, into scratch of the size of A, or ahead
  packed_block  ///< brought by `pack` for each block: at most 96 rows and 320 depths
};

/// The left operand. With `rows`, depth is cut into segments of equal length, and `row_starts`
/// writes table[(s - s0) * count + i] = where segment s of row first + i begins; null stands for
/// one segment and rows at data + i * row_stride.
template <class T>
struct LeftOperand {
  LeftAccess access = LeftAccess::rows;
  const T* data = nullptr;
  Index row_stride = 0;
  Index depth_stride = 0;
  const void* object = nullptr;
  PackPanels<T> pack = nullptr;
  void (*row_starts)(
      const void* object, Index first, Index count, Index s0, Index s1, const T** table) = nullptr;
  Index segment = 0;  ///< length of a segment, only with `row_starts`
  /// With `packed`: what pack_left wrote. Nothing else is read then.
  const T* packed = nullptr;
};

/// The right operand, depth x columns. Without `pack`, element (k, j) lies at
/// data[k * depth_stride + j * line_stride]. `prepare`, where given, is called before a block's
/// panels are packed, in the same thread, with the range of the whole block; what it finds out it
/// leaves in that thread's scratch for `pack`.
template <class T>
struct RightOperand {
  const T* data = nullptr;
  Index depth_stride = 0;
  Index line_stride = 1;
  const void* object = nullptr;
  PackPanels<T> pack = nullptr;
  void (*prepare)(const void* object, const PanelRange& range) = nullptr;
  /// Asked, where given, for each whole panel before it is packed: if its rows lie in memory as
  /// they are, row k begins at result + offsets[k - k0]; null if the panel must be packed.
  const T* (*find)(const void* object, const PanelRange& panel, const Index** offsets) = nullptr;
  /// What pack_right wrote. Nothing else is read then.
  const T* packed = nullptr;
};

/// Where the product goes: rows of consecutive columns. Columns come in periods (the samples of a
/// batch): (i, j) lies at data[i * row_stride + (j / period) * period_stride + j % period].
/// With `store`, finished tiles go there instead: element (i0 + a, j0 + b) is tile[a * ld + b].
template <class T>
struct Product {
  T* data = nullptr;
  Index row_stride = 0;
  Index period = 0;  ///< 0: all columns are one period
  Index period_stride = 0;
  bool accumulate = false;         ///< add to what is there; not with `store`
  const T* row_bias = nullptr;     ///< added to every element of a row
  const T* column_bias = nullptr;  ///< added to every element of a column
  const void* object = nullptr;
  void (*store)(const void* object,
                const struct TileRange& range,
                const T* tile,
                Index ld) = nullptr;
  /// Called, where given, for every run of elements of a row that are complete, by the thread that
  /// computed them, while they are in its second-level cache. With `store` there are none.
  const void* finisher = nullptr;
  void (*finish)(const void* finisher, T* first, Index count) = nullptr;
};

/// Rows [i0, i1) and columns [j0, j1) of C.
struct TileRange {
  Index i0 = 0;
  Index i1 = 0;
  Index j0 = 0;
  Index j1 = 0;
};

struct GemmSize {
  Index rows = 0;
  Index columns = 0;
  Index depth = 0;
};

/// Columns of a panel of B in products of so many rows.
template <class T>
Index panel_width(Index rows) noexcept;

/// Scratch per thread: one block of B (at most 320 x 512 elements), of A (96 x 320 elements or 8192
/// row starts) and, with `store`, of C (192 x 512 elements); with `packed`, A once more.
template <class T>
void gemm(const GemmSize& size,
          const LeftOperand<T>& a,
          const RightOperand<T>& b,
          const Product<T>& c);

/// Operands that many products share are packed ahead: A as it is with `packed`, B in panels of the
/// width that products of these many rows read. Elements that this takes, and the packing itself.
/// `a` is an operand with `pack`; the depth of `b` is cut as that of `a`, which is to be the left
/// operand of the products. What is written belongs to the instruction set in use.
template <class T>
Index packed_left_elements(const GemmSize& size) noexcept;
template <class T>
void pack_left(const GemmSize& size, const LeftOperand<T>& a, T* packed);
template <class T>
Index packed_right_elements(const GemmSize& size) noexcept;
template <class T>
void pack_right(const GemmSize& size, const LeftOperand<T>& a, const RightOperand<T>& b, T* packed);

/// `pack` for a matrix in memory: element (line, k) at data[line * line_stride + k * depth_stride].
template <class T>
struct StridedOperand {
  const T* data = nullptr;
  Index line_stride = 1;
  Index depth_stride = 1;
};
template <class T>
void pack_strided(const void* strided_operand, const PanelRange& range, Index width, T* dst);

/// C = A B with general strides: A (i, k) at a.data[i * line_stride + k * depth_stride], B (k, j)
/// likewise with lines j.
template <class T>
void gemm_strided(const GemmSize& size,
                  const StridedOperand<T>& a,
                  const StridedOperand<T>& b,
                  const Product<T>& c);
/// The same with B packed ahead, by pack_strided_right.
template <class T>
void gemm_strided(const GemmSize& size,
                  const StridedOperand<T>& a,
                  const T* packed_b,
                  const Product<T>& c);
template <class T>
void pack_strided_right(const GemmSize& size, const StridedOperand<T>& b, T* packed);

/// Writes the transpose of src (rows x columns, `src_stride` apart) to dst: dst[j * dst_stride +
/// i].
template <class T>
void transpose(
    const T* src, Index src_stride, Index rows, Index columns, T* dst, Index dst_stride) noexcept;

}  // namespace fenestra::kernels
