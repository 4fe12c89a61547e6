// The blocks of the transformed convolution, and its conditions; see winograd.hpp.
//
// An image is cut into tiles of 4 x 4 target cells. Each of the 36 products of a tile is a sum over
// channels, so all tiles together are 36 matrix products. Forward and input gradient: transformed
// data (tiles x source channels) times transformed weights (source x target channels); the input
// gradient is the same on flipped weights. Weight gradient: transformed y_bar times transformed x,
// summed over the tiles. Everything is done in parts that stay in the caches. An element of a
// product is one chain of multiply-adds whose order depends on the geometry alone, and a tile
// belongs to one sample, so bits depend neither on threads nor on the batch.
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/ops/conv/kernels/winograd.hpp>
#include <fenestra/ops/conv/kernels/winograd_parts.hpp>
#include <fenestra/spec/window_walk.hpp>

#include <algorithm>

namespace fenestra::detail {

namespace {

using namespace winograd;

// Transformed data and weights of a part: together a share of a last-level cache. Twice as much is
// 1.2 times slower at 64 @56, and at 512 @7 weights of 10 MiB are 1.3 times slower.
constexpr Index kDataBytes = 4 << 20;
constexpr Index kWeightBytes = 4 << 20;
// Where the weights are cut into parts, they are transformed again for every part of the data.
constexpr Index kManyDataBytes = 12 << 20;
// Products of a job: with the rows of data and weights at hand they fit a second-level cache of
// 512 KiB.
constexpr Index kProductBytes = 384 << 10;
// Tiles of a job: as many as make reading the weights again cheap, and whole panels of 6 rows.
constexpr Index kJobTiles = 48;
// Jobs of a part, where there are as many panels: a single image has few tiles.
constexpr Index kLeastJobs = 8;
// Source channels whose weights are gathered at once.
constexpr Index kGather = 32;
// Where it pays: measured on Zen 3, one thread, times faster than the strict candidate forward / in
// the input gradient / in the weight gradient.
// 32 channels @56 1.2 / 1.4 / 1.6, 16 channels @56 1.4 / 0.9 / 1.7.
constexpr Index kLeastChannels = 32;
// Of one sample, which decides for every batch it may sit in: 256 @14, 16 tiles, 1.4 / 1.3 / 1.1,
// on AVX-512 1.2 / 1.4 / 1.2; 512 @7, 4 tiles, 1.1 / 0.8 / 0.5, on AVX-512 0.1 / 0.2 / 0.6, though
// 16 samples of it together would be 1.8 / 1.7 / 1.2.
constexpr Index kLeastTiles = 12;

/// Transformed weights of the panels from `first` on: [product][panel][source channel][block].
template <class T>
struct WinogradWeights {
  const T* data = nullptr;
  Index product = 0;  // from product to product
  Index first = 0;
};

/// Forward and input gradient.
template <class T>
class WinogradCorrelation {
 public:
  WinogradCorrelation(const ConvProblem& problem, const ConvArguments<T>& arguments)
      : g_(problem.geometry),
        arguments_(arguments),
        loops_(winograd_loops<T>()),
        transposed_(problem.direction == ConvDirection::input_grad) {
    const WindowAxis& row = g_.windows[0];
    const WindowAxis& column = g_.windows[1];
    const bool last = g_.layout == Layout::channels_last;
    reader_.read = loops_.read_data;
    if (transposed_) {
      reader_.image = {arguments.lhs, g_.out_channels, row.out, column.out, last};
      target_ = {arguments.out, g_.in_channels, row.in, column.in, last};
    } else {
      reader_.image = {arguments.lhs, g_.in_channels, row.in, column.in, last};
      target_ = {arguments.out, g_.out_channels, row.out, column.out, last};
    }
    // Target cell o sees source cells o - pad ..., in the input gradient o + pad - 2 ...
    reader_.first_row = TargetAxis(row, transposed_).first;
    reader_.first_column = TargetAxis(column, transposed_).first;
    grid_ = {ceil_of(target_.rows, kTileSide), ceil_of(target_.width, kTileSide), g_.batch};
    choose_parts();
    reader_.dst = frame_.take<T>(kProducts * reader_.product);
    own_weights_ = frame_.take<T>(by_panels_ || arguments.packed != nullptr ? 0 : part_elements());
    offsets_ = frame_.take<Index>(sources());
    bias_ = frame_.take<T>(panels() * block());
    for (Index k = 0; k < sources(); ++k) {
      offsets_[k] = k * block();
    }
    if (arguments_.bias != nullptr) {
      std::fill_n(bias_, panels() * block(), T(0));
      std::copy_n(arguments_.bias, target_.channels, bias_);
    }
  }

