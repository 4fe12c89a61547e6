// Blocked matrix product C = A B (+ C) (+ bias), for float and double. Internal: not installed.
//
// Operands are described by how a kernel gets at them, not by where they lie: an operand may be
// read in place, or brought panel by panel by an object that knows how, so that a convolution packs
// patches on the fly and no patch matrix exists. Such objects outlive the call, which uses them
// from several threads at once. An element of C is one chain of multiply-adds in
// the order of k, cut into blocks whose size depends on k alone; how rows and columns are divided
// changes no bit, so results do not depend on the number of threads.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/kernels/scratch.hpp>

namespace fenestra::kernels {

/// Lines [first, first + count) of an operand, depths [k0, k1). A line is a row of A or a column of
/// B.
struct PanelRange {
  Index first = 0;
  Index count = 0;
  Index k0 = 0;
  Index k1 = 0;
};

/// Rows [i0, i1) and columns [j0, j1) of C.
struct TileRange {
  Index i0 = 0;
  Index i1 = 0;
  Index j0 = 0;
  Index j1 = 0;
};

/// An operand that is packed.
template <class T>
class PanelSource {
 public:
  /// Writes panels of `width` lines each; what fills up the last one does not matter. Line i at
  /// depth k goes to dst[(i / width) * width * (k1 - k0) + (k - k0) * width + i % width].
  virtual void pack(const PanelRange& range, Index width, T* dst) const = 0;

 protected:
  ~PanelSource() = default;
};

/// The columns of B. Panels of a block of them are asked of what `open` gave for it.
template <class T>
class ColumnSource : public PanelSource<T> {
 public:
  /// What brings the panels of a block: this source, or one that lies in the frame of the block,
  /// with what all its panels are made of.
  virtual const ColumnSource& open(const PanelRange&, ScratchFrame&) const { return *this; }
  /// Asked for each whole panel before it is packed: if its rows lie in memory as they are, row k
  /// begins at result + offsets[k - k0]; null if the panel must be packed.
  virtual const T* find(const PanelRange&, const Index** /*offsets*/) const { return nullptr; }

 protected:
  ~ColumnSource() = default;
};

/// Rows of A that lie in memory in segments of equal length.
template <class T>
class RowSource {
 public:
  /// Writes table[(s - s0) * count + i] = where segment s of row first + i begins.
  virtual void starts(Index first, Index count, Index s0, Index s1, const T** table) const = 0;

 protected:
  ~RowSource() = default;
};

/// Takes finished tiles of C.
template <class T>
class TileSink {
 public:
  /// Element (i0 + a, j0 + b) is tile[a * ld + b].
  virtual void store(const TileRange& range, const T* tile, Index ld) const = 0;

 protected:
  ~TileSink() = default;
};

/// Goes over C once more.
template <class T>
class Finisher {
 public:
  /// Called for every run of elements of a row that are complete, by the thread that computed them,
  /// while they are in its second-level cache.
  virtual void finish(T* first, Index count) const = 0;

 protected:
  ~Finisher() = default;
};

/// How the kernel reads A, rows x depth.
enum class LeftAccess {
  rows,         ///< in place: rows are runs of consecutive depths
  lines,        ///< in place: element (i, k) at data[i + k * depth_stride]
  packed,       ///< brought by `panels`, once per call, into scratch of the size of A, or ahead
  packed_block  ///< brought by `panels` for each block: at most 96 rows and 320 depths
};

/// The left operand. With LeftAccess::rows, depth is cut into segments as `rows` has them; null
/// stands for one segment and rows at data + i * row_stride.
template <class T>
struct LeftOperand {
  LeftAccess access = LeftAccess::rows;
  const T* data = nullptr;
  Index row_stride = 0;
  Index depth_stride = 0;
  const PanelSource<T>* panels = nullptr;
  const RowSource<T>* rows = nullptr;
  Index segment = 0;  ///< length of a segment, only with `rows`
  /// With `packed`: what pack_left wrote. Nothing else is read then.
  const T* packed = nullptr;
};

/// The right operand, depth x columns. Without `columns`, element (k, j) lies at
/// data[k * depth_stride + j * line_stride].
template <class T>
struct RightOperand {
  const T* data = nullptr;
  Index depth_stride = 0;
  Index line_stride = 1;
  const ColumnSource<T>* columns = nullptr;
  /// What pack_right wrote. Nothing else is read then.
  const T* packed = nullptr;
};

/// Where the product goes: rows of consecutive columns. Columns come in periods (the samples of a
/// batch): (i, j) lies at data[i * row_stride + (j / period) * period_stride + j % period].
/// With a sink, finished tiles go there instead, and there is no finisher.
template <class T>
struct Product {
  T* data = nullptr;
  Index row_stride = 0;
  Index period = 0;  ///< 0: all columns are one period
  Index period_stride = 0;
  bool accumulate = false;         ///< add to what is there; not with a sink
  const T* row_bias = nullptr;     ///< added to every element of a row
  const T* column_bias = nullptr;  ///< added to every element of a column
  const TileSink<T>* sink = nullptr;
  const Finisher<T>* finisher = nullptr;
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
/// row starts) and, with a sink, of C (192 x 512 elements); with `packed`, A once more.
template <class T>
void gemm(const GemmSize& size,
          const LeftOperand<T>& a,
          const RightOperand<T>& b,
          const Product<T>& c);

/// Operands that many products share are packed ahead: A as it is with `packed`, B in panels of the
/// width that products of these many rows read. Elements that this takes, and the packing itself.
/// The depth of `b` is cut as that of the left operand of the products, whose rows have segments of
/// this length, or 0 where they are whole. What is written belongs to the instruction set in use.
template <class T>
Index packed_left_elements(const GemmSize& size) noexcept;
template <class T>
void pack_left(const GemmSize& size, const PanelSource<T>& a, T* packed);
template <class T>
Index packed_right_elements(const GemmSize& size) noexcept;
template <class T>
void pack_right(const GemmSize& size, Index segment, const RightOperand<T>& b, T* packed);

/// A matrix in memory: element (line, k) at data[line * line_stride + k * depth_stride].
template <class T>
struct StridedOperand {
  const T* data = nullptr;
  Index line_stride = 1;
  Index depth_stride = 1;
};
template <class T>
void pack_strided(const StridedOperand<T>& matrix, const PanelRange& range, Index width, T* dst);

template <class T>
class StridedPanels final : public PanelSource<T> {
 public:
  explicit StridedPanels(const StridedOperand<T>& matrix) : matrix_(matrix) {}
  void pack(const PanelRange& range, Index width, T* dst) const override {
    pack_strided(matrix_, range, width, dst);
  }

 private:
  StridedOperand<T> matrix_;
};

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
