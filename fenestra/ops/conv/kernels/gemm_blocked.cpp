// Copying x into blocks of channels and multiplying by it; see gemm_blocked.hpp.
#include <fenestra/base/checked.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/kernels/gemm_blocked.hpp>

#include <algorithm>

namespace fenestra::detail {

namespace {

using kernels::PanelRange;
using kernels::ScratchFrame;
using kernels::TileRange;

// Elements of x copied into blocks at a time: the more, the more rarely sums are loaded and stored.
constexpr Index kBlockedElements = Index{1} << 20;
// Fewer rows than this do not pay for the copy.
constexpr Index kFewRows = 12;

/// Cells of y whose products are added at once: samples [n0, n1), windows [o0, o1) of axis 0.
struct Part {
  Index n0 = 0;
  Index n1 = 0;
  Index o0 = 0;
  Index o1 = 0;
};

/// Brings the operands of its products itself, and takes their result.
template <class T>
class BlockedWeightGrad final : kernels::RowSource<T>,
                                kernels::ColumnSource<T>,
                                kernels::TileSink<T> {
 public:
  BlockedWeightGrad(const ConvGeometry& g, const ConvArguments<T>& arguments, Index group)
      : g_(g),
        arguments_(arguments),
        group_(group),
        taps_(g.windows.taps()),
        width_(kernels::panel_width<T>(g.group_out())),
        blocks_(ceil_div(g.group_in(), width_)),
        row_cells_(g.windows.out_cells() / g.windows[0].out) {}

  void run() {
    const Index columns = blocks_ * taps_ * width_;
    ScratchFrame frame;
    tap_shift_ = frame.take<Index>(taps_);
    offsets_ = frame.take<Index>(most_samples() * most_rows() * row_cells_);
    const bool at_once = most_samples() == g_.batch && most_rows() == g_.windows[0].out;
    T* sums = at_once ? nullptr : frame.take<T>(g_.group_out() * columns);
    bool first = true;
    for (Index n = 0; n < g_.batch; n += most_samples()) {
      for (Index o = 0; o < g_.windows[0].out; o += most_rows()) {
        part_ = {n,
                 std::min(n + most_samples(), g_.batch),
                 o,
                 std::min(o + most_rows(), g_.windows[0].out)};
        ScratchFrame part;
        copy_blocks(part);
        if (at_once) {
          multiply(columns, {.sink = this});
        } else {
          multiply(columns, {.data = sums, .row_stride = columns, .accumulate = !first});
        }
        first = false;
      }
    }
    if (!at_once) {
      fenestra::parallel_for(g_.group_out(), 8, [&](Index begin, Index end) {
        store({begin, end, 0, columns}, sums + begin * columns, columns);
      });
    }
  }

 private:
  /// Cells of the blocked copy along an axis; axis 0 for so many windows.
  Index extent(int axis, Index windows) const {
    const WindowAxis& a = g_.windows[axis];
    return a.spanned(axis == 0 ? windows : a.out);
  }
  Index sample_cells(Index windows) const {
    Index n = 1;
    for (int axis = 0; axis < g_.rank(); ++axis) {
      n *= extent(axis, windows);
    }
    return n;
  }
  Index sample_elements(Index windows) const { return sample_cells(windows) * blocks_ * width_; }
  Index most_samples() const {
    return std::clamp<Index>(kBlockedElements / sample_elements(g_.windows[0].out), 1, g_.batch);
  }
  Index most_rows() const {
    const Index all = g_.windows[0].out;
    const Index per_cell = sample_elements(1) / extent(0, 1);
    const WindowAxis& a = g_.windows[0];
    return std::clamp<Index>(a.windows_within(kBlockedElements / per_cell), 1, all);
  }
  Index rows() const { return part_.o1 - part_.o0; }
  Index samples() const { return part_.n1 - part_.n0; }

  /// Copies the part of x, and lists where the taps and the cells of y find it.
  void copy_blocks(ScratchFrame& frame) {
    Index pitch[kMaxSpatialRank];
    Index cells = width_;
    for (int axis = g_.rank() - 1; axis >= 0; --axis) {
      pitch[axis] = cells;
      cells *= extent(axis, rows());
    }
    sample_pitch_ = cells;
    block_pitch_ = samples() * cells;
    blocked_ = frame.take<T>(blocks_ * block_pitch_);
    for (Index t = 0; t < taps_; ++t) {
      tap_shift_[t] = tap_distance(g_.windows, t, pitch);
    }
    const Index cells_per_sample = rows() * row_cells_;
    for (Index cell = 0; cell < cells_per_sample; ++cell) {
      offsets_[cell] = window_distance(g_.windows, cell, pitch);
    }
    for (Index i = cells_per_sample; i < samples() * cells_per_sample; ++i) {
      offsets_[i] = offsets_[i - cells_per_sample] + sample_pitch_;
    }
    fenestra::parallel_for(blocks_ * samples(), 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        turn_block(i / samples(), i % samples());
      }
    });
  }

