// The body of `make_law_entry`: includes the whole harness, so only the generated unit of each
// operator includes this.
#pragma once

#include <fenestra/check/entry.hpp>
#include <fenestra/check/laws.hpp>

namespace fenestra::check {

template <Operator Op>
LawEntry make_law_entry() {
  return {make_entry<Op>(), [](std::string_view problem, std::uint64_t seed) {
            return Laws<Op>(Op::parse(problem), seed).run();
          }};
}

}  // namespace fenestra::check
