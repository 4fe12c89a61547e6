// The three contractions of the convolution as matrix products; see gemm.hpp.
//
//   forward       channels first: y (co x cells) = w (co x k) * patches (k x cells)
//                 channels last:  y (cells x co) = patches (cells x k) * w (k x co)
//   input grad    the same with patches of y_bar. The cells of x fall into phases by their position
//                 modulo the stride; within a phase the taps that reach a cell are the same for
//                 all, so each phase is a dense product and every cell is written once: no scatter,
//                 no zero fill, and cells that no window covers are an empty sum. With few input
//                 channels there is nothing to share the gathered y_bar between, so there the
//                 products w^T (k x co) * y_bar (co x cells) are formed tile by tile and added to
//                 the cells of x, in the order of the cells, by whoever owns the sample.
//   weight grad   w_bar (co x k) = y_bar (co x cells) * patches (cells x k), samples in order
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/gemm.hpp>
#include <fenestra/ops/conv/kernels/gemm_blocked.hpp>
#include <fenestra/ops/conv/kernels/gemm_grids.hpp>
#include <fenestra/ops/conv/kernels/gemm_operands.hpp>
#include <fenestra/ops/conv/kernels/patches.hpp>

#include <algorithm>

namespace fenestra::detail {

namespace {

using kernels::GemmSize;
using kernels::LeftAccess;
using kernels::LeftOperand;
using kernels::Product;
using kernels::RightOperand;
using kernels::ScratchFrame;
using kernels::StridedOperand;

// A row that is read in place costs a load of its address per tap, which fewer multiply-adds than
// this do not hide; rows are packed instead.
constexpr Index kFewChannels = 6;
// Samples with fewer cells than this share column panels: a panel has 8 to 64 columns.
constexpr Index kFewCells = 128;
// Multiply-adds of one group that are worth waking threads for its own sake.
constexpr Index kGroupWork = 1'000'000;

/// results (channels x cells, or cells x channels) = w * patches, at the targets of the grid.
template <class T>
struct Correlation {
  Patches<T> patches;
  LeftOperand<T> w_left;    // channels first: channels x (channel, tap)
  RightOperand<T> w_right;  // channels last: (tap, channel) x channels
  Index out_channels = 0;   // of the group
  T* out = nullptr;
  Index out_channel_stride = 0;
  const T* bias = nullptr;
  const ConvFinish<T>* finish = nullptr;

