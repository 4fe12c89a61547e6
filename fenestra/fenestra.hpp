// Everything a user of the library calls: tensors, tapes, operators, transforms, programs, types.
// Files, training and the specification have headers of their own: fenestra/io/, fenestra/nn/,
// fenestra/ops/*/spec.hpp.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/memory.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/base/version.hpp>
#include <fenestra/ops/all.hpp>
#include <fenestra/ops/compile.hpp>
#include <fenestra/ops/gradcheck.hpp>
#include <fenestra/ops/transforms.hpp>
#include <fenestra/ops/typed_all.hpp>
#include <fenestra/ops/typed_transforms.hpp>
#include <fenestra/tape/jet.hpp>
#include <fenestra/tape/tape.hpp>
#include <fenestra/tensor/tensor.hpp>
#include <fenestra/tensor/transform.hpp>
