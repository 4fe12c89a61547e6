// Offsets for memory that is needed for a while: buffers that live at the same time get apart,
// others may share. Internal: not installed.
#pragma once

#include <fenestra/graph/plan.hpp>

#include <cstddef>
#include <vector>

namespace fenestra::graph {

/// Gives every buffer an offset, the largest first, each the lowest that what lives with it leaves
/// free, and returns the bytes of all.
std::size_t pack(std::vector<Buffer>& buffers);

}  // namespace fenestra::graph
