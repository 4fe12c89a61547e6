// The transpose of a matrix, in registers, compiled once per instruction set. Included inside
// foreach_target only. Not installed. An include guard that opens again for every instruction set.
#if defined(FENESTRA_TRANSPOSE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_TRANSPOSE_INL
#undef FENESTRA_TRANSPOSE_INL
#else
#define FENESTRA_TRANSPOSE_INL
#endif

#include <fenestra/base/error.hpp>

#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace fenestra::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
/// As many neighbours as 128 bits hold from rows `step` apart, side by side.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* HWY_RESTRICT src, Index step) {
  if constexpr (hn::MaxLanes(d) * sizeof(T) == 16) {
    return hn::LoadU(d, src);
  } else {
    const hn::Half<D> half;
    constexpr Index kBlocks = static_cast<Index>(hn::MaxLanes(half) * sizeof(T) / 16);
    return hn::Combine(
        d, load_blocks(half, src + kBlocks * step, step), load_blocks(half, src, step));
  }
}

/// Numbers in 128 bits, within which vectors are interleaved.
template <class T>
inline constexpr Index kSide = 16 / static_cast<Index>(sizeof(T));

/// As many rows as `d` has lanes and as many columns as 128 bits hold: put(c, vector) gets column c
/// of all rows. Interleaving stays within 128 bits, so each block of a vector is a square of its
/// own.
template <class D, class T, class Put>
HWY_INLINE void transpose_columns(D d, const T* HWY_RESTRICT src, Index stride, const Put& put) {
  const auto r0 = load_blocks(d, src, stride * kSide<T>);
  const auto r1 = load_blocks(d, src + stride, stride * kSide<T>);
  if constexpr (kSide<T> == 4) {
    const auto r2 = load_blocks(d, src + 2 * stride, stride * kSide<T>);
    const auto r3 = load_blocks(d, src + 3 * stride, stride * kSide<T>);
    const auto low02 = hn::InterleaveLower(d, r0, r2);
    const auto low13 = hn::InterleaveLower(d, r1, r3);
    const auto high02 = hn::InterleaveUpper(d, r0, r2);
    const auto high13 = hn::InterleaveUpper(d, r1, r3);
    put(0, hn::InterleaveLower(d, low02, low13));
    put(1, hn::InterleaveUpper(d, low02, low13));
    put(2, hn::InterleaveLower(d, high02, high13));
    put(3, hn::InterleaveUpper(d, high02, high13));
  } else {
    put(0, hn::InterleaveLower(d, r0, r1));
    put(1, hn::InterleaveUpper(d, r0, r1));
  }
}

/// Rows [i, rows) in vectors, then in halves of them down to 128 bits; gives where it stopped.
template <class D, class T>
HWY_INLINE Index transpose_rows(D d,
                                const T* src,
                                Index src_stride,
                                Index i,
                                Index rows,
                                Index columns,
                                T* dst,
                                Index dst_stride) {
  constexpr Index kLanes = static_cast<Index>(hn::MaxLanes(d));
  for (; i + kLanes <= rows; i += kLanes) {
    for (Index j = 0; j < columns; j += kSide<T>) {
      T* HWY_RESTRICT to = dst + j * dst_stride + i;
      transpose_columns(
          d, src + i * src_stride + j, src_stride, [&](Index c, hn::Vec<D> v) HWY_ATTR {
            hn::StoreU(v, d, to + c * dst_stride);
          });
    }
  }
  if constexpr (kLanes > kSide<T>) {
    return transpose_rows(hn::Half<D>(), src, src_stride, i, rows, columns, dst, dst_stride);
  } else {
    return i;
  }
}
#endif

/// Lines that are far apart and depths that are adjacent: tiles are transposed in registers. A
/// cache line is read from every row before the next one, so that what is written is written while
/// it is in the cache.
template <class T>
void transpose_block(
    const T* src, Index src_stride, Index rows, Index columns, T* dst, Index dst_stride) {
  Index j = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr Index kLine = 64 / static_cast<Index>(sizeof(T));
  const hn::ScalableTag<T> d;
  while (j + kSide<T> <= columns) {
    const Index count = std::min(kLine, (columns - j) / kSide<T> * kSide<T>);
    const T* s = src + j;
    T* out = dst + j * dst_stride;
    for (Index i = transpose_rows(d, s, src_stride, 0, rows, count, out, dst_stride); i < rows;
         ++i) {
      for (Index c = 0; c < count; ++c) {
        out[c * dst_stride + i] = s[i * src_stride + c];
      }
    }
    j += count;
  }
#endif
  for (; j < columns; ++j) {
    for (Index i = 0; i < rows; ++i) {
      dst[j * dst_stride + i] = src[i * src_stride + j];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::kernels
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_TRANSPOSE_INL
