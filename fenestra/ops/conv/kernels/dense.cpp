// Forward and input gradient of the dense convolution: bands of target cells, strips of source
// rows, packed weights; see dense.hpp. What it leaves to others: dense_choice.cpp.
//
// As in the direct convolution (direct.cpp), all but the last two axes are unrolled into planes,
// and forward and input gradient are the same loops: target cells fall into phases that see the
// same taps, one phase forward and `stride` phases along each axis in the input gradient. Cell
// `place` of a phase sees, through a tap, a source cell that moves with the place. Every target
// cell is one chain of multiply-adds in the order of planes and taps, whatever the bands, blocks
// and threads. With channels last a plane holds all channels of a group: each of them is a tap.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/dense.hpp>
#include <fenestra/ops/conv/kernels/dense_axes.hpp>
#include <fenestra/ops/conv/kernels/dense_tiles.hpp>
#include <fenestra/ops/conv/kernels/direct_tiles.hpp>
#include <fenestra/ops/conv/kernels/samples.hpp>

#include <hwy/cache_control.h>

#include <algorithm>

namespace fenestra::detail {

namespace {

// Source rows of all planes, beside the weights of a block in a second-level cache. 512 @7 fits.
constexpr Index kDenseStripBytes = 512 * 1024;
// Where what the next band reads is asked for: both bands, beside weights and results.
constexpr Index kAheadBytes = 256 * 1024;
// A source of fewer bytes may lie in a cache near by: asking ahead takes longer than waiting.
constexpr Index kCachedBytes = 4 * 1024 * 1024;
// Cells whose sums in a block of channels are stored together: 16 KiB, in a first-level cache.
constexpr Index kStoredCells = 128;
// Planes a multiple of this apart share few sets of a cache: their rows are copied.
constexpr Index kAliasBytes = 2048;

template <class T>
class Dense {
 public:
  Dense(const ConvProblem& problem, const ConvArguments<T>& arguments)
      : g_(problem.geometry),
        arguments_(arguments),
        loops_(dense_loops<T>()),
        windows_(joined(g_)),
        axes_(windows_),
        transposed_(problem.direction == ConvDirection::input_grad),
        rows_(axes_.row, transposed_),
        columns_(axes_.column, transposed_),
        outer_taps_(axes_.outer_product(&WindowAxis::kernel)),
        inner_taps_(axes_.row.kernel * axes_.column.kernel),
        source_channels_(transposed_ ? g_.group_out() : g_.group_in()),
        target_channels_(transposed_ ? g_.group_in() : g_.group_out()),
        last_(g_.layout == Layout::channels_last),
        source_cell_(last_ ? g_.groups * source_channels_ : 1),
        target_cell_(last_ ? g_.groups * target_channels_ : 1),
        column_channels_(last_ ? source_channels_ : 1),
        source_outer_(axes_.outer_product(transposed_ ? &WindowAxis::out : &WindowAxis::in)),
        target_outer_(axes_.outer_product(transposed_ ? &WindowAxis::in : &WindowAxis::out)) {
    in_place_ = sees_source_only();
    asks_ahead_ =
        in_place_ && !last_ && inner_taps_ == 1 &&
        g_.batch * g_.groups * source_channels_ * plane_cells() * static_cast<Index>(sizeof(T)) >
            kCachedBytes;
    choose_band();
    take_tables();
    fill_tables();
  }

  Index packed_elements() const { return g_.groups * padded_channels() * products(); }

  /// Writes the weights as a run reads them.
  void pack_weights(T* packed) const {
    const Index blocks = this->blocks();
    const auto body = [&](Index begin, Index end) {
      kernels::ScratchFrame frame;
      Index* place = frame.take<Index>(inner_taps_);
      for (Index job = begin; job < end; ++job) {
        const Index group = job / blocks;
        const Index block = job % blocks;
        pack_block(group, block, place, packed + weights_of(group, block));
      }
    };
    spread(g_.groups * blocks, packed_elements() * 4, body);
  }

