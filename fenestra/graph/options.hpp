// What a program may be told of its plan: how batches are cut into tiles (batch_tiling.hpp), and
// how the plan is shown (report.hpp, explain.hpp).
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fenestra::graph {

struct BatchTilingOptions {
  int workers = 1;                      ///< threads that work on pieces side by side
  std::size_t cache_bytes = 512 << 10;  ///< what the operands of one step of a piece should take
  std::size_t least_bytes = 64 << 10;   ///< groups that move less are left alone
  bool pieces_may_be_slow = false;      ///< ignore what operations say of too small pieces
};

enum class ExplainFormat {
  text,
  dot,   ///< input of Graphviz' `dot`
  html,  ///< one page that needs nothing else, for a light or a dark screen
};

struct ReportOptions {
  std::string title = {};
  std::string subtitle = {};
  std::span<const double> seconds = {};  ///< one for each step, or none
};

}  // namespace fenestra::graph
