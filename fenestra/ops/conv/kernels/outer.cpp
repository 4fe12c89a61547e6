// The weight gradient by outer products: which cells, places and panels; see outer.hpp. What it
// leaves to others: outer_choice.cpp.
//
// A cell of y adds to every weight the product of a number of y_bar and a number of x. Lanes are
// output channels: y_bar is packed as [panel of channels][cell][channel], and a number of x is
// broadcast from where it lies, so that strides cost nothing and neighbouring taps are neighbours.
// Sums begin anew with each chunk of cells and are then added to those of the chunks before, in the
// order of samples and cells; where there are few weights also with each part, a run of chunks that
// is a task of its own. Chunks and parts follow from the shapes alone.
#include <fenestra/base/checked.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/ops/conv/kernels/direct_axes.hpp>
#include <fenestra/ops/conv/kernels/outer.hpp>
#include <fenestra/ops/conv/kernels/outer_tiles.hpp>

#include <algorithm>

namespace fenestra::detail {

namespace {

// Bytes of y_bar and of x that are packed at a time: beside the sums of a task they share a
// second-level cache of 2 MiB, and each alone fits one of 1 MiB.
constexpr Index kPartBytes = 768 * 1024;
// A chunk of a panel of y_bar stays in a first-level cache of 32 KiB while all places pass by.
constexpr Index kChunkBytes = 24 * 1024;
// Places whose sums are finished at a time: they stay in the second-level cache, and runs of w_bar
// are lines long.
constexpr Index kBlockPlaces = 256;
// Pointers times panels below which threads take cells, not weights: tiles would be cut short, and
// tasks too few to be balanced. The sums of all weights must be cheap to keep and to add.
constexpr Index kFewTasks = 24;
constexpr Index kFewSumsBytes = 48 * 1024;
// Bytes of y_bar in a part of such a problem: many parts even of small images, each in the
// second-level cache of its thread from the packing to the last sum.
constexpr Index kSmallPartBytes = 96 * 1024;
// Such parts whose sums are kept at a time, 1.5 MiB at most.
constexpr Index kRoundParts = 32;
// Vectors of sums that a task adds up over the parts.
constexpr Index kPieceVectors = 256;
// Multiply-adds of one group that are worth waking threads for its own sake.
constexpr Index kGroupWork = 1'000'000;

template <class T>
class OuterWeightGrad {
 public:
  OuterWeightGrad(const ConvGeometry& g, const ConvArguments<T>& arguments, Index group)
      : g_(g),
        arguments_(arguments),
        loops_(outer_loops<T>()),
        group_(group),
        last_(g.layout == Layout::channels_last),
        inner_(g.windows[g.rank() - 1]),
        unit_(last_ ? g.group_in() : 1),
        planes_(g.group_in() / unit_),
        row_cells_(g.windows.out_cells() / g.windows[0].out) {
    const bool dense = inner_.dilation == 1 || inner_.kernel == 1;
    outer_taps_ = g.windows.taps() / (dense ? inner_.kernel : 1);
    neighbours_ = (dense ? inner_.kernel : 1) * unit_;
    groups_ = planes_ * outer_taps_;
    rest_ = channels_apart();
    width_ = round_up(g.group_out() - rest_, loops_.lanes);
    // With few neighbours pointers are short of registers: wider panels need fewer of them.
    panel_vectors_ = neighbours_ == 1 && width_ >= 4 * loops_.lanes ? 4 : 2;
    copies_ = last_ && g.groups > 1;
    few_sums_ = sums_size() * kBytes <= kFewSumsBytes && panels() * groups_ < kFewTasks;
    for (int axis = 0; axis < g.rank(); ++axis) {
      copies_ = copies_ || g.windows[axis].inner_windows().count() < g.windows[axis].out;
    }
    cut_parts();
    place_source();
  }

  void run() {
    if (few_sums_ && parts() > 1) {
      run_parts();
    } else {
      run_places();
    }
  }

