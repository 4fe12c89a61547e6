// What the signatures of pools share: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/pool/clear_rank.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/signature.hpp>

#include <string>
#include <string_view>

namespace fenestra::signature {

inline constexpr std::string_view kMaxPoolResult = "Tensor | tuple[Tensor, IntArray]";

inline constexpr std::string_view kPoolExample =
    ">>> fn.%name(fn.ones((1, 3, %4)), 2).shape\n(1, 3, %2)";

/// Throws where neither a number in the pool's name nor a list says how many spatial axes there
/// are, and three axes may be a batch of sequences or one image. `argument` is empty where the pool
/// has none to say it with.
inline void require_clear_rank(std::string_view op,
                               std::string_view argument,
                               const Shape& x,
                               const PerAxis& sizes,
                               Layout layout,
                               int rank) {
  if (!detail::has_two_readings(x, sizes, rank)) {
    return;
  }
  const std::string name(op);
  std::string fix = name + "1d or " + name + "2d";
  if (!argument.empty()) {
    const std::string size = std::to_string(sizes[0]);
    fix += ", or " + std::string(argument) + "=[" + size + "] or [" + size + ", " + size + "]";
  }
  throw detail::two_readings(op, x, layout, fix);
}

}  // namespace fenestra::signature
