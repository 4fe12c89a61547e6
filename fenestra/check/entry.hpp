// An operator of the list with its laws, without its type: what `fenestra check` and the tests ask
// of it by name.
#pragma once

#include <fenestra/check/law.hpp>
#include <fenestra/ops/entry.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fenestra::check {

struct LawEntry : OperatorEntry {
  std::vector<LawOutcome> (*check)(std::string_view problem, std::uint64_t seed);
};

/// Every operator of the list, in its order.
std::span<const LawEntry> registry();

inline const LawEntry& find_laws(std::string_view name) { return find_entry(registry(), name); }

/// Compiled once per operator, in a translation unit of its own.
template <Operator Op>
LawEntry make_law_entry();

}  // namespace fenestra::check
