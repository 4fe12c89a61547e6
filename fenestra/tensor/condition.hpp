// Condition: what an operation asks of the numbers in one of its inputs.
//
// Eager operators look at the number when they are called. A program has none until it runs; it
// asks its operations what they take, and checks what it is given before it starts.
#pragma once

#include <fenestra/base/error.hpp>

#include <string_view>

namespace fenestra {

struct Condition {
  Fault (*check)(double) = nullptr;
  std::string_view needed;  ///< what passes, in words
};

}  // namespace fenestra
