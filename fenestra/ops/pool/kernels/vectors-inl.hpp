// The vector pieces that the kernels of all pools share, compiled once per instruction set.
// Included inside foreach_target only. Not installed. An include guard that opens again for every
// instruction set.
#if defined(FENESTRA_POOL_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_POOL_VECTORS_INL
#undef FENESTRA_POOL_VECTORS_INL
#else
#define FENESTRA_POOL_VECTORS_INL
#endif

#include <fenestra/kernels/vectors-inl.hpp>
#include <fenestra/ops/pool/kernels/positions.hpp>

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

// On a lambda that a loop over vectors calls: not inlined, it reads what it captured again for
// every vector.
#ifndef FENESTRA_INLINE_LAMBDA
#if defined(__GNUC__)
#define FENESTRA_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))
#else
#define FENESTRA_INLINE_LAMBDA HWY_ATTR
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using kernels::HWY_NAMESPACE::lanes;
using kernels::HWY_NAMESPACE::store_part;
using kernels::HWY_NAMESPACE::Wide;
/// One lane: for positions that are not beside each other in memory.
template <class T>
using Single = hn::CappedTag<T, 1>;

/// f(i, count) for runs of at most one vector that cover [0, n); the last one may be partial, so
/// its sources must be readable beyond n.
template <class D, class F>
HWY_INLINE void for_padded(D d, Index n, const F& f) {
  Index i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    f(i, lanes(d));
  }
  if (i < n) {
    f(i, n - i);
  }
}

/// The same for sources that end at n: the last vector overlaps the one before it. n is at least
/// one vector.
template <class D, class F>
HWY_INLINE void for_exact(D d, Index n, const F& f) {
  Index i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    f(i, lanes(d));
  }
  if (i < n) {
    f(n - lanes(d), lanes(d));
  }
}

template <class T>
HWY_INLINE void fill(T* to, Index count, T value) {
  const Wide<T> d;
  Index i = 0;
  for (; i + lanes(d) <= count; i += lanes(d)) {
    hn::StoreU(hn::Set(d, value), d, to + i);
  }
  for (; i < count; ++i) {
    to[i] = value;
  }
}

/// Runs visitor.run<kVectors>(entries, count, source, dest, moved) over the numbers of one position
/// of planes [plane, end_plane): four vectors at a time, so that the list of taps is read less
/// often; the last vector overlaps the one before it.
template <class D, class Visitor>
HWY_INLINE void for_position(D d,
                             const Plan& plan,
                             Index plane,
                             Index end_plane,
                             Index at,
                             Moved moved,
                             const Visitor& visitor,
                             const Entry* entries,
                             Index count) {
  for (; plane < end_plane; ++plane) {
    const Index source = plane * plan.source_plane_size() + moved.numbers;
    const Index dest = plane * plan.dest_plane_size() + at;
    Index i = 0;
    for (; i + 4 * lanes(d) <= plan.inner; i += 4 * lanes(d)) {
      visitor.template run<4>(entries, count, source + i, dest + i, moved);
    }
    for (; i + lanes(d) <= plan.inner; i += lanes(d)) {
      visitor.template run<1>(entries, count, source + i, dest + i, moved);
    }
    if (i < plan.inner) {
      i = plan.inner - lanes(d);
      visitor.template run<1>(entries, count, source + i, dest + i, moved);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_POOL_VECTORS_INL
