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

/// The first `count` numbers at `from`, at most a vector of them, and `other` in the other lanes.
template <class D, class T>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_part(D d, const T* from, Index count, T other) {
  if (HWY_LIKELY(count >= lanes(d))) {
    return hwy::HWY_NAMESPACE::LoadU(d, from);
  }
  HWY_ALIGN T buffer[hwy::HWY_NAMESPACE::MaxLanes(D())];
  std::fill(std::copy_n(from, count, buffer), buffer + lanes(d), other);
  return hwy::HWY_NAMESPACE::Load(d, buffer);
}

/// The first `count` lanes, at most all of them.
template <class D, class V, class T>
HWY_INLINE void store_part(D d, V v, T* to, Index count) {
  if (HWY_LIKELY(count >= lanes(d))) {
    hwy::HWY_NAMESPACE::StoreU(v, d, to);
    return;
  }
  HWY_ALIGN T buffer[hwy::HWY_NAMESPACE::MaxLanes(D())];
  hwy::HWY_NAMESPACE::Store(v, d, buffer);
  std::copy_n(buffer, count, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::kernels
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_VECTORS_INL
