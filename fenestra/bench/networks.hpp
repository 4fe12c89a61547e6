// Ready networks as work for the bench.
#pragma once

#include <fenestra/bench/work.hpp>
#include <fenestra/tensor/shape.hpp>

#include <string>

namespace fenestra::bench {

/// Whether nn/models has a network of this name that gives classes.
bool is_network(const std::string& name);
Work make_network(const std::string& name, char direction, Index batch);

}  // namespace fenestra::bench
