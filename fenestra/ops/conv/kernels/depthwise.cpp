// Cuts depthwise convolutions of channels-last tensors into target rows (forward, input gradient)
// and into rows of taps (weight gradient), and spreads them over threads; see
// depthwise.hpp.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/depthwise.hpp>
#include <fenestra/ops/conv/kernels/direct_axes.hpp>

#include <algorithm>

namespace fenestra::detail {

namespace {

// Channels below which a vector of four would be half empty.
constexpr Index kLeastChannels = 4;
// Multiply-adds of a range of rows: some 5 us, the cost of waking a thread.
constexpr Index kRangeWork = 100'000;
// Source and target together that may still lie in a cache near by: asking ahead for their lines
// takes longer there than waiting for them.
constexpr Index kCachedBytes = 4 * 1024 * 1024;

bool one_channel(const ConvGeometry& g) { return g.group_in() == 1 && g.group_out() == 1; }

/// Groups of which a vector holds both the sources and the targets.
template <class T>
Index groups_together(const ConvGeometry& g) {
  return depthwise_loops<T>().lanes / std::max(g.group_in(), g.group_out());
}

/// Forward and input gradient.
template <class T>
class DepthwiseCorrelation {
 public:
  DepthwiseCorrelation(const ConvProblem& problem, const ConvArguments<T>& arguments)
      : g_(problem.geometry),
        arguments_(arguments),
        axes_(g_.windows),
        transposed_(problem.direction == ConvDirection::input_grad),
        source_channels_(transposed_ ? g_.out_channels : g_.in_channels),
        channels_(transposed_ ? g_.in_channels : g_.out_channels),
        phases_(transposed_ ? axes_.column.stride : 1),
        asks_ahead_(g_.batch * (g_.windows.in_cells() + g_.windows.out_cells()) *
                        std::max(source_channels_, channels_) * static_cast<Index>(sizeof(T)) >
                    kCachedBytes) {
    if (!one_channel(g_)) {
      share_vectors();
    }
    taps_ = frame_.take<DepthwiseTap>(columns() * axes_.column.kernel);
    runs_ = frame_.take<DepthwiseRun>(columns());
    lookup_ = frame_.take<DepthwiseLane<T>>(groups_.blocks == 0 ? 0 : weight_tap());
    cut_columns();
    fill_lookup();
  }

  /// None where weights are read as they lie.
  Index packed_elements() const { return groups_.blocks * groups_.weight_block; }

  /// Writes the weights as a run reads them, with zeros in lanes that have no target.
  void pack_weights(T* packed) const {
    const Index sources = groups_.sources;
    const Index targets = channels_ / g_.groups;
    const Index lanes = depthwise_loops<T>().lanes;
    for (Index block = 0; block < groups_.blocks; ++block) {
      const Index first = block * groups_.target_block;
      const Index count = std::min(groups_.target_block, channels_ - first);
      for (Index tap = 0; tap < g_.windows.taps(); ++tap) {
        const T* w = arguments_.rhs + tap * g_.group_in() * g_.out_channels;
        for (Index s = 0; s < sources; ++s, packed += lanes) {
          for (Index lane = 0; lane < lanes; ++lane) {
            const Index group = (first + lane) / targets;
            const Index target = (first + lane) % targets;
            const Index in = transposed_ ? target : s;
            const Index out = group * g_.group_out() + (transposed_ ? s : target);
            packed[lane] = lane < count ? w[in * g_.out_channels + out] : T(0);
          }
        }
      }
    }
  }

  void run() {
    weights_ = groups_.blocks == 0 ? arguments_.rhs : arguments_.packed;
    kernels::ScratchFrame frame;
    if (weights_ == nullptr) {
      T* packed = frame.take<T>(packed_elements());
      pack_weights(packed);
      weights_ = packed;
    }
    const Index outer = axes_.outer_product(transposed_ ? &WindowAxis::in : &WindowAxis::out);
    const Index rows = transposed_ ? axes_.row.in : axes_.row.out;
    const Index lines = g_.batch * outer * rows;
    const Index work = std::max<Index>(1, g_.multiply_adds() / std::max<Index>(lines, 1));
    fenestra::parallel_for(
        lines, std::max<Index>(1, kRangeWork / work), [&](Index begin, Index end) {
          for (Index line = begin; line < end; ++line) {
            run_line(line / (outer * rows), line / rows % outer, line % rows, line);
          }
        });
  }