 private:
  /// Parts in order, the threads share the places of each.
  void run_places() {
    const Index parts = this->parts();
    kernels::ScratchFrame frame;
    take_part(frame);
    sums_ = frame.take<T>(parts > 1 ? sums_size() : 0);
    point();
    // One task has some groups of a panel; fewer of them where there are more threads.
    const Index least = ceil_of(groups_, std::max<Index>(kBlockPlaces / neighbours_, 1));
    const Index tasks = threads() == 1 ? 1 : ceil_of(4 * threads(), panels());
    const Index cuts = std::max(least, std::min(tasks, groups_));
    for (Index i = 0; i < parts; ++i) {
      pack_part(i);
      spread(all_panels() * cuts, [&](Index job) {
        const Index cut = job % cuts;
        const GroupRange range{panel(job / cuts), cut * groups_ / cuts, (cut + 1) * groups_ / cuts};
        kernels::ScratchFrame task;
        const Sums sums = parts > 1 ? kept_sums(range) : own_sums(range, task);
        add_groups(range, i == 0, sums);
        if (i + 1 == parts) {
          store(range, sums);
        }
      });
    }
  }

  /// Parts are tasks, with sums of their own that are added in the order of parts.
  void run_parts() {
    const Index parts = this->parts();
    const Index kept = std::min(parts, kRoundParts);
    const Index size = sums_size();
    kernels::ScratchFrame frame;
    sums_ = frame.take<T>(size);
    T* part_sums = frame.take<T>(kept * size);
    for (Index round = 0; round < parts; round += kept) {
      const Index count = std::min(kept, parts - round);
      spread(count, [&](Index i) {
        OuterWeightGrad part = *this;
        kernels::ScratchFrame task;
        part.take_part(task);
        part.point();
        part.pack_part(round + i);
        part.sums_ = part_sums + i * size;
        for (Index number = 0; number < all_panels(); ++number) {
          const GroupRange range{panel(number), 0, groups_};
          part.add_groups(range, true, part.kept_sums(range));
        }
      });
      const Index vectors = size / loops_.lanes;
      const Index pieces = ceil_of(vectors, kPieceVectors);
      spread(pieces, [&](Index piece) {
        const Index begin = piece * vectors / pieces * loops_.lanes;
        const Index end = (piece + 1) * vectors / pieces * loops_.lanes;
        loops_.add_sums(part_sums + begin, size, count, round > 0, end - begin, sums_ + begin);
      });
    }
    for (Index number = 0; number < all_panels(); ++number) {
      const GroupRange range{panel(number), 0, groups_};
      store(range, kept_sums(range));
    }
  }

  Index row_parts() const { return ceil_of(g_.windows[0].out, most_rows_); }
  Index parts() const { return ceil_of(g_.batch, most_samples_) * row_parts(); }

  /// What a part needs.
  void take_part(kernels::ScratchFrame& frame) {
    x_ = frame.take<const T*>(groups_);
    run_ = frame.take<OuterRun>(most_runs());
    chunk_ = frame.take<Index>(most_chunks() + 1);
    y_ = frame.take<T>(most_cells() * (width_ + rest_));
    copy_ = frame.take<T>(copies_ ? most_samples_ * sample_pitch_ : 0);
  }

  /// Brings y_bar and x of a part into order.
  void pack_part(Index number) {
    const Index row_parts = this->row_parts();
    const Index sample_parts = ceil_of(g_.batch, most_samples_);
    const Index n = number / row_parts;
    const Index o = number % row_parts;
    n0_ = n * g_.batch / sample_parts;
    samples_ = (n + 1) * g_.batch / sample_parts - n0_;
    o0_ = o * g_.windows[0].out / row_parts;
    rows_ = (o + 1) * g_.windows[0].out / row_parts - o0_;
    list_runs();
    spread_bands(all_panels(), rows_, [&](Index unit, Index sample, Index begin, Index end) {
      pack_y(unit, sample, begin, end);
    });
    if (copies_) {
      spread_bands(
          planes_, extent(0, rows_), [&](Index plane, Index sample, Index begin, Index end) {
            copy_x(plane, sample, begin, end);
          });
    }
  }

  Index places() const { return groups_ * neighbours_; }
  /// Of all channels, in whole vectors.
  Index sums_size() const { return round_up(places() * (width_ + rest_), loops_.lanes); }

