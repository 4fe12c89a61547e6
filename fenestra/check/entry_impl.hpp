// The body of `make_entry`: includes the whole harness, so only the generated unit of each operator
// includes this.
#pragma once

#include <fenestra/check/entry.hpp>
#include <fenestra/check/laws.hpp>

namespace fenestra::check {

template <Operator Op>
Description describe(std::string_view problem) {
  const auto g = Op::parse(problem);
  Description d{.problem = to_string(g),
                .inputs = Op::inputs(g),
                .data = {},
                .output = Op::output(g),
                .layout = {},
                .batched = {},
                .windows = {},
                .costs = {},
                .notes = {},
                .kernels = {}};
  if constexpr (requires { Op::layout(g); }) {
    d.layout = Op::layout(g);
    d.batched = Op::batched(g);
  }
  if constexpr (requires { Op::windows(g); }) {
    d.windows = Op::windows(g);
  }
  if constexpr (requires { Op::costs(g); }) {
    d.costs = Op::costs(g);
  }
  if constexpr (requires { Op::data(g); }) {
    d.data = Op::data(g);
  }
  if constexpr (requires { Op::notes(g); }) {
    d.notes = Op::notes(g);
  }
  if constexpr (requires { Op::kernels(g); }) {
    d.kernels = Op::kernels(g);
  }
  return d;
}

template <Operator Op>
std::vector<ProblemField> options() {
  if constexpr (requires { typename Op::Options; }) {
    return problem_fields<typename Op::Options>();
  } else {
    return {};
  }
}

template <Operator Op>
std::span<const OwnField> own_fields() {
  if constexpr (requires { Op::own_fields; }) {
    return Op::own_fields;
  } else {
    return {};
  }
}

template <Operator Op>
OperatorEntry make_entry() {
  return {.name = Op::name,
          .summary = Op::summary,
          .example = Op::example,
          .options = &options<Op>,
          .own_fields = own_fields<Op>(),
          .describe = &describe<Op>,
          .random_problem = [](Random& random) { return to_string(Op::random(random)); },
          .check = [](std::string_view problem,
                      std::uint64_t seed) { return Laws<Op>(Op::parse(problem), seed).run(); }};
}

}  // namespace fenestra::check
