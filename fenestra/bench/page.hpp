// The page of a run: bars, plots and all numbers, as one file that needs nothing else.
#pragma once

#include <fenestra/bench/record.hpp>

#include <string>

namespace fenestra::bench {

std::string page_html(const Record& record);

}  // namespace fenestra::bench