  /// Output channels that would leave most of a vector empty. They take vectors along what lies
  /// side by side: the channels of a cell and its neighbours, or the cells of a row. Short vectors
  /// and few registers gain too little: 33 @28 on AVX2 takes 1010 so, 730 with a padded vector.
  Index channels_apart() const {
    const Index rest = g_.group_out() % loops_.lanes;
    const Index most = std::min(kOuterRest, loops_.lanes / 4);
    const bool side_by_side =
        last_ ? 2 * neighbours_ >= loops_.lanes : inner_.stride == 1 && inner_.out >= loops_.lanes;
    const bool pays = loops_.most_places(2) >= 12 && side_by_side;
    return rest <= most && rest < g_.group_out() && pays ? rest : 0;
  }
  Index most_cells() const { return most_samples_ * most_rows_ * row_cells_; }
  static constexpr Index kBytes = static_cast<Index>(sizeof(T));
  Index chunk_cells() const { return kChunkBytes / (panel_vectors_ * loops_.lanes * kBytes); }
  Index most_chunks() const { return ceil_of(most_cells(), chunk_cells()); }
  /// Rows of cells, and one cut for each chunk.
  Index most_runs() const {
    const Index row = g_.rank() == 1 ? most_rows_ : inner_.out;
    return most_cells() / row + most_chunks();
  }

  /// Panels have `panel_vectors_` vectors; what is left goes in powers of two.
  Index panels() const {
    const Index vectors = width_ / loops_.lanes;
    const Index rest = vectors % panel_vectors_;
    return vectors / panel_vectors_ + rest / 2 + rest % 2;
  }
  Index all_panels() const { return panels() + (rest_ > 0 ? 1 : 0); }
  /// Without vectors: the channels apart.
  struct Panel {
    Index begin = 0;  ///< its first channel in the group
    Index vectors = 0;
  };
  Panel panel(Index number) const {
    if (number == panels()) {
      return {width_, 0};
    }
    const Index vectors = width_ / loops_.lanes;
    const Index whole = vectors / panel_vectors_;
    if (number < whole) {
      return {number * panel_vectors_ * loops_.lanes, panel_vectors_};
    }
    const Index rest = vectors % panel_vectors_;
    const Index first = whole * panel_vectors_;
    if (rest >= 2 && number == whole) {
      return {first * loops_.lanes, 2};
    }
    return {(first + rest / 2 * 2) * loops_.lanes, 1};
  }

  /// What one task has of the sums.
  struct GroupRange {
    Panel panel;
    Index begin = 0;
    Index end = 0;
  };
  /// Those of a place side by side; of channels apart, those of a channel, `pitch` from the next.
  struct Sums {
    T* first = nullptr;
    Index pitch = 0;
  };
  /// Where these are kept, if other parts are added to them.
  Sums kept_sums(const GroupRange& range) const {
    const auto [begin, vectors] = range.panel;
    const Index width = vectors > 0 ? vectors * loops_.lanes : 1;
    return {sums_ + begin * places() + range.begin * neighbours_ * width, places()};
  }
  /// In scratch of a task that finishes them.
  Sums own_sums(const GroupRange& range, kernels::ScratchFrame& frame) const {
    const Index vectors = range.panel.vectors;
    const Index channels = vectors > 0 ? vectors * loops_.lanes : rest_;
    const Index count = (range.end - range.begin) * neighbours_;
    return {frame.take<T>(count * channels), count};
  }

  /// Calls f(job) for every job, in ranges over the threads where that pays.
  template <class F>
  void spread(Index jobs, const F& f) const {
    const auto body = [&](Index begin, Index end) {
      for (Index job = begin; job < end; ++job) {
        f(job);
      }
    };
    if (g_.multiply_adds() / g_.groups < kSerialWork) {
      body(0, jobs);
    } else {
      fenestra::parallel_for(jobs, 1, body);
    }
  }

  /// Calls f(unit, sample, begin, end) for every unit of every sample of the part, in bands of
  /// `rows` where these are fewer than would keep the threads busy.
  template <class F>
  void spread_bands(Index units, Index rows, const F& f) const {
    const Index jobs = units * samples_;
    const Index bands = threads() == 1 ? 1 : std::min(ceil_of(2 * threads(), jobs), rows);
    spread(jobs * bands, [&](Index job) {
      const Index band = job % bands;
      const Index whole = job / bands;
      f(whole / samples_, whole % samples_, band * rows / bands, (band + 1) * rows / bands);
    });
  }

  /// Cells that so many windows of an axis see, with the gaps between them.
  Index extent(int axis, Index windows) const { return g_.windows[axis].spanned(windows); }

