// What operations are called: the part of a program that each is of, such as a layer, for people
// who read a report. Passes keep names; what runs as one step has the name of the part it ends in,
// an epilogue that of what it is an epilogue of.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/graph.hpp>

#include <span>
#include <string>
#include <string_view>

namespace fenestra::graph {

/// The graph with these names for its operations, by number; an empty one leaves the name that is
/// there, and so does one that is missing at the end.
FENESTRA_API Graph with_names(const Graph& graph, std::span<const std::string> names);

/// What a reverse pass calls what pulls back something of that name; nothing of nothing.
FENESTRA_API std::string backward_name(std::string_view name);

/// The two, told apart.
struct PartName {
  std::string part;
  bool is_backward = false;
};
FENESTRA_API PartName part_name(std::string_view name);

}  // namespace fenestra::graph
