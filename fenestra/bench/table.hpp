// The lines of a run on the terminal: results as they come, then what the bars say.
#pragma once

#include <fenestra/bench/bars.hpp>
#include <fenestra/bench/record.hpp>

#include <vector>

namespace fenestra::bench {

void print_heading(const Record& record);
void print(const Result& result);
void print_choices(const Record& record);
/// Every bar as met or missed, with its figure, the worst case, its kernel and its share.
void print_bars(const Record& record);

}  // namespace fenestra::bench
