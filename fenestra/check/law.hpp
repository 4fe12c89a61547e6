// The names of the laws, and what one says of a problem: for those who ask for laws without
// compiling them. What each means and how it is checked is laws.hpp's.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace fenestra::check {

enum class Law {
  answers,         ///< every answer the operator states comes out
  problem_string,  ///< prints, parses back, compares and hashes equal
  adjoint,         ///< <y_bar, jvp(x_dot)> = <vjp(y_bar), x_dot>
  duals,           ///< jvp = tangent of the forward pass in dual numbers
  nested_duals,    ///< the derivative of the jvp = the mixed part of the forward pass in duals of
                   ///< duals
  finite_differences,  ///< jvp = central difference
  intervals,           ///< the interval result encloses the exact one
  layouts,             ///< channels first = channels last
  batch,               ///< a sample alone = the sample in its batch
  groups,              ///< groups = one convolution per group
  sizes,               ///< the inverse operator leads back to the sizes
  engine,              ///< tape and jets = the specification
  graph,               ///< a compiled graph = tape and jets, to the bit, in f64
  rounding,            ///< f32 and f64 stay within the a-priori bound
  kernels,             ///< every candidate that accepts stays within it, on every instruction set
};

inline constexpr std::array kLaws = {Law::answers,
                                     Law::problem_string,
                                     Law::adjoint,
                                     Law::duals,
                                     Law::nested_duals,
                                     Law::finite_differences,
                                     Law::intervals,
                                     Law::layouts,
                                     Law::batch,
                                     Law::groups,
                                     Law::sizes,
                                     Law::engine,
                                     Law::graph,
                                     Law::rounding,
                                     Law::kernels};

constexpr std::string_view law_name(Law law) {
  switch (law) {
    case Law::answers: return "answers";
    case Law::problem_string: return "string";
    case Law::adjoint: return "adjoint";
    case Law::duals: return "duals";
    case Law::nested_duals: return "nested";
    case Law::finite_differences: return "differences";
    case Law::intervals: return "intervals";
    case Law::layouts: return "layouts";
    case Law::batch: return "batch";
    case Law::groups: return "groups";
    case Law::sizes: return "sizes";
    case Law::engine: return "engine";
    case Law::graph: return "graph";
    case Law::rounding: return "rounding";
    case Law::kernels: return "kernels";
  }
  return "";
}

enum class Verdict { holds, broken, not_applicable };

struct LawOutcome {
  Law law = Law::problem_string;
  Verdict verdict = Verdict::holds;
  std::string detail;  ///< of a broken law: where, got, needed
};

}  // namespace fenestra::check
