// Everything a user of the library calls on float and double: tensors, tapes, operators,
// transforms, programs. What more programs ask for has headers of its own: fenestra/rules.hpp
// (other scalars), fenestra/typed.hpp (shapes as types), fenestra/io/, fenestra/nn/, and the
// specification, fenestra/ops/*/spec.hpp.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/memory.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/version.hpp>
#include <fenestra/engine/compile.hpp>
#include <fenestra/engine/custom_vjp.hpp>
#include <fenestra/engine/gradcheck.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/engine/vmap.hpp>
#include <fenestra/nn/compile_step.hpp>
#include <fenestra/ops/calls.hpp>
#include <fenestra/tensor/tensor.hpp>
#include <fenestra/tensor/transform.hpp>
