// What this machine can do at most, measured in the run: multiply-adds and copies.
#pragma once

#include <fenestra/base/error.hpp>

#include <cstddef>

namespace fenestra::bench {

/// Flops per second of independent multiply-adds in registers, on the kernels' instruction set.
template <class T>
double peak_flops(int threads);

/// Bytes per second, read and written ones both counted, of a copy that touches `bytes` in all.
/// Each thread copies a part of it, again and again.
double copy_speed(std::size_t bytes, int threads);

}  // namespace fenestra::bench
