// When the dense convolution is chosen: what it lacks, and where other candidates are faster; see
// dense.hpp.
#include <fenestra/ops/conv/kernels/dense.hpp>
#include <fenestra/ops/conv/kernels/dense_axes.hpp>
#include <fenestra/ops/conv/kernels/dense_tiles.hpp>
#include <fenestra/ops/conv/kernels/direct.hpp>

#include <algorithm>

namespace fenestra::detail {

const char* dense_lacks(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (problem.direction == ConvDirection::weight_grad) {
    return "not a weight gradient";
  }
  if (g.in_channels == 0 || g.out_channels == 0) {
    return "no channels";
  }
  return nullptr;
}

namespace {

// Cells, and multiply-adds of a sample, below which others do not get going.
constexpr Index kFewCells = 256;
constexpr Index kSmallWork = 500'000;
// Bytes of packed weights, and of a sample of x, that a second-level cache and some of the third
// hold while all bands or all blocks read them.
constexpr Index kKeptWeights = 2560 * 1024;
constexpr Index kKeptSource = 1024 * 1024;

/// Whether planes can be read where they lie: see sees_source_only in dense.cpp.
template <class T>
bool planes_share_sets(Index cells) {
  return cells * static_cast<Index>(sizeof(T)) % 2048 == 0;
}

/// Of instruction sets with 16 registers: tiles are as small as those of the product, which is 5 to
/// 15 % faster on 3x3 with many cells; here is what it is weak in. Microseconds on AVX2.
bool pays_with_small_tiles(const ConvGeometry& g, bool transposed, Index outer_taps) {
  const Index narrowest = std::min(g.group_in(), g.group_out());
  if (sample_work(g) < kSmallWork) {
    return true;  // 16 @8: F 5.9, gemm 7.3; LeNet's 6 -> 16: F half of direct
  }
  if (transposed && g.windows.in_cells() <= kFewCells) {
    return true;  // D of 256 @14: 3610, gemm 4170; 1x1 2048 -> 512 @7: 0.6 of gemm
  }
  // 3^3 32 @8x28: 5020, direct 5970; groups of 32 @28: 817, gemm 939.
  return narrowest >= 16 && (outer_taps > 1 || g.groups > 1);
}

/// Channels last: the product gathers patches of few channels slowly, and is as fast as this kernel
/// where there are many. `padded` targets fill vectors.
template <class T>
const char* refuse_last(const ConvProblem& problem, Index sources, Index targets, Index padded) {
  const ConvGeometry& g = problem.geometry;
  const bool transposed = problem.direction == ConvDirection::input_grad;
  const bool one_tap = g.windows.taps() == 1;
  const WindowAxis& column = g.windows[g.rank() - 1];
  const Index products = sources * g.windows.taps();
  const bool rows_fill = column.stride == 1 && refuse_conv_direct<T>(problem) == nullptr;
  // In per cent. 4 -> 6 @56: 31, direct 24; D of 7x7 3 -> 10 @112: 415, direct 350; 3x3 s3 6 @224:
  // 85, direct 290; 48 -> 6 @56: 287, gemm 417; D of 3x3 48 -> 10 @28: 90, gemm 91.
  const Index least = rows_fill ? 70 : transposed ? 50 : 35;
  if (targets * 100 < padded * least) {
    return "too few target channels fill their vectors";
  }
  // With 32 registers tiles are larger than the product's: 128 @28: 2150, gemm 2320; 256 @28
  // dilated 9340, gemm 10240; in f64, where weights are twice as large, 256 @14: 6360, gemm 5100.
  const Index weights = products * padded * static_cast<Index>(sizeof(T));
  const bool large_tiles = dense_loops<T>().cells[1] >= 14;
  // And it asks ahead for what a 1x1 convolution reads. 256 -> 64 @56, four samples: F 4240, gemm
  // 5140; D 5250, gemm 5550; 1024 -> 256 @14: F 5250, gemm 4600.
  const bool reads_ahead =
      large_tiles && is_plain(g) && targets == padded && sources >= 64 && sources <= 512;
  const bool larger_tiles = large_tiles && column.stride == 1 && !one_tap && sources >= 128 &&
                            targets == padded && weights <= kKeptWeights &&
                            g.windows.out_cells() >= 128;
  if (!larger_tiles && !reads_ahead && sources > (one_tap && targets == padded ? 32 : 64)) {
    // 64 @56: 1420, gemm 1530; 3x3 s3 96 -> 32 @112: 730, gemm 630; 96 @28: 1343, gemm 1328.
    return "a matrix product: enough channels lie side by side";
  }
  if (one_tap && !reads_ahead && sources >= 16 && targets >= 4 * sources) {
    return "a matrix product: most of the time is spent on results";  // f64 16 -> 96 @112: 0.83
  }
  if (!transposed && g.windows.out_cells() < 25 && products * targets > 4096) {
    // 3x3 s2 64 -> 96 @7: 21, gemm 12; 3x3 s3 8 -> 40 @14: 2.0, gemm 2.6.
    return "too few cells share packed weights";
  }
  if (transposed && column.stride > 1 && column.in / column.stride < 8 && products >= 96) {
    // D of 5x5 s2 24 -> 13 @10: 17, gemm 13; 3x3 s2 24 -> 96 @28: 60, gemm 80.
    return "too few cells of a phase in a row";
  }
  if (transposed && column.in < 32 && (column.in - 6) / column.stride >= column.out &&
      products > 512) {
    return "too many zeros around a small source";  // D of 7x7 64 -> 13 @14: 264, gemm 91
  }
  return nullptr;
}

}  // namespace

// Where another candidate is faster: one thread, f32, microseconds of this kernel and of the other
// on AVX-512. Asks about one sample only, see sample_work.
template <class T>
const char* refuse_conv_dense(const ConvProblem& problem) {
  if (const char* reason = dense_lacks(problem)) {
    return reason;
  }
  const ConvGeometry& g = problem.geometry;
  if (g.batch == 0) {
    return "no samples";  // products of the other sizes may not fit
  }
  const Axes axes(g.windows);
  const bool transposed = problem.direction == ConvDirection::input_grad;
  const DenseLoops<T>& loops = dense_loops<T>();
  const Index sources = transposed ? g.group_out() : g.group_in();
  const Index targets = transposed ? g.group_in() : g.group_out();
  const Index cells = transposed ? g.windows.in_cells() : g.windows.out_cells();
  if (loops.lanes == 1) {
    return "no vectors";
  }
  if (g.layout == Layout::channels_last) {
    return refuse_last<T>(problem, sources, targets, round_up(targets, loops.lanes));
  }
  // Channels that only fill vectors cost as much as others. 24 @32: 98, direct 83; 17 @64: 266,
  // direct 187; 37 -> 53 @28: 220, gemm 230.
  if (targets * 100 < round_up(targets, loops.lanes) * (sources <= 32 ? 80 : 75)) {
    return "too few target channels fill their vectors";
  }
  // With 32 registers six channels share a strip's loads there. 16 -> 64 @64: 439, direct 321; 12
  // -> 64 @14: 13.8, direct 14.8; 24 -> 64 @30: 111, direct 120; D of 12 -> 40 @16: 15.1,
  // direct 11.6.
  const Index width = transposed ? axes.column.in : axes.column.out;
  if (loops.cells[1] >= 14 && axes.column.stride == 1 && axes.outer_rank == 0 &&
      105 * width * round_up(targets, loops.lanes) >=
          100 * targets * round_up(width, loops.lanes) &&
      refuse_conv_direct<T>(problem) == nullptr) {
    return "rows fill vectors as well as channels do";
  }
  if (sources * g.windows.taps() < 64) {
    return "too few products to a cell";  // 3 -> 64 @224: 2150, direct 1710
  }
  const bool large_tiles = loops.cells[1] >= 14;
  // Most of the time goes into reading sources, which the product packs: 256 -> 64 @56: 980, gemm
  // 1120; 512 -> 128 @28: 980, gemm 1120; 144 -> 32 @56: 296, gemm 352.
  const bool narrows =
      large_tiles && sources >= 128 && sources >= 2 * targets && !planes_share_sets<T>(cells);
  if (is_plain(g) && !narrows && (sources < 64 || cells > (transposed ? 4 : 1) * kFewCells)) {
    return "a matrix product";  // 128 -> 512 @28: 730, gemm 630; 24 -> 144 @56: 265, gemm 185
  }
  // One tap, every other cell: 1x1 s2 128 -> 256 @28, 8 samples: 1170, gemm 1680; 256 -> 512 @14:
  // 141, gemm 161.
  const bool read_in_place =
      large_tiles && g.windows.taps() == 1 && axes.column.stride == 2 &&
      sources * g.windows.in_cells() * static_cast<Index>(sizeof(T)) <= kKeptSource &&
      !planes_share_sets<T>(g.windows.in_cells());
  if (!transposed && axes.column.stride > 1 && !read_in_place &&
      (g.windows.taps() == 1 || axes.column.out < 14)) {
    // 1x1 s2 256 -> 512 @56: 2380, gemm 2170; 3x3 s2 512 @14: 3800, gemm 2350.
    return "a matrix product: strided rows are short, or read once";
  }
  if (!transposed && cells < 49) {
    return "too few cells share packed weights";  // 512 @4: 1210, gemm 820
  }
  if (transposed && targets <= 16 && g.windows.out_cells() <= 8) {
    // D of k4 s4 16 -> 64 @16: 4.2, gemm 3.2; 3 16 -> 64 @8: 4.2, gemm 2.5; 64 -> 64 @10: 13, gemm
    // 22.
    return "too few windows share packed weights";
  }
  if (loops.cells[1] < 14 &&
      !pays_with_small_tiles(g, transposed, axes.outer_product(&WindowAxis::kernel))) {
    return "too few registers for large tiles";
  }
  return nullptr;
}

template const char* refuse_conv_dense<float>(const ConvProblem&);
template const char* refuse_conv_dense<double>(const ConvProblem&);

}  // namespace fenestra::detail