  void run() {
    const Index row_bands = ceil_of(rows_.places(), band_rows_);
    const Index column_bands = ceil_of(columns_.places(), band_columns_);
    const Index uses = g_.batch * target_outer_ * this->bands();
    const Index bands = uses * g_.groups;
    weights_ = arguments_.packed;
    // Weights that are used once are packed where they are used, block by block.
    kernels::ScratchFrame frame;
    if (weights_ == nullptr && uses > 1) {
      T* packed = frame.take<T>(packed_elements());
      pack_weights(packed);
      weights_ = packed;
    }
    // Where there are few bands, threads share their blocks of channels; each fills the strip.
    const Index blocks = this->blocks();
    const Index parts = last_ || bands >= 4 * threads() ? 1 : std::min<Index>(blocks, threads());
    const auto body = [&](Index begin, Index end) {
      for (Index job = begin; job < end; ++job) {
        Index rest = job / parts;
        Band band;
        const Index part = job % parts;
        band.block0 = part * blocks / parts;
        band.block1 = (part + 1) * blocks / parts;
        band.column = rest % column_bands * band_columns_;
        rest /= column_bands;
        band.row = rest % row_bands * band_rows_;
        rest /= row_bands;
        band.outer = rest % target_outer_;
        rest /= target_outer_;
        band.group = rest % g_.groups;
        band.sample = rest / g_.groups;
        run_band(band);
      }
    };
    spread(bands * parts, g_.multiply_adds(), body);
  }

 private:
  /// What one task computes: places of rows and columns, some blocks of channels.
  struct Band {
    Index sample = 0;
    Index group = 0;
    Index outer = 0;
    Index row = 0;
    Index column = 0;
    Index block0 = 0;
    Index block1 = 0;
  };
  /// Places of a band whose sums are stored together.
  struct Piece {
    Index row0 = 0;
    Index row1 = 0;
    Index column0 = 0;
    Index column1 = 0;
  };

  template <class Body>
  static void spread(Index n, Index work, const Body& body) {
    if (work < kSerialWork) {
      body(Index{0}, n);
    } else {
      fenestra::parallel_for(n, 1, body);
    }
  }

  /// With channels last the channels of a cell are one plane.
  Index planes() const { return source_channels_ / column_channels_ * outer_taps_; }
  /// Of a cell.
  Index products() const { return source_channels_ * outer_taps_ * inner_taps_; }
  Index block_width() const { return 2 * loops_.lanes; }
  Index blocks() const { return ceil_of(target_channels_, block_width()); }
  Index padded_channels() const { return round_up(target_channels_, loops_.lanes); }
  /// Channels of a block, with those that fill its last vector.
  Index width_of(Index block) const {
    return std::min(block_width(), padded_channels() - block * block_width());
  }
  Index plane_cells() const { return rows_.source * columns_.source; }
  Index phase_pitch(Index places) const {
    return round_up(places + Dealing{columns_.step}.place(columns_.reach), loops_.lanes);
  }
  /// What a band reads, with its padding.
  Index strip_elements(Index row_places, Index column_places) const {
    if (in_place_) {
      return planes() * (row_places * std::min(rows_.step, rows_.reach + 1) + rows_.reach) *
             columns_.seen(column_places) * column_channels_;
    }
    return planes() * rows_.seen(row_places) * strip_pitch(column_places);
  }
  /// A row of a strip. Cells are dealt into phases where they lie side by side; channels do in any
  /// case.
  Index strip_pitch(Index places) const {
    return last_ ? round_up(columns_.seen(places) * column_channels_, loops_.lanes)
                 : columns_.step * phase_pitch(places);
  }

  /// Whether rows need no padding and can be read where they lie.
  bool sees_source_only() const {
    if (axes_.outer_rank != 0 || !rows_.sees_source_only() || !columns_.sees_source_only()) {
      return false;
    }
    return last_ || ((columns_.step == 1 || (columns_.step == 2 && inner_taps_ == 1)) &&
                     plane_cells() * static_cast<Index>(sizeof(T)) % kAliasBytes != 0);
  }

  Index bands() const {
    return ceil_of(rows_.places(), band_rows_) * ceil_of(columns_.places(), band_columns_);
  }

