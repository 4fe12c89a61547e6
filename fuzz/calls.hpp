// What calls.cpp knows of the operators: their names and where to call them. The calls themselves
// are in one_call.hpp, which calls.cpp does not include: it would compile all of them a second
// time.
#pragma once

#include <fenestra/ops/operator.hpp>

#include <fuzz/bytes.hpp>

#include <string_view>

namespace fenestra::fuzz {

/// An operator of the list, by name; `call` throws what the operator throws.
struct Call {
  std::string_view name;
  void (*call)(std::string_view problem, Bytes bytes);
};

/// Compiled once per operator, in a translation unit of its own.
template <Operator Op>
Call make_call();

}  // namespace fenestra::fuzz