  void run() {
    if (by_panels_) {
      return run_panels();
    }
    weights_.first = -1;  // none are transformed
    for (Index r0 = 0; r0 < grid_.all_rows(); r0 += part_rows_) {
      const Index r1 = std::min(r0 + part_rows_, grid_.all_rows());
      read_part(loops_, reader_, grid_, r0, r1);
      for (Index panel0 = 0; panel0 < panels(); panel0 += part_panels_) {
        const Index panel1 = std::min(panel0 + part_panels_, panels());
        if (arguments_.packed != nullptr) {
          weights_ = packed_part(panel0);
        } else if (weights_.first != panel0) {
          read_weights(panel0, panel1, own_weights_);
          weights_ = {own_weights_, weight_product_, panel0};
        }
        run_part(r0, r1, panel1 - panel0);
      }
    }
  }

  Index packed_elements() const { return ceil_of(panels(), part_panels_) * part_elements(); }
  /// Writes all parts of the weights.
  void pack(T* packed) const {
    for (Index panel0 = 0; panel0 < panels(); panel0 += part_panels_) {
      read_weights(panel0,
                   std::min(panel0 + part_panels_, panels()),
                   packed + panel0 / part_panels_ * part_elements());
    }
  }

 private:
  Index block() const { return loops_.block; }
  Index sources() const { return reader_.image.channels; }
  Index panels() const { return ceil_of(target_.channels, block()); }
  /// Of a part of the weights.
  Index part_elements() const { return kProducts * weight_product_; }

  void choose_parts() {
    constexpr auto kBytes = static_cast<Index>(sizeof(T));
    const Index pitch = round_up(sources(), block());
    const Index panel = kProducts * sources() * block() * kBytes;
    part_panels_ = part_of(panels(), kWeightBytes / panel);
    weight_product_ = odd_lines<T>(part_panels_ * sources() * block());
    const Index data_row = kProducts * grid_.columns * pitch * kBytes;
    const Index data_bytes = part_panels_ < panels() ? kManyDataBytes : kDataBytes;
    part_rows_ = part_of(grid_.all_rows(), data_bytes / data_row);
    reader_.shape(pitch, part_rows_ * grid_.columns);
    by_panels_ = part_panels_ < panels() && part_rows_ == grid_.all_rows();
    job_rows_ = part_of(part_rows_, kJobTiles / grid_.columns);
    const Index products = kProducts * job_rows_ * grid_.columns * block() * kBytes;
    const Index row_jobs = ceil_of(part_rows_, job_rows_);
    job_panels_ = part_of(part_panels_,
                          std::min(kProductBytes / products, part_panels_ * row_jobs / kLeastJobs));
  }

