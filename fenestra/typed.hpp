// Everything that a user calls, with shapes as part of types: typed variables of a graph, operators
// and derivatives on them. A wrong channel count does not compile.
#pragma once

#include <fenestra/engine/typed_transforms.hpp>
#include <fenestra/fenestra.hpp>
#include <fenestra/ops/typed_all.hpp>
