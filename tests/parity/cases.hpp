// What one operator computes on random problems, written as records for a peer to check.
//
// A record is one line of JSON and then the arrays it lists, raw: f64 (float values widened, which
// is exact) or i64 for integer data. See cases_impl.hpp for what is in it.
#pragma once

#include <fenestra/ops/operator.hpp>

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace fenestra::parity {

/// An operator of the list, by name.
struct Cases {
  std::string_view name;
  /// Writes the problem drawn by `seed`, with inputs drawn by it too; `problem` replaces the drawn
  /// one where it is not empty.
  void (*write)(std::uint64_t seed, std::string_view problem, std::FILE* out);
};

/// Compiled once per operator, in a translation unit of its own.
template <Operator Op>
Cases make_cases();

}  // namespace fenestra::parity
