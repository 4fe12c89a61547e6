// How far a kernel may go from the definition's own sum.
//
// Strict kernels compute the sum of products that defines a result, in some order. A fast kernel
// may transform the data first (Winograd): fewer multiplications, a larger bound on the rounding
// error, which the kernel states. Nothing is fast unless somebody asks for it.
#pragma once

#include <fenestra/base/export.hpp>

namespace fenestra {

enum class Numerics {
  strict,  ///< |error| <= gamma(n) * sum |x||w|, and absent cells are absent
  fast,    ///< transforms too, where their bound is stated
};

namespace kernels {

/// What kernels chosen in this thread may do; strict at first.
FENESTRA_API Numerics numerics() noexcept;

/// Allows or forbids transforms in this thread until the scope ends. It matters while kernels are
/// chosen: in eager calls, and while a program is compiled, which keeps its choice.
class FENESTRA_API ScopedNumerics {
 public:
  explicit ScopedNumerics(Numerics numerics);
  ~ScopedNumerics();
  ScopedNumerics(const ScopedNumerics&) = delete;
  ScopedNumerics& operator=(const ScopedNumerics&) = delete;

 private:
  Numerics previous_;
};

}  // namespace kernels

}  // namespace fenestra
