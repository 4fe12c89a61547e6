// How many of their problems the tests of the laws on kernels take: all, and one of thirteen where
// a sanitizer watches, which takes ten times as long.
#pragma once

namespace fenestra::check {

/// Prime, so that steps of it meet every choice that alternates with the number of a problem.
#ifdef FENESTRA_SANITIZED
constexpr int kOneOf = 13;
#else
constexpr int kOneOf = 1;
#endif

}  // namespace fenestra::check