  void cut_parts() {
    const WindowAxis& a = g_.windows[0];
    Index x_row = planes_ * unit_;
    for (int axis = 1; axis < g_.rank(); ++axis) {
      x_row *= extent(axis, g_.windows[axis].out);
    }
    const Index y_row = row_cells_ * width_;
    const Index most = kPartBytes / kBytes;
    const Index most_y = few_sums_ ? kSmallPartBytes / kBytes : most;
    // Rows of x that two parts see are copied twice: at most one in five.
    const Index worth = 4 * a.shared() / a.stride;
    const Index wanted = std::min(std::max(most_y / y_row, worth), most / y_row);
    most_rows_ = std::clamp<Index>(wanted, 1, a.out);
    if (copies_) {
      most_rows_ = std::clamp<Index>(a.windows_within(most / x_row), 1, most_rows_);
    }
    most_samples_ = 1;
    if (most_rows_ == a.out) {
      most_samples_ = std::clamp<Index>(most_y / (a.out * y_row), 1, g_.batch);
      if (copies_) {
        const Index fit = most / (extent(0, a.out) * x_row);
        most_samples_ = std::clamp<Index>(fit, 1, most_samples_);
      }
    }
  }

  /// Numbers from a cell of x to the next along each axis, from a channel and a sample to the next.
  void place_source() {
    Index pitch = last_ && !copies_ ? g_.in_channels : unit_;
    for (int axis = g_.rank() - 1; axis >= 0; --axis) {
      const WindowAxis& a = g_.windows[axis];
      pitch_[axis] = pitch;
      pitch *= copies_ ? extent(axis, axis == 0 ? most_rows_ : a.out) : a.in;
    }
    plane_pitch_ = pitch;
    sample_pitch_ = copies_ ? planes_ * pitch : g_.in_channels * g_.windows.in_cells();
  }

  /// Where each group of places begins.
  void point() {
    const T* source = copy_;
    if (!copies_) {
      source = arguments_.lhs + group_ * g_.group_in() * (last_ ? 1 : plane_pitch_);
      for (int axis = 0; axis < g_.rank(); ++axis) {
        source += g_.windows[axis].window(0).first * pitch_[axis];
      }
    }
    Windows outer = g_.windows;
    if (outer_taps_ < outer.taps()) {
      outer.axes[g_.rank() - 1].kernel = 1;
    }
    for (Index i = 0; i < groups_; ++i) {
      x_[i] =
          source + i / outer_taps_ * plane_pitch_ + tap_distance(outer, i % outer_taps_, pitch_);
    }
  }

  /// The cells of the part, as runs that follow one another in x, cut into chunks.
  void list_runs() {
    const Index row = g_.rank() == 1 ? rows_ : inner_.out;
    const Index step = cell_step();
    const Index cells = samples_ * rows_ * row_cells_;
    const Index chunks = ceil_of(cells, chunk_cells());
    OuterRun* end = run_;
    chunks_ = 0;
    chunk_[0] = 0;
    for (Index cell = 0; cell < cells;) {
      const Index chunk_end = (chunks_ + 1) * cells / chunks;
      const Index count = std::min(row - cell % row, chunk_end - cell);
      const Index x = cell_offset(cell);
      if (end > run_ + chunk_[chunks_] && end[-1].x + end[-1].cells * step == x) {
        end[-1].cells += count;
      } else {
        *end++ = {x, cell, count};
      }
      cell += count;
      if (cell == chunk_end) {
        chunk_[++chunks_] = end - run_;
      }
    }
  }

  Index cell_step() const { return inner_.stride * pitch_[g_.rank() - 1]; }

  /// Where a cell of the part sees x; a copy of x begins with the part.
  Index cell_offset(Index cell) const {
    const Index cells = rows_ * row_cells_;
    const Index sample = cell / cells + (copies_ ? 0 : n0_);
    const Index window = cell % cells + (copies_ ? 0 : o0_ * row_cells_);
    return window_distance(g_.windows, window, pitch_) + sample * sample_pitch_;
  }

  Index part_cells() const { return samples_ * rows_ * row_cells_; }

