// The rules of every operator, for scalars that the library does not compile them for: exact
// rationals, dual numbers, a number type of a user's own. float and double do not need it.
#pragma once

#include <fenestra/engine/custom_primitive.hpp>
#include <fenestra/engine/rules.hpp>
#include <fenestra/engine/tape_rules.hpp>
#include <fenestra/ops/all.hpp>
#include <fenestra/ops/all_rules.hpp>
