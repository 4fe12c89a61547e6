// The rules of every operator, for scalars that the library does not compile them for: exact
// rationals, dual numbers, a number type of a user's own. float and double do not need it.
#pragma once

#include <fenestra/engine/custom_primitive.hpp>
#include <fenestra/engine/rules.hpp>
#include <fenestra/engine/tape_rules.hpp>
#include <fenestra/ops/all.hpp>
#include <fenestra/ops/concat/concat.hpp>
#include <fenestra/ops/conv/batch.hpp>
#include <fenestra/ops/cumsum/batch.hpp>
#include <fenestra/ops/elementwise/batch.hpp>
#include <fenestra/ops/loss/batch.hpp>
#include <fenestra/ops/matmul/batch.hpp>
#include <fenestra/ops/matmul/einsum.hpp>
#include <fenestra/ops/pool/rules.hpp>
#include <fenestra/ops/reduce/batch.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/ops/sort/batch.hpp>
#include <fenestra/ops/where/batch.hpp>