  /// The channels of one panel in some rows of one sample; lanes without a channel are zeros.
  void pack_y(Index number, Index sample, Index row, Index row_end) const {
    const auto [begin, vectors] = panel(number);
    const Index width = vectors * loops_.lanes;
    const Index count = std::min(width, g_.group_out() - begin);
    const Index cells = (row_end - row) * row_cells_;
    const Index first = (o0_ + row) * row_cells_;
    const Index all = g_.windows.out_cells();
    T* dst = y_ + begin * part_cells();
    const T* src = arguments_.rhs + (n0_ + sample) * g_.out_channels * all;
    const Index channel = group_ * g_.group_out() + begin;
    const Index cell = (sample * rows_ + row) * row_cells_;
    if (vectors == 0) {
      for (Index c = 0; c < rest_; ++c) {
        pack_channel(src, channel + c, first, cells, dst + c * part_cells() + cell);
      }
      return;
    }
    dst += cell * width;
    if (count < width) {
      std::fill_n(dst, cells * width, T(0));
    }
    if (!last_) {
      kernels::transpose(src + channel * all + first, all, count, cells, dst, width);
      return;
    }
    src += first * g_.out_channels + channel;
    if (count == width) {
      const kernels::StridedOperand<T> rows{src, 1, g_.out_channels};
      kernels::pack_strided(rows, {0, width, 0, cells}, width, dst);
      return;
    }
    for (Index i = 0; i < cells; ++i) {
      std::copy_n(src + i * g_.out_channels, count, dst + i * width);
    }
  }

  /// Cells of one channel of a sample, side by side.
  void pack_channel(const T* sample, Index channel, Index first, Index cells, T* dst) const {
    if (!last_) {
      std::copy_n(sample + channel * g_.windows.out_cells() + first, cells, dst);
      return;
    }
    for (Index i = 0; i < cells; ++i) {
      dst[i] = sample[(first + i) * g_.out_channels + channel];
    }
  }

  /// One plane of x in one sample, with its padding.
  void copy_x(Index plane, Index sample, Index begin, Index end) const {
    const Index in_cells = g_.windows.in_cells();
    const T* x = arguments_.lhs + (n0_ + sample) * g_.in_channels * in_cells +
                 (group_ * g_.group_in() + plane) * (last_ ? 1 : in_cells);
    copy_axis(0, x, begin, end, copy_ + sample * sample_pitch_ + plane * plane_pitch_);
  }

  /// Cells [begin, end) of the copy along `axis`, all of them along those behind it; `x` is the
  /// cell 0 of x there.
  void copy_axis(int axis, const T* x, Index begin, Index end, T* dst) const {
    const WindowAxis& a = g_.windows[axis];
    const Index first = a.window(axis == 0 ? o0_ : 0).first;
    const TapRange real = taps_within({first + begin, 1, end - begin}, 0, a.in);
    const Index low = begin + real.begin;
    const Index high = begin + real.end;
    Index x_pitch = last_ ? g_.in_channels : 1;
    for (int inner = axis + 1; inner < g_.rank(); ++inner) {
      x_pitch *= g_.windows[inner].in;
    }
    const T* from = x + (first + low) * x_pitch;
    std::fill_n(dst + begin * pitch_[axis], (low - begin) * pitch_[axis], T(0));
    if (axis + 1 < g_.rank()) {
      for (Index cell = low; cell < high; ++cell, from += x_pitch) {
        const Index inner = extent(axis + 1, g_.windows[axis + 1].out);
        copy_axis(axis + 1, from, 0, inner, dst + cell * pitch_[axis]);
      }
    } else if (x_pitch == unit_) {
      std::copy_n(from, (high - low) * unit_, dst + low * unit_);
    } else {
      for (Index cell = low; cell < high; ++cell, from += x_pitch) {
        std::copy_n(from, unit_, dst + cell * unit_);
      }
    }
    std::fill_n(dst + high * pitch_[axis], (end - high) * pitch_[axis], T(0));
  }

  /// Adds the part to some sums.
  void add_groups(const GroupRange& range, bool first, const Sums& sums) const {
    const auto [begin, vectors] = range.panel;
    if (vectors == 0) {
      add_apart(range, first, sums);
      return;
    }
    const Index count = range.end - range.begin;
    const Index width = vectors * loops_.lanes;
    const Index most = loops_.most_places(vectors);
    const Index pieces = ceil_of(neighbours_, most);
    OuterTile<T> tile;
    tile.step = cell_step();
    tile.y = y_ + begin * part_cells();
    tile.vectors = vectors;
    tile.group_pitch = neighbours_ * width;
    for (Index chunk = 0; chunk < chunks_; ++chunk) {
      tile.run = run_ + chunk_[chunk];
      tile.runs = chunk_[chunk + 1] - chunk_[chunk];
      tile.accumulate = !first || chunk > 0;
      for (Index piece = 0; piece < pieces; ++piece) {
        const Index place = piece * neighbours_ / pieces;
        tile.places = (piece + 1) * neighbours_ / pieces - place;
        const Index tiles = ceil_of(count, std::min(most / tile.places, kOuterGroups));
        for (Index i = 0; i < tiles; ++i) {
          const Index g0 = i * count / tiles;
          const T* x[kOuterGroups];
          tile.groups = (i + 1) * count / tiles - g0;
          for (Index j = 0; j < tile.groups; ++j) {
            x[j] = x_[range.begin + g0 + j] + place;
          }
          tile.x = x;
          tile.sums = sums.first + (g0 * neighbours_ + place) * width;
          loops_.add_tile(tile);
        }
      }
    }
  }