  bool channels_last() const { return patches.grid.channels_last; }
  GemmSize size() const {
    const Index cells = patches.grid.cells();
    return channels_last() ? GemmSize{cells, out_channels, patches.grid.depth()}
                           : GemmSize{out_channels, cells, patches.grid.depth()};
  }
  Index packed_elements() const {
    return channels_last() ? kernels::packed_right_elements<T>(size())
                           : kernels::packed_left_elements<T>(size());
  }
};

/// The length of a row that is read in place, channels last; 0 where rows are packed.
template <class T>
Index row_segment(const Correlation<T>& c) {
  const Index channels = c.patches.grid.channels;
  return channels >= kFewChannels ? channels : 0;
}

/// Writes the weights as `correlate` would rather read them.
template <class T>
void pack_weights(const Correlation<T>& c, T* packed) {
  if (c.channels_last()) {
    kernels::pack_right<T>(c.size(), row_segment(c), c.w_right, packed);
  } else {
    kernels::pack_left<T>(c.size(), *c.w_left.panels, packed);
  }
}

template <class T>
void correlate(const Correlation<T>& c) {
  const PatchGrid& grid = c.patches.grid;
  const Index cells = grid.cells();
  const GridTarget<T> target{&grid, c.out, c.out_channel_stride};
  const RowFinisher<T> finisher(c.finish);
  Product<T> product;
  product.data = c.out;
  product.finisher = c.finish != nullptr ? &finisher : nullptr;
  if (!grid.channels_last) {
    const Index samples = grid.rank > 1 ? grid.axes[0].count : 1;
    const Index sample_cells = samples > 0 ? cells / samples : 0;
    product.row_bias = c.bias;
    product.row_stride = c.out_channel_stride;
    const SampleSink<T> sink(target, sample_cells, c.finish);
    const bool few = samples > 1 && sample_cells < kFewCells;
    const int inside = grid.rank > 1 ? 1 : 0;
    if (!few && is_dense_target(grid, inside, 1)) {
      product.period = sample_cells;
      product.period_stride = grid.axes[0].target_stride;
    } else {
      product.sink = &sink;
    }
    const CellColumns<T> columns(c.patches);
    kernels::gemm<T>(c.size(), c.w_left, {.columns = &columns}, product);
    return;
  }
  product.column_bias = c.bias;
  product.row_stride = grid.axes[grid.rank - 1].target_stride;
  const ChannelSink<T> sink(target);
  if (!is_dense_target(grid, 0, product.row_stride)) {
    product.sink = &sink;
  }
  const CellRows<T> rows(c.patches);
  const CellPanels<T> panels(c.patches);
  LeftOperand<T> left{.access = LeftAccess::packed_block, .panels = &panels};
  if (row_segment(c) > 0) {
    left = {.access = LeftAccess::rows, .rows = &rows, .segment = row_segment(c)};
  }
  kernels::gemm<T>(c.size(), left, c.w_right, product);
}

template <class T>
const T* zero_channels(Index count, ScratchFrame& frame) {
  T* zeros = frame.take<T>(count);
  std::fill(zeros, zeros + count, T(0));
  return zeros;
}

/// Calls f(correlation) with the one that computes the group.
template <class T, class F>
void forward(const Group<T>& s, const F& f) {
  const ConvGeometry& g = s.g;
  const Index first_in = s.group * g.group_in();
  const Index first_out = s.group * g.group_out();
  ScratchFrame frame;
  Correlation<T> c;
  c.patches.grid = window_grid(s);
  c.patches.data = s.arguments.lhs + first_in * s.x.channel;
  c.out_channels = g.group_out();
  c.out = s.arguments.out + first_out * s.y.channel;
  c.out_channel_stride = s.y.channel;
  c.bias = s.arguments.bias != nullptr ? s.arguments.bias + first_out : nullptr;
  c.finish = s.arguments.finish;
  const T* w = s.arguments.rhs + g.w_map().at(first_out, 0, 0);
  const Index depth = g.group_in() * g.windows.taps();
  if (g.layout == Layout::channels_first) {
    c.w_left = {.access = LeftAccess::rows, .data = w, .row_stride = depth};
  } else {
    c.patches.zeros = zero_channels<T>(g.group_in(), frame);
    c.w_right = {.data = w, .depth_stride = g.out_channels};
  }
  f(c);
}

template <class T, class F>
void input_grad_phase(const Group<T>& s, const Index* phase, const F& f) {
  const ConvGeometry& g = s.g;
  const Index first_in = s.group * g.group_in();
  const Index first_out = s.group * g.group_out();
  const int rank = g.rank();
  Correlation<T> c;
  PatchGrid& grid = c.patches.grid;
  grid = batch_grid(g, s.y.sample, s.x.sample);
  grid.channels = g.group_out();
  grid.channel_stride = s.y.channel;
  PhaseSeries axes[kMaxSpatialRank];
  c.out = s.arguments.out + first_in * s.x.channel;
  Index tap_count = 1;
  for (int a = 0; a < rank; ++a) {
    axes[a] = phase_series(g.windows[a], phase[a]);
    c.out += axes[a].cells.first * s.x.axis[a];
    grid.axes[grid.rank++] = {axes[a].windows, s.y.axis[a], s.x.axis[a] * axes[a].cells.step};
    tap_count *= axes[a].taps.count;
  }
  if (grid.cells() == 0) {
    return;
  }
  ScratchFrame frame;
  Index* taps = frame.take<Index>(tap_count);
  for (Index j = 0; j < tap_count; ++j) {
    Index rest = j;
    Index flat = 0;
    Index stride = 1;
    for (int a = rank - 1; a >= 0; --a) {
      flat += axes[a].taps.at(rest % axes[a].taps.count) * stride;
      rest /= axes[a].taps.count;
      stride *= g.windows[a].kernel;
    }
    taps[j] = flat;
  }
  collapse(grid);
  c.patches.data = s.arguments.lhs + first_out * s.y.channel;
  c.out_channels = g.group_in();
  c.out_channel_stride = s.x.channel;
  c.bias = s.arguments.bias != nullptr ? s.arguments.bias + first_in : nullptr;
  const PhaseWeights<T> weights{s.arguments.rhs + g.w_map().at(first_out, 0, 0),
                                g.group_in(),
                                g.group_out(),
                                g.out_channels,
                                g.windows.taps(),
                                taps,
                                tap_count};
  const PhasePanels<T> panels(weights);
  const PhaseColumns<T> columns(weights);
  if (g.layout == Layout::channels_first) {
    c.w_left = {.access = LeftAccess::packed, .panels = &panels};
  } else {
    c.patches.zeros = zero_channels<T>(g.group_out(), frame);
    c.w_right = {.columns = &columns};
  }
  f(c);
}

/// Multiplying first pays where a product is shared by more sums than the gathered y_bar would be.
/// Measured: four times as fast at 3 -> 64 channels of a 7x7 kernel with stride 2 and at 1 -> 6 of
/// 5x5.
bool multiplies_first(const ConvGeometry& g) {
  return g.group_in() > 0 && g.group_in() <= 16 && 2 * g.group_in() <= g.group_out() &&
         g.windows.taps() > 1;
}

template <class T>
void input_grad_few(const Group<T>& s) {
  const ConvGeometry& g = s.g;
  const Index taps = g.windows.taps();
  const Index cells = g.windows.out_cells();
  const Index first_out = s.group * g.group_out();
  const bool last = g.layout == Layout::channels_last;
  // Channels first can give each channel to a thread of its own where samples are fewer than
  // threads.
  const Index parts = last || g.batch >= threads() ? 1 : g.group_in();
  const Index channels = g.group_in() / parts;
  const Index rows = channels * taps;
  // The tile of products of all channels stays in the second-level cache: 64 Ki elements, or 32
  // columns. Its width is not seen in the bits: terms of a cell are added in the order of windows.
  const Index columns =
      std::min(cells, std::clamp<Index>(65536 / (g.group_in() * taps) / 32 * 32, 32, 512));
  const WindowAxis& inner = g.windows[g.rank() - 1];
  PatchGrid grid = plain_window_grid(s);
  grid.axes[0].count = 1;
  grid.axes[0].extent = 1;
  grid.channels = channels;
  const auto run = [&](Index begin, Index end) {
    for (Index task = begin; task < end; ++task) {
      const Index n = task / parts;
      const Index first_in = s.group * g.group_in() + task % parts * channels;
      T* x_bar = s.arguments.out + n * s.x.sample + first_in * s.x.channel;
      const T* y_bar = s.arguments.lhs + n * s.y.sample + first_out * s.y.channel;
      const T* w = s.arguments.rhs + g.w_map().at(first_out, task % parts * channels, 0);
      const T* bias = s.arguments.bias != nullptr ? s.arguments.bias + first_in : nullptr;
      const Index in_cells = g.windows.in_cells();
      for (Index c = 0; c < channels; ++c) {
        const T start = bias != nullptr ? bias[c] : T(0);
        T* plane = x_bar + c * s.x.channel;
        const Index step = last ? g.in_channels : 1;
        for (Index cell = 0; cell < in_cells; ++cell) {
          plane[cell * step] = start;
        }
      }
      ScratchFrame frame;
      T* tile = frame.take<T>(rows * columns);
      LeftOperand<T> left{.data = w};
      if (last) {
        left.access = LeftAccess::rows;
        left.row_stride = g.out_channels;
      } else {
        left.access = LeftAccess::lines;
        left.depth_stride = g.group_in() * taps;
      }
      for (Index o = 0; o < cells; o += columns) {
        const Index count = std::min(columns, cells - o);
        kernels::gemm<T>({rows, count, g.group_out()},
                         left,
                         {.data = y_bar + o * (last ? g.out_channels : 1),
                          .depth_stride = s.y.channel,
                          .line_stride = last ? g.out_channels : 1},
                         {.data = tile, .row_stride = columns});
        add_patches(grid, o, count, tile, columns, x_bar);
      }
      if (!last) {
        restore_rows(x_bar, channels * in_cells / inner.in, inner.in, inner.stride);
      }
    }
  };
  if (g.multiply_adds() / g.groups < kGroupWork) {
    run(0, g.batch * parts);
  } else {
    fenestra::parallel_for(g.batch * parts, 1, run);
  }
}

/// Calls f(correlation) for every phase that has cells, one after another.
template <class T, class F>
void input_grad(const Group<T>& s, const F& f) {
  Index phase[kMaxSpatialRank] = {};
  for (int a = 0; a >= 0;) {
    input_grad_phase(s, phase, f);
    for (a = s.g.rank() - 1; a >= 0 && ++phase[a] == s.g.windows[a].stride; --a) {
      phase[a] = 0;
    }
  }
}

template <class T>
void weight_grad(const Group<T>& s) {
  const ConvGeometry& g = s.g;
  if (blocking_pays<T>(g)) {
    weight_grad_blocked(g, s.arguments, s.group);
    return;
  }
  const Index first_out = s.group * g.group_out();
  Patches<T> patches;
  patches.grid = window_grid(s);
  patches.data = s.arguments.lhs + s.group * g.group_in() * s.x.channel;
  const Index columns = g.group_in() * g.windows.taps();
  const GemmSize size{g.group_out(), columns, g.batch * g.windows.out_cells()};
  const TapColumns<T> taps(patches);
  const RightOperand<T> right{.columns = &taps};
  Product<T> product;
  if (g.layout == Layout::channels_first) {
    product.data = s.arguments.out + first_out * columns;
    product.row_stride = columns;
    const SampleRows<T> rows(s);
    kernels::gemm<T>(size,
                     {.access = LeftAccess::rows, .rows = &rows, .segment = g.windows.out_cells()},
                     right,
                     product);
    return;
  }
  const WeightSink<T> sink(s);
  product.sink = &sink;
  const kernels::StridedPanels<T> y_bar(
      StridedOperand<T>{s.arguments.rhs + first_out, 1, g.out_channels});
  kernels::gemm<T>(size, {.access = LeftAccess::packed_block, .panels = &y_bar}, right, product);
}

/// Whether a group is computed by correlations: not the weight gradient, nor where products are
/// formed first.
bool correlates(const ConvProblem& problem) {
  switch (problem.direction) {
    case ConvDirection::forward: return true;
    case ConvDirection::input_grad: return !multiplies_first(problem.geometry);
    case ConvDirection::weight_grad: break;
  }
  return false;
}

/// Whether correlations bring weights into another form. Forward and channels first they are rows
/// already; packed ahead they are no faster (512 @7, batch 1: 3.00 ms, in place 2.93).
bool packs(const ConvProblem& problem) {
  return correlates(problem) && (problem.direction != ConvDirection::forward ||
                                 problem.geometry.layout == Layout::channels_last);
}

/// Calls f(correlation) for those that compute the group.
template <class T, class F>
void for_each_correlation(ConvDirection direction, const Group<T>& s, const F& f) {
  if (direction == ConvDirection::forward) {
    forward(s, f);
  } else {
    input_grad(s, f);
  }
}

template <class T>
Group<T> group_of(const ConvGeometry& g, const ConvArguments<T>& arguments, Index group) {
  return {g,
          arguments,
          group,
          ActivationStrides(g.x_map(), g.windows.in_shape()),
          ActivationStrides(g.y_map(), g.windows.out_shape())};
}

template <class T>
Index packed_group_elements(const ConvProblem& problem) {
  T nothing[1] = {};
  const ConvArguments<T> unread{.lhs = nothing, .rhs = nothing, .out = nothing};
  Index elements = 0;
  for_each_correlation(problem.direction,
                       group_of(problem.geometry, unread, 0),
                       [&](const Correlation<T>& c) { elements += c.packed_elements(); });
  return elements;
}

/// From the packed weights of its group, where it is given them.
template <class T>
void correlate_group(ConvDirection direction, const Group<T>& s, const T* packed) {
  for_each_correlation(direction, s, [&](Correlation<T>& c) {
    if (packed != nullptr && c.channels_last()) {
      c.w_right = {.packed = packed};
    } else if (packed != nullptr) {
      c.w_left = {.access = LeftAccess::packed, .packed = packed};
    }
    packed = packed != nullptr ? packed + c.packed_elements() : nullptr;
    correlate(c);
  });
}

}  // namespace

const char* refuse_conv_gemm(const ConvProblem&) { return nullptr; }

template <class T>
Index packed_elements_conv_gemm(const ConvProblem& problem) {
  return packs(problem) ? problem.geometry.groups * packed_group_elements<T>(problem) : 0;
}

template <class T>
void pack_conv_gemm(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  T* packed = arguments.out;
  // Activations are not read.
  const ConvArguments<T> weights{.lhs = arguments.rhs, .rhs = arguments.rhs, .out = arguments.out};
  for (Index group = 0; group < problem.geometry.groups; ++group) {
    for_each_correlation(problem.direction,
                         group_of(problem.geometry, weights, group),
                         [&](const Correlation<T>& c) {
                           pack_weights(c, packed);
                           packed += c.packed_elements();
                         });
  }
}

template <class T>
void run_conv_gemm(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  const ConvGeometry& g = problem.geometry;
  const Index packed_elements =
      arguments.packed != nullptr && g.groups > 1 ? packed_group_elements<T>(problem) : 0;
  const auto run = [&](Index begin, Index end) {
    for (Index group = begin; group < end; ++group) {
      const Group<T> s = group_of(g, arguments, group);
      if (problem.direction == ConvDirection::weight_grad) {
        weight_grad(s);
      } else if (!correlates(problem)) {
        input_grad_few(s);
      } else {
        correlate_group(
            problem.direction,
            s,
            arguments.packed != nullptr ? arguments.packed + group * packed_elements : nullptr);
      }
    }
  };
  // Many small groups are spread over the threads; within few large ones the product is.
  const Index work = g.multiply_adds() / g.groups;
  if (g.groups >= 2 * threads() && work < kGroupWork && work * g.groups >= kGroupWork / 4) {
    fenestra::parallel_for(g.groups, 1, run);
  } else {
    run(0, g.groups);
  }
}

#define FENESTRA_INSTANTIATE_CONV_GEMM(T)                                    \
  template Index packed_elements_conv_gemm<T>(const ConvProblem&);           \
  template void pack_conv_gemm(const ConvProblem&, const ConvArguments<T>&); \
  template void run_conv_gemm(const ConvProblem&, const ConvArguments<T>&)

FENESTRA_INSTANTIATE_CONV_GEMM(float);
FENESTRA_INSTANTIATE_CONV_GEMM(double);
#undef FENESTRA_INSTANTIATE_CONV_GEMM

}  // namespace fenestra::detail