  /// Weights of target channels [t0, t0 + block) and source channels [s0, s1) as [source][tap][
  /// block].
  void gather_weights(Index t0, Index s0, Index s1, T* taps) const {
    const Index in = g_.in_channels;
    const Index out = g_.out_channels;
    const Index targets = std::min(block(), target_.channels - t0);
    const Index step = kWinogradTaps * block();
    const T* w = arguments_.rhs;
    if (targets < block()) {
      std::fill_n(taps, (s1 - s0) * step, T(0));
    }
    if (g_.layout == Layout::channels_first && !transposed_) {
      kernels::transpose(w + (t0 * in + s0) * kWinogradTaps,
                         in * kWinogradTaps,
                         targets,
                         (s1 - s0) * kWinogradTaps,
                         taps,
                         block());
      return;
    }
    if (g_.layout == Layout::channels_first) {
      for (Index s = s0; s < s1; ++s, taps += step) {
        kernels::transpose(w + (s * in + t0) * kWinogradTaps,
                           kWinogradTaps,
                           targets,
                           kWinogradTaps,
                           taps,
                           block());
      }
      return;
    }
    for (Index tap = 0; tap < kWinogradTaps; ++tap, w += in * out, taps += block()) {
      if (transposed_) {
        kernels::transpose(w + t0 * out + s0, out, targets, s1 - s0, taps, step);
        continue;
      }
      for (Index s = s0; s < s1; ++s) {
        std::copy_n(w + s * out + t0, targets, taps + (s - s0) * step);
      }
    }
  }

  /// Elements of the weights that one job gathers.
  Index gathered() const { return kGather * kWinogradTaps * block(); }
  /// Transforms the weights of a panel and of source channels from s0 on, kGather of them at most,
  /// into `dst`, where the panel lies with `product` from product to product.
  void transform_weights(Index panel, Index s0, T* taps, T* dst, Index product) const {
    const Index s1 = std::min(s0 + kGather, sources());
    gather_weights(panel * block(), s0, s1, taps);
    loops_.read_weights(taps, s1 - s0, transposed_, {dst + s0 * block(), product, block()});
  }

  /// A part of the weights.
  void read_weights(Index panel0, Index panel1, T* dst) const {
    const Index chunks = ceil_of(sources(), kGather);
    const Index panels = panel1 - panel0;
    // Neighbouring jobs read neighbouring weights: further source channels forward, further target
    // channels in the input gradient.
    const auto body = [&](Index begin, Index end) {
      ScratchFrame frame;
      T* taps = frame.take<T>(gathered());
      for (Index job = begin; job < end; ++job) {
        const Index panel = transposed_ ? job % panels : job / chunks;
        const Index chunk = transposed_ ? job / panels : job % chunks;
        transform_weights(panel0 + panel,
                          chunk * kGather,
                          taps,
                          dst + panel * sources() * block(),
                          weight_product_);
      }
    };
    fenestra::parallel_for(panels * chunks, transposed_ ? panels : chunks, body);
  }
  /// The part that begins with `panel0`, of weights that were packed ahead.
  WinogradWeights<T> packed_part(Index panel0) const {
    return {arguments_.packed + panel0 / part_panels_ * part_elements(), weight_product_, panel0};
  }

  /// Where all data is one part and the weights would be several, each of which all threads would
  /// wait for: a thread transforms a panel and multiplies with it, then the next. Few tiles are
  /// many panels' work.
  void run_panels() {
    const Index rows = grid_.all_rows();
    read_part(loops_, reader_, grid_, 0, rows);
    fenestra::parallel_for(panels(), 1, [&](Index begin, Index end) {
      for (Index panel = begin; panel < end; ++panel) {
        ScratchFrame frame;
        const WinogradWeights<T> weights = weights_of(panel, frame);
        const Index at = panel - weights.first;
        for (Index row = 0; row < rows; row += job_rows_) {
          run_job(0, row, std::min(row + job_rows_, rows), weights, at, at + 1);
        }
      }
    });
  }
  /// Weights that hold `panel`: packed ahead, or transformed into scratch.
  WinogradWeights<T> weights_of(Index panel, ScratchFrame& frame) const {
    if (arguments_.packed != nullptr) {
      return packed_part(panel / part_panels_ * part_panels_);
    }
    const Index product = odd_lines<T>(sources() * block());
    T* dst = frame.take<T>(kProducts * product);
    T* taps = frame.take<T>(gathered());
    for (Index s0 = 0; s0 < sources(); s0 += kGather) {
      transform_weights(panel, s0, taps, dst, product);
    }
    return {dst, product, panel};
  }

