// Pools of three axes and one size, which have two readings: a batch of sequences, or one image.
// Whichever a function took, half of its callers would get numbers that they did not ask for.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>

#include <string>
#include <string_view>

namespace fenestra::detail {

/// True where neither a name nor a list says how many spatial axes there are, and both one and two
/// would do.
constexpr bool has_two_readings(const Shape& x, const PerAxis& sizes, int named_rank) {
  return named_rank == 0 && sizes.is_given() && sizes.is_scalar() && x.rank() == 3;
}

inline Error two_readings(std::string_view op,
                          const Shape& x,
                          Layout layout,
                          const std::string& fix) {
  const bool last = layout == Layout::channels_last;
  return Error(std::string(op),
               {.code = ErrorCode::rank_mismatch, .argument = Argument::x},
               std::string(op) + ": the input " + to_string(x) +
                   " is a batch with one spatial axis, " + (last ? "(N, L, C)" : "(N, C, L)") +
                   ", or one sample with two, " + (last ? "(H, W, C)" : "(C, H, W)") +
                   "\n  fix: " + fix);
}

/// What the functions of C++ check. `argument` holds `sizes`; `names` are the functions whose names
/// say it, "max_pool1d or max_pool2d", empty where there are none.
inline void require_clear_rank(std::string_view op,
                               std::string_view names,
                               std::string_view argument,
                               const Shape& x,
                               const PerAxis& sizes,
                               Layout layout,
                               int named_rank) {
  if (!has_two_readings(x, sizes, named_rank)) {
    return;
  }
  const std::string size = std::to_string(sizes[0]);
  throw two_readings(op,
                     x,
                     layout,
                     std::string(names) + (names.empty() ? "." : ", or .") + std::string(argument) +
                         " = {" + size + "} or {" + size + ", " + size + "}");
}

}  // namespace fenestra::detail
