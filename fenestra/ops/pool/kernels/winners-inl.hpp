// What all kernels of max pooling share on vectors: who beats whom, and winners as bytes and as
// numbers. Included inside foreach_target only. Not installed.
// An include guard that opens again for every instruction set.
#if defined(FENESTRA_MAX_POOL_WINNERS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_MAX_POOL_WINNERS_INL
#undef FENESTRA_MAX_POOL_WINNERS_INL
#else
#define FENESTRA_MAX_POOL_WINNERS_INL
#endif

#include <fenestra/ops/pool/kernels/vectors-inl.hpp>
#include <fenestra/ops/pool/winners.hpp>

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// Where `candidate` beats `best`: greater, or the first NaN.
template <class V>
HWY_INLINE auto beats_mask(V candidate, V best) {
  return hn::AndNot(hn::Le(candidate, best), hn::Eq(best, best));
}

/// Stores numbers 0 .. 255 as bytes.
template <class D, class V>
HWY_INLINE void store_winners([[maybe_unused]] D d, V ids, WinnerTap* to, Index count) {
  const hn::Rebind<std::uint8_t, D> db;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    // 2^23 + n has n in its low bits; a conversion would also look for what does not fit.
    const hn::Rebind<std::uint32_t, D> du;
    const auto bits = hn::BitCast(du, hn::Add(ids, hn::Set(d, 8388608.0F)));
    store_part(db, hn::TruncateTo(db, bits), to, count);
  } else {
    const hn::Rebind<std::int32_t, D> di;
    store_part(db, hn::DemoteTo(db, hn::DemoteTo(di, ids)), to, count);
  }
}

template <class D>
HWY_INLINE auto load_winners([[maybe_unused]] D d, const WinnerTap* from) {
  const hn::Rebind<std::int32_t, D> di;
  const hn::Rebind<std::uint8_t, D> db;
  const auto ids = hn::PromoteTo(di, hn::LoadU(db, from));
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::ConvertTo(d, ids);
  } else {
    return hn::PromoteTo(d, ids);
  }
}

/// The two ways to compare. Numbers: one comparison, wrong where a NaN takes part. Exact: all.
/// Nearly all data is numbers, so kernels compare numbers and go back where a sum of all they read
/// is NaN (which an infinity can cause too, at no loss but time).
enum class Order { numbers, exact };

template <Order kOrder, class V>
HWY_INLINE auto wins_over(V candidate, V best) {
  if constexpr (kOrder == Order::numbers) {
    return hn::Gt(candidate, best);
  } else {
    return beats_mask(candidate, best);
  }
}

/// `candidate` where it wins over `best`, else `best`.
template <Order kOrder, class M, class V>
HWY_INLINE V winner_of([[maybe_unused]] M wins, V candidate, V best) {
#if HWY_ARCH_X86
  // One instruction that does not wait for the comparison. Of two zeros it gives the second.
  if constexpr (kOrder == Order::numbers) {
    return hn::Max(candidate, best);
  }
#endif
  return hn::IfThenElse(wins, candidate, best);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_MAX_POOL_WINNERS_INL