  /// Whole rows where they fit, parts of rows otherwise, whole tiles wide.
  void choose_band() {
    const Index tile = loops_.cells[target_channels_ > loops_.lanes ? 1 : 0];
    // With channels last the results of all blocks, which are finished together.
    const Index results = last_ ? phases() * target_channels_ : 0;
    const auto fits = [&](Index row_places, Index column_places) {
      const Index elements =
          strip_elements(row_places, column_places) + row_places * column_places * results;
      return elements * static_cast<Index>(sizeof(T)) <=
             (asks_ahead_ ? kAheadBytes : kDenseStripBytes);
    };
    const Index columns = columns_.places();
    const auto cut_columns = [&](Index parts) {
      band_columns_ = std::min(round_up(ceil_of(columns, parts), tile), columns);
    };
    band_columns_ = columns;
    for (Index parts = 2; band_columns_ > tile && !fits(1, band_columns_); ++parts) {
      cut_columns(parts);
    }
    band_rows_ = 1;
    while (band_rows_ < rows_.places() && fits(band_rows_ + 1, band_columns_)) {
      ++band_rows_;
    }
    // Where threads would have nothing to do, bands are smaller.
    const Index samples = g_.batch * g_.groups * target_outer_ * (last_ ? 1 : blocks());
    const bool one_thread = threads() == 1 || g_.multiply_adds() < kSerialWork;
    const Index jobs = one_thread ? 1 : ceil_of(3 * threads(), std::max<Index>(samples, 1));
    Index row_bands = ceil_of(rows_.places(), band_rows_);
    if (bands() < jobs && rows_.places() > 1) {
      row_bands = std::min(jobs, rows_.places());
    } else if (bands() < jobs) {
      cut_columns(jobs);
    }
    band_rows_ = ceil_of(rows_.places(), row_bands);
    stored_columns_ = std::min(band_columns_, round_up(kStoredCells, tile));
    stored_rows_ = std::clamp<Index>(
        kStoredCells / (stored_columns_ * rows_.phases * columns_.phases), 1, band_rows_);
    phase_pitch_ = last_ ? strip_pitch(band_columns_) : phase_pitch(band_columns_);
    pitch_ = in_place_ ? columns_.source * source_cell_ : strip_pitch(band_columns_);
    column_step_ = in_place_ ? source_cell_ : column_channels_;
  }
  /// From cell to cell.
  Index cell_step() const { return last_ || in_place_ ? columns_.step * column_step_ : 1; }
  /// Where a strip, or the source, has the cell that many rows and columns behind the first.
  Index offset(Index down, Index right) const {
    const Index column = last_ || in_place_ ? right * column_step_
                                            : Dealing{columns_.step}.offset(right, phase_pitch_);
    return down * pitch_ + column;
  }

  Index phases() const { return rows_.phases * columns_.phases; }

  void take_tables() {
    phases_ = frame_.take<DensePhase>(phases() + 1);
    offsets_ = frame_.take<Index>(inner_taps_ * column_channels_);
    taps_ = frame_.take<Index>(inner_taps_);
  }

  void fill_tables() {
    Index used = 0;
    for (Index r = 0; r < rows_.phases; ++r) {
      for (Index c = 0; c < columns_.phases; ++c) {
        DensePhase& phase = phases_[r * columns_.phases + c];
        phase = {r, c, used, 0};
        for (Index tr = 0; tr < axes_.row.kernel; ++tr) {
          for (Index tc = 0; tc < axes_.column.kernel; ++tc) {
            const Index down = rows_.shift(r, tr);
            const Index right = columns_.shift(c, tc);
            if (down >= 0 && right >= 0) {
              for (Index i = 0; i < column_channels_; ++i) {
                offsets_[used * column_channels_ + i] = offset(down, right) + i;
              }
              taps_[used++] = tr * axes_.column.kernel + tc;
            }
          }
        }
        phase.taps = used - phase.begin;
      }
    }
    // Taps that no cell sees, as there are where the target is shorter than the stride, are packed
    // behind the others as if there were one more phase.
    phases_[phases()] = {0, 0, used, inner_taps_ - used};
    for (Index t = 0, next = used; next < inner_taps_; ++t) {
      if (std::find(taps_, taps_ + used, t) == taps_ + used) {
        taps_[next++] = t;
      }
    }
  }

  /// Weights lie as [group][block][phase][plane][tap][channel], with channels last [group][block]
  /// [phase][plane][tap][source channel][channel]: where those of a block begin.
  Index weights_of(Index group, Index block) const {
    return (group * padded_channels() + block * block_width()) * products();
  }
  /// Where those of a phase begin in a block.
  Index weights_of(const DensePhase& phase, Index width) const {
    return phase.begin * planes() * column_channels_ * width;
  }

