// Vectors and what is left of a run at its end: the pieces that loops of all kernels share,
// compiled once per instruction set. Included inside foreach_target only. Not installed. An include
// guard that opens again for every instruction set.
#if defined(FENESTRA_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_VECTORS_INL
#undef FENESTRA_VECTORS_INL
#else
#define FENESTRA_VECTORS_INL
#endif

#include <fenestra/base/error.hpp>

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace fenestra::kernels {
namespace HWY_NAMESPACE {

template <class T>
using Wide = hwy::HWY_NAMESPACE::ScalableTag<T>;

template <class D>
HWY_INLINE constexpr Index lanes(D) {
  return static_cast<Index>(hwy::HWY_NAMESPACE::MaxLanes(D()));
}
/// Of a whole vector.
template <class T>
inline constexpr Index kLanes = static_cast<Index>(hwy::HWY_NAMESPACE::MaxLanes(Wide<T>()));

/// Keeps what was loaded in a register. A compiler that thinks loads are free repeats one for every
/// use; one that crosses the border of two cache lines is not.
template <class V>
HWY_INLINE void in_register(V& v) {
#if HWY_TARGET == HWY_AVX3 && HWY_COMPILER_GCC_ACTUAL
  asm("" : "+v"(v.raw));
#elif HWY_TARGET == HWY_AVX2 && HWY_COMPILER_GCC_ACTUAL
  asm("" : "+x"(v.raw));
#else
  (void)v;
#endif
}

/// The first `count` numbers at `from`, at most a vector of them, and `other` in the other lanes.
/// Where loads and stores take masks, no more than a mask is made.
template <class D, class T>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_part(D d, const T* from, Index count, T other) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (HWY_LIKELY(count >= lanes(d))) {
    return hn::LoadU(d, from);
  }
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T buffer[hn::MaxLanes(D())];
  std::fill(std::copy_n(from, count, buffer), buffer + lanes(d), other);
  return hn::Load(d, buffer);
#else
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(count));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from), hn::Set(d, other));
#endif
}

/// The first `count` lanes, at most all of them.
template <class D, class V, class T>
HWY_INLINE void store_part(D d, V v, T* to, Index count) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (HWY_LIKELY(count >= lanes(d))) {
    hn::StoreU(v, d, to);
    return;
  }
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T buffer[hn::MaxLanes(D())];
  hn::Store(v, d, buffer);
  std::copy_n(buffer, count, to);
#else
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::kernels
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_VECTORS_INL
