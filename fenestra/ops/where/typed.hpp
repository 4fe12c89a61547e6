// where on typed graph variables.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/where/where.hpp>

namespace fenestra {

template <class M, class A, class B>
  requires graph::SomeTyped<M, A, B>
auto where(const M& mask, const A& a, const B& b) {
  return graph::typed<"where", "mask", "a", "b">(
      [](const auto& m, const auto& p, const auto& q) { return where(m, p, q); }, mask, a, b);
}

}  // namespace fenestra