  void run_part(Index r0, Index r1, Index panels) {
    const Index row_jobs = ceil_of(r1 - r0, job_rows_);
    const Index panel_jobs = ceil_of(panels, job_panels_);
    fenestra::parallel_for(row_jobs * panel_jobs, 1, [&](Index begin, Index end) {
      for (Index job = begin; job < end; ++job) {
        const Index row = job % row_jobs * job_rows_;
        const Index panel = job / row_jobs * job_panels_;
        run_job(r0,
                row,
                std::min(row + job_rows_, r1 - r0),
                weights_,
                panel,
                std::min(panel + job_panels_, panels));
      }
    });
  }

  /// Rows [row0, row1) of the part that begins at r0, panels [panel0, panel1) of `weights`.
  void run_job(Index r0,
               Index row0,
               Index row1,
               const WinogradWeights<T>& weights,
               Index panel0,
               Index panel1) {
    const Index tiles = (row1 - row0) * grid_.columns;
    const Index columns = (panel1 - panel0) * block();
    const Index product = odd_lines<T>(tiles * columns);
    ScratchFrame frame;
    T* products = frame.take<T>(kProducts * product);
    T* cells = frame.take<T>(
        target_.channels_last ? 0 : (row1 - row0) * kTileSide * target_.width * block());
    for (Index e = 0; e < kProducts; ++e) {
      const PanelColumns<T> right(
          {.data = weights.data + e * weights.product + panel0 * sources() * block(),
           .panel_stride = sources() * block(),
           .depth_stride = block(),
           .width = block(),
           .offsets = offsets_});
      kernels::gemm<T>(
          {tiles, columns, sources()},
          {.access = LeftAccess::rows,
           .data = reader_.dst + e * reader_.product + row0 * grid_.columns * reader_.pitch,
           .row_stride = reader_.pitch},
          {.columns = &right},
          {.data = products + e * product, .row_stride = columns});
    }
    for (Index panel = panel0; panel < panel1; ++panel) {
      const Index c0 = (weights.first + panel) * block();
      const T* bias = arguments_.bias != nullptr ? bias_ + c0 : nullptr;
      const auto write = [&](Index sample, Index begin, Index end, Index tile) {
        write_cells(sample,
                    {begin, end, grid_.columns},
                    {products + tile * columns + (panel - panel0) * block(), product, columns},
                    bias,
                    c0,
                    cells);
      };
      for_each_sample(grid_, r0 + row0, r0 + row1, grid_.rows, write);
    }
  }