  /// The same for the channels apart.
  void add_apart(const GroupRange& range, bool first, const Sums& sums) const {
    OuterRest<T> rest{.x = x_ + range.begin,
                      .step = cell_step(),
                      .y = y_ + range.panel.begin * part_cells(),
                      .y_pitch = part_cells(),
                      .channels = rest_,
                      .groups = range.end - range.begin,
                      .neighbours = neighbours_,
                      .sums = sums.first,
                      .sums_pitch = sums.pitch};
    for (Index chunk = 0; chunk < chunks_; ++chunk) {
      rest.run = run_ + chunk_[chunk];
      rest.runs = chunk_[chunk + 1] - chunk_[chunk];
      rest.accumulate = !first || chunk > 0;
      last_ ? loops_.add_rest_places(rest) : loops_.add_rest_cells(rest);
    }
  }

  void store(const GroupRange& range, const Sums& from) const {
    const auto [begin, vectors] = range.panel;
    const T* sums = from.first;
    const Index width = vectors * loops_.lanes;
    const Index count = std::min(width, g_.group_out() - begin);
    const Index channel = group_ * g_.group_out() + begin;
    const Index first = range.begin * neighbours_;
    const Index end = range.end * neighbours_;
    if (vectors == 0) {
      for (Index c = 0; c < rest_; ++c) {
        for (Index place = first; place < end; ++place) {
          arguments_.out[last_ ? place * g_.out_channels + channel + c
                               : (channel + c) * places() + place] =
              sums[c * from.pitch + place - first];
        }
      }
      return;
    }
    if (!last_) {
      kernels::transpose(
          sums, width, end - first, count, arguments_.out + channel * places() + first, places());
      return;
    }
    for (Index place = first; place < end; ++place, sums += width) {
      std::copy_n(sums, count, arguments_.out + place * g_.out_channels + channel);
    }
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  const OuterLoops<T>& loops_;
  Index group_;
  bool last_;
  const WindowAxis& inner_;
  Index unit_;        // channels that lie side by side in a cell of x
  Index planes_;      // channels that do not
  Index row_cells_;   // cells of y for each window along axis 0
  Index outer_taps_;  // taps of a plane whose numbers are not neighbours
  Index neighbours_;  // places of a group
  Index groups_;
  Index rest_;   // output channels apart, the last ones
  Index width_;  // the others, rounded up to vectors
  Index panel_vectors_;
  bool copies_ = false;
  bool few_sums_ = false;
  Index most_rows_ = 1;
  Index most_samples_ = 1;
  Index pitch_[kMaxSpatialRank] = {};
  Index plane_pitch_ = 0;
  Index sample_pitch_ = 0;
  // The part at hand: samples from n0_ on, windows of axis 0 from o0_ on.
  Index n0_ = 0;
  Index samples_ = 0;
  Index o0_ = 0;
  Index rows_ = 0;
  Index chunks_ = 0;
  const T** x_ = nullptr;
  OuterRun* run_ = nullptr;
  Index* chunk_ = nullptr;
  T* y_ = nullptr;
  T* sums_ = nullptr;
  T* copy_ = nullptr;
};

}  // namespace

template <class T>
void run_conv_outer(const ConvProblem& problem, const ConvArguments<T>& arguments) {
  const ConvGeometry& g = problem.geometry;
  const auto run = [&](Index begin, Index end) {
    for (Index group = begin; group < end; ++group) {
      OuterWeightGrad<T>(g, arguments, group).run();
    }
  };
  // Many small groups are spread over the threads; within few large ones the places are.
  const Index work = g.multiply_adds() / g.groups;
  if (g.groups >= 2 * threads() && work < kGroupWork && work * g.groups >= kGroupWork / 4) {
    fenestra::parallel_for(g.groups, 1, run);
  } else {
    run(0, g.groups);
  }
}

template void run_conv_outer(const ConvProblem&, const ConvArguments<float>&);
template void run_conv_outer(const ConvProblem&, const ConvArguments<double>&);

}  // namespace fenestra::detail
