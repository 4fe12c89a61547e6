// A report of a plan for people: as text in columns, as a drawing for Graphviz, as a page of HTML.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/graph/report.hpp>

#include <string>

namespace fenestra::graph {

FENESTRA_API std::string explain(const Report& report, ExplainFormat format = ExplainFormat::text);

namespace detail {

std::string explain_as_text(const Report& report);
std::string explain_as_dot(const Report& report);
std::string explain_as_html(const Report& report);

}  // namespace detail

}  // namespace fenestra::graph
