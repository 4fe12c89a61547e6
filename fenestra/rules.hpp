// Everything that a user calls, for any scalar: include it instead of fenestra.hpp for exact
// rationals, dual numbers or a number type of your own. The rules are compiled with your program;
// for float and double they are in the library.
#pragma once

#include <fenestra/fenestra.hpp>
#include <fenestra/ops/rules.hpp>