  void pack_block(Index group, Index block, Index* place, T* packed) const {
    if (last_) {
      pack_last(group, block, packed);
    } else {
      pack_first(group, block, place, packed);
    }
  }

  /// From [tap][in][out].
  void pack_last(Index group, Index block, T* packed) const {
    const Index width = width_of(block);
    const Index channel = block * block_width();
    const Index tap_size = g_.group_in() * g_.out_channels;
    const T* w = arguments_.rhs + group * g_.group_out() +
                 channel * (transposed_ ? g_.out_channels : Index{1});
    DenseWeights<T> weights{.row_stride = transposed_ ? g_.out_channels : 1,
                            .column_stride = transposed_ ? 1 : g_.out_channels,
                            .rows = std::min(width, target_channels_ - channel),
                            .width = width,
                            .columns = source_channels_,
                            .dst = packed};
    for (Index p = 0; p <= phases(); ++p) {
      for (Index plane = 0; plane < outer_taps_; ++plane) {
        for (Index t = 0; t < phases_[p].taps; ++t) {
          const Index tap = plane * inner_taps_ + taps_[phases_[p].begin + t];
          weights.rows_data = w + tap * tap_size;
          loops_.pack_block(weights);
          weights.dst += source_channels_ * width;
        }
      }
    }
  }

  /// From [out][in][tap].
  void pack_first(Index group, Index block, Index* place, T* packed) const {
    const Index taps = outer_taps_ * inner_taps_;
    const Index width = width_of(block);
    const T* w = arguments_.rhs + group * g_.group_out() * g_.group_in() * taps;
    DenseWeights<T> weights{.row_stride = transposed_ ? taps : g_.group_in() * taps,
                            .rows = std::min(width, target_channels_ - block * block_width()),
                            .width = width,
                            .dst = packed};
    if (!transposed_) {
      weights.rows_data = w + block * block_width() * weights.row_stride;
      weights.columns = planes() * inner_taps_;
      loops_.pack_block(weights);
      return;
    }
    weights.columns = inner_taps_;
    weights.place = place;
    for (Index p = 0; p <= phases(); ++p) {
      const DensePhase& phase = phases_[p];
      for (Index t = 0; t < phase.taps; ++t) {
        place[taps_[phase.begin + t]] = weights_of(phase, width) + t * width;
      }
    }
    for (Index plane = 0; plane < planes(); ++plane) {
      const Index channel = plane / outer_taps_;
      const Index outer = plane % outer_taps_;
      weights.rows_data =
          w + (channel * g_.group_in() + block * block_width()) * taps + outer * inner_taps_;
      loops_.pack_block(weights);
      for (Index p = 0; p <= phases(); ++p) {
        for (Index t = 0; t < phases_[p].taps; ++t) {
          place[taps_[phases_[p].begin + t]] += phases_[p].taps * width;
        }
      }
    }
  }

