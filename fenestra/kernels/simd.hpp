// The one place that decides for which instruction sets kernels are compiled. Internal:
// not installed.
// A kernel file includes this first, then defines HWY_TARGET_INCLUDE and includes Highway; nothing
// here or in Highway may reach an installed header. Compiled are the baseline (portable C++), AVX2
// with FMA and AVX-512: each further set costs a quarter of the library's build time and size.
#pragma once

// Processors with SSE4 and no AVX2 are those before 2013, and run the baseline; AVX3_DL adds
// integer instructions only; vectors without a size known at compile time (SVE) cannot form a tile
// of accumulators.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// A tile of accumulators stays in registers only if the loops over it are unrolled whole.
#if defined(__clang__)
#define FENESTRA_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define FENESTRA_UNROLL _Pragma("GCC unroll 64")
#else
#define FENESTRA_UNROLL
#endif
