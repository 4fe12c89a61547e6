// Reductions on typed graph variables: `sum<ReduceOptions{.axes = {1}}>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/reduce/reduce.hpp>

namespace fenestra {

template <ReduceOptions options = ReduceOptions{}, graph::Operand... In>
auto sum(const In&... in) {
  return graph::typed<"sum", "x">([](const auto& v) { return sum(v, options); }, in...);
}
template <ReduceOptions options = ReduceOptions{}, graph::Operand... In>
auto mean(const In&... in) {
  return graph::typed<"mean", "x">([](const auto& v) { return mean(v, options); }, in...);
}
template <ReduceOptions options = ReduceOptions{}, graph::Operand... In>
auto max_over(const In&... in) {
  return graph::typed<"max_over", "x">([](const auto& v) { return max_over(v, options); }, in...);
}
template <ReduceOptions options = ReduceOptions{}, graph::Operand... In>
auto min_over(const In&... in) {
  return graph::typed<"min_over", "x">([](const auto& v) { return min_over(v, options); }, in...);
}
template <VarOptions options = VarOptions{}, graph::Operand... In>
auto var_over(const In&... in) {
  return graph::typed<"var_over", "x">([](const auto& v) { return var_over(v, options); }, in...);
}
template <VarOptions options = VarOptions{}, graph::Operand... In>
auto std_over(const In&... in) {
  return graph::typed<"std_over", "x">([](const auto& v) { return std_over(v, options); }, in...);
}
template <Shape shape, graph::Operand X>
auto sum_to(const X& x) {
  return graph::typed<"sum_to", "x">([](const auto& v) { return sum_to(v, shape); }, x);
}
template <Shape shape, graph::Operand X>
auto broadcast_to(const X& x) {
  return graph::typed<"broadcast_to", "x">([](const auto& v) { return broadcast_to(v, shape); }, x);
}

}  // namespace fenestra