  void run_band(const Band& band) const {
    const Index row_end = std::min(band.row + band_rows_, rows_.places());
    const Index column_end = std::min(band.column + band_columns_, columns_.places());
    PlaneList<T> list;
    T* strip = nullptr;
    T* weights = nullptr;
    Index* place = nullptr;
    kernels::ScratchFrame frame;
    // The transposes read whole vectors of cells.
    const Index sums_cells =
        stored_rows_ * rows_.phases * stored_columns_ * columns_.phases + loops_.lanes;
    T* sums = frame.take<T>(last_ ? 0 : sums_cells * block_width());
    if (!in_place_) {
      list.take(frame, planes());
      strip = frame.take<T>(strip_elements(band_rows_, band_columns_));
    }
    if (weights_ == nullptr) {
      weights = frame.take<T>(block_width() * products());
      place = frame.take<Index>(inner_taps_);
    }
    const Index channel_stride = last_ ? 1 : source_outer_ * plane_cells();
    const T* source = arguments_.lhs +
                      band.sample * g_.groups * source_channels_ * source_outer_ * plane_cells() +
                      band.group * source_channels_ * channel_stride;
    const Index first_row = rows_.first_of(band.row);
    const Index first_column = columns_.first_of(band.column);
    DenseRow<T> row{.step = cell_step()};
    if (in_place_) {
      row.source = source + (first_row * columns_.source + first_column) * source_cell_;
      row.planes = planes();
      row.plane_pitch = channel_stride;
      row.side_by_side = last_ && inner_taps_ == 1 && row.step == source_channels_;
    } else {
      list.fill(axes_,
                transposed_,
                band.outer,
                source,
                source_channels_ / column_channels_,
                channel_stride,
                plane_cells() * source_cell_);
      const Index strip_rows = rows_.seen(row_end - band.row);
      direct_loops<T>().fill_strip({.plane = list.data,
                                    .planes = list.count,
                                    .source_rows = rows_.source,
                                    .source_width = columns_.source,
                                    .first_row = first_row,
                                    .rows = strip_rows,
                                    .first_column = first_column,
                                    .stride = last_ ? 1 : columns_.step,
                                    .phase_pitch = phase_pitch_,
                                    .channels = column_channels_,
                                    .column_step = source_cell_,
                                    .dst = strip});
      row.source = strip;
      row.planes = list.count;
      row.plane_pitch = strip_rows * pitch_;
      row.weight_plane = axes_.outer_rank == 0 ? nullptr : list.weight_plane;
    }
    const T* first = row.source;
    const T* next = first + (column_end - band.column) * row.step;
    const Index ahead =
        asks_ahead_ ? std::min(band_columns_, columns_.places() - column_end) * row.step : 0;
    const Index blocks = band.block1 - band.block0;
    for (Index block = band.block0; block < band.block1; ++block) {
      ask_ahead(row,
                next,
                ahead,
                (block - band.block0) * row.planes / blocks,
                (block - band.block0 + 1) * row.planes / blocks);
      if (weights_ == nullptr) {
        pack_block(band.group, block, place, weights);
      }
      const T* block_weights =
          weights_ == nullptr ? weights : weights_ + weights_of(band.group, block);
      for (Index r = band.row; r < row_end; r += stored_rows_) {
        for (Index c = band.column; c < column_end; c += stored_columns_) {
          row.source = first + (r - band.row) * rows_.step * pitch_ + (c - band.column) * row.step;
          const Piece piece{
              r, std::min(r + stored_rows_, row_end), c, std::min(c + stored_columns_, column_end)};
          run_piece(band, block, piece, block_weights, row, sums);
        }
      }
    }
    if (last_ && arguments_.finish != nullptr) {
      finish_last(band, row_end, column_end);
    }
  }

  /// Asks for `count` elements of planes [begin, end) from `next` on. A tile reads a few cells of
  /// planes that lie pages apart, which no prefetcher takes for streams; plane by plane they are.
  static void ask_ahead(
      const DenseRow<T>& row, const T* next, Index count, Index begin, Index end) {
    for (Index plane = begin; plane < end; ++plane) {
      for (Index i = 0; i < count; i += 64 / static_cast<Index>(sizeof(T))) {
        hwy::Prefetch(next + plane * row.plane_pitch + i);
      }
    }
  }

  /// What follows a forward convolution, in the longest runs that a band has.
  void finish_last(const Band& band, Index row_end, Index column_end) const {
    for (Index r = band.row; r < row_end; ++r) {
      T* out = target_of(band, r, band.column, band.group * target_channels_);
      const Index columns = column_end - band.column;
      const Index runs = g_.groups == 1 ? 1 : columns;
      for (Index i = 0; i < runs; ++i) {
        arguments_.finish->run(out + i * target_cell_, columns / runs * target_channels_);
      }
    }
  }

  /// Where a cell lies in the target.
  T* target_of(const Band& band, Index row, Index column, Index channel) const {
    const Index plane = rows_.target * columns_.target;
    const Index sample = g_.groups * target_channels_ * target_outer_ * plane;
    return arguments_.out + band.sample * sample +
           channel * (last_ ? Index{1} : target_outer_ * plane) +
           (band.outer * plane + row * columns_.target + column) * target_cell_;
  }

