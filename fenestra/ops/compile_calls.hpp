// Compiles the functions of an operator for every value that the library serves: what its call.cpp
// says. Internal: not installed.
//
//   template <CompiledValue V>
//   V softmax(const V& x, int axis) {
//     return generic::softmax(x, axis);
//   }
//   #define FENESTRA_SOFTMAX_CALLS(V) template FENESTRA_API V softmax(const V&, int);
//   FENESTRA_FOR_COMPILED_VALUES(FENESTRA_SOFTMAX_CALLS)
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>

#define FENESTRA_FOR_COMPILED_VALUES(DO) \
  DO(Tensor<float>)                      \
  DO(Tensor<double>)                     \
  DO(Value<float>)                       \
  DO(Value<double>)                      \
  DO(graph::Value<float>)                \
  DO(graph::Value<double>)
