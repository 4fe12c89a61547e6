// Convolutions with one channel to a group, or a few, on channels-last tensors, vectors along the
// channels: conv_f32_depthwise and conv_f64_depthwise, all three directions of one channel, forward
// and input gradient of a few. Internal: not installed. See docs/kernels/depthwise.md.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

#include <cstdint>
#include <type_traits>

namespace fenestra::detail {

/// Other layouts, groups that no vector holds, and channels that do not fill a vector of four.
template <class T>
const char* depthwise_lacks(const ConvProblem& problem);

/// Refuses groups of which a vector does not hold two, too, and those that leave it half empty.
template <class T>
const char* refuse_conv_depthwise(const ConvProblem& problem);

/// Scratch: tables of one number per column and column tap, and per row and row tap; weights of
/// groups of more than one channel, in whole vectors.
template <class T>
void run_conv_depthwise(const ConvProblem& problem, const ConvArguments<T>& arguments);

/// Of groups of one channel, which are read where they lie, none.
template <class T>
Index packed_elements_conv_depthwise(const ConvProblem& problem);
template <class T>
void pack_conv_depthwise(const ConvProblem& problem, const ConvArguments<T>& arguments);

// --- Between depthwise.cpp, which cuts the work, and depthwise_tiles.cpp, which
// has the loops for every instruction set. Offsets count numbers, not cells.

/// A column tap: where its source is, and its weights.
struct DepthwiseTap {
  Index source = 0;
  Index weight = 0;
};

/// Target columns that see their sources through the same taps, each one step further.
struct DepthwiseRun {
  Index target = 0;
  Index columns = 0;  ///< one of kDepthwiseTiles
  const DepthwiseTap* tap = nullptr;
  Index taps = 0;
};

/// Columns of a tile: with eight accumulators the latency of a multiply-add (4 cycles, two at once)
/// is hidden; what is left of a row goes in halves.
inline constexpr Index kDepthwiseTiles[] = {8, 4, 2, 1};

/// A source row and the weights it is multiplied by.
template <class T>
struct DepthwiseRow {
  const T* source = nullptr;
  const T* weight = nullptr;
};

/// The number of a lane, as instructions that permute lanes want it.
template <class T>
using DepthwiseLane = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// Groups of more than one channel: whole groups share a vector of targets, a block. The source
/// channels of a block fit a vector, too; `lookup` deals them to the targets of their groups.
template <class T>
struct DepthwiseGroups {
  Index sources = 1;       ///< channels of a group
  Index blocks = 0;        ///< of a cell
  Index source_block = 0;  ///< channels
  Index target_block = 0;
  Index weight_block = 0;                    ///< weights, which lie as [block][tap][source][lane]
  const DepthwiseLane<T>* lookup = nullptr;  ///< [source][lane]: where the target finds the source
};

/// One target row, forward or input gradient.
template <class T>
struct DepthwiseLine {
  const DepthwiseRow<T>* row = nullptr;
  Index rows = 0;
  const DepthwiseRun* run = nullptr;
  Index runs = 0;
  Index source_step = 0;
  Index target_step = 0;
  Index source_channels = 0;
  Index channels = 0;  ///< of the target
  const T* bias = nullptr;
  T* out = nullptr;
  DepthwiseGroups<T> groups;  ///< without blocks: one channel to a group
  const T* ahead = nullptr;   ///< what the next line reads first, or null
  Index ahead_size = 0;
};

/// A row of x and the row of taps through which a row of y sees it.
struct DepthwiseRowPair {
  Index tap_row = 0;
  Index x_row = 0;
};

/// Some rows of taps in the weight gradient, for some channels. A row of y is multiplied by all its
/// rows of x in turn, so that each is read from memory once.
template <class T>
struct DepthwiseDots {
  const T* x = nullptr;
  const T* y_bar = nullptr;
  Index batch = 0;
  Index x_sample = 0;
  Index y_sample = 0;
  const Index* begin = nullptr;  ///< [y_rows + 1] into `pairs`, of one row in order of tap_row
  const DepthwiseRowPair* pairs = nullptr;
  Index y_rows = 0;
  Index y_pitch = 0;
  Index tap_row_begin = 0;
  Index tap_row_end = 0;
  const Index* first = nullptr;  ///< per tap: the first column of y that sees x, and the end
  const Index* end = nullptr;
  const Index* shift = nullptr;  ///< per tap: where column 0 of y sees x
  Index taps = 0;
  Index x_step = 0;
  Index channels = 0;
  Index channel_begin = 0;
  Index channel_end = 0;
  T* out = nullptr;  ///< [tap rows][taps][channels]
};

template <class T>
struct DepthwiseLoops {
  Index lanes;
  void (*run_line)(const DepthwiseLine<T>&);
  void (*add_dots)(const DepthwiseDots<T>&);
};

/// For the instruction set in use.
template <class T>
const DepthwiseLoops<T>& depthwise_loops();
template <>
const DepthwiseLoops<float>& depthwise_loops();
template <>
const DepthwiseLoops<double>& depthwise_loops();

/// Vectors of channels that the weight gradient takes together: with three taps twelve
/// accumulators, which 16 registers hold beside what is loaded.
inline constexpr Index kDepthwiseVectors = 4;
inline constexpr Index kDepthwiseTaps = 3;

}  // namespace fenestra::detail