 private:
  Index columns() const { return transposed_ ? axes_.column.in : axes_.column.out; }
  Index source_columns() const { return transposed_ ? axes_.column.out : axes_.column.in; }
  /// Weights of a tap, in a block where there are some.
  Index weight_tap() const {
    return groups_.blocks == 0 ? channels_ : groups_.sources * depthwise_loops<T>().lanes;
  }

  /// Blocks of groups, as many as a vector holds of both their sources and their targets.
  void share_vectors() {
    const Index sources = source_channels_ / g_.groups;
    const Index targets = channels_ / g_.groups;
    const Index together = groups_together<T>(g_);
    groups_ = {.sources = sources,
               .blocks = ceil_of(g_.groups, together),
               .source_block = together * sources,
               .target_block = together * targets,
               .weight_block = g_.windows.taps() * sources * depthwise_loops<T>().lanes};
  }
  void fill_lookup() {
    const Index lanes = depthwise_loops<T>().lanes;
    const Index targets = channels_ / g_.groups;
    for (Index i = 0; i < (groups_.blocks == 0 ? 0 : weight_tap()); ++i) {
      const Index lane = i % lanes;
      const Index source = lane / targets * groups_.sources + i / lanes;
      lookup_[i] = static_cast<DepthwiseLane<T>>(lane < groups_.target_block ? source : 0);
    }
    groups_.lookup = lookup_;
  }

  /// Whether column b sees through the same taps as a, `steps` source columns further.
  bool continues(Index a, Index count_a, Index b, Index count_b, Index steps) const {
    const Index shift = steps * (transposed_ ? 1 : axes_.column.stride) * source_channels_;
    if (count_a != count_b) {
      return false;
    }
    for (Index t = 0; t < count_a; ++t) {
      const DepthwiseTap& p = taps_[a * axes_.column.kernel + t];
      const DepthwiseTap& q = taps_[b * axes_.column.kernel + t];
      if (p.weight != q.weight || p.source + shift != q.source) {
        return false;
      }
    }
    return true;
  }

  /// Columns of one phase of the stride see the same taps but at the borders.
  void cut_columns() {
    kernels::ScratchFrame frame;
    Index* counts = frame.take<Index>(columns());
    for (Index q = 0; q < columns(); ++q) {
      Index count = 0;
      for_each_source(axes_.column, transposed_, q, [&](Index tap, Index cell) {
        taps_[q * axes_.column.kernel + count++] = {cell * source_channels_, tap * weight_tap()};
      });
      counts[q] = count;
    }
    for (Index phase = 0; phase < phases_; ++phase) {
      for (Index q = phase; q < columns();) {
        Index same = 1;
        for (Index next = q + phases_; next < columns() && same < kDepthwiseTiles[0] &&
                                       continues(q, counts[q], next, counts[next], same);
             next += phases_) {
          ++same;
        }
        const Index tile = *std::find_if(std::begin(kDepthwiseTiles),
                                         std::end(kDepthwiseTiles),
                                         [&](Index size) { return size <= same; });
        runs_[run_count_++] = {q * channels_, tile, taps_ + q * axes_.column.kernel, counts[q]};
        q += tile * phases_;
      }
    }
  }

