// When the weight gradient by outer products is chosen: what it lacks, and where other candidates
// are faster; see outer.hpp.
#include <fenestra/ops/conv/kernels/direct.hpp>
#include <fenestra/ops/conv/kernels/direct_axes.hpp>
#include <fenestra/ops/conv/kernels/gemm_blocked.hpp>
#include <fenestra/ops/conv/kernels/outer.hpp>
#include <fenestra/ops/conv/kernels/outer_tiles.hpp>

namespace fenestra::detail {

namespace {

// Elements of a sample of y_bar that take longer to read than a few places to add to.
constexpr Index kLargeGradient = 128 * 1024;

/// Whether a window of one tap lies beside the source.
bool leaves_source(const Windows& windows) {
  for (int a = 0; a < windows.rank(); ++a) {
    const WindowAxis& axis = windows[a];
    if (!axis.is_real(axis.window(0).cell(0)) || !axis.is_real(axis.window(axis.out - 1).cell(0))) {
      return true;
    }
  }
  return false;
}

}  // namespace

const char* outer_lacks(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (problem.direction != ConvDirection::weight_grad) {
    return "a weight gradient only";
  }
  if (g.rank() == 0 || g.batch == 0 || g.group_in() == 0 || g.group_out() == 0 ||
      g.windows.out_cells() == 0 || g.windows.taps() == 0) {
    return "nothing to add";
  }
  return nullptr;
}

// Where others are faster: one thread, microseconds of this kernel and of the other in f32 on
// AVX-512. Asks about one sample only, see sample_work.
template <class T>
const char* refuse_conv_outer(const ConvProblem& problem) {
  if (const char* reason = outer_lacks(problem)) {
    return reason;
  }
  const ConvGeometry& g = problem.geometry;
  const Index lanes = outer_loops<T>().lanes;
  const Index out = g.group_out();
  const Index padded = round_up(out, lanes);
  if (refuse_conv_direct<T>(problem) == nullptr) {
    if (lanes == 1) {
      return "no vectors: rows need no packing";
    }
    const Axes axes(g.windows);
    if (g.layout == Layout::channels_last && g.groups > 1 && axes.column.stride == 1 &&
        8 * out <= 3 * lanes) {
      // Groups of 4 @56: 2400, direct 1000; of 8 @28: 170, direct 220.
      return "vectors of output channels are mostly empty, and every group is copied";
    }
    // That kernel deals strided rows into phases, and transposes samples whose channels are last.
    // Of 157 random problems of these two kinds outer is faster in 103, slower in 35.
    if (g.layout == Layout::channels_last ? g.group_in() * out >= 8 : axes.column.stride > 1) {
      return nullptr;
    }
    const Index width = axes.column.out;
    const Index planes = g.group_in() * axes.outer_product(&WindowAxis::kernel);
    // How much faster than that kernel this one is per lane that is used, in eighths. Few places
    // hardly pay for packing y_bar, and many planes leave the cache there.
    Index factor = outer_loops<T>().most_places(2) >= 12 ? 16 : 10;
    factor = g.group_in() * g.windows.taps() <= 32 ? 9 : factor;
    factor = planes > 16 ? 2 * factor : factor;
    if (factor * out * round_up(width, lanes) <= 8 * padded * width) {
      return "rows fill vectors better than output channels do";  // 16 -> 4 @128: 630, direct 290
    }
    return nullptr;
  }
  const bool blocks = blocking_pays<T>(g);
  if ((blocks && g.windows.taps() > 1 && 8 * out < 7 * padded) ||
      (g.layout == Layout::channels_last && out < 4 && g.group_in() >= 24)) {
    // 64 -> 12 @32: 146, gemm 112. Channels last, fewer than 4 output channels: below 24 input
    // channels outer is faster in 33 of 48 random problems, slower in 9.
    return "a matrix product: output channels leave vectors empty";
  }
  if (g.layout == Layout::channels_first && g.windows.taps() == 1 && leaves_source(g.windows) &&
      (out >= 16 || g.windows.in_cells() > 2 * g.windows.out_cells())) {
    // Padding is copied, and no other tap sees the copy. 1x1 32 @14: 16.3, gemm 10.0; s2 64 -> 16
    // @28: 32, gemm 16; unstrided 32 -> 4 @14: 12.7, gemm 16.5.
    return "a matrix product: padding around single taps";
  }
  const bool few = g.windows.taps() == 1 && g.group_in() <= 128 && out >= 4 * g.group_in();
  if (g.layout == Layout::channels_first && few &&
      (blocks ? out * g.windows.out_cells() > kLargeGradient : lanes < 16)) {
    // 1x1 64 -> 256 @56: 850, gemm 760; in f64 8 -> 256 @28: 114, gemm 68.
    return "a matrix product: too few places share what is packed of y_bar";
  }
  return nullptr;
}

template const char* refuse_conv_outer<float>(const ConvProblem&);
template const char* refuse_conv_outer<double>(const ConvProblem&);

}  // namespace fenestra::detail
