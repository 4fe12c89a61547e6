// Everything a user of the library calls: tensors, tapes, operators, transforms, programs, types.
// Files, training and the specification have headers of their own: fenestra/io/, fenestra/nn/,
// fenestra/ops/*/spec.hpp.
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
#include <fenestra/engine/typed_transforms.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/engine/vmap.hpp>
#include <fenestra/nn/compile_step.hpp>
#include <fenestra/ops/all.hpp>
#include <fenestra/ops/matmul/einsum.hpp>
#include <fenestra/ops/typed_all.hpp>
#include <fenestra/tensor/tensor.hpp>
#include <fenestra/tensor/transform.hpp>