  void write_cells(Index sample,
                   const TileRows& tiles,
                   const ProductRows<const T>& products,
                   const T* bias,
                   Index c0,
                   T* cells) const {
    const Index channels = std::min(block(), target_.channels - c0);
    const Index row0 = tiles.begin * kTileSide;
    const Index row1 = std::min(tiles.end * kTileSide, target_.rows);
    T* out = target_.data + sample * target_.channels * target_.cells();
    if (target_.channels_last) {
      const Index row_stride = target_.width * target_.channels;
      loops_.write_cells(tiles,
                         products,
                         bias,
                         {out + row0 * row_stride + c0,
                          row0,
                          row1,
                          target_.width,
                          row_stride,
                          target_.channels,
                          channels});
      for (Index cell = row0 * target_.width;
           arguments_.finish != nullptr && cell < row1 * target_.width;
           ++cell) {
        arguments_.finish->run(out + cell * target_.channels + c0, channels);
      }
      return;
    }
    loops_.write_cells(
        tiles,
        products,
        bias,
        {cells, row0, row1, target_.width, target_.width * block(), block(), block()});
    kernels::transpose(cells,
                       block(),
                       (row1 - row0) * target_.width,
                       channels,
                       out + c0 * target_.cells() + row0 * target_.width,
                       target_.cells());
    for (Index c = c0; arguments_.finish != nullptr && c < c0 + channels; ++c) {
      arguments_.finish->run(out + c * target_.cells() + row0 * target_.width,
                             (row1 - row0) * target_.width);
    }
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const WinogradLoops<T>& loops_;
  ScratchFrame frame_;
  bool transposed_;
  Reader<T> reader_;
  Image<T> target_;
  TileGrid grid_;
  Index part_rows_ = 1;
  Index part_panels_ = 1;
  Index job_rows_ = 1;
  Index job_panels_ = 1;
  Index weight_product_ = 0;    // from product to product of a part of the weights
  bool by_panels_ = false;      // see run_panels
  WinogradWeights<T> weights_;  // the part that is read
  T* own_weights_ = nullptr;
  Index* offsets_ = nullptr;
  T* bias_ = nullptr;
};

}  // namespace

const char* winograd_lacks(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  if (g.rank() != 2 || g.windows[0].kernel != 3 || g.windows[1].kernel != 3) {
    return "not a 3x3 window";
  }
  for (int axis = 0; axis < 2; ++axis) {
    if (g.windows[axis].stride != 1 || g.windows[axis].dilation != 1) {
      return "stride or dilation other than 1";
    }
  }
  if (g.groups != 1) {
    return "groups";
  }
  if (g.multiply_adds() == 0) {
    return "nothing to multiply";
  }
  return nullptr;
}

const char* refuse_conv_winograd(const ConvProblem& problem) {
  if (const char* reason = winograd_lacks(problem)) {
    return reason;
  }
  const ConvGeometry& g = problem.geometry;
  if (std::min(g.in_channels, g.out_channels) < kLeastChannels) {
    return "too few channels: the transforms cost more than they save";
  }
  const bool transposed = problem.direction == ConvDirection::input_grad;
  const Index rows = transposed ? g.windows[0].in : g.windows[0].out;
  const Index width = transposed ? g.windows[1].in : g.windows[1].out;
  const Index tiles = ceil_of(rows, kTileSide) * ceil_of(width, kTileSide);
  if (2 * rows * width < tiles * kTileSide * kTileSide) {
    return "tiles of 4x4 cells would stand outside";  // 64 @5: 1.0 / 0.9 / 2.2
  }
  if (tiles < kLeastTiles) {
    return "too few tiles: transforming the weights costs more than it saves";
  }
  if (kernels::numerics() != Numerics::fast) {
    return "transforms need Numerics::fast";
  }
  return nullptr;
}

template <class T>
void run_conv_winograd(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  if (problem.direction == ConvDirection::weight_grad) {
    run_weight_grad<T>(problem, arguments);
  } else {
    WinogradCorrelation<T>(problem, arguments).run();
  }
}

template <class T>
Index packed_elements_conv_winograd(const ConvProblem& problem) {
  const ConvArguments<T> nothing;
  return problem.direction == ConvDirection::weight_grad
             ? 0
             : WinogradCorrelation<T>(problem, nothing).packed_elements();
}

template <class T>
void pack_conv_winograd(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  WinogradCorrelation<T>(problem, arguments).pack(arguments.out);
}

#define FENESTRA_INSTANTIATE_CONV_WINOGRAD(T)                                    \
  template Index packed_elements_conv_winograd<T>(const ConvProblem&);           \
  template void pack_conv_winograd(const ConvProblem&, const ConvArguments<T>&); \
  template void run_conv_winograd(const ConvProblem&, const ConvArguments<T>&)

FENESTRA_INSTANTIATE_CONV_WINOGRAD(float);
FENESTRA_INSTANTIATE_CONV_WINOGRAD(double);
#undef FENESTRA_INSTANTIATE_CONV_WINOGRAD

}  // namespace fenestra::detail