  void run_line(Index sample, Index outer, Index target_row, Index line) const {
    kernels::ScratchFrame frame;
    auto* row =
        frame.take<DepthwiseRow<T>>(axes_.outer_product(&WindowAxis::kernel) * axes_.row.kernel);
    const Index source_rows = transposed_ ? axes_.row.out : axes_.row.in;
    const Index source_cells = transposed_ ? g_.windows.out_cells() : g_.windows.in_cells();
    const T* source = arguments_.lhs + sample * source_cells * source_channels_;
    const Index row_size = source_columns() * source_channels_;
    Index count = 0;
    for_each_outer(axes_, transposed_, outer, [&](Index outer_tap, Index outer_cell) {
      for_each_source(axes_.row, transposed_, target_row, [&](Index tap, Index cell) {
        const Index tap_row = outer_tap * axes_.row.kernel + tap;
        row[count++] = {source + (outer_cell * source_rows + cell) * row_size,
                        weights_ + tap_row * axes_.column.kernel * weight_tap()};
      });
    });
    const T* ahead = source;
    for (Index i = 0; i < count; ++i) {
      ahead = std::max(ahead, row[i].source + row_size);
    }
    const Index left = source + source_cells * source_channels_ - ahead;
    depthwise_loops<T>().run_line(
        {.row = row,
         .rows = count,
         .run = runs_,
         .runs = run_count_,
         .source_step = (transposed_ ? 1 : axes_.column.stride) * source_channels_,
         .target_step = phases_ * channels_,
         .source_channels = source_channels_,
         .channels = channels_,
         .bias = arguments_.bias,
         .out = arguments_.out + line * columns() * channels_,
         .groups = groups_,
         .ahead = ahead,
         .ahead_size = asks_ahead_ ? std::min(left, row_size) : 0});
    if (arguments_.finish != nullptr) {
      arguments_.finish->run(arguments_.out + line * columns() * channels_, columns() * channels_);
    }
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  kernels::ScratchFrame frame_;
  Axes axes_;
  bool transposed_;
  Index source_channels_;
  Index channels_;  // of the target
  Index phases_;
  bool asks_ahead_;
  DepthwiseGroups<T> groups_;
  DepthwiseLane<T>* lookup_ = nullptr;
  const T* weights_ = nullptr;
  DepthwiseTap* taps_ = nullptr;  // [columns][kernel]
  DepthwiseRun* runs_ = nullptr;
  Index run_count_ = 0;
};

/// A weight is the sum over samples in order, and over their rows in order, whoever computes it.
template <class T>
void depthwise_weight_grad(const ConvGeometry& g, const ConvArguments<T>& arguments) {
  const Axes axes(g.windows);
  const WindowAxis& column = axes.column;
  const Index channels = g.out_channels;
  const Index tap_rows = axes.outer_product(&WindowAxis::kernel) * axes.row.kernel;
  const Index y_rows = axes.outer_product(&WindowAxis::out) * axes.row.out;
  kernels::ScratchFrame frame;
  Index* first = frame.take<Index>(column.kernel);
  Index* end = frame.take<Index>(column.kernel);
  Index* shift = frame.take<Index>(column.kernel);
  Index* begin = frame.take<Index>(y_rows + 1);
  auto* pairs = frame.take<DepthwiseRowPair>(tap_rows * y_rows);
  // A tap sees a run of columns: those before are left of the input, those behind right of it.
  for (Index t = 0; t < column.kernel; ++t) {
    const IndexRange seen = column.windows_of_tap(t);
    first[t] = seen.begin;
    end[t] = seen.end;
    shift[t] = column.window(0).cell(t) * channels;
  }
  Index pair_count = 0;
  for (Index row = 0; row < y_rows; ++row) {
    begin[row] = pair_count;
    for_each_outer(axes, false, row / axes.row.out, [&](Index outer_tap, Index outer_cell) {
      for_each_source(axes.row, false, row % axes.row.out, [&](Index tap, Index cell) {
        pairs[pair_count++] = {outer_tap * axes.row.kernel + tap,
                               (outer_cell * axes.row.in + cell) * column.in * channels};
      });
    });
  }
  begin[y_rows] = pair_count;

  const DepthwiseLoops<T>& loops = depthwise_loops<T>();
  const Index block = kDepthwiseVectors * loops.lanes;
  const Index blocks = std::max<Index>(1, channels / block);
  // One thread reads everything once; several share the rows of taps where channels do not suffice.
  const bool is_serial = g.multiply_adds() < kSerialWork || threads() == 1;
  const Index parts = is_serial ? 1 : std::min(tap_rows, ceil_of(threads(), blocks));
  const auto body = [&](Index job_begin, Index job_end) {
    for (Index job = job_begin; job < job_end; ++job) {
      const Index part = job / blocks;
      const Index number = job % blocks;
      loops.add_dots({.x = arguments.lhs,
                      .y_bar = arguments.rhs,
                      .batch = g.batch,
                      .x_sample = g.windows.in_cells() * channels,
                      .y_sample = g.windows.out_cells() * channels,
                      .begin = begin,
                      .pairs = pairs,
                      .y_rows = y_rows,
                      .y_pitch = column.out * channels,
                      .tap_row_begin = part * tap_rows / parts,
                      .tap_row_end = (part + 1) * tap_rows / parts,
                      .first = first,
                      .end = end,
                      .shift = shift,
                      .taps = column.kernel,
                      .x_step = column.stride * channels,
                      .channels = channels,
                      .channel_begin = number * block,
                      .channel_end = number + 1 == blocks ? channels : (number + 1) * block,
                      .out = arguments.out});
    }
  };
  if (is_serial) {
    body(0, parts * blocks);
  } else {
    fenestra::parallel_for(parts * blocks, 1, body);
  }
}

}  // namespace

template <class T>
const char* depthwise_lacks(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (g.layout != Layout::channels_last) {
    return "channels first: vectors along the width do it";
  }
  if (g.in_channels == 0 || g.out_channels == 0) {
    return "no channels";
  }
  if (one_channel(g)) {
    return g.groups < kLeastChannels ? "fewer than four channels" : nullptr;
  }
  if (problem.direction == ConvDirection::weight_grad) {
    return "a weight gradient of groups of more than one channel";
  }
  return groups_together<T>(g) == 0 ? "a vector does not hold a group" : nullptr;
}

template <class T>
const char* refuse_conv_depthwise(const ConvProblem& problem) {
  if (const char* reason = depthwise_lacks<T>(problem)) {
    return reason;
  }
  const ConvGeometry& g = problem.geometry;
  if (one_channel(g)) {
    return nullptr;
  }
  if (g.groups == 1) {
    return "no groups";
  }
  const Index together = groups_together<T>(g);
  const Index targets =
      problem.direction == ConvDirection::input_grad ? g.in_channels : g.out_channels;
  if (together < 2 || 2 * targets < ceil_of(g.groups, together) * depthwise_loops<T>().lanes) {
    return "groups leave vectors empty, or are as wide as one";
  }
  return nullptr;
}

template <class T>
void run_conv_depthwise(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  if (problem.direction == ConvDirection::weight_grad) {
    depthwise_weight_grad(problem.geometry, arguments);
  } else {
    DepthwiseCorrelation<T>(problem, arguments).run();
  }
}

template <class T>
Index packed_elements_conv_depthwise(const ConvProblem& problem) {
  if (problem.direction == ConvDirection::weight_grad) {
    return 0;
  }
  const ConvArguments<T> none;
  return DepthwiseCorrelation<T>(problem, none).packed_elements();
}

template <class T>
void pack_conv_depthwise(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  DepthwiseCorrelation<T>(problem, arguments).pack_weights(arguments.out);
}

#define FENESTRA_INSTANTIATE_CONV_DEPTHWISE(T)                                    \
  template const char* depthwise_lacks<T>(const ConvProblem&);                    \
  template const char* refuse_conv_depthwise<T>(const ConvProblem&);              \
  template Index packed_elements_conv_depthwise<T>(const ConvProblem&);           \
  template void pack_conv_depthwise(const ConvProblem&, const ConvArguments<T>&); \
  template void run_conv_depthwise(const ConvProblem&, const ConvArguments<T>&)

FENESTRA_INSTANTIATE_CONV_DEPTHWISE(float);
FENESTRA_INSTANTIATE_CONV_DEPTHWISE(double);
#undef FENESTRA_INSTANTIATE_CONV_DEPTHWISE

}  // namespace fenestra::detail