  /// The channels of one block in one sample.
  void turn_block(Index block, Index sample) const {
    const int inner = g_.rank() - 1;
    const WindowAxis& last = g_.windows[inner];
    const Index length = extent(inner, rows());
    const Index first_cell = inner == 0 ? last.window(part_.o0).first : last.window(0).first;
    const auto [low, high] = taps_within({first_cell, 1, length}, 0, last.in);
    const Index in_cells = g_.windows.in_cells();
    const Index channel = group_ * g_.group_in() + block * width_;
    const Index channels = std::min(width_, g_.group_in() - block * width_);
    const T* x = arguments_.lhs + ((part_.n0 + sample) * g_.in_channels + channel) * in_cells;
    T* dst = blocked_ + block * block_pitch_ + sample * sample_pitch_;
    const Index lines = sample_pitch_ / (length * width_);
    for (Index line = 0; line < lines; ++line, dst += length * width_) {
      Index rest = line;
      Index offset = 0;
      Index stride = last.in;
      bool real = true;
      for (int axis = inner - 1; axis >= 0; --axis) {
        const WindowAxis& a = g_.windows[axis];
        const Index count = extent(axis, rows());
        const Index cell = a.window(axis == 0 ? part_.o0 : 0).first + rest % count;
        real = real && a.is_real(cell);
        offset += cell * stride;
        stride *= a.in;
        rest /= count;
      }
      if (!real || channels < width_) {
        std::fill(dst, dst + length * width_, T(0));
      }
      if (!real) {
        continue;
      }
      std::fill(dst, dst + low * width_, T(0));
      kernels::transpose(x + offset + first_cell + low,
                         in_cells,
                         channels,
                         high - low,
                         dst + low * width_,
                         width_);
      std::fill(dst + high * width_, dst + length * width_, T(0));
    }
  }

  /// product (co x (block, tap, channel)) = y_bar (co x cells) * patches
  void multiply(Index columns, const kernels::Product<T>& product) {
    kernels::gemm<T>(
        {g_.group_out(), columns, samples() * rows() * row_cells_},
        {.access = kernels::LeftAccess::rows, .rows = this, .segment = rows() * row_cells_},
        {.columns = this},
        product);
  }

  /// Rows of y_bar: one segment per sample.
  void starts(Index first, Index count, Index s0, Index s1, const T** table) const override {
    const Index cells = g_.windows.out_cells();
    const Index channel = group_ * g_.group_out() + first;
    for (Index n = part_.n0 + s0; n < part_.n0 + s1; ++n) {
      for (Index i = 0; i < count; ++i) {
        *table++ =
            arguments_.rhs + (n * g_.out_channels + channel + i) * cells + part_.o0 * row_cells_;
      }
    }
  }

  const T* find(const PanelRange& panel, const Index** offsets) const override {
    const Index number = panel.first / width_;
    *offsets = offsets_ + panel.k0;
    return blocked_ + number / taps_ * block_pitch_ + tap_shift_[number % taps_];
  }
  void pack(const PanelRange& range, Index width, T* dst) const override {
    for (Index line = 0; line < range.count; line += width) {
      const Index* offsets = nullptr;
      const T* from = find({range.first + line, width, range.k0, range.k1}, &offsets);
      for (Index k = range.k0; k < range.k1; ++k, dst += width) {
        std::copy_n(from + offsets[k - range.k0], width, dst);
      }
    }
  }

  /// From (block, tap, channel) to (channel, tap); columns are whole panels.
  void store(const TileRange& range, const T* tile, Index ld) const override {
    const Index channels = g_.group_in();
    const Index end = range.j1 / width_;
    for (Index co = range.i0; co < range.i1; ++co, tile += ld) {
      T* out = arguments_.out + (group_ * g_.group_out() + co) * channels * taps_;
      for (Index panel = range.j0 / width_; panel < end;) {
        const Index block = panel / taps_;
        const Index tap = panel % taps_;
        const Index count = std::min(end - panel, taps_ - tap);
        kernels::transpose(tile + panel * width_ - range.j0,
                           width_,
                           count,
                           std::min(width_, channels - block * width_),
                           out + block * width_ * taps_ + tap,
                           taps_);
        panel += count;
      }
    }
  }

  const ConvGeometry& g_;
  const ConvArguments<T>& arguments_;
  Index group_;
  Index taps_;
  Index width_;  // channels of a block: the columns of a panel
  Index blocks_;
  Index row_cells_;  // cells of y for each window along axis 0
  Part part_;
  T* blocked_ = nullptr;
  Index sample_pitch_ = 0;
  Index block_pitch_ = 0;
  Index* tap_shift_ = nullptr;
  Index* offsets_ = nullptr;
};

}  // namespace

template <class T>
bool blocking_pays(const ConvGeometry& g) {
  const Index width = kernels::panel_width<T>(g.group_out());
  const Index padded = ceil_div(g.group_in(), width) * width;
  return g.layout == Layout::channels_first && g.rank() > 0 && g.batch > 0 && g.group_in() > 0 &&
         g.windows.out_cells() > 0 && g.windows.taps() > 0 && g.group_out() >= kFewRows &&
         4 * padded <= 5 * g.group_in();
}

template <class T>
void weight_grad_blocked(const ConvGeometry& g, const ConvArguments<T>& arguments, Index group) {
  BlockedWeightGrad<T>(g, arguments, group).run();
}

template bool blocking_pays<float>(const ConvGeometry&);
template bool blocking_pays<double>(const ConvGeometry&);
template void weight_grad_blocked(const ConvGeometry&, const ConvArguments<float>&, Index);
template void weight_grad_blocked(const ConvGeometry&, const ConvArguments<double>&, Index);

}  // namespace fenestra::detail
