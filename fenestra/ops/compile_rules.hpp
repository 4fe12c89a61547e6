// Compiles the rules of a primitive for float and double: what its operator's rules.cpp says, and
// what a program says that brings a primitive of its own.
//
//   #include <fenestra/ops/compile_rules.hpp>
//   FENESTRA_COMPILE_RULES(MyPrimitive)   // in namespace fenestra
//
// The source also includes what declares the primitive and defines its rules; of other operators
// this header brings the declarations, which is all that rules need of them.
//
// Specialisations, not instantiations: the rules of one primitive call others, and those are
// compiled where they are at home.
#pragma once

#include <fenestra/engine/rules.hpp>
#include <fenestra/ops/calls.hpp>

#define FENESTRA_COMPILE_RULES_FOR(P, T)                                                 \
  template <>                                                                            \
  Applied<Tensor<T>> apply_all(                                                          \
      const P& primitive, std::span<const Tensor<T>>, std::span<const Selection>, bool); \
  template <>                                                                            \
  Applied<Value<T>> apply_all(                                                           \
      const P& primitive, std::span<const Value<T>>, std::span<const Indices>, bool);    \
  template <>                                                                            \
  Applied<graph::Value<T>> apply_all(                                                    \
      const P&, std::span<const graph::Value<T>>, std::span<const graph::Data>, bool);   \
  template <>                                                                            \
  FENESTRA_API Applied<Tensor<T>> apply_all(const P& primitive,                          \
                                            std::span<const Tensor<T>> in,               \
                                            std::span<const Selection> data,             \
                                            bool keep) {                                 \
    return apply_primitive<T>(PrimitiveOf<P, T>(primitive), in, data, keep);             \
  }                                                                                      \
  template <>                                                                            \
  FENESTRA_API Applied<Value<T>> apply_all(const P& primitive,                           \
                                           std::span<const Value<T>> in,                 \
                                           std::span<const Indices> data,                \
                                           bool keep) {                                  \
    return apply_primitive<T>(PrimitiveOf<P, T>(primitive), in, data, keep);             \
  }                                                                                      \
  template <>                                                                            \
  FENESTRA_API Applied<graph::Value<T>> apply_all(const P& primitive,                    \
                                                  std::span<const graph::Value<T>> in,   \
                                                  std::span<const graph::Data> data,     \
                                                  bool keep) {                           \
    return apply_primitive<T>(PrimitiveOf<P, T>(primitive), in, data, keep);             \
  }
#define FENESTRA_COMPILE_RULES(P)      \
  FENESTRA_COMPILE_RULES_FOR(P, float) \
  FENESTRA_COMPILE_RULES_FOR(P, double)
