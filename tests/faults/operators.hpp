// One operator of the list, with every way of calling it: as a value, on a tape, on jets, compiled.
#pragma once

#include <fenestra/ops/operator.hpp>
#include <tests/faults/survival.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::faults {

/// A call with the words that say what it is.
using NamedCall = std::pair<std::string, Call>;

struct OperatorCalls {
  std::string_view name;
  std::string_view example;
  /// The calls that compute `problem`: each candidate's value, cotangents and tangent, and a
  /// program.
  std::vector<NamedCall> (*calls)(std::string_view problem);
};

/// Compiled once per operator, in a translation unit of its own.
template <Operator Op>
OperatorCalls make_calls();

}  // namespace fenestra::faults
