// What the signatures of pools share: see ops/signature.hpp.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/signature.hpp>

#include <string>
#include <string_view>

namespace fenestra::signature {

inline constexpr std::string_view kMaxPoolResult = "Tensor | tuple[Tensor, IntArray]";

inline constexpr std::string_view kPoolExample =
    ">>> fn.%name(fn.ones((1, 3, %4)), 2).shape\n(1, 3, %2)";

/// Throws where neither a number in the pool's name nor a list says how many spatial axes there
/// are, and three axes may be a batch of sequences or one image: whichever a function takes, half
/// of its callers get numbers that they did not ask for. `argument` is empty where the pool has
/// none to say it with.
inline void require_clear_rank(std::string_view op,
                               std::string_view argument,
                               const Shape& x,
                               const PerAxis& sizes,
                               Layout layout,
                               int rank) {
  if (rank > 0 || !sizes.is_scalar() || x.rank() != 3) {
    return;
  }
  const std::string name(op);
  const bool last = layout == Layout::channels_last;
  std::string text = name + ": the input " + to_string(x) + " is a batch with one spatial axis, " +
                     (last ? "(N, L, C)" : "(N, C, L)") + ", or one sample with two, " +
                     (last ? "(H, W, C)" : "(C, H, W)") + "\n  fix: " + name + "1d or " + name +
                     "2d";
  if (!argument.empty() && sizes.is_given()) {
    const std::string size = std::to_string(sizes[0]);
    text += ", or " + std::string(argument) + "=[" + size + "] or [" + size + ", " + size + "]";
  }
  throw Error(name, {.code = ErrorCode::rank_mismatch, .argument = Argument::x}, text);
}

}  // namespace fenestra::signature