  /// Part of a band in one block of channels.
  void run_piece(const Band& band,
                 Index block,
                 const Piece& piece,
                 const T* weights,
                 DenseRow<T> row,
                 T* sums) const {
    const Index width = width_of(block);
    // Cells as they lie in the target.
    const IndexRange target_rows = rows_.outputs({piece.row0, piece.row1});
    const IndexRange target_columns = columns_.outputs({piece.column0, piece.column1});
    const Index rows = target_rows.count();
    const Index columns = target_columns.count();
    const Index channel = band.group * target_channels_ + block * block_width();
    const Index channels = std::min(width, target_channels_ - block * block_width());
    const T* bias = arguments_.bias != nullptr ? arguments_.bias + channel : nullptr;
    T* out = target_of(band, target_rows.begin, target_columns.begin, channel);
    // With channels last sums are stored where they belong.
    T* to = last_ ? out : sums;
    const Index cell = last_ ? target_cell_ : width;
    const Index line = (last_ ? columns_.target : columns) * cell;
    row.vectors = width / loops_.lanes;
    row.channels = last_ ? channels : width;
    row.bias = last_ ? bias : nullptr;
    row.sums_step = columns_.phases * cell;
    const T* source = row.source;
    for (Index i = 0; i < phases(); ++i) {
      const DensePhase& phase = phases_[i];
      row.weights = weights + weights_of(phase, width);
      row.taps = phase.taps * column_channels_;
      row.offset = offsets_ + phase.begin * column_channels_;
      row.cells = columns_.places(phase.column, piece.column0, piece.column1);
      const Index places = rows_.places(phase.row, piece.row0, piece.row1);
      for (Index r = 0; r < places; ++r) {
        row.source = source + r * rows_.step * pitch_;
        row.sums = to + (r * rows_.phases + phase.row) * line + phase.column * cell;
        loops_.add_row(row);
      }
    }
    if (last_) {
      return;
    }
    const bool whole_rows = columns == columns_.target;
    DenseRun<T> run{.sums = sums,
                    .width = width,
                    .cells = whole_rows ? rows * columns : columns,
                    .channels = channels,
                    .bias = bias,
                    .out = out,
                    .channel_stride = target_outer_ * rows_.target * columns_.target};
    for (Index r = 0; r < (whole_rows ? 1 : rows); ++r) {
      loops_.store_run(run);
      if (arguments_.finish != nullptr) {
        for (Index c = 0; c < run.channels; ++c) {
          arguments_.finish->run(run.out + c * run.channel_stride, run.cells);
        }
      }
      run.sums += columns * width;
      run.out += columns_.target;
    }
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const DenseLoops<T>& loops_;
  kernels::ScratchFrame frame_;
  Windows windows_;
  Axes axes_;
  bool transposed_;
  TargetAxis rows_;
  TargetAxis columns_;
  Index outer_taps_;
  Index inner_taps_;
  Index source_channels_;  // of a group
  Index target_channels_;
  bool last_;
  Index source_cell_;  // elements from cell to cell
  Index target_cell_;
  Index column_channels_;  // of a column of a plane
  Index source_outer_;
  Index target_outer_;
  bool in_place_ = false;
  bool asks_ahead_ = false;
  Index band_rows_ = 1;  // in places, as all of a band
  Index band_columns_ = 1;
  Index stored_rows_ = 1;
  Index stored_columns_ = 1;
  Index phase_pitch_ = 0;
  Index pitch_ = 0;
  Index column_step_ = 1;
  DensePhase* phases_ = nullptr;
  Index* offsets_ = nullptr;
  Index* taps_ = nullptr;
  const T* weights_ = nullptr;
};

}  // namespace

template <class T>
Index packed_elements_conv_dense(const ConvProblem& problem) {
  const ConvArguments<T> none;
  return Dense<T>(problem, none).packed_elements();
}

template <class T>
void pack_conv_dense(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  Dense<T>(problem, arguments).pack_weights(arguments.out);
}

template <class T>
void run_conv_dense(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  const Index done = run_samples(problem, arguments, BiasPlace::behind_products);
  if (done < problem.geometry.batch) {
    const RestOfSamples<T> rest(problem, arguments, done);
    Dense<T>(rest.problem, rest.arguments).run();
  }
}

#define FENESTRA_INSTANTIATE_CONV_DENSE(T)                                    \
  template Index packed_elements_conv_dense<T>(const ConvProblem&);           \
  template void pack_conv_dense(const ConvProblem&, const ConvArguments<T>&); \
  template void run_conv_dense(const ConvProblem&, const ConvArguments<T>&)

FENESTRA_INSTANTIATE_CONV_DENSE(float);
FENESTRA_INSTANTIATE_CONV_DENSE(double);
#undef FENESTRA_INSTANTIATE_CONV_DENSE

}  // namespace fenestra::detail
